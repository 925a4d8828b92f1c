/*
 * Segments and blocks. A segment's blocks form a list in the order of their addresses. A free block
 * is also in a bin, by the power of two of its size. Small and large allocations have segments and
 * bins of their own, so that a small one that lives long does not hold a large segment.
 *
 * Each free block remembers the last operation that may use it. Two neighbours become one if at
 * least one of them is certainly unused, or if both wait for the same stream.
 *
 * By CUDA's rules a pool gives back at the next synchronisation what it holds unused above its
 * threshold, which is 0 at first. This would be slow for a program that allocates, frees and
 * synchronises in a loop. So a little is kept until somebody asks how much the pool has, or how
 * much the device has left.
 */
#include "client/memory/pool.h"

#include "client/stream/peer.h"

#include <stdlib.h>

#define GRANULE       512u
#define SMALL_MAX     (1u << 20)
#define SMALL_SEGMENT (2u << 20)
#define LARGE_SEGMENT (32u << 20)
#define SEGMENT_UNIT  (2u << 20)
#define KEEP          (32u << 20) /* unused bytes that a synchronisation does not give back */
#define BINS          48u

enum size_class { SMALL, LARGE, SIZE_CLASSES };

struct segment {
    struct gm_list link; /* in pool->segments */
    struct rt_pool *pool;
    uint64_t address, size;
    enum size_class class;
    struct gm_list blocks; /* in the order of addresses */
};

struct rt_block {
    struct gm_list link; /* in segment->blocks */
    struct gm_list bin;  /* while the block is free */
    struct segment *segment;
    uint64_t address, size;
    bool free;
    uint32_t number; /* of a free block: queue and operation of its last use; seq 0: none */
    uint64_t seq;
};

struct rt_pool {
    struct rt_object object;
    int device;
    uint32_t peers;    /* the other devices that may touch the memory */
    bool destroyed;    /* ends with its last block */
    bool synchronized; /* since the last free */
    bool follow_events, opportunistic, internal;
    bool imported; /* never changes; nor does the next */
    uint64_t name;
    uint64_t max, threshold;
    uint64_t reserved, reserved_high;
    uint64_t used, used_high;
    struct gm_list segments;
    struct gm_list bins[SIZE_CLASSES][BINS];
};

static struct rt_table pools = RT_TABLE(RT_KIND_POOL, struct rt_pool);
/* Protects everything in this file. The locks of the ring and of requests are taken inside it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rt_pool *default_pools[RT_DEVICES], *current_pools[RT_DEVICES]; /* lock */
static _Atomic bool release_due; /* a synchronisation may give something back */

static unsigned bin_of(uint64_t size)
{
    unsigned n = 63u - (unsigned)__builtin_clzll(size / GRANULE);
    return GM_MIN(n, BINS - 1);
}

static bool unused(struct rt_block *b)
{
    if (b->seq && rt_queue_done(rt_session, b->number, b->seq))
        b->seq = 0;
    return b->seq == 0;
}

/* --- blocks ----------------------------------------------------------------------------------- */

static void bin_put(struct rt_block *b)
{
    gm_list_insert(&b->segment->pool->bins[b->segment->class][bin_of(b->size)], &b->bin);
}

static struct rt_block *neighbour(struct rt_block *b, struct gm_list *link)
{
    return link == &b->segment->blocks ? NULL : gm_list_entry(link, struct rt_block, link);
}

/* Joins `b` with the free block behind it, if that is possible. */
static bool merge(struct rt_block *b)
{
    struct rt_block *next = neighbour(b, b->link.next);
    if (!b->free || !next || !next->free)
        return false;
    if (!unused(b) && !unused(next)) {
        if (b->number != next->number)
            return false;
        b->seq = GM_MAX(b->seq, next->seq);
    } else if (next->seq) {
        b->number = next->number;
        b->seq = next->seq;
    }
    b->size += next->size;
    gm_list_remove(&next->link);
    gm_list_remove(&next->bin);
    free(next);
    gm_list_remove(&b->bin);
    bin_put(b);
    return true;
}

static void coalesce(struct segment *s)
{
    for (struct gm_list *at = s->blocks.next; at != &s->blocks; at = at->next)
        while (merge(gm_list_entry(at, struct rt_block, link)))
            ;
}

