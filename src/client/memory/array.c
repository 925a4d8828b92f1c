/*
 * cuArray* and cuMipmappedArray*. An array is charged first, and made afterwards: as an object of
 * the device's (`apart`), or as memory.
 */
#include "client/memory/array.h"

#include <stdlib.h>

#include "client/gen/api.h"
#include "client/memory/memory.h"
#include "client/stream/call.h"
#include "client/stream/capture.h"
#include "client/session/mortal.h"
#include "client/stream/reach.h"

#define LEVELS_MAX 32u

struct rt_mipmap {
    struct rt_object object;
    struct rt_context *context;
    uint32_t number;
    struct rt_array_memory *memory; /* as in struct rt_array */
    struct dev_array_shape shape;
    struct rt_array *levels[LEVELS_MAX]; /* lock; the levels that a program has asked for */
};

struct rt_table rt_arrays = RT_TABLE(RT_KIND_ARRAY, struct rt_array);
struct rt_table rt_mipmaps = RT_TABLE(RT_KIND_MIPMAP, struct rt_mipmap);

/* Taken before the locks of requests and calls. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* lock; bytes of all arrays of a device, as the executor said last. */
static uint64_t used[RT_DEVICES];
static uint64_t granted[RT_DEVICES]; /* lock; bytes that the server has granted for arrays */

/* --- the executor's side ---------------------------------------------------------------------- */

/* Has the server charge so many bytes for all arrays of a device. It may refuse to charge fewer
 * than before, and then the charge stays. Called with the lock held. */
static int grant(int device, uint64_t bytes)
{
    if (bytes == granted[device])
        return CUDA_SUCCESS;
    int r = rt_request_array_memory(rt_session, device, bytes);
    if (r == CUDA_ERROR_OUT_OF_MEMORY && rt_memory_reap(true))
        r = rt_request_array_memory(rt_session, device, bytes);
    if (r == CUDA_SUCCESS)
        granted[device] = bytes;
    return r;
}

static int ask_create(int device, const struct dev_array_shape *s, uint32_t *number)
{
    const struct wire_call_array_create w = { s->width,    s->height, s->depth, s->format,
                                              s->channels, s->flags,  s->levels };
    struct wire_call_array_is is = { 0 };
    struct rt_call c;
    rt_call_begin(&c, WIRE_CALL_ARRAY_CREATE, 0);
    c.device = rt_session->devices[device].index;
    wire_put_call_array_create(&c.args, &w);
    int r = rt_call_run(&c);
    if (r == CUDA_SUCCESS) {
        wire_get_call_array_is(&c.reply, &is);
        *number = is.array;
        used[device] = is.bytes;
    }
    return rt_call_end(&c, r);
}

static int ask_destroy(int device, uint32_t number)
{
    struct wire_call_array_is is = { 0 };
    struct rt_call c;
    rt_call_begin(&c, WIRE_CALL_ARRAY_DESTROY, 0);
    c.device = rt_session->devices[device].index;
    wire_put_call_array(&c.args, &(struct wire_call_array) { number });
    int r = rt_call_run(&c);
    if (r == CUDA_SUCCESS) {
        wire_get_call_array_is(&c.reply, &is);
        used[device] = is.bytes;
    }
    return rt_call_end(&c, r);
}

/* Makes an array as an object of the device's, after it has been charged. */
static int make_apart(int device, const struct dev_array_shape *s, uint32_t *number)
{
    pthread_mutex_lock(&lock);
    int r = grant(device, used[device] + dev_array_bytes(s));
    if (r == CUDA_SUCCESS)
        r = ask_create(device, s, number);
    if (r == CUDA_SUCCESS)
        rt_mortal_add(1);
    else
        (void)grant(device, used[device]);
    pthread_mutex_unlock(&lock);
    return r;
}

static int unmake_apart(int device, uint32_t number)
{
    pthread_mutex_lock(&lock);
    int r = ask_destroy(device, number);
    if (r == CUDA_SUCCESS)
        (void)grant(device, used[device]);
    rt_mortal_add(-1);
    pthread_mutex_unlock(&lock);
    return r;
}

/* --- ordinary memory -------------------------------------------------------------------------- */

static int make_memory(struct rt_context *c, const struct dev_array_shape *s,
                       struct rt_array_memory **out)
{
    struct rt_array_memory *m = calloc(1, sizeof(*m));
    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;
    int r = rt_memory_allocate(c, dev_array_bytes(s), RT_MEMORY_ARRAY, 0, &m->address);
    if (r) {
        free(m);
        return r;
    }
    m->users = 1;
    m->device = c->device;
    *out = m;
    return CUDA_SUCCESS;
}

