/* Streams and host functions. */
#include "../hold.h"
#include "random.h"

static const char *stream(int slot)
{
    return random_name(STREAM, slot);
}

static void create(void)
{
    int slot = random_free_slot(STREAM);
    unsigned flags = ONE_OF(unsigned, 0, 0, 1, 1, 2, UINT32_MAX);
    CUstream s = NULL;
    random_say("cuStreamCreate(%s, %#x)", stream(slot), flags);
    if (random_done(cuStreamCreate(&s, flags)) == CUDA_SUCCESS)
        random_keep(STREAM, slot, (uintptr_t)s, 0);
}

static void create_with_priority(void)
{
    int slot = random_free_slot(STREAM), priority = ONE_OF(int, 0, -1, -2, -5, -6, 1, INT32_MIN);
    unsigned flags = ONE_OF(unsigned, 0, 1, 1, 2);
    CUstream s = NULL;
    random_say("cuStreamCreateWithPriority(%s, %#x, %d)", stream(slot), flags, priority);
    if (random_done(cuStreamCreateWithPriority(&s, flags, priority)) == CUDA_SUCCESS)
        random_keep(STREAM, slot, (uintptr_t)s, 0);
}

static void destroy(void)
{
    int slot = random_pick_or_null(STREAM);
    if (random_chance(12))
        slot = random_pick_stream();
    random_say("cuStreamDestroy(%s)", stream(slot));
    if (random_done(cuStreamDestroy(random_stream(slot))) == CUDA_SUCCESS)
        random_drop(STREAM, slot);
}

static void query(void)
{
    int slot = random_pick_stream();
    if (!random_settle())
        return;
    random_say("cuStreamQuery(%s)", stream(slot));
    random_done(cuStreamQuery(random_stream(slot)));
}

static void synchronize(void)
{
    int slot = random_pick_stream();
    random_use(slot);
    random_say("cuStreamSynchronize(%s)", stream(slot));
    random_done(cuStreamSynchronize(random_stream(slot)));
}

static void get_flags(void)
{
    int slot = random_pick_stream();
    unsigned flags = 99;
    random_say("cuStreamGetFlags(%s)", stream(slot));
    if (random_done(cuStreamGetFlags(random_stream(slot), &flags)) == CUDA_SUCCESS)
        random_out("%#x", flags);
}

static void get_priority(void)
{
    int slot = random_pick_stream(), priority = 99;
    random_say("cuStreamGetPriority(%s)", stream(slot));
    if (random_done(cuStreamGetPriority(random_stream(slot), &priority)) == CUDA_SUCCESS)
        random_out("%d", priority);
}

static void get_context(void)
{
    int slot = random_pick_stream();
    CUcontext c = NULL;
    random_say("cuStreamGetCtx(%s)", stream(slot));
    if (random_done(cuStreamGetCtx(random_stream(slot), &c)) == CUDA_SUCCESS)
        random_out("%s", random_name(CONTEXT, random_find(CONTEXT, (uintptr_t)c)));
}

static void get_device(void)
{
    int slot = random_pick_stream();
    CUdevice d = -9;
    random_say("cuStreamGetDevice(%s)", stream(slot));
    if (random_done(cuStreamGetDevice(random_stream(slot), &d)) == CUDA_SUCCESS)
        random_out("%d", d);
}

static void get_id(void)
{
    int slot = random_pick_stream();
    unsigned long long id = 0;
    random_say("cuStreamGetId(%s)", stream(slot));
    random_done(cuStreamGetId(random_stream(slot), &id));
}

static void wait_event(void)
{
    int slot = random_pick_stream(), e = random_pick_or_null(EVENT);
    unsigned flags = ONE_OF(unsigned, 0, 0, 0, 1, 2);
    random_use(slot);
    random_say("cuStreamWaitEvent(%s, %s, %u)", stream(slot), random_name(EVENT, e), flags);
    random_done(cuStreamWaitEvent(random_stream(slot), HANDLE(CUevent, EVENT, e), flags));
    random_used(slot);
}

static void attributes(void)
{
    int slot = random_pick_stream();
    CUstreamAttrID id = (CUstreamAttrID)ONE_OF(int, 0, 1, 3, 3, 8, 4, 77);
    CUstreamAttrValue value;
    memset(&value, 0, sizeof(value));
    value.syncPolicy = (CUsynchronizationPolicy)ONE_OF(int, 1, 2, 3, 4);
    if (random_chance(2)) {
        random_say("cuStreamSetAttribute(%s, %d, %d)", stream(slot), (int)id,
                   (int)value.syncPolicy);
        random_done(cuStreamSetAttribute(random_stream(slot), id, &value));
    }
    memset(&value, 0, sizeof(value));
    random_say("cuStreamGetAttribute(%s, %d)", stream(slot), (int)id);
    if (random_done(cuStreamGetAttribute(random_stream(slot), id, &value)) == CUDA_SUCCESS)
        random_out("%d", (int)value.syncPolicy);
}

