/*
 * A server process as the daemon sees it, with the clients that were handed to it.
 *
 *    RETRYING ──▶ STARTING ──▶ ACTIVE ──▶ STOPPING ──▶ (gone)
 *        ▲───────────┘ died at start
 *
 * While it starts, clients wait in `pending`. A server that dies at start is tried again, with
 * growing pauses; then its pending clients are refused. The link is not trusted more than the user
 * the server runs as.
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
    uint32_t key; /* unique in its server: the pid, or a number above all pids where that is hidden
                     or taken */
    uid_t uid;
    bool connected; /* the server has said so */
    struct ctl_wish wish;
    bool ordered;                    /* by a command, not by its environment */
    struct ctl_space *space;         /* of protocol 3; NULL: none */
    uint64_t memory_most;            /* cgroup.h; UINT64_MAX: no limit */
    struct ctl_group *group;         /* NULL: in none */
    struct ctl_partition *partition; /* the same */
    uint64_t pid_namespace;
    unsigned contexts_count;
    struct ctl_context contexts[CTL_CONTEXTS_MAX];
    char command[1025];
};

struct ctl_server {
    struct gm_list link;
    struct ctl_daemon *daemon;
    enum ctl_server_state state;
    struct ctl_named *named; /* in protocol 3; NULL: the name has been given up */
    char name[65];           /* in protocol 3, also then */
    uid_t uid;               /* whose clients it serves; the daemon's own in multi-user mode */
    gid_t gid;
    pid_t pid;   /* 0 while RETRYING */
    int process; /* taken back from an earlier daemon, so that it is not our child: a pidfd; else -1
                  */
    unsigned starts;
    bool forced;       /* was told not to wait for clients */
    bool killed;       /* SIGKILL is on its way */
    bool knows_groups; /* else it is of a version before them */
    bool knows_spaces; /* the same */
    bool guarantees;   /* its device gives them */
    bool leaving;      /* it came back and takes no new clients */
    bool exclusive;    /* says that its device admits no server beside it */
    bool initialised;  /* its log lines are tagged Server from here on */
    struct ctl_channel *channel;
    struct ctl_lines *output;
    /* RETRYING: next start; STARTING: too long; STOPPING: too long, or force */
    struct ctl_timer *timer;
    struct ctl_device devices[CTL_DEVICES_MAX]; /* as it said when it was ready */
    unsigned devices_count;
    struct ctl_limits limits;
    struct gm_list pending; /* struct ctl_conn.waiting */
    struct gm_list clients; /* struct ctl_client.link */
    unsigned clients_count;
    struct gm_list asked;    /* struct ctl_request waiting for an answer */
    struct ctl_ration lines; /* for server.log */
    uint64_t force_at_ns;    /* STOPPING: forced from then on; 0: never */
    uint64_t end_at_ns;      /* STOPPING: killed then; 0: it may still wait for clients */
    int result;              /* what waiting clients get if it fails; 0: it did not say */
    char cause[513];         /* why it failed, as far as it said */
};

/* One that has no process yet. NULL without memory. */
struct ctl_server *ctl_server_new(struct ctl_daemon *d, uid_t uid, gid_t gid,
                                  struct ctl_named *named);
/* Creates and starts one. NULL without memory. */
struct ctl_server *ctl_server_create(struct ctl_daemon *d, uid_t uid, gid_t gid,
                                     struct ctl_named *named);
/* In protocol 3: whose process it is. */
void ctl_server_name(struct ctl_server *s, struct ctl_named *named);

/* A client that the server has, or is about to get; `key` 0, or one that is taken: a number above
 * all process ids. NULL without memory. */
struct ctl_client *ctl_server_add_client(struct ctl_server *s, uint32_t key, uid_t uid,
                                         const struct ctl_wish *wish, const char *command);

/* By process id as typed in a command; NULL. */
struct ctl_server *ctl_server_find(struct ctl_daemon *d, const char *word);

/* Hands the client over, or has it wait until the server is ready. The connection is no longer the
 * caller's. */
void ctl_server_give(struct ctl_server *s, struct ctl_conn *c);

/* Tells the server its limits. */
void ctl_server_limits_changed(struct ctl_server *s);

/* Asks it to end: once its clients have left, or now. Asking again may turn the first into the
 * second. */
void ctl_server_shutdown(struct ctl_server *s, bool force);
/* Forces it to end after `ms`. */
void ctl_server_force_after(struct ctl_server *s, uint64_t ms);

/* SIGCHLD: collects servers that have ended. */
void ctl_server_reap(struct ctl_daemon *d);

/* For link.c: the server said that it is ready; that a client has left (frees it); has closed the
 * link. */
void ctl_server_ready(struct ctl_server *s);
void ctl_server_client_left(struct ctl_server *s, struct ctl_client *c);
void ctl_server_link_closed(struct ctl_server *s);

/* Runs as a user that the daemon's answers for. Other servers are their users': what one says
 * counts for itself. */
bool ctl_server_believed(const struct ctl_server *s);

/* All users take turns: an option says so, or a server that is believed, since the device admits
 * one of them. */
bool ctl_users_take_turns(const struct ctl_daemon *d);

/* A client by its key, or NULL. */
struct ctl_client *ctl_server_client(struct ctl_server *s, uint32_t key);

#endif
