/* Textures and surfaces: made of arrays, levels and memory with good and bad descriptors, and what
 * they say that they are. */
#include "random.h"

static const char *texture(int slot)
{
    return random_name(TEXTURE, slot);
}

/* What a texture is of, and its text. */
static CUDA_RESOURCE_DESC some_resource(const char **name)
{
    CUDA_RESOURCE_DESC r;
    unsigned kind = random_below(4);
    int slot;
    memset(&r, 0, sizeof(r));
    r.resType = (CUresourcetype)kind;
    if (kind == 0) {
        slot = random_pick_or_null(ARRAY);
        r.res.array.hArray = HANDLE(CUarray, ARRAY, slot);
        *name = random_name(ARRAY, slot);
        return r;
    }
    if (kind == 1) {
        slot = random_pick_or_null(MIPMAP);
        r.res.mipmap.hMipmappedArray = HANDLE(CUmipmappedArray, MIPMAP, slot);
        *name = random_name(MIPMAP, slot);
        return r;
    }
    slot = random_chance(10) ? -1 : random_buffer(4096);
    *name = random_name(BUFFER, slot);
    CUdeviceptr p = random_handle(BUFFER, slot) +
                    (random_chance(8) && slot >= 0 ? ONE_OF(CUdeviceptr, 1, 16, 256) : 0);
    CUarray_format format = (CUarray_format)ONE_OF(int, 1, 2, 3, 8, 9, 10, 16, 32, 32, 99);
    unsigned channels = ONE_OF(unsigned, 1, 2, 4, 4, 1, 3);
    if (kind == 2) {
        r.res.linear.devPtr = p;
        r.res.linear.format = format;
        r.res.linear.numChannels = channels;
        r.res.linear.sizeInBytes = ONE_OF(size_t, 1024, 2048, 1000, 0, 3);
    } else {
        r.res.pitch2D.devPtr = p;
        r.res.pitch2D.format = format;
        r.res.pitch2D.numChannels = channels;
        r.res.pitch2D.width = ONE_OF(size_t, 8, 16, 15, 0);
        r.res.pitch2D.height = ONE_OF(size_t, 4, 3, 0);
        r.res.pitch2D.pitchInBytes = ONE_OF(size_t, 512, 512, 256, 100, 0);
    }
    if (random_chance(16))
        r.flags = 1;
    if (random_chance(20))
        r.resType = (CUresourcetype)ONE_OF(int, 4, 99, -1);
    return r;
}

static CUDA_TEXTURE_DESC some_sampling(void)
{
    CUDA_TEXTURE_DESC t;
    memset(&t, 0, sizeof(t));
    for (unsigned i = 0; i < 3; i++)
        t.addressMode[i] = (CUaddress_mode)ONE_OF(int, 0, 1, 1, 1, 2, 3);
    t.filterMode = (CUfilter_mode)ONE_OF(int, 0, 0, 1);
    t.flags = ONE_OF(unsigned, 0, 1, 2, 3, 0x10, 0, 0x20, 0x40, 0x100);
    t.maxAnisotropy = ONE_OF(unsigned, 0, 0, 0, 1, 16, 17);
    t.mipmapFilterMode = (CUfilter_mode)random_below(2);
    t.maxMipmapLevelClamp = ONE_OF(float, 0, 1, 3);
    t.mipmapLevelBias = ONE_OF(float, 0, 0, 0.5f);
    t.borderColor[1] = ONE_OF(float, 0, 1);
    if (random_chance(16))
        t.addressMode[0] = (CUaddress_mode)ONE_OF(int, 4, -1);
    if (random_chance(16))
        t.filterMode = (CUfilter_mode)ONE_OF(int, 2, -1);
    return t;
}

static void say_sampling(const CUDA_TEXTURE_DESC *t)
{
    random_put("modes %d %d %d, filter %d, flags %#x, aniso %u, levels %d %g %g %g, border %g",
               (int)t->addressMode[0], (int)t->addressMode[1], (int)t->addressMode[2],
               (int)t->filterMode, t->flags, t->maxAnisotropy, (int)t->mipmapFilterMode,
               (double)t->mipmapLevelBias, (double)t->minMipmapLevelClamp,
               (double)t->maxMipmapLevelClamp, (double)t->borderColor[1]);
}

static void say_resource(const CUDA_RESOURCE_DESC *r, const char *name)
{
    random_put("%d %s flags %u", (int)r->resType, name, r->flags);
    if (r->resType == CU_RESOURCE_TYPE_LINEAR)
        random_put(" %d x %u, %zu", (int)r->res.linear.format, r->res.linear.numChannels,
                   r->res.linear.sizeInBytes);
    else if (r->resType == CU_RESOURCE_TYPE_PITCH2D)
        random_put(" %d x %u, %zu x %zu pitch %zu", (int)r->res.pitch2D.format,
                   r->res.pitch2D.numChannels, r->res.pitch2D.width, r->res.pitch2D.height,
                   r->res.pitch2D.pitchInBytes);
}

