/*
 * gmux-executor: the disposable process that owns the devices and runs what the clients ask of it.
 * It believes its server, which started it, and nobody else.
 *
 * Threads. The main thread takes the server's engine_* messages; those that may take long are
 * carried out by workers beside it (order.h). Each client has a thread that reads that client's
 * command ring and hands its records to the device. The device has threads of its own, which report
 * faults. A client that fails, for whatever reason, ends the same way: sticky error in its session,
 * its thread ends, a worker takes its work off the device and lets its waiters go.
 */
#ifndef GMUX_EXECUTOR_EXECUTOR_H
#define GMUX_EXECUTOR_EXECUTOR_H

#include <pthread.h>

#include "base/list.h"
#include "device/device.h"
#include "transport/sock.h"

#define EXE_STREAMS_PER_CHUNK 64u
#define EXE_MODULE_BUCKETS    32u

/* A stream as its client's thread sees it. */
struct exe_stream {
    uint64_t last;  /* sequence number of the last record taken */
    uint64_t gate;  /* highest gate handed to the device and not seen open; 0: none */
    uint64_t value; /* the same of those that open when a word has a value */
    struct dev_queue *queue;
    uint32_t device; /* of the number, for good; DEV_DEVICES: it had no queue yet */
    bool retired; /* its last record was `retire`: the queue goes when the device is done with it */
};

struct exe_module {
    struct gm_list link;
    uint32_t id;
    uint32_t device;
    struct dev_module *dev;
    bool recalled; /* under a second executor: its functions were found again */
};

struct exe_engine;

struct exe_client {
    struct gm_list
        link; /* engine->clients; the main thread changes it, under engine->clients_lock */
    struct exe_engine *engine;
    uint32_t id;
    uint32_t pid;
    struct tp_session session;
    struct dev_client *dev;   /* goes under engine->clients_lock */
    _Atomic uint32_t devices; /* bit for each that it uses; an order sets them, but for the first */
    int areas[2];             /* memfds that the device maps from */
    uint64_t host_area;       /* address of the second */
    bool resumed;             /* lived under an earlier executor */

    /* The main thread only: order.c. */
    struct gm_list orders; /* that wait or are worked at, oldest first */
    unsigned beside;       /* of those, with workers */
    bool stopping;         /* it has failed, and the order is given */

    /* engine->jobs.lock: the order that waits until the device has let go of the client, and that
     * it has. */
    struct exe_order *removal;
    bool gone;

    /* One order at a time: those that have to do with it touch the same. */
    pthread_t thread;
    bool has_thread;
    _Atomic bool started; /* its ring is read, or was */
    bool stopped;         /* its work is off the device */

    _Atomic bool stop;   /* order to the thread */
    _Atomic bool failed; /* set once, by the thread that found out */
    _Atomic bool
        leaving; /* it has failed, or is to be stopped: what waits for it on the device need not */

    /* The client's thread only. */
    struct tp_ring ring;
    struct exe_stream *chunks[TP_STREAMS / EXE_STREAMS_PER_CHUNK];
    uint32_t gates;      /* streams with gate != 0 */
    uint32_t values;     /* streams with value != 0 */
    uint64_t look_since; /* when the last of them began, or one was seen to have its value */
    bool asked_for;      /* the device reads them */
    uint32_t retired;    /* streams with `retired` set */
    bool any_taken;
    uint32_t spin_misses;
    uint64_t calls; /* answered */
    uint8_t *reply; /* where an answer is made; allocated with the first call */

    /* A question is with the device, which may take long, as a driver that compiles does: nobody
     * waits for that with a lock held, and no module goes meanwhile. The client's thread sets it,
     * under modules_lock. */
    _Atomic bool asking;
    bool awaited; /* modules_lock: an order had to wait for that once, and the main thread wants to
                     hear when it is over */

    /* Orders change it, the client's thread launches from it. */
    pthread_mutex_t modules_lock;
    struct gm_list modules[EXE_MODULE_BUCKETS];
};

/* Orders on their way to workers and back. */
struct exe_jobs {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct gm_list to_do, done;
    unsigned count; /* to do */
    unsigned idle;  /* workers */
};

struct exe_engine {
    const struct dev_ops *ops;
    struct dev *dev;
    uint32_t devices;
    const struct dev_info *info; /* of the first; what is the same for all is read here */
    int server;                  /* socket; sends are whole packets, from any thread */
    int failures; /* eventfd: a client failed, or an order is done, or what it waits for is over:
                     main thread please look */
    struct exe_jobs jobs;
    unsigned descriptors; /* main thread: of orders that wait or are worked at */
    unsigned descriptors_max;
    pthread_mutex_t clients_lock;
    struct gm_list clients;
    unsigned spin_limit; /* threads that may spin at the same time */
    _Atomic unsigned spinning;
};

