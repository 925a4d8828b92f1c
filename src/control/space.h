/*
 * Servers of protocol 3, by name, and the namespaces of each: what the daemon keeps of them whether
 * or not a process runs. Programs that connect to the daemon's own socket use their user's server
 * uid_UID, which is made when it is needed. Others are made by a command; programs choose them, and
 * a namespace, by the directory in which they connect (door.h).
 *
 * A namespace is a set of limits for the programs in it. Each server has a namespace `default`.
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
    struct ctl_wish limits;        /* limits of each of its programs: share, memory, priority */
    struct ctl_listener *doors[2]; /* door.h; NULL: it does not exist */
};

struct ctl_named {
    struct gm_list link; /* daemon's names */
    uid_t uid;
    char name[CTL_SERVER_NAME_MAX + 1];
    char visible[CTL_VISIBLE_MAX + 1]; /* CUDA_VISIBLE_DEVICES of its process; "": the daemon's */
    char allowed[CTL_VISIBLE_MAX + 1]; /* the same list as the command gave it */
    struct gm_list spaces;
    struct ctl_logfile log;
};

/* Whether the name consists of lowercase letters, digits and '_', and is not the name of something
 * else in the directory. */
bool ctl_name_is_good(const char *s);
/* The name of a user's own server, uid_UID. */
void ctl_name_of_user(uid_t uid, char out[CTL_SERVER_NAME_MAX + 1]);
bool ctl_name_is_user(const char *name, uid_t *uid);

struct ctl_named *ctl_named_find(const struct ctl_daemon *d, const char *name);
/* Makes a server with its namespace `default`. NULL, with `*why`. */
struct ctl_named *ctl_named_make(struct ctl_daemon *d, const char *name, uid_t uid,
                                 const char **why);
/* Sets the server's devices: "0,1", of the daemon's, or UUIDs. NULL, or why not. */
GM_MUST_CHECK const char *ctl_named_allow(const struct ctl_daemon *d, struct ctl_named *n,
                                          const char *devices);
/* Frees a server; nothing may use it, or one of its namespaces, any more. */
void ctl_named_free(struct ctl_named *n);
void ctl_names_free(struct ctl_daemon *d);

struct ctl_space *ctl_space_default(const struct ctl_named *n);
struct ctl_space *ctl_space_find(const struct ctl_named *n, const char *name);
/* Makes a namespace. NULL, with `*why`. */
struct ctl_space *ctl_space_make(struct ctl_named *n, const char *name, const char **why);
void ctl_space_free(struct ctl_space *s);

/* Sets a field: active-thread-percentage, pinned-memory-limit or client-priority. NULL, or why
 * not. */
GM_MUST_CHECK const char *ctl_space_set(struct ctl_space *s, const char *field, const char *value);
/* The value as it was given, or "-"; NULL: there is no such field. */
const char *ctl_space_get(const struct ctl_space *s, const char *field, char *out, size_t size);
/* Whether any limit is set. */
bool ctl_space_limits(const struct ctl_space *s);

#endif
