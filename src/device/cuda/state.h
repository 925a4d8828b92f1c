/*
 * The cuda device: what its files share.
 *
 * All clients share one primary context of each GPU, and sometimes a fallback context (fallback.h).
 * The first GPU's primary context is there from the start; another GPU's is made when the first
 * client uses that GPU. A client's device area is one reservation of addresses for all GPUs, into
 * which the server's memory is mapped. Its host area is the memfd, mapped at the same addresses and
 * registered with the driver. A queue is a stream of the driver.
 *
 * The GPU itself writes completion words, at marks. A mark is a write behind everything that was
 * submitted so far. It is made when the client's ring has run dry, and after every so many
 * operations. The GPU cannot wake a thread that sleeps, so one thread (watch.c) looks at the words
 * of queues with work in flight, wakes programs, and finds out about faults.
 *
 * A fault of the hardware ends the context for good, and the process with it. Clients with work in
 * flight get the error, and the server starts another executor for the others.
 *
 * Locks. Before all others come a client's moves_lock and dev.open_lock. dev.lock is for the lists
 * of clients and active queues, for how often groups of multiprocessors are used, and for who
 * prints; libraries.lock is for libraries. Of a client: memory_lock, then ranges_lock or
 * modules_lock; places_lock, then dev.lock. Everything else of a client belongs to its thread or to
 * the executor's orders; device.h says which orders come one at a time. Nobody reports a fault with
 * a lock held.
 *
 * Files, from the top down. What has to go up goes by way of hooks.h.
 *
 *   device                  the table of functions, and the start
 *   watch                   the thread that sees what is done, and wakes programs
 *   client, leave           clients come and go
 *   hooks                   who hears of what happens below
 *   module, memory          what clients load and map
 *   run                     runs of operations that become graphs of the driver
 *   call                    who answers a client's question
 *   limit, tensormap        answers that belong to nothing else
 *   intake                  operations come in: they go to the driver or are held back
 *   wait_value              words that streams wait for
 *   lookup                  what is in a module
 *   fallback                clients go to the fallback context and come back
 *   queue                   queues, and what they hold back
 *   graph                   graphs with conditional nodes
 *   chain                   launches that go to the driver several at a time
 *   submit                  one operation, as a call or two of the driver
 *   point, mark             where the GPU reports how far it is
 *   texture, array          arrays, and what kernels read them by
 *   far                     memory of another GPU
 *   stream, part, place     streams, and which multiprocessors they have
 *   variables, library, kernel   code, shared among clients
 *   link, image             code, as it came
 *   settle                  waiting for a safe point
 *   open                    contexts
 *   capacity, local         what a context has room for
 *   precedence              fair parts of the GPU's time
 *   output                  what kernels print
 *   inflight                how much of a client is in flight
 *   range                   what is mapped where
 *   admit                   safe points
 *   enter, complaint        the current context, and its end
 *   state, driver           the device, and NVIDIA's functions
 */
#ifndef GMUX_DEVICE_CUDA_STATE_H
#define GMUX_DEVICE_CUDA_STATE_H

#include <pthread.h>

#include "device/cuda/array.h"
#include "device/cuda/capacity.h"
#include "device/cuda/driver.h"
#include "device/cuda/library.h"
#include "device/cuda/output.h"
#include "device/cuda/place.h"
#include "device/cuda/range.h"
#include "device/cuda/run.h"
#include "device/device.h"

/* The safe point of a context (admit.h); dev->lock. */
struct cuda_safe_point {
    uint32_t calls; /* calls that want the context idle; 0: there is no safe point */
    uint64_t since; /* when clients were told to hand over nothing */
    uint64_t idle;  /* when the context was found idle; 0: not yet */
    uint64_t over;  /* when the last safe point ended */
    uint64_t took;  /* how long that one lasted */
};

#define CUDA_GPU_BIT(gpu) (1u << ((gpu)->index + (gpu)->is_fallback * DEV_DEVICES))

/* A context of a GPU: the primary one, or the fallback context (fallback.h). It is opened before a
 * client's thread is told of it. */
