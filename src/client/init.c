/*
 * cuInit and what may be called before it.
 */
#include "client/gen/api.h"
#include "client/session/attach.h"
#include "client/stream/context.h"

/* Another build of this library, looking for the genuine one, knows us by this name. */
GM_EXPORT extern const char gmux_client_library[];
const char gmux_client_library[] = GMUX_VERSION;

CUresult rt_cuInit(unsigned int Flags)
{
    return rt_current.in_callback ? CUDA_ERROR_NOT_PERMITTED : (CUresult)rt_attach(Flags);
}

CUresult rt_cuDriverGetVersion(int *driverVersion)
{
    return driverVersion ? (CUresult)rt_attach_driver_version(driverVersion) : CUDA_ERROR_INVALID_VALUE;
}
