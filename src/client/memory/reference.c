/*
 * cuTexRef* and cuSurfRef*. A reference is found by the address of its variable. What it is set to
 * is kept here, and written into the descriptor when a bound one changes.
 */
#include "client/memory/reference.h"

#include <string.h>

#include "client/gen/api.h"
#include "client/memory/descriptor.h"
#include "client/memory/memory.h"
#include "client/stream/reach.h"

/* A CUtexref or a CUsurfref. */
struct reference {
    struct rt_object object;
    struct rt_context *context;
    uint64_t address; /* of its variable; 0: it has none (cuTexRefCreate) */
    bool surface;
    bool bound;
    CUDA_RESOURCE_DESC resource; /* if something is bound */
    struct rt_array_memory *memory;
    CUDA_TEXTURE_DESC texture;
    CUarray_format format;
    unsigned channels;
};

static struct rt_table references = RT_TABLE(RT_KIND_REFERENCE, struct reference);
/* Taken before all other locks. One look-up or end at a time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* --- handles ---------------------------------------------------------------------------------- */

struct search {
    const struct rt_context *context;
    uint64_t address, size;
    struct reference *found;
};

static void look(struct rt_object *o, void *arg)
{
    struct reference *r = (struct reference *)(void *)o;
    struct search *s = arg;
    if (r->context == s->context && r->address == s->address)
        s->found = r;
}

static struct reference *create(struct rt_context *c, uint64_t address, bool surface)
{
    struct reference *r = rt_object_take(&references);
    if (!r)
        return NULL;
    r->context = c;
    r->address = address;
    r->surface = surface;
    r->bound = false;
    r->memory = NULL;
    r->texture =
        (CUDA_TEXTURE_DESC) { .addressMode = { CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP,
                                               CU_TR_ADDRESS_MODE_CLAMP } };
    r->format = CU_AD_FORMAT_FLOAT;
    r->channels = 1;
    rt_object_publish(&r->object);
    return r;
}

static int find_or_create(struct rt_context *c, uint64_t address, bool surface, void **out)
{
    struct search s = { .context = rt_context_owner(c), .address = address };
    pthread_mutex_lock(&lock);
    rt_table_each(&references, look, &s);
    if (!s.found)
        s.found = create(rt_context_owner(c), address, surface);
    pthread_mutex_unlock(&lock);
    if (!s.found)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = rt_object_handle(&references, &s.found->object);
    return CUDA_SUCCESS;
}

int rt_reference_find_texture(struct rt_context *c, uint64_t address, CUtexref *out)
{
    void *handle = NULL;
    int r = find_or_create(c, address, false, &handle);
    *out = handle;
    return r;
}

int rt_reference_find_surface(struct rt_context *c, uint64_t address, CUsurfref *out)
{
    void *handle = NULL;
    int r = find_or_create(c, address, true, &handle);
    *out = handle;
    return r;
}

static void end(struct reference *r)
{
    struct rt_array_memory *memory = r->memory;
    rt_object_release(&references, &r->object);
    if (memory)
        (void)rt_array_memory_release(memory);
}

static void end_if(struct rt_object *o, void *arg)
{
    struct reference *r = (struct reference *)(void *)o;
    const struct search *s = arg;
    if (r->context == s->context &&
        (s->size == UINT64_MAX || (r->address && r->address - s->address < s->size)))
        end(r);
}

void rt_reference_forget(const struct rt_context *c, uint64_t address, uint64_t size)
{
    struct search s = { .context = c, .address = address, .size = size };
    pthread_mutex_lock(&lock);
    rt_table_each(&references, end_if, &s);
    pthread_mutex_unlock(&lock);
}