/* Takes `size` bytes of a free block; the rest stays free. Returns false if there is no memory to
 * describe the rest. */
static bool split(struct rt_block *b, uint64_t size)
{
    if (b->size == size)
        return true;
    struct rt_block *rest = malloc(sizeof(*rest));
    if (!rest)
        return false;
    *rest = (struct rt_block) { .segment = b->segment,
                                .address = b->address + size,
                                .size = b->size - size,
                                .free = true,
                                .number = b->number,
                                .seq = b->seq };
    gm_list_init(&rest->bin);
    gm_list_insert(&b->link, &rest->link);
    bin_put(rest);
    b->size = size;
    return true;
}

static struct rt_block *take(struct rt_block *b, uint64_t size)
{
    struct rt_pool *p = b->segment->pool;
    if (!split(b, size))
        return NULL;
    gm_list_remove(&b->bin);
    b->free = false;
    p->used += size;
    p->used_high = GM_MAX(p->used_high, p->used);
    return b;
}

/* --- segments --------------------------------------------------------------------------------- */

static struct segment *segment_create(struct rt_pool *p, enum size_class class, uint64_t size)
{
    struct segment *s = malloc(sizeof(*s));
    struct rt_block *b = malloc(sizeof(*b));
    uint64_t address = 0;
    if (!s || !b || (p->max && size > p->max - GM_MIN(p->reserved, p->max)) ||
        rt_request_alloc(rt_session, size, 0, WIRE_MEMORY_KIND_DEVICE, p->device, &address) !=
            CUDA_SUCCESS) {
        free(s);
        free(b);
        return NULL;
    }
    *s = (struct segment) { .pool = p, .address = address, .size = size, .class = class };
    *b = (struct rt_block) { .segment = s, .address = address, .size = size, .free = true };
    gm_list_init(&s->blocks);
    gm_list_append(&s->blocks, &b->link);
    gm_list_init(&b->bin);
    bin_put(b);
    gm_list_append(&p->segments, &s->link);
    p->reserved += size;
    p->reserved_high = GM_MAX(p->reserved_high, p->reserved);
    return s;
}

static bool segment_is_idle(struct segment *s)
{
    coalesce(s);
    struct rt_block *b = gm_list_entry(s->blocks.next, struct rt_block, link);
    return b->free && b->size == s->size && unused(b);
}

static void segment_destroy(struct segment *s)
{
    struct rt_block *b = gm_list_entry(s->blocks.next, struct rt_block, link);
    s->pool->reserved -= s->size;
    (void)rt_request_free(rt_session, s->address);
    gm_list_remove(&b->bin);
    gm_list_remove(&s->link);
    free(b);
    free(s);
}

static bool trim(struct rt_pool *p, uint64_t keep)
{
    bool any = false;
    gm_list_for_each_safe (s, &p->segments, struct segment, link) {
        if (p->reserved < s->size || p->reserved - s->size < keep || !segment_is_idle(s))
            continue;
        segment_destroy(s);
        any = true;
    }
    return any;
}

/* --- pools ------------------------------------------------------------------------------------ */

/* A pool that is to have less than a segment has one. */
static uint64_t whole_segments(uint64_t size)
{
    uint64_t whole;
    return gm_align_up(size, SEGMENT_UNIT, &whole) ? whole : size;
}

