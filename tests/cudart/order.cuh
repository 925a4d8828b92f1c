/*
 * Random work in six streams that is in one order altogether: by what the default stream waits for
 * and who waits for it, or by an event. A model does the same at once; in the end, and whenever
 * something is read, both have the same numbers.
 *
 * A program makes a `sequence` in each thread that is to do such work, and has it run programs.
 * What else such a thread does in between, it adds to `work`.
 */
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include <cuda_runtime.h>

#include "check.h"

enum { NUMBERS = 6000, ROWS = 4, ROW_BYTES = NUMBERS / ROWS * 4, STEPS = 40 };
enum { DEFAULT, FIRST, SECOND, THREAD, NON_BLOCKING, APART, STREAMS };
enum { DEVICE, OTHER, PINNED, MANAGED, BUFFERS, ARRAY = BUFFERS };

// Each number times three and something; before that all of them are written again, which takes time.
static __global__ void step(int *numbers, int count, int by, int again)
{
    for (int n = 0; n < again; n++)
        for (int i = threadIdx.x; i < count; i += blockDim.x)
            ((volatile int *)numbers)[i] = numbers[i];
    for (int i = threadIdx.x; i < count; i += blockDim.x)
        numbers[i] = numbers[i] * 3 + by;
}

// What a host function does: each number times five and something.
struct change {
    int *at, count, by;
    static void CUDART_CB make(void *argument)
    {
        const change *c = (const change *)argument;
        for (int i = 0; i < c->count; i++)
            c->at[i] = c->at[i] * 5 + c->by;
    }
};

struct sequence {
    unsigned state = 0;
    bool calls_host = false; // this program has host functions
    cudaStream_t streams[STREAMS] = {};
    cudaEvent_t events[2];
    int *buffers[BUFFERS];
    cudaArray_t array;
    std::vector<int> model[BUFFERS + 1], page = std::vector<int>(NUMBERS);
    std::vector<change *> changes;
    std::vector<std::function<void()>> done; // to the model, for each further launch of a graph

    sequence()
    {
        const cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
        for (auto &numbers : model)
            numbers.resize(NUMBERS);
        streams[THREAD] = cudaStreamPerThread;
        OK(cudaStreamCreate(&streams[FIRST]));
        OK(cudaStreamCreate(&streams[SECOND]));
        OK(cudaStreamCreateWithFlags(&streams[NON_BLOCKING], cudaStreamNonBlocking));
        OK(cudaStreamCreateWithFlags(&streams[APART], cudaStreamNonBlocking));
        for (cudaEvent_t &event : events)
            OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
        OK(cudaMalloc(&buffers[DEVICE], NUMBERS * 4));
        OK(cudaMalloc(&buffers[OTHER], NUMBERS * 4));
        OK(cudaMallocHost(&buffers[PINNED], NUMBERS * 4));
        OK(cudaMallocManaged(&buffers[MANAGED], NUMBERS * 4));
        OK(cudaMallocArray(&array, &format, NUMBERS / ROWS, ROWS));
    }

    virtual ~sequence()
    {
        for (int stream : { FIRST, SECOND, NON_BLOCKING, APART })
            OK(cudaStreamDestroy(streams[stream]));
        for (cudaEvent_t event : events)
            OK(cudaEventDestroy(event));
        for (int buffer : { DEVICE, OTHER, MANAGED })
            OK(cudaFree(buffers[buffer]));
        OK(cudaFreeHost(buffers[PINNED]));
        OK(cudaFreeArray(array));
    }

    int draw(int below)
    {
        state = state * 1664525u + 1013904223u;
        return (int)((state >> 8) % (unsigned)below);
    }

    // Does something to the model.
    void model_do(std::function<void()> what)
    {
        what();
        done.push_back(what);
    }

    void model_step(int buffer, int at, int count, int factor, int by)
    {
        model_do([=] {
            for (int i = at; i < at + count; i++)
                model[buffer][i] = model[buffer][i] * factor + by;
        });
    }

    void model_copy(int to, int at, int from, int from_at, int count)
    {
        model_do([=] { memcpy(&model[to][at], &model[from][from_at], count * 4); });
    }

