/*
 * The system's way to have accesses to memory wait for this process: userfaultfd.
 */
#ifndef GMUX_CLIENT_MEMORY_USERFAULT_H
#define GMUX_CLIENT_MEMORY_USERFAULT_H

/* A descriptor with these further flags, which sees the accesses of system calls, too; or a
 * negative errno: not every user may have that. */
int rt_userfault_open(int flags);

#endif
