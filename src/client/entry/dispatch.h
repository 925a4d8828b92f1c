/*
 * entry/: where calls come in. It owns the tables of functions (with client/gen, what the generator
 * makes of cuda.api), cuGetProcAddress's look-up, the call printer, and the hooks by which lower
 * folders tell higher ones. It calls none of the other folders; all of them may call it.
 *
 * How a call gets from the program to the code that serves it. Every exported function jumps
 * through rt_active, a table of functions with one member per exported symbol (client/gen/api.h,
 * generated from protocol/cuda.api):
 *
 *   rt_api_first        up to the very first call, which looks whether calls are to be printed
 *   rt_api_initial      before cuInit: what may be called early is served, and what looks at
 *                       arguments first does so; the rest is CUDA_ERROR_NOT_INITIALIZED
 *   rt_api_session      served by a gmux server: rt_SYMBOL where somebody wrote it, else
 *                       rt_not_supported()
 *   rt_api_unsupported  every function answers CUDA_ERROR_NOT_SUPPORTED; the ground that
 *                       rt_api_load() fills
 *   rt_api_trace        prints each call, then calls rt_trace_under
 *   a table filled by rt_api_load(): the genuine driver's functions
 *
 * cuInit switches the table once, with rt_api_activate(), when whatever stands behind the new table
 * is ready.
 *
 * Hand-written functions never see a variant with a per-thread default stream: the session table's
 * members for NAME_ptsz and NAME_ptds set rt_default_stream around a call of rt_NAME. The rule for
 * hand-written code is therefore: a stream handle of 0 means rt_default_stream; so does the
 * implicit stream of a synchronous copy or set.
 */
#ifndef GMUX_CLIENT_ENTRY_DISPATCH_H
#define GMUX_CLIENT_ENTRY_DISPATCH_H

#ifndef GMUX_CUDA_SYMBOLS
#define GMUX_CUDA_SYMBOLS /* table members are named after symbols: no macro may rename them */
#endif
#include <cuda.h>

#include <stdatomic.h>

#include "base/attr.h"

struct rt_api;

extern _Atomic(const struct rt_api *) rt_active;

/* What the members of rt_api_first call: leaves that table and returns the one that serves the
 * call. */
GM_COLD const struct rt_api *rt_api_begin(void);

/* From now on all exported functions use `api`, which lives as long as the process. With
 * GMUX_TRACE=api in the environment, by way of the call printer. */
void rt_api_activate(const struct rt_api *api);

/* The table that is called now; behind the call printer if that is on. */
const struct rt_api *rt_api_current(void);

/* CU_STREAM_LEGACY, or CU_STREAM_PER_THREAD inside of a per-thread variant. */
extern _Thread_local CUstream rt_default_stream __attribute__((tls_model("initial-exec")));

/* CUDA_ERROR_NOT_SUPPORTED; says so once per function, on GMUX_LOG=api=warn. */
GM_COLD CUresult rt_not_supported(const char *name, atomic_bool *said);

/* Fills a table from a library: lookup(arg, symbol) is dlsym or the like. Functions that the
 * library lacks answer CUDA_ERROR_NOT_SUPPORTED. Returns how many were found. */
unsigned rt_api_load(struct rt_api *api, void *(*lookup)(void *arg, const char *symbol), void *arg);

/* Name and description of a result; NULL if there is no such result. */
const char *rt_error_name(CUresult result);
const char *rt_error_text(CUresult result);

#endif
