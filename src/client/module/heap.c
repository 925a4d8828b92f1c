/*
 * The heap from which kernels' malloc takes memory, on devices whose memory is the host's. The
 * functions, and the form of the heap, are in device/soft/ptx/runtime/heap.ptx. The heap belongs to
 * a context: it is made, and charged, when the first module that calls malloc is loaded there.
 * CU_LIMIT_MALLOC_HEAP_SIZE can be set until a kernel has called malloc. The heap is not the
 * program's memory: calls of the host refuse its addresses.
 */
#include <string.h>

#include "client/memory/memory.h"
#include "client/module/module.h"
#include "client/stream/check.h"

#define HEAP_MOST (1ull << 40)

static const char variable[] = "__gmux$heap";

/* The place where modules look the heap up. */
struct place {
    _Atomic uint64_t address, size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* taken before the lock of requests */

static uint64_t size_of(const struct rt_context *c)
{
    const uint64_t own = c->limits[CU_LIMIT_MALLOC_HEAP_SIZE];
    return GM_MIN(own ? own : rt_session->devices[c->device].limits[CU_LIMIT_MALLOC_HEAP_SIZE],
                  HEAP_MOST);
}

static int take(const struct rt_context *c, uint64_t size, uint64_t *address)
{
    int r = rt_request_alloc(rt_session, size, 0, WIRE_MEMORY_KIND_DEVICE, c->device, address);
    if (r == CUDA_ERROR_OUT_OF_MEMORY && rt_memory_reap(true))
        r = rt_request_alloc(rt_session, size, 0, WIRE_MEMORY_KIND_DEVICE, c->device, address);
    if (r == CUDA_SUCCESS)
        rt_check_lent(*address, size);
    return r;
}

/* Makes another heap, all zeros, in place of the present one. Called with the lock held. */
static int make(struct rt_context *c, uint64_t size)
{
    struct place *at = (struct place *)(uintptr_t)c->heap_place; /* NOLINT: the host's, too */
    uint64_t heap, before = c->heap;
    int r = take(c, size, &heap);
    if (r)
        return r;
    atomic_store(&at->address, heap);
    atomic_store(&at->size, size);
    c->heap = heap;
    if (before)
        (void)rt_request_free(rt_session, before);
    return CUDA_SUCCESS;
}

/* Called with the lock held. */
static int begin(struct rt_context *c)
{
    int r = c->heap_place ? CUDA_SUCCESS : take(c, sizeof(struct place), &c->heap_place);
    r = r || c->heap ? r : make(c, size_of(c));
    return r == CUDA_ERROR_OUT_OF_MEMORY ? CUDA_ERROR_SHARED_OBJECT_INIT_FAILED : r;
}

/* Whether a kernel has called malloc: the heap's first word counts the calls. Called with the lock
 * held. */
static bool is_used(const struct rt_context *c)
{
    return atomic_load((const _Atomic uint64_t *)(uintptr_t)c->heap) != 0; /* NOLINT: see above */
}

int rt_heap_enter(struct rt_module *m)
{
    struct rt_context *c = m->context;
    const struct rt_variable *v;
    if (m->by_name || rt_module_find_variable(m, variable, &v) || v->size != sizeof(uint64_t))
        return CUDA_SUCCESS;
    int r = c ? CUDA_SUCCESS : rt_context_primary(m->device, &c);
    if (r)
        return r;
    pthread_mutex_lock(&lock);
    r = begin(c);
    if (r == CUDA_SUCCESS) /* NOLINTNEXTLINE: see above */
        memcpy((void *)(uintptr_t)v->address, &c->heap_place, sizeof(c->heap_place));
    pthread_mutex_unlock(&lock);
    return r;
}

int rt_heap_resize(struct rt_context *c, uint64_t size)
{
    int r = CUDA_SUCCESS;
    if (size > HEAP_MOST)
        size = HEAP_MOST;
    pthread_mutex_lock(&lock);
    if (c->heap) {
        r = rt_context_wait(c); /* kernels may be about to call malloc */
        r = r ? r : is_used(c) ? CUDA_ERROR_INVALID_VALUE : make(c, size);
    }
    pthread_mutex_unlock(&lock);
    return r;
}

void rt_heap_end(struct rt_context *c)
{
    const uint64_t both[] = { c->heap, c->heap_place };
    c->heap = c->heap_place = 0;
    for (size_t i = 0; i < GM_ARRAY_LEN(both); i++)
        if (both[i])
            (void)rt_request_free(rt_session, both[i]);
}
