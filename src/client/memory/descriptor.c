/*
 * Makes descriptors of textures and surfaces, from what a program says of a resource and of how it
 * is sampled. They lie in slabs of device memory, so that not each needs an allocation.
 *
 * A program may destroy an object as soon as the kernel that samples it is launched, and nobody
 * waits for that kernel. So a slot that was given back stays as it is until all work is done that
 * was issued before. Such slots wait for a mark of all queues; there is one mark at a time.
 */
#include "client/memory/descriptor.h"

#include <stdlib.h>
#include <string.h>

#include "client/memory/memory.h"
#include "client/stream/check.h"

#define SLAB_SLOTS 64u
#define SLAB_BYTES (SLAB_SLOTS * DEV_TEXTURE_BYTES)

/* --- room ------------------------------------------------------------------------------------- */

struct slab {
    struct slab *next;
    uint64_t address;
    uint64_t used;    /* bit by slot: it is in use, or was given back and waits */
    uint64_t leaving; /* slots that were given back after the mark was made */
    uint64_t marked;  /* slots that were given back before it */
    int device;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* taken before the lock of requests */
static struct slab *slabs;                               /* lock, like the fields below */
/* For each queue, what had been issued at the mark. */
static uint64_t mark[TP_STREAMS];
static uint32_t mark_queues;
static bool has_left, has_marked; /* whether any slot is in that state */

static int add_slab(int device, struct slab **out)
{
    struct slab *s = calloc(1, sizeof(*s));
    if (!s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    int r =
        rt_request_alloc(rt_session, SLAB_BYTES, 0, WIRE_MEMORY_KIND_DEVICE, device, &s->address);
    if (r) {
        free(s);
        return r;
    }
    rt_check_lent(s->address, SLAB_BYTES);
    s->device = device;
    s->next = slabs;
    *out = slabs = s;
    return CUDA_SUCCESS;
}

static void clear_marked(struct slab *s)
{
    for (uint64_t left = s->marked; left; left &= left - 1)
        memset((void *)(uintptr_t)(s->address +
                                   (unsigned)__builtin_ctzll(left) * (uint64_t)DEV_TEXTURE_BYTES),
               0, DEV_TEXTURE_BYTES);
    s->used &= ~s->marked;
    s->marked = 0;
}

static void free_marked(void)
{
    for (struct slab **at = &slabs, *s; (s = *at) != NULL;) {
        clear_marked(s);
        if (s->used) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        (void)rt_request_free(rt_session, s->address);
        free(s);
    }
    has_marked = false;
}

static void mark_leaving(void)
{
    for (struct slab *s = slabs; s; s = s->next) {
        s->marked = s->leaving;
        s->leaving = 0;
    }
    mark_queues = atomic_load_explicit(&rt_session->queues_used, memory_order_acquire);
    for (uint32_t i = 0; i < mark_queues; i++)
        mark[i] = rt_queue_issued(rt_session, i);
    has_left = false;
    has_marked = true;
}

/* Frees the slots whose work is done, without waiting. Called with the lock held. */
static void reap(void)
{
    if (!has_marked && has_left)
        mark_leaving();
    if (!has_marked)
        return;
    for (uint32_t i = 0; i < mark_queues; i++)
        if (!rt_queue_done(rt_session, i, mark[i]))
            return;
    free_marked();
}

int rt_descriptor_take(int device, uint64_t *address)
{
    int r = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    reap();
    struct slab *s = slabs;
    while (s && (s->device != device || s->used == UINT64_MAX))
        s = s->next;
    if (!s)
        r = add_slab(device, &s);
    if (r == CUDA_SUCCESS) {
        unsigned slot = (unsigned)__builtin_ctzll(~s->used);
        s->used |= 1ull << slot;
        *address = s->address + slot * (uint64_t)DEV_TEXTURE_BYTES;
    }
    pthread_mutex_unlock(&lock);
    return r;
}

void rt_descriptor_give(uint64_t address)
{
    pthread_mutex_lock(&lock);
    struct slab *s = slabs;
    while (s && address - s->address >= SLAB_BYTES)
        s = s->next;
    if (s) {
        s->leaving |= 1ull << (address - s->address) / DEV_TEXTURE_BYTES;
        has_left = true;
    }
    reap();
    pthread_mutex_unlock(&lock);
}

void rt_descriptor_write(uint64_t address, const struct dev_texture *t)
{
    memcpy((void *)(uintptr_t)address, t, sizeof(*t));
}

/* --- what is sampled -------------------------------------------------------------------------- */

static uint32_t format_of(uint32_t format)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
        return DEV_FORMAT_U8;
    case CU_AD_FORMAT_UNSIGNED_INT16:
        return DEV_FORMAT_U16;
    case CU_AD_FORMAT_UNSIGNED_INT32:
        return DEV_FORMAT_U32;
    case CU_AD_FORMAT_SIGNED_INT8:
        return DEV_FORMAT_S8;
    case CU_AD_FORMAT_SIGNED_INT16:
        return DEV_FORMAT_S16;
    case CU_AD_FORMAT_SIGNED_INT32:
        return DEV_FORMAT_S32;
    case CU_AD_FORMAT_HALF:
        return DEV_FORMAT_F16;
    default:
        return DEV_FORMAT_F32;
    }
}

