/*
 * Applies gmux's configuration file. Each key becomes the option or the command with the same
 * meaning. All are checked before the first is applied.
 */
#include "control/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "control/options.h"
#include "control/policy.h"
#include "control/users.h"

#define FILE_BYTES_MAX (1 << 20)

struct reading {
    struct {
        const struct gm_option *option;
        char *value;
    } settings[CTL_SETTINGS_MAX];
    unsigned settings_count;
    struct ctl_config config;
};

const char *ctl_config_add(struct ctl_config *c, const char *command)
{
    char **more = reallocarray(c->commands, c->count + 1, sizeof(*more));
    if (!more)
        return "out of memory";
    c->commands = more;
    c->commands[c->count] = strdup(command);
    if (!c->commands[c->count])
        return "out of memory";
    c->count++;
    return NULL;
}

static const char *read_option(struct reading *r, const struct gm_toml_item *item)
{
    const struct gm_option *o = gm_option_find(ctl_options_table, item->path[0]);
    if (!o || !o->variable || o->id == CTL_OPTION_CONFIG)
        return "there is no such option";
    if (!o->argument && item->type != GM_TOML_BOOLEAN)
        return "it is true or false";
    if (o->argument && item->type == GM_TOML_BOOLEAN)
        return "it is neither true nor false";
    const char *text = o->argument ? item->text : strcmp(item->text, "true") == 0 ? "1" : "0";
    const char *why = o->check ? o->check(text) : NULL;
    if (why || r->settings_count == CTL_SETTINGS_MAX)
        return why ? why : "there are too many";
    r->settings[r->settings_count].option = o;
    r->settings[r->settings_count].value = strdup(text);
    return r->settings[r->settings_count++].value ? NULL : "out of memory";
}

/* Reads a limit as `gmux set` would: of a user, or of a group of a user. */
static const char *read_limit(struct reading *r, const struct gm_toml_item *item, bool group)
{
    const char *user = item->path[1], *name = group ? item->path[2] : NULL;
    const char *key = item->path[item->depth - 1];
    struct ctl_wish wish = { .priority = -1 };
    char word[GM_TOML_TEXT_MAX * 2], command[GM_TOML_TEXT_MAX * 3];
    uid_t uid;
    if (!ctl_user_named(user, &uid))
        return "there is no such user";
    if (group && !ctl_group_is_name(name))
        return "a group's name has letters, digits, '.', '_' and '-', not only digits";
    snprintf(word, sizeof(word), "%s=%s", key, item->text);
    if (strpbrk(word, " \t\r\n"))
        return "a limit has no blanks";
    const char *why = ctl_wish_set(&wish, group ? CTL_OF_GROUP : CTL_OF_USER, word);
    if (why)
        return why;
    snprintf(command, sizeof(command), "%s %u%s%s %s", group ? "limit_group" : "limit_user",
             (unsigned)uid, group ? "/" : "", group ? name : "", word);
    return ctl_config_add(&r->config, command);
}

static const char *on_item(void *arg, const struct gm_toml_item *item)
{
    struct reading *r = arg;
    if (item->depth == 1)
        return read_option(r, item);
    if (item->depth == 3 && strcmp(item->path[0], "users") == 0)
        return read_limit(r, item, false);
    if (item->depth == 4 && strcmp(item->path[0], "groups") == 0)
        return read_limit(r, item, true);
    return "there is no such key: tables are users.USER and groups.USER.GROUP";
}

/* Reads the whole file, or returns -errno. A symbolic link is not followed, because another user
 * may have made it. */
static int read_file(const char *path, char **text, size_t *size)
{
    struct stat st;
    GM_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    if ((st.st_uid != 0 && st.st_uid != geteuid()) || (st.st_mode & S_IWOTH))
        return -EPERM;
    if (st.st_size > FILE_BYTES_MAX)
        return -EFBIG;
    *text = malloc((size_t)st.st_size + 1);
    ssize_t n = *text ? read(fd, *text, (size_t)st.st_size) : -1;
    *size = n > 0 ? (size_t)n : 0;
    return !*text ? -ENOMEM : n < 0 ? -errno : 0;
}

static void finish(struct reading *r)
{
    for (unsigned i = 0; i < r->settings_count; i++)
        free(r->settings[i].value);
    ctl_config_finish(&r->config);
}

int ctl_config_file(const char *path, gm_toml_fn *each, void *arg, char *why, unsigned why_size)
{
    GM_AUTO_FREE char *text = NULL;
    size_t size = 0;
    struct gm_toml_error error;
    int result = read_file(path, &text, &size);
    if (result == -EPERM)
        snprintf(why, why_size, "%s: it is not root's or one's own, or others may write it", path);
    else if (result < 0)
        snprintf(why, why_size, "%s: %s", path, result == -EINVAL ? "no file" : strerror(-result));
    if (result < 0)
        return -1;
    if (gm_toml_read(text, size, each, arg, &error) == 0)
        return 0;
    snprintf(why, why_size, "%s:%u: %.200s%s%s", path, error.line, error.key,
             *error.key ? ": " : "", error.why);
    return -1;
}

int ctl_config_read(struct ctl_config *c, const char *path, char *why, unsigned why_size)
{
    struct reading r = { .settings_count = 0 };
    int result = ctl_config_file(path, on_item, &r, why, why_size);
    for (unsigned i = 0; result == 0 && i < r.settings_count; i++) {
        const char *variable = r.settings[i].option->variable;
        if (getenv(variable))
            continue;
        setenv(variable, r.settings[i].value, 0);
        r.config.variables[r.config.variables_count++] = variable;
    }
    if (result == 0) {
        *c = r.config;
        r.config = (struct ctl_config) { .count = 0 };
    }
    finish(&r);
    return result;
}

void ctl_config_forget(const struct ctl_config *c)
{
    for (unsigned i = 0; i < c->variables_count; i++)
        unsetenv(c->variables[i]);
}

int ctl_config_check(const char *path, char *why, unsigned why_size)
{
    struct reading r = { .settings_count = 0 };
    int result = ctl_config_file(path, on_item, &r, why, why_size);
    finish(&r);
    return result;
}

void ctl_config_finish(struct ctl_config *c)
{
    for (unsigned i = 0; i < c->count; i++)
        free(c->commands[i]);
    free(c->commands);
    *c = (struct ctl_config) { .count = 0 };
}
