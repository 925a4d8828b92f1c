/*
 * The executor as the server sees it: a process that is started, asked, watched and replaced.
 *
 * What an executor has not answered when it dies is asked again of the next one, after that one was
 * told everything that earlier requests had made. But a request on which two executors were working
 * when they died is given up. A module load is given up after the first death, because it is the
 * likely cause, unless the executor was working for others beside it. Where memory was short all
 * loads under way are given up. Images over which executors die are refused in the end (blame.h),
 * and a user who sends more of them has to wait (backoff.h).
 *
 * Nobody must be lost over another client's module. So work goes on when all clients are restored,
 * or after a second, and an executor whose predecessor died while it restored clients is told about
 * one client after the other.
 *
 * Event loop only.
 */
#ifndef GMUX_SERVER_EXECUTOR_H
#define GMUX_SERVER_EXECUTOR_H

#include "server/backoff.h"
#include "server/peer.h"
#include "server/request.h"
#include "server/turn.h"

struct srv_server;
struct srv_session;

enum srv_executor_state {
    SRV_EXECUTOR_NONE,
    SRV_EXECUTOR_STARTING, /* its engine_ready has not come yet */
    SRV_EXECUTOR_READY,
    SRV_EXECUTOR_WAITING, /* it will be started again after a pause */
};

struct srv_executor {
    struct srv_server *server;
    enum srv_executor_state state;
    uv_process_t process;
    bool process_alive; /* the process's handle is in use */
    uv_timer_t timer;   /* pause before the next start, or the bound on one request */
    struct srv_peer peer;
    bool peer_alive;
    bool ready_once;
    bool restored; /* this executor has answered everything at least once */
    /* the one before died over a load: other loads wait until all clients have theirs back */
    bool wary;
    bool careful; /* the one before died while it restored clients: they are restored one by one */
    bool killed;  /* killed by SIGKILL */
    /* how many processes the system had killed for lack of memory when this one started */
    uint64_t oom_kills;
    bool closing;
    uint64_t next_serial;
    struct gm_list sent;    /* unanswered, in order */
    struct srv_turns turns; /* the requests that wait, by user and session */
    char why[512];          /* why the last one ended */
    uint64_t died_ns;       /* when the last one died that had everything restored */
    struct srv_backoff backoff;
    uv_timer_t patience; /* runs while somebody has to wait because of an image */
    uv_timer_t resume;   /* runs from when this one is ready, for RESTORE_MS */
    bool resumes;        /* that is over: work goes on although not all clients are restored */
    unsigned deaths;     /* deaths in a row, without PEACE_NS in between */
    uint64_t started_ns;
};

void srv_executor_init(struct srv_executor *x, struct srv_server *s);
/* Starts the process, and again after failures. If it cannot be started at all,
 * srv_hooks.executor_failed() is called. */
void srv_executor_start(struct srv_executor *x);
/* Ends the executor for good. */
void srv_executor_close(struct srv_executor *x);

/* Asks the executor. The packet was encoded with any serial and is copied; descriptors must live
 * until the answer. Without `done` it is a repeat of what an earlier executor knew: if this
 * executor dies, it is dropped, since the next replay repeats it. send.h has a function for each
 * message. */
void srv_executor_ask(struct srv_executor *x, struct srv_session *c, const struct wire_enc *e,
                      const int *fds, unsigned fds_count, srv_answer_fn *done, void *arg);

/* Sends requests that wait and no longer have to. */
void srv_executor_go_on(struct srv_executor *x);

/* judge.c. After a death, when requests have been accused: blames the images that were being
 * loaded, and the users who sent them. */
void srv_executor_blame(struct srv_executor *x, bool memory);
/* judge.c. Then decides which clients are lost with the executor. */
void srv_executor_judge(struct srv_executor *x);
/* judge.c. The next executor has restored all clients. */
void srv_executor_settle(struct srv_executor *x);
/* learn.c. Keeps what the first executor says of its devices. NULL, or what is wrong with it. */
const char *srv_executor_learn(struct srv_executor *x, const struct wire_engine_ready *m);
/* learn.c. Keeps what else its back end can do. */
void srv_executor_learn_traits(struct srv_executor *x, struct tp_packet *p);
/* program.c. Finds the path of the executor's program. False: it is not in any of the places. */
GM_MUST_CHECK bool srv_executor_find(char *out, size_t size);
/* program.c. Starts the process, with `child_fd` as its end of the socket. 0 or -errno of libuv.
 * The handle is in use even after a failure. */
GM_MUST_CHECK int srv_executor_spawn(struct srv_executor *x, const char *program, int child_fd,
                                     uv_exit_cb on_exit);

#endif