/* Sets the element. dev_array_element(format, channels) must not be 0. */
static void set_element(uint32_t format, uint32_t channels, struct dev_texture *t)
{
    t->format = format_of(format);
    t->channels = channels;
    t->element = dev_array_element(format, channels);
}

static uint32_t at_level(uint64_t size, uint32_t level)
{
    return (uint32_t)GM_MAX(size >> level, (uint64_t)1);
}

/* Describes the levels first to last of an array. */
static void set_array(const struct rt_array *a, uint32_t first, uint32_t last,
                      struct dev_texture *t)
{
    const struct dev_array_shape *s = &a->shape;
    struct dev_array_place place;
    dev_array_place(s, first, &place);
    set_element(s->format, s->channels, t);
    t->flags = DEV_TEXTURE_IN_LEVELS;
    t->base = a->memory->address + place.offset;
    t->width = at_level(s->width, first);
    t->height = at_level(s->height, first);
    t->depth = t->layers = 1;
    if (s->flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) {
        t->flags |= DEV_TEXTURE_LAYERED | (s->flags & CUDA_ARRAY3D_CUBEMAP ? DEV_TEXTURE_CUBE : 0);
        t->layers = t->planes = (uint32_t)s->depth;
    } else {
        t->depth = at_level(s->depth, first);
    }
    t->levels = last - first + 1;
    t->told_height = s->height ? t->height : 0;
    t->told_depth = s->depth && t->depth > 0 && !(t->flags & DEV_TEXTURE_LAYERED) ? t->depth : 0;
    t->told_layers = t->flags & DEV_TEXTURE_LAYERED ? t->layers : 0;
}

static uint64_t limit(CUdevice_attribute attribute)
{
    return (uint64_t)rt_session->devices[0].attributes[attribute];
}

/* Describes memory that begins in an allocation, by its address on the device. NVIDIA's library
 * does not check where it ends, and programs rely on that; a kernel cannot leave its client's
 * window. */
static int set_memory(CUdeviceptr address, uint64_t size, struct dev_texture *t)
{
    struct rt_range range;
    uint64_t end = rt_session->window_base + 2 * rt_session->window_half;
    if (!size || !rt_memory_device_range(address, 1, &range, &t->base) || t->base >= end ||
        size > end - t->base || t->base % limit(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT))
        return CUDA_ERROR_INVALID_VALUE;
    t->depth = t->layers = t->levels = 1;
    t->row = t->width * t->element;
    t->slice = size;
    return CUDA_SUCCESS;
}

static int set_linear(const CUDA_RESOURCE_DESC *d, struct dev_texture *t)
{
    uint32_t element = dev_array_element(d->res.linear.format, d->res.linear.numChannels);
    uint64_t width = element ? d->res.linear.sizeInBytes / element : 0;
    if (!width || width > limit(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH))
        return CUDA_ERROR_INVALID_VALUE;
    set_element(d->res.linear.format, d->res.linear.numChannels, t);
    t->width = (uint32_t)width;
    t->height = 1;
    t->pitch = width * element;
    return set_memory(d->res.linear.devPtr, d->res.linear.sizeInBytes, t);
}

