/*
 * A device that takes its time to answer questions: the null device, whose calls wait until the test lets them go. The file named
 * by GMUX_SLOW is a FIFO: who opens it for writing learns so that a call has begun, and a byte, or its end, lets the call go.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/attr.h"
#include "device/device.h"

GM_EXPORT extern struct dev_ops gmux_device;
struct dev_ops gmux_device;

static int call(struct dev_client *c GM_UNUSED, const struct dev_call *question GM_UNUSED)
{
    const char *path = getenv("GMUX_SLOW");
    char go;
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = fd >= 0 ? read(fd, &go, 1) : -1;
    close(fd);
    return n < 0 ? GM_CUDA_UNKNOWN : 0;
}

static __attribute__((constructor)) void fill(void)
{
    gmux_device = dev_null_ops;
    gmux_device.name = "slow";
    gmux_device.call = call;
}
