/*
 * The control daemon: everything the parts in this folder share. One process, one thread, one loop.
 *
 *   daemon.c   starts (directory, lock, sockets, logs), ends (quit)
 *   conn.c     accepted connections: who is it, what does it want; until it is a UI's or handed to
 *              a server
 *   caller.c   how many connections a user has, how fast his clients are served
 *   server.c   server processes: start, retry, link messages, end
 *   queue.c    which server a client gets, and the waiting of users for each other in the exclusive
 *              mode
 *   command.c  UI commands: the table and the session; cmd_*.c: the commands
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
    CTL_END_MS = 5000,     /* the same for one that has nothing left to wait for and does not end */
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

/* What a daemon takes over: from itself, when it was started anew (restart.h), or from a service
 * manager (service.h). */
struct ctl_inherited {
    bool restarted;
    int sockets[2]; /* control, control_privileged; -1: none */
    int lock;       /* -1: none */
    int servers;    /* that will come back */
};
#define CTL_NOTHING_INHERITED                                                                      \
    {                                                                                              \
        .sockets = { -1, -1 }, .lock = -1                                                          \
    }

struct ctl_options {
    struct ctl_inherited inherited;
    bool multiuser;       /* one server for all users, */
    bool has_server_user; /* which runs as */
    uid_t server_uid;
    bool exclusive_user; /* one user's server at a time */
    bool classic_limits; /* changed limits are for new clients only */
    struct ctl_config config;
};

struct ctl_device {
    char name[257];
    char uuid[41];  /* GPU-70f598bb-8246-94c4-2fd3-678326b63d17 */
    char pci[33];   /* as the server gave it: 0000:06:00.0 */
    bool exclusive; /* admits one context (compute mode EXCLUSIVE_PROCESS) */
};

struct ctl_conn;
struct ctl_caller;
struct ctl_request;

struct ctl_listener {
    uv_poll_t poll;
    int fd;
    bool inherited;   /* and `file` is not known yet */
    struct stat file; /* the socket that was made in the pipe directory */
};

struct ctl_daemon {
    struct ctl_options options;
    uv_loop_t loop;
    uid_t uid;
    pid_t pid;
    char *pipe_directory;
    char *server_path;
    const char *server_name; /* argv[0] of servers */
    struct ctl_logfile control_log;
    struct ctl_logfile server_log;
    unsigned returning; /* servers that have not come back yet after a restart: new clients wait for
                           them .. */
    uint64_t return_by_ns;       /* .. until then */
    struct ctl_restart *restart; /* NULL: not possible */
    struct ctl_limits limits;    /* defaults for servers to come */
    int pipe_fd;                 /* the pipe directory, whatever its name leads to by now */
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

    struct gm_list users;   /* struct ctl_user: those for whom limits were set */
    struct gm_list groups;  /* struct ctl_group */
    struct gm_list servers; /* struct ctl_server */
    unsigned servers_count;
    struct gm_list queue; /* exclusive mode: struct ctl_conn of users whose turn has not come */
    struct ctl_timer *backoff;
    unsigned backoff_ms;
    bool backoff_running;
    bool turns_logged;
    bool start_wanted; /* exclusive mode: start_server for start_uid */
    uid_t start_uid;
    uint64_t next_serial;     /* of questions to servers */
    uint32_t next_hidden_pid; /* for clients whose process id is not visible here */

    struct ctl_device devices[CTL_DEVICES_MAX]; /* as the last server that was ready said */
    unsigned devices_count;
    bool devices_believed; /* it was one that the daemon's user answers for; no other's word
                              replaces it */

    bool loading; /* state.h */
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

/* Lines for control.log. The others are for what strangers can cause at will: above a rate lines
 * are left out and counted. */
void ctl_log(struct ctl_daemon *d, const char *fmt, ...) GM_PRINTF(2, 3);
void ctl_log_stranger(struct ctl_daemon *d, const char *fmt, ...) GM_PRINTF(2, 3);
void ctl_log_accept(struct ctl_daemon *d);
/* Either, by who the peer is. */
void ctl_log_ui(const struct ctl_conn *c, const char *fmt, ...) GM_PRINTF(2, 3);

/* Watches the listening sockets, or stops doing so. */
void ctl_daemon_listen(struct ctl_daemon *d, bool on);

/* Begins the end: servers are asked to shut down once their clients have left. force_ms: they are
 * forced after that time; -1: never. Calling it again may bring the force nearer. */
void ctl_daemon_quit(struct ctl_daemon *d, int64_t force_ms);
/* A server is gone: the next user's turn, or the end. */
void ctl_daemon_server_gone(struct ctl_daemon *d);

/* --- conn.c ----------------------------------------------------------------------------------- */

enum ctl_conn_phase {
    CTL_CONN_NEW,     /* has said nothing yet */
    CTL_CONN_UI,      /* sends commands */
    CTL_CONN_WAITING, /* said hello; waits for its server */
};

struct ctl_conn {
    struct gm_list link;    /* daemon's conns */
    struct gm_list waiting; /* a server's pending, the daemon's queue, or his user's late ones */
    struct ctl_daemon *daemon;
    struct ctl_caller *caller;
    struct ctl_channel *channel;
    enum ctl_conn_phase phase;
    bool privileged; /* came through control_privileged */
    bool trusted;    /* the daemon's own user, or root */
    struct tp_peer peer;
    uint64_t deadline_ns;
    struct ctl_request *request; /* a command whose answer is not complete */
    unsigned attempts;           /* servers that died before they could take it */
    /* from the hello */
    struct ctl_wish wish;
    char command[1025];
};

/* Accepts what waits on a listening socket. */
void ctl_conn_accept(struct ctl_daemon *d, int listener, bool privileged);
/* Closes and frees. */
void ctl_conn_close(struct ctl_conn *c);
/* As above, with a log line: the peer did something it must not. */
void ctl_conn_drop(struct ctl_conn *c, const char *reason);
/* Answers a hello in the negative, and closes. */
void ctl_conn_refuse(struct ctl_conn *c, int result, const char *reason);
/* Sends a packet over `link` with its socket, and frees it. On failure it lives on. 0 or -errno. */
GM_MUST_CHECK int ctl_conn_hand_over(struct ctl_conn *c, struct ctl_channel *link,
                                     const struct wire_enc *e);
/* Bytes that wait for a user's connections to be read. */
size_t ctl_conn_unread(const struct ctl_daemon *d, uid_t uid);
/* Drops connections that have been silent, or have not read, too long; restarts its timer. */
void ctl_conn_sweep(void *daemon);

/* --- queue.c ---------------------------------------------------------------------------------- */

/* A client has said hello: hands it to its server, or has it wait for one, or refuses it. */
void ctl_queue_admit(struct ctl_conn *c);
/* start_server: NULL, or why not. */
const char *ctl_queue_start(struct ctl_daemon *d, uid_t uid);
/* Something changed in the exclusive mode (a client left, a server is gone): moves on if it can. */
void ctl_queue_advance(struct ctl_daemon *d);
/* All users take turns: an option says so, or a server that is believed, since the device admits
 * one of them. */
bool ctl_queue_takes_turns(const struct ctl_daemon *d);
/* Has a client wait until no other user's server is there. */
void ctl_queue_wait(struct ctl_conn *c);
/* Refuses all who wait. */
void ctl_queue_refuse_all(struct ctl_daemon *d, int result, const char *reason);

#endif
