/* Reserved addresses and the memory that is mapped there, in pieces of two MiB. */
#include <stdio.h>

#include "random.h"

#define PIECE ((size_t)2 << 20)

static const char *range(int slot)
{
    return random_name(RANGE, slot);
}

static const char *physical(int slot)
{
    return random_name(PHYSICAL, slot);
}

static size_t some_size(void)
{
    return random_chance(6) ? ONE_OF(size_t, 0, 1, 4096, PIECE + 1, PIECE - 65536)
                            : PIECE * (1 + random_below(3));
}

static void granularity(void)
{
    CUmemAllocationProp prop;
    size_t size = 0;
    int option = ONE_OF(int, 0, 1, 2);
    memset(&prop, 0, sizeof(prop));
    prop.type = (CUmemAllocationType)ONE_OF(int, 1, 1, 1, 0, 9);
    prop.location.type = (CUmemLocationType)ONE_OF(int, 1, 1, 1, 0, 9);
    prop.location.id = ONE_OF(int, 0, 0, 0, 99);
    random_say("cuMemGetAllocationGranularity(%d, %d:%d, %d)", (int)prop.type,
               (int)prop.location.type, prop.location.id, option);
    if (random_done(cuMemGetAllocationGranularity(
            &size, &prop, (CUmemAllocationGranularity_flags)option)) == CUDA_SUCCESS)
        random_out("%zu", size);
}

static void reserve(void)
{
    int slot = random_free_slot(RANGE);
    size_t size = some_size(),
           alignment = ONE_OF(size_t, 0, 0, PIECE, 2 * PIECE, 4096, 3, PIECE + 4096);
    unsigned long long flags = random_chance(12);
    CUdeviceptr p = 0;
    random_say("cuMemAddressReserve(%s, %zu, %zu, 0, %llu)", range(slot), size, alignment, flags);
    if (random_done(cuMemAddressReserve(&p, size, alignment, 0, flags)) != CUDA_SUCCESS)
        return;
    random_out("%s", p % (alignment > PIECE ? alignment : PIECE) ? "not aligned" : "aligned");
    random_keep(RANGE, slot, p, size);
    random_at(RANGE, slot)->owner = -1;
}

static void free_range(void)
{
    int slot = random_pick_or_null(RANGE);
    size_t size = slot < 0 ? PIECE : random_at(RANGE, slot)->size;
    if (random_chance(6))
        size = PIECE;
    random_settle();
    random_say("cuMemAddressFree(%s, %zu)", range(slot), size);
    if (random_done(cuMemAddressFree(random_handle(RANGE, slot), size)) == CUDA_SUCCESS)
        random_drop(RANGE, slot);
}

static void create(void)
{
    int slot = random_free_slot(PHYSICAL);
    size_t size = some_size();
    unsigned long long flags = random_chance(12);
    CUmemAllocationProp prop;
    CUmemGenericAllocationHandle h = 0;
    memset(&prop, 0, sizeof(prop));
    prop.type = (CUmemAllocationType)ONE_OF(int, 1, 1, 1, 1, 1, 0);
    prop.location.type = (CUmemLocationType)ONE_OF(int, 1, 1, 1, 1, 1, 0);
    prop.location.id = random_chance(10) ? 99 : 0;
    prop.requestedHandleTypes = (CUmemAllocationHandleType)ONE_OF(int, 0, 0, 1);
    random_say("cuMemCreate(%s, %zu, %d %d:%d %d, %llu)", physical(slot), size, (int)prop.type,
               (int)prop.location.type, prop.location.id, (int)prop.requestedHandleTypes, flags);
    if (random_done(cuMemCreate(&h, size, &prop, flags)) != CUDA_SUCCESS)
        return;
    random_keep(PHYSICAL, slot, h, size);
    random_at(PHYSICAL, slot)->owner = -1;
}

static void release(void)
{
    int slot = random_pick(PHYSICAL);
    if (slot < 0)
        return;
    random_settle();
    random_say("cuMemRelease(%s)", physical(slot));
    if (random_done(cuMemRelease(random_handle(PHYSICAL, slot))) == CUDA_SUCCESS)
        random_drop(PHYSICAL, slot);
}

static void properties(void)
{
    int slot = random_pick(PHYSICAL);
    CUmemAllocationProp prop;
    memset(&prop, 0, sizeof(prop));
    if (slot < 0)
        return;
    random_say("cuMemGetAllocationPropertiesFromHandle(%s)", physical(slot));
    if (random_done(cuMemGetAllocationPropertiesFromHandle(&prop, random_handle(PHYSICAL, slot))) ==
        CUDA_SUCCESS)
        random_out("%d %d:%d %d", (int)prop.type, (int)prop.location.type, prop.location.id,
                   (int)prop.requestedHandleTypes);
}