void rt_array_memory_take(struct rt_array_memory *m)
{
    atomic_fetch_add_explicit(&m->users, 1, memory_order_relaxed);
}

int rt_array_memory_release(struct rt_array_memory *m)
{
    struct rt_range range;
    if (atomic_fetch_sub_explicit(&m->users, 1, memory_order_acq_rel) > 1)
        return CUDA_SUCCESS;
    int r = rt_reach_wait(rt_reach_of_device(m->device));
    if (rt_memory_remove(m->address, 1u << RT_MEMORY_ARRAY, &range))
        (void)rt_request_free(rt_session, m->address);
    free(m);
    return r;
}

/* --- both ------------------------------------------------------------------------------------- */

static int make(struct rt_context *c, const struct dev_array_shape *s, uint32_t *number,
                struct rt_array_memory **memory)
{
    return rt_session->memory_apart ? make_apart(c->device, s, number) : make_memory(c, s, memory);
}

static int unmake(int device, uint32_t number, struct rt_array_memory *memory)
{
    return memory ? rt_array_memory_release(memory) : unmake_apart(device, number);
}

/* --- creation --------------------------------------------------------------------------------- */

/* Whether the array exceeds the device's limits. Where arrays are memory nothing else checks
 * this. */
static bool is_too_large(const struct rt_context *c, const struct dev_array_shape *s)
{
    static const struct {
        uint32_t flags; /* the flags that tell the kinds apart */
        uint32_t dimensions;
        uint32_t texture[3], surface[3]; /* attributes; 0: there is no such limit */
    } kinds[] = {
        { 0, 1, { 21 }, { 55 } },
        { 0, 2, { 22, 23 }, { 56, 57 } },
        { 0, 3, { 24, 25, 26 }, { 58, 59, 60 } },
        { CUDA_ARRAY3D_LAYERED, 1, { 42, 0, 43 }, { 61, 0, 62 } },
        { CUDA_ARRAY3D_LAYERED, 2, { 27, 28, 29 }, { 63, 64, 65 } },
        { CUDA_ARRAY3D_CUBEMAP, 2, { 52, 52 }, { 66, 66 } },
        { CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED, 2, { 53, 53, 54 }, { 67, 67, 68 } },
    };
    const int32_t *most = rt_session->devices[c->device].attributes;
    const uint64_t size[] = { s->width, s->height, s->depth };
    uint32_t flags = s->flags & (CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED);
    uint32_t dimensions = !s->height ? 1 : s->depth && !flags ? 3 : 2;
    bool large = false;
    for (size_t k = 0; k < GM_ARRAY_LEN(kinds); k++)
        for (unsigned d = 0; d < 3 && kinds[k].flags == flags && kinds[k].dimensions == dimensions;
             d++) {
            uint32_t texture = kinds[k].texture[d], surface = kinds[k].surface[d];
            large |= texture && size[d] > (uint64_t)most[texture];
            large |= surface && (s->flags & CUDA_ARRAY3D_SURFACE_LDST) &&
                     size[d] > (uint64_t)most[surface];
        }
    if (dimensions == 3) /* some devices allow for a greater depth instead */
        large = large && (size[0] > (uint64_t)most[47] || size[1] > (uint64_t)most[48] ||
                          size[2] > (uint64_t)most[49]);
    if (s->levels)
        large |= dimensions == 1 ? size[0] > (uint64_t)most[77]
                                 : size[0] > (uint64_t)most[73] || size[1] > (uint64_t)most[74];
    bool gather = s->flags & CUDA_ARRAY3D_TEXTURE_GATHER;
    return large ||
           (gather &&
            (s->width > (uint64_t)most[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH] ||
             s->height > (uint64_t)most[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT]));
}

static int check(const struct rt_context *c, const struct dev_array_shape *s)
{
    int r = dev_array_check(s);
    return r || rt_session->memory_apart || !is_too_large(c, s) ? r : CUDA_ERROR_INVALID_VALUE;
}

/* Begins a call that makes an array like `d`, with so many levels, and finds its shape. */
static int enter(struct rt_context **c, const CUDA_ARRAY3D_DESCRIPTOR *d, uint32_t levels,
                 struct dev_array_shape *out)
{
    int r = rt_enter_unsafe(c);
    if (r)
        return r;
    if (!d)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (struct dev_array_shape) { d->Width,       d->Height, d->Depth, d->Format,
                                      d->NumChannels, d->Flags,  levels };
    return check(*c, out);
}

