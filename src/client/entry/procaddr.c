/*
 * Looks up functions for cuGetProcAddress, by the rules of the genuine library. A name is a base
 * name, and the newest variant that is not newer than the requested version is taken. If a
 * per-thread variant is wanted and exists, no plain one takes its place for a version that is too
 * low. The call succeeds whatever it finds; programs look at the pointer and the status.
 */
#include "client/entry/procaddr.h"
#include "client/gen/api.h"

#include <string.h>

/* NVIDIA's driver refuses versions above its own. A driver beside this library may be newer than
 * the library, but not by that much. */
#define VERSION_MAX 20000

/* Returns the first row whose base name is not less than `name`. */
static size_t lower_bound(const struct rt_proc *table, size_t count, const char *name)
{
    size_t low = 0;
    while (low < count) {
        size_t middle = low + (count - low) / 2;
        if (strcmp(table[middle].base, name) < 0)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

const struct rt_proc *rt_proc_find(const struct rt_proc *table, size_t count, const char *name,
                                   int version, bool per_thread,
                                   CUdriverProcAddressQueryResult *status)
{
    size_t first = lower_bound(table, count, name);
    size_t end = first;
    bool has_per_thread = false;
    for (; end < count && strcmp(table[end].base, name) == 0; end++)
        has_per_thread |= table[end].per_thread;
    if (end == first) {
        *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        return NULL;
    }
    bool wanted = per_thread && has_per_thread;
    for (size_t i = end; i > first; i--) {
        const struct rt_proc *p = &table[i - 1];
        if (p->per_thread == wanted && p->since <= version) {
            *status = CU_GET_PROC_ADDRESS_SUCCESS;
            return p;
        }
    }
    *status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    return NULL;
}

static CUresult find(const char *symbol, void **pfn, int version, cuuint64_t flags,
                     CUdriverProcAddressQueryResult *status)
{
    const cuuint64_t known =
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (!symbol || !pfn || version > VERSION_MAX || (flags & ~known))
        return CUDA_ERROR_INVALID_VALUE;
    if (version < 0) /* the newest, as in the genuine library */
        version = CUDA_VERSION;
    const struct rt_proc *p =
        rt_proc_find(rt_procs, rt_procs_count, symbol, version,
                     flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, status);
    rt_proc_fn function = p ? p->function : NULL;
    bool newer = version > CUDA_VERSION || *status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    rt_proc_fn late = newer && rt_proc_late ? rt_proc_late(symbol, version, flags, p) : NULL;
    if (late) {
        function = late;
        *status = CU_GET_PROC_ADDRESS_SUCCESS;
    }
    memcpy(pfn, &function, sizeof(function));
    return CUDA_SUCCESS;
}

_Thread_local bool rt_table_for_12;

static CUresult export_table_for_12(const void **table, const CUuuid *id)
{
    rt_table_for_12 = true;
    CUresult r = cuGetExportTable(table, id);
    rt_table_for_12 = false;
    return r;
}

CUresult rt_cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                CUdriverProcAddressQueryResult *symbolStatus)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    CUresult result = find(symbol, pfn, cudaVersion, flags, &status);
    if (result == CUDA_SUCCESS && symbolStatus)
        *symbolStatus = status;
    if (result == CUDA_SUCCESS && *pfn == (void *)cuGetExportTable)
        *pfn = (void *)export_table_for_12;
    return result;
}

/* This first form has no status, so that a missing function is an error. */
CUresult rt_cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    CUresult result = find(symbol, pfn, cudaVersion, flags, &status);
    if (result == CUDA_SUCCESS && status != CU_GET_PROC_ADDRESS_SUCCESS)
        return CUDA_ERROR_NOT_FOUND;
    return result;
}
