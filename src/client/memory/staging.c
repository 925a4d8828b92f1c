/*
 * Circles of slots. For a copy to the device a slot is filled and its record written, and while the
 * device copies that, the next slot is filled. For a copy from the device the records of all slots
 * are written first; each slot is emptied when its copy is done.
 *
 * Some circles have few large slots, others many small ones for copies that fit those. A slot has
 * one copy at a time, and there are as many copies on their way as there are slots.
 *
 * There are several circles of each kind. A copy that waits for its stream must not hold up copies
 * of other threads and streams, because its stream may be waiting for one of those. A circle serves
 * one copy at a time, and serves another stream only after its slots are done. The second circle is
 * made when a thread would have to wait for the first.
 */
#include "client/memory/staging.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* All slots together fit into the processor's cache, where the bytes of the device arrive. With
 * larger circles copies from the device took nearly twice as long (docs/measurements.md). */
#define CIRCLE_BYTES (2u << 20)
#define LARGE_SLOTS  4u
#define SMALL_SLOTS  32u
#define CIRCLES      16u
/* From this size on it is faster to write past the cache. */
#define PAST_CACHE_BYTES (16u << 10)

/* A few rows of one plane, or a part of one row. */
struct piece {
    uint64_t host, device;
    const struct rt_array *array; /* instead of `device` */
    uint64_t x, y, z;             /* the place in it */
    uint64_t width, rows;
    uint64_t host_pitch, device_pitch;
};

struct slot {
    uint32_t number; /* queue of the record that used the slot last */
    uint64_t seq;
    struct piece piece; /* to be copied out when the record is done; width 0: nothing */
};

/* Belongs to the copy that uses it, or is protected by the lock. */
struct circle {
    bool busy;       /* lock */
    uint64_t memory; /* 0: not allocated yet */
    unsigned count;  /* number of its slots: LARGE_SLOTS or SMALL_SLOTS */
    struct slot slots[SMALL_SLOTS];
    unsigned next; /* the next slot */
};

