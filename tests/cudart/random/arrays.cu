// Arrays and mipmapped arrays, and textures and surfaces of them.
#include "random.cuh"

Table<cudaArray_t> arrays = { "array" };
static Table<cudaMipmappedArray_t> mipmaps = { "mipmap" };
static Table<cudaTextureObject_t> textures = { "texture" };
static Table<cudaSurfaceObject_t> surfaces = { "surface" };

static cudaChannelFormatDesc pick_format(std::string *text)
{
    const int bits = one_of({ 8, 16, 32, 32, 8, 12, 0 }), channels = one_of({ 1, 1, 2, 4, 3 });
    const auto kind = one_of({ cudaChannelFormatKindSigned, cudaChannelFormatKindUnsigned, cudaChannelFormatKindFloat,
                               cudaChannelFormatKindUnsigned, cudaChannelFormatKindNone });
    *text = std::to_string(channels) + " x " + std::to_string(bits) + " kind " + std::to_string((int)kind);
    return cudaCreateChannelDesc(bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0, channels > 3 ? bits : 0, kind);
}

static void create()
{
    std::string format;
    const auto d = pick_format(&format);
    const int i = arrays.place();
    const unsigned flags = one_of({ 0u, 0u, 0u, 2u, 1u, 4u, 8u, 3u, 5u });
    const cudaExtent e = cudaExtent { chance(12) ? 0 : 1 + draw(20), draw(12), draw(3) ? 0 : draw(8) };
    if (i < 0)
        return;
    if (draw(2)) {
        say("cudaMallocArray(array%d, %s, %zu x %zu, %#x)", i, format.c_str(), e.width, e.height, flags);
        arrays.live[i] = done(cudaMallocArray(&arrays.at[i], &d, e.width, e.height, flags)) == cudaSuccess;
    } else {
        say("cudaMalloc3DArray(array%d, %s, %zu x %zu x %zu, %#x)", i, format.c_str(), e.width, e.height, e.depth, flags);
        arrays.live[i] = done(cudaMalloc3DArray(&arrays.at[i], &d, e, flags)) == cudaSuccess;
    }
}

static void ask(const Table<cudaArray_t>::Picked &a)
{
    cudaChannelFormatDesc d = {};
    cudaExtent e = {};
    unsigned flags = 77;
    if (a.slot < 0 && draw(8))
        return;
    say("cudaArrayGetInfo(%s)", a.name.c_str());
    if (done(cudaArrayGetInfo(&d, &e, &flags, a.handle)) == cudaSuccess)
        out("%d %d %d %d kind %d, %zu x %zu x %zu, %#x", d.x, d.y, d.z, d.w, (int)d.f, e.width, e.height, e.depth, flags);
}

static void mipmap()
{
    std::string format;
    const auto d = pick_format(&format);
    const int i = mipmaps.place();
    const unsigned flags = one_of({ 0u, 0u, 0u, 2u, 1u, 4u }), levels = one_of({ 0u, 1u, 2u, 3u, 9u });
    const cudaExtent e = cudaExtent { chance(12) ? 0 : 1 + draw(20), draw(12), draw(3) ? 0 : draw(8) };
    const auto m = mipmaps.pick();
    cudaArray_t level = nullptr;
    if (draw(2)) {
        if (i < 0)
            return;
        say("cudaMallocMipmappedArray(mipmap%d, %s, %zu x %zu x %zu, %u, %#x)", i, format.c_str(), e.width, e.height, e.depth,
            levels, flags);
        mipmaps.live[i] = done(cudaMallocMipmappedArray(&mipmaps.at[i], &d, e, levels, flags)) == cudaSuccess;
    } else if (draw(2)) {
        say("cudaGetMipmappedArrayLevel(%s, %u)", m.name.c_str(), levels);
        cudaExtent x = {};
        if (m.slot >= 0 && done(cudaGetMipmappedArrayLevel(&level, m.handle, levels)) == cudaSuccess &&
            cudaArrayGetInfo(nullptr, &x, nullptr, level) == cudaSuccess)
            out("%zu x %zu x %zu", x.width, x.height, x.depth);
    } else {
        say("cudaFreeMipmappedArray(%s)", m.name.c_str());
        if (done(cudaFreeMipmappedArray(m.handle)) == cudaSuccess && m.slot >= 0)
            mipmaps.live[m.slot] = false;
    }
}

static bool pick_resource(cudaResourceDesc *r, std::string *text)
{
    std::string format;
    const auto a = arrays.pick(6);
    const auto m = pick_memory(10);
    const auto mip = mipmaps.pick();
    *r = {};
    switch (draw(6)) {
    case 0:
        r->resType = cudaResourceTypeLinear;
        r->res.linear = { m.handle.address, pick_format(&format), draw(3) ? m.handle.size & ~(size_t)15 : draw(300) };
        *text = "linear " + m.name + " " + format + ", " + std::to_string(r->res.linear.sizeInBytes);
        return m.handle.kind != Memory::PAGEABLE;
    case 1:
        r->resType = cudaResourceTypePitch2D;
        r->res.pitch2D = { m.handle.address, pick_format(&format), draw(20), draw(6), one_of<size_t>({ 512, 512, 32, 100, 0 }) };
        *text = "pitch " + m.name + " " + format + ", " + std::to_string(r->res.pitch2D.width) + " x " +
                std::to_string(r->res.pitch2D.height) + " by " + std::to_string(r->res.pitch2D.pitchInBytes);
        return m.handle.kind != Memory::PAGEABLE;
    case 2:
        r->resType = cudaResourceTypeMipmappedArray;
        r->res.mipmap.mipmap = mip.handle;
        *text = mip.name;
        return mip.slot >= 0;
    default:
        r->resType = chance(20) ? (cudaResourceType)9 : cudaResourceTypeArray;
        r->res.array.array = a.handle;
        *text = std::to_string((int)r->resType) + " " + a.name;
        return a.slot >= 0;
    }
}

