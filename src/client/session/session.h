/*
 * session/: what this process shares with its server. This folder owns the decision at cuInit, the
 * connection, requests, tables of handles, the map of memory, and the genuine library beside ours.
 * It calls entry.
 *
 * struct rt_session is the client's end of a session: the socket to the server (requests and
 * answers), session memory, and the window, which is mapped as a whole at the addresses that the
 * device uses. There is one in a process. rt_attach() makes it, and it exists as long as the
 * process; it may be left before it was used.
 *
 * Any thread. Functions that return CUresult values return them as int.
 */
#ifndef GMUX_CLIENT_SESSION_SESSION_H
#define GMUX_CLIENT_SESSION_SESSION_H

#include <pthread.h>

#include "transport/output.h"
#include "transport/sock.h"

#define RT_DEVICES    TP_DEVICES
#define RT_ATTRIBUTES 160u /* CUdevice_attribute values below this are known */
#define RT_LIMITS     16u  /* CUlimit values below this are kept */

/* A device as the server described it in session_open. Programs know it by its index among the
 * devices that they see. */
struct rt_device {
    uint32_t index; /* the server's number of it */
    char name[256];
    uint8_t uuid[16];
    uint32_t pci_domain, pci_bus, pci_device;
    uint64_t memory_total;
    uint32_t multiprocessors;
    /* at the beginning; rt_multiprocessors() has the present number */
    uint32_t multiprocessors_granted;
    uint32_t multiprocessors_step; /* 0: shares are not enforced */
    int priority_greatest;         /* of streams; the least is 0 */
    int32_t attributes[RT_ATTRIBUTES];
    uint64_t limits[RT_LIMITS]; /* of a new context */
};

/* A queue as the client sees it: where a stream's records go, known by its number (a slot of
 * session memory). Sequence numbers go on when another stream of the same device gets the queue. */
struct rt_queue {
    uint32_t device;         /* the server's number; fixed at the first use */
    uint16_t next;           /* ring lock: in a list of retired numbers */
    _Atomic uint64_t issued; /* last sequence number written; ring lock to write */
    uint64_t point;          /* ring lock: sequence number of the last recorded event */
    /* sequence number of the last operation that used another device's memory; ring lock to
     * write */
    _Atomic uint64_t abroad;
    _Atomic uint64_t context; /* id of the context that used it last; 0: never used */
    _Atomic bool clears;      /* it clears memory that nobody has yet (memory/clear.c) */
};

struct rt_session {
    /* constant after rt_session_open() */
    int fd;
    int device_fd, host_fd;
    bool is_private;      /* a server of our own, without a daemon */
    bool unanswered;      /* the connection was closed before anything came */
    bool memory_apart;    /* only the device can access device memory */
    uint64_t window_base; /* device area, then host area */
    uint64_t window_half;
    uint64_t memory_limit;
    uint32_t server_pid;
    int driver_version;
    unsigned device_count;
    struct rt_device *devices;
    struct tp_session shared;
    struct tp_wait_policy
        patient;             /* spin a little, then sleep; the watchdog knows when to give up */
    bool shares_of_contexts; /* each context reads CUDA_MPS_ACTIVE_THREAD_PERCENTAGE again */

    pthread_mutex_t request_lock;
    uint64_t serial;          /* request_lock */
    unsigned frees_out;       /* request_lock: frees whose answer has not come yet */
    struct tp_packet *packet; /* request_lock */
    uint8_t *request;         /* request_lock: where requests are encoded */

    pthread_mutex_t output_lock;
    struct tp_input output; /* output_lock to take out */

    pthread_mutex_t ring_lock;
    struct tp_ring ring; /* ring_lock */

    struct rt_queue queues[TP_STREAMS];
    _Atomic uint32_t queues_used; /* ring_lock to write: highest number ever used, plus one */
    struct {
        uint16_t first, last; /* the oldest, the newest */
        uint32_t count;
    } queues_free[RT_DEVICES]; /* ring_lock: retired numbers of each device */
};

/* check.c. What is checked in this process's kernels, bits of enum wire_check; 0: nothing. Set by
 * the first attach. */
