/*
 * Memory pools of several processes. A pool belongs to its maker. What another process imports is
 * the pool's name, which is a number in a sealed memfd, and the device of its memory. An allocation
 * is exported as the token of the segment that it was cut from, as in ipc.c, and its place in that.
 * The server knows the tokens and who may use them. It maps the segment into the importer's window,
 * once for all allocations in it.
 *
 * So an importer can reach all that the maker allocates in the segment: a pool that is made to be
 * shared is shared as a whole.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "client/gen/api.h"
#include "client/memory/memory.h"
#include "client/memory/pool_ipc.h"
#include "client/stream/capture.h"
#include "transport/memfd.h"

#define MAGIC 0x6c6f6f7078756d67ull /* "gmuxpool" */

struct pool_name {
    uint64_t magic;
    uint64_t name;
    uint32_t device; /* the server's number of it */
    uint32_t reserved;
};

struct pointer_data {
    uint64_t magic;
    uint64_t name; /* the pool's name */
    uint8_t token[RT_TOKEN_BYTES];
    uint64_t offset, size; /* the place in what the token opens */
};
_Static_assert(sizeof(struct pointer_data) == sizeof(CUmemPoolPtrExportData), "layout");

/* A segment of another process. */
struct rt_pool_view {
    struct gm_list link;
    uint8_t token[RT_TOKEN_BYTES];
    uint64_t address, size;
    int device;
    unsigned users; /* allocations in it, and frees that wait for their streams */
};

struct imported {
    struct gm_list link;
    uint64_t address;
    struct rt_pool_view *view;
    CUmemoryPool pool;
    unsigned count; /* how often it was imported */
};

/* Protects everything in this file. The locks of requests and of the map of addresses are taken
 * inside it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gm_list views = { &views, &views };
static struct gm_list all_imported = { &all_imported, &all_imported };

/* --- pools ------------------------------------------------------------------------------------ */

