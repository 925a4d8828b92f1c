/*
 * Clears memory, in a given stream or in one that no program has, of which each device has one.
 */
#include "client/memory/clear.h"

static struct rt_stream *streams[RT_DEVICES]; /* the pools' lock; made at first use */

int rt_clear_in(struct rt_stream *st, uint64_t address, uint64_t size, uint64_t *seq)
{
    struct wire_rec_fill r = { .head = { .op = WIRE_OP_FILL, .size = sizeof(r) },
                               .dst = address,
                               .pitch = size,
                               .width = size / sizeof(uint32_t),
                               .height = 1,
                               .element_size = sizeof(uint32_t) };
    int result = rt_queue_submit(st, &r.head, sizeof(r), NULL, 0);
    *seq = rt_queue_issued(rt_session, st->number);
    return result;
}

static int create(int device, struct rt_stream **st)
{
    int r = rt_stream_create_bare(device, rt_session->devices[device].priority_greatest, st);
    if (r)
        return r;
    (*st)->role = RT_ROLE_OWN;
    atomic_store_explicit(&rt_session->queues[(*st)->number].clears, true, memory_order_relaxed);
    return CUDA_SUCCESS;
}

int rt_clear(int device, uint64_t address, uint64_t size, uint32_t *number, uint64_t *seq)
{
    struct rt_stream **st = &streams[device];
    int r = *st ? CUDA_SUCCESS : create(device, st);
    if (r)
        return r;
    *number = (*st)->number;
    return rt_clear_in(*st, address, size, seq);
}