/* The circles of one kind. */
struct size {
    struct circle circles[CIRCLES];
    unsigned count; /* lock; fewer if there was no memory for more */
    const unsigned slots;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER; /* signalled when a circle becomes free */
static struct size large = { .count = CIRCLES, .slots = LARGE_SLOTS };
static struct size small = { .count = CIRCLES, .slots = SMALL_SLOTS };

static uint64_t slot_size(const struct circle *c)
{
    return CIRCLE_BYTES / c->count;
}

static void *slot_bytes(const struct circle *c, const struct slot *s)
{
    return (void *)(uintptr_t)(c->memory + (uint64_t)(s - c->slots) * slot_size(c));
}

/* --- circles ---------------------------------------------------------------------------------- */

/* Whether nothing in the circle waits for another stream than `number`. */
static bool is_open(const struct circle *c, uint32_t number)
{
    for (unsigned i = 0; i < c->count; i++) {
        const struct slot *s = &c->slots[i];
        if (s->seq && s->number != number && !rt_queue_done(rt_session, s->number, s->seq))
            return false;
    }
    return true;
}

/* Chooses a circle for a copy in the stream. Returns NULL if all are busy. If no other circle can
 * be made it may be one that copies of other streams have to leave first. Called with the lock
 * held. */
static struct circle *choose(struct size *size, uint32_t number)
{
    struct circle *spare = NULL;
    for (unsigned i = 0; i < size->count; i++) {
        struct circle *c = &size->circles[i];
        if (!c->busy && is_open(c, number))
            return c;
        if (!c->busy && !spare)
            spare = c;
    }
    return spare;
}

static void circle_give(struct circle *c)
{
    pthread_mutex_lock(&lock);
    c->busy = false;
    pthread_cond_broadcast(&freed);
    pthread_mutex_unlock(&lock);
}

/* Allocates the circle's memory, if it has none yet. If there is no memory the earlier circles have
 * to do. CUresult. */
static int circle_open(struct size *size, struct circle *c)
{
    if (c->memory)
        return CUDA_SUCCESS;
    c->count = size->slots;
    int r = rt_request_alloc(rt_session, CIRCLE_BYTES, 0, WIRE_MEMORY_KIND_HOST, 0, &c->memory);
    if (r == CUDA_SUCCESS || c == size->circles)
        return r;
    pthread_mutex_lock(&lock);
    size->count = GM_MIN(size->count, (unsigned)(c - size->circles));
    pthread_mutex_unlock(&lock);
    return r;
}

static int circle_take(struct size *size, const struct rt_stream *st, struct circle **out)
{
    for (;;) {
        struct circle *c;
        pthread_mutex_lock(&lock);
        while (!(c = choose(size, st->number)))
            pthread_cond_wait(&freed, &lock);
        c->busy = true;
        pthread_mutex_unlock(&lock);
        int r = circle_open(size, c);
        *out = c;
        if (r == CUDA_SUCCESS)
            return r;
        circle_give(c);
        if (r != CUDA_ERROR_OUT_OF_MEMORY || c == size->circles)
            return r;
    }
}

/* --- copies ----------------------------------------------------------------------------------- */

#ifdef __SSE2__
/* A memcpy() that writes past the cache: a large target is not read before it is written, and the
 * slots stay in the cache. */
static void copy_out(uint8_t *to, const uint8_t *from, size_t size)
{
    size_t head = -(uintptr_t)to % sizeof(__m128i);
    if (size < PAST_CACHE_BYTES) {
        memcpy(to, from, size);
        return;
    }
    memcpy(to, from, head);
    __m128i *t = (__m128i *)(void *)(to + head);
    const __m128i *f = (const __m128i *)(const void *)(from + head);
    size_t whole = (size - head) / sizeof(*t);
    for (size_t i = 0; i + 4 <= whole; i += 4) {
        __m128i a = _mm_loadu_si128(f + i), b = _mm_loadu_si128(f + i + 1);
        __m128i c = _mm_loadu_si128(f + i + 2), d = _mm_loadu_si128(f + i + 3);
        _mm_stream_si128(t + i, a);
        _mm_stream_si128(t + i + 1, b);
        _mm_stream_si128(t + i + 2, c);
        _mm_stream_si128(t + i + 3, d);
    }
    _mm_sfence(); /* other threads may see an ordinary store of ours next */
    size_t done = head + whole / 4 * 4 * sizeof(*t);
    memcpy(to + done, from + done, size - done);
}
#else
#define copy_out memcpy
#endif

/* Moves rows between the program's memory and the slot, in which they are packed. */
static void move(const struct circle *c, const struct slot *s, const struct piece *p, bool in)
{
    uint8_t *packed = slot_bytes(c, s);
    uint8_t *at = (uint8_t *)(uintptr_t)p->host;
    for (uint64_t y = 0; y < p->rows; y++, packed += p->width, at += p->host_pitch)
        if (in)
            memcpy(packed, at, p->width);
        else
            copy_out(at, packed, p->width);
}

/* Makes the record of a piece between an array and its slot. */
static void array_record(const struct piece *p, uint64_t packed, bool to_device,
                         struct wire_rec_copy_array *out)
{
    const struct rt_side array = {
        .kind = RT_SIDE_ARRAY, .array = p->array, .x = p->x, .y = p->y, .z = p->z
    };
    const struct rt_side memory_side = { .pitch = p->width, .slice = p->width * p->rows };
    const struct rt_box box = { .dst = to_device ? array : memory_side,
                                .src = to_device ? memory_side : array,
                                .width = p->width,
                                .height = p->rows,
                                .depth = 1 };
    rt_copy_array_record(&box, to_device ? 0 : packed, to_device ? packed : 0, out);
}

static int submit(struct rt_stream *st, const struct circle *c, struct slot *s,
                  const struct piece *p, bool to_device)
{
    uint64_t packed = (uintptr_t)slot_bytes(c, s);
    union {
        struct wire_record head;
        struct wire_rec_copy copy;
        struct wire_rec_copy_array array;
    } r;
    size_t size = p->array ? sizeof(r.array) : sizeof(r.copy);
    if (p->array)
        array_record(p, packed, to_device, &r.array);
    else
        r.copy = (struct wire_rec_copy) {
            .head.op = WIRE_OP_COPY,
            .dst = to_device ? p->device : packed,
            .src = to_device ? packed : p->device,
            .width = p->width,
            .height = p->rows,
            .depth = 1,
            .dst_pitch = to_device ? p->device_pitch : p->width,
            .src_pitch = to_device ? p->width : p->device_pitch,
        };
    int result = rt_queue_begin(st);
    if (result)
        return result;
    s->number = st->number;
    result = rt_queue_put(st, &r.head, size, NULL, 0, &s->seq);
    rt_queue_end();
    return result;
}

/* Waits for the slot's last copy, and takes out what it brought. */
static int settle(const struct circle *c, struct slot *s)
{
    int r = s->seq ? rt_session_wait(rt_session, s->number, s->seq, NULL) : CUDA_SUCCESS;
    s->seq = 0;
    if (r == CUDA_SUCCESS && s->piece.width)
        move(c, s, &s->piece, false);
    s->piece.width = 0;
    return r;
}

static int copy_piece(struct rt_stream *st, struct circle *c, const struct piece *p, bool to_device)
{
    struct slot *s = &c->slots[c->next];
    c->next = (c->next + 1) % c->count;
    int r = settle(c, s);
    if (r)
        return r;
    if (to_device)
        move(c, s, p, true);
    r = submit(st, c, s, p, to_device);
    if (r == CUDA_SUCCESS && !to_device)
        s->piece = *p;
    return r;
}

/* Copies one plane, in pieces that fit a slot. */
static int copy_plane(struct rt_stream *st, struct circle *c, struct piece plane, bool to_device)
{
    const uint64_t most = slot_size(c);
    uint64_t width = plane.width, rows = plane.rows;
    int r = CUDA_SUCCESS;
    if (!plane.array && plane.host_pitch == width && plane.device_pitch == width) {
        width *= rows;
        rows = 1;
    }
    uint64_t rows_once = GM_MAX(most / width, (uint64_t)1);
    for (uint64_t y = 0; y < rows && r == CUDA_SUCCESS; y += rows_once)
        for (uint64_t x = 0; x < width && r == CUDA_SUCCESS; x += most) {
            struct piece p = plane;
            p.host += y * plane.host_pitch + x;
            p.device += y * plane.device_pitch + x;
            p.x += x;
            p.y += y;
            p.width = GM_MIN(width - x, most);
            p.rows = GM_MIN(rows - y, rows_once);
            r = copy_piece(st, c, &p, to_device);
        }
    return r;
}

int rt_staging_copy(struct rt_stream *st, const struct rt_box *b, uint64_t device, bool to_device)
{
    const struct rt_side *host_side = to_device ? &b->src : &b->dst;
    const struct rt_side *device_side = to_device ? &b->dst : &b->src;
    struct circle *c;
    uint64_t plane;
    bool fits =
        !__builtin_mul_overflow(b->width, b->height, &plane) && plane <= CIRCLE_BYTES / SMALL_SLOTS;
    int r = circle_take(fits ? &small : &large, st, &c);
    if (r)
        return r;
    for (uint64_t z = 0; z < b->depth && r == CUDA_SUCCESS; z++)
        r = copy_plane(st, c,
                       (struct piece) { .host = host_side->address + z * host_side->slice,
                                        .device = device + z * device_side->slice,
                                        .array = device_side->array,
                                        .x = device_side->x,
                                        .y = device_side->y,
                                        .z = device_side->z + z,
                                        .width = b->width,
                                        .rows = b->height,
                                        .host_pitch = host_side->pitch,
                                        .device_pitch = device_side->pitch },
                       to_device);
    for (unsigned i = 0; i < c->count && !to_device; i++) { /* the oldest first */
        int late = settle(c, &c->slots[(c->next + i) % c->count]);
        r = r ? r : late;
    }
    circle_give(c);
    return r;
}
