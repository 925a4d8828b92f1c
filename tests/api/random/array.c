/* Arrays: made, described, copied to and from, with levels; what is in them is always known. */
#include "random.h"

/* How many bytes an element has; 0 for formats that these programs do not copy. */
static unsigned element(CUarray_format format, unsigned channels)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return channels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2 * channels;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4 * channels;
    default:
        return 0;
    }
}

static CUDA_ARRAY3D_DESCRIPTOR some_descriptor(void)
{
    CUDA_ARRAY3D_DESCRIPTOR d = {
        .Width = 1 + random_below(64),
        .Height = random_chance(3) ? 0 : 1 + random_below(16),
        .Depth = random_chance(2) ? 0 : 1 + random_below(6),
        .Format = (CUarray_format)ONE_OF(int, 1, 2, 3, 8, 9, 10, 16, 32, 32),
        .NumChannels = ONE_OF(unsigned, 1, 2, 4),
        .Flags = ONE_OF(unsigned, 0, 0, 0, 0, 1, 2, 2, 4, 5, 8),
    };
    unsigned wrong = random_below(24);
    if (wrong == 0)
        d.Width = ONE_OF(size_t, 0, 1 << 20, SIZE_MAX);
    else if (wrong == 1)
        d.NumChannels = ONE_OF(unsigned, 0, 3, 5);
    else if (wrong == 2)
        d.Format = (CUarray_format)ONE_OF(int, 0, 4, 99, -1);
    else if (wrong == 3)
        d.Flags = ONE_OF(unsigned, 0x100, 0x80000000, 3, 0xff);
    else if (wrong == 4)
        d.Height = ONE_OF(size_t, 1 << 20, SIZE_MAX);
    return d;
}

static void say_descriptor(const char *call, const char *name, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    random_say("%s(%s, %zu x %zu x %zu, %d x %u, %#x", call, name, d->Width, d->Height, d->Depth,
               (int)d->Format, d->NumChannels, d->Flags);
}

/* All of an array, which has `rows` rows in all. */
static CUresult whole(CUarray a, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned char *host, bool to)
{
    size_t row = d->Width * element(d->Format, d->NumChannels), height = d->Height ? d->Height : 1,
           depth = d->Depth ? d->Depth : 1;
    CUDA_MEMCPY3D c = { .WidthInBytes = row, .Height = height, .Depth = depth };
    if (to) {
        c.srcMemoryType = CU_MEMORYTYPE_HOST;
        c.srcHost = host;
        c.srcPitch = row;
        c.srcHeight = height;
        c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
        c.dstArray = a;
    } else {
        c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
        c.srcArray = a;
        c.dstMemoryType = CU_MEMORYTYPE_HOST;
        c.dstHost = host;
        c.dstPitch = row;
        c.dstHeight = height;
    }
    return cuMemcpy3D(&c);
}

static size_t bytes_of(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    return d->Width * element(d->Format, d->NumChannels) * (d->Height ? d->Height : 1) *
           (d->Depth ? d->Depth : 1);
}

static void keep(int slot, CUarray a, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    if (bytes_of(d) > PAGEABLE)
        return;
    random_settle();
    random_say("cuMemcpy3D(%s, source)", random_name(ARRAY, slot));
    if (random_done(whole(a, d, random_source, true)) != CUDA_SUCCESS)
        return;
    random_used(-1);
    random_keep(ARRAY, slot, (uintptr_t)a, bytes_of(d));
    random_at(ARRAY, slot)->mark = (unsigned)(d->Width * element(d->Format, d->NumChannels));
    random_at(ARRAY, slot)->how = d->Height == 0 && d->Depth == 0;
}

static void create(void)
{
    CUDA_ARRAY3D_DESCRIPTOR d = some_descriptor();
    CUDA_ARRAY_DESCRIPTOR flat = { d.Width, d.Height, d.Format, d.NumChannels };
    int slot = random_free_slot(ARRAY);
    bool two = random_chance(4);
    CUarray a = NULL;
    if (two)
        d.Depth = d.Flags = 0;
    say_descriptor(two ? "cuArrayCreate" : "cuArray3DCreate", random_name(ARRAY, slot), &d);
    random_put(")");
    if (random_done(two ? cuArrayCreate(&a, &flat) : cuArray3DCreate(&a, &d)) == CUDA_SUCCESS)
        keep(slot, a, &d);
}