static int create(const CUDA_ARRAY3D_DESCRIPTOR *d, CUarray *out)
{
    struct rt_context *c;
    struct dev_array_shape shape;
    int r = enter(&c, out ? d : NULL, 0, &shape);
    if (r)
        return r;
    struct rt_array *a = rt_object_take(&rt_arrays);
    r = a ? make(c, &shape, &a->number, &a->memory) : CUDA_ERROR_OUT_OF_MEMORY;
    if (r) {
        if (a)
            rt_object_release(&rt_arrays, &a->object);
        return r;
    }
    a->context = rt_context_owner(c);
    a->shape = shape;
    rt_object_publish(&a->object);
    *out = rt_array_handle(a);
    return CUDA_SUCCESS;
}

CUresult rt_cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
    const CUDA_ARRAY_DESCRIPTOR *p = pAllocateArray;
    CUDA_ARRAY3D_DESCRIPTOR d = { 0 };
    if (p)
        d = (CUDA_ARRAY3D_DESCRIPTOR) { .Width = p->Width,
                                        .Height = p->Height,
                                        .Format = p->Format,
                                        .NumChannels = p->NumChannels };
    return create(p ? &d : NULL, pHandle);
}

CUresult rt_cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
    return create(pAllocateArray, pHandle);
}

/* Makes a mipmapped array. CUDA makes at least one level, and no more than the size has. */
CUresult rt_cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
                                   const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
                                   unsigned int numMipmapLevels)
{
    const CUDA_ARRAY3D_DESCRIPTOR *d = pMipmappedArrayDesc;
    struct rt_context *c;
    struct dev_array_shape shape;
    int r = enter(&c, pHandle ? d : NULL, 1, &shape);
    if (r)
        return r;
    uint32_t most = dev_array_levels(&shape);
    shape.levels = numMipmapLevels ? GM_MIN(numMipmapLevels, most) : 1;
    struct rt_mipmap *m = rt_object_take(&rt_mipmaps);
    r = m ? make(c, &shape, &m->number, &m->memory) : CUDA_ERROR_OUT_OF_MEMORY;
    if (r) {
        if (m)
            rt_object_release(&rt_mipmaps, &m->object);
        return r;
    }
    m->context = rt_context_owner(c);
    m->shape = shape;
    rt_object_publish(&m->object);
    *pHandle = (CUmipmappedArray)rt_object_handle(&rt_mipmaps, &m->object);
    return CUDA_SUCCESS;
}

static struct rt_mipmap *mipmap_find(CUmipmappedArray handle)
{
    return (struct rt_mipmap *)rt_object_find(&rt_mipmaps, handle);
}

bool rt_mipmap_find(CUmipmappedArray handle, struct rt_array *out)
{
    struct rt_mipmap *m = mipmap_find(handle);
    if (m)
        *out = (struct rt_array) { .context = m->context,
                                   .mipmap = m,
                                   .number = m->number,
                                   .memory = m->memory,
                                   .shape = m->shape };
    return m != NULL;
}

/* Returns the same handle each time. It ends with the mipmapped array. */
CUresult rt_cuMipmappedArrayGetLevel(CUarray *pLevelArray, CUmipmappedArray hMipmappedArray,
                                     unsigned int level)
{
    int r = rt_enter_any();
    if (r)
        return r;
    struct rt_mipmap *m = mipmap_find(hMipmappedArray);
    if (!m)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!pLevelArray || level >= m->shape.levels)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    struct rt_array *a = m->levels[level];
    if (!a && (a = rt_object_take(&rt_arrays)) != NULL) {
        a->context = m->context;
        a->mipmap = m;
        a->number = m->number;
        a->memory = m->memory;
        a->level = level;
        a->shape = m->shape;
        rt_object_publish(&a->object);
        m->levels[level] = a;
    }
    pthread_mutex_unlock(&lock);
    if (!a)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pLevelArray = rt_array_handle(a);
    return CUDA_SUCCESS;
}

/* --- the end ---------------------------------------------------------------------------------- */

static int destroy_array(struct rt_array *a)
{
    uint32_t number = a->number;
    struct rt_array_memory *memory = a->memory;
    int device = a->context->device;
    rt_object_release(&rt_arrays, &a->object);
    return unmake(device, number, memory);
}

static int destroy_mipmap(struct rt_mipmap *m)
{
    uint32_t number = m->number;
    struct rt_array_memory *memory = m->memory;
    int device = m->context->device;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < LEVELS_MAX; i++)
        if (m->levels[i])
            rt_object_release(&rt_arrays, &m->levels[i]->object);
    rt_object_release(&rt_mipmaps, &m->object);
    pthread_mutex_unlock(&lock);
    return unmake(device, number, memory);
}