extern uint32_t rt_checks;
/* Reads GMUX_CHECK; false, with one line in `why`: it is not well formed. */
bool rt_check_read(char *why, size_t why_size);
extern unsigned rt_check_told; /* how many findings have been reported; the session's output lock */
/* Appends to the report: to the file that GMUX_CHECK_LOG names, or standard error. */
void rt_check_write(const char *text, size_t size);
/* Writes all of it, not through stdio. */
void rt_write_out(int fd, const char *text, size_t size);

/* The session of this process, NULL before cuInit found one and in pass-through. */
extern struct rt_session *rt_session;

/* Makes a session that takes over the connected socket `fd`. NULL: no memory. */
struct rt_session *rt_session_create(int fd);
/* Called when the hello has been sent: waits for session_open (or a refusal), maps everything,
 * sends session_ready. CUresult; on failure `why` has one line. */
int rt_session_open(struct rt_session *s, char *why, size_t why_size);
/* Closes a session that nobody uses yet. NULL is accepted. */
void rt_session_close(struct rt_session *s);
/* Hangs up if the server has not been asked for anything yet, and returns whether it did. Calls of
 * other threads that come too late fail: the session's memory stays, and so does its socket, shut
 * down. */
bool rt_session_leave(struct rt_session *s);
/* Called in the child of a fork: lets go of everything that belongs to the parent.
 * Async-signal-safe. */
void rt_session_abandon(struct rt_session *s);
/* Keeps these pages out of the child of a fork, and out of core files. */
void rt_session_keep(void *pages, size_t size);
/* If only the device can access its memory: pages in the device's half of the window, where the
 * process has mapped something of its own, are protected again. */
void rt_session_hide(const struct rt_session *s, uint64_t address, uint64_t size);

/* Sticky error of the session, CUDA_SUCCESS if none. One load. */
static inline int rt_session_error(const struct rt_session *s)
{
    return (int)atomic_load_explicit(&s->shared.control->error, memory_order_relaxed);
}

/* Multiprocessors of a device that this client may use now. */
static inline uint32_t rt_multiprocessors(const struct rt_session *s, int device)
{
    const struct rt_device *d = &s->devices[device];
    uint32_t live =
        atomic_load_explicit(&s->shared.control->multiprocessors[d->index], memory_order_relaxed);
    return live ? live : d->multiprocessors_granted;
}

/* Waits until queue `number` has completed `seq`. CUDA_SUCCESS or the sticky error. `policy` NULL:
 * s->patient. */
int rt_session_wait(struct rt_session *s, uint32_t number, uint64_t seq,
                    const struct tp_wait_policy *policy);

/* Waits so long at most; whether the queue has completed `seq`. */
bool rt_session_wait_within(struct rt_session *s, uint32_t number, uint64_t seq, uint64_t ns);

/* For a thread that polls instead of waiting: the sticky error. From time to time it checks that
 * the server still exists. */
int rt_session_look(struct rt_session *s);

static inline bool rt_queue_done(const struct rt_session *s, uint32_t number, uint64_t seq)
{
    return atomic_load_explicit(&s->shared.streams[number].completed.value, memory_order_acquire) >=
           seq;
}
static inline uint64_t rt_queue_issued(const struct rt_session *s, uint32_t number)
{
    return atomic_load_explicit(&s->queues[number].issued, memory_order_acquire);
}

/* Prints what the device has printed so far; called after a wait, however it ended. Any thread; no
 * other lock is needed. */
GM_COLD void rt_output_show(struct rt_session *s);

/* The result of a call that finds the session in error: `error`. First prints what a failed
 * assertion said. */
GM_COLD int rt_session_failed(struct rt_session *s, int error);

/* The device with this number of the server; -1: the program does not see it. */
int rt_device_by_index(const struct rt_session *s, uint32_t index);

/* The server has hung up or broken a rule: ends the session, and returns its error. */
int rt_server_gone(struct rt_session *s);

/* packet.c, for the generated ask.c: a new serial; where to encode a packet; sending it; and
 * waiting for an answer of type `want`, or for a status, which is a failure. s->packet is then the
 * answer. Request lock held. CUresult. */
