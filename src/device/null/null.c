/*
 * The null device: accepts everything, computes nothing in kernels, and is otherwise a device:
 * memory, copies, fills, order, waits, gates and stamps are real. Tests of everything above the
 * device run on it, and benchmarks that measure gmux itself. Operations complete in the call that
 * submits them unless they have to wait for something.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "device/attributes.h"
#include "device/guard.h"
#include "device/null/scan.h"
#include "device/queue.h"

struct dev {
    uint32_t count;
    struct dev_info info[DEV_DEVICES];
    struct dev_events events;
};

struct dev_client {
    struct dev_work work;
    struct dev_window window;
    pthread_mutex_t modules_lock;
    struct gm_list modules; /* modules_lock */
};

struct dev_module {
    struct gm_list link; /* client->modules */
    struct dev_client *client;
    void *info;
    uint32_t functions;
};

/* No `start`: all is done inline. */
static const struct dev_work_ops null_work_ops = { .inline_bytes = UINT64_MAX };

static int null_open(struct dev **out, const struct dev_events *events)
{
    struct dev *d = calloc(1, sizeof(*d));
    if (!d)
        return GM_CUDA_OUT_OF_MEMORY;
    dev_guard_install();
    uint32_t numbers[DEV_DEVICES];
    d->count = dev_device_numbers("gmux null device", numbers);
    if (d->count == 0) {
        free(d);
        return GM_CUDA_NO_DEVICE;
    }
    for (uint32_t i = 0; i < d->count; i++) {
        dev_info_describe(&d->info[i], "gmux null device", dev_worker_count(), numbers[i],
                          dev_device_count());
        d->info[i].completes_always = true;
    }
    d->events = *events;
    *out = d;
    return GM_CUDA_SUCCESS;
}

static void null_close(struct dev *d)
{
    free(d);
}

static uint32_t null_count(struct dev *d)
{
    return d->count;
}

static const struct dev_info *null_info(struct dev *d, uint32_t device)
{
    return &d->info[device];
}

static int null_client_create(struct dev *d, const struct dev_client_config *config,
                              struct dev_client **out)
{
    struct dev_client *c = calloc(1, sizeof(*c));
    if (!c)
        return GM_CUDA_OUT_OF_MEMORY;
    pthread_mutex_init(&c->modules_lock, NULL);
    gm_list_init(&c->modules);
    if (dev_window_open(&c->window, config->window_base, config->window_size, config->device_fd,
                        config->host_fd) < 0 ||
        dev_work_init(&c->work, c, &null_work_ops, &d->events, config->session, &c->window) < 0) {
        dev_window_close(&c->window);
        free(c);
        return GM_CUDA_OUT_OF_MEMORY;
    }
    *out = c;
    return GM_CUDA_SUCCESS;
}

static void null_client_set_share(struct dev_client *c, double share_pct,
                                  const uint32_t *multiprocessors, int priority)
{
    /* Nothing is computed, so there is nothing to share. */
}

static void null_client_stop(struct dev_client *c)
{
    dev_work_stop(&c->work);
}

static void null_module_unload(struct dev_module *m)
{
    if (!m)
        return;
    pthread_mutex_lock(&m->client->modules_lock);
    gm_list_remove(&m->link);
    pthread_mutex_unlock(&m->client->modules_lock);
    free(m->info);
    free(m);
}

static void null_client_destroy(struct dev_client *c)
{
    if (!c)
        return;
    dev_work_destroy(&c->work);
    gm_list_for_each_safe (m, &c->modules, struct dev_module, link)
        null_module_unload(m);
    dev_window_close(&c->window);
    pthread_mutex_destroy(&c->modules_lock);
    free(c);
}

static int null_memory_map(struct dev_client *c, uint64_t address, uint64_t size)
{
    return dev_window_map(&c->window, address, size) == 0 ? GM_CUDA_SUCCESS : GM_CUDA_OUT_OF_MEMORY;
}

static int null_memory_attach(struct dev_client *c, uint64_t address, uint64_t size, int fd,
                              uint64_t offset, uint32_t device, uint32_t access)
{
    return dev_window_attach(&c->window, address, size, fd, offset, dev_access_writes(access)) == 0
               ? GM_CUDA_SUCCESS
               : GM_CUDA_OUT_OF_MEMORY;
}

static void null_memory_unmap(struct dev_client *c, uint64_t address, uint64_t size)
{
    dev_window_unmap(&c->window, address, size);
}

static int null_module_load(struct dev_client *c, uint32_t device, const void *image, size_t size,
                            uint32_t kind, struct dev_module **out, struct dev_module_info *info)
{
    *out = NULL;
    memset(info, 0, sizeof(*info));
    if (kind != WIRE_IMAGE_KIND_PTX) {
        info->log = strdup("the null device reads PTX text only");
        return GM_CUDA_NO_BINARY_FOR_GPU;
    }
    struct dev_module *m = calloc(1, sizeof(*m));
    if (!m)
        return GM_CUDA_OUT_OF_MEMORY;
    int r = dev_null_scan(image, size, info, &m->functions);
    if (r != GM_CUDA_SUCCESS) {
        free(m);
        return r;
    }
    m->info = (void *)(uintptr_t)info->info.data;
    m->client = c;
    pthread_mutex_lock(&c->modules_lock);
    gm_list_append(&c->modules, &m->link);
    pthread_mutex_unlock(&c->modules_lock);
    *out = m;
    return GM_CUDA_SUCCESS;
}

static int null_module_place(struct dev_module *m, uint64_t globals_address, bool initialise)
{
    return GM_CUDA_SUCCESS; /* fresh memory is zero, and no kernel reads it */
}

static int null_queue_create(struct dev_client *c, uint32_t device, uint32_t stream, uint64_t done,
                             int priority, struct dev_queue **out)
{
    return dev_queue_open(&c->work, stream, done, priority, out);
}

static int null_launch(struct dev_queue *q, uint64_t seq, const struct dev_launch *l)
{
    if (l->function >= l->module->functions)
        dev_work_fail(q->work, GM_CUDA_INVALID_HANDLE, 0,
                      "launch names a function that does not exist");
    return dev_queue_mark(q, seq);
}

static uint32_t null_backlog(struct dev_client *c)
{
    return atomic_load_explicit(&c->work.backlog, memory_order_relaxed);
}

const struct dev_ops dev_null_ops = {
    .name = "null",
    .contained = true,
    .open = null_open,
    .close = null_close,
    .count = null_count,
    .info = null_info,
    .client_create = null_client_create,
    .client_set_share = null_client_set_share,
    .client_stop = null_client_stop,
    .client_destroy = null_client_destroy,
    .memory_map = null_memory_map,
    .memory_attach = null_memory_attach,
    .memory_unmap = null_memory_unmap,
    .module_load = null_module_load,
    .module_place = null_module_place,
    .module_unload = null_module_unload,
    .queue_create = null_queue_create,
    .queue_destroy = dev_queue_close,
    .launch = null_launch,
    .copy = dev_queue_copy,
    .write = dev_queue_write,
    .fill = dev_queue_fill,
    .wait = dev_queue_wait,
    .stamp = dev_queue_stamp,
    .gate = dev_queue_gate,
    .gate_moved = dev_queue_gate_moved,
    .wait_value = dev_queue_wait_value,
    .mark = dev_queue_mark,
    .backlog = null_backlog,
};
