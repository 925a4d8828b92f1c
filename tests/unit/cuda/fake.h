/*
 * A driver for the cuda device's own logic: streams are lists of things to do, which happen at
 * once, or, while fake_hold() is in force for a stream, when that ends. Kernels print their first
 * parameter's number; the text goes to standard output when somebody synchronises, as the genuine
 * driver has it.
 *
 * Tests use the device by its table of functions, and look at session memory, which is the
 * client's, and at what the driver was asked for. What can be seen in neither is a question here,
 * so that no test knows the device's structs.
 */
#ifndef GMUX_TESTS_UNIT_CUDA_FAKE_H
#define GMUX_TESTS_UNIT_CUDA_FAKE_H

#include "device/cuda/driver.h"
#include "device/device.h"

#define FAKE_GROUPS 15u
#define FAKE_SMS    132u

/* Multiprocessors: a bit for each. */
struct fake_sms {
    uint64_t words[3];
};

#ifndef __SANITIZE_THREAD__
#define FAKE_WINDOW 0x400000000000ull
#else /* which leaves a program few addresses */
#define FAKE_WINDOW 0x1000000000ull
#endif
#define FAKE_GPU_BYTES                                                                             \
    (64u << 20) /* a copy's number, in what has happened, is where in such a piece of the window   \
                   it goes */

/* A copy or a fill (`src` 0), in the order they were asked for. */
struct fake_copy {
    CUdeviceptr dst, src;
    size_t size;
    CUstream stream;
    unsigned device; /* whose context was current */
    bool away;       /* that was its fallback context */
    bool peers;
};

/* Unless nobody waits (fake_patience() with FAKE_NEVER) calls that wait may not be made while
 * something stands still. */

/* The device's functions (device/device.h), but for modules: fake_module() makes those. */
extern const struct dev_ops cuda;
/* Operations of a client that the device says to have enough with. */
#define FAKE_DEPTH 768u
/* The half of a client's window where host memory is. */
#define FAKE_HOST (FAKE_WINDOW + (1u << 30))

/* A device with 132 multiprocessors in 15 groups of 8 and 12 over, priorities 0 to -5; everything
 * started. */
struct dev *fake_device(void);
/* Several GPUs, all open. Streams and events belong to that which was entered when they were made.
 */
struct dev *fake_devices(uint32_t count);
unsigned fake_count(const struct dev *d);
/* What the device says of its first GPU. */
const struct dev_info *fake_info(struct dev *d);
/* The GPU whose context is current in the calling thread; *away: that is its fallback context. */
unsigned fake_entered(bool *away);
/* Makes a context of the first GPU current. */
void fake_enter(struct dev *d, bool fallback);
/* The table of the driver's functions, for tests that want one of their own in it. */
struct cuda_driver *fake_driver(struct dev *d);
/* How many copies there have been. */
unsigned fake_copies(const struct fake_copy **out);
/* The status with which the device ends the process when its context has ended, or is given up. */
#define FAKE_DEATH 1
/* The context has ended: the call that finds that out ends the process. */
void fake_lose(void);
/* The last copy of more than one row. */
const CUDA_MEMCPY3D *fake_box(void);
/* So many more are taken; then clients have errors, and these are counted. */
void fake_refuse_copies(unsigned after);
/* All streams are in one channel that holds so much; 0: as much as comes. */
void fake_channel(unsigned size);
unsigned fake_in_channel(void);
/* Clients have errors from now on, and these are counted. */
void fake_expect_faults(void);
unsigned fake_faults(void);
struct dev_client *fake_client(struct dev *d, uint32_t multiprocessors, int priority);
/* One of this user's, without a limit. */
struct dev_client *fake_client_of(struct dev *d, uint32_t uid);
void fake_client_end(struct dev_client *c);
/* It is about to be stopped. */
void fake_leaves(struct dev_client *c);
/* Clients that are gone after client_destroy. */
unsigned fake_gone(void);
struct tp_session *fake_session(struct dev_client *c);
/* It has so many multiprocessors of each GPU from now on. */
void fake_share(struct dev_client *c, uint32_t multiprocessors, int priority);
/* It is in the fallback context of its first GPU. */
bool fake_is_away(const struct dev_client *c);
/* The device has this address range as the client's memory; and of which GPU, or FAKE_NOBODYS, the
 * byte is; and whether the first GPU may write there. */