struct cuda_gpu {
    struct dev *dev;
    uint32_t index; /* in dev->gpus, or dev->fallbacks */
    bool is_fallback;
    bool open;        /* only of a fallback context, like the next; open_lock */
    uint64_t refused; /* when the driver last refused to make it; 0: never */
    struct dev_info info;
    CUdevice device;
    CUcontext context; /* NULL: not open */
    CUfunction stamp;  /* writes the time and a sequence number */
    struct cuda_groups groups;
    int priority_least;         /* the device's lowest priority */
    uint32_t priorities_low;    /* how many are for clients below normal: the lowest */
    uint32_t priorities_normal; /* how many are for the others */
    CUstream print_stream;      /* output.h; nothing is ever put into it */
    struct cuda_capacity capacity;
    struct cuda_safe_point point;
    _Atomic uint32_t waits; /* admit.h: calls that are under way and may wait for what runs;
                               dev->lock to change */
    _Atomic bool welcome;   /* fallback.h: this is a safe point for clients that come back */
    bool calls_back;        /* fallback.h, dev->lock: there is a thread that calls them back */
    uint64_t ended_at;      /* watch.c, dev->lock: when something in flight last ended or began */
    uint64_t crowded_at;  /* precedence.h, dev->lock: when clients last needed more than there is */
    int64_t mean;         /* precedence.h, dev->lock: of what its busy clients have had */
    _Atomic int64_t fair; /* precedence.h: clients that have had less go first; 0: nobody
                             does */
    pthread_mutex_t stacks_lock; /* held while the limit of the stack is changed, which may wait for
                                    the GPU */
    pthread_mutex_t graphs_lock;
    CUevent graphs; /* graph.h: behind the last graph with conditional nodes; NULL: there was none;
                       graphs_lock */
    _Atomic size_t stack;     /* local.h: of each thread; grows when a client wants more */
    _Atomic uint32_t local;   /* local.h: local memory that each thread has */
    _Atomic uint32_t resized; /* local.h: how often the size of local memory was set */
    _Atomic bool heap;        /* the heap of device malloc has been made */
};

struct dev {
    struct cuda_driver api;
    struct cuda_gpu gpus[DEV_DEVICES];
    struct cuda_gpu fallbacks[DEV_DEVICES]; /* open_lock, until they are open */
    uint32_t count;
    struct dev_events events;
    _Atomic bool dead;
    _Atomic uint32_t frozen; /* admit.h: threads that want all clients to hand over nothing */
    _Atomic uint32_t closed; /* contexts with a safe point, a bit each, to which clients hand over
                                nothing; dev->lock to change */

    _Atomic uint32_t
        blocked; /* fallback.h: contexts in which nothing ends, a bit each; the watch */

    pthread_mutex_t lock;
    pthread_cond_t work;
    struct gm_list active;  /* queues with marks that the watch has not seen arrive */
    struct gm_list waiting; /* threads that wait for a safe point (admit.c) */
    pthread_cond_t points;  /* a safe point has begun or ended */
    uint32_t busy;          /* watch.c: contexts with something in flight when it last looked */
    bool resting;           /* the watch makes a longer pause */
    bool newcomer;          /* there is a queue that the watch has not seen */
    struct gm_list clients;
    struct gm_list gone; /* clients of which only the rest is to be freed (leave.c) */
    pthread_cond_t more_gone;

    struct cuda_output output;
    struct cuda_libraries libraries;

    _Atomic uint32_t orders;   /* orders under way that make a client or load a module */
    pthread_mutex_t open_lock; /* while a GPU is being opened */
    /* Bounds, constant; CUDA_REST_NS and so on say what they mean. */
    uint64_t rest_ns, rest_most_ns, unknown_ns, returns_ns; /* admit.h */
    uint64_t held_ns, stays_ns;                             /* settle.h */
    uint64_t away_ns, blocked_ns;                           /* fallback.h */
    uint64_t ahead_ns;                                      /* lookahead.h */
    uint64_t credit_ns, slice_ns;                           /* precedence.h */
};

/* For each context `g` whose bit is in `of`, open or not: a primary context that is not open has no
 * `context`, a fallback context is not `open`. */
#define cuda_for_each_context(g, d, of)                                                            \
    for (uint32_t i_ = 0; i_ < 2 * (d)->count; i_++)                                               \
        for (struct cuda_gpu *g = i_ < (d)->count ? &(d)->gpus[i_]                                 \
                                                  : &(d)->fallbacks[i_ - (d)->count];              \
             g && (CUDA_GPU_BIT(g) & (of)); g = NULL)

/* What a client has on a GPU that it uses. */
struct cuda_seat {
    CUdeviceptr streams_at; /* where the GPU sees session->streams and session->events; 0: the
                               client does not use it */
    CUdeviceptr events_at;
    _Atomic(struct cuda_place *) place; /* for streams from now on; an order sets it */
    _Atomic int64_t had;                /* precedence.h: GPU time in ns; the watch sets it */
    _Atomic(struct cuda_gpu *) home;    /* the context of `place`, for threads in whose time the
                                           place may be freed */
};

