// Kernels: launched in all ways, and asked about; variables of the program's by their symbols.
#include <cstdio>
#include <cstring>

#include "random.cuh"

__device__ int counter = 3;
__device__ char letters[40] = "in the module";
__constant__ int table[4] = { 1, 2, 3, 4 };
__managed__ int both[8] = { 7, 8 };
bool was_reset;

__global__ void add(char *p, int count, int by)
{
    extern __shared__ char room[];
    if (blockIdx.y + blockIdx.z + threadIdx.y + threadIdx.z) // they would do the same at the same time
        return;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        p[i] = (char)(p[i] + by + table[i & 3]);
    if (count < 0)
        p[0] = room[threadIdx.x];
}

__global__ void __launch_bounds__(64, 2) bounded(char *p, int count, int by)
{
    __shared__ int sum[32];
    sum[threadIdx.x & 31] = by;
    __syncthreads();
    if (threadIdx.x + threadIdx.y + threadIdx.z + blockIdx.x + blockIdx.y + blockIdx.z == 0)
        for (int i = 0; i < count; i++)
            p[i] = (char)(p[i] ^ sum[i & 31 & (blockDim.x - 1)]);
}

__global__ void nothing()
{
}

__global__ void tell(int *at)
{
    *at = counter;
}

const void *pick_function(std::string *name)
{
    static const struct {
        const void *at;
        const char *name;
    } all[] = { { (void *)add, "add" },         { (void *)bounded, "bounded" },  { (void *)nothing, "nothing" },
                { (void *)tell, "tell" },       { nullptr, "NULL" },             { (void *)&counter, "counter" },
                { (void *)pick_function, "none" } };
    const unsigned n = chance(6) ? draw(7) : draw(3);
    *name = all[n].name;
    return all[n].at;
}

bool pick_arguments(Arguments *a, std::string *text)
{
    const auto m = pick_memory(0);
    if (m.slot < 0 || m.handle.kind > Memory::MANAGED || !m.handle.size)
        return false;
    a->address = m.handle.address;
    a->count = 1 + (int)draw((unsigned)m.handle.size);
    a->by = (int)draw(100);
    *text = m.name + " " + std::to_string(a->count) + " " + std::to_string(a->by);
    return true;
}

static dim3 pick_grid()
{
    return dim3 { chance(25) ? 0 : 1 + draw(4), chance(40) ? 70000 : 1 + draw(2), chance(40) ? 0u : 1u };
}

static dim3 pick_block()
{
    return chance(8) ? dim3 { one_of({ 0u, 1u, 1024u, 1025u, 128u }), 1 + draw(2), one_of({ 1u, 1u, 1u, 64u, 65u }) }
                     : dim3 { 1 + draw(64) };
}

static void launch()
{
    std::string name, text;
    Arguments a;
    const dim3 grid = pick_grid(), block = pick_block();
    const size_t shared = chance(6) ? one_of<size_t>({ 100, 48 << 10, (48 << 10) + 1, 300 << 10 }) : 0;
    const auto s = pick_stream();
    if (!pick_arguments(&a, &text))
        return;
    switch (draw(5)) {
    case 0:
        say("add<<<%u %u %u, %u %u %u, %zu, %s>>>(%s)", grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, s.name.c_str(),
            text.c_str());
        add<<<grid, block, shared, s.handle>>>(a.address, a.count, a.by);
        done(cudaPeekAtLastError());
        break;
    case 1: {
        cudaLaunchConfig_t c = {};
        cudaLaunchAttribute attributes[2] = {};
        c.gridDim = grid, c.blockDim = block, c.dynamicSmemBytes = shared, c.stream = s.handle, c.attrs = attributes;
        c.numAttrs = draw(3);
        for (unsigned i = 0; i < c.numAttrs; i++) {
            attributes[i].id = (cudaLaunchAttributeID)one_of({ 0, 2, 4, 5, 6, 8, 50 });
            attributes[i].val.priority = (int)draw(2);
            if (attributes[i].id == cudaLaunchAttributeClusterDimension)
                attributes[i].val.clusterDim.x = attributes[i].val.clusterDim.y = attributes[i].val.clusterDim.z = 1;
        }
        const void *f = pick_function(&name);
        say("cudaLaunchKernelExC(%s, %u %u %u, %u %u %u, %zu, %s, attributes", name.c_str(), grid.x, grid.y, grid.z, block.x,
            block.y, block.z, shared, s.name.c_str());
        for (unsigned i = 0; i < c.numAttrs; i++)
            printf(" %d:%d", (int)attributes[i].id, attributes[i].val.priority);
        printf(", %s)", text.c_str());
        done(cudaLaunchKernelExC(&c, f, a.list));
        break;
    }
    case 2: {
        const void *f = pick_function(&name);
        say("cudaLaunchCooperativeKernel(%s, %u %u %u, %u %u %u, %zu, %s, %s)", name.c_str(), grid.x, grid.y, grid.z, block.x,
            block.y, block.z, shared, s.name.c_str(), text.c_str());
        done(cudaLaunchCooperativeKernel(f, grid, block, a.list, shared, s.handle));
        break;
    }
    default: {
        const void *f = pick_function(&name);
        say("cudaLaunchKernel(%s, %u %u %u, %u %u %u, %zu, %s, %s)", name.c_str(), grid.x, grid.y, grid.z, block.x, block.y,
            block.z, shared, s.name.c_str(), text.c_str());
        done(cudaLaunchKernel(f, grid, block, a.list, shared, s.handle));
    }
    }
    settle();
}

