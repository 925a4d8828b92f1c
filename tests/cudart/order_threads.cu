/*
 * Random work of several threads at once. Each thread has streams, memory and a model of its own
 * (order.cuh), makes and destroys whatever there is while the others work, forks, and captures its third
 * program while they make calls of all kinds. Parcels go from thread to thread: memory, an event and a
 * stream, which one thread makes, others use, and another one destroys. The default stream is all
 * threads' and orders more than it has to. Now and then a thread has a context of its own, and the
 * device is reset between two programs.
 *
 *     order_threads [FIRST [COUNT]]
 */
#include <atomic>
#include <cuda.h>
#include <mutex>
#include <sched.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "order.cuh"

enum { THREADS = 4, PARCELS = 5, PARCEL_NUMBERS = 700, VARIANTS = 8 };

__device__ int variables[THREADS][NUMBERS];

// A kernel in a module of its own: VARIANTS of them, which add different numbers.
static const char module_text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry increase(.param .u64 numbers, .param .u32 count)\n{\n"
    " .reg .pred %end;\n .reg .b32 %r<4>;\n .reg .b64 %d<3>;\n"
    " ld.param.u64 %d0, [numbers];\n ld.param.u32 %r0, [count];\n mov.u32 %r1, %tid.x;\n"
    "next:\n setp.ge.u32 %end, %r1, %r0;\n @%end bra done;\n"
    " mul.wide.u32 %d1, %r1, 4;\n add.u64 %d2, %d0, %d1;\n ld.global.u32 %r2, [%d2];\n"
    " add.u32 %r2, %r2, VARIANT;\n st.global.u32 [%d2], %r2;\n add.u32 %r1, %r1, 32;\n bra next;\n"
    "done:\n ret;\n}\n";

// What threads hand to each other. Whoever has the lock has given all its work to `last`, or before the event.
struct parcel {
    std::mutex lock;
    int *memory = nullptr;
    bool ordered = false; // allocated and freed in the order of a stream
    cudaEvent_t event = nullptr;
    cudaStream_t stream = nullptr;
    std::vector<int> model = std::vector<int>(PARCEL_NUMBERS);
};
static parcel parcels[PARCELS];
static std::atomic<long> handed;
static cudaMemPool_t pool; // all threads', beside the device's own one

static void CUDART_CB called(cudaStream_t, cudaError_t status, void *argument)
{
    CHECK(status == cudaSuccess);
    change::make(argument);
}

#if CUDART_VERSION >= 13000
static void prefetch(const void *p, size_t bytes, bool to_host, cudaStream_t stream)
{
    const cudaMemLocation host = { cudaMemLocationTypeHost, 0 }, device = { cudaMemLocationTypeDevice, 0 };
    OK(cudaMemPrefetchAsync(p, bytes, to_host ? host : device, 0, stream));
}

static CUresult create_context(CUcontext *out)
{
    return cuCtxCreate(out, nullptr, 0, 0);
}
#else
static void prefetch(const void *p, size_t bytes, bool to_host, cudaStream_t stream)
{
    OK(cudaMemPrefetchAsync(p, bytes, to_host ? cudaCpuDeviceId : 0, stream));
}

static CUresult create_context(CUcontext *out)
{
    return cuCtxCreate(out, 0, 0);
}
#endif

struct busy_sequence : sequence {
    const int self;
    const bool apart; // in a context of its own
    CUdeviceptr flag;
    unsigned signals = 0;

    busy_sequence(int thread, bool own_context) : self(thread), apart(own_context)
    {
        CHECK(cuMemAlloc(&flag, 4) == CUDA_SUCCESS && cuMemsetD32(flag, 0, 1) == CUDA_SUCCESS);
    }

    ~busy_sequence()
    {
        CHECK(cuMemFree(flag) == CUDA_SUCCESS);
    }

    void work(cudaStream_t stream, bool captured) override
    {
        const int what = captured ? 0 : draw(4);
        if (what < 2)
            sequence::work(stream, captured);
        else if (what == 2 && !apart)
            use_parcel(stream);
        else
            use_more(stream);
    }

    void wait_for(cudaEvent_t event, cudaStream_t stream)
    {
        cudaError_t result;
        switch (draw(6)) {
        case 0:
            OK(cudaEventSynchronize(event));
            break;
        case 1:
            while ((result = cudaEventQuery(event)) == cudaErrorNotReady)
                sched_yield();
            OK(result);
            break;
        default:
            OK(cudaStreamWaitEvent(stream, event, 0));
            break;
        }
    }

    // Makes what the parcel is without.
    void fill(parcel &p, cudaStream_t stream)
    {
        if (!p.event)
            OK(cudaEventCreateWithFlags(&p.event, draw(2) ? cudaEventDisableTiming : cudaEventDefault));
        if (!p.stream)
            OK(cudaStreamCreateWithFlags(&p.stream, draw(2) ? cudaStreamNonBlocking : cudaStreamDefault));
        if (p.memory)
            return;
        const int by = draw(256);
        p.ordered = draw(3);
        if (p.ordered)
            OK(draw(2) ? cudaMallocAsync(&p.memory, PARCEL_NUMBERS * 4, stream) :
                         cudaMallocFromPoolAsync(&p.memory, PARCEL_NUMBERS * 4, pool, stream));
        else
            OK(cudaMalloc(&p.memory, PARCEL_NUMBERS * 4));
        OK(cudaMemsetAsync(p.memory, by, PARCEL_NUMBERS * 4, stream));
        memset(p.model.data(), by, PARCEL_NUMBERS * 4);
    }

    // Destroys what another thread has made, while it may be at work.
    void empty(parcel &p, cudaStream_t stream)
    {
        switch (draw(3)) {
        case 0:
            OK(cudaEventDestroy(p.event));
            p.event = nullptr;
            break;
        case 1:
            OK(cudaStreamDestroy(p.stream));
            p.stream = nullptr;
            break;
        default:
            if (p.ordered && draw(3))
                OK(cudaFreeAsync(p.memory, stream));
            else
                OK(cudaFree(p.memory));
            p.memory = nullptr;
            break;
        }
    }

    void use_parcel(cudaStream_t stream)
    {
        parcel &p = parcels[draw(PARCELS)];
        std::lock_guard<std::mutex> held(p.lock);
        if (p.event)
            wait_for(p.event, stream);
        fill(p, stream);
        switch (draw(6)) {
        case 0:
            empty(p, stream);
            fill(p, stream);
            break;
        case 1: // in the parcel's stream, in between
            OK(cudaEventRecord(p.event, stream));
            OK(cudaStreamWaitEvent(p.stream, p.event, 0));
            trade(p.memory, p.model.data(), PARCEL_NUMBERS, p.stream, false);
            OK(cudaEventRecord(p.event, p.stream));
            OK(cudaStreamWaitEvent(stream, p.event, 0));
            break;
        default:
            trade(p.memory, p.model.data(), PARCEL_NUMBERS, stream, false);
            break;
        }
        OK(cudaEventRecord(p.event, stream));
        handed++;
    }

    // A kernel of a module that is there for this launch only.
    void use_module(int buffer, cudaStream_t stream)
    {
        std::string text = module_text;
        const int by = 1 + draw(VARIANTS);
        CUmodule module;
        CUfunction function;
        int count = NUMBERS;
        void *parameters[] = { &buffers[buffer], &count };
        text.replace(text.find("VARIANT"), 7, std::to_string(by));
        CHECK(cuModuleLoadData(&module, text.c_str()) == CUDA_SUCCESS);
        CHECK(cuModuleGetFunction(&function, module, "increase") == CUDA_SUCCESS);
        CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr) == CUDA_SUCCESS);
        OK(cudaStreamSynchronize(stream));
        CHECK(cuModuleUnload(module) == CUDA_SUCCESS);
        model_step(buffer, 0, NUMBERS, 1, by);
    }

    // A stream and an event that are destroyed before their work is done.
    void use_short_lived(int buffer, int at, int count, int by, cudaStream_t stream)
    {
        cudaStream_t other;
        cudaEvent_t event;
        OK(cudaStreamCreateWithFlags(&other, draw(2) ? cudaStreamNonBlocking : cudaStreamDefault));
        OK(cudaEventCreateWithFlags(&event, draw(2) ? cudaEventDisableTiming : cudaEventDefault));
        OK(cudaEventRecord(event, stream));
        OK(cudaStreamWaitEvent(other, event, 0));
        step<<<1, 64, 0, other>>>(buffers[buffer] + at, count, by, draw(4) ? 0 : 100);
        OK(cudaEventRecord(event, other));
        OK(cudaStreamWaitEvent(stream, event, 0));
        OK(cudaEventDestroy(event));
        OK(cudaStreamDestroy(other));
        model_step(buffer, at, count, 3, by);
    }

    // Another stream does a step, ordered by values in memory in place of events.
    void use_values(int buffer, int at, int count, int by, cudaStream_t stream)
    {
        const cudaStream_t other = streams[draw(2) ? NON_BLOCKING : APART];
        CHECK(cuStreamWriteValue32(stream, flag, ++signals, 0) == CUDA_SUCCESS);
        CHECK(cuStreamWaitValue32(other, flag, signals, CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS);
        step<<<1, 64, 0, other>>>(buffers[buffer] + at, count, by, draw(4) ? 0 : 100);
        CHECK(cuStreamWriteValue32(other, flag, ++signals, 0) == CUDA_SUCCESS);
        CHECK(cuStreamWaitValue32(stream, flag, signals, CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS);
        model_step(buffer, at, count, 3, by);
    }

    // A child has nothing of CUDA, and takes nothing from its parent.
    static void use_fork(void)
    {
        const pid_t child = fork();
        int status = -1;
        void *memory;
        if (child == 0)
            _exit(cudaMalloc(&memory, 1000) != cudaErrorInitializationError);
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }

    // A thread that ends before its work is done.
    void use_thread(int buffer, int at, int count, int by, cudaStream_t stream)
    {
        const int again = draw(4) ? 0 : 100;
        CUcontext context;
        CHECK(cuCtxGetCurrent(&context) == CUDA_SUCCESS);
        OK(cudaEventRecord(events[0], stream));
        std::thread([=] {
            CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS);
            OK(cudaStreamWaitEvent(cudaStreamPerThread, events[0], 0));
            step<<<1, 64, 0, cudaStreamPerThread>>>(buffers[buffer] + at, count, by, again);
            OK(cudaEventRecord(events[1], cudaStreamPerThread));
        }).join();
        OK(cudaStreamWaitEvent(stream, events[1], 0));
        model_step(buffer, at, count, 3, by);
    }

    // Waits for a piece of work by asking, and then the host reads and writes what it can reach.
    void poll(int at, int count, int by, cudaStream_t stream)
    {
        cudaError_t result;
        sequence::work(stream, false);
        while ((result = cudaStreamQuery(stream)) == cudaErrorNotReady)
            sched_yield();
        OK(result);
        for (int buffer : { PINNED, MANAGED }) {
            change touched = { buffers[buffer] + at, count, by };
            CHECK(memcmp(buffers[buffer], model[buffer].data(), NUMBERS * 4) == 0);
            change::make(&touched);
            model_step(buffer, at, count, 5, by);
        }
    }

    void use_more(cudaStream_t stream)
    {
        const int a = draw(BUFFERS), count = 1 + draw(draw(3) ? 200 : NUMBERS), at = draw(NUMBERS - count + 1), by = draw(1000);
        const int bytes = count * 4;
        cudaMemPool_t own;
        int *memory;
        switch (draw(12)) {
        case 0:
            use_module(a, stream);
            break;
        case 1:
            use_short_lived(a, at, count, by, stream);
            break;
        case 2:
            poll(at, count, by, stream);
            break;
        case 3:
            changes.push_back(new change { buffers[PINNED] + at, count, by });
            OK(cudaStreamAddCallback(stream, called, changes.back(), 0));
            model_step(PINNED, at, count, 5, by);
            break;
        case 4: // freed while the work is under way
            OK(draw(2) ? cudaMalloc(&memory, bytes) : cudaMallocManaged(&memory, bytes));
            OK(cudaMemcpyAsync(memory, buffers[a] + at, bytes, cudaMemcpyDefault, stream));
            step<<<1, 32, 0, stream>>>(memory, count, by, draw(4) ? 0 : 100);
            OK(cudaMemcpyAsync(buffers[a] + at, memory, bytes, cudaMemcpyDefault, stream));
            OK(cudaFree(memory));
            model_step(a, at, count, 3, by);
            break;
        case 5:
            OK(cudaDeviceGetDefaultMemPool(&own, 0));
            OK(cudaMemPoolTrimTo(draw(2) ? own : pool, 0));
            sequence::work(stream, false);
            break;
        case 6:
            OK(cudaHostRegister(page.data(), NUMBERS * 4, cudaHostRegisterDefault));
            OK(cudaHostGetDevicePointer(&memory, page.data(), 0));
            OK(cudaMemcpyAsync(page.data() + at, buffers[a] + at, bytes, cudaMemcpyDefault, stream));
            step<<<1, 32, 0, stream>>>(memory + at, count, by, 0);
            OK(cudaMemcpyAsync(buffers[a] + at, page.data() + at, bytes, cudaMemcpyDefault, stream));
            OK(cudaStreamSynchronize(stream));
            OK(cudaHostUnregister(page.data()));
            model_step(a, at, count, 3, by);
            break;
        case 7:
            use_values(a, at, count, by, stream);
            break;
        case 8:
            if (!draw(8))
                use_fork();
            sequence::work(stream, false);
            break;
        case 9:
            use_thread(a, at, count, by, stream);
            break;
        case 10:
            prefetch(buffers[MANAGED] + at, bytes, draw(2) != 0, stream);
            sequence::work(stream, false);
            break;
        default:
            OK(cudaMemcpyToSymbolAsync(variables, buffers[a] + at, bytes, self * NUMBERS * 4, cudaMemcpyDefault, stream));
            OK(cudaMemsetAsync(buffers[a] + at, by & 255, bytes, stream));
            OK(cudaMemcpyFromSymbolAsync(buffers[a] + at, variables, bytes, self * NUMBERS * 4, cudaMemcpyDefault, stream));
            break;
        }
    }
};

