/*
 * The map of addresses: one array of ranges, sorted by address. Inserting moves the ranges behind.
 * With some ten thousand allocations that takes a few microseconds, which is little beside a
 * request to the server. Looking up is a binary search in dense memory.
 */
#include "client/session/map.h"

#include <stdlib.h>
#include <string.h>

#include "client/entry/dispatch.h"
#include "client/entry/hooks.h"

static pthread_rwlock_t map_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct rt_range *ranges; /* map_lock; they do not overlap */
static size_t count, capacity;  /* map_lock */

/* Returns the number of ranges that start at or below `address`. */
static size_t upper_bound(uint64_t address)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool rt_memory_find(uint64_t address, struct rt_range *out)
{
    pthread_rwlock_rdlock(&map_lock);
    size_t i = upper_bound(address);
    bool found = i > 0 && address - ranges[i - 1].base < ranges[i - 1].size;
    if (found)
        *out = ranges[i - 1];
    pthread_rwlock_unlock(&map_lock);
    return found;
}

bool rt_memory_overlaps(uint64_t address, uint64_t size)
{
    pthread_rwlock_rdlock(&map_lock);
    size_t i = upper_bound(address + size - 1);
    bool found = i > 0 && address < ranges[i - 1].base + ranges[i - 1].size;
    pthread_rwlock_unlock(&map_lock);
    return found;
}

/* This is slow, but rare: there are few registered ranges, and programs seldom ask by the host's
 * address. */
bool rt_memory_find_alias(uint64_t address, struct rt_range *out)
{
    bool found = false;
    pthread_rwlock_rdlock(&map_lock);
    for (size_t i = 0; i < count && !found; i++) {
        const struct rt_range *r = &ranges[i];
        found = r->kind == RT_MEMORY_REGISTERED && address - r->window < r->size;
        if (found)
            *out = *r;
    }
    pthread_rwlock_unlock(&map_lock);
    return found;
}

/* An access to virtual memory may cross the borders of mappings that lie side by side. */
static bool virtual_range(uint64_t address, uint64_t size, struct rt_range *range)
{
    uint64_t end;
    struct rt_range r = *range;
    if (__builtin_add_overflow(address, size, &end))
        return false;
    while (r.access) {
        if (end <= r.base + r.size)
            return true;
        if (!rt_memory_find(r.base + r.size, &r) || r.kind != RT_MEMORY_VIRTUAL)
            return false;
    }
    return false;
}

bool rt_memory_device_range(uint64_t address, uint64_t size, struct rt_range *out, uint64_t *window)
{
    if (rt_memory_find(address, out))
        *window = out->window + (address - out->base);
    else if (rt_memory_find_alias(address, out))
        *window = address;
    else
        return false;
    if (out->kind == RT_MEMORY_PAGEABLE)
        return false;
    if (out->kind == RT_MEMORY_VIRTUAL)
        return virtual_range(address, size, out);
    return size <= out->size - (*window - out->window);
}

bool rt_memory_set_sync(uint64_t address, bool sync)
{
    pthread_rwlock_wrlock(&map_lock);
    size_t i = upper_bound(address);
    bool found = i > 0 && address - ranges[i - 1].base < ranges[i - 1].size &&
                 (rt_memory_is_device(&ranges[i - 1]) || rt_memory_is_managed(&ranges[i - 1]));
    if (found)
        ranges[i - 1].sync = sync;
    pthread_rwlock_unlock(&map_lock);
    return found;
}

void rt_memory_set_access(uint64_t base, unsigned access)
{
    pthread_rwlock_wrlock(&map_lock);
    size_t i = upper_bound(base);
    if (i > 0 && ranges[i - 1].base == base)
        ranges[i - 1].access = access;
    pthread_rwlock_unlock(&map_lock);
}

int rt_memory_insert(struct rt_range *r)
{
    static uint64_t ids; /* map_lock */
    int result = CUDA_SUCCESS;
    pthread_rwlock_wrlock(&map_lock);
    if (count == capacity) {
        size_t more = capacity ? capacity * 2 : 64;
        struct rt_range *grown = realloc(ranges, more * sizeof(*grown));
        if (grown) {
            ranges = grown;
            capacity = more;
        } else {
            result = CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    if (result == CUDA_SUCCESS) {
        size_t i = upper_bound(r->base);
        r->id = ++ids;
        memmove(ranges + i + 1, ranges + i, (count - i) * sizeof(*ranges));
        ranges[i] = *r;
        count++;
    }
    pthread_rwlock_unlock(&map_lock);
    if (GM_UNLIKELY(rt_checks) && result == CUDA_SUCCESS)
        rt_hooks.check_entered(r);
    return result;
}

/* Called with map_lock held for writing. */
static void remove_at(size_t i)
{
    memmove(ranges + i, ranges + i + 1, (count - i - 1) * sizeof(*ranges));
    count--;
}

bool rt_memory_remove(uint64_t base, unsigned accept, struct rt_range *out)
{
    pthread_rwlock_wrlock(&map_lock);
    size_t i = upper_bound(base);
    bool found = i > 0 && ranges[i - 1].base == base && (accept & 1u << ranges[i - 1].kind);
    if (found) {
        *out = ranges[i - 1];
        remove_at(i - 1);
    }
    pthread_rwlock_unlock(&map_lock);
    return found;
}

bool rt_memory_remove_any(const struct rt_context *c, struct rt_range *out)
{
    bool found = false;
    pthread_rwlock_wrlock(&map_lock);
    for (size_t i = count; i-- > 0 && !found;) {
        if (ranges[i].context != c)
            continue;
        *out = ranges[i];
        remove_at(i);
        found = true;
    }
    pthread_rwlock_unlock(&map_lock);
    return found;
}

const struct rt_range *rt_memory_freeze(size_t *out)
{
    pthread_rwlock_wrlock(&map_lock);
    *out = count;
    return ranges;
}

void rt_memory_thaw(bool child)
{
    /* The lock knows the writer by a thread's number, which is another one in the child. */
    if (child)
        (void)pthread_rwlock_init(&map_lock, NULL);
    else
        pthread_rwlock_unlock(&map_lock);
}
