/* Memory: allocated, managed, ordered by streams, pinned, registered; its attributes; its frees. */
#include <stdlib.h>

#include "random.h"

enum how { ALLOC, MANAGED, PITCHED, ASYNC, REGISTERED };

unsigned char random_source[PAGEABLE], random_sink[PAGEABLE];

static const char *buffer(int slot)
{
    return random_name(BUFFER, slot);
}

int random_buffer(size_t size)
{
    unsigned first = random_below(SLOTS);
    for (unsigned i = 0; i < SLOTS; i++) {
        const struct random_object *o = random_at(BUFFER, (int)((first + i) % SLOTS));
        if (o->handle && o->size >= size)
            return (int)((first + i) % SLOTS);
    }
    return -1;
}

static size_t size_of_new(void)
{
    if (random_below(5))
        return random_chance(2) ? 4096 + random_below(61440) : 1 + random_below(4096);
    return ONE_OF(size_t, 0, 1, 2, 255, 256, 257, 512, 65536);
}

/* New memory has known contents, or is not kept. */
static void keep_buffer(int slot, CUdeviceptr p, size_t size, enum how how, int stream)
{
    int value = 1 + (int)random_below(255);
    random_use(stream);
    random_say("cuMemsetD8Async(%s, %d, %zu, %s)", buffer(slot), value, size,
               random_name(STREAM, stream));
    CUresult r = random_done(cuMemsetD8Async(p, (unsigned char)value, size, random_stream(stream)));
    random_used(stream);
    if (r != CUDA_SUCCESS)
        return;
    random_keep(BUFFER, slot, p, size);
    random_at(BUFFER, slot)->how = how;
}

static void alloc(void)
{
    int slot = random_free_slot(BUFFER);
    size_t size = size_of_new();
    CUdeviceptr p = 0;
    random_say("cuMemAlloc(%s, %zu)", buffer(slot), size);
    if (random_done(cuMemAlloc(&p, size)) == CUDA_SUCCESS)
        keep_buffer(slot, p, size, ALLOC, -1);
}

static void alloc_too_much(void)
{
    size_t size = ONE_OF(size_t, SIZE_MAX, SIZE_MAX / 2, (size_t)1 << 47, (size_t)1 << 60);
    CUdeviceptr p = 0;
    random_say("cuMemAlloc(&p, %zu)", size);
    random_done(cuMemAlloc(&p, size));
}

static void alloc_pitch(void)
{
    int slot = random_free_slot(BUFFER);
    size_t width = ONE_OF(size_t, 0, 1, 100, 512, 513, 2000), height = ONE_OF(size_t, 0, 1, 3, 16),
           pitch = 0;
    unsigned element = ONE_OF(unsigned, 0, 1, 2, 4, 4, 8, 16, 12, 32);
    CUdeviceptr p = 0;
    random_say("cuMemAllocPitch(%s, %zu, %zu, %u)", buffer(slot), width, height, element);
    if (random_done(cuMemAllocPitch(&p, &pitch, width, height, element)) != CUDA_SUCCESS)
        return;
    random_out("%zu", pitch);
    keep_buffer(slot, p, width * height, PITCHED, -1);
}

static void alloc_managed(void)
{
    int slot = random_free_slot(BUFFER);
    size_t size = size_of_new();
    unsigned flags = ONE_OF(unsigned, 1, 1, 1, 2, 0, 3, 4);
    CUdeviceptr p = 0;
    random_say("cuMemAllocManaged(%s, %zu, %u)", buffer(slot), size, flags);
    if (random_done(cuMemAllocManaged(&p, size, flags)) == CUDA_SUCCESS)
        keep_buffer(slot, p, size, MANAGED, -1);
}

