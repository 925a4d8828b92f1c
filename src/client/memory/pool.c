/*
 * Pools: which ones there are, their attributes, and when they give back what they hold.
 *
 * By CUDA's rules a pool gives back at the next synchronisation what it holds unused above its
 * threshold, which is 0 at first. This would be slow for a program that allocates, frees and
 * synchronises in a loop. So a little is kept until somebody asks how much the pool has, or how
 * much the device has left.
 */
#include "client/memory/block.h"

#include "client/stream/peer.h"

/* An allocation waits so long for its memory to be cleared, which others' kernels may delay. */
#define CLEARING_NS 1000000u

static struct rt_table pools = RT_TABLE(RT_KIND_POOL, struct rt_pool);
/* Protects everything in this file. The locks of the ring and of requests are taken inside it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rt_pool *default_pools[RT_DEVICES], *current_pools[RT_DEVICES],
    *private_pools[RT_DEVICES];  /* lock */
static _Atomic bool release_due; /* a synchronisation may give something back */

/* --- pools ------------------------------------------------------------------------------------ */

static int create(int device, uint64_t max, uint64_t name, bool imported, struct rt_pool **out)
{
    struct rt_pool *p = rt_object_take(&pools);
    if (!p)
        return CUDA_ERROR_OUT_OF_MEMORY;
    p->device = device;
    p->max = rt_segment_size(max); /* one that is to have less than a segment has one */
    p->name = name;
    p->imported = imported;
    p->follow_events = p->opportunistic = p->internal = true;
    gm_list_init(&p->segments);
    for (unsigned c = 0; c < RT_SIZE_CLASSES; c++)
        for (unsigned i = 0; i < RT_BLOCK_BINS; i++)
            gm_list_init(&p->bins[c][i]);
    rt_object_publish(&p->object);
    *out = p;
    return CUDA_SUCCESS;
}

int rt_pool_create(int device, uint64_t max, uint64_t name, bool imported, struct rt_pool **out)
{
    pthread_mutex_lock(&lock);
    int r = create(device, max, name, imported, out);
    pthread_mutex_unlock(&lock);
    return r;
}

static struct rt_pool *the_pool(struct rt_pool **p, int device, bool private)
{
    pthread_mutex_lock(&lock);
    if (!*p && create(device, 0, 0, false, p) == CUDA_SUCCESS)
        (*p)->private = private;
    struct rt_pool *found = *p;
    pthread_mutex_unlock(&lock);
    return found;
}

struct rt_pool *rt_pool_default(int device)
{
    return the_pool(&default_pools[device], device, false);
}

struct rt_pool *rt_pool_private(int device)
{
    return the_pool(&private_pools[device], device, true);
}

struct rt_pool *rt_pool_current(int device)
{
    pthread_mutex_lock(&lock);
    struct rt_pool *p = current_pools[device];
    pthread_mutex_unlock(&lock);
    return p ? p : rt_pool_default(device);
}

void rt_pool_set_current(struct rt_pool *p)
{
    pthread_mutex_lock(&lock);
    current_pools[p->device] = p;
    pthread_mutex_unlock(&lock);
}

int rt_pool_device(const struct rt_pool *p)
{
    return p->device;
}

int rt_pool_let(struct rt_pool *p, int device, bool may)
{
    int r = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    if (device != p->device && may != (p->peers >> device & 1)) {
        if (may)
            r = rt_peer_let(device, p->device);
        else
            rt_peer_leave(device, p->device);
        if (r == CUDA_SUCCESS)
            p->peers ^= 1u << device;
    }
    pthread_mutex_unlock(&lock);
    return r;
}

bool rt_pool_lets(const struct rt_pool *p, int device)
{
    return device == p->device || (p->peers >> device & 1);
}

struct rt_pool *rt_pool_find(CUmemoryPool handle)
{
    struct rt_pool *p = rt_object_find(&pools, handle);
    return p && !p->destroyed ? p : NULL;
}

CUmemoryPool rt_pool_handle(const struct rt_pool *p)
{
    return (CUmemoryPool)rt_object_handle(&pools, &p->object);
}

CUmemoryPool rt_block_pool(const struct rt_block *b)
{
    const struct rt_pool *p = b->segment->pool;
    return p->destroyed || p->private ? NULL : rt_pool_handle(p);
}

const struct rt_pool *rt_block_source(const struct rt_block *b)
{
    return b->segment->pool;
}

uint64_t rt_block_segment(const struct rt_block *b)
{
    return b->segment->address;
}

void rt_block_share(struct rt_block *b)
{
    pthread_mutex_lock(&lock);
    rt_segment_share(b->segment);
    pthread_mutex_unlock(&lock);
}

uint64_t rt_pool_name(const struct rt_pool *p)
{
    return p->name;
}

bool rt_pool_is_imported(const struct rt_pool *p)
{
    return p->imported;
}

/* Ends a destroyed pool whose last block has come back. Its segments end as soon as nothing uses
 * them. */
static void end_if_empty(struct rt_pool *p)
{
    if (!p->destroyed || p->used)
        return;
    for (int device = 0; p->peers; p->peers &= ~(1u << device), device++)
        if (p->peers >> device & 1)
            rt_peer_leave(device, p->device);
    (void)rt_segments_trim(p, 0);
    if (gm_list_empty(&p->segments))
        rt_object_release(&pools, &p->object);
}