/* --- engine.c: the server's messages ---------------------------------------------------------- */

/* Main thread: tells the server that the device is ready, then serves until the socket closes. Exit
 * status. */
int exe_engine_run(struct exe_engine *e);
/* Any thread: dev_events.client_fault. */
void exe_engine_device_fault(void *arg, struct dev_client *dev, int result, uint64_t address,
                             const char *text);

/* --- confine.c -------------------------------------------------------------------------------- */

/* Whom the executor of a contained device becomes; 0: it stays who it is, having no more than its
 * user. */
uint32_t exe_confine_user(void);
/* Once the device is open: gives up what it does not need, for ever and for all threads. 0 or
 * -errno; `what` (a word or two) says what failed. */
GM_MUST_CHECK int exe_confine(const struct dev_ops *ops, uint32_t user, const char **what);

/* --- order.c ---------------------------------------------------------------------------------- */

void exe_jobs_init(struct exe_jobs *j);
/* Any thread: dev_events.client_gone. */
void exe_order_client_gone(void *arg, struct tp_session *session);

/* --- client.c: a client and its thread; an order's thread unless said otherwise --------------- */

/* The multiprocessors of each device, as the server says it. */
void exe_multiprocessors(const struct wire_bytes *encoded, uint32_t out[DEV_DEVICES]);
/* A client of that number, to be opened. Main thread. CUresult. */
int exe_client_create(struct exe_engine *e, const struct wire_engine_client_add *m,
                      struct exe_client **out);
/* Maps the session and makes the client on the device, with the message's descriptors, of which it
 * takes those that it keeps. If that fails there is nothing of it but the number. CUresult. */
int exe_client_open(struct exe_client *c, const struct wire_engine_client_add *m, int *fds);
/* Starts reading the ring. CUresult. */
int exe_client_start(struct exe_client *c);
/* Ends the thread and takes the client's work off the device; its waiters return. It waits for as
 * long as the device is answering the client; a thread that does not end otherwise ends the
 * executor. */
void exe_client_stop(struct exe_client *c);
/* Stops it, and the device forgets it; then nothing but exe_client_free() may be done with it.
 * False: not before the device says so. */
bool exe_client_end(struct exe_client *c);
/* Frees one that has ended. Main thread. */
void exe_client_free(struct exe_client *c);
/* Both, on a device that lets go at once. Main thread. NULL is fine. */
void exe_client_destroy(struct exe_client *c);
/* A thread with a stack on which a driver can compile. 0 or -errno. */
GM_MUST_CHECK int exe_thread_start(pthread_t *thread, void *(*body)(void *), void *arg);

/* The device is one that the client uses from now on. CUresult. */
int exe_client_device(struct exe_client *c, uint32_t device);
/* Whether it is. Any thread. */
static inline bool exe_client_uses(const struct exe_client *c, uint32_t device)
{
    return device < DEV_DEVICES &&
           (atomic_load_explicit(&c->devices, memory_order_acquire) >> device & 1);
}

/* Under modules_lock: the module with this number or NULL. */
static inline struct exe_module *exe_client_module(struct exe_client *c, uint32_t id)
{
    gm_list_for_each (m, &c->modules[id % EXE_MODULE_BUCKETS], struct exe_module, link)
        if (m->id == id)
            return m;
    return NULL;
}

/* --- answer.c; any thread --------------------------------------------------------------------- */

/* Sets the client's sticky error and tells server and main thread. The first call counts. */
void exe_client_fail(struct exe_client *c, int result, uint64_t address, const char *text);
/* Has the main thread look at what waits. */
void exe_engine_wake(struct exe_engine *e);

/* --- record.c: from a record to the device; the client's thread only -------------------------- */

/* Checks and hands over one record; `more` is behind it. 0, or a CUresult: the client failed, with
 * a reason in `why`. */
int exe_record_take(struct exe_client *c, const struct wire_record *r, bool more, const char **why);
/* Has the device look at gates that the client may have opened, and at words that streams wait for.
 */
void exe_record_open_gates(struct exe_client *c);
/* Gives up queues of retired streams; only while the device holds no work of the client. */
void exe_record_reap(struct exe_client *c);

#endif
