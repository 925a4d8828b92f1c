/*
 * Launches in clusters. Where the genuine driver refuses such a launch at the call, it is refused
 * at the call here. Otherwise the executor would find out that no GPU takes the shape, and this
 * would be the program's last launch. What can be computed is computed here. Only the driver knows
 * which clusters fit on the GPU; it is asked once for each shape.
 */
#include <string.h>

#include "client/gen/api.h"
#include "client/module/launch.h"
#include "client/stream/call.h"

/* Packs a question to the driver into one word, so that equal words mean equal questions. Returns 0
 * if the numbers are too large; the answer is not kept then. */
static uint64_t question(const uint32_t cluster[3], const struct wire_rec_launch *l)
{
    uint64_t threads = (uint64_t)l->block_x * l->block_y * l->block_z;
    if (cluster[0] > 0xff || cluster[1] > 0xff || cluster[2] > 0xff || threads > 0xffff ||
        l->shared_bytes > 0xffffff)
        return 0;
    return (uint64_t)cluster[0] << 56 | (uint64_t)cluster[1] << 48 | (uint64_t)cluster[2] << 40 |
           threads << 24 | l->shared_bytes;
}

/* Collects those of the launch's attributes that are about clusters. Returns their size in
 * bytes. */
static uint32_t cluster_attributes(const struct rt_launch *l, CUlaunchAttribute *out,
                                   uint32_t cluster[3])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < l->record.attributes; i++) {
        CUlaunchAttribute a;
        memcpy(&a, l->params + i * sizeof(a), sizeof(a));
        if (a.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            cluster[0] = a.value.clusterDim.x;
            cluster[1] = a.value.clusterDim.y;
            cluster[2] = a.value.clusterDim.z;
        } else if (a.id != CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE &&
                   a.id != CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION) {
            continue;
        }
        out[count++] = a;
    }
    return count * (uint32_t)sizeof(*out);
}

static int ask(const struct wire_rec_launch *l, struct rt_function *f, struct wire_bytes attributes)
{
    const struct wire_call_clusters w = {
        .index = f->entry->index,
        .grid_x = l->grid_x,
        .grid_y = l->grid_y,
        .grid_z = l->grid_z,
        .block_x = l->block_x,
        .block_y = l->block_y,
        .block_z = l->block_z,
        .shared_bytes = l->shared_bytes,
        .attributes = attributes,
    };
    int value = 0;
    int r = rt_occupancy_clusters(f, &w, &value);
    return r == CUDA_SUCCESS && value < 1 ? CUDA_ERROR_INVALID_CLUSTER_SIZE : r;
}

int rt_launch_check_clusters(const struct rt_launch *l, struct rt_function *f)
{
    const struct wire_rec_launch *r = &l->record;
    const uint32_t *own = f->entry->cluster;
    CUlaunchAttribute attributes[RT_LAUNCH_ATTRIBUTES];
    uint32_t cluster[3] = { own[0], own[1], own[2] };
    uint32_t size = cluster_attributes(l, attributes, cluster);
    if (!cluster[0] && !cluster[1] && !cluster[2])
        return CUDA_SUCCESS;
    if (own[0] && memcmp(own, cluster, sizeof(cluster)) != 0)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    if (!cluster[0] || !cluster[1] || !cluster[2] || r->grid_x % cluster[0] ||
        r->grid_y % cluster[1] || r->grid_z % cluster[2])
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    uint64_t asked = question(cluster, r);
    for (size_t i = 0; asked && i < GM_ARRAY_LEN(f->clusters); i++)
        if (atomic_load_explicit(&f->clusters[i], memory_order_relaxed) == asked)
            return CUDA_SUCCESS;
    int result = ask(r, f, (struct wire_bytes) { attributes, size });
    if (result == CUDA_SUCCESS && asked) {
        unsigned next = atomic_fetch_add_explicit(&f->clusters_next, 1, memory_order_relaxed);
        atomic_store_explicit(&f->clusters[next % GM_ARRAY_LEN(f->clusters)], asked,
                              memory_order_relaxed);
    }
    return result;
}
