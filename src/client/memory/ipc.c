/*
 * cuIpc*MemHandle. The server maps the exporter's memory into our window, at an address of ours. A
 * small allocation comes with the slab that it was cut from, and so with others of the same
 * program. An allocation that is opened twice is mapped once.
 */
#include <stdlib.h>
#include <string.h>

#include "client/gen/api.h"
#include "client/memory/memory.h"
#include "client/session/ipc.h"
#include "client/stream/peer.h"
#include "client/stream/reach.h"

struct opened {
    struct gm_list link;
    struct rt_ipc_handle handle;
    uint64_t address;
    uint64_t mapped; /* the address of all that came with it */
    unsigned count;
    int device,
        /* `device` was given access to the memory of `owner`; if they are equal, nothing was
         * given. */
        owner;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gm_list all_opened = { &all_opened, &all_opened }; /* lock */

CUresult rt_cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
    struct rt_context *c;
    struct rt_range range;
    struct rt_ipc_handle h;
    uint8_t token[RT_TOKEN_BYTES];
    int r = rt_enter(&c);
    if (r)
        return r;
    if (!pHandle || !rt_memory_find(dptr, &range) || range.kind != RT_MEMORY_DEVICE ||
        range.ordered)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t shared = range.block ? rt_block_segment(range.block) : range.base;
    r = rt_request_memory_share(rt_session, shared, 0, token);
    if (r)
        return r;
    rt_ipc_handle_init(&h, RT_IPC_MEMORY, token);
    if (range.block) {
        rt_block_share(range.block);
        h.offset = range.base - shared;
        h.size = range.size;
    }
    memcpy(pHandle, &h, sizeof(h));
    return CUDA_SUCCESS;
}

/* Maps what the handle stands for. Another process has made it. */
static int map_part(const struct rt_ipc_handle *h, struct rt_range *range, uint64_t *mapped)
{
    int fd;
    int r = rt_request_memory_open(rt_session, h->token, mapped, &range->size, &range->device, &fd);
    if (r)
        return r;
    if (h->offset > range->size || h->size > range->size - h->offset) {
        (void)rt_request_object_unmap(rt_session, *mapped);
        return CUDA_ERROR_INVALID_VALUE;
    }
    range->base = range->window = *mapped + h->offset;
    range->size = h->size ? h->size : range->size - h->offset;
    return CUDA_SUCCESS;
}

/* Maps memory that is not mapped yet. Called with the lock held. */
static int open_new(struct rt_context *c, const struct rt_ipc_handle *h, uint64_t *address)
{
    uint64_t mapped;
    struct rt_range range = { .kind = RT_MEMORY_IMPORTED, .context = rt_context_owner(c) };
    struct opened *o = malloc(sizeof(*o));
    if (!o)
        return CUDA_ERROR_OUT_OF_MEMORY;
    int r = map_part(h, &range, &mapped);
    if (r == CUDA_SUCCESS && (r = rt_memory_insert(&range)) != CUDA_SUCCESS)
        (void)rt_request_object_unmap(rt_session, mapped);
    if (r) {
        free(o);
        return r;
    }
    /* Gives access as the flag asks. If the devices cannot be peers, copies still work. */
    int device = rt_peer_let(c->device, range.device) == CUDA_SUCCESS ? c->device : range.device;
    *o = (struct opened) { .handle = *h,
                           .address = range.base,
                           .mapped = mapped,
                           .count = 1,
                           .device = device,
                           .owner = range.device };
    gm_list_insert(&all_opened, &o->link);
    *address = range.base;
    return CUDA_SUCCESS;
}

CUresult rt_cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    struct rt_context *c;
    struct rt_ipc_handle h;
    uint64_t address = 0;
    int r = rt_enter(&c);
    if (r)
        return r;
    memcpy(&h, &handle, sizeof(h));
    if (!pdptr || Flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS ||
        !rt_ipc_handle_is(&h, RT_IPC_MEMORY))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    gm_list_for_each (o, &all_opened, struct opened, link)
        if (memcmp(&o->handle, &h, sizeof(h)) == 0) {
            o->count++;
            address = o->address;
            break;
        }
    if (!address)
        r = open_new(c, &h, &address);
    pthread_mutex_unlock(&lock);
    if (r == CUDA_SUCCESS)
        *pdptr = address;
    return r;
}

CUresult rt_cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    return rt_cuIpcOpenMemHandle_v2(pdptr, handle, Flags);
}

/* Called with the lock held. */
static struct opened *find(uint64_t address)
{
    gm_list_for_each (o, &all_opened, struct opened, link)
        if (o->address == address)
            return o;
    return NULL;
}

/* Unmaps the memory, which nothing uses any more. Called with the lock held. */
static int forget(uint64_t address)
{
    struct opened *o = find(address);
    uint64_t mapped = address;
    if (o) {
        mapped = o->mapped;
        gm_list_remove(&o->link);
        rt_peer_leave(o->device, o->owner);
        free(o);
    }
    return rt_request_object_unmap(rt_session, mapped);
}

void rt_ipc_forget(const struct rt_range *r)
{
    pthread_mutex_lock(&lock);
    (void)forget(r->base);
    pthread_mutex_unlock(&lock);
}

CUresult rt_cuIpcCloseMemHandle(CUdeviceptr dptr)
{
    struct rt_range range;
    int r = rt_enter_any();
    if (r)
        return r;
    if (rt_memory_find(dptr, &range) && range.kind == RT_MEMORY_IMPORTED)
        r = rt_reach_wait(rt_reach_of(&range));
    if (r)
        return r;
    pthread_mutex_lock(&lock);
    struct opened *o = find(dptr);
    if (!o) {
        r = CUDA_ERROR_INVALID_VALUE;
    } else if (--o->count == 0) {
        (void)rt_memory_remove(dptr, 1u << RT_MEMORY_IMPORTED, &range);
        r = forget(dptr);
    }
    pthread_mutex_unlock(&lock);
    return r;
}
