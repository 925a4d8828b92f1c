/* A process that may not use the system call may be allowed to use the device file. */
#include "client/memory/userfault.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#ifndef USERFAULTFD_IOC_NEW /* Linux 6.1 */
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif

int rt_userfault_open(int flags)
{
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | flags);
    int error = errno;
    if (fd < 0 && error == EPERM) {
        GM_AUTO_FD int file = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
        fd = file < 0 ? -1 : ioctl(file, USERFAULTFD_IOC_NEW, O_CLOEXEC | flags);
    }
    return fd < 0 ? -error : fd;
}
