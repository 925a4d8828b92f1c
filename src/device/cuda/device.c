/*
 * The device's table of functions, and its start: the genuine driver is loaded and asked about its
 * devices. Programs are told what the driver says.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "device/cuda/admit.h"
#include "device/cuda/array.h"
#include "device/cuda/call.h"
#include "device/cuda/capacity.h"
#include "device/cuda/client.h"
#include "device/cuda/complaint.h"
#include "device/cuda/fallback.h"
#include "device/cuda/graph.h"
#include "device/cuda/place.h"
#include "device/cuda/library.h"
#include "device/cuda/local.h"
#include "device/cuda/memory.h"
#include "device/cuda/lookahead.h"
#include "device/cuda/module.h"
#include "device/cuda/output.h"
#include "device/cuda/inflight.h"
#include "device/cuda/intake.h"
#include "device/cuda/queue.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("cuda");

static void describe(struct cuda_gpu *g)
{
    const struct cuda_driver *api = &g->dev->api;
    struct dev_info *i = &g->info;
    CUuuid uuid = { 0 };
    size_t total = 0;
    int version = 0;

    (void)api->cuDeviceGetName(i->name, sizeof(i->name), g->device);
    (void)api->cuDeviceGetUuid_v2(&uuid, g->device);
    memcpy(i->uuid, uuid.bytes, sizeof(i->uuid));
    (void)api->cuDeviceTotalMem_v2(&total, g->device);
    i->memory_total = total;
    (void)api->cuDriverGetVersion(&version);
    i->driver_version = (uint32_t)version;
    for (int a = 1; a < (int)DEV_ATTRIBUTES; a++) {
        int value = 0;
        if (api->cuDeviceGetAttribute(&value, (CUdevice_attribute)a, g->device) == CUDA_SUCCESS)
            i->attributes[a] = value;
    }
    i->multiprocessors = (uint32_t)i->attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
    i->pci_domain = (uint32_t)i->attributes[CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID];
    i->pci_bus = (uint32_t)i->attributes[CU_DEVICE_ATTRIBUTE_PCI_BUS_ID];
    i->pci_device = (uint32_t)i->attributes[CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID];
    i->completes_always = true;
    i->memory_apart = true;
    i->launch_attributes = true;
    i->runs_elsewhere = true;
    i->leaves_later = true;
    i->depth_max = CUDA_DEPTH;
}

static CUresult find_gpus(struct dev *d)
{
    int count = 0;
    CUresult r = d->api.cuDeviceGetCount(&count);
    if (r == CUDA_SUCCESS && count <= 0)
        r = CUDA_ERROR_NO_DEVICE;
    d->count = count < (int)DEV_DEVICES ? (uint32_t)GM_MAX(count, 0) : DEV_DEVICES;
    for (uint32_t i = 0; i < d->count && r == CUDA_SUCCESS; i++) {
        d->gpus[i].dev = d;
        d->gpus[i].index = i;
        d->fallbacks[i] = (struct cuda_gpu) { .dev = d, .index = i, .is_fallback = true };
        pthread_mutex_init(&d->gpus[i].stacks_lock, NULL);
        pthread_mutex_init(&d->fallbacks[i].stacks_lock, NULL);
        pthread_mutex_init(&d->gpus[i].graphs_lock, NULL);
        pthread_mutex_init(&d->fallbacks[i].graphs_lock, NULL);
        r = d->api.cuDeviceGet(&d->gpus[i].device, (int)i);
        if (r == CUDA_SUCCESS)
            describe(&d->gpus[i]);
    }
    return r;
}

static CUresult start(struct dev *d)
{
    /* The genuine driver must find neither our daemon nor its own. More hardware queues keep
     * streams of different clients from waiting behind each other. */
    setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent/gmux", 1);
    setenv("CUDA_MODULE_LOADING", "LAZY", 1); /* programs use few of a library's many kernels */
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    CUresult r = d->api.cuInit(0);
    if (r == CUDA_SUCCESS)
        r = find_gpus(d);
    return r == CUDA_SUCCESS ? cuda_gpu_open(&d->gpus[0]) : r;
}

