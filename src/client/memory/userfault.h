/*
 * userfaultfd: lets accesses to memory wait for this process.
 */
#ifndef GMUX_CLIENT_MEMORY_USERFAULT_H
#define GMUX_CLIENT_MEMORY_USERFAULT_H

#include <linux/userfaultfd.h>
#include <stdint.h>

#ifndef UFFD_FEATURE_WP_UNPOPULATED /* Linux 6.4, as is the next one */
#define UFFD_FEATURE_WP_UNPOPULATED (1u << 13)
#endif
#ifndef UFFDIO_CONTINUE_MODE_WP
#define UFFDIO_CONTINUE_MODE_WP ((uint64_t)1 << 1)
#endif

/* Opens a userfaultfd with these further flags, which also sees the accesses of system calls. A
 * descriptor, or a negative errno: not every user may have that. */
int rt_userfault_open(int flags);

#endif
