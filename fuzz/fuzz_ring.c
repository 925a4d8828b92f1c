/*
 * A ring whose producer is hostile: the input is the ring's shared indices and then its memory. The
 * consumer reads until the ring is empty or broken; every record that it is given fits its own
 * size, and reading ends.
 *
 *   u32 tail, u32 head, then up to RING bytes of data
 */
#include <stdlib.h>
#include <string.h>

#include "transport/ring.h"

enum { RING = 1 << 14 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a record's reader would do: look at every byte that the header promises. */
static int look(void *arg, const struct wire_record *r)
{
    const uint8_t *p = (const uint8_t *)r;
    for (uint32_t i = 0; i < r->size; i++)
        *(unsigned *)arg += p[i];
    return 0;
}

#define LOOK(name)                                                                                 \
    static int look_##name(void *arg, const struct wire_rec_##name *r)                             \
    {                                                                                              \
        return look(arg, &r->head);                                                                \
    }
LOOK(launch)
LOOK(copy)
LOOK(write)
LOOK(fill)
LOOK(wait)
LOOK(stamp)
LOOK(gate)
LOOK(mark)
LOOK(retire)
LOOK(call)
LOOK(copy_array)
LOOK(run)
LOOK(wait_value)
LOOK(graph)
LOOK(condition)
LOOK(body)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct wire_record_ops ops = {
        .launch = look_launch,
        .copy = look_copy,
        .write = look_write,
        .fill = look_fill,
        .wait = look_wait,
        .stamp = look_stamp,
        .gate = look_gate,
        .mark = look_mark,
        .retire = look_retire,
        .call = look_call,
        .copy_array = look_copy_array,
        .run = look_run,
        .wait_value = look_wait_value,
        .graph = look_graph,
        .condition = look_condition,
        .body = look_body,
    };
    static struct tp_ring_shared shared;
    static uint8_t memory[RING];
    uint32_t indices[2];
    struct tp_ring ring;
    unsigned sum = 0;
    if (size < sizeof(indices))
        return 0;
    memcpy(indices, data, sizeof(indices));
    data += sizeof(indices);
    size -= sizeof(indices);
    memset(memory, 0, sizeof(memory));
    memcpy(memory, data, GM_MIN(size, sizeof(memory)));
    atomic_store(&shared.tail, indices[0]);
    atomic_store(&shared.head, indices[1]);
    tp_ring_init_consumer(&ring, &shared, memory, RING);

    for (unsigned records = 0;; records++) {
        /* As large as a record may be, from the heap: a sanitizer sees one byte more. */
        uint8_t *out = malloc(WIRE_RECORD_MAX);
        if (!out)
            return 0;
        int r = tp_ring_peek(&ring, out, WIRE_RECORD_MAX);
        if (r == 1) {
            (void)wire_record_dispatch(&ops, &sum, (const struct wire_record *)(const void *)out);
            tp_ring_advance(&ring);
        }
        free(out);
        if (r != 1)
            break;
        if (records > RING / sizeof(struct wire_record))
            abort(); /* more than can have been in it */
    }
    return 0;
}
