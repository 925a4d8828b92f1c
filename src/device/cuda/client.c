/*
 * A client comes: its window, its place on each GPU, and its share of the multiprocessors. How it
 * ends is leave.c, its memory memory.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "device/cuda/admit.h"
#include "device/cuda/client.h"
#include "device/cuda/fallback.h"
#include "device/cuda/place.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("cuda");

static void *pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

/* The host half of the window in this process: nothing accessible until it is mapped. */
static int reserve_host(struct dev_client *c)
{
    void *want = pointer(c->base + c->half);
    void *p = mmap(want, c->half, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (p == MAP_FAILED)
        return -errno;
    if (p != want) {
        munmap(p, c->half);
        return -EEXIST;
    }
    c->host_reserved = true;
    return 0;
}

static CUresult reserve_device(struct dev_client *c)
{
    CUdeviceptr at = 0;
    CUresult r = c->dev->api.cuMemAddressReserve(&at, c->half, 0, c->base, 0);
    if (r != CUDA_SUCCESS)
        return r;
    if (at != c->base) { /* the address is a wish to the driver */
        (void)c->dev->api.cuMemAddressFree(at, c->half);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    c->reserved = true;
    return CUDA_SUCCESS;
}

/* Completion words and event slots, where the GPU writes; the ring behind them is of no interest to
 * it. */
static CUresult register_session(struct dev_client *c)
{
    const struct cuda_driver *api = &c->dev->api;
    void *first = c->session->streams;
    size_t size =
        (size_t)((uint8_t *)(c->session->events + c->session->events_count) - (uint8_t *)first);
    CUresult r = api->cuMemHostRegister_v2(
        first, size, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
    if (r != CUDA_SUCCESS)
        return r;
    c->registered = true;
    return r;
}

/* Prepares the client's use of a GPU, which is entered. */
static CUresult take_seat(struct dev_client *c, struct cuda_gpu *g)
{
    struct cuda_seat *seat = &c->seats[g->index];
    CUdeviceptr at = 0;
    CUresult r = cuda_fallback_seat(c, g);
    if (r == CUDA_SUCCESS)
        r = c->dev->api.cuMemHostGetDevicePointer_v2(&at, c->session->streams, 0);
    if (r != CUDA_SUCCESS)
        return r;
    seat->events_at =
        at + (uint64_t)((uint8_t *)c->session->events - (uint8_t *)c->session->streams);
    seat->streams_at = at;
    return CUDA_SUCCESS;
}

int cuda_client_device(struct dev_client *c, uint32_t device)
{
    struct cuda_gpu *g = &c->dev->gpus[device];
    CUresult r = cuda_gpu_open(g);
    if (r != CUDA_SUCCESS || c->seats[device].streams_at)
        return (int)r;
    cuda_enter(g);
    r = take_seat(c, g);
    if (r != CUDA_SUCCESS)
        gm_error(&topic, "no room for a client on device %u: error %d", device, (int)r);
    return (int)r;
}

void cuda_client_init(struct dev_client *c, struct dev *d, const struct dev_client_config *config)
{
    *c = (struct dev_client) { .dev = d,
                               .session = config->session,
                               .uid = config->uid,
                               .base = config->window_base,
                               .half = config->window_size / 2,
                               .host_fd = config->host_fd,
                               .priority = config->priority,
                               .leaving = config->leaving };
    memcpy(c->multiprocessors, config->multiprocessors, sizeof(c->multiprocessors));
    c->arrivals = atomic_load_explicit(&c->session->control->arrivals.value, memory_order_relaxed);
    struct gm_list *const lists[] = { &c->link,        &c->gone_link, &c->modules,
                                      &c->queues,      &c->dirty,     &c->holding,
                                      &c->owing,       &c->chained,   &c->places,
                                      &c->passing,     &c->runs.list, &c->runs.graphs,
                                      &c->runs.retired };
    for (size_t i = 0; i < GM_ARRAY_LEN(lists); i++)
        gm_list_init(lists[i]);
    pthread_mutex_t *const locks[] = { &c->moves_lock,  &c->arrivals_lock, &c->modules_lock,
                                       &c->places_lock, &c->memory_lock,   &c->ranges_lock,
                                       &c->arrays.lock };
    for (size_t i = 0; i < GM_ARRAY_LEN(locks); i++)
        pthread_mutex_init(locks[i], NULL);
    tp_output_init(&c->prints.output, c->session);
}

void cuda_client_join(struct dev_client *c)
{
    pthread_mutex_lock(&c->dev->lock);
    gm_list_append(&c->dev->clients, &c->link);
    pthread_mutex_unlock(&c->dev->lock);
}

static int create(struct dev *d, const struct dev_client_config *config, struct dev_client **out)
{
    struct dev_client *c = calloc(1, sizeof(*c));
    if (!c)
        return GM_CUDA_OUT_OF_MEMORY;
    cuda_enter(&d->gpus[0]);
    cuda_client_init(c, d, config);
    c->came = gm_now_ns();
    CUresult r = reserve_device(c);
    if (r == CUDA_SUCCESS && reserve_host(c) < 0)
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (r == CUDA_SUCCESS)
        r = register_session(c);
    if (r == CUDA_SUCCESS)
        r = take_seat(c, &d->gpus[0]);
    if (r != CUDA_SUCCESS) {
        gm_error(&topic, "no room for a client: error %d", (int)r);
        cuda_client_discard(c);
        return (int)r;
    }
    cuda_client_join(c);
    *out = c;
    return GM_CUDA_SUCCESS;
}

int cuda_client_create(struct dev *d, const struct dev_client_config *config,
                       struct dev_client **out)
{
    atomic_fetch_add(&d->orders, 1);
    const int r = create(d, config, out);
    atomic_fetch_sub(&d->orders, 1);
    return r;
}

/* Does not wait. A client in a fallback context gets its share when it comes back.
 * CUDA_ERROR_NOT_READY: it has to wait for a safe point. */
static CUresult try_share(struct dev_client *c, uint32_t device)
{
    CUresult r = CUDA_SUCCESS;
    pthread_mutex_lock(&c->moves_lock);
    struct cuda_gpu *g = cuda_home(c, device);
    if (c->seats[device].streams_at && !g->is_fallback) {
        cuda_enter(g);
        r = cuda_place_try(c, g, c->multiprocessors[device], c->priority);
    }
    pthread_mutex_unlock(&c->moves_lock);
    return r;
}

/* Waits without the lock, so that the client can go to another context meanwhile. */
static CUresult set_share(struct dev_client *c, uint32_t device)
{
    CUresult r;
    while ((r = try_share(c, device)) == CUDA_ERROR_NOT_READY && !cuda_is_leaving(c->dev, c))
        cuda_nap(GM_NS_PER_MS);
    return r;
}

void cuda_client_set_share(struct dev_client *c, double share_pct, const uint32_t *multiprocessors,
                           int priority)
{
    pthread_mutex_lock(&c->moves_lock);
    memcpy(c->multiprocessors, multiprocessors, sizeof(c->multiprocessors));
    c->priority = priority;
    pthread_mutex_unlock(&c->moves_lock);
    for (uint32_t i = 0; i < c->dev->count; i++) {
        CUresult r = set_share(c, i);
        if (r != CUDA_SUCCESS && r != CUDA_ERROR_NOT_READY) /* this: the client is leaving */
            gm_error(&topic, "a client keeps what it had instead of %u multiprocessors: error %d",
                     multiprocessors[i], (int)r);
    }
}
