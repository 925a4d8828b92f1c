/*
 * userfaultfd: lets accesses to memory wait for this process.
 */
#ifndef GMUX_CLIENT_MEMORY_USERFAULT_H
#define GMUX_CLIENT_MEMORY_USERFAULT_H

/* Opens a userfaultfd with these further flags, which also sees the accesses of system calls. A
 * descriptor, or a negative errno: not every user may have that. */
int rt_userfault_open(int flags);

#endif
