// Memory of all kinds: allocated, filled, looked at, freed.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "random.cuh"

Table<Memory> memories = { "memory" };
bool unordered;

Table<Memory>::Picked pick_memory(unsigned null_in)
{
    static const char *const names[Memory::KINDS] = { "device", "pool", "managed", "pinned", "pageable" };
    auto m = memories.pick(null_in);
    if (m.slot >= 0)
        m.name = names[m.handle.kind] + std::to_string(m.slot);
    return m;
}

void settle()
{
    if (!any_captures())
        (void)cudaDeviceSynchronize();
}

static void enter(int slot, Memory::Kind kind, void *p, size_t size)
{
    memories.at[slot] = { kind, (char *)p, size };
    memories.live[slot] = true;
    if (any_captures()) {
        unordered = true; // it has what it has
        return;
    }
    if (kind >= Memory::PINNED)
        memset(p, 0x40 + slot, size);
    else if (size)
        (void)cudaMemset(p, 0x40 + slot, size), (void)cudaDeviceSynchronize();
}

static void allocate()
{
    const int i = memories.place();
    const size_t size = draw_size(9000);
    void *p = nullptr;
    if (i < 0)
        return;
    switch (draw(8)) {
    case 0: {
        const unsigned flags = one_of({ 1u, 2u, 1u, 0u, 3u, 4u });
        say("cudaMallocManaged(memory%d, %zu, %#x)", i, size, flags);
        if (done(cudaMallocManaged(&p, size, flags)) == cudaSuccess)
            enter(i, Memory::MANAGED, p, size);
        break;
    }
    case 1: {
        const unsigned flags = one_of({ 0u, 1u, 2u, 4u, 7u, 8u, 0x10u });
        say("cudaHostAlloc(memory%d, %zu, %#x)", i, size, flags);
        if (done(cudaHostAlloc(&p, size, flags)) == cudaSuccess && size)
            enter(i, Memory::PINNED, p, size);
        break;
    }
    case 2:
        say("cudaMallocHost(memory%d, %zu)", i, size);
        if (done(cudaMallocHost(&p, size)) == cudaSuccess && size)
            enter(i, Memory::PINNED, p, size);
        break;
    case 3: {
        size_t pitch = 0, width = draw_size(300), height = draw_size(12);
        say("cudaMallocPitch(memory%d, %zu, %zu)", i, width, height);
        if (done(cudaMallocPitch(&p, &pitch, width, height)) == cudaSuccess && p) {
            out("pitch %zu", pitch);
            enter(i, Memory::DEVICE, p, pitch * height);
        }
        break;
    }
    case 4: {
        const cudaExtent e = { draw_size(200), draw_size(6), draw_size(5) };
        cudaPitchedPtr q = {};
        say("cudaMalloc3D(memory%d, %zu x %zu x %zu)", i, e.width, e.height, e.depth);
        if (done(cudaMalloc3D(&q, e)) == cudaSuccess && q.ptr) {
            out("pitch %zu of %zu x %zu", q.pitch, q.xsize, q.ysize);
            enter(i, Memory::DEVICE, q.ptr, q.pitch * e.height * e.depth);
        }
        break;
    }
    case 5:
        enter(i, Memory::PAGEABLE, malloc(size + 1), size);
        break;
    default:
        say("cudaMalloc(memory%d, %zu)", i, size);
        if (done(cudaMalloc(&p, size)) == cudaSuccess && size)
            enter(i, Memory::DEVICE, p, size);
        break;
    }
}

static void release()
{
    const auto m = pick_memory();
    char *p = m.handle.address + (m.slot >= 0 && chance(10) ? 4 : 0);
    cudaError_t r;
    const bool host = m.handle.kind == Memory::PINNED;
    if (m.slot >= 0 && m.handle.kind == Memory::PAGEABLE) {
        if (chance(8)) {
            say("cudaFreeHost(pageable %s)", m.name.c_str());
            done(cudaFreeHost(p));
        }
        return;
    }
    if (chance(10) ? !host : host) {
        say("cudaFreeHost(%s%s)", m.name.c_str(), p == m.handle.address ? "" : " + 4");
        r = done(cudaFreeHost(p));
    } else {
        say("cudaFree(%s%s)", m.name.c_str(), p == m.handle.address ? "" : " + 4");
        r = done(cudaFree(p));
    }
    if (r == cudaSuccess && m.slot >= 0)
        memories.live[m.slot] = false;
}

