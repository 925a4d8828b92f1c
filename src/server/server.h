/*
 * gmux-server: keeps sessions, their memory and their accounts, and watches over the executor that
 * does the work. Runs no client's code and no device's. One thread, one event loop.
 *
 * A session belongs to one client process. Its life: opening (waiting for the executor and for the
 * client to map its window), attached, failed (sticky error; the executor forgets it), draining
 * (the client is gone, the executor has not yet let go), dead.
 *
 *   server.c    the loop, the beginning, and what goes up (hooks.h)
 *   link.c      what the control daemon says; relink.c: one that is gone, and the next
 *   session.c   a session's beginning, and its connection
 *   serve.c     what a client may ask in which phase: generated
 *   offer.c     what a session has, and what an executor is told of that
 *   leave.c     the end of sessions, and of the server
 *   door.c      what other private servers are given
 *   attach.c    ranges, and what is mapped there
 *   object.c    memory objects; module.c, context.c, array.c
 *   memory.c    heaps and allocations
 *   send.c      answers, and what the executor is asked: generated
 *   answer.c    what each answer does to its session
 *   executor.c  asking, watching and replacing the executor
 *   judge.c     whose fault its death was
 *   report.c    what the control daemon is told
 *
 * Each calls only those below it, and files of one subject: account, user, group, ranges, window,
 * limits, area, keeper, sweep, image, blame, backoff, request, turn, peer, program, spans.
 */
#ifndef GMUX_SERVER_SERVER_H
#define GMUX_SERVER_SERVER_H

#include "base/list.h"
#include "server/account.h"
#include "server/blame.h"
#include "server/door.h"
#include "server/executor.h"
#include "server/group.h"
#include "server/memory.h"
#include "server/partition.h"
#include "server/peer.h"
#include "server/ranges.h"
#include "server/spans.h"
#include "server/sweep.h"
#include "server/user.h"
#include "transport/session.h"

#define SRV_WINDOW_MIN (1ull << 32)
/* a new window is at most this part of what is left: hundreds of clients find some */
#define SRV_WINDOWS_SHARE 48u

#define SRV_CLIENTS_MAX     512u
#define SRV_CONTEXTS_MAX    64u   /* of one session, as are the following */
#define SRV_MODULES_MAX     8192u /* PyTorch and its libraries are more than a thousand */
#define SRV_ALLOCATIONS_MAX 65536u
#define SRV_MAPPINGS_MAX    8192u
#define SRV_OBJECTS_MAX     16384u
#define SRV_NAMES_MAX       16384u
#define SRV_WINDOWS_MAX     8u /* the one it has and those it could not use */
#define SRV_IMAGE_BYTES_MAX (8ull << 30)
#define SRV_SESSIONS_TOTAL  64u /* all sessions of a server may have so many times what one may */
#define SRV_PENDING_MAX     32u /* requests in the works before the session is not read any more */
#define SRV_CUDA_VERSION    13000u

enum srv_phase {
    SRV_OPENING,   /* the client has not been offered its session yet */
    SRV_OFFERED,   /* it has; it maps the window or asks for another */
    SRV_ATTACHING, /* the executor makes room for it */
    SRV_ATTACHED,
    SRV_FAILED,
    SRV_DRAINING,
};

struct srv_context {
    struct gm_list link;
    struct srv_session *session;
    struct srv_charge charge;
    uint32_t id;
    uint32_t device;
    bool opening; /* the executor is asked */
    uint64_t serial;
};

/* What the control daemon or the environment says about a client; 0, -1 and NULL where nothing is
 * said. */
struct srv_client {
    uint32_t pid; /* as the control daemon sees it */
    uint32_t uid;
    uint32_t gid;
    double share_pct;
    int priority;
    const char *memory_limits;
    const char *command;
};

struct srv_session {
    struct gm_list link; /* server->sessions */
    struct srv_server *server;
    struct srv_user *user;
    struct srv_group *group; /* NULL: in none */
    struct srv_peer peer;
    bool peer_closed; /* the loop has let go of it */
    enum srv_phase phase;
    int failed; /* sticky CUresult */

