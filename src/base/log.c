/*
 * Writes lines of diagnostics, and reads GMUX_LOG, which says which lines are written. Nothing here
 * allocates: a line that is too long is cut.
 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *log_who = "gmux";
static enum gm_log_level log_default = GM_LOG_NONE;
static int log_fd = STDERR_FILENO;

static int level_from_name(const char *s, size_t n)
{
    static const char *const names[] = { "none", "error", "warn", "info", "debug" };
    for (size_t i = 0; i < GM_ARRAY_LEN(names); i++)
        if (strlen(names[i]) == n && memcmp(names[i], s, n) == 0)
            return (int)i;
    return -1;
}

/* A later entry wins over an earlier one, and a topic's own entry over a plain level. */
bool gm_log_is_spec(const char *spec)
{
    while (*spec) {
        size_t n = strcspn(spec, ",");
        const char *eq = memchr(spec, '=', n);
        const char *level = eq ? eq + 1 : spec;
        if (level_from_name(level, n - (size_t)(level - spec)) < 0)
            return false;
        spec += n + (spec[n] == ',');
    }
    return true;
}

static int lookup_level(const char *topic)
{
    const char *spec = secure_getenv("GMUX_LOG");
    int plain = (int)log_default;
    int own = -1;

    while (spec && *spec) {
        size_t n = strcspn(spec, ",");
        const char *eq = memchr(spec, '=', n);
        if (!eq) {
            int level = level_from_name(spec, n);
            if (level >= 0)
                plain = level;
        } else if (strlen(topic) == (size_t)(eq - spec) &&
                   memcmp(topic, spec, (size_t)(eq - spec)) == 0) {
            int level = level_from_name(eq + 1, n - (size_t)(eq + 1 - spec));
            if (level >= 0)
                own = level;
        }
        spec += n;
        if (*spec == ',')
            spec++;
    }
    return own >= 0 ? own : plain;
}

void gm_log_init(const char *who, enum gm_log_level default_level)
{
    log_who = who;
    log_default = default_level;
}

void gm_log_to(int fd)
{
    __atomic_store_n(&log_fd, fd, __ATOMIC_RELAXED);
}

bool gm_log_enabled(struct gm_log_topic *topic, enum gm_log_level level)
{
    int current = __atomic_load_n(&topic->level, __ATOMIC_RELAXED);
    if (GM_UNLIKELY(current < 0)) {
        current = lookup_level(topic->name);
        __atomic_store_n(&topic->level, current, __ATOMIC_RELAXED);
    }
    return (int)level <= current;
}

void gm_log_write(struct gm_log_topic *topic, enum gm_log_level level, const char *fmt, ...)
{
    static const char *const words[] = { "", "error: ", "warning: ", "", "" };
    char line[1024];
    int n = snprintf(line, sizeof(line), "%s[%d] %s: %s", log_who, (int)getpid(), topic->name,
                     words[level]);
    if (n < 0)
        return;
    size_t used = GM_MIN((size_t)n, sizeof(line) - 2);

    va_list ap;
    va_start(ap, fmt);
    n = vsnprintf(line + used, sizeof(line) - 1 - used, fmt, ap);
    va_end(ap);
    if (n > 0)
        used = GM_MIN(used + (size_t)n, sizeof(line) - 2);
    line[used++] = '\n';

    ssize_t written = write(__atomic_load_n(&log_fd, __ATOMIC_RELAXED), line, used);
    (void)written; /* there is no other place to report it */
}
