/*
 * What kernels print, and whose it is.
 *
 * The driver keeps the texts of all kernels of the context in one buffer, and prints them to this
 * process's standard output when one of several calls is made. So standard output is a pipe to
 * ourselves. A text does not say which client it is from. But only images that call vprintf can
 * have printed it, and so:
 *
 * - Of the clients whose launches may print, only one at a time, the author, has such launches with
 *   the driver. The others' launches are held back until the author has none, or for TURN_NS if it
 *   always has some. What comes out of the pipe meanwhile is the author's.
 * - Once something may have been printed, the GPU no longer writes the author's completion words
 *   itself. It writes a private word instead. The output thread waits for the text, and only then
 *   publishes the completion.
 * - A client that has had QUIET completions without a text takes no more turns: images that might
 *   print but never do are common, and nobody is to wait for those. If such a client prints after
 *   all while others like it run, nobody knows which of them it was. The text goes to the log, and
 *   all of them take turns again. (If it prints during an author's turn, the author gets the text.)
 * - An author whose kernel does not end loses its turn after TURN_MAX_NS. Until that kernel has
 *   ended, nobody knows whose a text is, and texts go to the log.
 */
#ifndef GMUX_DEVICE_CUDA_OUTPUT_H
#define GMUX_DEVICE_CUDA_OUTPUT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "device/cuda/driver.h"
#include "transport/output.h"

struct cuda_gpu;
struct dev;
struct dev_client;
struct dev_queue;

/* What a device has. Protected by dev->lock unless a comment says otherwise, like the next two. */
struct cuda_output {
    int pipe; /* the end of standard output's pipe to read from; -1: kernels' texts are lost */
    pthread_mutex_t pipe_lock; /* held to read from the pipe; taken before dev->lock */
    struct dev_client *author, *author_before;
    uint64_t author_since;
    struct gm_list printed;    /* queues whose completion waits for its text */
    struct dev_queue *showing; /* the one that the output thread works on */
    pthread_cond_t work, shown;
};

/* What a client has. */
struct cuda_prints {
    struct tp_output output; /* has a lock of its own */
    bool may;                /* it may print; the client's thread reads this without the lock */
    bool waits;              /* it waits for its turn to print */
    bool hog;                /* its turn was ended because it took too long */
    uint32_t queues;         /* how many of its queues have a prints.seq */
    uint32_t silent;         /* completions since the last text */
};

/* What a queue has. */
struct cuda_queue_prints {
    struct gm_list link; /* output.printed, or alone */
    uint64_t seq;        /* the last launch that may print, until it was shown; 0: none */
    uint64_t marked;     /* the last operation with a mark in the private word */
    uint64_t shown;      /* the last operation of these that has been published */
};

/* Redirects standard output and starts the threads. 0 or -errno; without it nothing prints. */
GM_MUST_CHECK int cuda_output_open(struct dev *d);

/* The client has stopped: nothing of it runs, and its queues have been dropped here. An order's
 * thread.
 */
void cuda_output_stop(struct dev_client *c);
/* Undoes cuda_client_join(). An order's thread. */
void cuda_output_leave(struct dev_client *c);

/* --- the client's thread ---------------------------------------------------------------------- */

/* An image that may print is about to be launched: prepares for that. False: its text will be lost.
 */
bool cuda_output_watched(struct dev_queue *q);
/* True: the client may submit such a launch now. False: its thread is woken when it may ask again.
 */
bool cuda_output_take_turn(struct dev_client *c);
/* Such a launch is about to be submitted. */
void cuda_output_begin(struct dev_queue *q, uint64_t seq);
/* The address where the GPU is to write the queue's next completion. Called for each mark of a
 * client that may print. */
CUdeviceptr cuda_output_word(struct dev_queue *q, CUdeviceptr direct);
/* Forgets the queue. */
void cuda_output_drop(struct dev_queue *q);

/* --- the watch, with dev->lock held ----------------------------------------------------------- */

/* Looks at a queue's private word; and at an author that has had its turn for too long. */
void cuda_output_look(struct dev_queue *q);
void cuda_output_turns(struct dev *d, uint64_t now);

#endif
