/*
 * What a copy has to know of an array on either side: the place in it, and the record that says so.
 */
#include "client/memory/copy.h"

#include "client/memory/array.h"

void rt_copy_place_array(struct rt_side *s)
{
    const struct rt_array *a = s->array;
    struct dev_array_place place;
    if (!a->memory)
        return;
    dev_array_place(&a->shape, a->level, &place);
    s->pitch = place.pitch;
    s->slice = place.slice;
    s->address = a->memory->address + place.offset + s->z * place.slice + s->y * place.pitch + s->x;
}

bool rt_copy_is_apart(const struct rt_side *s)
{
    return s->array && !s->array->memory;
}

int rt_copy_check_array(const struct rt_box *b, const struct rt_side *s)
{
    const struct rt_array *a = s->array;
    return dev_array_holds(&a->shape, a->level, s->x, s->y, s->z, b->width, b->height, b->depth)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

void rt_copy_array_record(const struct rt_box *b, uint64_t dst, uint64_t src,
                          struct wire_rec_copy_array *out)
{
    *out = (struct wire_rec_copy_array) {
        .head = { .op = WIRE_OP_COPY_ARRAY, .size = sizeof(*out) },
        .dst = dst,
        .src = src,
        .width = b->width,
        .height = b->height,
        .depth = b->depth,
        .dst_pitch = b->dst.pitch,
        .dst_slice = b->dst.slice,
        .src_pitch = b->src.pitch,
        .src_slice = b->src.slice,
    };
    if (b->dst.array) {
        out->dst_array = b->dst.array->number;
        out->dst_level = b->dst.array->level;
        out->dst_x = (uint32_t)b->dst.x; /* checked before: it is within the array */
        out->dst_y = (uint32_t)b->dst.y;
        out->dst_z = (uint32_t)b->dst.z;
    }
    if (b->src.array) {
        out->src_array = b->src.array->number;
        out->src_level = b->src.array->level;
        out->src_x = (uint32_t)b->src.x;
        out->src_y = (uint32_t)b->src.y;
        out->src_z = (uint32_t)b->src.z;
    }
}
