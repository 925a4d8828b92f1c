// Streams, what captures them, and events.
#include "random.cuh"

Table<cudaStream_t> streams = { "stream" };
Table<cudaEvent_t> events = { "event" };

static bool captures(cudaStream_t stream)
{
    cudaStreamCaptureStatus s;
    return cudaStreamIsCapturing(stream, &s) == cudaSuccess && s != cudaStreamCaptureStatusNone;
}

bool any_captures()
{
    for (int i = 0; i < SLOTS; i++)
        if (streams.live[i] && captures(streams.at[i]))
            return true;
    return captures(cudaStreamPerThread);
}

Table<cudaStream_t>::Picked pick_stream()
{
    switch (draw(12)) {
    case 0:
        return { cudaStreamPerThread, "per thread", -1 };
    case 1:
        return { cudaStreamLegacy, "legacy", -1 };
    default:
        return streams.pick(4);
    }
}

static void create()
{
    const int i = streams.place();
    const unsigned flags = chance(8) ? one_of({ 2u, 3u, 0x80000000u }) : draw(2);
    const int priority = (int)draw(9) - 6;
    if (i < 0)
        return;
    switch (draw(3)) {
    case 0:
        say("cudaStreamCreate(stream%d)", i);
        streams.live[i] = done(cudaStreamCreate(&streams.at[i])) == cudaSuccess;
        break;
    case 1:
        say("cudaStreamCreateWithFlags(stream%d, %#x)", i, flags);
        streams.live[i] = done(cudaStreamCreateWithFlags(&streams.at[i], flags)) == cudaSuccess;
        break;
    default:
        say("cudaStreamCreateWithPriority(stream%d, %#x, %d)", i, flags, priority);
        streams.live[i] = done(cudaStreamCreateWithPriority(&streams.at[i], flags, priority)) == cudaSuccess;
    }
}

static void ask(const Table<cudaStream_t>::Picked &s)
{
    unsigned flags = 77;
    int number = 77;
    unsigned long long id = 0;
    cudaStreamAttrValue v = {};
    const auto attribute = (cudaStreamAttrID)draw(9); // 9: as the device has it
    switch (draw(6)) {
    case 0:
        say("cudaStreamGetFlags(%s)", s.name.c_str());
        if (done(cudaStreamGetFlags(s.handle, &flags)) == cudaSuccess)
            out("%#x", flags);
        break;
    case 1:
        say("cudaStreamGetPriority(%s)", s.name.c_str());
        if (done(cudaStreamGetPriority(s.handle, &number)) == cudaSuccess)
            out("%d", number);
        break;
    case 2:
        say("cudaStreamGetDevice(%s)", s.name.c_str());
        if (done(cudaStreamGetDevice(s.handle, &number)) == cudaSuccess)
            out("%d", number);
        break;
    case 3:
        say("cudaStreamGetId(%s)", s.name.c_str());
        if (done(cudaStreamGetId(s.handle, &id)) == cudaSuccess)
            out("%s", id ? "some number" : "0");
        break;
    case 4:
        say("cudaStreamGetAttribute(%s, %d)", s.name.c_str(), (int)attribute);
        if (done(cudaStreamGetAttribute(s.handle, attribute, &v)) == cudaSuccess)
            out("%d", attribute == cudaLaunchAttributeAccessPolicyWindow ? (int)v.accessPolicyWindow.num_bytes : v.priority);
        break;
    default:
        v.priority = (int)draw(7) - 5;
        say("cudaStreamSetAttribute(%s, %d, %d)", s.name.c_str(), (int)attribute, v.priority);
        if (attribute != cudaLaunchAttributeAccessPolicyWindow)
            done(cudaStreamSetAttribute(s.handle, attribute, &v));
    }
}

static void capture(const Table<cudaStream_t>::Picked &s)
{
    const int i = graphs.place();
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    auto mode = (cudaStreamCaptureMode)(chance(20) ? 3 : draw(3));
    const cudaGraphNode_t *nodes = nullptr;
    cudaGraph_t graph = nullptr;
    unsigned long long id = 0;
    size_t count = 0;
    switch (draw(7)) {
    case 0:
    case 1:
        say("cudaStreamBeginCapture(%s, %d)", s.name.c_str(), (int)mode);
        done(cudaStreamBeginCapture(s.handle, mode));
        break;
    case 2:
    case 3:
        if (i < 0)
            break;
        say("cudaStreamEndCapture(%s, graph%d)", s.name.c_str(), i);
        graphs.live[i] = done(cudaStreamEndCapture(s.handle, &graphs.at[i])) == cudaSuccess;
        if (graphs.live[i] && cudaGraphGetNodes(graphs.at[i], nullptr, &count) == cudaSuccess)
            out("%zu nodes", count);
        break;
    case 4:
        say("cudaStreamIsCapturing(%s)", s.name.c_str());
        if (done(cudaStreamIsCapturing(s.handle, &status)) == cudaSuccess)
            out("%d", (int)status);
        break;
    case 5:
        say("cudaStreamGetCaptureInfo(%s)", s.name.c_str());
        if (done(cudaStreamGetCaptureInfo(s.handle, &status, &id, &graph, &nodes, nullptr, &count)) == cudaSuccess)
            out("%d, id %s, %zu nodes", (int)status, id ? "something" : "0", status ? count : 0);
        break;
    default:
        say("cudaThreadExchangeStreamCaptureMode(%d)", (int)mode);
        if (done(cudaThreadExchangeStreamCaptureMode(&mode)) == cudaSuccess)
            out("%d", (int)mode);
    }
}