    // Before a copy between memory of the host, which NVIDIA's driver makes at once.
    void wait_for_host(cudaStream_t stream)
    {
        if (calls_host)
            OK(cudaStreamSynchronize(stream));
    }

    // Reads a part of a buffer to pageable memory.
    void read(int buffer, int at, int count, cudaStream_t stream)
    {
        wait_for_host(stream);
        if (stream) {
            OK(cudaMemcpyAsync(page.data(), buffers[buffer] + at, count * 4, cudaMemcpyDefault, stream));
            OK(cudaStreamSynchronize(stream));
        } else {
            OK(cudaMemcpy(page.data(), buffers[buffer] + at, count * 4, cudaMemcpyDefault));
        }
        CHECK(memcmp(page.data(), &model[buffer][at], count * 4) == 0);
    }

    static bool blocking(int stream)
    {
        return stream < NON_BLOCKING;
    }

    // Makes the stream's work come after that of the last one, which may be the same. NVIDIA's driver takes a stream whose
    // work waits for a host function for idle: the default stream does not wait for it, nor others for the default stream.
    void follow(int stream, int last, int number)
    {
        const bool implied = (stream == DEFAULT && blocking(last)) || (last == DEFAULT && blocking(stream));
        if (stream == last || (implied && !calls_host))
            return;
        OK(cudaEventRecord(events[number % 2], streams[last]));
        OK(cudaStreamWaitEvent(streams[stream], events[number % 2], 0));
    }

    virtual void work(cudaStream_t stream, bool captured)
    {
        const int a = draw(BUFFERS), b = (a + 1 + draw(BUFFERS - 1)) % BUFFERS, count = 1 + draw(draw(3) ? 200 : NUMBERS);
        const int at = draw(NUMBERS - count + 1), from = draw(NUMBERS - count + 1), by = draw(1000), rows = 1 + draw(ROWS);
        int *temporary, what = draw(captured ? 7 : 9);
        if (what == 3 && !calls_host)
            what = 0;
        switch (what) {
        case 0:
            step<<<1, 64, 0, stream>>>(buffers[a] + at, count, by, draw(4) ? 0 : 300);
            model_step(a, at, count, 3, by);
            break;
        case 1:
            OK(cudaMemsetAsync(buffers[a] + at, by & 255, count * 4, stream));
            model_do([=] { memset(&model[a][at], by & 255, count * 4); });
            break;
        case 2:
            OK(cudaMemcpyAsync(buffers[a] + at, buffers[b] + from, count * 4, cudaMemcpyDefault, stream));
            model_copy(a, at, b, from, count);
            break;
        case 3:
            changes.push_back(new change { buffers[PINNED] + at, count, by });
            OK(cudaLaunchHostFunc(stream, change::make, changes.back()));
            model_step(PINNED, at, count, 5, by);
            break;
        case 4: // through memory that is allocated in this order, too
            OK(cudaMallocAsync(&temporary, count * 4, stream));
            OK(cudaMemcpyAsync(temporary, buffers[a] + at, count * 4, cudaMemcpyDefault, stream));
            step<<<1, 32, 0, stream>>>(temporary, count, by, 0);
            OK(cudaMemcpyAsync(buffers[b] + at, temporary, count * 4, cudaMemcpyDefault, stream));
            OK(cudaFreeAsync(temporary, stream));
            model_copy(b, at, a, at, count);
            model_step(b, at, count, 3, by);
            break;
        case 5:
            OK(cudaMemcpy2DToArrayAsync(array, 0, 0, buffers[a], ROW_BYTES, ROW_BYTES, rows, cudaMemcpyDefault, stream));
            model_copy(ARRAY, 0, a, 0, rows * ROW_BYTES / 4);
            break;
        case 6:
            OK(cudaMemcpy2DFromArrayAsync(buffers[a], ROW_BYTES, array, 0, 0, ROW_BYTES, rows, cudaMemcpyDefault, stream));
            model_copy(a, 0, ARRAY, 0, rows * ROW_BYTES / 4);
            break;
        case 7: // from pageable memory, which stays as it is until the stream has been waited for
            for (int i = 0; i < count; i++)
                page[i] = draw(100000);
            wait_for_host(stream);
            OK(cudaMemcpyAsync(buffers[a] + at, page.data(), count * 4, cudaMemcpyDefault, stream));
            memcpy(&model[a][at], page.data(), count * 4);
            OK(cudaStreamSynchronize(stream));
            break;
        default:
            read(a, at, count, stream);
            break;
        }
    }