// A thread captures streams that do not wait for the default one, which the others go on to use.
static void thread_main(int self, unsigned seed)
{
    const bool apart = seed % 4 == 0 && self % 2 == 1;
    CUcontext context;
    CHECK(!apart || create_context(&context) == CUDA_SUCCESS);
    {
        busy_sequence work(self, apart);
        work.program(seed * THREADS + (unsigned)self, { NON_BLOCKING, APART },
                     seed % 2 ? cudaStreamCaptureModeThreadLocal : cudaStreamCaptureModeRelaxed);
    }
    CHECK(!apart || cuCtxDestroy(context) == CUDA_SUCCESS);
}

// Nobody uses the parcels any more: they have what their models say.
static void empty_parcels(void)
{
    std::vector<int> numbers(PARCEL_NUMBERS);
    for (parcel &p : parcels) {
        if (!p.memory)
            continue;
        OK(cudaMemcpy(numbers.data(), p.memory, PARCEL_NUMBERS * 4, cudaMemcpyDefault));
        CHECK(numbers == p.model);
        OK(cudaFree(p.memory));
        OK(cudaEventDestroy(p.event));
        OK(cudaStreamDestroy(p.stream));
        p.memory = nullptr, p.event = nullptr, p.stream = nullptr;
    }
}

int main(int argc, char **argv)
{
    const unsigned first = argc > 1 ? (unsigned)atoi(argv[1]) : 1, count = argc > 2 ? (unsigned)atoi(argv[2]) : 30;
    const cudaMemPoolProps properties = { cudaMemAllocationTypePinned, cudaMemHandleTypeNone, { cudaMemLocationTypeDevice, 0 } };
    for (unsigned seed = first; seed < first + count && !failures; seed++) {
        OK(cudaMemPoolCreate(&pool, &properties));
        std::thread threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            threads[i] = std::thread(thread_main, i, seed);
        for (std::thread &thread : threads)
            thread.join();
        empty_parcels();
        OK(cudaMemPoolDestroy(pool));
        if (seed % 5 == 0)
            OK(cudaDeviceReset());
        if (failures)
            printf("in program %u\n", seed);
    }
    CHECK(handed > (long)count * THREADS);
    if (!failures)
        printf("passed\n");
    return failures != 0;
}
