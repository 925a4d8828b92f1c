/*
 * The part of the dispatch that is the same for all functions: the table that is active, and the
 * answer of functions without an implementation. The tables are generated; dispatch.h explains
 * them.
 */
#include "client/gen/api.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "client/entry/trace.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("api");

_Atomic(const struct rt_api *) rt_active = &rt_api_first;
_Thread_local CUstream rt_default_stream = CU_STREAM_LEGACY;

/* Returns the table to activate in order to use `api`: itself, or the call printer on top of it. */
static const struct rt_api *printed(const struct rt_api *api)
{
    /* With secure_getenv() nobody can have a privileged program print its calls. */
    const char *want = secure_getenv("GMUX_TRACE");
    if (!want || strcmp(want, "api") != 0)
        return api;
    atomic_store_explicit(&rt_trace_under, api, memory_order_release);
    return &rt_api_trace;
}

const struct rt_api *rt_api_begin(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    /* Two threads may make their first calls at once. The second must not undo what the first has
     * activated in cuInit. */
    pthread_mutex_lock(&lock);
    const struct rt_api *api = atomic_load_explicit(&rt_active, memory_order_acquire);
    if (api == &rt_api_first) {
        api = printed(&rt_api_initial);
        atomic_store_explicit(&rt_active, api, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return api;
}

void rt_api_activate(const struct rt_api *api)
{
    atomic_store_explicit(&rt_active, printed(api), memory_order_release);
}

const struct rt_api *rt_api_current(void)
{
    const struct rt_api *api = atomic_load_explicit(&rt_active, memory_order_acquire);
    return api == &rt_api_trace ? atomic_load_explicit(&rt_trace_under, memory_order_acquire) : api;
}

CUresult rt_not_supported(const char *name, atomic_bool *said)
{
    if (!atomic_exchange_explicit(said, true, memory_order_relaxed))
        gm_warn(&topic, "%s is not supported yet: CUDA_ERROR_NOT_SUPPORTED", name);
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult rt_cuGetErrorName(CUresult error, const char **pStr)
{
    if (!pStr)
        return CUDA_ERROR_INVALID_VALUE;
    *pStr = rt_error_name(error);
    return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult rt_cuGetErrorString(CUresult error, const char **pStr)
{
    if (!pStr)
        return CUDA_ERROR_INVALID_VALUE;
    *pStr = rt_error_text(error);
    return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
