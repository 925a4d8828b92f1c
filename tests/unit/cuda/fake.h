/*
 * A driver for the cuda device's own logic: streams are lists of things to do, which happen at
 * once, or, while fake_hold() is in force for a stream's client, when that ends. Kernels print
 * their first parameter's number; the text goes to standard output when somebody synchronises, as
 * the genuine driver has it.
 */
#ifndef GMUX_TESTS_UNIT_CUDA_FAKE_H
#define GMUX_TESTS_UNIT_CUDA_FAKE_H

#include "device/cuda/state.h"

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
    const struct cuda_gpu *gpu; /* whose context was current */
    bool peers;
};

/* Unless nobody waits (dev->rest_ns is CUDA_NEVER) calls that wait may not be made while something
 * stands still. */

/* A device with 132 multiprocessors in 15 groups of 8 and 12 over, priorities 0 to -5; everything
 * started. */
struct dev *fake_device(void);
/* Several GPUs, all open. Streams and events belong to that which was entered when they were made.
 */
struct dev *fake_devices(uint32_t count);
/* Whose context is current in the calling thread. */
const struct cuda_gpu *fake_entered(void);
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
void fake_client_end(struct dev_client *c);
/* Memory of the client's: of a GPU, or of the host, which is there then. */
void fake_map(struct dev_client *c, uint64_t address, uint64_t size, uint32_t device);
void fake_map_host(struct dev_client *c, uint64_t address, uint64_t size);
/* A thread that gives a client, the argument, 40 multiprocessors. */
void *fake_limit(void *client);
/* Work of these streams stands still, or goes on. */
void fake_hold(CUstream s, bool hold);
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
/* What is in flight may take so long for a safe point to be tried (CUDA_NEVER: nobody waits for
 * one), and what is not known so long to end; nobody stays where that is not so for longer than
 * `held`. */
void fake_patience(struct dev *d, uint64_t rest, uint64_t unknown, uint64_t held);
/* The limit of the stack, as it was set last in the context that is entered. */
size_t fake_stack(void);
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

struct fake_kernel {
    uint32_t number;
    struct cuda_library *library; /* where it is; as long as that has users. NULL: there is one */
    bool prints;                  /* for want of a library */
    bool more;                    /* others wait behind it */
    bool attribute;               /* it has one */
    bool in_clusters;             /* as it was compiled */
    bool unknown;                 /* nobody has had it loaded */
    uint32_t blocks;              /* 0: one */
};

void fake_launch_as(struct dev_queue *q, uint64_t seq, const struct fake_kernel *k);
/* A launch of a kernel that is not known to print, and does. */
void fake_launch(struct dev_queue *q, uint64_t seq, uint32_t number);
/* As above, and other operations wait behind it in the ring. */
void fake_launch_one_of_many(struct dev_queue *q, uint64_t seq, uint32_t number);
/* A launch that prints `number` and a line end. */
void fake_print(struct dev_queue *q, uint64_t seq, uint32_t number);

#endif