/* Finds a texture reference, or a surface reference. Returns NULL with *result if there is none. */
static struct reference *enter(void *handle, bool surface, int *result)
{
    *result = rt_enter_any();
    if (*result)
        return NULL;
    if (rt_session->memory_apart) {
        *result = CUDA_ERROR_NOT_SUPPORTED;
        return NULL;
    }
    struct reference *r = (struct reference *)rt_object_find(&references, handle);
    if (!r || r->surface != surface)
        *result = CUDA_ERROR_INVALID_VALUE;
    return *result ? NULL : r;
}

/* --- descriptors ------------------------------------------------------------------------------ */

/* Writes the descriptor anew, with what is bound. */
static int renew(struct reference *r)
{
    struct dev_texture t = { 0 };
    struct rt_array_memory *memory = NULL, *old = r->memory;
    int result = CUDA_SUCCESS;
    if (r->bound)
        result = rt_descriptor_resource(&r->resource, NULL, r->surface, &t, &memory);
    if (result == CUDA_SUCCESS && r->bound && !r->surface)
        result = rt_descriptor_sampler(&r->texture, &t);
    if (result)
        return result;
    if (memory)
        rt_array_memory_take(memory);
    r->memory = memory;
    if (r->address) {
        result = rt_reach_wait(rt_reach_of_device(r->context->device));
        rt_descriptor_write(r->address, &t);
    }
    int freed = old ? rt_array_memory_release(old) : CUDA_SUCCESS;
    return result ? result : freed;
}

/* Binds another resource. If that fails, what was bound stays. */
static int bind(struct reference *r, const CUDA_RESOURCE_DESC *resource)
{
    const CUDA_RESOURCE_DESC before = r->resource;
    bool was_bound = r->bound;
    r->resource = *resource;
    r->bound = true;
    int result = renew(r);
    if (result) {
        r->resource = before;
        r->bound = was_bound;
    }
    return result;
}

static int unbind(struct reference *r)
{
    r->bound = false;
    return renew(r);
}

/* --- binding ---------------------------------------------------------------------------------- */

CUresult rt_cuTexRefSetArray(CUtexref hTexRef, CUarray hArray, unsigned int Flags)
{
    int result;
    struct reference *r = enter(hTexRef, false, &result);
    if (!r)
        return result;
    const struct rt_array *a = rt_array_find(hArray);
    if (!hArray && !(Flags & ~1u))
        return unbind(r);
    if (!a)
        return CUDA_ERROR_INVALID_HANDLE;
    const CUDA_RESOURCE_DESC d = { .resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = hArray };
    result = bind(r, &d);
    if (result == CUDA_SUCCESS && (Flags & CU_TRSA_OVERRIDE_FORMAT)) {
        r->format = (CUarray_format)a->shape.format;
        r->channels = a->shape.channels;
    }
    return result;
}

CUresult rt_cuTexRefSetMipmappedArray(CUtexref hTexRef, CUmipmappedArray hMipmappedArray,
                                      unsigned int Flags)
{
    int result;
    struct rt_array a;
    struct reference *r = enter(hTexRef, false, &result);
    if (!r)
        return result;
    if (!hMipmappedArray)
        return unbind(r);
    if (!rt_mipmap_find(hMipmappedArray, &a))
        return CUDA_ERROR_INVALID_HANDLE;
    const CUDA_RESOURCE_DESC d = { .resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
                                   .res.mipmap.hMipmappedArray = hMipmappedArray };
    result = bind(r, &d);
    if (result == CUDA_SUCCESS && (Flags & CU_TRSA_OVERRIDE_FORMAT)) {
        r->format = (CUarray_format)a.shape.format;
        r->channels = a.shape.channels;
    }
    return result;
}

