// Copies and fills, at once and in streams.
#include "random.cuh"

struct Side {
    char *at;
    std::string name;
    size_t room; // bytes behind `at`
    bool host;
    int slot;
};

// What a copy within itself leaves is nobody's word.
static bool overlap(const Side &to, const Side &from)
{
    return to.slot >= 0 && to.slot == from.slot;
}

static Side pick_side()
{
    const auto m = pick_memory(25);
    if (m.slot < 0)
        return { nullptr, "NULL", 0, false, -1 };
    const size_t at = draw(2) && m.handle.size ? draw((unsigned)m.handle.size) : 0;
    return { m.handle.address + at, m.name + " + " + std::to_string(at), m.handle.size - at,
             m.handle.kind == Memory::PINNED || m.handle.kind == Memory::PAGEABLE, m.slot };
}

// Mostly the right one. A wrong one for pageable memory is followed by NVIDIA's library.
static cudaMemcpyKind pick_kind(const Side &to, const Side &from)
{
    if (draw(3) == 0)
        return cudaMemcpyDefault;
    if (chance(30))
        return (cudaMemcpyKind)one_of({ -1, 5, 77 });
    return from.host ? to.host ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice
           : to.host ? cudaMemcpyDeviceToHost
                     : cudaMemcpyDeviceToDevice;
}

// Memory of the host beyond what it has is followed, too.
static size_t pick_size(const Side &to, const Side &from)
{
    const size_t room = to.room < from.room ? to.room : from.room;
    return to.host || from.host || draw(6) ? draw((unsigned)room + 1) : room + draw(9000);
}

static void line()
{
    const Side to = pick_side(), from = pick_side();
    const size_t size = pick_size(to, from);
    const cudaMemcpyKind kind = pick_kind(to, from);
    const auto s = pick_stream();
    if (overlap(to, from))
        return;
    switch (draw(4)) {
    case 0:
        say("cudaMemcpy(%s, %s, %zu, %d)", to.name.c_str(), from.name.c_str(), size, (int)kind);
        done(cudaMemcpy(to.at, from.at, size, kind));
        break;
    case 1:
        say("cudaMemcpyPeer(%s, 0, %s, 0, %zu)", to.name.c_str(), from.name.c_str(), size);
        if (to.host || from.host)
            return;
        done(cudaMemcpyPeer(to.at, 0, from.at, 0, size));
        break;
    default:
        say("cudaMemcpyAsync(%s, %s, %zu, %d, %s)", to.name.c_str(), from.name.c_str(), size, (int)kind, s.name.c_str());
        done(cudaMemcpyAsync(to.at, from.at, size, kind, s.handle));
    }
    settle();
}

static void plane()
{
    const Side to = pick_side(), from = pick_side();
    const size_t height = 1 + draw(5), room = (to.room < from.room ? to.room : from.room) / height;
    const size_t pitch_to = room ? 1 + draw((unsigned)room) : 1, pitch_from = room ? 1 + draw((unsigned)room) : 1;
    const size_t least = pitch_to < pitch_from ? pitch_to : pitch_from;
    const size_t width = !room ? 0 : chance(8) && !to.host && !from.host ? least + draw(3) : draw((unsigned)least + 1);
    const cudaMemcpyKind kind = pick_kind(to, from);
    const auto s = pick_stream();
    const bool async = draw(2);
    if (overlap(to, from))
        return;
    say("cudaMemcpy2D%s(%s pitch %zu, %s pitch %zu, %zu x %zu, %d, %s)", async ? "Async" : "", to.name.c_str(), pitch_to,
        from.name.c_str(), pitch_from, width, height, (int)kind, async ? s.name.c_str() : "");
    done(async ? cudaMemcpy2DAsync(to.at, pitch_to, from.at, pitch_from, width, height, kind, s.handle)
               : cudaMemcpy2D(to.at, pitch_to, from.at, pitch_from, width, height, kind));
    settle();
}

