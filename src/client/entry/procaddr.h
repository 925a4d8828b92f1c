/*
 * cuGetProcAddress: from the name of a function, a CUDA version and the kind of default stream to
 * the exported symbol that a program built for that version expects.
 */
#ifndef GMUX_CLIENT_ENTRY_PROCADDR_H
#define GMUX_CLIENT_ENTRY_PROCADDR_H

#include "client/entry/dispatch.h"

typedef void (*rt_proc_fn)(void);

/* One variant of a function. */
struct rt_proc {
    const char *base; /* the name asked for: without _v2, _ptsz */
    int since;        /* the CUDA version that brought it */
    bool per_thread;  /* its default stream is the calling thread's */
    rt_proc_fn function;
};

/* Generated; sorted by base, then since. */
extern const struct rt_proc rt_procs[];
extern const size_t rt_procs_count;

/*
 * The newest variant of `name` that version `version` knows. With `per_thread`, one with a
 * per-thread default stream, if `name` has any. NULL, and *status says why. `table` is sorted like
 * rt_procs.
 */
const struct rt_proc *rt_proc_find(const struct rt_proc *table, size_t count, const char *name,
                                   int version, bool per_thread,
                                   CUdriverProcAddressQueryResult *status);

/*
 * Whether the calling thread is in a cuGetExportTable that its caller found with
 * cuGetProcAddress_v2. That came with 12.0: runtimes from then on look functions up with it, older
 * ones do not know it.
 */
extern _Thread_local bool rt_table_for_12 __attribute__((tls_model("initial-exec")));

/*
 * Before cuInit, for a name that the table lacks or (`known`) a version newer than it: a function
 * that only the genuine driver has (client/entry/late.h). NULL: what the table says is all there
 * is. Weak: the table is of use without it.
 */
__attribute__((weak)) rt_proc_fn rt_proc_late(const char *name, int version, cuuint64_t flags,
                                              bool known);

#endif