void rt_pool_destroy(struct rt_pool *p)
{
    pthread_mutex_lock(&lock);
    p->destroyed = true;
    p->threshold = 0;
    if (current_pools[p->device] == p)
        current_pools[p->device] = NULL;
    end_if_empty(p);
    pthread_mutex_unlock(&lock);
}

void rt_pool_trim(struct rt_pool *p, uint64_t keep)
{
    pthread_mutex_lock(&lock);
    (void)rt_segments_trim(p, keep);
    pthread_mutex_unlock(&lock);
}

static int set_switch(bool *out, const void *value)
{
    *out = *(const int *)value != 0;
    return CUDA_SUCCESS;
}

/* Resets a high-water mark, which can only be set to the present value. */
static int reset_mark(uint64_t *mark, uint64_t now, const void *value)
{
    if (*(const cuuint64_t *)value != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *mark = now;
    return CUDA_SUCCESS;
}

static int set(struct rt_pool *p, CUmemPool_attribute attribute, const void *value)
{
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        return set_switch(&p->follow_events, value);
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        return set_switch(&p->opportunistic, value);
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        return set_switch(&p->internal, value);
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        p->threshold = *(const cuuint64_t *)value;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        return reset_mark(&p->reserved_high, p->reserved, value);
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return reset_mark(&p->used_high, p->used, value);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

int rt_pool_set(struct rt_pool *p, CUmemPool_attribute attribute, const void *value)
{
    pthread_mutex_lock(&lock);
    int r = set(p, attribute, value);
    pthread_mutex_unlock(&lock);
    return r;
}

static int get(struct rt_pool *p, CUmemPool_attribute attribute, void *value)
{
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        *(int *)value = p->follow_events;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        *(int *)value = p->opportunistic;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *(int *)value = p->internal;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        *(cuuint64_t *)value = p->threshold;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        *(cuuint64_t *)value = p->reserved;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        *(cuuint64_t *)value = p->reserved_high;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *(cuuint64_t *)value = p->used;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        *(cuuint64_t *)value = p->used_high;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

int rt_pool_get(struct rt_pool *p, CUmemPool_attribute attribute, void *value)
{
    pthread_mutex_lock(&lock);
    if (p->synchronized)
        (void)rt_segments_trim(p, p->threshold);
    int r = get(p, attribute, value);
    pthread_mutex_unlock(&lock);
    return r;
}

/* --- giving back ------------------------------------------------------------------------------ */

static void end_synchronized(struct rt_object *o, void *arg GM_UNUSED)
{
    struct rt_pool *p = (struct rt_pool *)(void *)o;
    p->synchronized = true;
    if (p->destroyed)
        end_if_empty(p);
    else if (p->reserved > p->threshold)
        (void)rt_segments_trim(p, GM_MAX(p->threshold, p->used + RT_KEEP));
}

void rt_pools_synchronized(void)
{
    if (!atomic_load_explicit(&release_due, memory_order_relaxed))
        return;
    pthread_mutex_lock(&lock);
    atomic_store_explicit(&release_due, false, memory_order_relaxed);
    rt_table_each(&pools, end_synchronized, NULL);
    pthread_mutex_unlock(&lock);
}

struct trimming {
    bool all, any;
};

static void trim_one(struct rt_object *o, void *arg)
{
    struct rt_pool *p = (struct rt_pool *)(void *)o;
    struct trimming *t = arg;
    if (t->all || p->synchronized)
        t->any |= rt_segments_trim(p, t->all ? 0 : p->threshold);
    end_if_empty(p);
}

bool rt_pools_trim(bool all)
{
    struct trimming t = { .all = all };
    pthread_mutex_lock(&lock);
    rt_table_each(&pools, trim_one, &t);
    pthread_mutex_unlock(&lock);
    return t.any;
}

/* --- handing out ------------------------------------------------------------------------------ */

int rt_pool_alloc(struct rt_pool *p, struct rt_stream *st, uint64_t size, uint64_t *address,
                  struct rt_block **out)
{
    if (size == 0 || p->imported)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    struct rt_block *b = p->destroyed ? NULL : rt_block_take(p, st, size);
    if (b)
        *address = b->address;
    *out = b;
    pthread_mutex_unlock(&lock);
    if (b)
        return CUDA_SUCCESS;
    int error = rt_session_error(rt_session);
    return error ? error : CUDA_ERROR_OUT_OF_MEMORY;
}

void rt_pool_free(struct rt_block *b, uint32_t number, uint64_t seq)
{
    pthread_mutex_lock(&lock);
    struct rt_pool *p = b->segment->pool;
    rt_block_put(b, number, seq);
    p->synchronized = p->private; /* cuMemFree has waited already */
    end_if_empty(p);
    pthread_mutex_unlock(&lock);
    atomic_store_explicit(&release_due, true, memory_order_relaxed);
}

bool rt_pool_settle(struct rt_block *b)
{
    if (b->seq == 0 || rt_session_wait_within(rt_session, b->number, b->seq, CLEARING_NS))
        return true;
    rt_pool_free(b, b->number, b->seq);
    return false;
}
