// Memory that is allocated in the order of a stream, and its pools.
#include "random.cuh"

static Table<cudaMemPool_t> pools = { "pool" };

static void create()
{
    const int i = pools.place();
    cudaMemPoolProps p = {};
    p.allocType = (cudaMemAllocationType)(chance(8) ? 0 : 1);
    p.handleTypes = one_of({ cudaMemHandleTypeNone, cudaMemHandleTypeNone, cudaMemHandleTypePosixFileDescriptor,
                             (cudaMemAllocationHandleType)16 });
    p.location = { chance(8) ? cudaMemLocationTypeInvalid : cudaMemLocationTypeDevice, chance(8) ? 3 : 0 };
    p.maxSize = one_of<size_t>({ 0, 0, 0, 1000, 32 << 20 });
    if (i < 0)
        return;
    say("cudaMemPoolCreate(pool%d, %d, handles %d, %d:%d, most %zu)", i, (int)p.allocType, (int)p.handleTypes,
        (int)p.location.type, p.location.id, p.maxSize);
    pools.live[i] = done(cudaMemPoolCreate(&pools.at[i], &p)) == cudaSuccess;
}

static void allocate(const Table<cudaMemPool_t>::Picked &pool)
{
    const int i = memories.place();
    const auto s = pick_stream();
    const size_t size = draw_size(9000);
    void *p = nullptr;
    cudaError_t r;
    if (i < 0 || any_captures())
        return;
    if (draw(2)) {
        say("cudaMallocAsync(memory%d, %zu, %s)", i, size, s.name.c_str());
        r = done(cudaMallocAsync(&p, size, s.handle));
    } else {
        say("cudaMallocFromPoolAsync(memory%d, %zu, %s, %s)", i, size, pool.name.c_str(), s.name.c_str());
        r = done(cudaMallocFromPoolAsync(&p, size, pool.handle, s.handle));
    }
    settle();
    if (r != cudaSuccess || !p)
        return;
    memories.at[i] = { Memory::POOL, (char *)p, size };
    memories.live[i] = true;
    (void)cudaMemset(p, 0x70 + i, size), (void)cudaDeviceSynchronize();
}

static void release()
{
    const auto m = pick_memory();
    const auto s = pick_stream();
    if (m.handle.kind > Memory::MANAGED || any_captures())
        return;
    say("cudaFreeAsync(%s, %s)", m.name.c_str(), s.name.c_str());
    if (done(cudaFreeAsync(m.handle.address, s.handle)) == cudaSuccess && m.slot >= 0)
        memories.live[m.slot] = false;
    settle();
}

static void attributes(const Table<cudaMemPool_t>::Picked &p)
{
    const auto what = (cudaMemPoolAttr)draw(10);
    unsigned long long value = one_of({ 0ull, 1ull, 4096ull, 1ull << 40 });
    if (draw(2)) {
        say("cudaMemPoolSetAttribute(%s, %d, %llu)", p.name.c_str(), (int)what, value);
        done(cudaMemPoolSetAttribute(p.handle, what, &value));
    } else {
        value = 0;
        say("cudaMemPoolGetAttribute(%s, %d)", p.name.c_str(), (int)what);
        if (done(cudaMemPoolGetAttribute(p.handle, what, &value)) == cudaSuccess)
            out("%llu", value >= 1u << 20 && what != cudaMemPoolAttrReleaseThreshold ? 1 : value);
    }
}

static void access(const Table<cudaMemPool_t>::Picked &p)
{
    cudaMemLocation where = { chance(6) ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice, chance(4) ? 1 : 0 };
    cudaMemAccessDesc d = { where, one_of({ cudaMemAccessFlagsProtNone, cudaMemAccessFlagsProtRead,
                                            cudaMemAccessFlagsProtReadWrite }) };
    cudaMemAccessFlags flags = cudaMemAccessFlagsProtNone;
    if (draw(2)) {
        say("cudaMemPoolSetAccess(%s, %d:%d %d)", p.name.c_str(), (int)where.type, where.id, (int)d.flags);
        done(cudaMemPoolSetAccess(p.handle, &d, chance(10) ? 0 : 1));
    } else {
        say("cudaMemPoolGetAccess(%s, %d:%d)", p.name.c_str(), (int)where.type, where.id);
        if (done(cudaMemPoolGetAccess(&flags, p.handle, &where)) == cudaSuccess)
            out("%d", (int)flags);
    }
}

static void call()
{
    const auto p = pools.pick();
    cudaMemPool_t pool = nullptr;
    const int device = draw(5) ? 0 : one_of({ -1, 1 });
    const size_t size = draw(2) ? 0 : 1 << 20;
    switch (draw(11)) {
    case 0:
        create();
        break;
    case 1:
    case 2:
    case 3:
        allocate(p);
        break;
    case 4:
        release();
        break;
    case 5:
        attributes(p);
        break;
    case 6:
        access(p);
        break;
    case 7:
        say("cudaMemPoolTrimTo(%s, %zu)", p.name.c_str(), size);
        done(cudaMemPoolTrimTo(p.handle, size));
        break;
    case 8:
        say("cudaMemPoolDestroy(%s)", p.name.c_str());
        if (done(cudaMemPoolDestroy(p.handle)) == cudaSuccess && p.slot >= 0)
            pools.live[p.slot] = false;
        break;
    case 9:
        say("cudaDeviceSetMemPool(%d, %s)", device, p.name.c_str());
        done(cudaDeviceSetMemPool(device, p.handle));
        break;
    default:
        say("cudaDeviceGet%sMemPool(%d)", size ? "" : "Default", device);
        done(size ? cudaDeviceGetMemPool(&pool, device) : cudaDeviceGetDefaultMemPool(&pool, device));
    }
}

const Subject pool_subject = { create, call };