static void attributes()
{
    const auto m = pick_memory();
    const size_t at = m.handle.size ? draw((unsigned)m.handle.size) : 0;
    cudaPointerAttributes a = {};
    say("cudaPointerGetAttributes(%s + %zu)", m.name.c_str(), at);
    if (done(cudaPointerGetAttributes(&a, m.handle.address + at)) == cudaSuccess)
        out("type %d device %d, for it %s, for the host %s", (int)a.type, a.device,
            !a.devicePointer ? "nothing" : a.devicePointer == m.handle.address + at ? "the same" : "another",
            !a.hostPointer ? "nothing" : a.hostPointer == m.handle.address + at ? "the same" : "another");
}

static void host_views()
{
    const auto m = pick_memory();
    void *p = nullptr;
    unsigned flags = chance(10);
    switch (draw(4)) {
    case 0:
        say("cudaHostGetDevicePointer(%s, %u)", m.name.c_str(), flags);
        if (done(cudaHostGetDevicePointer(&p, m.handle.address, flags)) == cudaSuccess)
            out("%s", p == m.handle.address ? "the same" : "another");
        break;
    case 1:
        say("cudaHostGetFlags(%s)", m.name.c_str());
        if (done(cudaHostGetFlags(&flags, m.handle.address)) == cudaSuccess)
            out("%#x", flags);
        break;
    case 2:
        flags = one_of({ 0u, 1u, 2u, 4u, 8u, 3u, 0x10u });
        say("cudaHostRegister(%s, %zu, %#x)", m.name.c_str(), m.handle.size, flags);
        if (done(cudaHostRegister(m.handle.address, m.handle.size, flags)) != cudaSuccess)
            break;
        [[fallthrough]];
    default:
        say("cudaHostUnregister(%s)", m.name.c_str());
        done(cudaHostUnregister(m.handle.address));
    }
}

static void advise()
{
    const auto m = pick_memory();
    const size_t size = chance(5) ? draw_size(m.handle.size + 1) : m.handle.size;
    const cudaMemLocation where = { one_of({ cudaMemLocationTypeDevice, cudaMemLocationTypeHost, cudaMemLocationTypeInvalid }),
                                    one_of({ 0, 0, 0, -1, 1 }) };
    const auto s = pick_stream();
    int value[2] = { -5, -5 };
    switch (draw(4)) {
    case 0: {
        const auto what = (cudaMemoryAdvise)draw(8);
        say("cudaMemAdvise(%s, %zu, %d, %d:%d)", m.name.c_str(), size, (int)what, (int)where.type, where.id);
        done(cudaMemAdvise(m.handle.address, size, what, where));
        break;
    }
    case 1: {
        const auto what = (cudaMemRangeAttribute)draw(10);
        const size_t room = one_of<size_t>({ 4, 4, 4, 8, 0, 3 });
        say("cudaMemRangeGetAttribute(%zu, %d, %s, %zu)", room, (int)what, m.name.c_str(), size);
        if (done(cudaMemRangeGetAttribute(value, room, what, m.handle.address, size)) == cudaSuccess)
            out("%d %d", value[0], value[1]);
        break;
    }
    default:
        say("cudaMemPrefetchAsync(%s, %zu, %d:%d, %s)", m.name.c_str(), size, (int)where.type, where.id, s.name.c_str());
        done(cudaMemPrefetchAsync(m.handle.address, size, where, chance(12), s.handle));
        settle();
    }
}

static void call()
{
    size_t a = 0, b = 0;
    switch (draw(10)) {
    case 0:
    case 1:
    case 2:
    case 3:
        allocate();
        break;
    case 4:
    case 5:
        release();
        break;
    case 6:
        attributes();
        break;
    case 7:
        host_views();
        break;
    case 8:
        advise();
        break;
    default:
        say("cudaMemGetInfo()");
        if (done(cudaMemGetInfo(&a, &b)) == cudaSuccess)
            out("%s", a && a <= b ? "something" : "nothing");
    }
}

static void begin()
{
    for (unsigned n = 1 + draw(4); n-- > 0;)
        allocate();
}

void look()
{
    std::vector<char> bytes;
    if (any_captures() || unordered)
        return;
    for (int i = 0; i < SLOTS; i++) {
        const Memory &m = memories.at[i];
        if (!memories.live[i])
            continue;
        bytes.assign(m.size, 0);
        say("what is in memory%d", i);
        if (done(cudaMemcpy(bytes.data(), m.address, m.size, cudaMemcpyDefault)) == cudaSuccess)
            out("%08x", hash(bytes.data(), m.size));
    }
}

const Subject memory_subject = { begin, call };