static void volume()
{
    const Side to = pick_side(), from = pick_side();
    const auto a = arrays.pick(4), b = arrays.pick(4);
    const auto s = pick_stream();
    cudaMemcpy3DParms p = {};
    const size_t height = draw(4), depth = draw(4), room = (to.room < from.room ? to.room : from.room) / 16;
    const bool is_a = a.slot >= 0 && draw(2), is_b = b.slot >= 0 && draw(2);
    p.extent = cudaExtent { is_a || is_b ? draw(9) : draw((unsigned)room + 1), height, depth };
    const size_t pitch = is_a || is_b ? 64 : room;
    if (((is_a || is_b) && room < 64) || overlap(to, from) || (is_a && is_b && a.slot == b.slot))
        return;
    if (is_a)
        p.dstArray = a.handle;
    else
        p.dstPtr = make_cudaPitchedPtr(to.at, pitch, pitch, 4);
    if (is_b)
        p.srcArray = b.handle;
    else
        p.srcPtr = make_cudaPitchedPtr(from.at, pitch, pitch, 4);
    if (is_a)
        p.dstPos = cudaPos { draw(4), draw(3), draw(2) };
    if (is_b)
        p.srcPos = cudaPos { draw(4), draw(3), draw(2) };
    p.kind = chance(8) ? (cudaMemcpyKind)draw(6)
             : is_a    ? is_b ? cudaMemcpyDeviceToDevice : from.host ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice
             : is_b    ? to.host ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice
                       : pick_kind(to, from);
    const bool async = draw(2);
    say("cudaMemcpy3D%s(%s at %zu %zu %zu, %s at %zu %zu %zu, %zu x %zu x %zu pitch %zu, %d, %s)", async ? "Async" : "",
        is_a ? a.name.c_str() : to.name.c_str(), p.dstPos.x, p.dstPos.y, p.dstPos.z, is_b ? b.name.c_str() : from.name.c_str(),
        p.srcPos.x, p.srcPos.y, p.srcPos.z, p.extent.width, p.extent.height, p.extent.depth, pitch, (int)p.kind,
        async ? s.name.c_str() : "");
    done(async ? cudaMemcpy3DAsync(&p, s.handle) : cudaMemcpy3D(&p));
    settle();
}

static void array_row()
{
    const Side side = pick_side();
    const auto a = arrays.pick(10);
    const auto s = pick_stream();
    const size_t x = draw(16), y = draw(3), width = draw(40), height = 1 + draw(4), pitch = 40 + draw(3);
    if (side.room < pitch * height)
        return;
    const bool into = draw(2), async = draw(2);
    const cudaMemcpyKind kind = draw(3) == 0 ? cudaMemcpyDefault
                                : !side.host ? cudaMemcpyDeviceToDevice
                                : into       ? cudaMemcpyHostToDevice
                                             : cudaMemcpyDeviceToHost;
    say("cudaMemcpy2D%sArray%s(%s at %zu %zu, %s pitch %zu, %zu x %zu, %d, %s)", into ? "To" : "From", async ? "Async" : "",
        a.name.c_str(), x, y, side.name.c_str(), pitch, width, height, (int)kind, async ? s.name.c_str() : "");
    done(into    ? async ? cudaMemcpy2DToArrayAsync(a.handle, x, y, side.at, pitch, width, height, kind, s.handle)
                         : cudaMemcpy2DToArray(a.handle, x, y, side.at, pitch, width, height, kind)
         : async ? cudaMemcpy2DFromArrayAsync(side.at, pitch, a.handle, x, y, width, height, kind, s.handle)
                 : cudaMemcpy2DFromArray(side.at, pitch, a.handle, x, y, width, height, kind));
    settle();
}

static void fill()
{
    const Side to = pick_side();
    const int value = (int)draw(600) - 100;
    const auto s = pick_stream();
    size_t width = to.host || draw(6) ? draw((unsigned)to.room + 1) : to.room + draw(9000);
    const size_t height = 1 + draw(4), depth = draw(4);
    switch (draw(5)) {
    case 0:
        say("cudaMemset(%s, %d, %zu)", to.name.c_str(), value, width);
        done(cudaMemset(to.at, value, width));
        break;
    case 1: {
        const size_t pitch = to.room / height;
        width = pitch ? draw((unsigned)pitch + 2) : 0;
        say("cudaMemset2DAsync(%s, %zu, %d, %zu x %zu, %s)", to.name.c_str(), pitch, value, width, height, s.name.c_str());
        done(cudaMemset2DAsync(to.at, pitch, value, width, height, s.handle));
        break;
    }
    case 2: {
        const size_t pitch = to.room / (height * (depth + 1));
        width = pitch ? draw((unsigned)pitch + 2) : 0;
        say("cudaMemset3D(%s, %zu, %d, %zu x %zu x %zu)", to.name.c_str(), pitch, value, width, height, depth);
        done(cudaMemset3D(make_cudaPitchedPtr(to.at, pitch, pitch, height), value, cudaExtent { width, height, depth }));
        break;
    }
    default:
        say("cudaMemsetAsync(%s, %d, %zu, %s)", to.name.c_str(), value, width, s.name.c_str());
        done(cudaMemsetAsync(to.at, value, width, s.handle));
    }
    settle();
}

static void call()
{
    switch (draw(8)) {
    case 0:
        plane();
        break;
    case 1:
        volume();
        break;
    case 2:
        array_row();
        break;
    case 3:
    case 4:
        fill();
        break;
    default:
        line();
    }
}

const Subject copy_subject = { nullptr, call };