static int create(int device, uint64_t max, uint64_t name, bool imported, struct rt_pool **out)
{
    struct rt_pool *p = rt_object_take(&pools);
    if (!p)
        return CUDA_ERROR_OUT_OF_MEMORY;
    p->device = device;
    p->max = whole_segments(max);
    p->name = name;
    p->imported = imported;
    p->follow_events = p->opportunistic = p->internal = true;
    gm_list_init(&p->segments);
    for (unsigned c = 0; c < SIZE_CLASSES; c++)
        for (unsigned i = 0; i < BINS; i++)
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

static struct rt_pool *the_default(int device)
{
    if (!default_pools[device])
        (void)create(device, 0, 0, false, &default_pools[device]);
    return default_pools[device];
}

struct rt_pool *rt_pool_default(int device)
{
    pthread_mutex_lock(&lock);
    struct rt_pool *p = the_default(device);
    pthread_mutex_unlock(&lock);
    return p;
}

struct rt_pool *rt_pool_current(int device)
{
    pthread_mutex_lock(&lock);
    struct rt_pool *p = current_pools[device] ? current_pools[device] : the_default(device);
    pthread_mutex_unlock(&lock);
    return p;
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
    return p->destroyed ? NULL : rt_pool_handle(p);
}

const struct rt_pool *rt_block_source(const struct rt_block *b)
{
    return b->segment->pool;
}

uint64_t rt_block_segment(const struct rt_block *b)
{
    return b->segment->address;
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
    (void)trim(p, 0);
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
    (void)trim(p, keep);
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
        (void)trim(p, p->threshold);
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
        (void)trim(p, GM_MAX(p->threshold, p->used + KEEP));
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
        t->any |= trim(p, t->all ? 0 : p->threshold);
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

enum reuse {
    REUSE_NOW, /* unused, or last used by the same stream */
    REUSE_ANY, /* also blocks that have to be waited for */
};

static struct rt_block *find(struct rt_pool *p, enum size_class class, uint32_t number,
                             uint64_t size, enum reuse reuse)
{
    for (unsigned i = bin_of(size); i < BINS; i++) {
        struct rt_block *best = NULL;
        gm_list_for_each (b, &p->bins[class][i], struct rt_block, bin) {
            if (b->size < size || (best && best->size <= b->size))
                continue;
            bool now = b->seq == 0 || b->number == number || (p->opportunistic && unused(b));
            if (now || reuse == REUSE_ANY)
                best = b;
            if (best && best->size == size)
                break;
        }
        if (best)
            return best;
    }
    return NULL;
}

/* Makes the next work of `st` wait for the block's last user. */
static int wait_for(struct rt_block *b, struct rt_stream *st)
{
    int r = rt_queue_begin(st);
    if (r)
        return r;
    r = rt_queue_put_wait(st, b->number, b->seq);
    rt_queue_end();
    return r;
}

/* Finds a free block for `size` bytes, or gets a segment for it from the server. Returns NULL if
 * there is no room. */
static struct rt_block *obtain(struct rt_pool *p, struct rt_stream *st, enum size_class class,
                               uint64_t size)
{
    struct rt_block *b = find(p, class, st->number, size, REUSE_NOW);
    if (b)
        return b;
    gm_list_for_each (s, &p->segments, struct segment, link)
        if (s->class == class)
            coalesce(s);
    b = find(p, class, st->number, size, REUSE_NOW);
    if (b)
        return b;
    uint64_t exact = whole_segments(size);
    uint64_t usual = class == SMALL ? SMALL_SEGMENT : GM_MAX(exact, (uint64_t)LARGE_SEGMENT);
    struct segment *s = segment_create(p, class, usual);
    if (!s && class == LARGE && exact < LARGE_SEGMENT)
        s = segment_create(p, class, exact);
    if (s)
        return gm_list_entry(s->blocks.next, struct rt_block, link);
    b = class == SMALL ? find(p, LARGE, st->number, size, REUSE_NOW) : NULL;
    if (!b && p->internal) {
        b = find(p, class, st->number, size, REUSE_ANY);
        if (b && wait_for(b, st) != CUDA_SUCCESS)
            b = NULL;
    }
    return b;
}

int rt_pool_alloc(struct rt_pool *p, struct rt_stream *st, uint64_t size, uint64_t *address,
                  struct rt_block **out)
{
    enum size_class class = size <= SMALL_MAX ? SMALL : LARGE;
    if (size == 0 || p->imported)
        return CUDA_ERROR_INVALID_VALUE;
    if (size > 1ull << 47 || !gm_align_up(size, GRANULE, &size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    struct rt_block *b = p->destroyed ? NULL : obtain(p, st, class, size);
    b = b ? take(b, size) : NULL;
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
    b->free = true;
    b->number = number;
    b->seq = seq;
    p->used -= b->size;
    p->synchronized = false;
    bin_put(b);
    struct rt_block *before = neighbour(b, b->link.prev);
    (void)merge(b);
    if (before)
        (void)merge(before);
    end_if_empty(p);
    pthread_mutex_unlock(&lock);
    atomic_store_explicit(&release_due, true, memory_order_relaxed);
}