    // Does something with memory that others have too and with what it should hold, or only reads it.
    void trade(int *memory, int *numbers, int size, cudaStream_t stream, bool only_read)
    {
        const int count = 1 + draw(size), at = draw(size - count + 1), a = draw(BUFFERS), there = draw(NUMBERS - count + 1);
        const int by = draw(1000), bytes = count * 4;
        switch (draw(only_read ? 2 : 4)) {
        case 0:
            OK(cudaMemcpyAsync(page.data(), memory + at, bytes, cudaMemcpyDefault, stream));
            OK(cudaStreamSynchronize(stream));
            CHECK(memcmp(page.data(), numbers + at, bytes) == 0);
            break;
        case 1:
            OK(cudaMemcpyAsync(buffers[a] + there, memory + at, bytes, cudaMemcpyDefault, stream));
            memcpy(&model[a][there], numbers + at, bytes);
            break;
        case 2:
            OK(cudaMemcpyAsync(memory + at, buffers[a] + there, bytes, cudaMemcpyDefault, stream));
            memcpy(numbers + at, &model[a][there], bytes);
            break;
        default:
            step<<<1, 64, 0, stream>>>(memory + at, count, by, draw(4) ? 0 : 100);
            for (int i = at; i < at + count; i++)
                numbers[i] = numbers[i] * 3 + by;
            break;
        }
    }

    void steps(const std::vector<int> &usable, int *last, bool captured)
    {
        for (int n = 0; n < STEPS; n++) {
            const int stream = usable[draw((int)usable.size())];
            follow(stream, *last, n);
            work(streams[stream], captured);
            *last = stream;
        }
    }

    // Captures the steps and launches them twice: launches of one graph wait for each other in all streams.
    void launch_captured(const std::vector<int> &usable, cudaStreamCaptureMode mode)
    {
        const int first = usable[0];
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        int last = first;
        OK(cudaStreamBeginCapture(streams[first], mode));
        steps(usable, &last, true);
        follow(first, last, STEPS);
        OK(cudaStreamEndCapture(streams[first], &graph));
        OK(cudaGraphInstantiate(&exec, graph, 0));
        OK(cudaGraphDestroy(graph));
        OK(cudaGraphLaunch(exec, streams[draw(2) ? FIRST : DEFAULT]));
        last = draw(2) ? SECOND : THREAD;
        OK(cudaGraphLaunch(exec, streams[last]));
        for (const auto &what : done)
            what();
        OK(cudaStreamSynchronize(streams[last]));
        OK(cudaGraphExecDestroy(exec));
    }

    // A program of this seed. `captured`: the streams of which each third one is captured.
    void program(unsigned seed, const std::vector<int> &captured, cudaStreamCaptureMode mode)
    {
        int last = DEFAULT;
        state = seed * 7919;
        calls_host = draw(2);
        for (int b = 0; b < BUFFERS; b++) {
            for (int &number : model[b])
                number = draw(1000);
            OK(cudaMemcpy(buffers[b], model[b].data(), NUMBERS * 4, cudaMemcpyDefault));
        }
        model[ARRAY] = model[DEVICE];
        OK(cudaMemcpy2DToArray(array, 0, 0, model[ARRAY].data(), ROW_BYTES, ROW_BYTES, ROWS, cudaMemcpyDefault));
        if (seed % 3)
            steps({ DEFAULT, FIRST, SECOND, THREAD, NON_BLOCKING, APART }, &last, false);
        else
            launch_captured(captured, mode);
        OK(cudaStreamSynchronize(streams[last])); // which waits for all, where cudaDeviceSynchronize is refused beside captures
        for (int b = 0; b < BUFFERS; b++)
            read(b, 0, NUMBERS, nullptr);
        for (change *c : changes)
            delete c;
        changes.clear();
        done.clear();
    }
};