#define FAKE_NOBODYS (-1)
bool fake_holds(struct dev_client *c, uint64_t address, uint64_t size);
int fake_owner(struct dev_client *c, uint64_t address);
bool fake_may_write(struct dev_client *c, uint64_t address);
/* Some memory of the client's goes. */
void fake_memory_goes(struct dev_client *c);
/* Asks for stacks of so many bytes, in the first GPU's context. CUresult */
int fake_raise_stack(struct dev_client *c, uint64_t bytes);

/* A queue; and one that has a stream already, as with its first operation for the GPU. */
struct dev_queue *fake_queue(struct dev_client *c, uint32_t device, uint32_t number, int priority);
struct dev_queue *fake_queue_with_stream(struct dev_client *c, uint32_t device, uint32_t number,
                                         int priority);
CUstream fake_stream(const struct dev_queue *q); /* NULL: it has none */
struct tp_stream_slot *fake_slot(const struct dev_queue *q);
uint64_t fake_done(const struct dev_queue *q); /* its completion word */
/* It is in its GPU's fallback context. */
bool fake_queue_is_away(const struct dev_queue *q);
/* Everything that the driver has of it is done, and the device has seen that. */
bool fake_is_over(struct dev_queue *q);
/* The watch has seen all completions up to the last mark. */
bool fake_is_seen(struct dev_queue *q);
/* It has something in flight, and the watch has seen that. */
bool fake_is_watched(struct dev_queue *q);
/* The watch has seen all and looks at it no more. */
bool fake_is_resting(struct dev_queue *q);
/* The watch takes the queue's operations to last so long each, from now on. */
void fake_pace(struct dev_queue *q, uint64_t ns);
/* An operation of the queue makes a detour to a context of this GPU (device/cuda/far.h); the stream
 * that it takes there. */
CUstream fake_detour(struct dev_queue *q, unsigned device, bool fallback);
/* Where the GPU has written or will write the last completion of all. */
const void *fake_last_mark(void);
/* Memory of the client's: of a GPU, or of the host, which is there then. */
void fake_map(struct dev_client *c, uint64_t address, uint64_t size, uint32_t device);
void fake_map_host(struct dev_client *c, uint64_t address, uint64_t size);
/* A thread that gives a client, the argument, 40 multiprocessors. */
void *fake_limit(void *client);
/* Work of a stream stands still, or goes on. */
void fake_hold(CUstream s, bool hold);
/* Kernels and copies that a stream has, and that have not happened. */
unsigned fake_waiting_in(CUstream s);
uint64_t
fake_stream_groups(CUstream s); /* bit for each group of 8 that is in it as a whole; 0: all */
struct fake_sms fake_stream_sms(CUstream s); /* the same by multiprocessor; none: all */
int fake_stream_priority(CUstream s);
/* The priority that a launch had by itself since the last call; or its stream's. */
#define FAKE_STREAMS_PRIORITY 1
int fake_launch_priority(void);
unsigned fake_greens(void); /* green contexts that there are */
unsigned fake_graphs(
    void); /* executable ones that there are; what is destroyed while it runs is there until then */
unsigned fake_graph_launches(void);
/* Graphs do not take other kernels than those that they were made with. */
void fake_refuse_graphs(bool refuse);
/* Contexts have room for so many streams, at least 32, and for no graph. */
void fake_capacity(struct dev *d, unsigned size);
/* What the device takes a context to have in use, streams and graphs, and nodes of graphs; in
 * fake_set_capacity(), of how many streams and graphs. */