static int open_device(struct dev **out, const struct dev_events *events)
{
    char why[512] = "";
    struct dev *d = calloc(1, sizeof(*d));
    if (!d)
        return GM_CUDA_OUT_OF_MEMORY;
    gm_log_init("gmux-executor", GM_LOG_WARN); /* a module has its own copy of the log's state */
    cuda_dev_init(d, events);
    if (cuda_driver_load(&d->api, why, sizeof(why)) < 0) {
        gm_error(&topic, "%s", why);
        free(d);
        return GM_CUDA_NO_DEVICE;
    }
    CUresult r = start(d);
    if (r == CUDA_SUCCESS && (cuda_watch_start(d) < 0 || cuda_leave_start(d) < 0))
        r = CUDA_ERROR_OPERATING_SYSTEM;
    if (r != CUDA_SUCCESS) {
        gm_error(&topic, "the NVIDIA driver does not start: error %d", (int)r);
        free(d);
        return (int)r;
    }
    for (uint32_t i = 0; i < d->count; i++)
        cuda_places_open(&d->gpus[i]);
    for (uint32_t i = 0; i < d->count; i++)
        cuda_priorities_open(&d->gpus[i]);
    for (uint32_t i = 1; i < d->count; i++) /* contexts of the others are made later */
        memcpy(d->gpus[i].info.limits, d->gpus[0].info.limits, sizeof(d->gpus[0].info.limits));
    int printed = cuda_output_open(d);
    if (printed < 0)
        gm_warn(&topic, "what kernels print is lost: %s", strerror(-printed));
    printed = cuda_complaint_open();
    if (printed < 0)
        gm_warn(&topic, "what failed assertions say stays in the log: %s", strerror(-printed));
    *out = d;
    return GM_CUDA_SUCCESS;
}

/* The context and the threads stay until the process ends. */
static void close_device(struct dev *d)
{
}

static uint32_t count_devices(struct dev *d)
{
    return d->count;
}

static const struct dev_info *describe_device(struct dev *d, uint32_t device)
{
    return &d->gpus[device].info;
}

extern const struct dev_ops gmux_device;
GM_EXPORT const struct dev_ops gmux_device = {
    .name = "cuda",
    .open = open_device,
    .close = close_device,
    .count = count_devices,
    .info = describe_device,
    .client_create = cuda_client_create,
    .client_set_share = cuda_client_set_share,
    .client_device = cuda_client_device,
    .client_peer = cuda_client_peer,
    .client_stop = cuda_client_stop,
    .client_destroy = cuda_client_destroy,
    .memory_map = cuda_memory_map,
    .memory_attach = cuda_memory_attach,
    .memory_unmap = cuda_memory_unmap,
    .memory_trim = cuda_memory_trim,
    .array_memory = cuda_array_memory,
    .module_load = cuda_module_load,
    .module_place = cuda_module_place,
    .module_unload = cuda_module_unload,
    .queue_create = cuda_queue_create,
    .queue_reuse = cuda_queue_reuse,
    .queue_is_done = cuda_queue_is_done,
    .queue_destroy = cuda_queue_destroy,
    .launch = cuda_launch,
    .copy = cuda_copy,
    .copy_array = cuda_copy_array,
    .write = cuda_write,
    .fill = cuda_fill,
    .wait = cuda_wait,
    .stamp = cuda_stamp,
    .gate = cuda_gate,
    .gate_moved = cuda_gate_moved,
    .wait_value = cuda_wait_value,
    .mark = cuda_mark,
    .run_begin = cuda_run_begin,
    .run_end = cuda_run_end,
    .graph_begin = cuda_graph_begin,
    .graph_condition = cuda_graph_condition,
    .graph_body = cuda_graph_body,
    .graph_end = cuda_graph_end,
    .call = cuda_call,
    .flush = cuda_flush,
    .backlog = cuda_backlog,
};