/* Waits like cuMemFree, because running work may use the array. */
CUresult rt_cuArrayDestroy(CUarray hArray)
{
    int r = rt_enter_plain_unsafe();
    if (r)
        return r;
    struct rt_array *a = rt_array_find(hArray);
    if (!a || a->mipmap) /* a level ends with its mipmapped array */
        return CUDA_ERROR_INVALID_HANDLE;
    r = rt_reach_wait(1u << a->context->device);
    return r ? r : destroy_array(a);
}

CUresult rt_cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
    int r = rt_enter_plain_unsafe();
    if (r)
        return r;
    struct rt_mipmap *m = mipmap_find(hMipmappedArray);
    if (!m)
        return CUDA_ERROR_INVALID_HANDLE;
    r = rt_reach_wait(1u << m->context->device);
    return r ? r : destroy_mipmap(m);
}

static void end_array(struct rt_object *o, void *arg)
{
    struct rt_array *a = (struct rt_array *)(void *)o;
    if (a->context == arg && !a->mipmap)
        (void)destroy_array(a);
}

static void end_mipmap(struct rt_object *o, void *arg)
{
    struct rt_mipmap *m = (struct rt_mipmap *)(void *)o;
    if (m->context == arg)
        (void)destroy_mipmap(m);
}

void rt_array_destroy_all(struct rt_context *c)
{
    rt_table_each(&rt_arrays, end_array, c);
    rt_table_each(&rt_mipmaps, end_mipmap, c);
}

/* --- what it is ------------------------------------------------------------------------------- */

static int find(CUarray handle, const void *out, struct rt_array **a)
{
    int r = rt_enter_any();
    if (r)
        return r;
    *a = rt_array_find(handle);
    if (!*a)
        return CUDA_ERROR_INVALID_HANDLE;
    return out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Returns the size of a level. */
static size_t at_level(uint64_t size, uint32_t level)
{
    return size ? GM_MAX(size >> level, (uint64_t)1) : 0;
}

CUresult rt_cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
    struct rt_array *a;
    struct dev_array_extent e;
    int r = find(hArray, pArrayDescriptor, &a);
    if (r)
        return r;
    const struct dev_array_shape *s = &a->shape;
    dev_array_extent(s, a->level, &e);
    *pArrayDescriptor = (CUDA_ARRAY3D_DESCRIPTOR) { .Width = at_level(s->width, a->level),
                                                    .Height = at_level(s->height, a->level),
                                                    .Depth = s->depth ? e.planes : 0,
                                                    .Format = (CUarray_format)s->format,
                                                    .NumChannels = s->channels,
                                                    .Flags = s->flags };
    return CUDA_SUCCESS;
}

CUresult rt_cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
    struct rt_array *a;
    int r = find(hArray, pArrayDescriptor, &a);
    if (r)
        return r;
    const struct dev_array_shape *s = &a->shape;
    *pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR) { .Width = at_level(s->width, a->level),
                                                  .Height = at_level(s->height, a->level),
                                                  .Format = (CUarray_format)s->format,
                                                  .NumChannels = s->channels };
    return CUDA_SUCCESS;
}

/* CUDA answers this for arrays with CUDA_ARRAY3D_DEFERRED_MAPPING only, and there are none. */
CUresult rt_cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
                                         CUarray array, CUdevice device GM_UNUSED)
{
    struct rt_array *a;
    int r = find(array, memoryRequirements, &a);
    return r ? r : CUDA_ERROR_INVALID_VALUE;
}

CUresult rt_cuMipmappedArrayGetMemoryRequirements(
    CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements GM_UNUSED, CUmipmappedArray mipmap,
    CUdevice device GM_UNUSED)
{
    int r = rt_enter_any();
    if (r)
        return r;
    return mipmap_find(mipmap) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

/* There are no arrays with CUDA_ARRAY3D_SPARSE, and none with several planes. */
CUresult rt_cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties,
                                       CUarray array)
{
    struct rt_array *a;
    int r = find(array, sparseProperties, &a);
    return r ? r : CUDA_ERROR_INVALID_VALUE;
}

CUresult
rt_cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties GM_UNUSED,
                                       CUmipmappedArray mipmap)
{
    int r = rt_enter_any();
    if (r)
        return r;
    return mipmap_find(mipmap) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

CUresult rt_cuArrayGetPlane(CUarray *pPlaneArray, CUarray hArray, unsigned int planeIdx GM_UNUSED)
{
    struct rt_array *a;
    int r = find(hArray, pPlaneArray, &a);
    return r ? r : CUDA_ERROR_INVALID_VALUE;
}
