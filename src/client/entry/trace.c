/*
 * Writes the lines of the call printer. A line that is too long is cut, so that printing neither
 * allocates nor fails. A line is written at once, so that lines of several threads do not mix.
 */
#include "client/entry/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

enum { TEXT_MAX = 80 }; /* characters of a string argument */

_Atomic(const struct rt_api *) rt_trace_under;

GM_PRINTF(2, 3) static void put(struct rt_trace_line *l, const char *fmt, ...)
{
    size_t room = sizeof(l->text) - l->used;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(l->text + l->used, room, fmt, ap);
    va_end(ap);
    if (n > 0)
        l->used += (uint32_t)GM_MIN((size_t)n, room - 1);
}

static void label(struct rt_trace_line *l, const char *name)
{
    put(l, "%s%s=", l->any ? ", " : "", name);
    l->any = true;
}

void rt_trace_begin(struct rt_trace_line *l, const char *function)
{
    l->used = 0;
    l->any = false;
    put(l, "gmux %d %s(", (int)gettid(), function);
    l->start_ns = gm_now_ns();
}

void rt_trace_int(struct rt_trace_line *l, const char *name, int64_t value)
{
    label(l, name);
    put(l, "%" PRId64, value);
}

void rt_trace_uint(struct rt_trace_line *l, const char *name, uint64_t value)
{
    label(l, name);
    put(l, "%" PRIu64, value);
}

void rt_trace_hex(struct rt_trace_line *l, const char *name, uint64_t value)
{
    label(l, name);
    put(l, value ? "0x%" PRIx64 : "%" PRIx64, value);
}

void rt_trace_float(struct rt_trace_line *l, const char *name, double value)
{
    label(l, name);
    put(l, "%g", value);
}

void rt_trace_text(struct rt_trace_line *l, const char *name, const char *value, int64_t size)
{
    label(l, name);
    put(l, "\"");
    for (int64_t i = 0; i < size && value[i]; i++) {
        unsigned char c = (unsigned char)value[i];
        if (i == TEXT_MAX) {
            put(l, "...");
            break;
        }
        if (c == '\n')
            put(l, "\\n");
        else if (c < ' ' || c == 0x7f)
            put(l, "\\x%02x", c);
        else
            put(l, c == '"' || c == '\\' ? "\\%c" : "%c", c);
    }
    put(l, "\"");
}

void rt_trace_str(struct rt_trace_line *l, const char *name, const char *value)
{
    if (value) {
        rt_trace_text(l, name, value, INT64_MAX);
        return;
    }
    label(l, name);
    put(l, "NULL");
}

void rt_trace_enum(struct rt_trace_line *l, const char *name, int64_t value,
                   const struct rt_trace_name *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (names[i].value == value) {
            label(l, name);
            put(l, "%s", names[i].name);
            return;
        }
    }
    rt_trace_int(l, name, value);
}

void rt_trace_struct(struct rt_trace_line *l, const char *name)
{
    label(l, name);
    put(l, "{...}");
}

void rt_trace_end(struct rt_trace_line *l, CUresult result)
{
    int saved = errno;
    uint64_t ns = gm_now_ns() - l->start_ns;
    const char *name = rt_error_name(result);
    /* If there is too little room, the last arguments go and the end of the line stays. */
    l->used = GM_MIN(l->used, (uint32_t)sizeof(l->text) - 120);
    if (name)
        put(l, ") = %s <%" PRIu64 ".%" PRIu64 "us>\n", name, ns / 1000, ns % 1000 / 100);
    else
        put(l, ") = %d <%" PRIu64 ".%" PRIu64 "us>\n", (int)result, ns / 1000, ns % 1000 / 100);
    ssize_t written = write(STDERR_FILENO, l->text, l->used);
    (void)written; /* nobody could be told */
    errno = saved;
}
