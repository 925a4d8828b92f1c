/*
 * Streams of the driver: where a queue's stream is made, when there is room for it, and how a queue
 * goes on in another stream when its client's place has changed.
 */
#include "device/cuda/stream.h"

#include "base/log.h"
#include "device/cuda/admit.h"
#include "device/cuda/capacity.h"
#include "device/cuda/settle.h"
#include "device/cuda/inflight.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("cuda");

CUresult cuda_stream_make(struct dev_client *c, struct cuda_gpu *g, struct cuda_place *p,
                          int priority, CUstream *out)
{
    CUresult r = cuda_capacity_stream(c, g, p, priority, false, out);
    if (r != CUDA_ERROR_NOT_READY)
        return r;
    if (!cuda_settle(c, g, CUDA_STAYS))
        return r;
    r = cuda_capacity_stream(c, g, p, priority, true, out);
    cuda_settled(c, g);
    return r;
}

/* A client's priority of a stream as one of the device's. */
static int device_priority(const struct cuda_gpu *g, bool low, int priority)
{
    int most = 1 - (int)(low ? g->priorities_low : g->priorities_normal);
    int shift = (int)(g->info.priorities - g->priorities_normal);
    priority = GM_MAX(priority, most);
    priority = GM_MIN(priority, 0);
    return g->priority_least + priority - (low ? 0 : shift);
}

static CUresult make_stream(const struct dev_queue *q, struct cuda_place *p, bool waited,
                            CUstream *out)
{
    const int priority = device_priority(q->gpu, p->low, q->priority);
    return cuda_capacity_stream(q->client, q->gpu, p, priority, waited, out);
}

int cuda_stream_precedence(const struct dev_queue *q)
{
    return device_priority(q->gpu, q->place->low, q->priority - 1);
}

CUresult cuda_stream_like(struct dev_queue *q, CUstream *out)
{
    CUresult r = make_stream(q, q->place, false, out);
    return r == CUDA_ERROR_NOT_READY && cuda_capacity_may_grow(q, 0)
               ? make_stream(q, q->place, true, out)
               : r;
}

/* With the lock, since the watch and others ask about the stream. */
static void set_stream(struct dev_queue *q, CUstream s)
{
    pthread_mutex_lock(&q->client->dev->lock);
    q->stream = s;
    if (!s)
        atomic_store_explicit(&q->touched, false, memory_order_relaxed);
    pthread_mutex_unlock(&q->client->dev->lock);
}

static void create_stream(struct dev_queue *q)
{
    struct dev_client *c = q->client;
    struct cuda_place *p = cuda_place_now(q);
    CUstream s;
    CUresult r = make_stream(q, p, false, &s);
    if (r == CUDA_ERROR_NOT_READY) {
        struct cuda_gpu *g = cuda_settle(c, cuda_home(c, q->gpu->index), CUDA_MOVES);
        if (!g)
            return;
        p = cuda_place_now(q); /* the client may have gone elsewhere */
        r = make_stream(q, p, true, &s);
        cuda_settled(c, g);
    }
    if (!cuda_check(c, r, "the device refused to make a stream"))
        return;
    set_stream(q, s);
    q->place = p;
    p->streams++;
}

/* Has `next` wait for all that the queue's stream has. */
static CUresult follow(struct dev_queue *q, CUstream next)
{
    const struct cuda_driver *api = &q->client->dev->api;
    CUevent event; /* a new one: the stream may have more by now than its last point (point.h) */
    cuda_count(q, 2);
    CUresult r = api->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    if (r != CUDA_SUCCESS)
        return r;
    r = api->cuEventRecord(event, q->stream);
    if (r == CUDA_SUCCESS)
        r = api->cuStreamWaitEvent(next, event, CU_EVENT_WAIT_DEFAULT);
    (void)api->cuEventDestroy_v2(event); /* the driver keeps it for as long as somebody waits */
    return r;
}

static void move_stream(struct dev_queue *q)
{
    struct dev_client *c = q->client;
    CUstream next = NULL;
    cuda_stream_settle(q); /* which may destroy what was the client's place until now */
    struct cuda_place *p = cuda_place_now(q);
    /* One move at a time; and a move that failed is not tried again with every operation. */
    if (q->before || q->refused == p->number)
        return;
    CUresult r =
        cuda_stream_make(c, q->gpu, p, device_priority(q->gpu, p->low, q->priority), &next);
    if (r == CUDA_SUCCESS)
        r = follow(q, next);
    if (r != CUDA_SUCCESS) {
        gm_error(&topic,
                 "a stream stays where it is, its client's new limits do not hold for it: error %d",
                 (int)r);
        if (next)
            cuda_capacity_stream_destroy(q->gpu, p, next);
        q->refused = p->number;
        return;
    }
    q->before = q->stream;
    q->place_before = q->place;
    q->place = p;
    p->streams++;
    c->moving++;
    set_stream(q, next);
}

void cuda_stream_place(struct dev_queue *q)
{
    if (q->stream)
        move_stream(q);
    else
        create_stream(q);
}

static void leave(struct dev_queue *q, CUstream stream, struct cuda_place *p)
{
    p->unsure |= !cuda_stream_is_done(q, stream);
    p->streams--;
    cuda_capacity_stream_destroy(p->gpu, p, stream);
}

void cuda_stream_settle(struct dev_queue *q)
{
    if (!q->before)
        return;
    cuda_enter(q->gpu);
    if (!cuda_stream_is_done(q, q->before))
        return;
    leave(q, q->before, q->place_before);
    q->before = NULL;
    q->client->moving--;
    cuda_places_collect(q->client, false);
}

void cuda_stream_give_up(struct dev_queue *q)
{
    if (q->before) {
        leave(q, q->before, q->place_before);
        q->client->moving--;
    }
    CUstream s = q->stream;
    set_stream(q, NULL);
    if (s)
        leave(q, s, q->place);
    q->before = NULL;
    q->place = NULL;
}

void cuda_stream_destroy(struct dev_queue *q)
{
    cuda_stream_give_up(q);
    if (GM_UNLIKELY(q->part != NULL)) {
        pthread_mutex_lock(&q->client->places_lock);
        cuda_part_forget(q);
        pthread_mutex_unlock(&q->client->places_lock);
        cuda_places_collect(q->client, false);
    }
}
