/*
 * Counts the driver's calls for each queue, and learns from two sources how many of them are done:
 * private words that the GPU writes now and then, and the driver's own word for idle streams.
 */
#include "device/cuda/inflight.h"

#include <sys/mman.h>

#include "device/cuda/admit.h"

#define PROOF_EVERY 64u
#define WORDS_BYTES (2 * TP_STREAMS * sizeof(uint64_t))

/* --- words ------------------------------------------------------------------------------------ */

static bool make_words(struct dev_client *c)
{
    const struct cuda_driver *api = &c->dev->api;
    c->words_wanted = true;
    void *words =
        mmap(NULL, WORDS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (words == MAP_FAILED)
        return false;
    if (api->cuMemHostRegister_v2(words, WORDS_BYTES,
                                  CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP) !=
        CUDA_SUCCESS) {
        munmap(words, WORDS_BYTES);
        return false;
    }
    c->words = words;
    return true;
}

CUdeviceptr cuda_words(struct dev_client *c, const struct cuda_gpu *g)
{
    CUdeviceptr *at = &c->words_at[g->index];
    if (GM_LIKELY(*at))
        return *at;
    if (!c->words && (c->words_wanted || !make_words(c)))
        return 0;
    return c->dev->api.cuMemHostGetDevicePointer_v2(at, c->words, 0) == CUDA_SUCCESS ? *at : 0;
}

void cuda_words_finish(struct dev_client *c)
{
    if (!c->words)
        return;
    (void)CUDA_CALL(c->dev, UINT32_MAX, cuMemHostUnregister, c->words);
    munmap(c->words, WORDS_BYTES);
    c->words = NULL;
}

static uint64_t proof_of(const struct dev_queue *q)
{
    const struct dev_client *c = q->client;
    return c->words ? atomic_load_explicit(&c->words[TP_STREAMS + q->number], memory_order_acquire)
                    : 0;
}

/* --- what is done ----------------------------------------------------------------------------- */

/* The queue's first `proven` calls are done. */
static void settle(struct dev_queue *q, uint64_t proven)
{
    struct dev_client *c = q->client;
    if (proven <= q->proven || proven > q->calls)
        return;
    c->calls -= (uint32_t)(proven - q->proven);
    q->proven = proven;
    if (proven != q->calls)
        return;
    gm_list_remove(&q->owing);
    c->owing_count--;
}

static CUdeviceptr proof_at(struct dev_queue *q)
{
    CUdeviceptr words = cuda_words(q->client, q->gpu);
    return words ? words + (TP_STREAMS + q->number) * sizeof(uint64_t) : 0;
}

CUdeviceptr cuda_proof(struct dev_queue *q)
{
    const struct dev_client *c = q->client;
    if (GM_LIKELY((q->calls - q->asked) * c->owing_count < PROOF_EVERY &&
                  !atomic_load_explicit(&c->full, memory_order_relaxed)))
        return 0;
    CUdeviceptr at = proof_at(q);
    if (!at)
        return 0;
    settle(q, proof_of(q));
    q->asked = q->calls;
    return at;
}

/* Has the GPU write a proof behind all calls so far. */
static void ask_for_proof(struct dev_queue *q)
{
    struct dev_client *c = q->client;
    CUdeviceptr at = proof_at(q);
    if (!at)
        return;
    cuda_count(q, 1);
    q->asked = q->calls;
    (void)cuda_check(
        c,
        c->dev->api.cuStreamWriteValue64_v2(q->stream, at, q->calls, CU_STREAM_WRITE_VALUE_DEFAULT),
        "the device refused to write how far it is");
}

void cuda_calls_look(struct dev_queue *q)
{
    settle(q, proof_of(q));
}

void cuda_calls_ask(struct dev_queue *q)
{
    cuda_enter(q->gpu);
    if (!q->stream || cuda_stream_is_done(q, q->stream))
        settle(q, q->calls);
    else if (q->asked != q->calls)
        ask_for_proof(q);
}

bool cuda_calls_are_done(const struct dev_queue *q, uint64_t calls)
{
    if (proof_of(q) >= calls)
        return true;
    cuda_enter(q->gpu);
    return cuda_stream_is_done(q, q->stream);
}

bool cuda_queue_is_done(struct dev_queue *q)
{
    if (q->gate || !gm_list_empty(&q->held) || !gm_list_empty(&q->chained))
        return false;
    cuda_enter(q->gpu);
    return !q->stream || cuda_stream_is_done(q, q->stream);
}

bool cuda_queue_is_over(struct dev_queue *q)
{
    cuda_enter(q->gpu);
    if (!gm_list_empty(&q->chained) || (q->stream && !cuda_stream_is_done(q, q->stream)))
        return false;
    pthread_mutex_lock(&q->client->dev->lock);
    bool seen = q->seen == q->last && gm_list_empty(&q->active);
    pthread_mutex_unlock(&q->client->dev->lock);
    return seen;
}

/* --- queues ----------------------------------------------------------------------------------- */

void cuda_calls_begin(struct dev_queue *q)
{
    gm_list_init(&q->owing);
    /* The word still has the count of an earlier queue with this number, whose stream was done. */
    q->calls = q->calls_marked = q->asked = q->proven = proof_of(q);
}

void cuda_calls_end(struct dev_queue *q)
{
    settle(q, q->calls);
}
