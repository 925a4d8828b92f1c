/*
 * The control daemon: what the files of this folder share. It is one process with one thread and
 * one event loop.
 *   daemon.c   starts (directory, lock, sockets, logs), and fills in the hooks
 *   command.c  commands of UIs: the table; cmd_*.c: the commands
 *   module.c   the table of protocol 3's commands; listing.c: their lists
 *   quit.c     the end
 *   link.c     what servers say; return.c: servers that outlived an earlier daemon
 *   queue.c    which server a client gets, and users' turns in the exclusive mode
 *   door.c     directories and sockets of protocol 3's servers and namespaces; space.c: what is
 *              kept of them
 *   server.c   server processes: start, retry, end; process.c: telling and killing one
 *   request.c  a command that is being answered
 *   conn.c     accepted connections, until they are a UI's or are handed to a server
 *   caller.c   how many connections a user has, and how fast its clients are served
 *   log.c      control.log
 *
 * Each file calls only those below it.
 *
 * Everybody who connects is a stranger: the decoder checks the form of what a peer says, this code
 * checks its sense, and everything that a peer can make grow has a limit.
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

/* the CUDA version, 13.0, whose MPS we answer like */
#define CTL_BINARY_VERSION 13000

/* Uids go to 2^32 - 2. */
#define CTL_UID_MAX 4294967294u

/* the group (nogroup) of a server whose user is not in the user data base */
#define CTL_NO_GROUP 65534

enum {
    CTL_HELLO_MS = 10000,     /* a connection that has not said anything by then is dropped */
    CTL_CONNS_PER_USER = 256, /* connections not yet handed to a server */
    CTL_UNREAD_MS = 10000,    /* a connection that leaves answers unread for that long is dropped */
    CTL_UNREAD_MAX = 8 << 20, /* bytes of unread answers of one user, over all connections */
    CTL_SERVER_STARTS = 6,    /* how many processes are tried for one server */
    CTL_RETRY_MS = 100,       /* pause before the second one; it doubles each time */
    CTL_START_MS = 60000,     /* a server that is not ready by then is killed */
    /* A server that waits for nothing any more and does not end by then is killed. */
    CTL_END_MS = 5000,
    /* how long servers of the program that was here before have to come back */
    CTL_RETURN_MS = 1000,
    CTL_ANSWER_MS = 10000, /* how long a server has to answer a command's question */
    /* exclusive mode: pause before the next attempt to end a busy server; it doubles */
    CTL_BACKOFF_MS = 1600,
    CTL_BACKOFF_MAX_MS = 25600,
    CTL_SERVERS_MAX = 256,
    CTL_CLIENTS_MAX = 4096,     /* the most clients of one server whose names the daemon keeps */
    CTL_CLIENTS_PER_USER = 512, /* the most of one user, where users share a server */
    CTL_DEVICES_MAX = 16,
    CTL_CONTEXTS_MAX = 64,
};

struct ctl_options {
    struct ctl_inherited inherited;
    bool restarted;       /* in the same process */
    unsigned returning;   /* how many servers will then come back */
    bool multiuser;       /* one server for all users */
    bool has_server_user; /* which runs as server_uid */
    uid_t server_uid;
    bool exclusive_user; /* one user's server at a time */
    bool classic_limits; /* changed limits hold for new clients only */
    bool modules;        /* protocol 3: its commands are known, too */
    bool partitions;     /* programs need a static partition of a device */
    struct ctl_config config;
};

/* How a device can be divided. All zero: not known. */
struct ctl_parts {
    uint32_t multiprocessors;
    uint32_t step;   /* multiprocessors in a group */
    uint32_t groups; /* 0: it cannot be divided */
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
    struct stat file; /* the socket that was made in the pipe directory */
    /* the namespace whose programs connect here (door.h); NULL: it is not known by the socket */
    struct ctl_space *space;
    struct gm_list link; /* daemon's doors */
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
    /* How many servers have not come back yet after a restart; new clients wait for them. */
    unsigned returning;
    uint64_t return_by_ns; /* until when new clients wait for them */
    /* path of our program file, before a newer one took its place; NULL: not known */
    char *program;
    char **argv;
    struct ctl_limits limits; /* defaults for servers to come */
    int pipe_fd;              /* the pipe directory, even if its name leads elsewhere by now */
    int lock_fd;
    struct stat pid_file;

