/*
 * What the executor needs of a device, and nothing more. A back end is a table of functions; "null"
 * is built in, "soft" and "cuda" are modules opened by name (gmux-dev-soft.so exporting
 * `gmux_device`), so that an installation without one pulls in none of its libraries.
 *
 * Everything about queues is asynchronous: an operation is submitted with its sequence number and
 * completes later, in order within its queue. Completion is visible to the client in shared memory
 * (struct tp_stream_slot.completed); nobody calls back per operation.
 *
 * Threads. Device functions: the executor's main thread. Queue functions of one client: that
 * client's thread. All others: the main thread or a worker, also beside each other and beside the
 * client's thread; what is called of one client at the same time is limited to:
 * - memory_map, memory_attach, memory_unmap, client_peer: one of them at a time, also not beside
 *   client_stop; but where memory is apart memory_unmap of host memory, of which there is one at a
 *   time, is beside any of the others but client_destroy;
 * - client_device, client_set_share: the same; array_memory: the same; memory_trim: any number, not
 *   beside client_stop;
 * - module_load, module_place, module_unload: several of them, of different modules, and beside any
 *   of the others but client_destroy, and module_place not beside client_stop;
 * - client_leave: any number, beside all others but client_destroy;
 * - client_stop: after the client's thread has ended; client_destroy: alone, after client_stop.
 *   Between the two there may be any of the others but memory_map, memory_attach and module_place.
 * Whatever several clients share, the back end has a lock for. A function that takes long holds
 * none that others wait for.
 *
 * Trust. Sizes, addresses and handles in queue operations come from a hostile client: the back end
 * checks that every address lies in the client's window and turns a wrong one into that client's
 * fault. Modules are hostile text.
 *
 * Errors: functions return CUresult values (base/result.h) as int, 0 = success, as the client will
 * see them. A queue function that fails (for want of memory) has queued nothing; the caller must
 * fail the client, as the sequence number never completes. Wrong arguments of an operation are no
 * failure of the function: they become the client's fault.
 */
#ifndef GMUX_DEVICE_DEVICE_H
#define GMUX_DEVICE_DEVICE_H

#include "base/result.h"
#include "transport/session.h"

struct dev;        /* a back end with the devices it has opened */
struct dev_client; /* a client of them: window, share, priority */
struct dev_module; /* an image of one client, loaded on one device */
struct dev_queue;  /* a stream of one client on one device */

#define DEV_DEVICES    TP_DEVICES
#define DEV_ATTRIBUTES 160 /* CUdevice_attribute values below this are reported */
#define DEV_LIMITS     16u /* CUlimit values below this are told */
/* Globals up to so many bytes may lie where something else of the client's has been. */
#define DEV_GLOBALS_USED (1u << 20)

struct dev_info {
    char name[64];
    uint8_t uuid[16];
    uint32_t pci_domain, pci_bus, pci_device;
    uint64_t memory_total;
    uint32_t multiprocessors;
    uint32_t multiprocessors_step; /* shares are multiples of this; 0: nobody is held to a share */
    uint32_t multiprocessors_shared; /* the most that a share below 100 % can come to */
    uint32_t priorities;             /* of streams: 0, -1 .. this many */
    uint32_t driver_version;         /* CUDA version, 13000 = 13.0 */

    /* The next five are the same for all devices of a back end. */
    bool completes_always; /* completion words move without `mark` */
    bool memory_apart; /* device memory is not the host's: it comes by memory_attach, no process can
                          touch it */
    bool launch_attributes; /* launches may have attributes */
    bool runs_elsewhere;    /* operations do not need this machine's processors */
    /* client_destroy returns before the client is gone, which client_gone says */
    bool leaves_later;
    uint32_t depth_max; /* operations that a client may have in flight; 0: as the executor likes */
    int32_t attributes[DEV_ATTRIBUTES];
    uint64_t limits[DEV_LIMITS]; /* of a new context, by CUlimit */
};

