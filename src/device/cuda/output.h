/*
 * What kernels print, and whose it is.
 *
 * The driver keeps the texts of all kernels of the context in one buffer and prints them to this
 * process's standard output when one of several calls is made. Standard output is therefore a pipe
 * to ourselves. The texts do not say who printed; but only images that call vprintf can have, and
 * so:
 *
 * - Of the clients whose launches may print, one at a time has such launches with the driver: the
 *   author. The others' are held back until it has none, or, if it always has some, for TURN_NS.
 *   What comes out of the pipe meanwhile is the author's.
 * - The author's completion words are not written by the GPU once something may have been printed.
 *   It writes a private word; the output thread sees to it that the text has come, and only then
 *   publishes the completion.
 * - A client that has had QUIET completions without a text takes no turns any more: images that
 *   only might print are common, and nobody shall wait for those. Should it print after all while
 *   others like it run, it cannot be told who it was: that text goes to the log, and all of them
 *   take turns again. (A text of its during another one's turn is taken for that one's.)
 * - An author whose kernel does not end loses its turn after TURN_MAX_NS. Until it has ended, what
 *   is printed is nobody's: it goes to the log.
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

/* dev->lock where nothing else is said, here and in the following. */
struct cuda_output {
    int pipe; /* what standard output is, to read from; -1: kernels' texts are lost */
    pthread_mutex_t pipe_lock; /* to read; before dev->lock */
    struct dev_client *author, *author_before;
    uint64_t author_since;
    struct gm_list printed;    /* queues whose completion waits for its text */
    struct dev_queue *showing; /* the one that the output thread works on */
    pthread_cond_t work, shown;
};

/* Of a client. */
struct cuda_prints {
    struct tp_output output; /* has a lock of its own */
    bool may;                /* print; the client's thread reads it without the lock */
    bool waits;              /* for its turn to print */
    bool hog;                /* its turn was ended because it took too long */
    uint32_t queues;         /* that have prints.seq */
    uint32_t silent;         /* completions since the last text */
};

/* Of a queue. */
struct cuda_queue_prints {
    struct gm_list link; /* output.printed, or alone */
    uint64_t seq;        /* the last launch that may print, until it was shown; 0: none */
    uint64_t marked;     /* last mark in the private word */
    uint64_t shown;      /* what of it has been published */
};

/* Redirects standard output and starts the threads. 0 or -errno; without it nothing prints. */
GM_MUST_CHECK int cuda_output_open(struct dev *d);
/* A GPU is being opened, and entered. */
CUresult cuda_output_add(struct cuda_gpu *g);

/* An order's thread: a client comes, stops, and goes; from the stop on nothing of it runs, and its
 * queues are forgotten. */
void cuda_output_join(struct dev_client *c);
void cuda_output_stop(struct dev_client *c);
void cuda_output_leave(struct dev_client *c);

/* The client's thread. */
/* A launch of an image that may print: makes what is needed for that. False: its text will be lost.
 */
bool cuda_output_watched(struct dev_queue *q);
/* True if the client may submit one; else its ring's bell rings when it may ask again. */
bool cuda_output_take_turn(struct dev_client *c);
/* Such a launch is about to be submitted. */
void cuda_output_begin(struct dev_queue *q, uint64_t seq);
/* Where the GPU is to write the queue's next completion word; called for each mark of a client that
 * may print. */
CUdeviceptr cuda_output_word(struct dev_queue *q, CUdeviceptr direct);
/* Forgets the queue. */
void cuda_output_drop(struct dev_queue *q);

/* dev->lock held, by the watch: looks at private words, and at who has had its turn for too long.
 */
void cuda_output_look(struct dev_queue *q);
void cuda_output_turns(struct dev *d, uint64_t now);

#endif
