/*
 * cuInit, the calls that may come before it, and the table by which folders call those above them.
 * The files in this folder are the top of the library: they may call every folder, and no folder
 * calls them.
 */
#include "client/entry/hooks.h"
#include "client/gen/api.h"
#include "client/graph/capture.h"
#include "client/graph/memory.h"
#include "client/memory/array.h"
#include "client/memory/memory.h"
#include "client/memory/pages.h"
#include "client/memory/reference.h"
#include "client/memory/texture.h"
#include "client/module/module.h"
#include "client/session/attach.h"
#include "client/stream/check.h"
#include "client/stream/context.h"

/* By this name another build of this library recognises ours when it looks for the genuine one. */
GM_EXPORT extern const char gmux_client_library[];
const char gmux_client_library[] = GMUX_VERSION;

CUresult rt_cuInit(unsigned int Flags)
{
    return rt_current.in_callback ? CUDA_ERROR_NOT_PERMITTED : (CUresult)rt_attach(Flags);
}

CUresult rt_cuDriverGetVersion(int *driverVersion)
{
    return driverVersion ? (CUresult)rt_attach_driver_version(driverVersion)
                         : CUDA_ERROR_INVALID_VALUE;
}

/* --- the table -------------------------------------------------------------------------------- */

static void after_fork_in_child(void)
{
    rt_memory_fork_child();
    rt_pages_forget();
    rt_context_forget();
}

static void context_ends(struct rt_context *c)
{
    rt_texture_destroy_all(c);
    rt_reference_forget(c, 0, UINT64_MAX);
    rt_array_destroy_all(c);
    rt_module_destroy_all(c);
    rt_library_context_ends(c);
    rt_heap_end(c);
    rt_memory_destroy_all(c);
}

const struct rt_hooks rt_hooks = {
    .fork_prepare = rt_memory_fork_prepare,
    .fork_parent = rt_memory_fork_parent,
    .fork_child = after_fork_in_child,
    .context_ends = context_ends,
    .heap_resized = rt_heap_resize,
    .primary_retained = rt_library_context_begins,
    .synchronized = rt_pools_synchronized,
    .pages_release = rt_pages_release,
    .check_begin = rt_check_begin,
    .check_entered = rt_check_entered,
    .check_end = rt_check_end,
    .graph_memory_free = rt_graph_memory_free,
    .graph_memory_lose = rt_graph_memory_lose,
    .capture_launch = rt_capture_launch,
    .capture_copy = rt_capture_copy,
    .capture_fill = rt_capture_fill,
    .capture_alloc = rt_capture_alloc,
    .capture_free = rt_capture_free,
    .capture_host = rt_capture_host,
    .capture_memops = rt_capture_memops,
    .capture_record = rt_capture_record,
    .capture_wait = rt_capture_wait,
    .capture_stream_ends = rt_capture_stream_ends,
};