/* An array with textures is left alone: nobody says what they read then. */
static void destroy(void)
{
    int slot = random_pick_or_null(ARRAY);
    if (random_pick(TEXTURE) >= 0)
        return;
    random_settle();
    random_say("cuArrayDestroy(%s)", random_name(ARRAY, slot));
    if (random_done(cuArrayDestroy(HANDLE(CUarray, ARRAY, slot))) == CUDA_SUCCESS)
        random_drop(ARRAY, slot);
}

static void descriptor(void)
{
    int slot = random_pick_or_null(ARRAY);
    CUDA_ARRAY3D_DESCRIPTOR d;
    CUDA_ARRAY_DESCRIPTOR flat;
    random_say("cuArray3DGetDescriptor(%s)", random_name(ARRAY, slot));
    if (random_done(cuArray3DGetDescriptor(&d, HANDLE(CUarray, ARRAY, slot))) == CUDA_SUCCESS)
        random_out("%zu x %zu x %zu, %d x %u, %#x", d.Width, d.Height, d.Depth, (int)d.Format,
                   d.NumChannels, d.Flags);
    random_say("cuArrayGetDescriptor(%s)", random_name(ARRAY, slot));
    if (random_done(cuArrayGetDescriptor(&flat, HANDLE(CUarray, ARRAY, slot))) == CUDA_SUCCESS)
        random_out("%zu x %zu, %d x %u", flat.Width, flat.Height, (int)flat.Format,
                   flat.NumChannels);
}

static void look(void)
{
    static unsigned char seen[PAGEABLE];
    int slot = random_pick(ARRAY);
    CUDA_ARRAY3D_DESCRIPTOR d;
    if (slot < 0 || !random_settle() ||
        cuArray3DGetDescriptor(&d, HANDLE(CUarray, ARRAY, slot)) != CUDA_SUCCESS)
        return;
    random_say("cuMemcpy3D(seen, %s)", random_name(ARRAY, slot));
    if (random_done(whole(HANDLE(CUarray, ARRAY, slot), &d, seen, false)) == CUDA_SUCCESS)
        random_out("%08x", random_hash(seen, bytes_of(&d)));
}

/* Copies of one dimension, of which many are outside of the array, or begin at no element. */
static void copy_line(void)
{
    int slot = random_pick_or_null(ARRAY), b = random_buffer(512),
        other = random_pick_or_null(ARRAY);
    CUarray a = HANDLE(CUarray, ARRAY, slot), o = HANDLE(CUarray, ARRAY, other);
    size_t row = slot < 0 ? 16 : random_at(ARRAY, slot)->mark,
           off = random_chance(2) ? 4 * random_below(8) : 0,
           n = random_chance(3) ? random_size(row)
               : row > off      ? row - off
                                : row;
    unsigned what = random_below(5);
    CUresult r;
    if (b < 0 || n > 512 || slot == other)
        return;
    bool known = random_settle();
    random_say("cuMemcpy%s(%s + %zu, %zu, %s)",
               what == 0   ? "HtoA"
               : what == 1 ? "AtoH"
               : what == 2 ? "DtoA"
               : what == 3 ? "AtoD"
                           : "AtoA",
               random_name(ARRAY, slot), off, n,
               what < 2   ? "host"
               : what < 4 ? random_name(BUFFER, b)
                          : random_name(ARRAY, other));
    CUdeviceptr p = random_handle(BUFFER, b);
    if (what == 0)
        r = cuMemcpyHtoA(a, off, random_source + 77, n);
    else if (what == 1)
        r = cuMemcpyAtoH(random_sink, a, off, n);
    else if (what == 2)
        r = cuMemcpyDtoA(a, off, p, n);
    else if (what == 3)
        r = cuMemcpyAtoD(p, a, off, n);
    else
        r = cuMemcpyAtoA(o, 0, a, off, n);
    random_used(-1);
    if (random_done(r) == CUDA_SUCCESS && what == 1 && known)
        random_out("%08x", random_hash(random_sink, n));
}

