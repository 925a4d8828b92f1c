/*
 * cuMemAllocManaged. Where device memory is not the host's, managed memory moves to the device and
 * back (memory/pages.h). A stream that no program has does that, through the staging slots; it
 * waits for no other stream, and goes before them on a device that others keep busy: programs wait
 * for it at each allocation and each piece. Where memory cannot move, managed memory is pinned host
 * memory.
 */
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "client/gen/api.h"
#include "client/memory/clear.h"
#include "client/memory/memory.h"
#include "client/memory/pages.h"
#include "client/memory/staging.h"
#include "client/stream/hostfunc.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("managed");

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int unavailable; /* set once; a CUresult */
static struct rt_stream *mover;
/* Protected by the pages' lock: sequence number of the mover's last operation. */
static uint64_t last;

/* Sends bytes to the device. Few bytes travel in the ring. */
static int put(uint64_t address, const void *bytes, size_t size)
{
    if (size > WIRE_REC_WRITE_DATA_MAX) {
        const struct rt_box box = { .src = { .kind = RT_SIDE_HOST, .address = (uintptr_t)bytes },
                                    .width = size,
                                    .height = 1,
                                    .depth = 1 };
        return rt_staging_copy(mover, &box, address, true);
    }
    struct wire_rec_write r = { .head.op = WIRE_OP_WRITE, .dst = address };
    return rt_queue_submit(mover, &r.head, sizeof(r), bytes, size);
}

static int settle(void)
{
    uint64_t issued = rt_queue_issued(rt_session, mover->number);
    if (issued == last)
        return CUDA_SUCCESS;
    last = issued;
    return rt_session_wait(rt_session, mover->number, issued, NULL);
}

static int get(void *bytes, uint64_t address, size_t size)
{
    const struct rt_box box = { .dst = { .kind = RT_SIDE_HOST, .address = (uintptr_t)bytes },
                                .width = size,
                                .height = 1,
                                .depth = 1 };
    static atomic_bool said;
    int r = rt_staging_copy(mover, &box, address, false);
    if (r && !atomic_exchange(&said, true))
        gm_warn(&topic, "managed memory is lost with the session: error %d", r);
    return r;
}

/* Whether work is under way, by the ring's lock: a thread that holds it and found nothing here
 * enters its work first. */
static bool busy(void)
{
    struct rt_session *s = rt_session;
    bool any = false;
    pthread_mutex_lock(&s->ring_lock);
    uint32_t used = atomic_load_explicit(&s->queues_used, memory_order_acquire);
    for (uint32_t i = 0; i < used && !any; i++)
        any = i != mover->number && !rt_queue_done(s, i, rt_queue_issued(s, i));
    pthread_mutex_unlock(&s->ring_lock);
    return any;
}

/* What a host function touches does not wait for the work behind it. */
static bool rest(uint64_t ns)
{
    struct rt_session *s = rt_session;
    const uint64_t until = gm_now_ns() + ns;
    if (atomic_load(&rt_hostfunc_runs))
        return true;
    uint32_t used = atomic_load_explicit(&s->queues_used, memory_order_acquire);
    for (uint32_t i = 0; i < used; i++) {
        const uint64_t now = gm_now_ns();
        if (i != mover->number &&
            !rt_session_wait_within(s, i, rt_queue_issued(s, i), until - GM_MIN(now, until)))
            return false;
    }
    return true;
}

static void open_pages(void)
{
    static const struct rt_pages_device gpu = {
        .put = put, .settle = settle, .get = get, .busy = busy, .rest = rest
    };
    unavailable = rt_stream_create_bare(0, rt_session->devices[0].priority_greatest, &mover);
    if (unavailable)
        return;
    mover->role = RT_ROLE_OWN;
    int r = rt_pages_open(&gpu, rt_session->window_base, rt_session->window_half);
    if (r == 0)
        return;
    unavailable = CUDA_ERROR_NOT_SUPPORTED;
    gm_info(&topic, "managed memory is pinned host memory: userfaultfd: %s", strerror(-r));
}

/* Maps pages of the process's own at the device's address. */
static int map(uint64_t address, uint64_t size)
{
    int r = rt_pages_add(address, size);
    if (r < 0)
        rt_session_hide(rt_session, address, size);
    return r < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* Allocates whole pages of device memory, which are zero. After an error the memory has to be
 * pinned host memory. */
static int allocate(struct rt_context *c, uint64_t size, unsigned flags, uint64_t *out)
{
    if (!rt_session->memory_apart || rt_session->device_count > 1)
        return CUDA_ERROR_NOT_SUPPORTED;
    pthread_once(&once, open_pages);
    if (unavailable)
        return unavailable;
    struct rt_range range = { .size = size, .kind = RT_MEMORY_MANAGED, .flags = flags };
    uint64_t whole;
    if (!gm_align_up(size, RT_PAGE, &whole))
        return CUDA_ERROR_INVALID_VALUE;
    int r = rt_memory_allocate_range(c, WIRE_MEMORY_KIND_DEVICE, whole, RT_PAGE, &range);
    if (r)
        return r;
    uint64_t seq = 0;
    r = rt_clear_in(mover, range.base, whole, &seq);
    r = r ? r : rt_session_wait(rt_session, mover->number, seq, NULL);
    r = r ? r : map(range.base, whole);
    if (r == CUDA_SUCCESS)
        *out = range.base;
    else if (rt_memory_remove(range.base, 1u << RT_MEMORY_MANAGED, &range))
        (void)rt_request_free(rt_session, range.base);
    return r;
}

CUresult rt_cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
    struct rt_context *c;
    uint64_t address;
    int r = rt_enter_any();
    if (r)
        return r;
    if (!dptr || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    r = rt_enter(&c);
    if (r)
        return r;
    r = allocate(c, bytesize, flags, &address);
    if (r)
        r = rt_memory_allocate(c, bytesize, RT_MEMORY_MANAGED, flags, &address);
    if (r == CUDA_SUCCESS)
        *dptr = address;
    return r;
}
