/*
 * gmux-server keeps sessions, their memory and their accounts, and supervises the executor that
 * does the work. It runs no code of a client or of a device. It has one thread and one event loop.
 *
 * A session belongs to one client process. The phases of its life: opening (waiting for the
 * executor, and for the client to map its window), attached, failed (sticky error; the executor
 * forgets it), draining (the client is gone, the executor has not let go yet), dead.
 *   server.c    the loop, the beginning, and the hooks (hooks.h)
 *   link.c      what the control daemon says; relink.c: when it is gone, and the next one
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
 * Each file calls only files below it, and files with one subject: account, user, group, ranges,
 * window, limits, area, keeper, sweep, image, store, blame, backoff, request, turn, peer, program,
 * spans.
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
/* a new window takes at most this part of the addresses left, so that hundreds of clients find
 * some */
#define SRV_WINDOWS_SHARE 48u

#define SRV_CLIENTS_MAX     512u
#define SRV_CONTEXTS_MAX    64u    /* the limits of one session, as are the following */
#define SRV_MODULES_MAX     32768u /* a program that compiles its own kernels has thousands */
#define SRV_ALLOCATIONS_MAX (1u << 18)
#define SRV_MAPPINGS_MAX    8192u
#define SRV_OBJECTS_MAX     16384u
#define SRV_NAMES_MAX       16384u
#define SRV_WINDOWS_MAX     8u /* the window in use, and those that the client could not use */
#define SRV_IMAGE_BYTES_MAX (8ull << 30)
/* all sessions of a server together may have so many times what one may have */
#define SRV_SESSIONS_TOTAL 64u
/* with so many requests under way the session is not read any more */
#define SRV_PENDING_MAX  32u
#define SRV_CUDA_VERSION 13000u

enum srv_phase {
    SRV_OPENING,   /* the client has not been offered its session yet */
    SRV_OFFERED,   /* the client maps the window, or asks for another one */
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

/* What the control daemon or the environment says about a client; 0, -1 and NULL: nothing. */
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
    bool peer_closed; /* the loop has let go of the peer */
    enum srv_phase phase;
    int failed; /* sticky CUresult */

    uint32_t id; /* the executor's name for it */
    uint32_t pid;
    uint32_t uid;
    uint64_t pid_namespace;
    double share_pct;        /* what the client asks for; 100 if nothing */
    int priority;            /* what the client asks for; -1: nothing */
    char *memory_text;       /* what the client asks for; NULL: nothing */
    char *command;           /* what `ps` shows; NULL: nothing */
    char memory_ceiling[33]; /* the limit of its user, in the same form */
    char *space;             /* its namespace of protocol 3, SERVER/NAMESPACE; NULL: none */
    char *space_memory;      /* the namespace's memory limit; NULL: none */
    uint64_t memory_most;    /* bytes of each device that its control group allows; 0: no limit */
    double guarantee_pct;    /* of its own; 0: none */
    struct srv_partition partition;
    double granted_pct;
    uint32_t granted_multiprocessors[TP_DEVICES]; /* what its share comes to on each device */
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
    struct srv_charge count;   /* charged while it has a place among the clients */
    struct srv_charge leaving; /* charged while it is on its way out */
    struct srv_area areas[2];  /* device, host */
    struct srv_heap heaps[TP_DEVICES], host;
    uint32_t devices_used; /* one bit for each device that the executor knows it to use */
    /* of each device's memory: one bit for each device that may touch it, too */
    uint32_t peers[TP_DEVICES];
    struct gm_list objects; /* the memory objects that it pays for */
    struct gm_list names;   /* its names for memory objects */
    struct gm_index named;  /* the same names, by number */
    uint32_t next_name;
    struct srv_spans reserved;    /* reserved ranges */
    struct srv_spans attachments; /* mapped objects */
    struct gm_list modules;
    struct gm_index module_ids;
    uint32_t next_module;
    struct gm_list contexts;
    /* the memory on each device that the device's own arrays may take */
    struct srv_charge arrays[TP_DEVICES];
    bool arrays_asked; /* the executor is being told another amount */

    struct srv_waiting waiting;
    bool unheard;     /* the daemon has not read much of what this client caused */
    unsigned pending; /* requests of the client not yet answered */
    unsigned asks;    /* requests to the executor not answered yet, except repeats */
    unsigned repeats; /* repeated requests not answered yet */
    bool in_executor; /* the executor knows it, or is being told */
    bool to_replay;   /* a new executor has not been told of it yet */
    bool to_resume;   /* a new executor has been told, and does nothing for it yet */
    /* What it asks waits until the executor has restored all clients: it was asking when another
     * executor died. */
    bool held_back;
    bool removing; /* the executor has been told to forget it */
    /* nothing of it runs in the executor any more, and its device memory is not used */
    bool stopped;
    bool signals_ended;    /* the signals that it has recorded have been ended */
    uint64_t signals_at;   /* up to which mapping's address that is done */
    struct gm_list ending; /* in server->ending, while there is more to end */
    bool given_back;       /* the client is gone, and its device memory has been given back */
    /* how suspect its modules are, because executors died while loading them again (request.h) */
    unsigned suspected;
};

