/*
 * Two threads. One reads the pipe that standard output is, and gives each text to the client that
 * it is from. The other has the driver print what finished kernels have left in its buffer, and
 * then publishes their completion.
 */
#include "device/cuda/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "device/cuda/inflight.h"

#define QUIET       16u
#define TURN_NS     (50 * GM_NS_PER_MS)
#define TURN_MAX_NS (2 * GM_NS_PER_S)

static struct gm_log_topic topic = GM_LOG_TOPIC("print");

/* --- turns; dev->lock held -------------------------------------------------------------------- */

static bool others_wait(const struct dev_client *c)
{
    gm_list_for_each (other, &c->dev->clients, struct dev_client, link)
        if (other != c && other->prints.waits)
            return true;
    return false;
}

static void end_turn(struct dev *d)
{
    d->output.author_before = d->output.author;
    d->output.author = NULL;
    gm_list_for_each (c, &d->clients, struct dev_client, link)
        if (c->prints.waits)
            tp_ring_wake(&c->session->control->ring);
}

/* The queue has nothing more that may print. */
static void queue_settled(struct dev_queue *q)
{
    struct dev_client *c = q->client;
    q->prints.seq = 0;
    if (--c->prints.queues != 0)
        return;
    c->prints.hog = false;
    if (c->dev->output.author == c)
        end_turn(c->dev);
}

void cuda_output_turns(struct dev *d, uint64_t now)
{
    if (!d->output.author || now - d->output.author_since < TURN_MAX_NS ||
        !others_wait(d->output.author))
        return;
    gm_warn(
        &topic,
        "a kernel that may print does not end: others that print do not wait for it any longer");
    d->output.author->prints.hog = true;
    end_turn(d);
}

/* The client that a text is from, which came just now. NULL: nobody knows. */
static struct dev_client *find_author(struct dev *d)
{
    struct dev_client *any = NULL, *only = NULL, *loud = NULL;
    unsigned anys = 0, onlys = 0, louds = 0;
    bool hog = false;
    gm_list_for_each (c, &d->clients, struct dev_client, link) {
        anys += c->prints.may;
        any = c->prints.may ? c : any;
        if (!c->prints.queues)
            continue;
        hog |= c->prints.hog;
        only = c;
        onlys++;
        louds += c->prints.silent < QUIET;
        loud = c->prints.silent < QUIET ? c : loud;
    }
    if (onlys == 1)
        return only;
    if (onlys == 0)
        return anys == 1 ? any : NULL;
    if (louds == 1 && !hog)
        return loud;
    gm_list_for_each (c, &d->clients, struct dev_client, link)
        c->prints.silent = 0;
    return NULL;
}

/* --- the pipe --------------------------------------------------------------------------------- */

static void deliver(struct dev *d, const char *text, size_t size)
{
    pthread_mutex_lock(&d->lock);
    struct dev_client *c = find_author(d);
    if (c) {
        c->prints.silent = 0;
        (void)tp_output_write(&c->prints.output, 1, text, size);
    }
    pthread_mutex_unlock(&d->lock);
    if (!c)
        gm_warn(&topic, "one of several programs printed: %.*s", (int)GM_MIN(size, (size_t)400),
                text);
}

/* Reads the pipe until it is empty. */
static void drain(struct dev *d)
{
    static char text[TP_OUTPUT_TEXT_MAX];
    ssize_t n;
    pthread_mutex_lock(&d->output.pipe_lock);
    while ((n = read(d->output.pipe, text, sizeof(text))) > 0)
        deliver(d, text, (size_t)n);
    pthread_mutex_unlock(&d->output.pipe_lock);
}

/* The driver may print more than the pipe holds. */
static void *reader(void *arg)
{
    struct dev *d = arg;
    struct pollfd p = { .fd = d->output.pipe, .events = POLLIN };
    for (;;)
        if (poll(&p, 1, -1) > 0)
            drain(d);
    return NULL;
}

/* Delivers all that finished kernels of the GPU have printed. The stream is always empty, so this
 * does not wait for anything. */
static void flush(struct cuda_gpu *g)
{
    struct dev *d = g->dev;
    cuda_enter(g);
    CUresult r = d->api.cuStreamSynchronize(g->print_stream);
    if (r != CUDA_SUCCESS)
        cuda_die(d, r);
    fflush(stdout);
    drain(d);
}

/* --- completions ------------------------------------------------------------------------------ */

void cuda_output_look(struct dev_queue *q)
{
    if (!q->prints.seq)
        return;
    uint64_t arrived = atomic_load_explicit(&q->client->words[q->number], memory_order_acquire);
    if (arrived <= q->prints.shown || !gm_list_empty(&q->prints.link))
        return;
    gm_list_append(&q->client->dev->output.printed, &q->prints.link);
    pthread_cond_signal(&q->client->dev->output.work);
}