struct dev_client {
    struct gm_list link;
    struct gm_list gone_link; /* dev->gone */
    struct dev *dev;
    struct tp_session *session;
    uint32_t uid;
    uint64_t base, half;         /* device area, then host area */
    int host_fd;                 /* not owned */
    const _Atomic bool *leaving; /* it is about to be stopped; NULL: nobody will say so */
    bool reserved, host_reserved, registered;
    struct cuda_seat seats[DEV_DEVICES];
    uint32_t peers[DEV_DEVICES]; /* for each GPU's memory: bits of the others that may touch it;
                                    orders about memory */
    uint32_t multiprocessors[DEV_DEVICES];
    _Atomic uint32_t local[DEV_DEVICES]; /* local.h: the most that a thread of its kernels needs; 0:
                                            what is always there */
    int priority;
    uint64_t came;              /* when it was made */
    _Atomic bool gone;          /* its work is being taken off the device */
    pthread_mutex_t moves_lock; /* while its places change, and so where its streams are */
    _Atomic uint32_t away;      /* GPUs in whose fallback context it is, a bit each */
    pthread_mutex_t
        memory_lock; /* while a copy is handed to the driver, and while something is unmapped */
    pthread_mutex_t ranges_lock;
    struct cuda_range *ranges; /* range.h, ranges_lock */
    uint32_t ranges_count;
    struct cuda_gpu *asked; /* which GPU the call under way is about; the client's thread */
    pthread_mutex_t modules_lock;
    struct gm_list modules; /* modules_lock */
    pthread_mutex_t places_lock;
    struct gm_list places; /* places_lock; of all GPUs */
    uint64_t places_made;
    uint32_t moving; /* queues that have left a stream behind */
    struct cuda_runs runs;
    struct gm_list chained; /* queues with launches that wait to be handed over; chain.h */
    uint32_t chain_graphs;
    struct gm_list passing;  /* graphs that still run, though they were destroyed (capacity.c) */
    struct gm_list queues;   /* the client's thread changes it, with dev->lock */
    struct gm_list dirty;    /* queues with operations behind their last mark */
    struct gm_list holding;  /* queues with operations that are held back */
    struct gm_list owing;    /* inflight.h: queues with calls that are not known to be done */
    uint32_t owing_count;    /* queues in that list */
    uint32_t calls;          /* calls of those queues that are not known to be done */
    _Atomic bool full;       /* it has as many calls as it may have; the watch reads this */
    uint64_t driver_asked;   /* when the driver was last asked which calls are done */
    _Atomic uint32_t uses;   /* admit.h: contexts that it may hand something over to, a CUDA_GPU_BIT
                                each */
    _Atomic bool handing;    /* its thread may be handing something over */
    bool was_handing;        /* settle.h: `handing` as it was before its thread began to wait */
    bool words_wanted;       /* `words` has been asked for, with or without success */
    _Atomic uint64_t *words; /* private completion words, which the GPU writes */
    CUdeviceptr words_at[DEV_DEVICES]; /* where each GPU sees `words`; 0: not asked yet */
    pthread_mutex_t arrivals_lock;
    uint64_t arrivals; /* arrivals_lock */
    struct cuda_arrays arrays;
    struct cuda_objects objects;
    struct cuda_link *_Atomic linking; /* link.c; the client's thread */
    _Atomic uint64_t submitted;        /* operations accepted */
    _Atomic uint64_t completed;        /* of those, as far as was seen */

    struct cuda_prints prints;
    _Atomic bool asserts; /* complaint.h: has launched something that has assertions */
};

/* Operations that a client may have in flight, by its completion words: enough to keep a GPU busy.
 * How much the driver has of a client that does not tell the truth there is inflight.h. */
#define CUDA_DEPTH 768u

