/*
 * gmux-executor: the disposable process that owns the devices and runs what clients ask for. It
 * believes its server, which started it, and nobody else.
 *
 * Threads. The main thread takes the server's engine_* messages; workers carry out those that may
 * take long (order.h). Each client has a thread that reads the client's command ring and hands its
 * records to the device. The device has threads of its own, which report faults. Every client that
 * fails ends in the same way: its session gets a sticky error, its thread ends, and a worker takes
 * its work off the device and releases those who wait for it.
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
    uint64_t gate;  /* the highest gate that the device has and that is not open yet; 0: none */
    uint64_t value; /* the highest such gate that opens when a word has a value; 0: none */
    struct dev_queue *queue;
    uint32_t device; /* where streams of this number are, for good; DEV_DEVICES: not known yet */
    bool retired; /* its last record was `retire`: the queue goes when the device is done with it */
};

struct exe_module {
    struct gm_list link;
    uint32_t id;
    uint32_t device;
    struct dev_module *dev;
    bool recalled; /* in a second executor: its functions were looked up again */
};

struct exe_engine;

struct exe_client {
    /* In engine->clients, which the main thread changes, under engine->clients_lock. */
    struct gm_list link;
    struct exe_engine *engine;
    uint32_t id;
    uint32_t pid;
    struct tp_session session;
    struct dev_client *dev;   /* becomes NULL under engine->clients_lock */
    _Atomic uint32_t devices; /* a bit for each that it uses; orders set all but the first */
    int areas[2];             /* memfds that the device maps from */
    uint64_t host_area;       /* address of the second */
    bool resumed;             /* it has had an earlier executor */

    /* For the main thread only (order.c). */
    struct gm_list orders; /* orders that wait or are being carried out, oldest first */
    unsigned beside;       /* how many of them workers have */
    bool stopping;         /* it has failed, and the order to stop it is among them */

    /* engine->jobs.lock */
    struct exe_order *removal; /* the order that waits for the device to let go of the client */
    bool gone;                 /* the device has let go of it */

    /* Changed by one order at a time, since all orders that change them touch EXE_THREAD. */
    pthread_t thread;
    bool has_thread;
    _Atomic bool started; /* its ring is read, or was */
    bool stopped;         /* its work is off the device */

    _Atomic bool stop;   /* tells the thread to end */
    _Atomic bool failed; /* set once, by the thread that found out */
    /* it has failed or is to be stopped: the device waits for nothing of it */
    _Atomic bool leaving;

    /* For the client's thread only. */
    struct tp_ring ring;
    struct exe_stream *chunks[TP_STREAMS / EXE_STREAMS_PER_CHUNK];
    uint32_t gates;      /* streams with gate != 0 */
    uint32_t values;     /* streams with value != 0 */
    uint64_t look_since; /* when the last of these gates began, or a value was last seen */
    bool asked_for;      /* the device has been asked to read the words */
    uint32_t retired;    /* streams with `retired` set */
    bool any_taken;
    uint32_t spin_misses;
    uint64_t calls; /* how many calls have been answered */
    uint8_t *reply; /* where an answer is made; allocated with the first call */

    /* The device is answering a question, which may take long, as a driver that compiles does. So
     * nobody waits for that with a lock held; but no module is unloaded meanwhile. The client's
     * thread sets it, under modules_lock. */
    _Atomic bool asking;
    /* an order waits for that, so the main thread is to be woken then; modules_lock */
    bool awaited;

    /* Orders change the modules, the client's thread launches from them. */
    pthread_mutex_t modules_lock;
    struct gm_list modules[EXE_MODULE_BUCKETS];
};

/* Orders on their way to workers and back. */
struct exe_jobs {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct gm_list to_do, done;
    unsigned count; /* orders in to_do */
    unsigned idle;  /* workers without work */
};

