/*
 * cuTexObject* and cuSurfObject*. A table keeps what each handle was made of, because programs ask
 * for it.
 */
#include "client/memory/texture.h"

#include <stdlib.h>

#include "client/gen/api.h"
#include "client/memory/array.h"
#include "client/memory/descriptor.h"
#include "client/memory/memory.h"
#include "client/stream/call.h"
#include "client/stream/capture.h"
#include "client/session/mortal.h"

#define BUCKETS 1024u

struct object {
    struct object *next;
    struct rt_context *context;
    uint64_t handle;
    /* The executor's number; 0: the handle is a descriptor's address. */
    uint32_t number;
    struct rt_array_memory *memory; /* the array's memory, which it keeps; NULL: none */
    bool surface;
    bool has_view;
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC texture;
    CUDA_RESOURCE_VIEW_DESC view;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct object *buckets[BUCKETS]; /* lock; by handle */

/* Finds the place of the object with this handle, or where it would be put. Called with the lock
 * held. */
static struct object **find(uint64_t handle, bool surface)
{
    struct object **at = &buckets[(handle ^ handle >> 20 ^ handle >> 40) % BUCKETS];
    while (*at && ((*at)->handle != handle || (*at)->surface != surface))
        at = &(*at)->next;
    return at;
}

/* --- making ----------------------------------------------------------------------------------- */

static int read_array(CUarray handle, struct wire_call_object_create *w)
{
    const struct rt_array *a = rt_array_find(handle);
    if (!a)
        return rt_array_error(handle);
    w->array = a->number;
    w->level = a->level;
    return CUDA_SUCCESS;
}

/* Reads memory that begins in an allocation, by its address on the device. The genuine library does
 * not check where it ends, and programs rely on that; the device checks whether it ends in the
 * window. */
static int read_memory(CUdeviceptr address, uint64_t size, struct wire_call_object_create *w)
{
    struct rt_range range;
    return size && rt_memory_device_range(address, 1, &range, &w->address)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

static int read_resource(const CUDA_RESOURCE_DESC *d, struct wire_call_object_create *w)
{
    struct rt_array whole;
    uint64_t row, size;
    w->type = (uint32_t)d->resType;
    if (d->flags)
        return CUDA_ERROR_INVALID_VALUE;
    switch (d->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        return read_array(d->res.array.hArray, w);
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        if (!rt_mipmap_find(d->res.mipmap.hMipmappedArray, &whole))
            return rt_array_error(d->res.mipmap.hMipmappedArray);
        w->array = whole.number;
        return CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_LINEAR:
        w->format = (uint32_t)d->res.linear.format;
        w->channels = d->res.linear.numChannels;
        w->size = d->res.linear.sizeInBytes;
        return read_memory(d->res.linear.devPtr, w->size, w);
    case CU_RESOURCE_TYPE_PITCH2D:
        w->format = (uint32_t)d->res.pitch2D.format;
        w->channels = d->res.pitch2D.numChannels;
        w->width = d->res.pitch2D.width;
        w->height = d->res.pitch2D.height;
        w->pitch = d->res.pitch2D.pitchInBytes;
        if (!w->height ||
            __builtin_mul_overflow(w->width, (uint64_t)dev_array_element(w->format, w->channels),
                                   &row) ||
            row > w->pitch || __builtin_mul_overflow(w->pitch, w->height - 1, &size) ||
            __builtin_add_overflow(size, row, &size))
            return CUDA_ERROR_INVALID_VALUE;
        return read_memory(d->res.pitch2D.devPtr, size, w);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static int ask_create(const struct wire_call_object_create *w, struct object *o)
{
    struct wire_call_object_is is = { 0 };
    struct rt_call c;
    rt_call_begin(&c, WIRE_CALL_OBJECT_CREATE, 0);
    c.device = rt_session->devices[o->context->device].index;
    wire_put_call_object_create(&c.args, w);
    int r = rt_call_run(&c);
    if (r == CUDA_SUCCESS) {
        wire_get_call_object_is(&c.reply, &is);
        o->number = is.object;
        o->handle = is.handle;
    }
    return rt_call_end(&c, r);
}

static int ask_destroy(uint32_t number)
{
    struct rt_call c;
    rt_call_begin(&c, WIRE_CALL_OBJECT_DESTROY, 0);
    wire_put_call_object(&c.args, &(struct wire_call_object) { number });
    return rt_call_end(&c, rt_call_run(&c));
}

static int make_apart(struct object *o)
{
    struct wire_call_object_create w = { .surface = o->surface };
    if (!o->surface)
        w.texture = (struct wire_bytes) { &o->texture, sizeof(o->texture) };
    if (o->has_view)
        w.view = (struct wire_bytes) { &o->view, sizeof(o->view) };
    int r = read_resource(&o->resource, &w);
    r = r ? r : ask_create(&w, o);
    if (r == CUDA_SUCCESS)
        rt_mortal_add(1);
    return r;
}

static int make_descriptor(struct object *o)
{
    struct dev_texture t;
    int r = rt_descriptor_resource(&o->resource, o->has_view ? &o->view : NULL, o->surface, &t,
                                   &o->memory);
    if (r == CUDA_SUCCESS && !o->surface)
        r = rt_descriptor_sampler(&o->texture, &t);
    r = r ? r : rt_descriptor_take(o->context->device, &o->handle);
    if (r)
        return r;
    if (o->memory)
        rt_array_memory_take(o->memory);
    rt_descriptor_write(o->handle, &t);
    return CUDA_SUCCESS;
}

/* Makes the object from what `o` says. Frees `o` if that fails. */
static int create(struct object *o, unsigned long long *out)
{
    int r = rt_session->memory_apart ? make_apart(o) : make_descriptor(o);
    if (r) {
        free(o);
        return r;
    }
    pthread_mutex_lock(&lock);
    struct object **at = find(o->handle, o->surface);
    o->next = *at;
    *at = o;
    pthread_mutex_unlock(&lock);
    *out = o->handle;
    return CUDA_SUCCESS;
}

CUresult rt_cuTexObjectCreate(CUtexObject *pTexObject, const CUDA_RESOURCE_DESC *pResDesc,
                              const CUDA_TEXTURE_DESC *pTexDesc,
                              const CUDA_RESOURCE_VIEW_DESC *pResViewDesc)
{
    struct rt_context *c;
    int r = rt_enter_unsafe(&c);
    if (r)
        return r;
    if (!pTexObject || !pResDesc || !pTexDesc)
        return CUDA_ERROR_INVALID_VALUE;
    struct object *o = calloc(1, sizeof(*o));
    if (!o)
        return CUDA_ERROR_OUT_OF_MEMORY;
    o->context = rt_context_owner(c);
    o->resource = *pResDesc;
    o->texture = *pTexDesc;
    o->has_view = pResViewDesc != NULL;
    if (pResViewDesc)
        o->view = *pResViewDesc;
    return create(o, pTexObject);
}

CUresult rt_cuSurfObjectCreate(CUsurfObject *pSurfObject, const CUDA_RESOURCE_DESC *pResDesc)
{
    struct rt_context *c;
    int r = rt_enter_unsafe(&c);
    if (r)
        return r;
    if (!pSurfObject || !pResDesc || pResDesc->resType != CU_RESOURCE_TYPE_ARRAY)
        return CUDA_ERROR_INVALID_VALUE;
    struct object *o = calloc(1, sizeof(*o));
    if (!o)
        return CUDA_ERROR_OUT_OF_MEMORY;
    o->context = rt_context_owner(c);
    o->surface = true;
    o->resource = *pResDesc;
    return create(o, pSurfObject);
}

/* --- the end ---------------------------------------------------------------------------------- */

/* Ends an object that is in no list any more. */
static int end(struct object *o)
{
    int r = CUDA_SUCCESS;
    if (o->number) {
        r = ask_destroy(o->number);
        rt_mortal_add(-1);
    } else {
        rt_descriptor_give(o->handle);
        r = o->memory ? rt_array_memory_release(o->memory) : CUDA_SUCCESS;
    }
    free(o);
    return r;
}

/* Programs destroy textures and surfaces that they never made, and the genuine library lets
 * them. */
static int destroy(unsigned long long handle, bool surface)
{
    struct rt_context *c;
    int r = rt_enter_unsafe(&c);
    if (r || !handle)
        return r;
    pthread_mutex_lock(&lock);
    struct object **at = find(handle, surface), *o = *at;
    if (o)
        *at = o->next;
    pthread_mutex_unlock(&lock);
    return o ? end(o) : CUDA_ERROR_INVALID_VALUE;
}

CUresult rt_cuTexObjectDestroy(CUtexObject texObject)
{
    return destroy(texObject, false);
}

CUresult rt_cuSurfObjectDestroy(CUsurfObject surfObject)
{
    return destroy(surfObject, true);
}

void rt_texture_destroy_all(struct rt_context *c)
{
    struct object *gone = NULL;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct object **at = &buckets[i], *o; (o = *at) != NULL;) {
            if (o->context != c) {
                at = &o->next;
                continue;
            }
            *at = o->next;
            o->next = gone;
            gone = o;
        }
    pthread_mutex_unlock(&lock);
    while (gone) {
        struct object *o = gone;
        gone = o->next;
        (void)end(o);
    }
}

/* --- what it was made of ---------------------------------------------------------------------- */

/* Copies what the object was made of. CUresult. */
static int look(unsigned long long handle, bool surface, const void *answer, struct object *out)
{
    struct rt_context *c;
    int r = rt_enter(&c);
    if (r)
        return r;
    pthread_mutex_lock(&lock);
    const struct object *o = *find(handle, surface);
    if (o)
        *out = *o;
    pthread_mutex_unlock(&lock);
    return o && answer ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult rt_cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUtexObject texObject)
{
    struct object o;
    int r = look(texObject, false, pResDesc, &o);
    if (r == CUDA_SUCCESS)
        *pResDesc = o.resource;
    return r;
}

CUresult rt_cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *pTexDesc, CUtexObject texObject)
{
    struct object o;
    int r = look(texObject, false, pTexDesc, &o);
    if (r == CUDA_SUCCESS)
        *pTexDesc = o.texture;
    return r;
}

CUresult rt_cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *pResViewDesc,
                                           CUtexObject texObject)
{
    struct object o;
    int r = look(texObject, false, pResViewDesc, &o);
    if (r == CUDA_SUCCESS)
        *pResViewDesc = o.view; /* all zero if there is none */
    return r;
}

CUresult rt_cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUsurfObject surfObject)
{
    struct object o;
    int r = look(surfObject, true, pResDesc, &o);
    if (r == CUDA_SUCCESS)
        *pResDesc = o.resource;
    return r;
}
