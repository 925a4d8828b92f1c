/*
 * A guarded call: code that touches a client's memory, or is the client's code, may raise SIGSEGV,
 * SIGBUS or SIGFPE, or never end. Inside dev_guard_call() these leave the call instead of ending
 * the process.
 *
 * What runs inside must own nothing: no lock taken, no heap allocation half made, no stdio. It is
 * left at an arbitrary instruction. Locks taken before the call are fine.
 *
 * A call can also be held: it stands still, wherever it is, until it is let go.
 *
 * Signals that come from anywhere else keep the action that was installed before us.
 */
#ifndef GMUX_DEVICE_GUARD_H
#define GMUX_DEVICE_GUARD_H

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/attr.h"

/* The signal that dev_guard_interrupt() sends; ignored by default, harmless where it comes too
 * late. */
#define DEV_GUARD_INTERRUPT SIGURG
/* What lies closed behind the stack of a thread that calls a client's code: no frame of such code
 * is larger. */
#define DEV_GUARD_STACK_BYTES (16u << 20)

struct dev_guard {
    sigjmp_buf jump;
    /* NULL, or: an interrupt takes effect only while this is true. Points to whatever the caller is
     * working for, so that a late signal cannot hit the next one's work. */
    const _Atomic bool *interrupt;
    _Atomic uint32_t held; /* futex: 1 while the call is to stand still */
    int signal;            /* what ended the call, 0: it returned */
    uint64_t address;
};

/* Installs the handlers, once per process; again is harmless. */
void dev_guard_install(void);

/* Gives the calling thread a signal stack, so that an overflow of its stack can be handled too; it
 * goes with the thread. 0 or -errno. */
GM_MUST_CHECK int dev_guard_thread_begin(void);

/* Runs fn(arg). 0, or the signal that ended it; then g->address is the address it concerns. Calls
 * do not nest. */
int dev_guard_call(struct dev_guard *g, void (*fn)(void *), void *arg);

/* Makes a dev_guard_call() of that thread return DEV_GUARD_INTERRUPT if its `interrupt` flag is
 * set. The caller repeats it until it sees the effect. */
void dev_guard_interrupt(pthread_t thread);

/* Has the thread's dev_guard_call() with `g`, this one or the next, stand still until it is let go.
 * One that stands still heeds interrupts once it is let go. */
void dev_guard_hold(struct dev_guard *g, pthread_t thread);
void dev_guard_let_go(struct dev_guard *g);

#endif
