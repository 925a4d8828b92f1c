// The device, its limits and its properties; errors; what is asked by name.
#include <cstring>

#include "random.cuh"

static int pick_device()
{
    return draw(4) ? 0 : one_of({ -1, 1, 64 });
}

static void limits()
{
    const auto limit = (cudaLimit)(chance(10) ? 50 : draw(6)); // those behind are of the device
    size_t value = one_of<size_t>({ 0, 1, 512, 1024, 4000, 64 << 10, 8 << 20, 16 << 20 });
    if (draw(2)) {
        say("cudaDeviceSetLimit(%d, %zu)", (int)limit, value);
        done(cudaDeviceSetLimit(limit, value));
    }
    say("cudaDeviceGetLimit(%d)", (int)limit);
    if (done(cudaDeviceGetLimit(&value, limit)) == cudaSuccess)
        out("%s", value ? "something" : "0");
}

static void settings()
{
    const int device = pick_device();
    unsigned flags = one_of({ 0u, 1u, 2u, 4u, 8u, 0x10u, 3u, 5u, 0x18u, 0x20u, 0x40u, 0x80u, 0x100u });
    cudaFuncCache cache = (cudaFuncCache)(chance(6) ? 7 : draw(4));
    int least = 77, greatest = 77;
    switch (draw(7)) {
    case 0:
        say("cudaSetDevice(%d)", device);
        done(cudaSetDevice(device));
        break;
    case 1:
        say("cudaGetDeviceFlags()");
        if (done(cudaGetDeviceFlags(&flags)) == cudaSuccess)
            out("%#x", flags);
        break;
    case 2:
        say("cudaSetDeviceFlags(%#x)", flags);
        done(cudaSetDeviceFlags(flags));
        break;
    case 3:
        say("cudaDeviceSetCacheConfig(%d)", (int)cache);
        done(cudaDeviceSetCacheConfig(cache));
        break;
    case 4:
        say("cudaDeviceGetCacheConfig()");
        if (done(cudaDeviceGetCacheConfig(&cache)) == cudaSuccess)
            out("%d", (int)cache);
        break;
    case 5:
        say("cudaDeviceGetStreamPriorityRange()");
        if (done(cudaDeviceGetStreamPriorityRange(chance(4) ? nullptr : &least, &greatest)) == cudaSuccess)
            out("%d to %d", least, greatest);
        break;
    default:
        flags = chance(3) ? flags : 0;
        say("cudaInitDevice(%d, %#x, %u)", device, flags, flags ? 1 : 0);
        done(cudaInitDevice(device, flags, flags ? 1 : 0));
    }
}

static void ask()
{
    const int device = pick_device(), attribute = (int)draw(150) - 2;
    int value = 77;
    char text[32] = "";
    cudaDeviceProp p;
    const int room = one_of({ 32, 13, 12, 5, 0, -1 });
    switch (draw(8)) {
    case 0:
    case 1:
        say("cudaDeviceGetAttribute(%d, %d)", attribute, device);
        done(cudaDeviceGetAttribute(&value, (cudaDeviceAttr)attribute, device));
        break;
    case 2:
        say("cudaGetDeviceProperties(%d)", device);
        if (done(cudaGetDeviceProperties(&p, device)) == cudaSuccess)
            out("%d %d", p.warpSize, p.maxThreadsPerBlock);
        break;
    case 3:
        say("cudaDeviceGetPCIBusId(%d, %d)", room, device);
        if (done(cudaDeviceGetPCIBusId(text, room, device)) == cudaSuccess)
            out("%zu characters", strlen(text));
        break;
    case 4: {
        const char *name = one_of({ "0000:ff:1f.0", "nothing", "", "0000" });
        say("cudaDeviceGetByPCIBusId(%s)", name);
        if (done(cudaDeviceGetByPCIBusId(&value, name)) == cudaSuccess)
            out("%d", value);
        break;
    }
    case 5:
        say("cudaDeviceCanAccessPeer(%d, 0)", device);
        if (done(cudaDeviceCanAccessPeer(&value, device, 0)) == cudaSuccess)
            out("%d", value);
        break;
    case 6:
        say("cudaDeviceEnablePeerAccess(%d, 0)", device);
        if (device != 1)
            done(cudaDeviceEnablePeerAccess(device, 0));
        break;
    default:
        say("cudaDeviceDisablePeerAccess(%d)", device);
        if (device != 1)
            done(cudaDeviceDisablePeerAccess(device));
    }
}

static void errors()
{
    const int number = draw(3) ? (int)draw(1000) : (int)draw(80);
    switch (draw(4)) {
    case 0:
        say("cudaGetErrorName(%d)", number);
        out("%s", cudaGetErrorName((cudaError_t)number));
        break;
    case 1:
        say("cudaPeekAtLastError()");
        done(cudaPeekAtLastError());
        break;
    default:
        say("cudaGetLastError()");
        done(cudaGetLastError());
    }
}

static void by_name()
{
    const char *name = one_of({ "cuMemAlloc", "cuInit", "cuNothing", "cuStreamGetCaptureInfo", "" });
    void *entry = nullptr;
    auto q = cudaDriverEntryPointSuccess;
    const unsigned long long flags = one_of({ 0ull, 1ull, 2ull, 3ull, 8ull });
    const unsigned version = one_of({ 13000u, 12000u, 4000u, 1000u, 0u });
    say("cudaGetDriverEntryPointByVersion(%s, %u, %llu)", name, version, flags);
    if (done(cudaGetDriverEntryPointByVersion(name, &entry, version, flags, &q)) == cudaSuccess)
        out("%s, %d", entry ? "found" : "not found", (int)q);
}

static void formats()
{
    const auto a = arrays.pick();
    cudaChannelFormatDesc d = {};
    say("cudaGetChannelDesc(%s)", a.name.c_str());
    if (a.slot >= 0 && done(cudaGetChannelDesc(&d, a.handle)) == cudaSuccess)
        out("%d %d %d %d kind %d", d.x, d.y, d.z, d.w, (int)d.f);
}

static void call()
{
    int n = 77;
    switch (draw(12)) {
    case 0:
        limits();
        break;
    case 1:
    case 2:
        settings();
        break;
    case 3:
    case 4:
        ask();
        break;
    case 5:
    case 6:
        errors();
        break;
    case 7:
        by_name();
        break;
    case 8:
        formats();
        break;
    case 9:
        say("cudaGetDevice()");
        if (done(cudaGetDevice(&n)) == cudaSuccess)
            out("%d", n);
        break;
    case 10:
        say("cudaDeviceSynchronize()");
        done(cudaDeviceSynchronize());
        break;
    default:
        if (draw(8))
            break;
        say("cudaDeviceReset()"); // and all that it had is gone
        if (done(cudaDeviceReset()) != cudaSuccess)
            break;
        was_reset = true;
        for (int i = 0; i < SLOTS; i++) {
            memories.live[i] = memories.live[i] && memories.at[i].kind == Memory::PAGEABLE;
            streams.live[i] = events.live[i] = arrays.live[i] = false;
        }
    }
}

const Subject device_subject = { nullptr, call };
