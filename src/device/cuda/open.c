/*
 * Makes contexts of GPUs, primary ones and fallback contexts, and loads the two small kernels that
 * each of them needs.
 */
#include "base/clock.h"
#include "base/log.h"
#include "device/cuda/capacity.h"
#include "device/cuda/local.h"
#include "device/cuda/output.h"

#define AGAIN_NS (60 * GM_NS_PER_S) /* a fallback context that was refused is tried again */

static struct gm_log_topic topic = GM_LOG_TOPIC("cuda");

/* `stamp` writes the time and then the number that says that the time is there. `prints` prints
 * nothing. But with the first kernel that might print, the driver makes the buffer for all kernels'
 * texts, and for that it waits until nothing runs (capacity.h). */
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

/* Prepares a new context. */
static CUresult furnish(struct cuda_gpu *g)
{
    const struct cuda_driver *api = &g->dev->api;
    CUmodule module;
    CUfunction prints;
    uint64_t format = 0;
    void *params[] = { &format };
    cuda_enter(g);
    cuda_local_open(g);
    CUresult r = api->cuModuleLoadDataEx(&module, own_ptx, 0, NULL, NULL);
    if (r == CUDA_SUCCESS)
        r = api->cuModuleGetFunction(&g->stamp, module, "stamp");
    if (r == CUDA_SUCCESS)
        r = api->cuModuleGetFunction(&prints, module, "prints");
    if (r == CUDA_SUCCESS)
        r = api->cuStreamCreateWithPriority(&g->print_stream, CU_STREAM_NON_BLOCKING, 0);
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
        g->context = NULL; /* stays retained; the next one to want it tries again */
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

/* Copies what is known about the GPU from its primary context, but for groups: there are no green
 * contexts here.
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