struct fake_use {
    unsigned used, nodes;
};
struct fake_use fake_use_of(struct dev *d, unsigned device, bool fallback);
void fake_set_capacity(struct dev *d, unsigned device, struct fake_use use, unsigned of);
/* Takes a place for a graph of so many nodes, where the queue is, and gives it back. False: there
 * is none. */
bool fake_has_room_for_graph(struct dev_queue *q, unsigned nodes);
/* Local memory of a thread in the first GPU's context, as some client's kernel needs it; 0: nobody
 * does any more, and it is given back. */
void fake_need_local(struct dev *d, struct dev_client *c, uint32_t bytes);
uint32_t fake_local(struct dev *d);
/* What is in flight may take so long for a safe point to be tried (CUDA_NEVER: nobody waits for
 * one), and what is not known so long to end; nobody stays where that is not so for longer than
 * `held`. */
void fake_patience(struct dev *d, uint64_t rest, uint64_t unknown, uint64_t held);
#define FAKE_NEVER ((uint64_t)INT64_MAX)
/* It may take so long where somebody has waited for twice as long. */
void fake_patience_grows(struct dev *d, uint64_t rest);
/* What is in flight may take so long for clients to come back. */
void fake_patience_to_return(struct dev *d, uint64_t rest);
/* A context in which nothing ends for so long is blocked. */
void fake_blocked_after(struct dev *d, uint64_t ns);
bool fake_is_blocked(const struct dev *d);
/* So much of a queue may be with the driver ahead of time; CUDA's own bound. */
void fake_look_ahead(struct dev *d);
/* The limit of the stack, as it was set last in the context that is entered. */
size_t fake_stack(void);
/* A kernel that needs so much has run: the first GPU's context has this much local memory now. */
void fake_make_local(size_t bytes);

/* --- safe points (device/cuda/admit.h); contexts are bits ---------------------------------------
 */

#define FAKE_FIRST    1u                  /* the first GPU's primary context */
#define FAKE_SECOND   2u                  /* the second's */
#define FAKE_FALLBACK (1u << DEV_DEVICES) /* the first GPU's fallback context */
#define FAKE_ALL      UINT32_MAX

bool fake_is_quiet(struct dev *d, uint32_t contexts);
/* Something runs there, and the watch has seen it. */
void fake_wait_until_busy(struct dev *d, uint32_t contexts);
/* Threads that wait for one. */
unsigned fake_waiting(struct dev *d);
/* Clients hand over nothing there. */
bool fake_is_closed(struct dev *d, uint32_t contexts);
/* Asks for one now, or until `deadline`; `c`: whose call it is, NULL: nobody's. It ends with
 * fake_admit_end(). */
bool fake_admit_try(struct dev *d, struct dev_client *c, uint32_t contexts);
bool fake_admit_wait(struct dev *d, struct dev_client *c, uint32_t contexts, uint64_t deadline);
/* The caller has waited since `begun`. */
bool fake_admit_since(struct dev *d, uint64_t begun, uint64_t deadline);
void fake_admit_end(struct dev *d, uint32_t contexts);
/* The client waits for one of its context, and does not go elsewhere, until the first of its calls
 * would have been made. False: it is about to be stopped, or everybody is. */
bool fake_settle(struct dev_client *c);
/* The client could hand over something now. */
bool fake_may_hand_over(struct dev_client *c);
/* A call of the driver is under way that may wait for what runs on the first GPU. */
void fake_call_waits(struct dev *d, bool waits);
/* The queue's client is gone, and what it has in flight is waited for; or no longer. */
void fake_drains(struct dev_queue *q, bool drains);
/* A moment when nobody has anything in flight, but for `gone` (NULL: there is none), which is gone.
 * True: all stand still from then on. */
bool fake_freeze(struct dev *d, const struct dev_client *gone, uint64_t patience);
/* The device ends its process; in truth it does not. */
void fake_dies(struct dev *d, bool dies);
/* An order to load a module is under way. */
void fake_order(struct dev *d);
/* Clients that have had less of the first GPU have precedence there. */
bool fake_is_crowded(struct dev *d);
/* How far clients may be from the mean of what they have had, and how far those are that go first.
 */