static void copy_rectangle(void)
{
    int slot = random_pick_or_null(ARRAY), s = random_pick_stream();
    size_t row = slot < 0 ? 16 : random_at(ARRAY, slot)->mark;
    bool to = random_chance(2), async = random_chance(2);
    CUDA_MEMCPY2D c = { .WidthInBytes = random_chance(3) ? random_size(row ? row : 1) : row,
                        .Height = 1 + random_below(4) };
    if (c.WidthInBytes > 4096)
        return;
    if (to) {
        c.srcMemoryType = CU_MEMORYTYPE_HOST;
        c.srcHost = random_source + random_below(50);
        c.srcPitch = c.WidthInBytes + random_below(9);
        c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
        c.dstArray = HANDLE(CUarray, ARRAY, slot);
        c.dstXInBytes = random_chance(3) ? 4 * random_below(4) : 0;
        c.dstY = random_chance(3) ? random_below(4) : 0;
    } else {
        c.dstMemoryType = CU_MEMORYTYPE_HOST;
        c.dstHost = random_sink;
        c.dstPitch = c.WidthInBytes + random_below(9);
        c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
        c.srcArray = HANDLE(CUarray, ARRAY, slot);
        c.srcXInBytes = random_chance(3) ? 4 * random_below(4) : 0;
        c.srcY = random_chance(3) ? random_below(4) : 0;
    }
    random_use(async ? s : -4);
    random_say("cuMemcpy2D%s(%s %s x %zu y %zu, pitch %zu, %zu x %zu, %s)", async ? "Async" : "",
               to ? "to" : "from", random_name(ARRAY, slot), c.dstXInBytes + c.srcXInBytes,
               c.dstY + c.srcY, c.srcPitch + c.dstPitch, c.WidthInBytes, c.Height,
               async ? random_name(STREAM, s) : "-");
    random_done(async ? cuMemcpy2DAsync(&c, random_stream(s)) : cuMemcpy2D(&c));
    random_used(async ? s : -1);
}

static void create_levels(void)
{
    CUDA_ARRAY3D_DESCRIPTOR d = some_descriptor();
    int slot = random_free_slot(MIPMAP);
    unsigned levels = ONE_OF(unsigned, 1, 2, 3, 5, 0, 7, 99);
    CUmipmappedArray m = NULL;
    say_descriptor("cuMipmappedArrayCreate", random_name(MIPMAP, slot), &d);
    random_put(", %u)", levels);
    if (random_done(cuMipmappedArrayCreate(&m, &d, levels)) != CUDA_SUCCESS)
        return;
    for (unsigned level = 0; level < levels && level < 8; level++) {
        CUarray a = NULL;
        CUDA_ARRAY3D_DESCRIPTOR got;
        random_say("cuMipmappedArrayGetLevel(%s, %u)", random_name(MIPMAP, slot), level);
        if (random_done(cuMipmappedArrayGetLevel(&a, m, level)) != CUDA_SUCCESS ||
            cuArray3DGetDescriptor(&got, a) != CUDA_SUCCESS || bytes_of(&got) > PAGEABLE)
            continue;
        random_out("%zu x %zu x %zu", got.Width, got.Height, got.Depth);
        random_settle();
        random_say("cuMemcpy3D(level, source)");
        random_done(whole(a, &got, random_source, true));
    }
    random_used(-1);
    random_keep(MIPMAP, slot, (uintptr_t)m, 0);
}

static void destroy_levels(void)
{
    int slot = random_pick_or_null(MIPMAP);
    if (random_pick(TEXTURE) >= 0)
        return;
    random_settle();
    random_say("cuMipmappedArrayDestroy(%s)", random_name(MIPMAP, slot));
    if (random_done(cuMipmappedArrayDestroy(HANDLE(CUmipmappedArray, MIPMAP, slot))) ==
        CUDA_SUCCESS)
        random_drop(MIPMAP, slot);
}

static void level(void)
{
    int slot = random_pick_or_null(MIPMAP);
    unsigned n = ONE_OF(unsigned, 0, 1, 2, 7, 99, UINT32_MAX);
    CUarray a = NULL;
    random_say("cuMipmappedArrayGetLevel(%s, %u)", random_name(MIPMAP, slot), n);
    random_done(cuMipmappedArrayGetLevel(&a, HANDLE(CUmipmappedArray, MIPMAP, slot), n));
}

void random_begin_arrays(void)
{
    create();
    create();
    create();
    create_levels();
}

static const struct random_generator arrays[] = {
    GENERATOR(create, 5),        GENERATOR(destroy, 1),        GENERATOR(descriptor, 3),
    GENERATOR(look, 5),          GENERATOR(copy_line, 6),      GENERATOR(copy_rectangle, 6),
    GENERATOR(create_levels, 2), GENERATOR(destroy_levels, 1), GENERATOR(level, 1),
};
const struct random_subject random_arrays = SUBJECT(arrays, random_begin_arrays);
