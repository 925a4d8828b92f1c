/*
 * Keeps servers with names, and their namespaces, in short lists that are searched from their
 * beginning.
 */
#include "control/space.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"

#define OF_USER "uid_"

/* --- names ------------------------------------------------------------------------------------ */

/* Names that a directory beside the daemon's files must not have, because the daemon may come to
 * use them. */
static bool is_taken(const char *s)
{
    return strncmp(s, "control", 7) == 0 || strcmp(s, "log") == 0;
}

bool ctl_name_is_good(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return n && n <= CTL_SERVER_NAME_MAX && !s[n] && !is_taken(s);
}

void ctl_name_of_user(uid_t uid, char out[CTL_SERVER_NAME_MAX + 1])
{
    snprintf(out, CTL_SERVER_NAME_MAX + 1, OF_USER "%u", (unsigned)uid);
}

bool ctl_name_is_user(const char *name, uid_t *uid)
{
    uint64_t number;
    if (strncmp(name, OF_USER, strlen(OF_USER)) != 0 ||
        !gm_parse_u64(name + strlen(OF_USER), CTL_UID_MAX, &number))
        return false;
    *uid = (uid_t)number;
    return true;
}

/* --- servers ---------------------------------------------------------------------------------- */

struct ctl_named *ctl_named_find(const struct ctl_daemon *d, const char *name)
{
    gm_list_for_each (n, &d->names, struct ctl_named, link)
        if (strcmp(n->name, name) == 0)
            return n;
    return NULL;
}

static unsigned count(const struct gm_list *list)
{
    unsigned n = 0;
    for (const struct gm_list *l = list->next; l != list; l = l->next)
        n++;
    return n;
}

struct ctl_named *ctl_named_make(struct ctl_daemon *d, const char *name, uid_t uid,
                                 const char **why)
{
    uid_t owner;
    *why = NULL;
    if (!ctl_name_is_good(name))
        *why = "a name has lowercase letters, digits and '_', up to 64, and does not begin with "
               "control";
    else if (strncmp(name, OF_USER, strlen(OF_USER)) == 0 &&
             (!ctl_name_is_user(name, &owner) || owner != uid))
        *why = "a name that begins with uid_ goes on with its user's number";
    else if (count(&d->names) >= CTL_NAMED_MAX)
        *why = "there are too many servers";
    struct ctl_named *n = *why ? NULL : calloc(1, sizeof(*n));
    if (!n) {
        *why = *why ? *why : "out of memory";
        return NULL;
    }
    n->uid = uid;
    n->log = (struct ctl_logfile) { .directory = -1, .fd = -1, .echo = d->server_log.echo };
    strcpy(n->name, name);
    gm_list_init(&n->spaces);
    if (!ctl_space_make(n, "default", why)) {
        free(n);
        return NULL;
    }
    gm_list_append(&d->names, &n->link);
    return n;
}

/* Copies word `i` of a list with commas. */
static bool word_of(const char *list, uint64_t i, char *out, size_t size)
{
    while (i--) {
        list += strcspn(list, ",");
        if (!*list++)
            return false;
    }
    size_t n = strcspn(list, ",");
    if (n == 0 || n >= size)
        return false;
    memcpy(out, list, n);
    out[n] = '\0';
    return true;
}

static bool has_word_with(const char *list, const char *beginning)
{
    char word[64];
    for (unsigned i = 0; word_of(list, i, word, sizeof(word)); i++)
        if (strncmp(word, beginning, strlen(beginning)) == 0 ||
            strncmp(word, beginning, strlen(word)) == 0)
            return true;
    return false;
}

/* Translates a device into what the environment of the server's process has to say: numbers are
 * those of the daemon's devices. */
static const char *visible_word(const char *word, char *out, size_t size)
{
    const char *own = getenv("CUDA_VISIBLE_DEVICES");
    uint64_t number;
    if (strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-/") !=
        strlen(word))
        return "--allowed-devices has numbers or UUIDs of devices, with commas";
    snprintf(out, size, "%s", word);
    if (gm_parse_u64(word, CTL_DEVICES_MAX - 1, &number))
        return own && *own && !word_of(own, number, out, size)
                   ? "--allowed-devices: the daemon's CUDA_VISIBLE_DEVICES has fewer devices"
                   : NULL;
    if (strncmp(word, "GPU-", 4) != 0 && strncmp(word, "MIG-", 4) != 0)
        return "--allowed-devices has numbers or UUIDs of devices, with commas";
    if (own && *own && (*own == 'G' || *own == 'M'))
        return has_word_with(own, word)
                   ? NULL
                   : "--allowed-devices: the daemon's CUDA_VISIBLE_DEVICES leaves it out";
    return own && *own ? "--allowed-devices: by numbers, as the daemon's CUDA_VISIBLE_DEVICES"
                       : NULL;
}