struct srv_limits {
    double share_pct;
    int priority;
    uint64_t memory[TP_DEVICES]; /* limit of each client on each device; UINT64_MAX: none */
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
    /* It ends with the last session that has a client, or something that runs. */
    bool stopping;
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
    /* objects that were shared; and those that were exported */
    struct gm_index tokens, token_files;
    struct gm_list sessions;
    unsigned sessions_count;
    struct gm_list users; /* user.h */
    unsigned users_count;
    struct gm_list ending; /* sessions that are being ended, a piece at a time */
    uv_idle_t ending_idle; /* runs while there are some, also when the server has ended */
    struct srv_reader reader;
    struct srv_sweeper sweeper;
    struct srv_blame blame;
    unsigned contexts_count;
    uint32_t next_session;
    uint32_t next_group;
    struct srv_partition next_partition; /* for the client that comes next */
    /* Known once the executor is ready; strings and bytes point into device_packet. */
    struct wire_device devices[TP_DEVICES];
    uint32_t devices_count; /* 0: not known yet */
    bool guarantees;        /* the devices have guarantees and groups */
    bool memory_apart;      /* srv_keeper_cuda provides the devices' memory */
    bool announced;
    uint8_t device_packet[24576];
    uint8_t out[WIRE_PACKET_MAX]; /* for one packet being encoded */
};

/* --- server.c --------------------------------------------------------------------------------- */

/* Sets up an empty server. 0 or -errno. */
GM_MUST_CHECK int srv_server_init(struct srv_server *s, const char *device_name);
/* Serves the control daemon at the other end of `fd`, or one client that says hello there. Takes
 * `fd`. Runs until nothing is left to do; returns the exit status. */
int srv_server_run_control(struct srv_server *s, int fd);
int srv_server_run_private(struct srv_server *s, int fd);

/* --- link.c: what the control daemon says ----------------------------------------------------- */

extern const struct srv_peer_ops srv_link_ops;

/* --- relink.c --------------------------------------------------------------------------------- */

/* The daemon is gone without having told us to end: clients stay, and we look for the next
 * daemon. */
void srv_relink_begin(struct srv_server *s);
/* For link.c: the link to the daemon that is gone has been closed. */
void srv_relink_closed(struct srv_server *s);

/* --- session.c: its beginning ----------------------------------------------------------------- */

/* Makes a session for the client at `fd`, which it takes. A client that cannot be served is told
 * so, and then its session ends by itself. */
void srv_session_create(struct srv_server *s, int fd, const struct srv_client *client);

/* --- offer.c: what it has --------------------------------------------------------------------- */

/* Offers the session to a client that waits for it. */
void srv_session_offer(struct srv_session *c);
/* The daemon says which group the session is in, and what it is guaranteed. */
void srv_session_place(struct srv_session *c, const struct wire_link_client_group *m);
/* Applies new limits to the session. */
void srv_session_limit(struct srv_session *c);
/* Notes what the client asks for; `share_pct` 0, `priority` -1, "" or NULL: nothing. The limits are
 * not applied yet. If there is no memory, the memory limits stay as they are. */
void srv_session_take_wish(struct srv_session *c, double share_pct, int priority,
                           const char *memory_limits);
/* An administrator replaces what the client asked for; values as in srv_session_take_wish(), and
 * limits are applied. */
void srv_session_wish(struct srv_session *c, double share_pct, int priority,
                      const char *memory_limits, const char *memory_ceiling);
/* Notes the session's namespace, and what it may have there. */
void srv_session_set_space(struct srv_session *c, const struct wire_link_client_space *m);
/* Tells a new executor everything about the session that the earlier one knew. */
void srv_session_replay(struct srv_session *c);
/* After that its work goes on. */
void srv_session_resume(struct srv_session *c);

/* --- window.c --------------------------------------------------------------------------------- */

/* The size of a window for the session, in bytes; a power of two. */
uint64_t srv_session_window_size(const struct srv_session *c);
/* Adds a window to those the session holds and makes it the one in use. 0 or -errno. */
GM_MUST_CHECK int srv_session_take_window(struct srv_session *c);
/* Gives back all windows but the last `keep`. */
void srv_session_free_windows(struct srv_session *c, unsigned keep);

/* --- leave.c: the end of sessions, and of the server ------------------------------------------ */