    uint32_t id; /* the executor's name for it */
    uint32_t pid;
    uint32_t uid;
    uint64_t pid_namespace;
    double share_pct;        /* asked for by the client; 100 if not */
    int priority;            /* asked for by the client; -1: not */
    char *memory_text;       /* asked for by the client; NULL: nothing */
    char *command;           /* what `ps` shows; NULL: nothing */
    char memory_ceiling[33]; /* set for its user, in the same form */
    char *space;             /* of protocol 3, SERVER/NAMESPACE; NULL: none */
    char *space_memory;      /* limits of that; NULL: none */
    uint64_t memory_most;    /* bytes of each device, for its control group; 0: no limit */
    double guarantee_pct;    /* of its own; 0: none */
    struct srv_partition partition;
    double granted_pct;
    uint32_t granted_multiprocessors[TP_DEVICES]; /* what that comes to on each device */
    uint32_t engine_multiprocessors[TP_DEVICES];  /* what the executor holds it to there */
    int granted_priority;

    struct tp_session shared;
    int shared_fd;
    uint64_t window_base;
    uint64_t window_size;
    struct srv_block *windows[SRV_WINDOWS_MAX]; /* the last one is in use */
    unsigned windows_count;
    struct srv_charge windows_charge[SRV_WINDOWS_MAX];

    struct srv_account account;
    struct srv_charge count;   /* its place among the clients, while it has one */
    struct srv_charge leaving; /* its place among those on their way out */
    struct srv_area areas[2];  /* device, host */
    struct srv_heap heaps[TP_DEVICES], host;
    uint32_t devices_used;      /* bit for each that the executor knows it to use */
    uint32_t peers[TP_DEVICES]; /* of each device's memory: bit for each that may touch it, too */
    struct gm_list objects;     /* memory objects that it pays for */
    struct gm_list names;       /* for memory objects */
    struct gm_index named;      /* the same, by number */
    uint32_t next_name;
    struct srv_spans reserved;    /* ranges */
    struct srv_spans attachments; /* objects that are mapped */
    struct gm_list modules;
    struct gm_index module_ids;
    uint32_t next_module;
    struct gm_list contexts;
    /* memory of each that the device's own objects may take */
    struct srv_charge arrays[TP_DEVICES];
    bool arrays_asked; /* the executor is being told another amount */

    struct srv_waiting waiting;
    bool unheard;     /* what it asked for is among the much that the daemon has not read yet */
    unsigned pending; /* requests of the client not yet answered */
    unsigned asks;    /* requests to the executor not yet answered, but for repeats */
    unsigned repeats; /* requests of a replay not yet answered */
    bool in_executor; /* the executor knows it, or is being told */
    bool to_replay;   /* a new executor has yet to be told of it */
    bool to_resume;   /* it has been, and does nothing for it yet */
    bool held_back;   /* what it asks waits until the executor has restored all: it was asking when
                         another one died */
    bool removing;    /* the executor is being told to forget it */
    bool stopped;     /* nothing of it runs there any more, and its device memory is not used */
    bool signals_ended;    /* nobody waits for what it has recorded */
    uint64_t signals_at;   /* that holds for mappings below */
    struct gm_list ending; /* server->ending, while there is more of it to end */
    bool given_back;       /* the client is gone, and its device memory was given back */
    unsigned suspected;    /* its modules, when executors died loading them anew; request.h */
};

struct srv_limits {
    double share_pct;
    int priority;
    uint64_t memory[TP_DEVICES]; /* of each client on each device; UINT64_MAX: none */
    char memory_text[4097];
};

struct srv_server {
    uv_loop_t loop;
    uv_signal_t terminate;
    uv_signal_t dump;
    uv_timer_t audit;        /* runs while there are sessions */
    const char *device_name; /* of the back end */
    bool private_mode;       /* one client, no control daemon */
    bool multiuser;          /* clients of several users */
    bool stopping; /* ends with the last session that has a client, or something that runs */
    bool ended;
    int exit_status;

    struct srv_peer link; /* the control daemon */
    bool has_link;
    uv_timer_t relink; /* relink.c; runs while the daemon is gone and there are sessions */
    bool link_lost;
    char pipe_directory[TP_DIRECTORY_MAX + 1];