/* Told to the executor; any thread. */
struct dev_events {
    /* The client's fault: `result` is its sticky error from now on, the text (one line) goes to the
     * log. Its queued work is dropped and completes, after this call has returned. Called once per
     * client at most, with no lock of the back end held; it must not call queue or client
     * functions. */
    void (*client_fault)(void *arg, struct dev_client *c, int result, uint64_t address,
                         const char *text);
    /* A client with that session is gone, of a device where that comes after client_destroy. Any
     * thread, with no lock of the back end held. */
    void (*client_gone)(void *arg, struct tp_session *session);
    void *arg;
    /* The user that the process becomes once the device is open, 0: it stays who it is. A file that
     * the device is to use later has to be that user's, or open. */
    uint32_t user;
};

struct dev_client_config {
    uint32_t id;
    uint32_t uid; /* the user: clients share things with others of their user only */
    /* device area [base, base + size/2), host area [base + size/2, base + size) */
    uint64_t window_base;
    uint64_t window_size;
    int device_fd;    /* memfd of the device area, offset 0 = window_base; stays the caller's */
    int host_fd;      /* memfd of the host area, offset 0 = window_base + window_size / 2 */
    double share_pct; /* (0, 100] */
    uint32_t multiprocessors[DEV_DEVICES]; /* what the share comes to on each: whole steps, or all
                                              of them */
    int priority;                          /* CUDA_MPS_CLIENT_PRIORITY: 0 normal, 1 below */
    struct tp_session *session;            /* lives longer than the client */
    const _Atomic bool *leaving; /* lives as long; becomes true when the client is about to be
                                    stopped: what waits for it should not. May be NULL */
};

/* What a load found; filled by module_load, owned by the module. `info` is an encoded struct
 * wire_module_info. */
struct dev_module_info {
    struct wire_bytes info;
    uint64_t globals_size;
    uint64_t globals_align;
    char *log; /* messages for the JIT log options and for people, "line:column: text" per line; may
                  be NULL */
};

/* enum wire_memory_access, or 0, of one device. */
#define DEV_ACCESS(access, device) ((access) >> 2 * (device)&3u)

#define DEV_LAUNCH_ATTRIBUTE      72u
#define DEV_LAUNCH_ATTRIBUTES_MAX 24u

struct dev_launch {
    struct dev_module *module; /* of the queue's device */
    uint32_t function;         /* index in the module's function list; checked by the back end */
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t shared_bytes; /* dynamic */
    uint32_t attributes;   /* CUlaunchAttribute's, DEV_LAUNCH_ATTRIBUTE bytes each, before the
                              parameters */
    const void *params;    /* packed as the function's layout says; copied by the call */
    uint32_t params_size;  /* with the attributes */
    bool more; /* other operations wait behind it, or ops->flush() follows: it may wait for them */
};

/* How many blocks a grid has, or threads a block. It may overflow; devices refuse such launches. */
static inline uint64_t dev_product(const uint32_t d[3])
{
    return (uint64_t)d[0] * d[1] * d[2];
}

/* A question that only the device can answer; the arguments are a client's. */
struct dev_call {
    uint32_t function;         /* enum wire_call */
    uint32_t device;           /* one that the client uses; a module has its own */
    struct dev_module *module; /* NULL: it names none */
    struct wire_dec *args;
    struct wire_enc *reply;
};

/* Operations that a client expects to hand over again, byte for byte: records, each padded to 8
 * bytes, whose streams and sequence numbers are 0. */
struct dev_run {
    uint64_t seq; /* of the first; they have one each */
    uint32_t count;
    uint32_t size; /* bytes */
    const void *records;
};

enum dev_run_verdict {
    DEV_RUN_PLAIN, /* the operations come one by one, as ever */
    DEV_RUN_DONE,  /* it has been submitted; they do not come */
    DEV_RUN_LEARN, /* they come, and none of them is submitted; then run_end() */
};

/* A graph with conditional nodes. Kernels know its handles by their numbers: 1, 2 .. The records
 * are a struct wire_graph_handle for each handle, and then as those of a run. */
struct dev_graph {
    uint64_t seq; /* it has one */
    uint32_t handles;
    uint32_t size; /* bytes */
    const void *records;
};

/* Clients that have a part of the device together. 0 %: no limit, no guarantee. */
struct dev_group {
    uint32_t number; /* 0: of none */
    double share_pct;
    double guarantee_pct;
};

struct dev_ops {
    const char *name;
    /* Once it is open it needs nothing of the system but memory, threads, and programs of its own:
     * the executor gives up the rest. */
    bool contained;

