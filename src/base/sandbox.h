/*
 * What a process gives up before it works on what strangers sent: new privileges, and all system
 * calls but those it names. gmux-jit and the executor each have a list (src/jit/sandbox.c,
 * src/executor/confine.c).
 */
#ifndef GMUX_BASE_SANDBOX_H
#define GMUX_BASE_SANDBOX_H

#include <stddef.h>

#include "base/attr.h"

#define GM_SANDBOX_CALLS 200u

struct gm_sandbox {
    /* system call numbers, up to GM_SANDBOX_CALLS; besides them mmap and mprotect */
    const int *calls;
    size_t count;
    bool loads_code; /* memory may become executable */
    bool starts;     /* threads and processes may be started, without namespaces of their own */
};

/* No program that is started from here on gets privileges. 0 or -errno. */
GM_MUST_CHECK int gm_sandbox_no_privileges(void);

/* For ever, for all threads that there are and will be, and programs that they start. Includes
 * gm_sandbox_no_privileges(). Other architectures' system calls kill; those that are not listed
 * fail with EPERM, so that a C library that asks for something new can take its other way. 0 or
 * -errno. */
GM_MUST_CHECK int gm_sandbox_enter(const struct gm_sandbox *s);

#endif
