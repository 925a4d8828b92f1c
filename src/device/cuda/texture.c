/*
 * Texture and surface objects of a client. Kernels get the driver's own handle. To destroy an
 * object the client names it by a number of ours, so that it can destroy only its own.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "device/cuda/array.h"
#include "device/cuda/call.h"

#define OBJECTS_MAX 65536u

_Static_assert(sizeof(CUDA_TEXTURE_DESC) == 104 && sizeof(CUDA_RESOURCE_VIEW_DESC) == 112,
               "as they travel");

/* The range begins in the client's memory and ends in its window. It may end behind the memory, as
 * it does in some programs: a kernel that reads there faults. */
static bool may_read(struct dev_client *c, uint64_t address, uint64_t size)
{
    uint64_t window = 2 * c->half;
    bool inside = address - c->base < window;
    return inside ? size <= window - (address - c->base) && cuda_holds(c, address, 1)
                  : cuda_holds(c, address, size);
}

/* Arrays by their numbers, memory in the client's window. */
static CUresult read_resource(struct dev_client *c, const struct wire_call_object_create *w,
                              CUDA_RESOURCE_DESC *d)
{
    struct cuda_array *a =
        cuda_array_find(c, w->array, w->type == CU_RESOURCE_TYPE_ARRAY ? w->level : 0);
    uint64_t element = dev_array_element(w->format, w->channels), row, size;
    if (a && a->gpu != c->asked)
        a = NULL;
    memset(d, 0, sizeof(*d));
    d->resType = (CUresourcetype)w->type;
    switch (w->type) {
    case CU_RESOURCE_TYPE_ARRAY:
        return a ? cuda_array_level(c, a, w->level, &d->res.array.hArray)
                 : CUDA_ERROR_INVALID_HANDLE;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        if (!a || !a->mipmap)
            return CUDA_ERROR_INVALID_HANDLE;
        d->res.mipmap.hMipmappedArray = a->mipmap;
        return CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_LINEAR:
        d->res.linear.devPtr = w->address;
        d->res.linear.format = (CUarray_format)w->format;
        d->res.linear.numChannels = w->channels;
        d->res.linear.sizeInBytes = w->size;
        return element && w->size && may_read(c, w->address, w->size) ? CUDA_SUCCESS
                                                                      : CUDA_ERROR_INVALID_VALUE;
    case CU_RESOURCE_TYPE_PITCH2D:
        d->res.pitch2D.devPtr = w->address;
        d->res.pitch2D.format = (CUarray_format)w->format;
        d->res.pitch2D.numChannels = w->channels;
        d->res.pitch2D.width = w->width;
        d->res.pitch2D.height = w->height;
        d->res.pitch2D.pitchInBytes = w->pitch;
        if (!element || !w->width || !w->height ||
            __builtin_mul_overflow(w->width, element, &row) || row > w->pitch ||
            __builtin_mul_overflow(w->pitch, w->height - 1, &size) ||
            __builtin_add_overflow(size, row, &size) || !may_read(c, w->address, size))
            return CUDA_ERROR_INVALID_VALUE;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Descriptions without pointers: the driver checks them. */
static CUresult make(struct dev_client *c, const struct wire_call_object_create *w,
                     CUDA_RESOURCE_DESC *d, uint64_t *handle)
{
    const struct cuda_driver *api = &c->dev->api;
    CUDA_TEXTURE_DESC texture;
    CUDA_RESOURCE_VIEW_DESC view;
    unsigned long long made = 0;
    CUresult r;
    if (w->surface) {
        r = w->type == CU_RESOURCE_TYPE_ARRAY ? api->cuSurfObjectCreate(&made, d)
                                              : CUDA_ERROR_INVALID_VALUE;
    } else {
        if (w->texture.size != sizeof(texture) || (w->view.size && w->view.size != sizeof(view)))
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(&texture, w->texture.data, sizeof(texture));
        if (w->view.size)
            memcpy(&view, w->view.data, sizeof(view));
        r = api->cuTexObjectCreate(&made, d, &texture, w->view.size ? &view : NULL);
    }
    *handle = made;
    return r;
}

static struct cuda_object *place(struct dev_client *c, uint32_t *number)
{
    for (uint32_t i = c->objects.free; i < c->objects.count; i++)
        if (!c->objects.at[i].exists) {
            c->objects.free = i + 1;
            *number = i + 1;
            return &c->objects.at[i];
        }
    if (!gm_array_room(&c->objects.at, sizeof(*c->objects.at), c->objects.count, OBJECTS_MAX))
        return NULL;
    *number = c->objects.free = ++c->objects.count;
    return memset(&c->objects.at[*number - 1], 0, sizeof(*c->objects.at));
}

static void destroy(struct dev_client *c, struct cuda_object *o)
{
    struct cuda_array *a = o->array ? &c->arrays.at[o->array - 1] : NULL;
    cuda_enter(o->gpu);
    if (o->surface)
        (void)c->dev->api.cuSurfObjectDestroy(o->handle);
    else
        (void)c->dev->api.cuTexObjectDestroy(o->handle);
    if (a)
        a->users--;
    memset(o, 0, sizeof(*o));
    c->objects.free = GM_MIN(c->objects.free, (uint32_t)(o - c->objects.at));
}

int cuda_object_create(struct dev_client *c, struct wire_dec *args, struct wire_enc *reply)
{
    struct wire_call_object_create w;
    CUDA_RESOURCE_DESC resource;
    uint64_t handle;
    uint32_t number;
    wire_get_call_object_create(args, &w);
    if (args->fatal)
        return GM_CUDA_INVALID_VALUE;
    struct cuda_object *o = place(c, &number);
    if (!o)
        return GM_CUDA_OUT_OF_MEMORY;
    CUresult r = read_resource(c, &w, &resource);
    if (r == CUDA_SUCCESS)
        r = make(c, &w, &resource, &handle);
    if (r != CUDA_SUCCESS) {
        c->objects.free = GM_MIN(c->objects.free, number - 1);
        return (int)r;
    }
    bool of_array = w.type == CU_RESOURCE_TYPE_ARRAY || w.type == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    *o = (struct cuda_object) { .exists = true,
                                .surface = w.surface != 0,
                                .gpu = c->asked,
                                .handle = handle,
                                .array = of_array ? w.array : 0 };
    if (of_array)
        c->arrays.at[w.array - 1].users++;
    wire_put_call_object_is(reply,
                            &(struct wire_call_object_is) { .object = number, .handle = handle });
    return GM_CUDA_SUCCESS;
}

/* Kernels that still use the object read something undefined, as with the genuine driver. The array
 * stays while anything of the client runs. */
int cuda_object_destroy(struct dev_client *c, struct wire_dec *args, struct wire_enc *reply)
{
    struct wire_call_object w;
    (void)reply;
    wire_get_call_object(args, &w);
    if (args->fatal || !w.object || w.object > c->objects.count ||
        !c->objects.at[w.object - 1].exists)
        return GM_CUDA_INVALID_HANDLE;
    destroy(c, &c->objects.at[w.object - 1]);
    return GM_CUDA_SUCCESS;
}

void cuda_objects_finish(struct dev_client *c)
{
    for (uint32_t i = 0; i < c->objects.count; i++)
        if (c->objects.at[i].exists)
            destroy(c, &c->objects.at[i]);
    free(c->objects.at);
    c->objects.at = NULL;
    c->objects.count = 0;
}
