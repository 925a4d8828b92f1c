/* Pools of memory: made, asked, trimmed, allocated from, destroyed with memory in use. */
#include "random.h"

static const char *pool(int slot)
{
    return slot < -1 ? "default" : random_name(POOL, slot);
}

/* One of those that were made, or the device's default one, as -2. */
static int pick(void)
{
    return random_chance(4) ? -2 : random_pick_or_null(POOL);
}

static CUmemoryPool handle(int slot)
{
    CUmemoryPool p = NULL;
    if (slot == -2 && cuDeviceGetDefaultMemPool(&p, 0) != CUDA_SUCCESS)
        p = NULL;
    return slot == -2 ? p : HANDLE(CUmemoryPool, POOL, slot);
}

static void create(void)
{
    int slot = random_free_slot(POOL);
    CUmemoryPool p = NULL;
    CUmemPoolProps props;
    memset(&props, 0, sizeof(props));
    props.allocType = (CUmemAllocationType)ONE_OF(int, 1, 1, 1, 1, 0, 3);
    props.handleTypes = (CUmemAllocationHandleType)ONE_OF(int, 0, 0, 0, 1, 0x40);
    props.location.type = (CUmemLocationType)ONE_OF(int, 1, 1, 1, 1, 0, 99);
    props.location.id = ONE_OF(int, 0, 0, 0, 0, 99, -1);
    props.maxSize = ONE_OF(size_t, 0, 0, 0, 1 << 20, 64 << 20);
    random_say("cuMemPoolCreate(%s, %d, %d, %d:%d, %zu)", pool(slot), (int)props.allocType,
               (int)props.handleTypes, (int)props.location.type, props.location.id, props.maxSize);
    if (random_done(cuMemPoolCreate(&p, &props)) != CUDA_SUCCESS)
        return;
    random_keep(POOL, slot, (uintptr_t)p, 0);
    random_at(POOL, slot)->owner = -1;
}

/* No pool goes while it may be the device's, or graphs may allocate from it. */
static void destroy(void)
{
    int slot = pick();
    if (random_graphs())
        return;
    random_settle();
    random_say("cuMemPoolDestroy(%s)", pool(slot));
    if (random_done(cuMemPoolDestroy(handle(slot))) == CUDA_SUCCESS)
        random_drop(POOL, slot < 0 ? -1 : slot);
}

static void attribute(void)
{
    int slot = pick();
    CUmemPool_attribute what = (CUmemPool_attribute)ONE_OF(int, 1, 2, 3, 4, 4, 5, 6, 7, 8, 0, 9);
    uint64_t value = what >= CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
                         ? ONE_OF(uint64_t, 0, 0, 1 << 20, UINT64_MAX)
                         : ONE_OF(uint64_t, 0, 1, 1, 2);
    random_settle();
    if (random_chance(2)) {
        random_say("cuMemPoolSetAttribute(%s, %d, %llu)", pool(slot), (int)what,
                   (unsigned long long)value);
        random_done(cuMemPoolSetAttribute(handle(slot), what, &value));
    }
    value = 0;
    random_say("cuMemPoolGetAttribute(%s, %d)", pool(slot), (int)what);
    if (random_done(cuMemPoolGetAttribute(handle(slot), what, &value)) != CUDA_SUCCESS)
        return;
    if (what <= CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        random_out("%llu", (unsigned long long)value);
    else if (what == CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
        random_out("%s", value ? "some" : "none");
}

static void trim(void)
{
    int slot = pick();
    size_t keep = ONE_OF(size_t, 0, 1, 1 << 20, SIZE_MAX);
    random_settle();
    random_say("cuMemPoolTrimTo(%s, %zu)", pool(slot), keep);
    random_done(cuMemPoolTrimTo(handle(slot), keep));
}

static void alloc(void)
{
    int slot = pick(), to = random_free_slot(BUFFER), s = random_pick_stream();
    size_t size = ONE_OF(size_t, 1, 100, 512, 4096, 65536, 0, (size_t)1 << 50);
    CUdeviceptr p = 0;
    random_use(s);
    random_say("cuMemAllocFromPoolAsync(%s, %zu, %s, %s)", random_name(BUFFER, to), size,
               pool(slot), random_name(STREAM, s));
    CUresult r = random_done(cuMemAllocFromPoolAsync(&p, size, handle(slot), random_stream(s)));
    random_used(s);
    if (r == CUDA_SUCCESS && random_busy(s))
        random_keep_pooled(to, p, size, s);
}

static void access_of(void)
{
    int slot = pick();
    CUmemAccessDesc d;
    CUmemAccess_flags flags = (CUmemAccess_flags)9;
    memset(&d, 0, sizeof(d));
    d.location.type = (CUmemLocationType)ONE_OF(int, 1, 1, 1, 0, 99);
    d.location.id = ONE_OF(int, 0, 0, 0, 99);
    d.flags = (CUmemAccess_flags)ONE_OF(int, 3, 3, 1, 0, 2);
    random_say("cuMemPoolSetAccess(%s, %d:%d, %d)", pool(slot), (int)d.location.type, d.location.id,
               (int)d.flags);
    random_done(cuMemPoolSetAccess(handle(slot), &d, 1));
    random_say("cuMemPoolGetAccess(%s, %d:%d)", pool(slot), (int)d.location.type, d.location.id);
    if (random_done(cuMemPoolGetAccess(&flags, handle(slot), &d.location)) == CUDA_SUCCESS)
        random_out("%d", (int)flags);
}

static void of_device(void)
{
    CUmemoryPool p = NULL;
    CUdevice d = random_chance(6) ? 99 : 0;
    int slot = random_pick_or_null(POOL);
    if (random_chance(3)) {
        random_say("cuDeviceSetMemPool(%d, %s)", d, pool(slot));
        random_done(cuDeviceSetMemPool(d, handle(slot)));
    }
    random_say("cuDeviceGetMemPool(%d)", d);
    if (random_done(cuDeviceGetMemPool(&p, d)) == CUDA_SUCCESS)
        random_out("%s", p == handle(-2) ? "default" : pool(random_find(POOL, (uintptr_t)p)));
}

static void begin_pools(void)
{
    create();
    create();
    alloc();
    alloc();
}

static const struct random_generator pools[] = {
    GENERATOR(create, 3),    GENERATOR(destroy, 2),     GENERATOR(attribute, 6),
    GENERATOR(trim, 2),      GENERATOR(alloc, 8),       GENERATOR(access_of, 2),
    GENERATOR(of_device, 2), GENERATOR(random_look, 1),
};
const struct random_subject random_pools = SUBJECT(pools, begin_pools);