void fake_credit(struct dev *d, uint64_t credit, uint64_t slice);
/* Standard error is heard by the device from now on; the context has died, and the device delivers
 * what it has heard (device/cuda/complaint.h). */
void fake_hear_complaints(void);
void fake_deliver_complaints(struct dev *d);
/* Standard output is heard from now on (device/cuda/output.h). */
void fake_hear_output(struct dev *d);
/* What the output thread has begun is finished. */
void fake_wait_for_output(struct dev *d);
/* A thread that has the device's lock does something that is not to be seen before it is done. */
void fake_unseen(struct dev *d, void (*f)(void *arg), void *arg);
/* GPUs have no fallback context. */
void fake_refuse_fallbacks(bool refuse);
/* What kernels have printed since the last call, if nobody synchronised. */
const char *fake_printed(void);
/* The numbers of kernels and copies that have happened since the last call, in order. */
unsigned fake_happened(const uint32_t **out);
/* Those with this number have happened so often since the last call of either. */
void fake_expect(uint32_t number, unsigned times);
/* Called whenever the driver is asked whether a stream is done. */
void fake_when_asked(void (*f)(CUstream s));
/* Called whenever a kernel is launched. */
void fake_when_launched(void (*f)(void));
/* One kernel or copy of a stream that stands still happens, with what comes before the next one. */
void fake_step(CUstream s);
/* Nothing stands still any more. */
void fake_let_go(void);
/* All clients have ended, and everything has happened: frees what is left of them. */
void fake_forget(void);

/* --- libraries (device/cuda/library.h) ----------------------------------------------------------
 */

struct cuda_gpu *fake_gpu(struct dev *d, unsigned device);
/* Libraries without users may have so many bytes of images; and how many they have. */
void fake_keep(struct dev *d, uint64_t bytes);
uint64_t fake_kept(struct dev *d);
/* The driver has refused a launch of the client's. */
void fake_launch_fails(struct dev_client *c);
/* The pace of a queue of which `done` operations were done at `at`, one such pair after the other.
 */
struct fake_progress {
    uint64_t at, done;
};
uint64_t fake_pace_of(const struct fake_progress *p, unsigned count);

/* --- modules and kernels ---------------------------------------------------------------------- */

/* A module, as a client has it: its kernels may print, or fail assertions. */
struct fake_module *fake_module(bool prints, bool asserts);
/* The client's program unloads it. */
void fake_module_unload(struct dev_client *c, struct fake_module *m);
/* How many use its code: its program, and launches that wait. */
unsigned fake_module_users(const struct fake_module *m);
/* Code of some module of the client's may have gone. */
void fake_modules_change(struct dev_client *c);
/* The client has a module with something that would be lost in another context: values of
 * variables, or an attribute that was set. */
void fake_bind(struct dev_client *c, bool values);

struct fake_kernel {
    uint32_t number;
    struct fake_module *module; /* as long as that has users. NULL: there is one */
    bool prints;                /* for want of a module */
    bool more;                  /* others wait behind it */
    bool attribute;             /* it has one */
    bool in_clusters;           /* as it was compiled */
    bool unknown;               /* nobody has had it loaded */
    bool first;                 /* the client has never launched it */
    uint32_t blocks;            /* 0: one */
};

void fake_launch_as(struct dev_queue *q, uint64_t seq, const struct fake_kernel *k);
/* A launch of a kernel that is not known to print, and does. */
void fake_launch(struct dev_queue *q, uint64_t seq, uint32_t number);
/* Launches while other operations wait behind the launch in the ring. */
void fake_launch_one_of_many(struct dev_queue *q, uint64_t seq, uint32_t number);
/* A launch that prints `number` and a line end. */
void fake_print(struct dev_queue *q, uint64_t seq, uint32_t number);

#endif