    struct srv_door door;
    struct srv_executor executor;
    struct srv_limits limits;
    struct srv_account account;
    struct srv_ranges windows;
    struct gm_index tokens, token_files; /* of those that were shared, or exported */
    struct gm_list sessions;
    unsigned sessions_count;
    struct gm_list users; /* user.h */
    unsigned users_count;
    struct gm_list ending; /* sessions that are ended a piece at a time */
    uv_idle_t ending_idle; /* while there are some, also when the server has ended */
    struct srv_reader reader;
    struct srv_sweeper sweeper;
    struct srv_blame blame;
    unsigned contexts_count;
    uint32_t next_session;
    uint32_t next_group;
    struct srv_partition next_partition;    /* of a client that is on its way */
    struct wire_device devices[TP_DEVICES]; /* once the executor is ready; strings and bytes are in
                                               device_packet */
    uint32_t devices_count;                 /* 0: not known yet */
    bool guarantees;                        /* the devices give them, and know groups */
    bool memory_apart;                      /* of the devices: srv_keeper_cuda has their memory */
    bool announced;
    uint8_t device_packet[24576];
    uint8_t out[WIRE_PACKET_MAX]; /* for one packet being encoded */
};

/* --- server.c --------------------------------------------------------------------------------- */

/* Sets up an empty server. 0 or -errno. */
GM_MUST_CHECK int srv_server_init(struct srv_server *s, const char *device_name);
/* Serves the control daemon at the other end of `fd`, or one client that says hello there; takes
 * `fd`. Runs until nothing is left to do. Exit status. */
int srv_server_run_control(struct srv_server *s, int fd);
int srv_server_run_private(struct srv_server *s, int fd);

/* --- link.c: what the control daemon says ----------------------------------------------------- */

extern const struct srv_peer_ops srv_link_ops;

/* --- relink.c --------------------------------------------------------------------------------- */

/* The daemon is gone without having said that we are to end: clients that are there stay, and we
 * look for the next one. */
void srv_relink_begin(struct srv_server *s);
/* For link.c: the link of the daemon that is gone is closed. */
void srv_relink_closed(struct srv_server *s);

/* --- session.c: its beginning ----------------------------------------------------------------- */

/* Takes `fd`. One that cannot be served is told so and ends by itself. */
void srv_session_create(struct srv_server *s, int fd, const struct srv_client *client);

/* --- offer.c: what it has --------------------------------------------------------------------- */

/* Offers the session to a client that waits for it. */
void srv_session_offer(struct srv_session *c);
/* The daemon says which group it is in, and what it is guaranteed. */
void srv_session_place(struct srv_session *c, const struct wire_link_client_group *m);
/* New limits hold for it. */
void srv_session_limit(struct srv_session *c);
/* What its client asks for: `share_pct` 0, `priority` -1, "" or NULL: nothing. Limits do not follow
 * yet. Without memory its memory limits stay as they are. */
void srv_session_take_wish(struct srv_session *c, double share_pct, int priority,
                           const char *memory_limits);
/* What it asked for is replaced, by an administrator; values as above. */
void srv_session_wish(struct srv_session *c, double share_pct, int priority,
                      const char *memory_limits, const char *memory_ceiling);
/* The namespace that it is in, and what it may have there. */
void srv_session_set_space(struct srv_session *c, const struct wire_link_client_space *m);
/* Tells a new executor everything about it that the earlier one knew. */
void srv_session_replay(struct srv_session *c);
/* After that: its work goes on. */
void srv_session_resume(struct srv_session *c);

/* --- window.c --------------------------------------------------------------------------------- */

/* How large a window of the session's is to be. Bytes, a power of two. */
uint64_t srv_session_window_size(const struct srv_session *c);
/* Adds a window to those the session holds and makes it the one in use. 0 or -errno. */
GM_MUST_CHECK int srv_session_take_window(struct srv_session *c);
/* Gives back all windows but the last `keep`. */
void srv_session_free_windows(struct srv_session *c, unsigned keep);

/* --- leave.c: the end of sessions, and of the server ------------------------------------------ */

/* The client gets `result` and a reason from whatever it does, and nothing of it runs any more. */
void srv_session_fail(struct srv_session *c, int result, uint64_t address, const char *why);
/* The client was not yet attached and will not be. */
void srv_session_refuse(struct srv_session *c, int result, const char *reason);
/* Hangs up. */
void srv_session_drop(struct srv_session *c);
/* Has what nothing holds any more freed, when nobody else wants anything: what does not wait for
 * the executor's removal of the session, or all of it. */