static void copy_attributes(void)
{
    int to = random_pick_stream(), from = random_pick_stream();
    random_say("cuStreamCopyAttributes(%s, %s)", stream(to), stream(from));
    random_done(cuStreamCopyAttributes(random_stream(to), random_stream(from)));
}

static _Atomic int calls, held;

void CUDA_CB random_count(void *by)
{
    calls += *(const int *)by;
}

int *random_step(void)
{
    static int steps[] = { 1, 10, 100 };
    return &steps[random_below(3)];
}

static void host_function(void)
{
    int slot = random_pick_stream();
    int *by = random_step();
    bool none = random_chance(12);
    random_use(slot);
    random_say("cuLaunchHostFunc(%s, %s, %d)", stream(slot), none ? "NULL" : "count", *by);
    random_done(cuLaunchHostFunc(random_stream(slot), none ? NULL : random_count, by));
    random_used(slot);
}

static void counted(void)
{
    if (!random_settle())
        return;
    random_say("calls of host functions: %d", calls);
}

static void CUDA_CB hold(void *unused)
{
    (void)unused;
    hold_wait(&held, 0);
}

/* A stream whose work is held: it is not ready, nor is an event behind it; then all of it is. */
static void held_work(void)
{
    int slot = random_pick_stream(), e = random_pick(EVENT), b = random_pick(BUFFER);
    if (!random_settle())
        return;
    held = 1;
    random_say("cuLaunchHostFunc(%s, hold)", stream(slot));
    if (random_done(cuLaunchHostFunc(random_stream(slot), hold, NULL)) == CUDA_SUCCESS) {
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
        random_used(slot);
        if (b >= 0) {
            random_say("cuMemsetD8Async(buffer%d, 77, 1, %s)", b, stream(slot));
            random_done(cuMemsetD8Async(random_at(BUFFER, b)->handle, 77, 1, random_stream(slot)));
        }
        if (e >= 0) {
            random_say("cuEventRecord(event%d, %s)", e, stream(slot));
            random_done(cuEventRecord(HANDLE(CUevent, EVENT, e), random_stream(slot)));
            random_say("cuEventQuery(event%d)", e);
            random_done(cuEventQuery(HANDLE(CUevent, EVENT, e)));
        }
        random_say("cuStreamQuery(%s)", stream(slot));
        random_done(cuStreamQuery(random_stream(slot)));
        if (random_chance(3) && slot >= 0) {
            random_say("cuStreamIsCapturing(%s)", stream(slot));
            random_done(cuStreamIsCapturing(random_stream(slot), &status));
            random_say("cuStreamDestroy(%s)", stream(slot));
            if (random_done(cuStreamDestroy(random_stream(slot))) == CUDA_SUCCESS)
                random_drop(STREAM, slot);
        }
    }
    hold_set(&held, 0);
    if (!random_settle())
        return;
    if (e >= 0) {
        random_say("cuEventQuery(event%d)", e);
        random_done(cuEventQuery(HANDLE(CUevent, EVENT, e)));
    }
}

static void capture_status(void)
{
    int slot = random_pick_stream();
    CUstreamCaptureStatus status = (CUstreamCaptureStatus)9;
    random_say("cuStreamIsCapturing(%s)", stream(slot));
    if (random_done(cuStreamIsCapturing(random_stream(slot), &status)) == CUDA_SUCCESS)
        random_out("%d", (int)status);
}

static void begin_streams(void)
{
    create();
    create_with_priority();
    create();
}

static const struct random_generator streams[] = {
    GENERATOR(create, 4),          GENERATOR(create_with_priority, 3), GENERATOR(destroy, 3),
    GENERATOR(query, 3),           GENERATOR(synchronize, 2),          GENERATOR(get_flags, 2),
    GENERATOR(get_priority, 2),    GENERATOR(get_context, 2),          GENERATOR(get_device, 1),
    GENERATOR(get_id, 1),          GENERATOR(wait_event, 4),           GENERATOR(attributes, 3),
    GENERATOR(copy_attributes, 1), GENERATOR(host_function, 4),        GENERATOR(counted, 2),
    GENERATOR(held_work, 3),       GENERATOR(capture_status, 1),
};
const struct random_subject random_streams = SUBJECT(streams, begin_streams);
