/*
 * Allocation: cuMemAlloc*, cuMemFree*, cuMemHost*, and how much memory is left. Every range comes
 * from the server, which charges for it. Nobody waits for the answer to a free, so that it costs no
 * round trip. The stream-ordered calls are in pool_api.c.
 */
#include "client/memory/memory.h"

#include <stdlib.h>
#include <string.h>

#include "client/gen/api.h"
#include "client/memory/pool_ipc.h"
#include "client/stream/call.h"
#include "client/stream/capture.h"
#include "client/stream/check.h"
#include "client/stream/reach.h"

#define PITCH_ALIGN 512u

#define KIND(k) (1u << (k))

/* A stream-ordered free that waits for its stream. */
struct delayed_free {
    struct delayed_free *next;
    uint64_t address;
    struct rt_pool_view *view; /* the view to give back instead; NULL: none */
    uint32_t number;
    uint64_t seq;
};

static pthread_mutex_t delayed_lock = PTHREAD_MUTEX_INITIALIZER;
static struct delayed_free *delayed; /* delayed_lock, also for the next */
static unsigned delayed_count;

static void give_back(uint64_t address, struct rt_pool_view *view)
{
    (void)(view ? rt_pool_view_close(view) : rt_request_free(rt_session, address));
}

/* Takes a free out of the list whose stream is done; with `any` the first one, done or not. */
static struct delayed_free *take_delayed(bool any)
{
    struct delayed_free *taken = NULL;
    pthread_mutex_lock(&delayed_lock);
    for (struct delayed_free **at = &delayed; *at && !(any && taken);) {
        struct delayed_free *d = *at;
        if (!any && !rt_queue_done(rt_session, d->number, d->seq)) {
            at = &d->next;
            continue;
        }
        *at = d->next;
        delayed_count--;
        d->next = taken;
        taken = d;
    }
    pthread_mutex_unlock(&delayed_lock);
    return taken;
}

static bool end_delayed(struct delayed_free *list)
{
    bool any = list != NULL;
    while (list) {
        struct delayed_free *d = list;
        list = d->next;
        (void)rt_session_wait(rt_session, d->number, d->seq, NULL);
        give_back(d->address, d->view);
        free(d);
    }
    return any;
}

bool rt_memory_reap(bool all)
{
    bool any = end_delayed(take_delayed(false));
    if (!all)
        return any;
    pthread_mutex_lock(&delayed_lock);
    unsigned count = delayed_count; /* without the frees that other threads add meanwhile */
    pthread_mutex_unlock(&delayed_lock);
    while (count-- && end_delayed(take_delayed(true)))
        any = true;
    return rt_pools_trim(true) || any;
}

void rt_memory_free_later(uint64_t address, struct rt_pool_view *view, uint32_t number,
                          uint64_t seq)
{
    struct delayed_free *d = malloc(sizeof(*d));
    /* The memory stays until the program ends: the caller may hold locks, so it cannot wait. */
    if (!d)
        return;
    *d = (struct delayed_free) { .address = address, .view = view, .number = number, .seq = seq };
    pthread_mutex_lock(&delayed_lock);
    d->next = delayed;
    delayed = d;
    delayed_count++;
    pthread_mutex_unlock(&delayed_lock);
    (void)rt_memory_reap(false);
}