static int set_pitched(const CUDA_RESOURCE_DESC *d, struct dev_texture *t)
{
    uint64_t width = d->res.pitch2D.width, height = d->res.pitch2D.height,
             pitch = d->res.pitch2D.pitchInBytes, size;
    uint32_t element = dev_array_element(d->res.pitch2D.format, d->res.pitch2D.numChannels);
    if (!element || !width || !height ||
        width > limit(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH) ||
        height > limit(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT) ||
        pitch > limit(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH) ||
        width * element > pitch || pitch % limit(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT) ||
        __builtin_mul_overflow(pitch, height - 1, &size) ||
        __builtin_add_overflow(size, width * element, &size))
        return CUDA_ERROR_INVALID_VALUE;
    set_element(d->res.pitch2D.format, d->res.pitch2D.numChannels, t);
    t->width = (uint32_t)width;
    t->height = t->told_height = (uint32_t)height;
    t->pitch = pitch;
    return set_memory(d->res.pitch2D.devPtr, size, t);
}

/* --- views ------------------------------------------------------------------------------------ */

/* Finds the format and the channels of a view. Returns false if the view has no format of its own,
 * or a compressed one, which no array of ours has. */
static bool view_format(CUresourceViewFormat view, uint32_t *format, uint32_t *channels)
{
    static const uint32_t formats[] = {
        CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_SIGNED_INT8,    CU_AD_FORMAT_UNSIGNED_INT16,
        CU_AD_FORMAT_SIGNED_INT16,  CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_SIGNED_INT32,
        CU_AD_FORMAT_HALF,          CU_AD_FORMAT_FLOAT,
    };
    uint32_t n = (uint32_t)view - CU_RES_VIEW_FORMAT_UINT_1X8;
    if (n >= 3 * GM_ARRAY_LEN(formats))
        return false;
    *format = formats[n / 3];
    *channels = 1u << n % 3;
    return true;
}