/* Binds memory, which need not be aligned: the kernel is told the offset. */
CUresult rt_cuTexRefSetAddress_v2(size_t *ByteOffset, CUtexref hTexRef, CUdeviceptr dptr,
                                  size_t bytes)
{
    int result;
    struct reference *r = enter(hTexRef, false, &result);
    if (!r)
        return result;
    size_t off = dptr % (size_t)rt_session->devices[r->context->device]
                            .attributes[CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT];
    if (!dptr || !bytes)
        return unbind(r);
    if (off && !ByteOffset)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_RESOURCE_DESC d = {
        .resType = CU_RESOURCE_TYPE_LINEAR,
        .res.linear = { .devPtr = dptr - off,
                        .format = r->format,
                        .numChannels = r->channels,
                        .sizeInBytes = bytes + off },
    };
    result = bind(r, &d);
    if (result == CUDA_SUCCESS && ByteOffset)
        *ByteOffset = off;
    return result;
}

CUresult rt_cuTexRefSetAddress2D_v3(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR *desc,
                                    CUdeviceptr dptr, size_t Pitch)
{
    int result;
    struct reference *r = enter(hTexRef, false, &result);
    if (!r)
        return result;
    if (!desc)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_RESOURCE_DESC d = { .resType = CU_RESOURCE_TYPE_PITCH2D,
                                   .res.pitch2D = { .devPtr = dptr,
                                                    .format = desc->Format,
                                                    .numChannels = desc->NumChannels,
                                                    .width = desc->Width,
                                                    .height = desc->Height,
                                                    .pitchInBytes = Pitch } };
    result = bind(r, &d);
    if (result == CUDA_SUCCESS) {
        r->format = desc->Format;
        r->channels = desc->NumChannels;
    }
    return result;
}

CUresult rt_cuTexRefSetAddress2D_v2(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR *desc,
                                    CUdeviceptr dptr, size_t Pitch)
{
    return rt_cuTexRefSetAddress2D_v3(hTexRef, desc, dptr, Pitch);
}

CUresult rt_cuTexRefSetFormat(CUtexref hTexRef, CUarray_format fmt, int NumPackedComponents)
{
    int result;
    struct reference *r = enter(hTexRef, false, &result);
    if (!r)
        return result;
    if (!dev_array_element(fmt, (uint32_t)NumPackedComponents))
        return CUDA_ERROR_INVALID_VALUE;
    r->format = fmt;
    r->channels = (unsigned)NumPackedComponents;
    return CUDA_SUCCESS;
}

/* --- the sampler ------------------------------------------------------------------------------ */

/* Sets the sampler. If that fails it stays what it was. */
static int change(struct reference *r, const CUDA_TEXTURE_DESC *to)
{
    const CUDA_TEXTURE_DESC before = r->texture;
    r->texture = *to;
    int result = r->bound ? renew(r) : CUDA_SUCCESS;
    if (result)
        r->texture = before;
    return result;
}

#define SET(handle, field, value, valid)                                                           \
    int result;                                                                                    \
    struct reference *r = enter(handle, false, &result);                                           \
    if (!r)                                                                                        \
        return result;                                                                             \
    if (!(valid))                                                                                  \
        return CUDA_ERROR_INVALID_VALUE;                                                           \
    CUDA_TEXTURE_DESC to = r->texture;                                                             \
    to.field = (value);                                                                            \
    return change(r, &to)

CUresult rt_cuTexRefSetAddressMode(CUtexref hTexRef, int dim, CUaddress_mode am)
{
    SET(hTexRef, addressMode[dim],
        (unsigned)am > CU_TR_ADDRESS_MODE_BORDER ? CU_TR_ADDRESS_MODE_CLAMP : am,
        dim >= 0 && dim < 3);
}

CUresult rt_cuTexRefSetFilterMode(CUtexref hTexRef, CUfilter_mode fm)
{
    SET(hTexRef, filterMode, fm, (unsigned)fm <= CU_TR_FILTER_MODE_LINEAR);
}

CUresult rt_cuTexRefSetMipmapFilterMode(CUtexref hTexRef, CUfilter_mode fm)
{
    SET(hTexRef, mipmapFilterMode, fm, (unsigned)fm <= CU_TR_FILTER_MODE_LINEAR);
}