int rt_memory_allocate_range(struct rt_context *c, uint32_t from, uint64_t room, uint64_t align,
                             struct rt_range *range)
{
    uint64_t address;
    if (range->size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    int r = rt_capture_unsafe();
    if (r)
        return r;
    (void)rt_memory_reap(false);
    r = rt_request_alloc(rt_session, room, align, from, c->device, &address);
    if (r == CUDA_ERROR_OUT_OF_MEMORY && rt_memory_reap(true))
        r = rt_request_alloc(rt_session, room, align, from, c->device, &address);
    if (r)
        return r;
    range->base = range->window = address;
    range->context = rt_context_owner(c);
    range->device = c->device;
    r = rt_memory_insert(range);
    if (r)
        (void)rt_request_free(rt_session, address);
    return r;
}

int rt_memory_enter_block(struct rt_context *c, uint64_t address, struct rt_range *range)
{
    range->base = range->window = address;
    range->context = rt_context_owner(c);
    range->device = rt_pool_device(rt_block_source(range->block));
    int r = rt_memory_insert(range);
    if (r)
        rt_pool_free(range->block, 0, 0);
    return r;
}

/* Without a message to the server, as a rule. False: it has to be asked for this allocation, and
 * for pages of its own, if *apart. */
static bool allocate_block(struct rt_context *c, struct rt_range *range, bool *apart, int *result)
{
    uint64_t address, room = rt_check_padded(range->size);
    if (room == 0 || room > RT_CUT_MAX || range->kind != RT_MEMORY_DEVICE)
        return false;
    struct rt_pool *p = rt_pool_private(c->device);
    *result = rt_capture_unsafe();
    if (*result == CUDA_SUCCESS && p)
        *result = rt_pool_alloc(p, NULL, room, &address, &range->block);
    if (!p || *result == CUDA_ERROR_OUT_OF_MEMORY)
        return false;
    if (*result == CUDA_SUCCESS && !rt_pool_settle(range->block)) {
        range->block = NULL;
        *apart = true;
        return false;
    }
    if (*result == CUDA_SUCCESS)
        *result = rt_memory_enter_block(c, address, range);
    return true;
}

/* What is less than whole pages may have been the program's before. */
static void clear_host(const struct rt_range *range)
{
    if (range->size < RT_SEGMENT_UNIT)
        memset((void *)(uintptr_t)range->base, 0, range->size);
}

int rt_memory_allocate(struct rt_context *c, uint64_t size, enum rt_memory kind, unsigned flags,
                       uint64_t *out)
{
    bool device = kind == RT_MEMORY_DEVICE || kind == RT_MEMORY_ARRAY, apart = false;
    struct rt_range range = { .size = size, .kind = kind, .flags = flags };
    int r;
    if (!allocate_block(c, &range, &apart, &r)) {
        uint64_t room = rt_check_padded(size);
        r = rt_memory_allocate_range(c, device ? WIRE_MEMORY_KIND_DEVICE : WIRE_MEMORY_KIND_HOST,
                                     apart ? rt_segment_size(room) : room,
                                     apart ? RT_SEGMENT_UNIT : 0, &range);
    }
    if (r == CUDA_SUCCESS && !device)
        clear_host(&range);
    if (r == CUDA_SUCCESS)
        *out = range.base;
    return r;
}

bool rt_memory_is_imported_block(uint64_t address)
{
    struct rt_range range;
    return rt_memory_find(address, &range) && range.kind == RT_MEMORY_IMPORTED_BLOCK &&
           range.base == address;
}

static int release_imported(uint64_t address)
{
    struct rt_range range;
    if (!rt_memory_find(address, &range))
        return CUDA_ERROR_INVALID_VALUE;
    struct rt_pool_view *view = rt_pool_view_leave(address);
    if (!view)
        return CUDA_ERROR_INVALID_VALUE;
    int r = rt_reach_wait(rt_reach_of(&range));
    int closed = rt_pool_view_close(view);
    return r ? r : closed;
}

static int release_graphs(uint64_t address)
{
    struct rt_range range;
    if (!rt_memory_find(address, &range))
        return CUDA_ERROR_INVALID_VALUE;
    int r = rt_hooks.graph_memory_free(address, 0, 0);
    return r == CUDA_ERROR_NOT_FOUND ? CUDA_ERROR_INVALID_VALUE
           : r                       ? r
                                     : rt_reach_wait(rt_reach_of(&range));
}

/* Frees a range. CUDA's cuMemFree waits for the device, so that the server may unmap it at once. */
static int release(uint64_t address, unsigned accept)
{
    struct rt_range range;
    int r = rt_capture_unsafe();
    if (r || address == 0)
        return r;
    if ((accept & KIND(RT_MEMORY_DEVICE)) && rt_memory_is_imported_block(address))
        return release_imported(address);
    if (!rt_memory_remove(address, accept, &range))
        return accept & KIND(RT_MEMORY_DEVICE) ? release_graphs(address) : CUDA_ERROR_INVALID_VALUE;
    r = rt_reach_wait(rt_reach_of(&range));
    if (r)
        return r;
    rt_check_left(&range);
    if (range.kind == RT_MEMORY_MANAGED)
        rt_managed_forget(range.base, range.size);
    if (!range.block)
        return rt_request_free(rt_session, address);
    rt_pool_free(range.block, 0, 0);
    return CUDA_SUCCESS;
}

/* --- device memory ---------------------------------------------------------------------------- */

CUresult rt_cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    struct rt_context *c;
    uint64_t address;
    int r = rt_enter(&c);
    if (r)
        return r;
    if (!dptr)
        return CUDA_ERROR_INVALID_VALUE;
    r = rt_memory_allocate(c, bytesize, RT_MEMORY_DEVICE, 0, &address);
    if (r == CUDA_SUCCESS)
        *dptr = address;
    return r;
}

CUresult rt_cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes,
                               size_t Height, unsigned int ElementSizeBytes)
{
    struct rt_context *c;
    uint64_t pitch, size;
    int entered = rt_enter(&c);
    if (entered)
        return entered;
    if (!dptr || !pPitch ||
        (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16))
        return CUDA_ERROR_INVALID_VALUE;
    if (!gm_align_up(WidthInBytes, PITCH_ALIGN, &pitch) ||
        __builtin_mul_overflow(pitch, Height, &size))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = rt_cuMemAlloc_v2(dptr, size);
    if (r == CUDA_SUCCESS)
        *pPitch = pitch;
    return r;
}

