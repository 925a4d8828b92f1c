/*
 * The heap that kernels' malloc takes memory from, on devices whose memory is the host's:
 * device/soft/ptx/heap.c has the functions and the heap's form. It is the context's: made, and
 * charged, when the first module that calls malloc is loaded there; CU_LIMIT_MALLOC_HEAP_SIZE
 * counts until then. It is no memory of the program's: calls of the host refuse its addresses.
 */
#include <string.h>

#include "client/memory/memory.h"
#include "client/module/module.h"
#include "client/stream/check.h"

#define HEAP_MOST (1ull << 40)

static const char variable[] = "__gmux$heap";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* before that of requests */

static uint64_t size_of(const struct rt_context *c)
{
    const uint64_t own = c->limits[CU_LIMIT_MALLOC_HEAP_SIZE];
    return GM_MIN(own ? own : rt_session->devices[c->device].limits[CU_LIMIT_MALLOC_HEAP_SIZE],
                  HEAP_MOST);
}

static int make(struct rt_context *c)
{
    uint64_t size = size_of(c), address;
    int r = rt_request_alloc(rt_session, size, 0, WIRE_MEMORY_KIND_DEVICE, c->device, &address);
    if (r == CUDA_ERROR_OUT_OF_MEMORY && rt_memory_reap(true))
        r = rt_request_alloc(rt_session, size, 0, WIRE_MEMORY_KIND_DEVICE, c->device, &address);
    if (r)
        return r == CUDA_ERROR_OUT_OF_MEMORY ? CUDA_ERROR_SHARED_OBJECT_INIT_FAILED : r;
    rt_check_lent(address, size);
    c->heap_size = size;
    atomic_store(&c->heap, address);
    return CUDA_SUCCESS;
}

int rt_heap_enter(struct rt_module *m)
{
    struct rt_context *c = m->context;
    const struct rt_variable *v;
    if (m->by_name || rt_module_find_variable(m, variable, &v) || v->size != 2 * sizeof(uint64_t))
        return CUDA_SUCCESS;
    int r = c ? CUDA_SUCCESS : rt_context_primary(m->device, &c);
    if (r)
        return r;
    pthread_mutex_lock(&lock);
    r = atomic_load(&c->heap) ? CUDA_SUCCESS : make(c);
    const uint64_t value[2] = { atomic_load(&c->heap), c->heap_size };
    if (r == CUDA_SUCCESS)
        memcpy((void *)(uintptr_t)v->address, value,
               sizeof(value)); /* NOLINT: the host's address too */
    pthread_mutex_unlock(&lock);
    return r;
}

void rt_heap_end(struct rt_context *c)
{
    uint64_t address = atomic_exchange(&c->heap, 0);
    if (address)
        (void)rt_request_free(rt_session, address);
}