uint64_t rt_request_serial(struct rt_session *s);
void rt_request_encode(struct rt_session *s, struct wire_enc *e);
int rt_request_send(struct rt_session *s, struct wire_enc *e, int fd);
int rt_request_wait(struct rt_session *s, uint64_t serial, unsigned want);

/* Requests. `device` is one of those that the program sees; it is ignored for host memory. Each
 * returns the server's CUresult, or CUDA_ERROR_MPS_RPC_FAILURE (sticky): the server is gone. */
/* Everything is mapped; the answer comes when the device knows the client. */
int rt_request_ready(struct rt_session *s);
int rt_request_alloc(struct rt_session *s, uint64_t size, uint64_t align, uint32_t kind, int device,
                     uint64_t *address);
/* Frees memory, without waiting for an answer. No queued operation may use it any more. */
int rt_request_free(struct rt_session *s, uint64_t address);
/* How much memory the server's accounts show. */
struct rt_memory_info {
    uint64_t free;  /* how much this process may still allocate, unless others take it first */
    uint64_t ready; /* how much the server has at hand */
    uint64_t total; /* of the device */
};
int rt_request_memory_info(struct rt_session *s, int device, struct rt_memory_info *out);
/* Memory objects (protocol/control.api says what each does). */
struct rt_made {
    uint32_t object; /* its name */
    uint64_t size;
    int device;
    bool compressible;
    int fd; /* a host object's, the caller's; -1 otherwise */
};
/* `compressible`: wanted, and then granted. */
int rt_request_object_create(struct rt_session *s, uint64_t size, uint32_t kind, int device,
                             bool compressible, struct rt_made *out);
int rt_request_object_release(struct rt_session *s, uint32_t object); /* no answer */
/* *fd: a descriptor that names the object; it belongs to the caller. */
int rt_request_object_export(struct rt_session *s, uint32_t object, int *fd);
/* CUDA_ERROR_INVALID_DEVICE: it is memory of a device that the program does not see. The same holds
 * for rt_request_memory_open(). */
int rt_request_object_import(struct rt_session *s, int fd, struct rt_made *out);
int rt_request_range_reserve(struct rt_session *s, uint64_t size, uint64_t align, uint32_t kind,
                             uint64_t *address);
int rt_request_range_release(struct rt_session *s, uint64_t address);
/* `access`: two bits of CUmemAccess_flags for each device. */
int rt_request_object_map(struct rt_session *s, uint32_t object, uint32_t access, uint64_t address,
                          uint64_t size);
int rt_request_object_unmap(struct rt_session *s, uint64_t address);
#define RT_TOKEN_BYTES 32u
/* `address` 0: shares an object, else an allocation. */
int rt_request_memory_share(struct rt_session *s, uint64_t address, uint32_t object,
                            uint8_t token[RT_TOKEN_BYTES]);
int rt_request_memory_open(struct rt_session *s, const uint8_t token[RT_TOKEN_BYTES],
                           uint64_t *address, uint64_t *size, int *device, int *fd);
/* Sets how much memory all arrays of a device may take from now on. */
int rt_request_array_memory(struct rt_session *s, int device, uint64_t bytes);
/* Sets whether `device` may access memory of `peer`. */
int rt_request_peer_access(struct rt_session *s, int device, int peer, bool enabled);
int rt_request_context_open(struct rt_session *s, uint32_t context, int device);
int rt_request_context_close(struct rt_session *s, uint32_t context); /* no answer */

struct rt_loaded {
    uint32_t module;
    uint64_t globals_address;
    int info_fd; /* it belongs to the caller; -1 on failure */
    char *log;   /* malloc'd, NULL if none */
};
/* `fd`: the image in a sealed memfd, which stays the caller's. out->log may be set on failure,
 * too. */
int rt_request_module_load(struct rt_session *s, int fd, uint64_t size, uint32_t kind, int device,
                           struct rt_loaded *out);
int rt_request_module_unload(struct rt_session *s, uint32_t module);

#endif