static void make_texture()
{
    cudaResourceDesc r;
    cudaTextureDesc t = {};
    std::string what;
    const int i = textures.place();
    if (i < 0 || !pick_resource(&r, &what))
        return;
    for (auto &mode : t.addressMode)
        mode = (cudaTextureAddressMode)(chance(20) ? 5 : draw(4));
    t.filterMode = (cudaTextureFilterMode)draw(2);
    t.readMode = (cudaTextureReadMode)draw(2);
    t.sRGB = chance(8);
    t.normalizedCoords = (int)draw(2);
    t.maxAnisotropy = one_of({ 0u, 0u, 1u, 16u, 17u });
    t.mipmapFilterMode = (cudaTextureFilterMode)draw(2);
    t.seamlessCubemap = chance(10);
    say("cudaCreateTextureObject(texture%d, %s, modes %d %d %d, filter %d, read %d, sRGB %d, normal %d, aniso %u, mip %d, cube %d)",
        i, what.c_str(), (int)t.addressMode[0], (int)t.addressMode[1], (int)t.addressMode[2], (int)t.filterMode, (int)t.readMode,
        t.sRGB, t.normalizedCoords, t.maxAnisotropy, (int)t.mipmapFilterMode, t.seamlessCubemap);
    textures.live[i] = done(cudaCreateTextureObject(&textures.at[i], &r, &t, nullptr)) == cudaSuccess;
}

static void texture()
{
    const auto t = textures.pick(20);
    cudaResourceDesc r = {};
    cudaTextureDesc d = {};
    cudaResourceViewDesc v = {};
    switch (draw(6)) {
    case 0:
        say("cudaDestroyTextureObject(%s)", t.name.c_str());
        if (done(cudaDestroyTextureObject(t.handle)) == cudaSuccess && t.slot >= 0)
            textures.live[t.slot] = false;
        break;
    case 1:
        say("cudaGetTextureObjectResourceDesc(%s)", t.name.c_str());
        if (t.slot >= 0 && done(cudaGetTextureObjectResourceDesc(&r, t.handle)) == cudaSuccess) {
            out("type %d", (int)r.resType);
            if (r.resType == cudaResourceTypeLinear)
                out("%d %d kind %d, %zu", r.res.linear.desc.x, r.res.linear.desc.y, (int)r.res.linear.desc.f,
                    r.res.linear.sizeInBytes);
            if (r.resType == cudaResourceTypePitch2D)
                out("%d %d kind %d, %zu x %zu by %zu", r.res.pitch2D.desc.x, r.res.pitch2D.desc.y, (int)r.res.pitch2D.desc.f,
                    r.res.pitch2D.width, r.res.pitch2D.height, r.res.pitch2D.pitchInBytes);
        }
        break;
    case 2:
        say("cudaGetTextureObjectTextureDesc(%s)", t.name.c_str());
        if (t.slot >= 0 && done(cudaGetTextureObjectTextureDesc(&d, t.handle)) == cudaSuccess)
            out("modes %d %d %d, filter %d, read %d, sRGB %d, normal %d, aniso %u, mip %d, cube %d", (int)d.addressMode[0],
                (int)d.addressMode[1], (int)d.addressMode[2], (int)d.filterMode, (int)d.readMode, d.sRGB, d.normalizedCoords,
                d.maxAnisotropy, (int)d.mipmapFilterMode, d.seamlessCubemap);
        break;
    case 3:
        say("cudaGetTextureObjectResourceViewDesc(%s)", t.name.c_str());
        if (t.slot >= 0 && done(cudaGetTextureObjectResourceViewDesc(&v, t.handle)) == cudaSuccess)
            out("%d", (int)v.format);
        break;
    default:
        make_texture();
    }
}

static void surface()
{
    const auto s = surfaces.pick(20);
    const int i = surfaces.place();
    std::string what;
    cudaResourceDesc r;
    switch (draw(3)) {
    case 0:
        say("cudaDestroySurfaceObject(%s)", s.name.c_str());
        if (done(cudaDestroySurfaceObject(s.handle)) == cudaSuccess && s.slot >= 0)
            surfaces.live[s.slot] = false;
        break;
    case 1:
        r = {};
        say("cudaGetSurfaceObjectResourceDesc(%s)", s.name.c_str());
        if (s.slot >= 0 && done(cudaGetSurfaceObjectResourceDesc(&r, s.handle)) == cudaSuccess)
            out("type %d", (int)r.resType);
        break;
    default:
        if (i < 0 || !pick_resource(&r, &what))
            break;
        say("cudaCreateSurfaceObject(surface%d, %s)", i, what.c_str());
        surfaces.live[i] = done(cudaCreateSurfaceObject(&surfaces.at[i], &r)) == cudaSuccess;
    }
}

static void call()
{
    const auto a = arrays.pick();
    switch (draw(8)) {
    case 0:
    case 1:
        create();
        break;
    case 2:
        ask(a);
        break;
    case 3:
        say("cudaFreeArray(%s)", a.name.c_str());
        if (done(cudaFreeArray(a.handle)) == cudaSuccess && a.slot >= 0)
            arrays.live[a.slot] = false;
        break;
    case 4:
        mipmap();
        break;
    case 5:
        surface();
        break;
    default:
        texture();
    }
}

static void begin()
{
    create();
    create();
}

const Subject array_subject = { begin, call };