    /* --- device ------------------------------------------------------------------------------- */
    /* All devices that there are, up to DEV_DEVICES; at least one. They are known by their place in
     * that order. */
    int (*open)(struct dev **out, const struct dev_events *events);
    void (*close)(struct dev *d);
    uint32_t (*count)(struct dev *d);
    const struct dev_info *(*info)(struct dev *d, uint32_t device);

    /* --- clients ------------------------------------------------------------------------------ */
    int (*client_create)(struct dev *d, const struct dev_client_config *config,
                         struct dev_client **out);
    /* Live; the next scheduling decision sees it. `multiprocessors` as in dev_client_config. */
    void (*client_set_share)(struct dev_client *c, double share_pct,
                             const uint32_t *multiprocessors, int priority);
    /* Live, too: the client has so much of the device whenever it has work, and is in this group.
     * NULL: the device has neither guarantees nor groups. */
    void (*client_set_group)(struct dev_client *c, double guarantee_pct,
                             const struct dev_group *group);
    /* The client uses this device from now on; until then only memory_attach names it. The first
     * one is everybody's. NULL: that needs nothing. */
    int (*client_device)(struct dev_client *c, uint32_t device);
    /* `device` may touch what the client has and will have on `peer` by memory_map, or may no
     * longer. NULL: every device may touch everything. */
    int (*client_peer)(struct dev_client *c, uint32_t device, uint32_t peer, bool enabled);
    /* The client's thread is about to be waited for: what it does for the client is to end soon.
     * NULL: it never takes long. */
    void (*client_leave)(struct dev_client *c);
    /* Takes every operation of the client off the device, running kernels included, within a
     * bounded time. Nothing of the client runs after it returns, and nothing touches its device
     * memory: its maker may take it back at once. Memory that came by memory_attach with a
     * descriptor for the device area of a device whose memory is apart must not be held any more;
     * memory_unmap of such a range is accepted afterwards all the same. Modules, queues and host
     * memory are still there. */
    void (*client_stop)(struct dev_client *c);
    /* Frees the client with all that is left in it. After client_stop. May take as long as the
     * device has something to do, for any client: nobody waits for it. With `leaves_later` it
     * returns before. */
    void (*client_destroy)(struct dev_client *c);

    /* --- memory: makes a range of the window accessible to kernels, or takes it away; page-aligned
     * --- */
    int (*memory_map)(struct dev_client *c, uint64_t address, uint64_t size);
    /* Like memory_map, with memory of `device` that `fd` stands for, from `offset` on; `fd` stays
     * the caller's. `access`: for each device what DEV_ACCESS takes out of it; 0: as for
     * memory_map, `device` and its peers. On devices whose memory is apart, descriptors for the
     * device area are the device's, and the offset is 0. For a range that is attached already it
     * changes the access. */
    int (*memory_attach)(struct dev_client *c, uint64_t address, uint64_t size, int fd,
                         uint64_t offset, uint32_t device, uint32_t access);
    /* The caller made sure that no queued operation uses the range; one that does anyway faults. */
    void (*memory_unmap)(struct dev_client *c, uint64_t address, uint64_t size);

    /* The device has refused memory that this client is to have: it gives back what it keeps of it
     * without need, if it can do so soon. NULL: it keeps none. */
    void (*memory_trim)(struct dev_client *c, uint32_t device);

    /* The client's arrays on a device may take so many bytes of its memory, which the server has
     * charged it with; none before the first call. CUDA_ERROR_INVALID_VALUE if they take more
     * already. NULL: the device has no arrays. */
    int (*array_memory)(struct dev_client *c, uint32_t device, uint64_t bytes);

    /* --- modules ------------------------------------------------------------------------------ */
    /* On failure *out is NULL but info->log may be set; free it with free(). */
    int (*module_load)(struct dev_client *c, uint32_t device, const void *image, size_t size,
                       uint32_t kind, struct dev_module **out, struct dev_module_info *info);
    /* Gives the module's globals their memory (already mapped); with `initialise`, writes their
     * initial values. More than DEV_GLOBALS_USED bytes are zero by then. */
    int (*module_place)(struct dev_module *m, uint64_t globals_address, bool initialise);
    /* Queued launches of it still run to their end. */
    void (*module_unload)(struct dev_module *m);

