/*
 * Segments and blocks. A segment's blocks form a list in the order of their addresses. A free block
 * is also in a bin, by the power of two of its size.
 *
 * Each free block remembers the last operation that may use it. Two neighbours become one if at
 * least one of them is certainly unused, or if both wait for the same stream.
 */
#include "client/memory/block.h"

#include <stdlib.h>

#include "client/memory/clear.h"

#define GRANULE       512u
#define SMALL_SEGMENT (2u << 20)
#define LARGE_SEGMENT (32u << 20)
#define CANDIDATES    16u /* free blocks that are compared before the best of them is taken */
/* Unused at the beginning of rt_pool_private()'s segments for small allocations: what is before
 * them may be a module's, and programs write a little before their memory. */
#define GUARD (64u << 10)

static unsigned bin_of(uint64_t size)
{
    unsigned n = 63u - (unsigned)__builtin_clzll(size / GRANULE);
    return GM_MIN(n, RT_BLOCK_BINS - 1);
}

static bool unused(struct rt_block *b)
{
    if (b->seq && rt_queue_done(rt_session, b->number, b->seq))
        b->seq = 0;
    return b->seq == 0;
}

static void bin_put(struct rt_block *b)
{
    if (!b->segment->shared)
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

static void coalesce(struct rt_segment *s)
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

static uint64_t guard(const struct rt_segment *s)
{
    return s->pool->private && s->class == RT_SMALL ? GUARD : 0;
}

static struct rt_segment *segment_create(struct rt_pool *p, enum rt_size_class class, uint64_t size)
{
    struct rt_segment *s = malloc(sizeof(*s));
    struct rt_block *b = malloc(sizeof(*b));
    uint64_t address = 0;
    if (!s || !b || (p->max && size > p->max - GM_MIN(p->reserved, p->max)) ||
        rt_request_alloc(rt_session, size, 0, WIRE_MEMORY_KIND_DEVICE, p->device, &address) !=
            CUDA_SUCCESS) {
        free(s);
        free(b);
        return NULL;
    }
    *s = (struct rt_segment) {
        .pool = p, .address = address, .size = size, .class = class, .written = address
    };
    *b = (struct rt_block) {
        .segment = s, .address = address + guard(s), .size = size - guard(s), .free = true
    };
    gm_list_init(&s->blocks);
    gm_list_append(&s->blocks, &b->link);
    gm_list_init(&b->bin);
    bin_put(b);
    gm_list_append(&p->segments, &s->link);
    p->reserved += size;
    p->reserved_high = GM_MAX(p->reserved_high, p->reserved);
    return s;
}

/* Whether all of it is one unused block. */
static bool segment_is_whole(struct rt_segment *s)
{
    struct rt_block *b = gm_list_entry(s->blocks.next, struct rt_block, link);
    return b->free && b->size == s->size - guard(s) && unused(b);
}

static bool segment_is_idle(struct rt_segment *s)
{
    coalesce(s);
    return segment_is_whole(s);
}

static void segment_destroy(struct rt_segment *s)
{
    struct rt_block *b = gm_list_entry(s->blocks.next, struct rt_block, link);
    s->pool->reserved -= s->size;
    (void)rt_request_free(rt_session, s->address);
    gm_list_remove(&b->bin);
    gm_list_remove(&s->link);
    free(b);
    free(s);
}

bool rt_segments_trim(struct rt_pool *p, uint64_t keep)
{
    bool any = false;
    gm_list_for_each_safe (s, &p->segments, struct rt_segment, link) {
        if (p->reserved < s->size || p->reserved - s->size < keep || !segment_is_idle(s))
            continue;
        segment_destroy(s);
        any = true;
    }
    return any;
}

/* --- handing out ------------------------------------------------------------------------------ */

enum reuse {
    REUSE_NOW, /* unused, or last used by the same stream */
    REUSE_ANY, /* also blocks that have to be waited for */
};

static struct rt_block *find(struct rt_pool *p, enum rt_size_class class, uint32_t number,
                             uint64_t size, enum reuse reuse)
{
    for (unsigned i = bin_of(size); i < RT_BLOCK_BINS; i++) {
        struct rt_block *best = NULL;
        unsigned candidates = 0;
        gm_list_for_each (b, &p->bins[class][i], struct rt_block, bin) {
            if (best && ++candidates == CANDIDATES)
                break;
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

/* What a new segment has if there is room. To ask the server takes long, so segments grow with what
 * the pool has. */
static uint64_t usual_size(const struct rt_pool *p, enum rt_size_class class)
{
    const uint64_t part = rt_segment_size(p->reserved / 8);
    return class == RT_LARGE && !p->private ? LARGE_SEGMENT : GM_MIN(part, (uint64_t)LARGE_SEGMENT);
}

static struct rt_block *obtain(struct rt_pool *p, struct rt_stream *st, enum rt_size_class class,
                               uint64_t size)
{
    const uint32_t number = st ? st->number : TP_STREAMS;
    struct rt_block *b = find(p, class, number, size, REUSE_NOW);
    if (b)
        return b;
    gm_list_for_each (s, &p->segments, struct rt_segment, link)
        if (s->class == class)
            coalesce(s);
    b = find(p, class, number, size, REUSE_NOW);
    if (b)
        return b;
    const uint64_t least = class == RT_SMALL ? SMALL_SEGMENT : rt_segment_size(size);
    const uint64_t usual = usual_size(p, class);
    struct rt_segment *s = segment_create(p, class, GM_MAX(least, usual));
    if (!s && least < usual)
        s = segment_create(p, class, least);
    if (s)
        return gm_list_entry(s->blocks.next, struct rt_block, link);
    b = class == RT_SMALL ? find(p, RT_LARGE, number, size, REUSE_NOW) : NULL;
    if (!b && st && p->internal) {
        b = find(p, class, number, size, REUSE_ANY);
        if (b && wait_for(b, st) != CUDA_SUCCESS)
            b = NULL;
    }
    return b;
}

/* --- clearing --------------------------------------------------------------------------------- */

/* Whether the driver would have given the memory back to the system and got it again: memory that
 * belongs to no pool when it was freed, a pool's at the synchronisation behind it. `whole`: nothing
 * is in use in the segment. */
static bool is_zero_natively(const struct rt_segment *s, bool whole)
{
    const struct rt_pool *p = s->pool;
    if (p->private)
        return whole || s->class == RT_LARGE;
    return whole && p->synchronized && p->reserved > p->threshold;
}

/* Clears what was written in the block's first `size` bytes: before the next work of `st`, or
 * before the block's `seq`. */
static void clear(struct rt_block *b, struct rt_stream *st, uint64_t size)
{
    const struct rt_segment *s = b->segment;
    if (s->written <= b->address)
        return;
    size = GM_MIN(size, s->written - b->address);
    b->number = st ? st->number : 0;
    int r = st ? rt_clear_in(st, b->address, size, &b->seq)
               : rt_clear(s->pool->device, b->address, size, &b->number, &b->seq);
    if (r) /* the session has ended, or nearly: the program gets an error soon */
        b->seq = 0;
}

/* Two of the largest small allocations fit into a segment. */
static enum rt_size_class class_of(const struct rt_pool *p, uint64_t size)
{
    const uint64_t room = SMALL_SEGMENT - (p->private ? GUARD : 0);
    return size <= room / 2 ? RT_SMALL : RT_LARGE;
}

struct rt_block *rt_block_take(struct rt_pool *p, struct rt_stream *st, uint64_t size)
{
    const enum rt_size_class class = class_of(p, size);
    if (size > 1ull << 47 || !gm_align_up(size, GRANULE, &size))
        return NULL;
    struct rt_block *b = obtain(p, st, class, size);
    if (!b)
        return NULL;
    struct rt_segment *s = b->segment;
    const bool whole = segment_is_whole(s), zero = is_zero_natively(s, whole);
    if (zero && whole) {
        clear(b, st, b->size);
        s->written = s->address;
    }
    b = take(b, size);
    if (b && zero && !whole)
        clear(b, st, size);
    if (b)
        s->written = GM_MAX(s->written, b->address + size);
    return b;
}

void rt_block_put(struct rt_block *b, uint32_t number, uint64_t seq)
{
    struct rt_segment *s = b->segment;
    struct rt_pool *p = s->pool;
    b->free = true;
    b->number = number;
    b->seq = seq;
    p->used -= b->size;
    bin_put(b);
    struct rt_block *before = neighbour(b, b->link.prev);
    (void)merge(b);
    if (before)
        (void)merge(before);
    if (s->shared && segment_is_idle(s))
        segment_destroy(s);
    else if (p->private && p->reserved - p->used >= 2 * RT_KEEP && segment_is_whole(s))
        (void)rt_segments_trim(p, p->used + RT_KEEP);
}

void rt_segment_share(struct rt_segment *s)
{
    s->shared = true;
    gm_list_for_each (b, &s->blocks, struct rt_block, link)
        gm_list_remove(&b->bin);
}
