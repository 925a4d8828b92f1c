/*
 * The table is a sorted array, since nearly every question is about an address.
 */
#include "device/cuda/range.h"
#include "device/cuda/module.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "device/cuda/state.h"

#define RANGES_MAX (1u << 20)

/* How many ranges begin at or below the address. ranges_lock held, also in the next. */
static uint32_t upper_bound(const struct dev_client *c, uint64_t address)
{
    uint32_t low = 0, high = c->ranges_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (c->ranges[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The range that begins there, or NULL. */
static struct cuda_range *range_at(const struct dev_client *c, uint64_t address)
{
    const uint32_t i = upper_bound(c, address);
    return i && c->ranges[i - 1].address == address ? &c->ranges[i - 1] : NULL;
}

int cuda_range_add(struct dev_client *c, const struct cuda_range *r)
{
    const bool has_gpu = r->device != CUDA_HOST;
    int result = GM_CUDA_OUT_OF_MEMORY;
    pthread_mutex_lock(&c->ranges_lock);
    if (gm_array_room(&c->ranges, sizeof(*c->ranges), c->ranges_count, RANGES_MAX)) {
        const uint32_t i = upper_bound(c, r->address);
        memmove(c->ranges + i + 1, c->ranges + i, (c->ranges_count - i) * sizeof(*c->ranges));
        c->ranges[i] = *r;
        c->ranges[i].reach = has_gpu ? 1u << r->device : UINT32_MAX;
        c->ranges_count++;
        if (has_gpu && c->dev->count > 1) /* a detour may go there */
            atomic_fetch_or(&c->uses, 1u << r->device);
        result = GM_CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&c->ranges_lock);
    return result;
}

void cuda_range_update(struct dev_client *c, const struct cuda_range *r)
{
    pthread_mutex_lock(&c->ranges_lock);
    struct cuda_range *there = range_at(c, r->address);
    if (there)
        *there = *r;
    pthread_mutex_unlock(&c->ranges_lock);
}

void cuda_range_remove(struct dev_client *c, uint64_t address)
{
    pthread_mutex_lock(&c->ranges_lock);
    struct cuda_range *r = range_at(c, address);
    if (r) {
        c->ranges_count--;
        memmove(r, r + 1, (size_t)(c->ranges + c->ranges_count - r) * sizeof(*r));
    }
    pthread_mutex_unlock(&c->ranges_lock);
}

bool cuda_range_find(struct dev_client *c, uint64_t address, uint64_t size, struct cuda_range *out)
{
    pthread_mutex_lock(&c->ranges_lock);
    const struct cuda_range *r = range_at(c, address);
    const bool found = r && r->end - r->address == size;
    if (found)
        *out = *r;
    pthread_mutex_unlock(&c->ranges_lock);
    return found;
}

bool cuda_range_next(struct dev_client *c, uint64_t address, struct cuda_range *out)
{
    pthread_mutex_lock(&c->ranges_lock);
    const uint32_t i = address ? upper_bound(c, address - 1) : 0;
    const bool found = i < c->ranges_count;
    if (found)
        *out = c->ranges[i];
    pthread_mutex_unlock(&c->ranges_lock);
    return found;
}

void cuda_ranges_finish(struct dev_client *c)
{
    free(c->ranges);
    pthread_mutex_destroy(&c->ranges_lock);
}

/* --- what is at an address -------------------------------------------------------------------- */

/* Ranges follow each other without a gap from `address` to `end`; `i` of them begin at or below the
 * address. ranges_lock held. */
static bool is_mapped(const struct dev_client *c, uint32_t i, uint64_t address, uint64_t end)
{
    if (i)
        i--;
    for (; i < c->ranges_count && c->ranges[i].address <= address && address < c->ranges[i].end &&
           address < end;
         i++)
        address = c->ranges[i].end;
    return address >= end;
}

static struct cuda_memory memory_inside(struct dev_client *c, uint64_t address, uint64_t size)
{
    struct cuda_memory m = { 0 };
    pthread_mutex_lock(&c->ranges_lock);
    const uint32_t i = upper_bound(c, address);
    if (i && address < c->ranges[i - 1].end) {
        const struct cuda_range *r = &c->ranges[i - 1];
        m.gpu = r->device == CUDA_HOST ? NULL : &c->dev->gpus[r->device];
        m.reach = r->reach;
    }
    m.held = size <= c->base + 2 * c->half - address && is_mapped(c, i, address, address + size);
    pthread_mutex_unlock(&c->ranges_lock);
    return m;
}

/* An address outside the window may be a variable of a module. */
static struct cuda_memory memory_outside(struct dev_client *c, uint64_t address, uint64_t size)
{
    struct cuda_memory found = { 0 };
    pthread_mutex_lock(&c->modules_lock);
    gm_list_for_each (m, &c->modules, struct dev_module, link)
        for (uint32_t i = 0; i < m->globals_count && !found.held; i++) {
            uint64_t at = address - m->globals[i].address;
            if (at < m->globals[i].size && size <= m->globals[i].size - at)
                found = (struct cuda_memory) { .gpu = m->gpu, .held = true };
        }
    pthread_mutex_unlock(&c->modules_lock);
    return found;
}

struct cuda_memory cuda_memory_at(struct dev_client *c, uint64_t address, uint64_t size)
{
    return address - c->base < 2 * c->half ? memory_inside(c, address, size)
                                           : memory_outside(c, address, size);
}

bool cuda_holds(struct dev_client *c, uint64_t address, uint64_t size)
{
    return cuda_memory_at(c, address, size).held;
}