    /* --- queues ------------------------------------------------------------------------------- */
    /* `done`: the stream's last operation so far, which is done; session memory does not say so
     * reliably. */
    int (*queue_create)(struct dev_client *c, uint32_t device, uint32_t stream, uint64_t done,
                        int priority, struct dev_queue **out);
    /* The stream's number is another stream's from now on, before it could be destroyed. May be
     * NULL. */
    void (*queue_reuse)(struct dev_queue *q);
    /* Everything in it is done, and the client had no part in saying so. NULL: `backlog` says it
     * reliably. */
    bool (*queue_is_done)(struct dev_queue *q);
    /* Everything in it is done (the client retires a stream with a record at its end); what is not,
     * is dropped. */
    void (*queue_destroy)(struct dev_queue *q);
    int (*launch)(struct dev_queue *q, uint64_t seq, const struct dev_launch *l);
    int (*copy)(struct dev_queue *q, uint64_t seq, const struct wire_rec_copy *r);
    int (*write)(struct dev_queue *q, uint64_t seq, uint64_t dst, const void *data, uint32_t size);
    int (*fill)(struct dev_queue *q, uint64_t seq, const struct wire_rec_fill *r);
    int (*wait)(struct dev_queue *q, uint64_t seq, struct dev_queue *other, uint64_t other_seq);
    int (*stamp)(struct dev_queue *q, uint64_t seq, uint32_t event);
    int (*gate)(struct dev_queue *q, uint64_t seq);
    /* The client may have moved its gate word, or the word that the queue waits for: look again. */
    void (*gate_moved)(struct dev_queue *q);
    /* A gate that opens when a word has a value. The device looks at the word when gate_moved() is
     * called, and then stores the gate word itself. Everything in the record has been checked but
     * the address. */
    int (*wait_value)(struct dev_queue *q, uint64_t seq, const struct wire_rec_wait_value *r);
    int (*mark)(struct dev_queue *q, uint64_t seq);
    /* Copies with an array on one side or both. NULL: the device has no arrays. */
    int (*copy_array)(struct dev_queue *q, uint64_t seq, const struct wire_rec_copy_array *r);
    /* Before the operations of a run. NULL: all runs are plain. */
    enum dev_run_verdict (*run_begin)(struct dev_queue *q, const struct dev_run *run);
    /* After those of one that is learnt. True: it has been submitted. False: nothing has; the
     * operations come again, plain. */
    bool (*run_end)(struct dev_queue *q, const struct dev_run *run);
    /* A graph that runs as a whole. If it is not `known` its operations and conditions come, none
     * of which is submitted, and then graph_end(). NULL, with the following: the client has such
     * graphs run piece by piece. */
    int (*graph_begin)(struct dev_queue *q, const struct dev_graph *graph, bool *known);
    /* A condition, which has been checked but for its handle; its bodies follow. */
    int (*graph_condition)(struct dev_queue *q, const struct wire_rec_condition *r);
    /* What comes now is in this body of the last condition; `body` is how many it has: behind it.
     */
    int (*graph_body)(struct dev_queue *q, uint32_t body);
    int (*graph_end)(struct dev_queue *q);
    /* Answers; CUresult of the question, no fault of the client. The client's thread, while its
     * queues may have work. NULL: no call is known, all are CUDA_ERROR_NOT_SUPPORTED. */
    int (*call)(struct dev_client *c, const struct dev_call *call);
    /* The ring has run dry, or has not for a while, or is not read for a while: brings all
     * completion words up to date in their time. NULL where they are anyway. */
    void (*flush)(struct dev_client *c);
    /* Operations accepted and not completed, over all queues of the client, or as many as the
     * executor's limit where the device has enough of it for other reasons; one that keeps much
     * counts for several: the executor stops reading the ring at its limit. The client's thread. */
    uint32_t (*backlog)(struct dev_client *c);
};

/* "null" is built in; others are looked up as gmux-dev-NAME.so in the library directory
 * (environment GMUX_LIBEXECDIR, beside the running program, the installation's libexecdir). NULL
 * with a one-line reason in `why` if there is none. */
const struct dev_ops *dev_find(const char *name, char *why, size_t why_size);

extern const struct dev_ops dev_null_ops;

#endif
