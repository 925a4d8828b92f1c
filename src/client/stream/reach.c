/*
 * Where there are several devices, checks the address of each operand on its way into the ring, and
 * notes in the queue if it belongs to another device.
 */
#include "client/stream/reach.h"

#include "client/session/map.h"
#include "client/stream/peer.h"

/* Bytes from the first to the last. Wrong numbers are refused elsewhere. */
static uint64_t extent(uint64_t width, uint64_t height, uint64_t pitch, uint64_t depth,
                       uint64_t slice)
{
    return width + (height ? height - 1 : 0) * pitch + (depth ? depth - 1 : 0) * slice;
}

static bool is_other(uint64_t address, uint64_t size, uint32_t index)
{
    struct rt_range range;
    if (!rt_memory_find(address, &range) || !rt_memory_is_device(&range))
        return false;
    /* Virtual memory may continue in a mapping of another device. */
    return rt_session->devices[range.device].index != index ||
           size > range.size - (address - range.base);
}

bool rt_reach_is_abroad(const struct wire_record *r, uint32_t index)
{
    const void *record = r;
    switch (r->op) {
    case WIRE_OP_COPY: {
        const struct wire_rec_copy *c = record;
        return is_other(c->dst, extent(c->width, c->height, c->dst_pitch, c->depth, c->dst_slice),
                        index) ||
               is_other(c->src, extent(c->width, c->height, c->src_pitch, c->depth, c->src_slice),
                        index);
    }
    case WIRE_OP_WRITE:
        return is_other(((const struct wire_rec_write *)record)->dst, 1, index);
    case WIRE_OP_FILL: {
        const struct wire_rec_fill *f = record;
        return is_other(f->dst, extent(f->width * f->element_size, f->height, f->pitch, 1, 0),
                        index);
    }
    case WIRE_OP_COPY_ARRAY: /* the operation does not say whose the array is */
    case WIRE_OP_GRAPH:      /* it may have such a copy */
        return true;
    default:
        return false;
    }
}

uint32_t rt_reach_of_device(int device)
{
    return 1u << device | rt_peer_devices(device);
}

uint32_t rt_reach_of(const struct rt_range *range)
{
    uint32_t devices = 0;
    if (!rt_memory_is_device(range))
        return UINT32_MAX;
    if (range->kind != RT_MEMORY_VIRTUAL)
        return rt_reach_of_device(range->device);
    if (range->access) /* copies to that memory go by way of its device */
        devices |= 1u << range->device;
    for (int d = 0; d < (int)rt_session->device_count; d++)
        devices |= rt_memory_access(range, d) ? 1u << d : 0;
    return devices;
}

int rt_reach_wait(uint32_t devices)
{
    struct rt_session *s = rt_session;
    uint32_t used = atomic_load_explicit(&s->queues_used, memory_order_acquire), indices = 0;
    for (unsigned d = 0; d < s->device_count; d++)
        if (devices >> d & 1)
            indices |= 1u << s->devices[d].index;
    for (uint32_t i = 0; i < used; i++) {
        const struct rt_queue *queue = &s->queues[i];
        if (atomic_load_explicit(&queue->clears, memory_order_relaxed))
            continue;
        bool all = indices >> queue->device & 1;
        uint64_t seq = all ? rt_queue_issued(s, i)
                           : atomic_load_explicit(&queue->abroad, memory_order_acquire);
        int r = rt_session_wait(s, i, seq, NULL);
        if (r)
            return r;
    }
    return rt_session_error(s);
}