static void alloc_async(void)
{
    int slot = random_free_slot(BUFFER), s = random_pick_stream();
    size_t size = size_of_new();
    CUdeviceptr p = 0;
    random_use(s);
    random_say("cuMemAllocAsync(%s, %zu, %s)", buffer(slot), size, random_name(STREAM, s));
    CUresult r = random_done(cuMemAllocAsync(&p, size, random_stream(s)));
    random_used(s);
    if (r == CUDA_SUCCESS && random_busy(s))
        keep_buffer(slot, p, size, ASYNC, s);
}

void random_keep_pooled(int slot, CUdeviceptr p, size_t size, int stream)
{
    keep_buffer(slot, p, size, ASYNC, stream);
}

static void free_buffer(void)
{
    int slot = random_pick_or_null(BUFFER);
    CUdeviceptr p = random_handle(BUFFER, slot),
                off = random_chance(8) && p ? ONE_OF(CUdeviceptr, 1, 256) : 0;
    random_settle();
    random_say("cuMemFree(%s + %zu)", buffer(slot), (size_t)off);
    if (random_done(cuMemFree(p + off)) == CUDA_SUCCESS) {
        random_drop(BUFFER, slot);
        if (p && random_chance(4) && random_at(BUFFER, slot)->how == ALLOC) {
            random_say("cuMemFree(%s) again", buffer(slot));
            random_done(cuMemFree(p));
        }
    }
}

static void free_async(void)
{
    int slot = random_pick_or_null(BUFFER), s = random_pick_stream();
    CUdeviceptr p = random_handle(BUFFER, slot),
                off = random_chance(8) && p ? ONE_OF(CUdeviceptr, 1, 256) : 0;
    random_use(s);
    random_say("cuMemFreeAsync(%s + %zu, %s)", buffer(slot), (size_t)off, random_name(STREAM, s));
    CUresult r = random_done(cuMemFreeAsync(p + off, random_stream(s)));
    random_used(s);
    if (r == CUDA_SUCCESS)
        random_drop(BUFFER, slot);
}

static void alloc_host(void)
{
    int slot = random_free_slot(HOST);
    size_t size = size_of_new();
    unsigned flags = ONE_OF(unsigned, 0, 0, 1, 2, 3, 4, 7, 8, UINT32_MAX);
    void *p = NULL;
    random_say("cuMemHostAlloc(%s, %zu, %#x)", random_name(HOST, slot), size, flags);
    if (random_done(cuMemHostAlloc(&p, size, flags)) != CUDA_SUCCESS)
        return;
    if (size)
        memset(p, slot + 1, size);
    random_keep(HOST, slot, (uintptr_t)p, size);
}

static void register_host(void)
{
    static void *all[256]; /* as many as calls at least; they stay, as handles do */
    static unsigned count;
    int slot = random_free_slot(HOST);
    size_t size = ONE_OF(size_t, 4096, 8192, 65536, 100, 0);
    unsigned flags = ONE_OF(unsigned, 0, 0, 1, 2, 3, 0x10, 0x20);
    void *p = all[count++ % COUNT(all)] = aligned_alloc(65536, 65536);
    memset(p, slot + 1, 65536);
    random_say("cuMemHostRegister(%s, %zu, %#x)", random_name(HOST, slot), size, flags);
    if (random_done(cuMemHostRegister(p, size, flags)) != CUDA_SUCCESS)
        return;
    random_keep(HOST, slot, (uintptr_t)p, size);
    random_at(HOST, slot)->how = REGISTERED;
    if (random_chance(6)) {
        random_say("cuMemHostRegister(%s, %zu, %#x) again", random_name(HOST, slot), size, flags);
        random_done(cuMemHostRegister(p, size, flags));
    }
}

static void free_host(void)
{
    int slot = random_pick_or_null(HOST);
    uintptr_t p = random_handle(HOST, slot);
    bool registered = slot >= 0 && random_at(HOST, slot)->how == REGISTERED;
    size_t off = random_chance(8) && p ? 16 : 0;
    CUresult r;
    random_settle();
    if (random_chance(10))
        registered = !registered;
    random_say("%s(%s + %zu)", registered ? "cuMemHostUnregister" : "cuMemFreeHost",
               random_name(HOST, slot), off);
    r = random_done(registered ? cuMemHostUnregister((void *)(p + off))
                               : cuMemFreeHost((void *)(p + off)));
    if (r == CUDA_SUCCESS)
        random_drop(HOST, slot);
}