static void ask()
{
    std::string name;
    const void *f = pick_function(&name);
    cudaFuncAttributes a = {};
    cudaFunction_t function = nullptr;
    cudaKernel_t kernel = nullptr;
    const char *text = nullptr;
    size_t size = 0, at = 0;
    switch (draw(5)) {
    case 0:
        say("cudaFuncGetAttributes(%s)", name.c_str());
        if (done(cudaFuncGetAttributes(&a, f)) == cudaSuccess)
            out("shared %zu const %d threads %d dynamic %d carveout %d", a.sharedSizeBytes, a.constSizeBytes != 0,
                a.maxThreadsPerBlock, a.maxDynamicSharedSizeBytes, a.preferredShmemCarveout);
        break;
    case 1:
        say("cudaGetFuncBySymbol(%s)", name.c_str());
        done(cudaGetFuncBySymbol(&function, f));
        break;
    case 2:
        say("cudaGetKernel(%s)", name.c_str());
        done(cudaGetKernel(&kernel, f));
        break;
    case 3:
        say("cudaFuncGetName(%s)", name.c_str());
        if (done(cudaFuncGetName(&text, f)) == cudaSuccess)
            out("%s", text ? text : "NULL");
        break;
    default:
        at = draw(5);
        say("cudaFuncGetParamInfo(%s, %zu)", name.c_str(), at);
        if (cudaGetFuncBySymbol(&function, f) == cudaSuccess)
            printf(" known");
        (void)cudaGetLastError();
        done(cudaFuncGetParamInfo(f, at, &at, &size));
        out("%zu %zu", at, size);
    }
}

static void change()
{
    std::string name;
    const void *f = pick_function(&name);
    const auto what = (cudaFuncAttribute)(chance(6) ? draw(18) : 8 + draw(2));
    const int value = one_of({ -2, -1, 0, 50, 100, 101, 1000, 48 << 10, 64 << 10, 300 << 10 });
    int cache = chance(8) ? 4 : (int)draw(4);
    if (draw(2)) {
        say("cudaFuncSetAttribute(%s, %d, %d)", name.c_str(), (int)what, value);
        done(cudaFuncSetAttribute(f, what, value));
    } else {
        say("cudaFuncSetCacheConfig(%s, %d)", name.c_str(), cache);
        done(cudaFuncSetCacheConfig(f, (cudaFuncCache)cache));
    }
}

