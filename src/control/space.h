/*
 * Servers of protocol 3, by their names, and the namespaces of each: what the daemon keeps of them
 * whether or not a process runs. A user's programs that come to the daemon's own socket have the
 * server uid_UID, which is there as soon as it is wanted; others are made by a command, and
 * programs choose them, and a namespace, by the directory that they connect in (door.h).
 *
 * A namespace is a set of limits for the programs in it. The first one of a server is `default`.
 */
#ifndef GMUX_CONTROL_SPACE_H
#define GMUX_CONTROL_SPACE_H

#include "control/daemon.h"

enum {
    CTL_SERVER_NAME_MAX = 64,
    CTL_VISIBLE_MAX = 1023, /* bytes of a list of devices */
    CTL_NAMED_MAX = 256,
    CTL_SPACES_MAX = 64, /* of one server */
};

struct ctl_space {
    struct gm_list link; /* server's spaces */
    struct ctl_named *server;
    char name[CTL_SERVER_NAME_MAX + 1];
    struct ctl_wish limits;        /* for each of its programs: share, memory, priority */
    struct ctl_listener *doors[2]; /* door.h; NULL: not there */
};

struct ctl_named {
    struct gm_list link; /* daemon's names */
    uid_t uid;
    char name[CTL_SERVER_NAME_MAX + 1];
    char visible[CTL_VISIBLE_MAX + 1]; /* CUDA_VISIBLE_DEVICES of its process; "": the daemon's */
    char allowed[CTL_VISIBLE_MAX + 1]; /* the same as it was asked for */
    struct gm_list spaces;
    struct ctl_logfile log;
};

/* Lowercase letters, digits and '_', and not a name that something else in the directory has. */
bool ctl_name_is_good(const char *s);
/* uid_UID, which is that user's. */
void ctl_name_of_user(uid_t uid, char out[CTL_SERVER_NAME_MAX + 1]);
bool ctl_name_is_user(const char *name, uid_t *uid);

struct ctl_named *ctl_named_find(const struct ctl_daemon *d, const char *name);
/* With its namespace `default`. NULL with `*why`. */
struct ctl_named *ctl_named_make(struct ctl_daemon *d, const char *name, uid_t uid,
                                 const char **why);
/* NULL, or why not: "0,1" of the daemon's devices, or UUIDs. */
GM_MUST_CHECK const char *ctl_named_allow(const struct ctl_daemon *d, struct ctl_named *n,
                                          const char *devices);
/* Nobody may have it, or one of its namespaces, any more. */
void ctl_named_free(struct ctl_named *n);
void ctl_names_free(struct ctl_daemon *d);

struct ctl_space *ctl_space_default(const struct ctl_named *n);
struct ctl_space *ctl_space_find(const struct ctl_named *n, const char *name);
/* NULL with `*why`. */
struct ctl_space *ctl_space_make(struct ctl_named *n, const char *name, const char **why);
void ctl_space_free(struct ctl_space *s);

/* Takes the value of a field: active-thread-percentage, pinned-memory-limit or client-priority.
 * NULL, or why not. */
GM_MUST_CHECK const char *ctl_space_set(struct ctl_space *s, const char *field, const char *value);
/* The value as it was given, or "-"; NULL: there is no such field. */
const char *ctl_space_get(const struct ctl_space *s, const char *field, char *out, size_t size);
/* Something is set. */
bool ctl_space_limits(const struct ctl_space *s);

#endif
