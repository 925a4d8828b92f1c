/*
 * What can be handed to the driver at once: no operation before it that is held back, nothing to be
 * made or loaded for it, and nobody whose call keeps the driver. For those who stand in for several
 * clients (executor/poller.h).
 *
 * What is looked at may change before the operation is handed over; then it waits where it always
 * does, and those others with it for as long.
 */
#include "device/cuda/lookahead.h"
#include "device/cuda/inflight.h"
#include "device/cuda/library.h"

static bool client_is_prompt(const struct dev_client *c)
{
    return c->calls < CUDA_CALLS / 2 && cuda_unfinished(c) < CUDA_DEPTH / 2 &&
           gm_list_empty(&c->holding) && gm_list_empty(&c->chained) && !c->moving &&
           !c->may_print && !atomic_load_explicit(&c->full, memory_order_relaxed) &&
           !atomic_load_explicit(&c->away, memory_order_acquire) &&
           !atomic_load_explicit(&c->gone, memory_order_relaxed) &&
           !atomic_load_explicit(&c->dev->frozen, memory_order_relaxed);
}

static bool launch_is_prompt(const struct dev_module *m, const struct wire_rec_launch *r)
{
    const struct cuda_function *f =
        r->function < m->functions_count ? &m->functions[r->function] : NULL;
    bool asserts_first = m->library->traits.asserts &&
                         !atomic_load_explicit(&m->client->asserts, memory_order_relaxed);
    return f && f->loaded && r->shared_bytes <= f->dynamic_max && !asserts_first &&
           !m->library->traits.prints;
}

/* A thread that unmaps memory has that lock for as long as the driver takes. */
static bool memory_stays(struct dev_client *c)
{
    if (pthread_mutex_trylock(&c->memory_lock) != 0)
        return false;
    pthread_mutex_unlock(&c->memory_lock);
    return true;
}

static bool is_of_device(const struct dev_client *c, uint64_t address)
{
    return address >= c->base && address - c->base < c->half;
}

/* From host to host the driver makes the asking thread wait; how much it has to do for many rows is
 * not known. */
static bool copy_is_prompt(const struct dev_client *c, const struct wire_rec_copy *r)
{
    return r->height == 1 && r->depth == 1 && (is_of_device(c, r->dst) || is_of_device(c, r->src));
}

/* With one GPU: elsewhere there may be no way yet, or another GPU's calls to wait for. */
static bool rest_is_prompt(struct dev_client *c, const struct wire_record *r)
{
    const void *record = r;
    switch (r->op) {
    case WIRE_OP_COPY:
        return copy_is_prompt(c, record) && memory_stays(c);
    case WIRE_OP_WRITE:
        return is_of_device(c, ((const struct wire_rec_write *)record)->dst);
    case WIRE_OP_FILL:
        return is_of_device(c, ((const struct wire_rec_fill *)record)->dst);
    default:
        return r->op == WIRE_OP_WAIT || r->op == WIRE_OP_STAMP;
    }
}

static bool queue_is_prompt(const struct dev_queue *q)
{
    return q->stream && cuda_may_have(q, 1) && !q->gate && !q->learning && !q->wanted &&
           !q->gpu->is_fallback &&
           q->place ==
               atomic_load_explicit(&q->client->seats[q->gpu->index].place, memory_order_acquire) &&
           atomic_load_explicit(&q->gpu->waits, memory_order_relaxed) == 0 &&
           cuda_proof_is_prompt(q);
}

static bool is_prompt(struct dev_queue *q, const struct wire_record *r, const struct dev_module *m)
{
    const void *record = r;
    if (!client_is_prompt(q->client) || !queue_is_prompt(q))
        return false;
    switch (r->op) {
    case WIRE_OP_LAUNCH:
        return launch_is_prompt(m, record);
    case WIRE_OP_RUN:
        return cuda_may_have(q, ((const struct wire_rec_run *)record)->count) &&
               cuda_run_is_known(q, record);
    case WIRE_OP_MARK:
        return true;
    default:
        return q->client->dev->count == 1 && rest_is_prompt(q->client, r);
    }
}

/* Its hands are on until the flush that follows. */
bool cuda_is_prompt(struct dev_queue *q, const struct wire_record *r, const struct dev_module *m)
{
    return is_prompt(q, r, m) && cuda_hands_try(q->client);
}