static CUresult allow(CUdeviceptr p, size_t size, int flags, int id)
{
    CUmemAccessDesc d;
    memset(&d, 0, sizeof(d));
    d.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    d.location.id = id;
    d.flags = (CUmemAccess_flags)flags;
    return cuMemSetAccess(p, size, &d, 1);
}

/* Maps all of a piece of memory, mostly, and makes it known. */
static void map(void)
{
    int r = random_pick(RANGE), p = random_pick(PHYSICAL);
    if (r < 0 || p < 0)
        return;
    size_t size = random_at(PHYSICAL, p)->size, off = PIECE * random_below(3),
           from = random_chance(10) ? PIECE : 0;
    CUdeviceptr at = random_handle(RANGE, r) + off;
    if (off + size > random_at(RANGE, r)->size && random_below(10))
        return;
    random_settle();
    if (random_chance(10))
        size = ONE_OF(size_t, 0, 4096, PIECE);
    random_say("cuMemMap(%s + %zu, %zu, %zu, %s, 0)", range(r), off, size, from, physical(p));
    if (random_done(cuMemMap(at, size, from, random_handle(PHYSICAL, p), 0)) != CUDA_SUCCESS)
        return;
    random_say("cuMemsetD8(%s + %zu) without access", range(r), off);
    random_done(cuMemsetD8(at, 1, 16));
    random_say("cuMemSetAccess(%s + %zu, %zu, 3)", range(r), off, size);
    if (random_done(allow(at, size, 3, 0)) != CUDA_SUCCESS)
        return;
    random_say("cuMemsetD8(%s + %zu, %d, %zu)", range(r), off, p + 1, size);
    random_done(cuMemsetD8(at, (unsigned char)(p + 1), size));
    random_used(-1);
}

static void set_access(void)
{
    int r = random_pick(RANGE), flags = ONE_OF(int, 3, 3, 1, 0, 2), id = random_chance(8) ? 99 : 0;
    if (r < 0)
        return;
    size_t off = PIECE * random_below(3), size = PIECE * random_below(3);
    unsigned long long got = 99;
    CUmemLocation where = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = id };
    random_settle();
    random_say("cuMemSetAccess(%s + %zu, %zu, %d for %d)", range(r), off, size, flags, id);
    random_done(allow(random_handle(RANGE, r) + off, size, flags, id));
    random_say("cuMemGetAccess(%s + %zu, %d)", range(r), off, id);
    if (random_done(cuMemGetAccess(&got, &where, random_handle(RANGE, r) + off)) == CUDA_SUCCESS)
        random_out("%llu", got);
}

static void unmap(void)
{
    int r = random_pick(RANGE);
    if (r < 0)
        return;
    size_t off = random_chance(3) ? PIECE : 0,
           size = random_chance(3) ? random_at(RANGE, r)->size - off
                                   : ONE_OF(size_t, PIECE, 2 * PIECE, 4096, 0);
    random_settle();
    random_say("cuMemUnmap(%s + %zu, %zu)", range(r), off, size);
    random_done(cuMemUnmap(random_handle(RANGE, r) + off, size));
}

/* What is mapped now, as far as it can be read: a few bytes on each side of the pieces' edges. */
static void look(void)
{
    unsigned char seen[64];
    int r = random_pick(RANGE);
    if (r < 0 || !random_settle())
        return;
    for (size_t at = 0; at < random_at(RANGE, r)->size; at += PIECE / 2) {
        random_say("cuMemcpyDtoH(%s + %zu)", range(r), at);
        if (random_done(cuMemcpyDtoH(seen, random_handle(RANGE, r) + at, sizeof(seen))) ==
            CUDA_SUCCESS)
            random_out("%08x", random_hash(seen, sizeof(seen)));
    }
}

static void retain(void)
{
    int r = random_pick(RANGE);
    CUmemGenericAllocationHandle h = 0;
    if (r < 0)
        return;
    size_t off = PIECE * random_below(3);
    random_say("cuMemRetainAllocationHandle(%s + %zu)", range(r), off);
    if (random_done(cuMemRetainAllocationHandle(&h, HANDLE(char *, RANGE, r) + off)) !=
        CUDA_SUCCESS)
        return;
    random_out("%s", physical(random_find(PHYSICAL, h)));
    random_say("cuMemRelease(retained)");
    random_done(cuMemRelease(h));
}

static void begin_virtual(void)
{
    reserve();
    reserve();
    create();
    create();
    map();
    map();
}

static const struct random_generator ranges[] = {
    GENERATOR(granularity, 1), GENERATOR(reserve, 3),    GENERATOR(free_range, 2),
    GENERATOR(create, 4),      GENERATOR(release, 2),    GENERATOR(properties, 1),
    GENERATOR(map, 8),         GENERATOR(set_access, 3), GENERATOR(unmap, 3),
    GENERATOR(look, 4),        GENERATOR(retain, 2),
};
const struct random_subject random_virtual = SUBJECT(ranges, begin_virtual);
