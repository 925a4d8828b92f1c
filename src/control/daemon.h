/*
 * The control daemon: everything the parts in this folder share. One process, one thread, one loop.
 *
 *   daemon.c   starts (directory, lock, sockets, logs), and is the top: who is told what
 *   command.c  UI commands: the table; cmd_*.c: the commands
 *   module.c   those of protocol 3, as above; listing.c: their lists
 *   quit.c     the end
 *   link.c     what servers say; return.c: those that outlived an earlier daemon
 *   queue.c    which server a client gets, and the waiting of users for each other in the exclusive
 *              mode
 *   door.c     directories and sockets of protocol 3's servers and namespaces; space.c: what is
 * kept of them server.c   server processes: start, retry, end; process.c: telling and killing one
 *   request.c  a command that is being answered
 *   conn.c     accepted connections: who is it, what does it want; until it is a UI's or handed to
 *              a server
 *   caller.c   how many connections a user has, how fast his clients are served
 *   log.c      control.log
 *
 * Each calls only those below it.
 *
 * Everybody who connects is a stranger: what a peer says is checked for form by the decoder and for
 * sense here, and everything it can make grow has a limit.
 */
#ifndef GMUX_CONTROL_DAEMON_H
#define GMUX_CONTROL_DAEMON_H

#include <sys/stat.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/result.h"
#include "control/config.h"
#include "control/inherited.h"
#include "control/policy.h"
#include "control/logfile.h"
#include "control/loop.h"
#include "transport/sock.h"
#include "wire/messages.h"

/* CUDA version whose MPS we answer like: 13.0. */
#define CTL_BINARY_VERSION 13000

/* Uids go to 2^32 - 2. */
#define CTL_UID_MAX 4294967294u

/* The group of a server whose user has no entry in the user data base: nogroup. */
#define CTL_NO_GROUP 65534

enum {
    CTL_HELLO_MS = 10000,     /* a connection that has not said anything by then is dropped */
    CTL_CONNS_PER_USER = 256, /* connections not yet handed to a server */
    CTL_UNREAD_MS = 10000,    /* one that leaves answers unread that long, too */
    CTL_UNREAD_MAX = 8 << 20, /* bytes of a user's unread answers, over all connections */
    CTL_SERVER_STARTS = 6,    /* processes tried for one server */
    CTL_RETRY_MS = 100,       /* before the second one; doubles */
    CTL_START_MS = 60000,     /* a server that is not ready by then is killed */
    CTL_END_MS =
        5000, /* a server that has nothing left to wait for and does not end by then is killed */
    CTL_RETURN_MS = 1000,  /* servers of the program that was here before come back */
    CTL_ANSWER_MS = 10000, /* of a server to what a command asks */
    CTL_BACKOFF_MS = 1600, /* exclusive mode: next attempt to end a busy server; doubles */
    CTL_BACKOFF_MAX_MS = 25600,
    CTL_SERVERS_MAX = 256,
    CTL_CLIENTS_MAX = 4096,     /* of one server, as far as the daemon keeps their names */
    CTL_CLIENTS_PER_USER = 512, /* of them, where users share a server */
    CTL_DEVICES_MAX = 16,
    CTL_CONTEXTS_MAX = 64,
};

struct ctl_options {
    struct ctl_inherited inherited;
    bool restarted;       /* in the same process, */
    unsigned returning;   /* with so many servers that will come back */
    bool multiuser;       /* one server for all users, */
    bool has_server_user; /* which runs as */
    uid_t server_uid;
    bool exclusive_user; /* one user's server at a time */
    bool classic_limits; /* changed limits are for new clients only */
    bool modules;        /* protocol 3: its commands are known, too */
    bool partitions;     /* programs need a static partition of a device */
    struct ctl_config config;
};

/* How a device can be divided. Zeroes: not known. */
struct ctl_parts {
    uint32_t multiprocessors;
    uint32_t step;   /* of them in a group */
    uint32_t groups; /* 0: not at all */
};

struct ctl_device {
    char name[257];
    char uuid[41];  /* GPU-70f598bb-8246-94c4-2fd3-678326b63d17 */
    char pci[33];   /* as the server gave it: 0000:06:00.0 */
    bool exclusive; /* admits one context (compute mode EXCLUSIVE_PROCESS) */
    struct ctl_parts parts;
};

struct ctl_conn;
struct ctl_caller;
struct ctl_named;
struct ctl_space;
struct ctl_request;
struct ctl_server;
struct wire_link_return;

struct ctl_listener {
    uv_poll_t poll;
    int fd;
    struct stat file;        /* the socket that was made in the pipe directory */
    struct ctl_space *space; /* door.h: whose programs connect here; NULL: not known by that */
    struct gm_list link;     /* daemon's doors */
};

