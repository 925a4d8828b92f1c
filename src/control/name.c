/*
 * The list of names is short, and is searched from its beginning. What is not in it has the name
 * that its user's number makes.
 */
#include "control/name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"

#define OWN "uid_"

bool ctl_name_is_good(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return n && n <= CTL_SERVER_NAME_MAX && !s[n];
}

static struct ctl_server_name *find_uid(const struct ctl_daemon *d, uid_t uid)
{
    gm_list_for_each (n, &d->names, struct ctl_server_name, link)
        if (n->uid == uid)
            return n;
    return NULL;
}

void ctl_name_of(const struct ctl_daemon *d, uid_t uid, char out[CTL_SERVER_NAME_MAX + 1])
{
    const struct ctl_server_name *n = find_uid(d, uid);
    if (n)
        strcpy(out, n->name);
    else
        snprintf(out, CTL_SERVER_NAME_MAX + 1, OWN "%u", (unsigned)uid);
}

static bool own_uid(const char *name, uid_t *uid)
{
    uint64_t number;
    if (strncmp(name, OWN, sizeof(OWN) - 1) != 0 ||
        !gm_parse_u64(name + sizeof(OWN) - 1, CTL_UID_MAX, &number))
        return false;
    *uid = (uid_t)number;
    return true;
}

bool ctl_name_find(const struct ctl_daemon *d, const char *name, uid_t *uid)
{
    gm_list_for_each (n, &d->names, struct ctl_server_name, link)
        if (strcmp(n->name, name) == 0) {
            *uid = n->uid;
            return true;
        }
    return own_uid(name, uid) && !find_uid(d, *uid);
}

const char *ctl_name_set(struct ctl_daemon *d, uid_t uid, const char *name)
{
    uid_t other;
    struct ctl_server_name *n = find_uid(d, uid);
    const char *own = strncmp(name, OWN, sizeof(OWN) - 1) == 0 ? name : NULL;
    if (!ctl_name_is_good(name))
        return "a name has lowercase letters, digits and '_', up to 64";
    if (own && (!own_uid(name, &other) || other != uid))
        return "a name that begins with uid_ goes on with its user's number";
    if (n && strcmp(n->name, name) == 0)
        return NULL;
    if (n)
        return "its user's server has another name, and each user has one server";
    if (own)
        return NULL;
    if (ctl_name_find(d, name, &other))
        return "another user's server has that name";
    n = calloc(1, sizeof(*n));
    if (!n)
        return "out of memory";
    n->uid = uid;
    strcpy(n->name, name);
    gm_list_append(&d->names, &n->link);
    return NULL;
}

void ctl_name_drop(struct ctl_daemon *d, uid_t uid)
{
    struct ctl_server_name *n = find_uid(d, uid);
    if (!n)
        return;
    gm_list_remove(&n->link);
    free(n);
}

void ctl_names_free(struct ctl_daemon *d)
{
    gm_list_for_each_safe (n, &d->names, struct ctl_server_name, link) {
        gm_list_remove(&n->link);
        free(n);
    }
}