void srv_session_check_end(struct srv_session *c);
/* A session is gone, or all but gone: ends the server if that was what it waited for. */
void srv_server_check_end(struct srv_server *s);
/* Lets go of all sessions and ends. */
void srv_server_stop(struct srv_server *s, bool force);
/* Whether the executor may have memory of the client's, of a device or the host's. */
static inline bool srv_session_is_mapped(const struct srv_session *c, bool host)
{
    return c->in_executor && (host || !c->stopped);
}
/* Host memory stays with the executor until it has removed the client: it is not taken back one by
 * one. */
static inline bool srv_session_holds_host(const struct srv_session *c)
{
    return c->in_executor && c->removing;
}

/* --- context.c -------------------------------------------------------------------------------- */

/* Closes those that the client left open. */
void srv_contexts_end(struct srv_session *c);
/* Tells a new executor which devices the client uses, and which are peers. */
void srv_devices_replay(struct srv_session *c);

/* --- array.c ---------------------------------------------------------------------------------- */

/* Tells a new executor how much the client's arrays may take. */
void srv_arrays_replay(struct srv_session *c);

/* --- module.c --------------------------------------------------------------------------------- */

/* At a session's end, until so late; false: there are more. */
GM_MUST_CHECK bool srv_modules_free(struct srv_session *c, uint64_t until_ns);
/* Executors died over one of them. */
bool srv_modules_are_blamed(struct srv_session *c);
/* Tells a new executor about them. */
void srv_modules_replay(struct srv_session *c);

/* --- memory.c --------------------------------------------------------------------------------- */

/* The heap of a device or the host's; NULL: there is no such device. */
static inline struct srv_heap *srv_session_heap(struct srv_session *c, bool host, uint32_t device)
{
    if (host)
        return device == 0 ? &c->host : NULL;
    return device < c->server->devices_count ? &c->heaps[device] : NULL;
}
/* The client's allocation that starts at `address`, in whichever heap; NULL if there is none. */
struct srv_allocation *srv_session_allocation(struct srv_session *c, uint64_t address);

/* --- answer.c --------------------------------------------------------------------------------- */

/* An answer; counts the request as done. Nothing is sent if `serial` is 0. */
void srv_session_status(struct srv_session *c, uint64_t serial, int result);
void srv_session_answer(struct srv_session *c, uint64_t serial, const struct wire_enc *e,
                        const int *fds, unsigned fds_count);
/* Reads the client's requests or lets them wait, by how many are under way. */
void srv_session_pace(struct srv_session *c);

/* --- report.c: what the control daemon is told ------------------------------------------------ */

/* One line for server.log. */
void srv_say(struct srv_server *s, const char *fmt, ...) GM_PRINTF(2, 3);
/* Clears an encoder on the server's packet buffer. */
struct wire_enc srv_encoder(struct srv_server *s);
/* Sends it, if there is a daemon. */
void srv_link_send(struct srv_server *s, const struct wire_enc *e);
void srv_link_ready(struct srv_server *s);
void srv_link_failed(struct srv_server *s, int result, const char *reason);
/* `context` 0: the process, which is on no device; state: enum wire_client_state. */
void srv_link_client_state(struct srv_session *c, uint32_t context, uint32_t device,
                           uint32_t state);
/* A client that was handed over and never had a session. */
void srv_link_client_gone(struct srv_server *s, uint32_t pid, const char *why);
void srv_link_fault(struct srv_server *s, uint32_t pid, int result, const char *text);

/* --- limits.c --------------------------------------------------------------------------------- */

/* Reads the memory limits again, for the devices that are known. */
void srv_server_limit_memory(struct srv_server *s);

/* "0=1G,GPU-...=2G", or "*=1G" for all devices, for the device with this ordinal and uuid;
 * UINT64_MAX where it says nothing. Entries that are not well formed are ignored, as MPS does. */
uint64_t srv_limits_memory(const char *text, unsigned ordinal, const uint8_t uuid[16]);
/* Multiprocessors for a share: rounded down to whole steps of the device, at least one step; all of
 * them for 100 %, and where the device holds nobody to a share. */
uint32_t srv_limits_multiprocessors(const struct wire_device *d, double share_pct);
/* "GPU-70f598bb-8246-94c4-2fd3-678326b63d17" */
#define SRV_UUID_TEXT 41
void srv_uuid_text(char out[SRV_UUID_TEXT], const uint8_t uuid[16]);

#endif