static void host_pointer(void)
{
    int slot = random_pick_or_null(HOST);
    uintptr_t p = random_handle(HOST, slot);
    CUdeviceptr d = 0;
    size_t off = p && random_chance(3) ? 3 : 0;
    unsigned flags = random_chance(8), got = 99;
    random_say("cuMemHostGetDevicePointer(%s + %zu, %u)", random_name(HOST, slot), off, flags);
    if (random_done(cuMemHostGetDevicePointer(&d, (void *)(p + off), flags)) == CUDA_SUCCESS &&
        slot >= 0 && random_at(HOST, slot)->how != REGISTERED)
        random_out("%s", d == p + off ? "as on the host" : "elsewhere");
    random_say("cuMemHostGetFlags(%s + %zu)", random_name(HOST, slot), off);
    if (random_done(cuMemHostGetFlags(&got, (void *)(p + off))) == CUDA_SUCCESS)
        random_out("%#x", got & ~1u); /* a small allocation has that of its block */
}

/* An address in something that there is, or not, and its name. */
static CUdeviceptr some_address(const char **name, size_t *off)
{
    int slot;
    unsigned what = random_below(10);
    *off = 0;
    if (what < 2) {
        *name = what ? "source" : "nowhere";
        return what ? (uintptr_t)random_source : 0;
    }
    slot = random_pick(what < 4 ? HOST : BUFFER);
    *name = random_name(what < 4 ? HOST : BUFFER, slot);
    if (slot < 0)
        return 0;
    const struct random_object *o = random_at(what < 4 ? HOST : BUFFER, slot);
    *off = o->size && random_chance(2) ? ONE_OF(size_t, 1, o->size / 2, o->size - 1) : 0;
    return o->handle + *off;
}

static void address_range(void)
{
    const char *name;
    size_t off, size = 0;
    CUdeviceptr p = some_address(&name, &off), base = 0;
    unsigned none = random_below(8);
    random_say("cuMemGetAddressRange(%s, %s, %s + %zu)", none & 3 ? "&" : "NULL",
               none & 5 ? "&" : "NULL", name, off);
    if (random_done(cuMemGetAddressRange(none & 3 ? &base : NULL, none & 5 ? &size : NULL, p)) !=
        CUDA_SUCCESS)
        return;
    if (none & 3)
        random_out("at -%zu", (size_t)(p - base));
    if (none & 5)
        random_out("%zu bytes", size);
}