struct exe_engine {
    const struct dev_ops *ops;
    struct dev *dev;
    uint32_t devices;
    const struct dev_info *info; /* the first device's; much of it holds for all */
    int server;                  /* socket; any thread may send a packet */
    int failures; /* eventfd, wakes the main thread: a client has failed, an order is done, or an
                     order can be tried again */
    struct exe_jobs jobs;
    unsigned descriptors; /* of orders that wait or are being carried out; main thread */
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
/* dev_events.client_fault. Any thread. */
void exe_engine_device_fault(void *arg, struct dev_client *dev, int result, uint64_t address,
                             const char *text);

/* --- confine.c -------------------------------------------------------------------------------- */

/* The user that the executor of a contained device becomes; 0: it stays the one that it is. */
uint32_t exe_confine_user(void);
/* Gives up for ever, for all threads, what the process does not need once the device is open. 0 or
 * -errno; `what` (a word or two) says what failed. */
GM_MUST_CHECK int exe_confine(const struct dev_ops *ops, uint32_t user, const char **what);

/* --- order.c ---------------------------------------------------------------------------------- */

void exe_jobs_init(struct exe_jobs *j);
/* dev_events.client_gone. Any thread. */
void exe_order_client_gone(void *arg, struct tp_session *session);

/* --- client.c: a client and its thread; an order's thread unless said otherwise --------------- */

/* Decodes how many multiprocessors of each device a client has. */
void exe_multiprocessors(const struct wire_bytes *encoded, uint32_t out[DEV_DEVICES]);
/* Makes a client, which exe_client_open() then opens. Main thread. CUresult. */
int exe_client_create(struct exe_engine *e, const struct wire_engine_client_add *m,
                      struct exe_client **out);
/* Maps the session and makes the client on the device. Takes those of the message's descriptors
 * that it keeps. If it fails, the client still exists, but without session and device. CUresult. */
int exe_client_open(struct exe_client *c, const struct wire_engine_client_add *m, int *fds);
/* Starts reading the ring. CUresult. */
int exe_client_start(struct exe_client *c);
/* Ends the client's thread, takes its work off the device, and releases those who wait for it.
 * Waits for as long as the device is answering the client; if the thread does not end for another
 * reason, the executor ends. */
void exe_client_stop(struct exe_client *c);
/* Stops the client and has the device destroy it; after that only exe_client_free() is allowed.
 * False: and that only after exe_order_client_gone(). */
bool exe_client_end(struct exe_client *c);
/* Frees one that has ended. Main thread. */
void exe_client_free(struct exe_client *c);
/* Both, on a device that lets go at once. Accepts NULL. Main thread. */
void exe_client_destroy(struct exe_client *c);
/* A thread with a stack on which a driver can compile. 0 or -errno. */
GM_MUST_CHECK int exe_thread_start(pthread_t *thread, void *(*body)(void *), void *arg);

/* The client uses this device from now on. CUresult. */
int exe_client_device(struct exe_client *c, uint32_t device);
/* The client uses this device. Any thread. */
static inline bool exe_client_uses(const struct exe_client *c, uint32_t device)
{
    return device < DEV_DEVICES &&
           (atomic_load_explicit(&c->devices, memory_order_acquire) >> device & 1);
}

/* The module with this number, or NULL. modules_lock is held. */
static inline struct exe_module *exe_client_module(struct exe_client *c, uint32_t id)
{
    gm_list_for_each (m, &c->modules[id % EXE_MODULE_BUCKETS], struct exe_module, link)
        if (m->id == id)
            return m;
    return NULL;
}

/* --- answer.c; any thread --------------------------------------------------------------------- */

/* Sets the client's sticky error, and tells the server and the main thread. Only the first call
 * counts.
 */
void exe_client_fail(struct exe_client *c, int result, uint64_t address, const char *text);
/* Wakes the main thread. */
void exe_engine_wake(struct exe_engine *e);

/* --- record.c: from a record to the device; the client's thread only -------------------------- */

/* Checks a record and hands it to the device; `more`: other records wait behind it. 0, or a
 * CUresult with a reason in `why`: the client fails. */
int exe_record_take(struct exe_client *c, const struct wire_record *r, bool more, const char **why);
/* Has the device look at gates that the client may have opened, and at words that streams wait for.
 */
void exe_record_open_gates(struct exe_client *c);
/* Destroys queues of retired streams, while the device has no work of the client. */
void exe_record_reap(struct exe_client *c);

#endif
