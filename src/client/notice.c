/*
 * Profilers, and what a program can be told without asking: the driver's log and notifications.
 *
 * The log is for drivers that say more than an error code. This library keeps no such log (GMUX_LOG
 * shows its own one): the log is empty, and callbacks for its messages are never called. The only
 * notification says that a process exceeds its budget of memory. It is for devices that take memory
 * away from processes; this library refuses allocations instead.
 */
#include <fcntl.h>

#include "base/cleanup.h"
#include "client/gen/api.h"
#include "client/session/attach.h"
#include "client/stream/capture.h"

struct callback {
    struct rt_object object;
    bool log; /* the handle is of the log; otherwise of a device's notifications */
};

static struct rt_table callbacks = RT_TABLE(RT_KIND_CALLBACK, struct callback);

static int enter_callback(bool log, void **out)
{
    struct callback *c = rt_object_take(&callbacks);
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    c->log = log;
    rt_object_publish(&c->object);
    if (out)
        *out = rt_object_handle(&callbacks, &c->object);
    return CUDA_SUCCESS;
}

static int forget_callback(bool log, const void *handle)
{
    struct callback *c = rt_object_find(&callbacks, handle);
    if (!c || c->log != log)
        return CUDA_ERROR_INVALID_VALUE;
    rt_object_release(&callbacks, &c->object);
    return CUDA_SUCCESS;
}

/* --- notifications ---------------------------------------------------------------------------- */

static int enter_device(CUdevice device)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    return device >= 0 && (unsigned)device < rt_session->device_count ? CUDA_SUCCESS
                                                                      : CUDA_ERROR_INVALID_DEVICE;
}

CUresult rt_cuDeviceRegisterAsyncNotification(CUdevice device, CUasyncCallback callbackFunc,
                                              void *userData GM_UNUSED,
                                              CUasyncCallbackHandle *callback)
{
    void *handle = NULL;
    int r = enter_device(device);
    if (r)
        return r;
    if (!callbackFunc || !callback)
        return CUDA_ERROR_INVALID_VALUE;
    r = enter_callback(false, &handle);
    *callback = handle;
    return r;
}

CUresult rt_cuDeviceUnregisterAsyncNotification(CUdevice device, CUasyncCallbackHandle callback)
{
    int r = enter_device(device);
    return r ? r : forget_callback(false, callback);
}

/* --- the log ---------------------------------------------------------------------------------- */

CUresult rt_cuLogsRegisterCallback(CUlogsCallback callbackFunc, void *userData GM_UNUSED,
                                   CUlogsCallbackHandle *callback_out)
{
    void *handle = NULL;
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!callbackFunc)
        return CUDA_ERROR_INVALID_VALUE;
    r = enter_callback(true, &handle);
    if (callback_out)
        *callback_out = handle;
    return r;
}

CUresult rt_cuLogsUnregisterCallback(CUlogsCallbackHandle callback)
{
    int r = rt_enter_plain();
    return r ? r : forget_callback(true, callback);
}

CUresult rt_cuLogsCurrent(CUlogIterator *iterator_out, unsigned int flags)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    (void)flags; /* the genuine library ignores them */
    if (!iterator_out)
        return CUDA_ERROR_INVALID_VALUE;
    *iterator_out = 0;
    return CUDA_SUCCESS;
}

CUresult rt_cuLogsDumpToFile(CUlogIterator *iterator GM_UNUSED, const char *pathToFile,
                             unsigned int flags)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!pathToFile || flags)
        return CUDA_ERROR_INVALID_VALUE;
    GM_AUTO_FD int fd = open(pathToFile, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    return fd < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult rt_cuLogsDumpToMemory(CUlogIterator *iterator GM_UNUSED, char *buffer, size_t *size,
                               unsigned int flags)
{
    int r = rt_enter_plain();
    if (r)
        return r;
    if (!buffer || !size || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (*size)
        buffer[0] = '\0';
    *size = 0;
    return CUDA_SUCCESS;
}

/* --- profiling: nobody profiles a session ----------------------------------------------------- */

CUresult rt_cuProfilerStart(void)
{
    struct rt_context *c;
    return rt_enter_unsafe(&c);
}

CUresult rt_cuProfilerStop(void)
{
    struct rt_context *c;
    return rt_enter_unsafe(&c);
}