static void occupancy()
{
    std::string name;
    const void *f = pick_function(&name);
    const int threads = one_of({ 0, 1, 64, 65, 256, 1024, 1025, -1 });
    const size_t shared = one_of<size_t>({ 0, 0, 1000, 48 << 10, 100 << 10, 300 << 10 });
    int blocks = -7;
    size_t size = 7;
    switch (draw(3)) {
    case 0:
        say("cudaOccupancyMaxActiveBlocksPerMultiprocessor(%s, %d, %zu)", name.c_str(), threads, shared);
        if (done(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, threads, shared)) == cudaSuccess)
            out("%s", blocks > 0 ? "some" : blocks == 0 ? "none" : "?");
        break;
    case 1:
        say("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(%s, %d, %zu, 2)", name.c_str(), threads, shared);
        if (done(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, f, threads, shared, one_of({ 0u, 1u, 2u }))) ==
            cudaSuccess)
            out("%s", blocks > 0 ? "some" : blocks == 0 ? "none" : "?");
        break;
    default:
        blocks = one_of({ 0, 1, 2, -1, 1000 });
        say("cudaOccupancyAvailableDynamicSMemPerBlock(%s, %d, %d)", name.c_str(), blocks, threads);
        if (done(cudaOccupancyAvailableDynamicSMemPerBlock(&size, f, blocks, threads)) == cudaSuccess)
            out("%s", size ? "some" : "none");
    }
}

static void call()
{
    switch (draw(8)) {
    case 0:
        ask();
        break;
    case 1:
        change();
        break;
    case 2:
        occupancy();
        break;
    default:
        launch();
    }
}

const Subject launch_subject = { nullptr, call };

// --- symbols -----------------------------------------------------------------------------------

static const void *pick_symbol(std::string *name, size_t *size)
{
    switch (chance(10) ? draw(6) : draw(4)) {
    case 0:
        *name = "counter", *size = sizeof(counter);
        return &counter;
    case 1:
        *name = "letters", *size = sizeof(letters);
        return letters;
    case 2:
        *name = "table", *size = sizeof(table);
        return table;
    case 3:
        if (!was_reset) {
            *name = "both", *size = sizeof(both);
            return both;
        }
        [[fallthrough]];
    case 4:
        *name = "NULL", *size = 8;
        return nullptr;
    default:
        *name = "add", *size = 8;
        return (const void *)add;
    }
}

static void symbol_copy()
{
    std::string name;
    char bytes[64];
    size_t size;
    const void *symbol = pick_symbol(&name, &size);
    const size_t at = draw(3) ? draw((unsigned)size) : 0, count = draw(8) ? draw((unsigned)(size - at) + 1) : draw(60);
    const bool into = draw(2), async = draw(2);
    const auto kind = chance(10) ? (cudaMemcpyKind)draw(6) : draw(2) ? cudaMemcpyDefault
                                                   : into ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    const auto s = pick_stream();
    memset(bytes, (int)draw(100), sizeof(bytes));
    say("cudaMemcpy%sSymbol%s(%s + %zu, %zu, %d, %s)", into ? "To" : "From", async ? "Async" : "", name.c_str(), at, count,
        (int)kind, async ? s.name.c_str() : "");
    if (async && any_captures())
        return; // the bytes are gone by then
    const auto r = done(into    ? async ? cudaMemcpyToSymbolAsync(symbol, bytes, count, at, kind, s.handle)
                                        : cudaMemcpyToSymbol(symbol, bytes, count, at, kind)
                        : async ? cudaMemcpyFromSymbolAsync(bytes, symbol, count, at, kind, s.handle)
                                : cudaMemcpyFromSymbol(bytes, symbol, count, at, kind));
    settle();
    if (r == cudaSuccess && !into)
        out("%08x", hash(bytes, count));
}

static void symbol_call()
{
    std::string name;
    size_t size, is = 7;
    void *p = nullptr;
    const void *symbol = pick_symbol(&name, &size);
    switch (draw(4)) {
    case 0:
        say("cudaGetSymbolAddress(%s)", name.c_str());
        if (done(cudaGetSymbolAddress(&p, symbol)) == cudaSuccess)
            out("%s", p ? "something" : "NULL");
        break;
    case 1:
        say("cudaGetSymbolSize(%s)", name.c_str());
        if (done(cudaGetSymbolSize(&is, symbol)) == cudaSuccess)
            out("%zu", is);
        break;
    default:
        symbol_copy();
    }
}

const Subject symbol_subject = { nullptr, symbol_call };

void fault()
{
    say("tell<<<1, 1>>>(16)");
    tell<<<1, 1>>>((int *)16);
    done(cudaGetLastError());
    say("cudaDeviceSynchronize()");
    done(cudaDeviceSynchronize());
}
