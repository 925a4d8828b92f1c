/*
 * The executor as the server sees it: a process that is started, asked, watched and replaced.
 *
 * What has not been answered when an executor dies is asked again of the next one, after that one
 * was told about everything that the earlier requests had made; but a request that was being worked
 * on when two of them died is given up, and so is a module load after the first death, unless
 * others were being worked on beside it: it is the likely cause. Where memory was short all loads
 * under way are given up. Images over which executors die are refused in the end (blame.h).
 *
 * Who sends more of them waits (backoff.h).
 *
 * So that nobody is lost over another one's module, who was being worked for is not before all
 * others have everything back, and an executor that follows one which did not get so far is told
 * about one client after the other.
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
    SRV_EXECUTOR_STARTING, /* its engine_ready has not come */
    SRV_EXECUTOR_READY,
    SRV_EXECUTOR_WAITING, /* to be started again after a pause */
};

struct srv_executor {
    struct srv_server *server;
    enum srv_executor_state state;
    uv_process_t process;
    bool process_alive; /* its handle is in use */
    uv_timer_t timer;   /* pause before the next start, or the bound on one request */
    struct srv_peer peer;
    bool peer_alive;
    bool ready_once;
    bool restored; /* this one has answered everything at least once */
    bool wary;     /* the one before died over a load: others wait until all have theirs back */
    bool careful;  /* the one before did not: one client is restored after the other */
    bool killed;   /* by a signal that nobody can catch: */
    uint64_t oom_kills; /* the system did so to some process that often before it began */
    bool closing;
    uint64_t next_serial;
    struct gm_list sent;    /* unanswered, in order */
    struct srv_turns turns; /* of what waits */
    char why[512];          /* the last one ended */
    uint64_t died_ns;       /* the last one that had restored all */
    struct srv_backoff backoff;
    uv_timer_t patience; /* runs while somebody waits for that */
    unsigned deaths;     /* one after the other, without a time of peace in between */
    uint64_t started_ns;
};

void srv_executor_init(struct srv_executor *x, struct srv_server *s);
/* Starts the process, again and again; failure for good is reported through
 * srv_hooks.executor_failed(). */
void srv_executor_start(struct srv_executor *x);
/* Ends it for good. */
void srv_executor_close(struct srv_executor *x);

/* Asks. The packet was encoded with any serial; it is copied, descriptors must live until the
 * answer. Without `done` an earlier executor knew it already: it is lost with this one, as the next
 * replay repeats it. send.h has a function for each message. */
void srv_executor_ask(struct srv_executor *x, struct srv_session *c, const struct wire_enc *e,
                      const int *fds, unsigned fds_count, srv_answer_fn *done, void *arg);

/* Sends what waits and need not wait any longer. */
void srv_executor_go_on(struct srv_executor *x);

/* judge.c: it has died, and its requests were accused: images that were being loaded are to blame,
 * and who has sent them. */
void srv_executor_blame(struct srv_executor *x, bool memory);
/* After that: which clients it takes along. */
void srv_executor_judge(struct srv_executor *x);
/* The next one has restored all. */
void srv_executor_settle(struct srv_executor *x);
/* program.c: the path of the executor's program; false if it is not where it was looked for last.
 */
GM_MUST_CHECK bool srv_executor_find(char *out, size_t size);
/* program.c: starts it, with `child_fd` for its end of the socket; 0 or -errno of libuv. The handle
 * is in use even after a failure. */
GM_MUST_CHECK int srv_executor_spawn(struct srv_executor *x, const char *program, int child_fd,
                                     uv_exit_cb on_exit);

#endif
