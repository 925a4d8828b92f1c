/*
 * Opening: the genuine driver, its devices, their contexts, and the little kernel that stamps
 * times. What programs hear about the devices is what the driver says.
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
#include "device/cuda/green.h"
#include "device/cuda/library.h"
#include "device/cuda/limit.h"
#include "device/cuda/lookahead.h"
#include "device/cuda/module.h"
#include "device/cuda/output.h"
#include "device/cuda/queue.h"

#define AGAIN_NS (60 * GM_NS_PER_S) /* a fallback context that was refused is tried again */

static struct gm_log_topic topic = GM_LOG_TOPIC("cuda");

/* The time first, then the number that says the time is there. And a kernel that prints nothing:
 * with the first that might the driver makes the buffer for all of them, and waits with it until
 * nothing runs (capacity.h). */
static const char own_ptx[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry stamp(.param .u64 slot, .param .u64 seq)\n"
    "{\n"
    "    .reg .b64 %r<4>;\n"
    "    ld.param.u64 %r1, [slot];\n"
    "    ld.param.u64 %r2, [seq];\n"
    "    mov.u64 %r3, %globaltimer;\n"
    "    st.relaxed.sys.global.u64 [%r1], %r3;\n"
    "    fence.acq_rel.sys;\n"
    "    st.relaxed.sys.global.u64 [%r1+8], %r2;\n"
    "    ret;\n"
    "}\n"
    ".extern .func (.param .b32 r) vprintf (.param .b64 format, .param .b64 args);\n"
    ".visible .entry prints(.param .u64 format)\n"
    "{\n"
    "    .reg .b64 %r;\n"
    "    .reg .pred %p;\n"
    "    ld.param.u64 %r, [format];\n"
    "    setp.eq.u64 %p, %r, 0;\n"
    "    @%p ret;\n"
    "    {\n"
    "        .param .b64 format1;\n"
    "        .param .b64 args1;\n"
    "        .param .b32 r1;\n"
    "        st.param.b64 [format1], %r;\n"
    "        st.param.b64 [args1], %r;\n"
    "        call.uni (r1), vprintf, (format1, args1);\n"
    "    }\n"
    "    ret;\n"
    "}\n";

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

/* The context, which is new. */
static CUresult furnish(struct cuda_gpu *g)
{
    const struct cuda_driver *api = &g->dev->api;
    CUmodule module;
    CUfunction prints;
    uint64_t format = 0;
    void *params[] = { &format };
    cuda_enter(g);
    cuda_limits_open(g);
    CUresult r = api->cuModuleLoadDataEx(&module, own_ptx, 0, NULL, NULL);
    if (r == CUDA_SUCCESS)
        r = api->cuModuleGetFunction(&g->stamp, module, "stamp");
    if (r == CUDA_SUCCESS)
        r = api->cuModuleGetFunction(&prints, module, "prints");
    if (r == CUDA_SUCCESS)
        r = cuda_output_add(g);
    if (r == CUDA_SUCCESS)
        r = api->cuLaunchKernel(prints, 1, 1, 1, 1, 1, 1, 0, g->print_stream, params, NULL);
    if (r == CUDA_SUCCESS)
        cuda_capacity_open(g);
    return r;
}

static CUresult open_gpu(struct cuda_gpu *g)
{
    CUresult r = g->dev->api.cuDevicePrimaryCtxRetain(&g->context, g->device);
    if (r == CUDA_SUCCESS)
        r = furnish(g);
    if (r != CUDA_SUCCESS) {
        gm_error(&topic, "device %u (%s) does not open: error %d", g->index, g->info.name, (int)r);
        g->context = NULL; /* retained for good; the next one to want it tries again */
    }
    return r;
}

CUresult cuda_gpu_open(struct cuda_gpu *g)
{
    struct dev *d = g->dev;
    pthread_mutex_lock(&d->open_lock);
    CUresult r = g->context ? CUDA_SUCCESS : open_gpu(g);
    pthread_mutex_unlock(&d->open_lock);
    return r;
}

/* What there is to know about the GPU is known; how much it can be split into does not matter here.
 */
static CUresult open_fallback(struct cuda_gpu *g, const struct cuda_gpu *first)
{
    g->info = first->info;
    g->device = first->device;
    g->priority_least = first->priority_least;
    g->priorities_low = first->priorities_low;
    g->priorities_normal = first->priorities_normal;
    CUresult r = g->context ? CUDA_SUCCESS : g->dev->api.cuCtxCreate_v2(&g->context, 0, g->device);
    if (r == CUDA_SUCCESS && (r = furnish(g)) == CUDA_SUCCESS) {
        gm_info(&topic, "device %u (%s) has a fallback context", g->index, g->info.name);
        g->open = true;
    } else {
        gm_warn(&topic,
                "device %u (%s) has no fallback context: error %d; loads wait for kernels that "
                "take long",
                g->index, g->info.name, (int)r);
        g->refused = gm_now_ns();
    }
    return r;
}

struct cuda_gpu *cuda_fallback_open(struct cuda_gpu *first)
{
    struct dev *d = first->dev;
    struct cuda_gpu *g = &d->fallbacks[first->index];
    pthread_mutex_lock(&d->open_lock);
    bool again = !g->refused || gm_now_ns() - g->refused > AGAIN_NS;
    bool open = g->open || (again && open_fallback(g, first) == CUDA_SUCCESS);
    pthread_mutex_unlock(&d->open_lock);
    return open ? g : NULL;
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
        r = d->api.cuDeviceGet(&d->gpus[i].device, (int)i);
        if (r == CUDA_SUCCESS)
            describe(&d->gpus[i]);
    }
    return r;
}

static CUresult start(struct dev *d)
{
    /* The genuine driver must not find our daemon, or its own. More queues of the hardware, so that
     * streams of different clients do not stand behind each other. */
    setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent/gmux", 1);
    setenv("CUDA_MODULE_LOADING", "LAZY", 1); /* a program uses a few of a library's many kernels */
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    CUresult r = d->api.cuInit(0);
    if (r == CUDA_SUCCESS)
        r = find_gpus(d);
    return r == CUDA_SUCCESS ? cuda_gpu_open(&d->gpus[0]) : r;
}

static int cuda_open(struct dev **out, const struct dev_events *events)
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
    for (uint32_t i = 1; i < d->count; i++) /* whose contexts are not made yet */
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

/* The watch runs until the process ends, as the context does. */
static void cuda_close(struct dev *d)
{
}

static uint32_t cuda_count(struct dev *d)
{
    return d->count;
}

static const struct dev_info *cuda_info(struct dev *d, uint32_t device)
{
    return &d->gpus[device].info;
}

extern const struct dev_ops gmux_device;
GM_EXPORT const struct dev_ops gmux_device = {
    .name = "cuda",
    .open = cuda_open,
    .close = cuda_close,
    .count = cuda_count,
    .info = cuda_info,
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
    .call = cuda_call,
    .flush = cuda_flush,
    .backlog = cuda_backlog,
};