CUresult rt_cuTexRefSetMipmapLevelBias(CUtexref hTexRef, float bias)
{
    SET(hTexRef, mipmapLevelBias, bias, true);
}

CUresult rt_cuTexRefSetMipmapLevelClamp(CUtexref hTexRef, float minMipmapLevelClamp,
                                        float maxMipmapLevelClamp)
{
    int result;
    struct reference *r = enter(hTexRef, false, &result);
    if (!r)
        return result;
    CUDA_TEXTURE_DESC to = r->texture;
    to.minMipmapLevelClamp = minMipmapLevelClamp;
    to.maxMipmapLevelClamp = maxMipmapLevelClamp;
    return change(r, &to);
}

CUresult rt_cuTexRefSetMaxAnisotropy(CUtexref hTexRef, unsigned int maxAniso)
{
    SET(hTexRef, maxAnisotropy, maxAniso, true);
}

CUresult rt_cuTexRefSetBorderColor(CUtexref hTexRef, float *pBorderColor)
{
    int result;
    struct reference *r = enter(hTexRef, false, &result);
    if (!r)
        return result;
    if (!pBorderColor)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_TEXTURE_DESC to = r->texture;
    memcpy(to.borderColor, pBorderColor, sizeof(to.borderColor));
    return change(r, &to);
}

CUresult rt_cuTexRefSetFlags(CUtexref hTexRef, unsigned int Flags)
{
    const unsigned known = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
                           CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP;
    SET(hTexRef, flags, Flags, !(Flags & ~known));
}

/* --- questions -------------------------------------------------------------------------------- */

#define GET(handle, out, valid, value)                                                             \
    int result;                                                                                    \
    const struct reference *r = enter(handle, false, &result);                                     \
    if (!r)                                                                                        \
        return result;                                                                             \
    if (!(out) || !(valid))                                                                        \
        return CUDA_ERROR_INVALID_VALUE;                                                           \
    *(out) = (value);                                                                              \
    return CUDA_SUCCESS

static bool binds(const struct reference *r, CUresourcetype type)
{
    return r->bound && r->resource.resType == type;
}

CUresult rt_cuTexRefGetAddress_v2(CUdeviceptr *pdptr, CUtexref hTexRef)
{
    GET(hTexRef, pdptr, binds(r, CU_RESOURCE_TYPE_LINEAR) || binds(r, CU_RESOURCE_TYPE_PITCH2D),
        r->resource.resType == CU_RESOURCE_TYPE_LINEAR ? r->resource.res.linear.devPtr
                                                       : r->resource.res.pitch2D.devPtr);
}

CUresult rt_cuTexRefGetArray(CUarray *phArray, CUtexref hTexRef)
{
    GET(hTexRef, phArray, binds(r, CU_RESOURCE_TYPE_ARRAY), r->resource.res.array.hArray);
}

CUresult rt_cuTexRefGetMipmappedArray(CUmipmappedArray *phMipmappedArray, CUtexref hTexRef)
{
    GET(hTexRef, phMipmappedArray, binds(r, CU_RESOURCE_TYPE_MIPMAPPED_ARRAY),
        r->resource.res.mipmap.hMipmappedArray);
}

CUresult rt_cuTexRefGetAddressMode(CUaddress_mode *pam, CUtexref hTexRef, int dim)
{
    GET(hTexRef, pam, dim >= 0 && dim < 3, r->texture.addressMode[dim]);
}

CUresult rt_cuTexRefGetFilterMode(CUfilter_mode *pfm, CUtexref hTexRef)
{
    GET(hTexRef, pfm, true, r->texture.filterMode);
}

CUresult rt_cuTexRefGetFormat(CUarray_format *pFormat, int *pNumChannels, CUtexref hTexRef)
{
    int result;
    const struct reference *r = enter(hTexRef, false, &result);
    if (!r)
        return result;
    if (pFormat)
        *pFormat = r->format;
    if (pNumChannels)
        *pNumChannels = (int)r->channels;
    return CUDA_SUCCESS;
}