/* Ends the session's work: from now on each call of the client gets `result` and a reason. */
void srv_session_fail(struct srv_session *c, int result, uint64_t address, const char *why);
/* Refuses a client that is not attached yet. */
void srv_session_refuse(struct srv_session *c, int result, const char *reason);
/* Hangs up on the client. */
void srv_session_drop(struct srv_session *c);
/* Frees what nothing holds any more, when the loop has nothing else to do: everything that does not
 * wait for the executor's removal of the session, or the session itself. */
void srv_session_check_end(struct srv_session *c);
/* Called when a session is gone, or nearly: ends the server if it waited for that. */
void srv_server_check_end(struct srv_server *s);
/* Ends all sessions, and then the server. */
void srv_server_stop(struct srv_server *s, bool force);
/* Whether the executor may have mapped memory of the client, of a device or of the host. */
static inline bool srv_session_is_mapped(const struct srv_session *c, bool host)
{
    return c->in_executor && (host || !c->stopped);
}
/* Whether the executor keeps the client's host memory until it has removed the client, so that it
 * is not taken back range by range. */
static inline bool srv_session_holds_host(const struct srv_session *c)
{
    return c->in_executor && c->removing;
}

/* --- context.c -------------------------------------------------------------------------------- */

/* Closes the contexts that the client left open. */
void srv_contexts_end(struct srv_session *c);
/* Tells a new executor which devices the client uses, and which are peers. */
void srv_devices_replay(struct srv_session *c);

/* --- array.c ---------------------------------------------------------------------------------- */

/* Tells a new executor how much the client's arrays may take. */
void srv_arrays_replay(struct srv_session *c);

/* --- module.c --------------------------------------------------------------------------------- */

/* Frees modules at a session's end, until `until_ns`; false: there are more. */
GM_MUST_CHECK bool srv_modules_free(struct srv_session *c, uint64_t until_ns);
/* Whether executors died over one of its modules. */
bool srv_modules_are_blamed(struct srv_session *c);
/* Tells a new executor about them. */
void srv_modules_replay(struct srv_session *c);

/* --- memory.c --------------------------------------------------------------------------------- */

/* The heap of a device, or of the host; NULL: there is no such device. */
static inline struct srv_heap *srv_session_heap(struct srv_session *c, bool host, uint32_t device)
{
    if (host)
        return device == 0 ? &c->host : NULL;
    return device < c->server->devices_count ? &c->heaps[device] : NULL;
}
/* The client's allocation that starts at `address`, in any heap; NULL: there is none. */
struct srv_allocation *srv_session_allocation(struct srv_session *c, uint64_t address);

/* --- answer.c --------------------------------------------------------------------------------- */

/* Answers a request with a status, and counts it as done. Nothing is sent if `serial` is 0. */
void srv_session_status(struct srv_session *c, uint64_t serial, int result);
void srv_session_answer(struct srv_session *c, uint64_t serial, const struct wire_enc *e,
                        const int *fds, unsigned fds_count);
/* Reads the client's requests, or lets them wait, depending on how many are under way. */
void srv_session_pace(struct srv_session *c);

/* --- report.c: what the control daemon is told ------------------------------------------------ */

/* Writes one line to server.log. */
void srv_say(struct srv_server *s, const char *fmt, ...) GM_PRINTF(2, 3);
/* Clears an encoder on the server's packet buffer. */
struct wire_enc srv_encoder(struct srv_server *s);
/* Sends the message, if there is a daemon. */
void srv_link_send(struct srv_server *s, const struct wire_enc *e);
void srv_link_ready(struct srv_server *s);
void srv_link_failed(struct srv_server *s, int result, const char *reason);
/* Tells the daemon the state of a context. `context` 0: the process, which is on no device; state:
 * enum wire_client_state. */
void srv_link_client_state(struct srv_session *c, uint32_t context, uint32_t device,
                           uint32_t state);
/* Tells the daemon that a client it handed over never got a session. */
void srv_link_client_gone(struct srv_server *s, uint32_t pid, const char *why);
void srv_link_fault(struct srv_server *s, uint32_t pid, int result, const char *text);

/* --- limits.c --------------------------------------------------------------------------------- */

/* Computes the memory limits again, for the devices that are known. */
void srv_server_limit_memory(struct srv_server *s);

/* Reads a limit for the device with this ordinal and uuid from "0=1G,GPU-...=2G", or "*=1G" for all
 * devices; UINT64_MAX: there is none. Malformed entries are ignored, as MPS does. */
uint64_t srv_limits_memory(const char *text, unsigned ordinal, const uint8_t uuid[16]);
/* Multiprocessors for a share: rounded down to whole steps of the device, at least one step. All of
 * them for 100 %, and if the device does not enforce shares. */
uint32_t srv_limits_multiprocessors(const struct wire_device *d, double share_pct);
/* Room for a text such as "GPU-70f598bb-8246-94c4-2fd3-678326b63d17". */
#define SRV_UUID_TEXT 41
void srv_uuid_text(char out[SRV_UUID_TEXT], const uint8_t uuid[16]);

#endif
