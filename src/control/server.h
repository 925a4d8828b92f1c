/*
 * A server process as the daemon sees it, with the clients that were handed to it.
 *    RETRYING ──▶ STARTING ──▶ ACTIVE ──▶ STOPPING ──▶ (gone)
 *        ▲───────────┘ died at start
 *
 * While it starts, clients wait in `pending`. A server that dies at its start is tried again, with
 * growing pauses; after the last attempt its pending clients are refused. The link is trusted as
 * much as the user that the server runs as, and no more.
 */
#ifndef GMUX_CONTROL_SERVER_H
#define GMUX_CONTROL_SERVER_H

#include "control/daemon.h"

enum ctl_server_state {
    CTL_SERVER_RETRYING,
    CTL_SERVER_STARTING,
    CTL_SERVER_ACTIVE,
    CTL_SERVER_STOPPING,
};

struct ctl_context {
    uint32_t id;
    uint32_t device;
    bool active;
};

/* A process that is a client of a server. */
struct ctl_client {
    struct gm_list link;
    /* Unique in its server: the pid, or a number above all pids if the pid is hidden or taken. */
    uint32_t key;
    uid_t uid;
    bool connected; /* the server has said so */
    struct ctl_wish wish;
    bool ordered;                    /* `wish` was set by a command, and not by its environment */
    struct ctl_space *space;         /* of protocol 3; NULL: none */
    uint64_t memory_most;            /* cgroup.h; UINT64_MAX: no limit */
    struct ctl_group *group;         /* NULL: in none */
    struct ctl_partition *partition; /* NULL: in none */
    uint64_t pid_namespace;
    unsigned contexts_count;
    struct ctl_context contexts[CTL_CONTEXTS_MAX];
    char command[1025];
};

struct ctl_server {
    struct gm_list link;
    struct ctl_daemon *daemon;
    enum ctl_server_state state;
    struct ctl_named *named; /* in protocol 3; NULL: the server's name has been removed */
    char name[65];           /* in protocol 3, even if the name has been removed */
    /* the user whose clients it serves; the daemon's own in multi-user mode */
    uid_t uid;
    gid_t gid;
    pid_t pid; /* 0 while RETRYING */
    /* A pidfd if it was taken back from an earlier daemon and is no child of ours; else -1. */
    int process;
    unsigned starts;
    bool forced;       /* it was told not to wait for clients */
    bool killed;       /* SIGKILL is on its way */
    bool knows_groups; /* else it is an older version without groups */
    bool knows_spaces; /* else it is an older version without namespaces */
    bool guarantees;   /* its device has guarantees */
    bool leaving;      /* it came back and takes no new clients */
    bool exclusive;    /* it says that its device admits no other server */
    bool initialised;  /* from now on its log lines are tagged Server */
    struct ctl_channel *channel;
    struct ctl_lines *output;
    /* RETRYING: time of the next start; STARTING: it takes too long; STOPPING: it takes too long,
     * or is forced. */
    struct ctl_timer *timer;
    struct ctl_device devices[CTL_DEVICES_MAX]; /* as it reported them when it was ready */
    unsigned devices_count;
    struct ctl_limits limits;
    struct gm_list pending; /* struct ctl_conn.waiting */
    struct gm_list clients; /* struct ctl_client.link */
    unsigned clients_count;
    struct gm_list asked;    /* struct ctl_request waiting for an answer */
    struct ctl_ration lines; /* for server.log */
    uint64_t force_at_ns;    /* STOPPING: it is forced from then on; 0: never */
    uint64_t end_at_ns;      /* STOPPING: it is killed then; 0: it may still wait for clients */
    int result;              /* the error for waiting clients if it fails; 0: it named none */
    char cause[513];         /* why it failed, if it said so */
};

/* Makes a server that has no process yet. NULL: no memory. */
struct ctl_server *ctl_server_new(struct ctl_daemon *d, uid_t uid, gid_t gid,
                                  struct ctl_named *named);
/* Makes a server and starts its process. NULL: no memory. */
struct ctl_server *ctl_server_create(struct ctl_daemon *d, uid_t uid, gid_t gid,
                                     struct ctl_named *named);
/* In protocol 3: sets whose process it is. */
void ctl_server_name(struct ctl_server *s, struct ctl_named *named);

/* Adds a client that the server has, or is about to get. If `key` is 0 or taken, the client gets a
 * number above all process ids. NULL: no memory. */
struct ctl_client *ctl_server_add_client(struct ctl_server *s, uint32_t key, uid_t uid,
                                         const struct ctl_wish *wish, const char *command);

/* Finds a server by the process id typed in a command; NULL: there is none. */
struct ctl_server *ctl_server_find(struct ctl_daemon *d, const char *word);

/* Hands the client over, or lets it wait until the server is ready. Takes the connection. */
void ctl_server_give(struct ctl_server *s, struct ctl_conn *c);

/* Tells the server its new limits. */
void ctl_server_limits_changed(struct ctl_server *s);

/* Asks the server to end: once its clients have left, or (`force`) now. A second call may turn the
 * first into the second. */
void ctl_server_shutdown(struct ctl_server *s, bool force);
/* Forces it to end after `ms`. */
void ctl_server_force_after(struct ctl_server *s, uint64_t ms);

/* SIGCHLD: collects servers that have ended. */
void ctl_server_reap(struct ctl_daemon *d);

/* For link.c. The server said that it is ready; that a client has left (which is freed); or it has
 * closed the link. */
void ctl_server_ready(struct ctl_server *s);
void ctl_server_client_left(struct ctl_server *s, struct ctl_client *c);
void ctl_server_link_closed(struct ctl_server *s);

/* Whether the server runs as a user for whom the daemon's user answers. What any other server says
 * counts only for its own user. */
bool ctl_server_believed(const struct ctl_server *s);

/* Whether users take turns, because an option says so, or because a believed server says that the
 * device admits one server. */
bool ctl_users_take_turns(const struct ctl_daemon *d);

/* Finds a client by its key; NULL: there is none. */
struct ctl_client *ctl_server_client(struct ctl_server *s, uint32_t key);

#endif