static int enter(CUmemoryPool handle, struct rt_pool **p)
{
    int r = rt_enter_plain_unsafe();
    if (r)
        return r;
    *p = rt_pool_find(handle);
    return *p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

uint64_t rt_pool_new_name(void)
{
    uint64_t name = 0;
    while (name == 0)
        if (getrandom(&name, sizeof(name), 0) != (ssize_t)sizeof(name))
            return 0;
    return name;
}

CUresult rt_cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool,
                                             CUmemAllocationHandleType handleType,
                                             unsigned long long flags)
{
    struct rt_pool *p;
    int r = enter(pool, &p);
    if (r)
        return r;
    struct pool_name n = { .magic = MAGIC,
                           .name = rt_pool_name(p),
                           .device = rt_session->devices[rt_pool_device(p)].index };
    if (!handle_out || flags || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || !n.name ||
        rt_pool_is_imported(p))
        return CUDA_ERROR_INVALID_VALUE;
    int fd = tp_memfd_from_bytes("gmux-pool", &n, sizeof(n));
    /* The descriptor belongs to the program now, whose children inherit it. */
    if (fd < 0 || fcntl(fd, F_SETFD, 0) < 0) {
        gm_close(fd);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *(int *)handle_out = fd;
    return CUDA_SUCCESS;
}

/* Reads the name of a pool. Anything may have been sent in place of one. */
static int read_name(int fd, struct pool_name *n)
{
    if (tp_memfd_check(fd, sizeof(*n), true) != 0 ||
        pread(fd, n, sizeof(*n), 0) != (ssize_t)sizeof(*n) || n->magic != MAGIC || n->name == 0 ||
        n->reserved)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult rt_cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
                                               CUmemAllocationHandleType handleType,
                                               unsigned long long flags)
{
    struct pool_name n;
    struct rt_pool *p;
    int r = rt_enter_plain_unsafe();
    if (r)
        return r;
    if (!pool_out || flags || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    if (fcntl((int)(intptr_t)handle, F_GETFD) < 0)
        return CUDA_ERROR_UNKNOWN;
    r = read_name((int)(intptr_t)handle, &n);
    if (r)
        return r;
    int device = rt_device_by_index(rt_session, n.device);
    if (device < 0)
        return CUDA_ERROR_INVALID_DEVICE; /* this program does not see that device */
    r = rt_pool_create(device, 0, n.name, true, &p);
    if (r == CUDA_SUCCESS)
        *pool_out = rt_pool_handle(p);
    return r;
}

/* --- allocations: out ------------------------------------------------------------------------- */

CUresult rt_cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr)
{
    struct rt_range range;
    struct pointer_data d = { .magic = MAGIC };
    uint64_t segment;
    int r = rt_enter_plain_unsafe();
    if (r)
        return r;
    if (!shareData_out || !rt_memory_find(ptr, &range) || !range.block || range.base != ptr)
        return CUDA_ERROR_INVALID_VALUE;
    d.name = rt_pool_name(rt_block_source(range.block));
    if (!d.name)
        return CUDA_ERROR_INVALID_VALUE; /* the pool was not made to be shared */
    segment = rt_block_segment(range.block);
    r = rt_request_memory_share(rt_session, segment, 0, d.token);
    if (r)
        return r;
    d.offset = range.base - segment;
    d.size = range.size;
    memcpy(shareData_out, &d, sizeof(d));
    return CUDA_SUCCESS;
}

/* --- allocations: in -------------------------------------------------------------------------- */

/* Opens a segment. Called with the lock held, as are the functions below. */
static int view_open(const uint8_t token[RT_TOKEN_BYTES], struct rt_pool_view **out)
{
    int fd;
    gm_list_for_each (v, &views, struct rt_pool_view, link)
        if (memcmp(v->token, token, RT_TOKEN_BYTES) == 0) {
            v->users++;
            *out = v;
            return CUDA_SUCCESS;
        }
    struct rt_pool_view *v = malloc(sizeof(*v));
    if (!v)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *v = (struct rt_pool_view) { .users = 1 };
    memcpy(v->token, token, RT_TOKEN_BYTES);
    int r = rt_request_memory_open(rt_session, token, &v->address, &v->size, &v->device, &fd);
    if (r) {
        free(v);
        return r;
    }
    gm_list_insert(&views, &v->link);
    *out = v;
    return CUDA_SUCCESS;
}

static int view_close(struct rt_pool_view *v)
{
    if (--v->users)
        return CUDA_SUCCESS;
    int r = rt_request_object_unmap(rt_session, v->address);
    gm_list_remove(&v->link);
    free(v);
    return r;
}

static struct imported *find(uint64_t address)
{
    gm_list_for_each (i, &all_imported, struct imported, link)
        if (i->address == address)
            return i;
    return NULL;
}

static int enter_imported(struct rt_pool *p, struct rt_pool_view *v, const struct pointer_data *d)
{
    uint64_t address = v->address + d->offset;
    struct imported *i = find(address);
    if (i) {
        i->count++;
        return view_close(v); /* the allocation has the view already */
    }
    struct rt_range range = { .base = address,
                              .size = d->size,
                              .window = address,
                              .kind = RT_MEMORY_IMPORTED_BLOCK,
                              /* There may be no context yet. */
                              .context = rt_context_owner(rt_current.context),
                              .device = v->device };
    i = malloc(sizeof(*i));
    int r = i ? rt_memory_insert(&range) : CUDA_ERROR_OUT_OF_MEMORY;
    if (r) {
        free(i);
        return r;
    }
    *i = (struct imported) { .address = address, .view = v, .pool = rt_pool_handle(p), .count = 1 };
    gm_list_insert(&all_imported, &i->link);
    return CUDA_SUCCESS;
}

static int import(struct rt_pool *p, const struct pointer_data *d, CUdeviceptr *out)
{
    struct rt_pool_view *v;
    int r = view_open(d->token, &v);
    if (r)
        return r;
    uint64_t address = v->address + d->offset;
    if (v->device != rt_pool_device(p) || d->size == 0 || d->offset > v->size ||
        d->size > v->size - d->offset)
        r = CUDA_ERROR_INVALID_VALUE;
    r = r ? r : enter_imported(p, v, d);
    if (r)
        (void)view_close(v);
    else
        *out = address;
    return r;
}

CUresult rt_cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool,
                                   CUmemPoolPtrExportData *shareData)
{
    struct rt_pool *p;
    struct pointer_data d;
    int r = enter(pool, &p);
    if (r)
        return r;
    if (!ptr_out || !shareData || !rt_pool_is_imported(p))
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&d, shareData, sizeof(d));
    if (d.magic != MAGIC || d.name != rt_pool_name(p))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    r = import(p, &d, ptr_out);
    pthread_mutex_unlock(&lock);
    return r;
}

/* --- the end of an import --------------------------------------------------------------------- */

struct rt_pool_view *rt_pool_view_leave(uint64_t address)
{
    struct rt_range gone;
    pthread_mutex_lock(&lock);
    struct imported *i = find(address);
    struct rt_pool_view *v = i ? i->view : NULL;
    if (i && --i->count == 0) { /* the caller has the view's use now */
        (void)rt_memory_remove(address, 1u << RT_MEMORY_IMPORTED_BLOCK, &gone);
        gm_list_remove(&i->link);
        free(i);
    } else if (v) {
        v->users++;
    }
    pthread_mutex_unlock(&lock);
    return v;
}

int rt_pool_view_close(struct rt_pool_view *v)
{
    pthread_mutex_lock(&lock);
    int r = view_close(v);
    pthread_mutex_unlock(&lock);
    return r;
}

void rt_pool_forget_imported(uint64_t address)
{
    pthread_mutex_lock(&lock);
    struct imported *i = find(address);
    if (i) {
        (void)view_close(i->view);
        gm_list_remove(&i->link);
        free(i);
    }
    pthread_mutex_unlock(&lock);
}

CUmemoryPool rt_pool_of_imported(uint64_t address)
{
    pthread_mutex_lock(&lock);
    const struct imported *i = find(address);
    CUmemoryPool pool = i ? i->pool : NULL;
    pthread_mutex_unlock(&lock);
    return pool && rt_pool_find(pool) ? pool : NULL;
}