struct dev_queue {
    struct dev_client *client;
    struct cuda_gpu *gpu;
    struct gm_list link;   /* client->queues */
    struct gm_list dirty;  /* client->dirty, or alone */
    struct gm_list active; /* dev->active, or alone; dev->lock */
    struct tp_stream_slot *slot;
    uint32_t number;
    int priority;    /* as the client has it */
    CUstream stream; /* NULL until something is for the GPU to do; so is `place` */
    struct cuda_place *place;
    CUstream before; /* the one that was left for this one, until its work is done; NULL: none */
    struct cuda_place *place_before;
    uint32_t wanted; /* number of the part of its client's place that it belongs in; 0: all of it */
    /* The last search for a part: which part, in which place, and what was found. NULL: nothing, so
     * the queue is in the whole place. */
    uint32_t part_wanted;
    uint64_t part_of;
    struct cuda_place *part;
    uint64_t refused;            /* number of the place where there was no stream to be had */
    struct cuda_detour *detours; /* far.c: by context; NULL: none yet */
    struct cuda_points *points;  /* point.h; NULL: none yet */
    struct gm_list held;         /* operations behind a gate, or behind something held elsewhere */
    struct gm_list holding;      /* client->holding, or alone */
    struct gm_list chained;      /* client->chained, or alone */
    struct gm_list owing;        /* client->owing, or alone */
    struct cuda_chain *chain;    /* made when first needed */
    uint64_t accepted;
    uint64_t gate;                    /* number of the gate at which it stands; 0: at none */
    struct wire_rec_wait_value value; /* wait_value.c: the gate opens when a word has this value;
                                         width 0: when the client opens it */
    bool looking;                     /* a copy of that word to slot->looked is under way */
    uint64_t last;                    /* operation that the driver was given */
    uint64_t marked;                  /* operation with a mark behind it */
    uint64_t plain;                   /* precedence.h: its newest kernel without precedence */
    /* What the watch knows about it while it is active; dev->lock. */
    uint64_t seen;              /* operations completed, when it last looked */
    uint64_t since;             /* when `seen` last changed; 0: it has not looked yet */
    uint64_t pace;              /* admit.h: mean time of an operation; 0: not known */
    _Atomic uint32_t ahead_max; /* lookahead.h: operations that the driver may have; UINT32_MAX:
                                   CUDA_DEPTH is the only bound */
    _Atomic uint64_t unknown;   /* lookahead.h: the newest operation whose time is not known */
    _Atomic bool waits_ahead;   /* the client is to be told when there is room for another one */
    bool drains; /* its client is gone, but its work may still run, whatever its word says */
    _Atomic uint32_t needs; /* precedence.h: what its last kernel needs */
    _Atomic bool touched;   /* the driver may have work of it: it has not said that all is done */
    /* Calls of the driver, counted from the queue's beginning (inflight.h). */
    uint64_t calls;        /* all, with those that the row and the next mark will make */
    uint64_t calls_marked; /* before the last mark */
    uint64_t asked;        /* before the last proof that the GPU was told to write */
    uint64_t proven;       /* before the last proof that the GPU has written */
    struct cuda_learning learning;
    struct cuda_recording recording;

    struct cuda_queue_prints prints;
};

/* The client's context of that GPU: the primary one or the fallback. Any thread. */
static inline struct cuda_gpu *cuda_home(const struct dev_client *c, uint32_t index)
{
    struct cuda_gpu *g = atomic_load_explicit(&c->seats[index].home, memory_order_acquire);
    return g ? g : &c->dev->gpus[index];
}

/* Everything in the stream is done. The driver says so; a completion word could be forged by the
 * client. */
static inline bool cuda_stream_is_done(const struct dev_queue *q, CUstream stream)
{
    return q->client->dev->api.cuStreamQuery(stream) != CUDA_ERROR_NOT_READY;
}

/* Makes the GPU's context current in the calling thread. */
void cuda_enter(struct cuda_gpu *g);
/* The GPU whose context is current in the calling thread; NULL: none of them. */
struct cuda_gpu *cuda_entered(void);
/* Opens the GPU, if it is not open. Any thread, no lock held. */
CUresult cuda_gpu_open(struct cuda_gpu *g);
/* The GPU's fallback context, which is made if there is none yet. NULL: the driver refuses to make
 * one. Any thread, no lock held. */
struct cuda_gpu *cuda_fallback_open(struct cuda_gpu *first);

/* The outcome of a driver call for a client: false if it failed. A wrong argument is the client's
 * fault; an error that is the context's end ends the process. Any thread, no lock held. */
bool cuda_check(struct dev_client *c, CUresult r, const char *what);
/* The context has died of `r`: reports the clients that had work in flight and ends the process. */
GM_NORETURN void cuda_die(struct dev *d, CUresult r);
/* The client has made a mistake, at this address, and gets the error. Any thread, no lock held. */
void cuda_wrong(struct dev_client *c, CUresult r, uint64_t address, const char *what);
/* The driver has refused something of a client: ends the process if the context has ended. The
 * answer itself does not say so. Compilers and loaders give errors of ended contexts for bytes that
 * a client sent, and what an ended context refuses may be called an invalid value. */
void cuda_die_if_lost(struct cuda_gpu *g);
/* True for results after which the context is of no use any more. */
bool cuda_is_fatal(CUresult r);

/* Initialises lists, locks and bounds; needs no driver. */
void cuda_dev_init(struct dev *d, const struct dev_events *events);

/* Starts a thread of the device that never ends. 0 or -errno. */
GM_MUST_CHECK int cuda_thread_start(void *arg, void *(*body)(void *));

/* Starts the thread that watches. 0 or -errno. */
GM_MUST_CHECK int cuda_watch_start(struct dev *d);

/* How many of the client's operations are not done, by its completion words. Any thread. */
static inline uint32_t cuda_unfinished(const struct dev_client *c)
{
    uint64_t completed = atomic_load_explicit(&c->completed, memory_order_relaxed);
    uint64_t all = atomic_load_explicit(&c->submitted, memory_order_relaxed);
    return all > completed ? (uint32_t)GM_MIN(all - completed, (uint64_t)UINT32_MAX) : 0;
}

#endif
