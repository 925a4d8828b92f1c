/* Copies and fills of memory. */
#include <stdio.h>

#include "random.h"

/* A place to copy from or to: an address, its name, and how many bytes there are. */
struct place {
    CUdeviceptr at;
    size_t room;
    bool device;
    char name[40];
};

static struct place device_place(void)
{
    struct place p = { .device = true, .name = "NULL" };
    int slot = random_pick_or_null(BUFFER);
    if (slot < 0)
        return p;
    const struct random_object *o = random_at(BUFFER, slot);
    size_t off = o->size && random_chance(2) ? random_below((unsigned)o->size) : 0;
    p.at = o->handle + off;
    p.room = o->size - off;
    snprintf(p.name, sizeof(p.name), "buffer%d + %zu", slot, off);
    return p;
}

static struct place host_place(bool to)
{
    struct place p = { .room = PAGEABLE };
    int slot = random_chance(2) ? random_pick(HOST) : -1;
    if (slot < 0) {
        size_t off = random_below(1000);
        p.at = (uintptr_t)(to ? random_sink : random_source) + off;
        p.room -= off;
        snprintf(p.name, sizeof(p.name), "%s + %zu", to ? "sink" : "source", off);
        return p;
    }
    p.at = random_handle(HOST, slot);
    p.room = random_at(HOST, slot)->size;
    snprintf(p.name, sizeof(p.name), "host%d", slot);
    return p;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How much to copy: what a host's place has is never passed, since the host may be what copies. */
static size_t amount(const struct place *to, const struct place *from)
{
    size_t most = least(to->room, from->room), n = most ? random_size(most) : random_below(2);
    if (n > most && (!to->device || !from->device) &&
        ((!to->device && n > to->room) || (!from->device && n > from->room)))
        n = most;
    return n;
}

static void *pointer(CUdeviceptr p)
{
    return (void *)(uintptr_t)p;
}

static void to_device(void)
{
    struct place to = device_place(), from = host_place(false);
    size_t n = amount(&to, &from);
    random_settle();
    random_say("cuMemcpyHtoD(%s, %s, %zu)", to.name, from.name, n);
    random_done(cuMemcpyHtoD(to.at, pointer(from.at), n));
    random_used(-1);
}

static void to_host(void)
{
    struct place to = host_place(true), from = device_place();
    size_t n = amount(&to, &from);
    bool known = random_settle();
    random_say("cuMemcpyDtoH(%s, %s, %zu)", to.name, from.name, n);
    if (random_done(cuMemcpyDtoH(pointer(to.at), from.at, n)) == CUDA_SUCCESS && known)
        random_out("%08x", random_hash(pointer(to.at), n));
}

/* Two parts of one buffer that overlap have no defined result. */
static bool overlap(const struct place *a, const struct place *b, size_t n)
{
    return a->at < b->at + n && b->at < a->at + n;
}

static void inside_device(void)
{
    struct place to = device_place(), from = device_place();
    size_t n = amount(&to, &from);
    if (overlap(&to, &from, n))
        return;
    random_settle();
    random_say("cuMemcpyDtoD(%s, %s, %zu)", to.name, from.name, n);
    random_done(cuMemcpyDtoD(to.at, from.at, n));
    random_used(-1);
}

static struct place any_place(bool to)
{
    return random_chance(3) ? host_place(to) : device_place();
}

static void unified(void)
{
    struct place to = any_place(true), from = any_place(false);
    size_t n = amount(&to, &from);
    if (overlap(&to, &from, n))
        return;
    random_settle();
    random_say("cuMemcpy(%s, %s, %zu)", to.name, from.name, n);
    random_done(cuMemcpy(to.at, from.at, n));
    random_used(-1);
}

static void unified_async(void)
{
    struct place to = any_place(true), from = any_place(false);
    size_t n = amount(&to, &from);
    int s = random_pick_stream();
    if (overlap(&to, &from, n))
        return;
    random_use(s);
    random_say("cuMemcpyAsync(%s, %s, %zu, %s)", to.name, from.name, n, random_name(STREAM, s));
    random_done(cuMemcpyAsync(to.at, from.at, n, random_stream(s)));
    random_used(s);
}

static void async(void)
{
    unsigned way = random_below(3);
    struct place to = way == 1 ? host_place(true) : device_place(),
                 from = way == 0 ? host_place(false) : device_place();
    size_t n = amount(&to, &from);
    int s = random_pick_stream();
    CUstream stream = random_stream(s);
    if (overlap(&to, &from, n))
        return;
    random_use(s);
    random_say("cuMemcpy%sAsync(%s, %s, %zu, %s)",
               way == 0   ? "HtoD"
               : way == 1 ? "DtoH"
                          : "DtoD",
               to.name, from.name, n, random_name(STREAM, s));
    random_done(way == 0   ? cuMemcpyHtoDAsync(to.at, pointer(from.at), n, stream)
                : way == 1 ? cuMemcpyDtoHAsync(pointer(to.at), from.at, n, stream)
                           : cuMemcpyDtoDAsync(to.at, from.at, n, stream));
    random_used(s);
}

static void peer(void)
{
    struct place to = device_place(), from = device_place();
    size_t n = amount(&to, &from);
    int a = random_pick_or_null(CONTEXT), b = random_pick_or_null(CONTEXT);
    if (overlap(&to, &from, n))
        return;
    random_settle();
    random_say("cuMemcpyPeer(%s, %s, %s, %s, %zu)", to.name, random_name(CONTEXT, a), from.name,
               random_name(CONTEXT, b), n);
    random_done(cuMemcpyPeer(to.at, HANDLE(CUcontext, CONTEXT, a), from.at,
                             HANDLE(CUcontext, CONTEXT, b), n));
    random_used(-1);
    random_settle();
}

/* One side of a copy in two or three dimensions. */
struct side {
    struct place place;
    CUmemorytype type;
    size_t x, y, pitch;
};

static struct side some_side(bool to, size_t width)
{
    struct side s = { .place = any_place(to) };
    s.type = random_chance(5) ? CU_MEMORYTYPE_UNIFIED
             : s.place.device ? CU_MEMORYTYPE_DEVICE
                              : CU_MEMORYTYPE_HOST;
    if (random_chance(30))
        s.type = (CUmemorytype)ONE_OF(int, 0, 5, -1);
    s.pitch = random_chance(8) ? ONE_OF(size_t, 0, width ? width - 1 : 1, 1)
                               : width + ONE_OF(size_t, 0, 0, 1, 4, 28);
    s.x = random_chance(3) ? random_below(20) : 0;
    s.y = random_chance(3) ? random_below(3) : 0;
    return s;
}

/* Whether a copy stays inside of its place: nobody says what becomes of one that does not. */
static bool inside(const struct side *s, size_t width, size_t rows)
{
    size_t pitch = s->pitch > width + s->x ? s->pitch : width + s->x;
    return (s->y + rows) * pitch + width + s->x <= s->place.room;
}

/* What CUDA_MEMCPY2D and CUDA_MEMCPY3D both say of the two sides. */
#define SIDES(to, from)                                                                            \
    .srcXInBytes = (from).x, .srcY = (from).y, .srcMemoryType = (from).type,                       \
    .srcHost = pointer((from).place.at), .srcDevice = (from).place.at, .srcPitch = (from).pitch,   \
    .dstXInBytes = (to).x, .dstY = (to).y, .dstMemoryType = (to).type,                             \
    .dstHost = pointer((to).place.at), .dstDevice = (to).place.at, .dstPitch = (to).pitch

static void two_dimensions(void)
{
    size_t width = random_chance(8) ? 0 : random_below(60) + 1, height = random_below(8);
    struct side to = some_side(true, width), from = some_side(false, width);
    unsigned way = random_below(3);
    int s = random_pick_stream();
    CUDA_MEMCPY2D c = {
        SIDES(to, from),
        .WidthInBytes = width,
        .Height = height,
    };
    if (!inside(&to, width, height) || !inside(&from, width, height) ||
        overlap(&to.place, &from.place, 1000))
        return;
    if (way == 2)
        random_use(s);
    else
        random_settle();
    random_say(
        "cuMemcpy2D%s(%d %s x %zu y %zu pitch %zu, %d %s x %zu y %zu pitch %zu, %zu x %zu%s%s)",
        way == 2   ? "Async"
        : way == 1 ? "Unaligned"
                   : "",
        (int)to.type, to.place.name, to.x, to.y, to.pitch, (int)from.type, from.place.name, from.x,
        from.y, from.pitch, width, height, way == 2 ? ", " : "",
        way == 2 ? random_name(STREAM, s) : "");
    random_done(way == 2   ? cuMemcpy2DAsync(&c, random_stream(s))
                : way == 1 ? cuMemcpy2DUnaligned(&c)
                           : cuMemcpy2D(&c));
    random_used(way == 2 ? s : -1);
}

static void three_dimensions(void)
{
    size_t width = random_chance(8) ? 0 : random_below(40) + 1, height = random_below(5),
           depth = random_below(4);
    struct side to = some_side(true, width), from = some_side(false, width);
    size_t rows = height + ONE_OF(size_t, 0, 0, 1, 3);
    CUDA_MEMCPY3D c = {
        SIDES(to, from),       .srcHeight = rows, .dstHeight = rows,
        .WidthInBytes = width, .Height = height,  .Depth = depth,
    };
    if (random_chance(12))
        c.dstHeight = 0;
    if (!inside(&to, width, (rows + 3) * 4) || !inside(&from, width, (rows + 3) * 4) ||
        overlap(&to.place, &from.place, 4000))
        return;
    random_settle();
    random_say(
        "cuMemcpy3D(%d %s x %zu y %zu pitch %zu rows %zu, %d %s x %zu y %zu pitch %zu rows %zu, "
        "%zu x %zu x %zu)",
        (int)to.type, to.place.name, to.x, to.y, to.pitch, c.dstHeight, (int)from.type,
        from.place.name, from.x, from.y, from.pitch, rows, width, height, depth);
    random_done(cuMemcpy3D(&c));
    random_used(-1);
}

static void fill(void)
{
    struct place to = device_place();
    unsigned width = random_below(3), value = random_below(UINT32_MAX);
    size_t n = to.room ? random_size(to.room >> width ? to.room >> width : 1) : random_below(2);
    int s = random_pick_stream();
    bool async = random_chance(2);
    CUstream stream = random_stream(s);
    if (random_chance(2))
        to.at &= ~(CUdeviceptr)3;
    if (async)
        random_use(s);
    else
        random_settle();
    random_say("cuMemsetD%u%s(%s%s, %#x, %zu%s%s)", 8 << width, async ? "Async" : "", to.name,
               to.at & 3 ? "" : " aligned", value, n, async ? ", " : "",
               async ? random_name(STREAM, s) : "");
    if (width == 0)
        random_done(async ? cuMemsetD8Async(to.at, (unsigned char)value, n, stream)
                          : cuMemsetD8(to.at, (unsigned char)value, n));
    else if (width == 1)
        random_done(async ? cuMemsetD16Async(to.at, (unsigned short)value, n, stream)
                          : cuMemsetD16(to.at, (unsigned short)value, n));
    else
        random_done(async ? cuMemsetD32Async(to.at, value, n, stream)
                          : cuMemsetD32(to.at, value, n));
    random_used(async ? s : -1);
}

static void fill_rectangle(void)
{
    struct place to = device_place();
    unsigned width = random_below(3), value = random_below(UINT32_MAX);
    size_t columns = random_below(40), rows = random_below(6),
           pitch = (columns << width) + ONE_OF(size_t, 0, 0, 1, 2, 4, 12);
    int s = random_pick_stream();
    CUstream stream = random_stream(s);
    if (random_chance(8))
        pitch = ONE_OF(size_t, 0, 1, columns);
    if (random_chance(2))
        to.at &= ~(CUdeviceptr)3;
    if (rows * (pitch > columns << width ? pitch : columns << width) > to.room)
        return;
    random_use(s);
    random_say("cuMemsetD2D%uAsync(%s%s, %zu, %#x, %zu, %zu, %s)", 8 << width, to.name,
               to.at & 3 ? "" : " aligned", pitch, value, columns, rows, random_name(STREAM, s));
    random_done(width == 0
                    ? cuMemsetD2D8Async(to.at, pitch, (unsigned char)value, columns, rows, stream)
                : width == 1
                    ? cuMemsetD2D16Async(to.at, pitch, (unsigned short)value, columns, rows, stream)
                    : cuMemsetD2D32Async(to.at, pitch, value, columns, rows, stream));
    random_used(s);
}

static const struct random_generator copies[] = {
    GENERATOR(to_device, 4), GENERATOR(to_host, 4),        GENERATOR(inside_device, 3),
    GENERATOR(unified, 4),   GENERATOR(unified_async, 4),  GENERATOR(async, 6),
    GENERATOR(peer, 1),      GENERATOR(two_dimensions, 6), GENERATOR(three_dimensions, 4),
    GENERATOR(fill, 8),      GENERATOR(fill_rectangle, 4), GENERATOR(random_look, 1),
};
const struct random_subject random_copies = SUBJECT(copies, NULL);