static void pointer_attribute(void)
{
    const char *name;
    size_t off;
    CUdeviceptr p = some_address(&name, &off);
    CUpointer_attribute what = (CUpointer_attribute)ONE_OF(
        int, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 0, 22, 5);
    uint64_t value[2] = { 0, 0 };
    random_say("cuPointerGetAttribute(%d, %s + %zu)", (int)what, name, off);
    if (random_done(cuPointerGetAttribute(value, what, p)) != CUDA_SUCCESS)
        return;
    if (what == CU_POINTER_ATTRIBUTE_CONTEXT)
        random_out("%s", random_name(CONTEXT, random_find(CONTEXT, value[0])));
    else if (what == CU_POINTER_ATTRIBUTE_DEVICE_POINTER ||
             what == CU_POINTER_ATTRIBUTE_HOST_POINTER)
        random_out("%s", value[0] == p ? "itself" : value[0] ? "another" : "0");
    else if (what == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
        random_out("-%zu", (size_t)(p - value[0]));
    else if (what == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
        random_out("%d", (int)value[0]);
    else if (what == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE)
        random_out("%s", value[0] ? "a pool" : "none");
    else if (what < CU_POINTER_ATTRIBUTE_MAPPING_SIZE && what != CU_POINTER_ATTRIBUTE_BUFFER_ID &&
             what != CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE)
        random_out("%llu", (unsigned long long)value[0]);
}

static void pointer_attributes(void)
{
    const char *name;
    size_t off, size = 0;
    CUdeviceptr p = some_address(&name, &off), start = 0;
    unsigned type = 99, managed = 0, none = random_below(10);
    CUpointer_attribute what[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                   CU_POINTER_ATTRIBUTE_RANGE_START_ADDR };
    void *values[] = { &type, &managed, &size, &start };
    if (none == 0)
        what[1] = (CUpointer_attribute)99;
    random_say("cuPointerGetAttributes(%u, {2, %d, 12, 11}, %s + %zu)", none == 1 ? 0 : 4,
               (int)what[1], name, off);
    if (random_done(cuPointerGetAttributes(none == 1 ? 0 : 4, what, values, p)) == CUDA_SUCCESS)
        random_out("%u %u %zu %s", type, managed, size, start ? "from somewhere" : "from 0");
}

static void sync_memops(void)
{
    const char *name;
    size_t off;
    CUdeviceptr p = some_address(&name, &off);
    unsigned value = random_below(2);
    CUpointer_attribute what =
        random_chance(5) ? CU_POINTER_ATTRIBUTE_MEMORY_TYPE : CU_POINTER_ATTRIBUTE_SYNC_MEMOPS;
    random_say("cuPointerSetAttribute(%u, %d, %s + %zu)", value, (int)what, name, off);
    random_done(cuPointerSetAttribute(&value, what, p));
}

static void information(void)
{
    size_t available = 0, total = 0;
    random_say("cuMemGetInfo()");
    if (random_done(cuMemGetInfo(&available, &total)) == CUDA_SUCCESS)
        random_out("%s", available <= total ? "less is free than there is" : "more");
}

void random_look(void)
{
    static unsigned char seen[PAGEABLE];
    if (!random_settle())
        return;
    for (int i = 0; i < SLOTS; i++) {
        const struct random_object *o = random_at(BUFFER, i);
        if (!o->handle || !o->size)
            continue;
        random_say("cuMemcpyDtoH(%s, %zu)", buffer(i), o->size);
        if (random_done(cuMemcpyDtoH(seen, o->handle, o->size)) == CUDA_SUCCESS)
            random_out("%08x", random_hash(seen, o->size));
    }
    for (int i = 0; i < SLOTS; i++)
        if (random_handle(HOST, i))
            random_say("host%d: %08x", i,
                       random_hash(HANDLE(void *, HOST, i), random_at(HOST, i)->size));
    random_look_arena();
    random_say("sink: %08x", random_hash(random_sink, sizeof(random_sink)));
}

void random_memory_begin(void)
{
    for (size_t i = 0; i < PAGEABLE; i++)
        random_source[i] = (unsigned char)(i * 7 + (i >> 8));
    alloc();
    alloc();
}

static void begin_memory(void)
{
    alloc_managed();
    alloc_host();
    alloc_async();
}

static const struct random_generator memory[] = {
    GENERATOR(alloc, 8),
    GENERATOR(alloc_too_much, 1),
    GENERATOR(alloc_pitch, 3),
    GENERATOR(alloc_managed, 3),
    GENERATOR(alloc_async, 4),
    GENERATOR(free_buffer, 4),
    GENERATOR(free_async, 4),
    GENERATOR(alloc_host, 4),
    GENERATOR(register_host, 2),
    GENERATOR(free_host, 3),
    GENERATOR(host_pointer, 3),
    GENERATOR(address_range, 5),
    GENERATOR(pointer_attribute, 9),
    GENERATOR(pointer_attributes, 2),
    GENERATOR(sync_memops, 2),
    GENERATOR(information, 1),
    GENERATOR(random_look, 3),
};
const struct random_subject random_memory = SUBJECT(memory, begin_memory);