static void *shower(void *arg)
{
    struct dev *d = arg;
    pthread_mutex_lock(&d->lock);
    for (;;) {
        while (gm_list_empty(&d->output.printed))
            pthread_cond_wait(&d->output.work, &d->lock);
        struct dev_queue *q = gm_list_entry(d->output.printed.next, struct dev_queue, prints.link);
        struct dev_client *c = q->client;
        struct cuda_gpu *gpu = q->gpu;
        uint64_t arrived = atomic_load_explicit(&c->words[q->number], memory_order_acquire);
        c->prints.silent++;
        d->output.showing = q;
        pthread_mutex_unlock(&d->lock);
        flush(gpu);
        pthread_mutex_lock(&d->lock);
        d->output.showing = NULL;
        pthread_cond_broadcast(&d->output.shown);
        gm_list_remove(&q->prints.link);
        q->prints.shown = arrived;
        tp_word_publish(&q->slot->completed, arrived);
        if (q->prints.seq && q->prints.seq <= arrived && q->prints.marked <= arrived)
            queue_settled(q);
    }
    return NULL;
}

/* --- a client's thread ------------------------------------------------------------------------ */

bool cuda_output_watched(struct dev_queue *q)
{
    struct dev_client *c = q->client;
    struct dev *d = c->dev;
    if (GM_LIKELY(c->prints.may && c->words_at[q->gpu->index]))
        return true;
    if (d->output.pipe < 0 || !cuda_words(c, q->gpu))
        return false;
    pthread_mutex_lock(&d->lock);
    c->prints.may = true;
    pthread_mutex_unlock(&d->lock);
    return true;
}

bool cuda_output_take_turn(struct dev_client *c)
{
    struct dev *d = c->dev;
    bool mine;
    pthread_mutex_lock(&d->lock);
    bool others = others_wait(c);
    bool quiet = c->prints.silent >= QUIET;
    if (quiet)
        mine = true;
    else if (d->output.author == c)
        mine = !others || gm_now_ns() - d->output.author_since < TURN_NS;
    else
        mine = !d->output.author && (c != d->output.author_before || !others);
    if (mine && !quiet && d->output.author != c) {
        d->output.author = c;
        d->output.author_since = gm_now_ns();
    }
    c->prints.waits = !mine;
    if (d->output.author == c && (quiet || (!mine && c->prints.queues == 0)))
        end_turn(d); /* no completion would end it */
    pthread_mutex_unlock(&d->lock);
    return mine;
}

void cuda_output_begin(struct dev_queue *q, uint64_t seq)
{
    struct dev_client *c = q->client;
    pthread_mutex_lock(&c->dev->lock);
    c->prints.queues += q->prints.seq == 0;
    q->prints.seq = seq;
    pthread_mutex_unlock(&c->dev->lock);
}

CUdeviceptr cuda_output_word(struct dev_queue *q, CUdeviceptr direct)
{
    struct dev_client *c = q->client;
    pthread_mutex_lock(&c->dev->lock);
    bool apart =
        q->prints.seq != 0; /* as long as the client has not been shown what it may have printed */
    if (apart)
        q->prints.marked = q->last;
    pthread_mutex_unlock(&c->dev->lock);
    return apart ? c->words_at[q->gpu->index] + q->number * sizeof(uint64_t) : direct;
}

void cuda_output_drop(struct dev_queue *q)
{
    struct dev *d = q->client->dev;
    pthread_mutex_lock(&d->lock);
    while (d->output.showing == q)
        pthread_cond_wait(&d->output.shown, &d->lock);
    gm_list_remove(&q->prints.link);
    if (q->prints.seq)
        queue_settled(q);
    pthread_mutex_unlock(&d->lock);
}

/* --- clients ---------------------------------------------------------------------------------- */

/* dev->lock held. */
static void give_up_turns(struct dev_client *c)
{
    struct dev *d = c->dev;
    c->prints.waits = false;
    if (!d->output.author || d->output.author == c) /* others may wait for it to take its turn */
        end_turn(d);
}

void cuda_output_stop(struct dev_client *c)
{
    pthread_mutex_lock(&c->dev->lock);
    give_up_turns(c);
    pthread_mutex_unlock(&c->dev->lock);
}

void cuda_output_leave(struct dev_client *c)
{
    struct dev *d = c->dev;
    pthread_mutex_lock(&d->lock);
    while (atomic_load(
        &d->dead)) { /* another thread looks at all clients once more, and ends the process */
        pthread_mutex_unlock(&d->lock);
        pause();
        pthread_mutex_lock(&d->lock);
    }
    gm_list_remove(&c->link);
    give_up_turns(c);
    if (d->output.author_before == c)
        d->output.author_before = NULL;
    pthread_mutex_unlock(&d->lock);
}

int cuda_output_open(struct dev *d)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    d->output.pipe = ends[0];
    int r = fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
    r = r ? r : cuda_thread_start(d, reader);
    r = r ? r : cuda_thread_start(d, shower);
    if (r == 0 && dup2(ends[1], STDOUT_FILENO) < 0)
        r = -errno;
    close(ends[1]);
    if (r < 0)
        d->output.pipe = -1;
    return r;
}