const char *ctl_named_allow(const struct ctl_daemon *d, struct ctl_named *n, const char *devices)
{
    char word[64], visible[64], all[CTL_VISIBLE_MAX + 1] = "";
    uint64_t number;
    size_t used = 0;
    if (strlen(devices) > CTL_VISIBLE_MAX)
        return "--allowed-devices is too long";
    for (unsigned i = 0; word_of(devices, i, word, sizeof(word)); i++) {
        const char *why = visible_word(word, visible, sizeof(visible));
        if (!why && d->devices_count && gm_parse_u64(word, CTL_DEVICES_MAX, &number) &&
            number >= d->devices_count)
            why = "--allowed-devices: there are fewer devices";
        if (why)
            return why;
        used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? "," : "", visible);
        if (used >= sizeof(all))
            return "--allowed-devices is too long";
    }
    if (!used || strstr(devices, ",,") || devices[strlen(devices) - 1] == ',')
        return "--allowed-devices has numbers or UUIDs of devices, with commas";
    strcpy(n->visible, all);
    strcpy(n->allowed, devices);
    return NULL;
}

void ctl_named_free(struct ctl_named *n)
{
    gm_list_for_each_safe (s, &n->spaces, struct ctl_space, link)
        ctl_space_free(s);
    ctl_logfile_finish(&n->log);
    gm_list_remove(&n->link);
    free(n);
}

void ctl_names_free(struct ctl_daemon *d)
{
    gm_list_for_each_safe (n, &d->names, struct ctl_named, link)
        ctl_named_free(n);
}

/* --- namespaces ------------------------------------------------------------------------------- */

struct ctl_space *ctl_space_default(const struct ctl_named *n)
{
    return gm_list_entry(n->spaces.next, struct ctl_space, link);
}

struct ctl_space *ctl_space_find(const struct ctl_named *n, const char *name)
{
    gm_list_for_each (s, &n->spaces, struct ctl_space, link)
        if (strcmp(s->name, name) == 0)
            return s;
    return NULL;
}

struct ctl_space *ctl_space_make(struct ctl_named *n, const char *name, const char **why)
{
    *why = !ctl_name_is_good(name)   ? "a name has lowercase letters, digits and '_', up "
                                       "to 64, and does not begin with control"
           : ctl_space_find(n, name) ? "there is one of that name"
           : count(&n->spaces) >= CTL_SPACES_MAX ? "the server has too many"
                                                 : NULL;
    struct ctl_space *s = *why ? NULL : calloc(1, sizeof(*s));
    if (!s) {
        *why = *why ? *why : "out of memory";
        return NULL;
    }
    s->server = n;
    s->limits.priority = -1;
    strcpy(s->name, name);
    gm_list_append(&n->spaces, &s->link);
    return s;
}

void ctl_space_free(struct ctl_space *s)
{
    gm_list_remove(&s->link);
    free(s);
}

/* Sets memory limits: SIZE for each device, or DEVICE=SIZE with commas. Limits of devices that are
 * not named stay. */
static const char *set_memory(struct ctl_wish *w, const char *value)
{
    struct ctl_limits all = { .memory_count = 0 }, read = { .memory_count = 0 };
    char text[CTL_MEMORY_TEXT_MAX + 1];
    ctl_limits_set_memory_list(&all, w->memory);
    if (!strchr(value, '=')) {
        if (!ctl_limits_set_memory(&all, "*", value))
            return "a number with G, M or K";
    } else {
        ctl_limits_set_memory_list(&read, value);
        ctl_limits_memory_text(&read, text);
        if (strcmp(text, value) != 0)
            return "SIZE, or DEVICE=SIZE, or several of these with commas";
        for (unsigned i = 0; i < read.memory_count; i++)
            if (!ctl_limits_set_memory(&all, read.memory[i].device, read.memory[i].value))
                return "too many";
    }
    ctl_limits_memory_text(&all, text);
    if (strlen(text) >= sizeof(w->memory))
        return "too long";
    strcpy(w->memory, text);
    return NULL;
}

const char *ctl_space_set(struct ctl_space *s, const char *field, const char *value)
{
    static char why[128];
    struct ctl_limits l = { .memory_count = 0 };
    if (strcmp(field, "active-thread-percentage") == 0) {
        if (!ctl_limits_set_share(&l, value))
            return "active-thread-percentage is above 0, up to 100";
        s->limits.share_pct = l.share_pct;
    } else if (strcmp(field, "client-priority") == 0) {
        if (!ctl_limits_set_priority(&l, value))
            return "client-priority is 0 or 1";
        s->limits.priority = l.priority;
    } else {
        const char *problem = set_memory(&s->limits, value);
        snprintf(why, sizeof(why), "pinned-memory-limit is %s", problem ? problem : "");
        return problem ? why : NULL;
    }
    return NULL;
}

const char *ctl_space_get(const struct ctl_space *s, const char *field, char *out, size_t size)
{
    const struct ctl_wish *w = &s->limits;
    const bool every = strncmp(w->memory, "*=", 2) == 0 && !strchr(w->memory, ',');
    snprintf(out, size, "-");
    if (strcmp(field, "active-thread-percentage") == 0) {
        if (w->share_pct > 0)
            snprintf(out, size, "%g", w->share_pct);
    } else if (strcmp(field, "client-priority") == 0) {
        if (w->priority >= 0)
            snprintf(out, size, "%d", w->priority);
    } else if (strcmp(field, "pinned-memory-limit") == 0) {
        if (*w->memory)
            snprintf(out, size, "%s", w->memory + (every ? 2 : 0));
    } else {
        return NULL;
    }
    return out;
}

bool ctl_space_limits(const struct ctl_space *s)
{
    return s->limits.share_pct > 0 || s->limits.priority >= 0 || *s->limits.memory;
}