static void create(void)
{
    const char *name;
    CUDA_RESOURCE_DESC r = some_resource(&name);
    CUDA_TEXTURE_DESC t = some_sampling();
    CUDA_RESOURCE_VIEW_DESC v;
    int slot = random_free_slot(TEXTURE);
    bool view = random_chance(6);
    CUtexObject o = 0;
    memset(&v, 0, sizeof(v));
    v.format = (CUresourceViewFormat)ONE_OF(int, 0, 1, 3, 22, 28, 99);
    v.width = ONE_OF(size_t, 1, 8, 64);
    v.height = ONE_OF(size_t, 0, 1, 8);
    random_say("cuTexObjectCreate(%s, ", texture(slot));
    say_resource(&r, name);
    random_put(", ");
    say_sampling(&t);
    if (view)
        random_put(", view %d %zu x %zu", (int)v.format, v.width, v.height);
    random_put(")");
    if (random_done(cuTexObjectCreate(&o, &r, &t, view ? &v : NULL)) != CUDA_SUCCESS)
        return;
    random_keep(TEXTURE, slot, o, 0);
    random_at(TEXTURE, slot)->how = 0;
}

static void create_surface(void)
{
    const char *name;
    CUDA_RESOURCE_DESC r = some_resource(&name);
    int slot = random_free_slot(TEXTURE);
    CUsurfObject o = 0;
    random_say("cuSurfObjectCreate(%s, ", texture(slot));
    say_resource(&r, name);
    random_put(")");
    if (random_done(cuSurfObjectCreate(&o, &r)) != CUDA_SUCCESS)
        return;
    random_keep(TEXTURE, slot, o, 0);
    random_at(TEXTURE, slot)->how = 1;
}

static void destroy(void)
{
    int slot = random_pick(TEXTURE);
    bool surface = slot >= 0 && random_at(TEXTURE, slot)->how;
    random_settle();
    random_say("%s(%s)", surface ? "cuSurfObjectDestroy" : "cuTexObjectDestroy", texture(slot));
    if (random_done(surface ? cuSurfObjectDestroy(random_handle(TEXTURE, slot))
                            : cuTexObjectDestroy(random_handle(TEXTURE, slot))) == CUDA_SUCCESS)
        random_drop(TEXTURE, slot);
}

static void ask(void)
{
    int slot = random_pick(TEXTURE);
    bool surface = slot >= 0 && random_at(TEXTURE, slot)->how;
    uint64_t o = random_handle(TEXTURE, slot);
    CUDA_RESOURCE_DESC r;
    CUDA_TEXTURE_DESC t;
    CUDA_RESOURCE_VIEW_DESC v;
    memset(&r, 0, sizeof(r));
    memset(&t, 0, sizeof(t)); /* not all of it is written */
    memset(&v, 0, sizeof(v));
    random_say("%s(%s)", surface ? "cuSurfObjectGetResourceDesc" : "cuTexObjectGetResourceDesc",
               texture(slot));
    if (random_done(surface ? cuSurfObjectGetResourceDesc(&r, o)
                            : cuTexObjectGetResourceDesc(&r, o)) == CUDA_SUCCESS) {
        random_put(", ");
        say_resource(&r, "it");
    }
    if (surface)
        return;
    random_say("cuTexObjectGetTextureDesc(%s)", texture(slot));
    if (random_done(cuTexObjectGetTextureDesc(&t, o)) == CUDA_SUCCESS) {
        t.borderColor[1] = 0; /* NVIDIA's library does not say it */
        random_put(", ");
        say_sampling(&t);
    }
    random_say("cuTexObjectGetResourceViewDesc(%s)", texture(slot));
    if (random_done(cuTexObjectGetResourceViewDesc(&v, o)) == CUDA_SUCCESS)
        random_out("%d %zu x %zu x %zu, levels %u to %u, layers %u to %u", (int)v.format, v.width,
                   v.height, v.depth, v.firstMipmapLevel, v.lastMipmapLevel, v.firstLayer,
                   v.lastLayer);
}

static const struct random_generator textures[] = {
    GENERATOR(create, 8),
    GENERATOR(create_surface, 3),
    GENERATOR(destroy, 2),
    GENERATOR(ask, 6),
};
const struct random_subject random_textures = SUBJECT(textures, random_begin_arrays);
