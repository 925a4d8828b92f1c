/*
 * What a launch must not ask for, one by a client or by a kernel.
 */
#include "device/soft/exec/refuse.h"

#include <string.h>

#include "device/attributes.h"
#include "device/soft/kernel.h"

#define LOCAL_MOST (256ull << 20) /* most local memory of a block */
#define SAVE_MOST  (256ull << 20) /* most memory for registers of a block */

uint32_t soft_stack_bytes(const struct soft_kernel *k)
{
    const struct dev_client *c = k->module->client;
    return k->uses_stack ? 2 * atomic_load_explicit(&c->stack_limit, memory_order_relaxed) : 0;
}

size_t soft_param_bytes(const struct dev_launch *l)
{
    return l->params_size - (size_t)l->attributes * DEV_LAUNCH_ATTRIBUTE;
}

uint64_t soft_thread_count(const struct dev_launch *l)
{
    uint64_t threads = (uint64_t)l->block[0] * l->block[1];
    return threads > DEV_BLOCK_THREADS ? UINT32_MAX : threads * l->block[2];
}

const char *soft_refusal(const struct soft_kernel *k, const struct dev_launch *l, int *result)
{
    uint64_t threads = soft_thread_count(l);
    *result = GM_CUDA_NOT_SUPPORTED;
    if (!k->interpreter)
        return k->lacks;
    *result = GM_CUDA_INVALID_VALUE;
    if (threads == 0 || l->grid[0] == 0 || l->grid[1] == 0 || l->grid[2] == 0)
        return "empty grid or block";
    if (l->grid[0] > DEV_GRID_X || l->grid[1] > DEV_GRID_YZ || l->grid[2] > DEV_GRID_YZ)
        return "grid too large";
    if (l->block[0] > DEV_BLOCK_XY || l->block[1] > DEV_BLOCK_XY || l->block[2] > DEV_BLOCK_Z)
        return "block too large";
    if (soft_param_bytes(l) < k->param_bytes)
        return "too few parameter bytes";
    if (k->reqntid[0] && memcmp(k->reqntid, l->block, sizeof(k->reqntid)) != 0)
        return "block size is not the one the kernel requires";
    *result = GM_CUDA_LAUNCH_OUT_OF_RESOURCES;
    if (threads > k->max_threads)
        return "more threads per block than the kernel allows";
    if ((uint64_t)k->shared_dynamic + l->shared_bytes > DEV_SHARED_OPTIN_BYTES)
        return "more shared memory than there is";
    uint64_t local =
        (uint64_t)GM_MAX(k->local_bytes, k->interpreter->local_bytes) + soft_stack_bytes(k);
    if (local * threads > LOCAL_MOST)
        return "more local memory than there is";
    if (k->interpreter->save_bytes * ((threads + SOFT_WARP - 1) / SOFT_WARP) > SAVE_MOST)
        return "more registers than there is room for";
    return NULL;
}