static void CUDART_CB count_up(void *counter)
{
    ++*(int *)counter;
}

static void CUDART_CB called_back(cudaStream_t, cudaError_t, void *counter)
{
    ++*(int *)counter;
}

static void stream_call()
{
    static int counter;
    const auto s = pick_stream();
    const auto e = events.pick();
    const unsigned flags = chance(6) ? draw(4) : 0;
    switch (draw(12)) {
    case 0:
    case 1:
        create();
        break;
    case 2:
        if (s.slot < 0 && s.name != "NULL") // destroying one of these has its own rules
            break;
        say("cudaStreamDestroy(%s)", s.name.c_str());
        if (done(cudaStreamDestroy(s.handle)) == cudaSuccess && s.slot >= 0)
            streams.live[s.slot] = false;
        break;
    case 3:
        say("cudaStreamSynchronize(%s)", s.name.c_str());
        done(cudaStreamSynchronize(s.handle));
        break;
    case 4:
        say("cudaStreamQuery(%s)", s.name.c_str());
        done(cudaStreamQuery(s.handle));
        break;
    case 5:
        say("cudaStreamWaitEvent(%s, %s, %u)", s.name.c_str(), e.name.c_str(), flags);
        done(cudaStreamWaitEvent(s.handle, e.handle, flags));
        break;
    case 6:
    case 7:
        capture(s);
        break;
    case 8:
        say("cudaLaunchHostFunc(%s)", s.name.c_str());
        done(cudaLaunchHostFunc(s.handle, chance(20) ? nullptr : count_up, &counter));
        settle();
        if (!any_captures())
            out("%d", counter);
        break;
    case 9:
        say("cudaStreamAddCallback(%s, %u)", s.name.c_str(), flags);
        done(cudaStreamAddCallback(s.handle, called_back, &counter, flags));
        settle();
        if (!any_captures())
            out("%d", counter);
        break;
    default:
        ask(s);
    }
}

static void event_call()
{
    const auto s = pick_stream();
    const auto e = events.pick(), f = events.pick();
    const int i = events.place();
    const unsigned flags = one_of({ 0u, 1u, 2u, 3u, 4u, 6u, 7u, 8u });
    float ms = -77;
    switch (draw(9)) {
    case 0:
    case 1:
        if (i < 0)
            break;
        say("cudaEventCreateWithFlags(event%d, %#x)", i, flags);
        events.live[i] = done(cudaEventCreateWithFlags(&events.at[i], flags)) == cudaSuccess;
        break;
    case 2:
        say("cudaEventDestroy(%s)", e.name.c_str());
        if (done(cudaEventDestroy(e.handle)) == cudaSuccess && e.slot >= 0)
            events.live[e.slot] = false;
        break;
    case 3:
        say("cudaEventQuery(%s)", e.name.c_str());
        done(cudaEventQuery(e.handle));
        break;
    case 4:
        say("cudaEventSynchronize(%s)", e.name.c_str());
        done(cudaEventSynchronize(e.handle));
        break;
    case 5:
        say("cudaEventElapsedTime(%s, %s)", e.name.c_str(), f.name.c_str());
        if (done(cudaEventElapsedTime(&ms, e.handle, f.handle)) == cudaSuccess)
            out("%s", ms != -77 ? "some time" : "nothing");
        break;
    case 6:
        say("cudaEventRecordWithFlags(%s, %s, %u)", e.name.c_str(), s.name.c_str(), flags & 3);
        done(cudaEventRecordWithFlags(e.handle, s.handle, flags & 3));
        settle();
        break;
    default:
        say("cudaEventRecord(%s, %s)", e.name.c_str(), s.name.c_str());
        done(cudaEventRecord(e.handle, s.handle));
        settle();
    }
}

static void begin()
{
    create();
    create();
}

const Subject stream_subject = { begin, stream_call };
const Subject event_subject = { nullptr, event_call };