CUresult rt_cuTexRefGetMipmapFilterMode(CUfilter_mode *pfm, CUtexref hTexRef)
{
    GET(hTexRef, pfm, true, r->texture.mipmapFilterMode);
}

CUresult rt_cuTexRefGetMipmapLevelBias(float *pbias, CUtexref hTexRef)
{
    GET(hTexRef, pbias, true, r->texture.mipmapLevelBias);
}

CUresult rt_cuTexRefGetMipmapLevelClamp(float *pminMipmapLevelClamp, float *pmaxMipmapLevelClamp,
                                        CUtexref hTexRef)
{
    int result;
    const struct reference *r = enter(hTexRef, false, &result);
    if (!r)
        return result;
    if (!pminMipmapLevelClamp || !pmaxMipmapLevelClamp)
        return CUDA_ERROR_INVALID_VALUE;
    *pminMipmapLevelClamp = r->texture.minMipmapLevelClamp;
    *pmaxMipmapLevelClamp = r->texture.maxMipmapLevelClamp;
    return CUDA_SUCCESS;
}

CUresult rt_cuTexRefGetMaxAnisotropy(int *pmaxAniso, CUtexref hTexRef)
{
    GET(hTexRef, pmaxAniso, true, (int)r->texture.maxAnisotropy);
}

CUresult rt_cuTexRefGetBorderColor(float *pBorderColor, CUtexref hTexRef)
{
    int result;
    const struct reference *r = enter(hTexRef, false, &result);
    if (!r)
        return result;
    if (!pBorderColor)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(pBorderColor, r->texture.borderColor, sizeof(r->texture.borderColor));
    return CUDA_SUCCESS;
}

CUresult rt_cuTexRefGetFlags(unsigned int *pFlags, CUtexref hTexRef)
{
    GET(hTexRef, pFlags, true, r->texture.flags);
}

/* --- others ----------------------------------------------------------------------------------- */

CUresult rt_cuTexRefCreate(CUtexref *pTexRef)
{
    struct rt_context *c;
    int r = rt_enter(&c);
    if (r)
        return r;
    if (!pTexRef)
        return CUDA_ERROR_INVALID_VALUE;
    if (rt_session->memory_apart)
        return CUDA_ERROR_NOT_SUPPORTED;
    struct reference *made = create(rt_context_owner(c), 0, false);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pTexRef = rt_object_handle(&references, &made->object);
    return CUDA_SUCCESS;
}

CUresult rt_cuTexRefDestroy(CUtexref hTexRef)
{
    int result;
    struct reference *r = enter(hTexRef, false, &result);
    if (!r)
        return result;
    if (!r->address) /* a reference of a module ends with the module */
        end(r);
    return CUDA_SUCCESS;
}

CUresult rt_cuSurfRefSetArray(CUsurfref hSurfRef, CUarray hArray, unsigned int Flags)
{
    int result;
    struct reference *r = enter(hSurfRef, true, &result);
    if (!r)
        return result;
    const struct rt_array *a = rt_array_find(hArray);
    if (!a)
        return CUDA_ERROR_INVALID_HANDLE;
    if (Flags || !(a->shape.flags & CUDA_ARRAY3D_SURFACE_LDST))
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_RESOURCE_DESC d = { .resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = hArray };
    return bind(r, &d);
}

CUresult rt_cuSurfRefGetArray(CUarray *phArray, CUsurfref hSurfRef)
{
    int result;
    const struct reference *r = enter(hSurfRef, true, &result);
    if (!r)
        return result;
    if (!phArray || !r->bound)
        return CUDA_ERROR_INVALID_VALUE;
    *phArray = r->resource.res.array.hArray;
    return CUDA_SUCCESS;
}