    struct ctl_listener listeners[2]; /* control, control_privileged */
    uv_fs_event_t watch;              /* on the pipe directory */
    uv_signal_t signals[4];
    struct gm_list conns; /* struct ctl_conn */
    unsigned conns_count;
    unsigned conns_max;
    struct gm_list callers;      /* struct ctl_caller */
    struct ctl_timer *advance;   /* for clients that came too fast */
    struct ctl_timer *sweep;     /* drops silent connections */
    struct ctl_ration strangers; /* limits the log lines that strangers may cause */
    struct ctl_ration trusted;   /* limits the log lines of UIs of root and the daemon's user */

    struct gm_list users;      /* struct ctl_user: users for whom limits were set */
    struct gm_list groups;     /* struct ctl_group */
    struct gm_list names;      /* struct ctl_named */
    struct gm_list doors;      /* struct ctl_listener of namespaces */
    struct gm_list partitions; /* struct ctl_partition */
    /* struct ctl_request: they wait until it is known how devices can be divided */
    struct gm_list part_waits;
    struct gm_list servers; /* struct ctl_server */
    unsigned servers_count;
    struct gm_list queue; /* exclusive mode: struct ctl_conn of users whose turn has not come */
    struct ctl_timer *backoff;
    unsigned backoff_ms;
    bool backoff_running;
    bool turns_logged;
    bool start_wanted; /* exclusive mode: start_server was called, for start_uid */
    uid_t start_uid;
    struct ctl_named *start_named;
    uint64_t next_serial;     /* of questions to servers */
    uint32_t next_hidden_pid; /* for clients whose process id is not visible here */

    struct ctl_device devices[CTL_DEVICES_MAX]; /* as the last server that became ready said */
    unsigned devices_count;
    /* That server is one that the daemon's user answers for; no other server's word replaces it. */
    bool devices_believed;

    bool memacct;       /* cgroup.h */
    bool memacct_audit; /* memacct is logged */
    bool loading;       /* state.h: what commands set is not kept now */
    bool restoring;     /* no server is started now */
    bool quitting;
    struct gm_list quits;  /* struct ctl_request waiting for the end */
    struct ctl_timer *end; /* the last step */
    bool finished;
};

/* --- daemon.c --------------------------------------------------------------------------------- */

/* Runs the daemon until it is told to quit; `options` stay the caller's. Writes one byte to
 * `ready_fd` once it listens (-1: nobody waits); errors before that go to standard error. Returns
 * the exit status of the process. */
int ctl_daemon_run(const struct ctl_options *options, bool background, int ready_fd, char **argv);

/* --- hooks ------------------------------------------------------------------------------------ */

/* Upward calls: what files tell those above them, which they may not call. daemon.c fills in the
 * table. All other calls from file to file go down (tests/layers). */
struct ctl_hooks {
    /* A UI has sent a line. */
    void (*command)(struct ctl_conn *c, const char *line);
    /* A UI has gone before its request was answered. */
    void (*request_left)(struct ctl_request *r);
    /* A server that an earlier daemon had started is back. NULL, or why it is refused. */
    const char *(*server_returned)(struct ctl_conn *c, const struct wire_link_return *m);
    /* A client has said hello, or has lost its server: it wants one. */
    void (*client)(struct ctl_conn *c);
    /* A server has come, or lost its last client: somebody's turn may have come. */
    void (*turn)(struct ctl_daemon *d);
    /* server_gone: a server is gone. server_ends: before that, it is about to be freed. */
    void (*server_gone)(struct ctl_daemon *d);
    void (*server_ends)(struct ctl_server *s);
    /* A server has said how devices can be divided. */
    void (*parts_known)(struct ctl_daemon *d);
    /* What servers say; the channel's owner is the struct ctl_server. */
    const struct ctl_channel_ops *link;
};
extern const struct ctl_hooks ctl_hooks;

#endif
