/*
 * The device and context that a thread works with, and its last error. A thread without a context
 * gets the primary one of its device at its first call that needs one. A context that the program
 * made current by the driver API is kept.
 */
#include <pthread.h>

#include "cudart/cudart.h"

#define DEVICES_MAX 64

static _Thread_local struct {
    int device;
    cudaError_t last;
} self;

static struct {
    pthread_mutex_t lock;
    bool retained[DEVICES_MAX];
} primary = { .lock = PTHREAD_MUTEX_INITIALIZER };

static pthread_once_t driver_once = PTHREAD_ONCE_INIT;
static cudaError_t driver_result;

static void driver_open(void)
{
    int version = 0;
    CUresult r = cuInit(0);
    if (!r)
        r = cuDriverGetVersion(&version);
    driver_result = crt_of(r);
    if (!r && version < CUDART_VERSION / 1000 * 1000)
        driver_result = cudaErrorInsufficientDriver;
}

cudaError_t crt_driver(void)
{
    (void)pthread_once(&driver_once, driver_open);
    return driver_result;
}

cudaError_t crt_device_count(int *count)
{
    *count = 0;
    cudaError_t r = crt_driver();
    if (!r)
        r = crt_of(cuDeviceGetCount(count));
    return r == cudaSuccess && *count == 0 ? cudaErrorNoDevice : r;
}

static cudaError_t check_device(int device)
{
    int count;
    cudaError_t r = crt_device_count(&count);
    if (r)
        return r;
    return device < 0 || device >= count || device >= DEVICES_MAX ? cudaErrorInvalidDevice
                                                                  : cudaSuccess;
}

/* Makes the device's primary context current for the thread. The library keeps one reference to
 * each primary context that it has used. */
static cudaError_t use_primary(int device)
{
    cudaError_t r = check_device(device);
    if (r)
        return r;
    CUcontext context;
    (void)pthread_mutex_lock(&primary.lock);
    CUresult cr = cuDevicePrimaryCtxRetain(&context, device);
    if (!cr && primary.retained[device])
        (void)cuDevicePrimaryCtxRelease(device);
    if (!cr)
        primary.retained[device] = true;
    (void)pthread_mutex_unlock(&primary.lock);
    return crt_of(cr ? cr : cuCtxSetCurrent(context));
}

cudaError_t crt_enter(void)
{
    CUcontext context = NULL;
    if (!cuCtxGetCurrent(&context) && context)
        return cudaSuccess;
    return use_primary(self.device);
}

CUdevice crt_device(void)
{
    CUdevice d;
    return cuCtxGetDevice(&d) ? self.device : d;
}

/* Errors after which the context is unusable. They stay as the last error. */
static bool is_sticky(cudaError_t r)
{
    return r == cudaErrorIllegalAddress || r == cudaErrorLaunchTimeout || r == cudaErrorAssert ||
           (r >= cudaErrorHardwareStackError && r <= cudaErrorLaunchFailure) ||
           r == cudaErrorECCUncorrectable || r == cudaErrorMpsRpcFailure ||
           r == cudaErrorMpsClientTerminated;
}

/* That work is under way is an answer and no error: programs ask in a loop, and look for errors
 * afterwards. */
cudaError_t crt_done(cudaError_t r)
{
    if (__builtin_expect(r != cudaSuccess && r != cudaErrorNotReady, 0))
        self.last = r;
    return r;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t r = self.last;
    self.last = cudaSuccess; /* a dead context's comes again with the next call */
    return r;
}

cudaError_t cudaPeekAtLastError(void)
{
    return self.last;
}

cudaError_t crt_cudaGetDeviceCount(int *count)
{
    return count ? crt_device_count(count) : cudaErrorInvalidValue;
}

cudaError_t crt_cudaGetDevice(int *device)
{
    if (!device)
        return cudaErrorInvalidValue;
    cudaError_t r = crt_driver();
    if (r)
        return r;
    CUcontext context;
    *device = !cuCtxGetCurrent(&context) && context ? crt_device() : self.device;
    return cudaSuccess;
}

cudaError_t crt_cudaSetDevice(int device)
{
    cudaError_t r = use_primary(device);
    if (r == cudaSuccess)
        self.device = device;
    return r;
}

cudaError_t crt_cudaInitDevice(int device, unsigned int device_flags, unsigned int flags)
{
    cudaError_t r = check_device(device);
    if (r || flags == 0)
        return r;
    return crt_of(cuDevicePrimaryCtxSetFlags(device, device_flags & ~(unsigned)cudaDeviceMapHost));
}

cudaError_t crt_cudaSetValidDevices(int *devices, int count)
{
    if (!devices || count < 0)
        return cudaErrorInvalidValue;
    for (int i = 0; i < count; i++) {
        cudaError_t r = check_device(devices[i]);
        if (r)
            return r;
    }
    return cudaSuccess;
}

cudaError_t crt_cudaSetDeviceFlags(unsigned int flags)
{
    if (flags & ~(unsigned)cudaDeviceMask)
        return cudaErrorInvalidValue;
    cudaError_t r = check_device(self.device);
    /* Host memory is always mapped now; the driver has no flag for it any more. NVIDIA's runtime
     * sets cudaDeviceSyncMemops by cudaInitDevice() only. */
    const unsigned ignored = cudaDeviceMapHost | cudaDeviceSyncMemops;
    return r ? r : crt_of(cuDevicePrimaryCtxSetFlags(self.device, flags & ~ignored));
}

cudaError_t crt_cudaGetDeviceFlags(unsigned int *flags)
{
    if (!flags)
        return cudaErrorInvalidValue;
    cudaError_t r = check_device(self.device);
    int active;
    if (!r)
        r = crt_of(cuDevicePrimaryCtxGetState(self.device, flags, &active));
    const unsigned drivers_own = CU_CTX_COREDUMP_ENABLE | CU_CTX_USER_COREDUMP_ENABLE;
    if (!r)
        *flags = (*flags & ~drivers_own) | cudaDeviceMapHost;
    return r;
}

cudaError_t crt_cudaDeviceSynchronize(void)
{
    return crt_of(cuCtxSynchronize());
}

cudaError_t crt_reset(int device, void (*forget)(void))
{
    cudaError_t r = check_device(device);
    if (r)
        return r;
    (void)pthread_mutex_lock(&primary.lock);
    /* Afterwards variables have their initial values again, except those of other devices that are
     * in use. */
    bool others = false;
    for (int i = 0; i < DEVICES_MAX; i++)
        others |= i != device && primary.retained[i];
    if (!others)
        forget();
    CUresult cr = cuDevicePrimaryCtxReset(device);
    if (primary.retained[device])
        (void)cuDevicePrimaryCtxRelease(device);
    primary.retained[device] = false;
    (void)pthread_mutex_unlock(&primary.lock);
    (void)cuCtxSetCurrent(NULL);
    if (is_sticky(self.last))
        self.last = cudaSuccess;
    return crt_of(cr);
}