CUresult rt_cuMemFree_v2(CUdeviceptr dptr)
{
    int r = rt_enter_living();
    return r ? r : release(dptr, KIND(RT_MEMORY_DEVICE) | KIND(RT_MEMORY_MANAGED));
}

/* Asks how much of the device's own memory is left. Programs that do not come to us, and the
 * device's driver, may use some of it. */
static int device_left(int device, uint64_t *bytes)
{
    struct wire_call_memory_left_is left = { 0 };
    struct rt_call call;
    rt_call_begin(&call, WIRE_CALL_MEMORY_LEFT, 0);
    call.device = rt_session->devices[device].index;
    int r = rt_call_run(&call);
    if (r == CUDA_SUCCESS)
        wire_get_call_memory_left_is(&call.reply, &left);
    *bytes = left.bytes;
    return rt_call_end(&call, r);
}

/* A program that sizes its caches by this answer must get them. So the answer exceeds neither what
 * the program may have nor what the device has left. */
CUresult rt_cuMemGetInfo_v2(size_t *freeBytes, size_t *totalBytes)
{
    struct rt_context *c;
    struct rt_memory_info info;
    uint64_t left;
    int r = rt_enter(&c);
    if (r)
        return r;
    (void)rt_memory_reap(false);
    (void)rt_pools_trim(false);
    r = rt_request_memory_info(rt_session, c->device, &info);
    if (r == CUDA_SUCCESS && rt_session->memory_apart) {
        r = device_left(c->device, &left);
        if (__builtin_add_overflow(left, info.ready, &left))
            left = UINT64_MAX;
        info.free = GM_MIN(info.free, left);
    }
    if (r)
        return r;
    if (freeBytes)
        *freeBytes = info.free;
    if (totalBytes)
        *totalBytes = info.total;
    return CUDA_SUCCESS;
}

CUresult rt_cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
    struct rt_context *c;
    struct rt_range range;
    if (!pbase && !psize) /* nothing is asked, not even whether there is such memory */
        return rt_enter_any();
    int r = rt_enter(&c);
    if (r)
        return r;
    if (!rt_memory_find(dptr, &range))
        return CUDA_ERROR_NOT_FOUND;
    if (pbase)
        *pbase = range.base;
    if (psize)
        *psize = range.size;
    return CUDA_SUCCESS;
}

/* --- pinned host memory ----------------------------------------------------------------------- */

CUresult rt_cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
    const unsigned known =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    struct rt_context *c;
    uint64_t address;
    int r = rt_enter_unsafe(&c);
    if (r)
        return r;
    if (!pp || (Flags & ~known))
        return CUDA_ERROR_INVALID_VALUE;
    *pp = NULL;
    if (bytesize == 0) /* no error, unlike with cuMemAlloc */
        return CUDA_SUCCESS;
    r = rt_memory_allocate(c, bytesize, RT_MEMORY_HOST, Flags & ~CU_MEMHOSTALLOC_PORTABLE,
                           &address);
    if (r == CUDA_SUCCESS)
        *pp = (void *)(uintptr_t)address;
    return r;
}

CUresult rt_cuMemAllocHost_v2(void **pp, size_t bytesize)
{
    return rt_cuMemHostAlloc(pp, bytesize, 0);
}

CUresult rt_cuMemFreeHost(void *p)
{
    int r = rt_enter_living();
    return r ? r : release((uintptr_t)p, KIND(RT_MEMORY_HOST));
}

CUresult rt_cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
    struct rt_context *c;
    struct rt_range range;
    int r = rt_enter(&c);
    if (r)
        return r;
    if (!pdptr || Flags || !rt_memory_find((uintptr_t)p, &range) || !rt_memory_is_host(&range))
        return CUDA_ERROR_INVALID_VALUE;
    static atomic_bool said;
    if (range.kind == RT_MEMORY_PAGEABLE)
        return rt_not_supported("registered memory that is not whole private pages, to a kernel",
                                &said);
    *pdptr = range.window + ((uintptr_t)p - range.base);
    return CUDA_SUCCESS;
}

/* With unified addressing all pinned memory is mapped, which the flags say. It is portable, too,
 * which they do not say. (The genuine driver's say that of all allocations from a slab whose first
 * one was to be portable, and of no others.) */
CUresult rt_cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
    struct rt_context *c;
    struct rt_range range;
    int r = rt_enter(&c);
    if (r)
        return r;
    if (!pFlags || !rt_memory_find((uintptr_t)p, &range))
        return CUDA_ERROR_INVALID_VALUE;
    if (range.kind == RT_MEMORY_MANAGED)
        range.flags = 0; /* they are of another kind */
    else if (!rt_memory_is_host(&range))
        return CUDA_ERROR_INVALID_VALUE;
    *pFlags = range.flags | (range.kind == RT_MEMORY_PAGEABLE ? 0 : CU_MEMHOSTALLOC_DEVICEMAP);
    return CUDA_SUCCESS;
}