static int set_view(const struct rt_array *a, bool levels, const CUDA_RESOURCE_VIEW_DESC *v,
                    struct dev_texture *t)
{
    uint32_t format, channels, last = GM_MAX(a->shape.levels, 1u) - 1;
    bool layered = t->flags & DEV_TEXTURE_LAYERED;
    if (!view_format(v->format, &format, &channels) ||
        dev_array_element(format, channels) != t->element ||
        v->firstMipmapLevel > v->lastMipmapLevel || v->firstMipmapLevel > last ||
        v->firstLayer > v->lastLayer || v->firstLayer >= t->layers || v->width != a->shape.width ||
        v->height != a->shape.height || v->depth != a->shape.depth ||
        (!levels && v->lastMipmapLevel) || (!layered && v->lastLayer))
        return CUDA_ERROR_INVALID_VALUE;
    if (levels)
        set_array(a, v->firstMipmapLevel, GM_MIN(v->lastMipmapLevel, last), t);
    set_element(format, channels, t);
    /* If all numbers are zero the view has the first layer only; a cube map has whole cubes. */
    if (layered) {
        t->first_layer = v->firstLayer;
        t->layers = GM_MIN(v->lastLayer, t->layers - 1) - v->firstLayer + 1;
        t->told_layers = t->layers;
        if ((t->flags & DEV_TEXTURE_CUBE) && (t->first_layer % 6 || t->layers % 6))
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* --- both ------------------------------------------------------------------------------------- */

/* Sets what kernels can ask for, in OpenCL's numbers, which PTX uses (cl_channel_order,
 * cl_channel_type). */
static void set_told(struct dev_texture *t)
{
    static const uint16_t orders[] = { 0, 0x10b0, 0x10b2, 0, 0x10b5 };
    static const uint16_t types[] = {
        [DEV_FORMAT_U8] = 0x10da,  [DEV_FORMAT_U16] = 0x10db, [DEV_FORMAT_U32] = 0x10dc,
        [DEV_FORMAT_S8] = 0x10d7,  [DEV_FORMAT_S16] = 0x10d8, [DEV_FORMAT_S32] = 0x10d9,
        [DEV_FORMAT_F16] = 0x10dd, [DEV_FORMAT_F32] = 0x10de
    };
    t->order = orders[t->channels];
    t->data_type = types[t->format];
}

int rt_descriptor_resource(const CUDA_RESOURCE_DESC *d, const CUDA_RESOURCE_VIEW_DESC *view,
                           bool surface, struct dev_texture *t, struct rt_array_memory **memory)
{
    struct rt_array whole;
    const struct rt_array *a = NULL;
    bool levels = d->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    int r = CUDA_SUCCESS;
    memset(t, 0, sizeof(*t));
    *memory = NULL;
    if (d->flags)
        return CUDA_ERROR_INVALID_VALUE;
    switch (d->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        a = rt_array_find(d->res.array.hArray);
        if (!a)
            return rt_array_error(d->res.array.hArray);
        set_array(a, a->level, a->level, t);
        break;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        if (!rt_mipmap_find(d->res.mipmap.hMipmappedArray, &whole))
            return rt_array_error(d->res.mipmap.hMipmappedArray);
        a = &whole;
        set_array(a, 0, whole.shape.levels - 1, t);
        break;
    case CU_RESOURCE_TYPE_LINEAR:
        r = set_linear(d, t);
        break;
    case CU_RESOURCE_TYPE_PITCH2D:
        r = set_pitched(d, t);
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (r == CUDA_SUCCESS && view)
        r = a ? set_view(a, levels, view, t) : CUDA_SUCCESS; /* a view says nothing about memory */
    if (r)
        return r;
    if (a) {
        t->row = t->width * t->element;
        t->pitch = dev_array_row(t->row);
        t->slice = dev_array_plane(t->row, t->height);
        *memory = a->memory;
    }
    set_told(t);
    t->kind = surface ? DEV_SURFACE : DEV_TEXTURE;
    return CUDA_SUCCESS;
}

int rt_descriptor_sampler(const CUDA_TEXTURE_DESC *d, struct dev_texture *t)
{
    const unsigned known = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
                           CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP;
    bool whole = t->format <= DEV_FORMAT_S32;
    bool stays = whole && ((d->flags & CU_TRSF_READ_AS_INTEGER) || t->format == DEV_FORMAT_U32 ||
                           t->format == DEV_FORMAT_S32);
    if ((d->flags & ~known) || d->filterMode > CU_TR_FILTER_MODE_LINEAR ||
        d->mipmapFilterMode > CU_TR_FILTER_MODE_LINEAR ||
        ((d->flags & CU_TRSF_SEAMLESS_CUBEMAP) && !(t->flags & DEV_TEXTURE_CUBE)))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < GM_ARRAY_LEN(d->reserved); i++)
        if (d->reserved[i])
            return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < 3; i++) {
        /* Modes of other dimensions are ignored. */
        bool there = i == 0 || (i == 1 ? t->told_height : t->told_depth);
        if ((unsigned)d->addressMode[i] > CU_TR_ADDRESS_MODE_BORDER && there)
            return CUDA_ERROR_INVALID_VALUE;
        t->address[i] = (uint32_t)d->addressMode[i] & 3;
        /* Wrapping and mirroring need normalized coordinates. */
        if (!(d->flags & CU_TRSF_NORMALIZED_COORDINATES) && t->address[i] != DEV_ADDRESS_BORDER)
            t->address[i] = DEV_ADDRESS_CLAMP;
    }
    t->sampler_flags =
        (d->filterMode == CU_TR_FILTER_MODE_LINEAR ? DEV_SAMPLER_LINEAR : 0) |
        (d->mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR ? DEV_SAMPLER_MIP_LINEAR : 0) |
        (d->flags & CU_TRSF_NORMALIZED_COORDINATES ? DEV_SAMPLER_NORMALIZED : 0) |
        (stays ? DEV_SAMPLER_INTEGER : 0) | (d->flags & CU_TRSF_SRGB ? DEV_SAMPLER_SRGB : 0) |
        (d->flags & CU_TRSF_SEAMLESS_CUBEMAP ? DEV_SAMPLER_SEAMLESS : 0);
    t->bias = d->mipmapLevelBias;
    t->min_level = d->minMipmapLevelClamp;
    t->max_level = d->maxMipmapLevelClamp;
    memcpy(t->border, d->borderColor, sizeof(t->border));
    return CUDA_SUCCESS;
}