struct ctl_daemon {
    struct ctl_options options;
    uv_loop_t loop;
    uid_t uid;
    pid_t pid;
    char *pipe_directory;
    char *log_directory; /* NULL: no log files */
    char *server_path;
    const char *server_name; /* argv[0] of servers */
    struct ctl_logfile control_log;
    struct ctl_logfile server_log;
    unsigned returning; /* servers that have not come back yet after a restart: new clients wait for
                           them */
    uint64_t return_by_ns; /* until when new clients wait for those */
    char *program;         /* its file, before a newer one took its place; NULL: not known */
    char **argv;
    struct ctl_limits limits; /* defaults for servers to come */
    int pipe_fd;              /* the pipe directory, whatever its name leads to by now */
    int lock_fd;
    struct stat pid_file;

    struct ctl_listener listeners[2]; /* control, control_privileged */
    uv_fs_event_t watch;              /* on the pipe directory */
    uv_signal_t signals[4];
    struct gm_list conns; /* struct ctl_conn */
    unsigned conns_count;
    unsigned conns_max;
    struct gm_list callers;      /* struct ctl_caller */
    struct ctl_timer *advance;   /* of clients that came too fast */
    struct ctl_timer *sweep;     /* drops silent connections */
    struct ctl_ration strangers; /* log lines that they may cause */
    struct ctl_ration trusted;   /* the same for UIs of root and the daemon's user */

    struct gm_list users;      /* struct ctl_user: those for whom limits were set */
    struct gm_list groups;     /* struct ctl_group */
    struct gm_list names;      /* struct ctl_named */
    struct gm_list doors;      /* struct ctl_listener of namespaces */
    struct gm_list partitions; /* struct ctl_partition */
    struct gm_list part_waits; /* struct ctl_request: until it is known how devices are divided */
    struct gm_list servers;    /* struct ctl_server */
    unsigned servers_count;
    struct gm_list queue; /* exclusive mode: struct ctl_conn of users whose turn has not come */
    struct ctl_timer *backoff;
    unsigned backoff_ms;
    bool backoff_running;
    bool turns_logged;
    bool start_wanted; /* exclusive mode: start_server for start_uid */
    uid_t start_uid;
    struct ctl_named *start_named;
    uint64_t next_serial;     /* of questions to servers */
    uint32_t next_hidden_pid; /* for clients whose process id is not visible here */

    struct ctl_device devices[CTL_DEVICES_MAX]; /* as the last server that was ready said */
    unsigned devices_count;
    bool devices_believed; /* it was one that the daemon's user answers for; no other's word
                              replaces it */

    bool memacct;       /* cgroup.h */
    bool memacct_audit; /* and says so in the log */
    bool loading;       /* state.h: nothing is kept meanwhile, */
    bool restoring;     /* and no server is started */
    bool quitting;
    struct gm_list quits;  /* struct ctl_request waiting for the end */
    struct ctl_timer *end; /* the last step */
    bool finished;
};

/* --- daemon.c --------------------------------------------------------------------------------- */

/* Runs the daemon until it is told to quit; `options` stay the caller's. `ready_fd` gets one byte
 * once it listens (-1: nobody waits); what goes wrong before is said on standard error. The exit
 * status of the process. */
int ctl_daemon_run(const struct ctl_options *options, bool background, int ready_fd, char **argv);

/* --- hooks ------------------------------------------------------------------------------------ */

/* What parts tell those above them, which they may not call: a table that daemon.c fills in. All
 * other calls from file to file go down (tests/layers). */
struct ctl_hooks {
    /* A UI has sent a line. */
    void (*command)(struct ctl_conn *c, const char *line);
    /* A UI has gone, and its request has not been answered. */
    void (*request_left)(struct ctl_request *r);
    /* A server that an earlier daemon had started is back: NULL, or why it is not taken. */
    const char *(*server_returned)(struct ctl_conn *c, const struct wire_link_return *m);
    /* A client has said hello, or has lost its server: it wants one. */
    void (*client)(struct ctl_conn *c);
    /* A server has come, or lost its last client: somebody's turn may have come. */
    void (*turn)(struct ctl_daemon *d);
    /* A server is gone; before that: is about to be freed. */
    void (*server_gone)(struct ctl_daemon *d);
    void (*server_ends)(struct ctl_server *s);
    /* A server has said how devices can be divided. */
    void (*parts_known)(struct ctl_daemon *d);
    /* What a server says; its owner is the struct ctl_server. */
    const struct ctl_channel_ops *link;
};
extern const struct ctl_hooks ctl_hooks;

#endif
