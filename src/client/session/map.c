/*
 * The map of addresses: ranges in a balanced tree (tsearch), by address. A key is a range, too, and
 * equals what it overlaps; so a search finds the range that contains an address. Programs have a
 * hundred thousand allocations, and look up both sides of every copy.
 */
#include "client/session/map.h"

#include <search.h>
#include <stdlib.h>

#include "base/list.h"
#include "client/entry/dispatch.h"
#include "client/entry/hooks.h"

struct mapped {
    struct rt_range range;
    struct gm_list link; /* all */
};

static pthread_rwlock_t map_lock = PTHREAD_RWLOCK_INITIALIZER; /* protects all that follows */
static void *by_address;                                       /* entries; they do not overlap */
static void *by_window; /* those of registered memory, by the device's addresses */
static struct gm_list all = { &all, &all };

/* Neither range is empty. */
static int order(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
    return a > b + (b_size - 1) ? 1 : b > a + (a_size - 1) ? -1 : 0;
}

static int order_by_address(const void *a, const void *b)
{
    const struct rt_range *x = a, *y = b; /* an entry begins with its range */
    return order(x->base, x->size, y->base, y->size);
}

static int order_by_window(const void *a, const void *b)
{
    const struct rt_range *x = a, *y = b;
    return order(x->window, x->size, y->window, y->size);
}

/* The entry that overlaps [address, address + size), or NULL. Called with map_lock held. */
static struct mapped *find(uint64_t address, uint64_t size)
{
    const struct rt_range key = { .base = address, .size = size };
    struct mapped **found = tfind(&key, &by_address, order_by_address);
    return found ? *found : NULL;
}

/* The one that starts there. */
static struct mapped *find_start(uint64_t base)
{
    struct mapped *e = find(base, 1);
    return e && e->range.base == base ? e : NULL;
}

bool rt_memory_find(uint64_t address, struct rt_range *out)
{
    pthread_rwlock_rdlock(&map_lock);
    const struct mapped *e = find(address, 1);
    if (e)
        *out = e->range;
    pthread_rwlock_unlock(&map_lock);
    return e != NULL;
}

bool rt_memory_overlaps(uint64_t address, uint64_t size)
{
    pthread_rwlock_rdlock(&map_lock);
    bool found = find(address, size) != NULL;
    pthread_rwlock_unlock(&map_lock);
    return found;
}

bool rt_memory_find_alias(uint64_t address, struct rt_range *out)
{
    const struct rt_range key = { .window = address, .size = 1 };
    pthread_rwlock_rdlock(&map_lock);
    struct mapped **found = tfind(&key, &by_window, order_by_window);
    if (found)
        *out = (*found)->range;
    pthread_rwlock_unlock(&map_lock);
    return found != NULL;
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
    struct mapped *e = find(address, 1);
    bool found = e && (rt_memory_is_device(&e->range) || rt_memory_is_managed(&e->range) ||
                       rt_memory_is_host(&e->range));
    if (found)
        e->range.sync = sync;
    pthread_rwlock_unlock(&map_lock);
    return found;
}

void rt_memory_set_access(uint64_t base, unsigned access)
{
    pthread_rwlock_wrlock(&map_lock);
    struct mapped *e = find_start(base);
    if (e)
        e->range.access = access;
    pthread_rwlock_unlock(&map_lock);
}

/* --- changes ---------------------------------------------------------------------------------- */

/* Called with map_lock held for writing, as is the next one. False: no memory. */
static bool enter(struct mapped *e)
{
    if (!tsearch(e, &by_address, order_by_address))
        return false;
    if (e->range.kind == RT_MEMORY_REGISTERED && !tsearch(e, &by_window, order_by_window)) {
        (void)tdelete(e, &by_address, order_by_address);
        return false;
    }
    gm_list_append(&all, &e->link);
    return true;
}

static void take_out(struct mapped *e, struct rt_range *out)
{
    *out = e->range;
    (void)tdelete(e, &by_address, order_by_address);
    if (e->range.kind == RT_MEMORY_REGISTERED)
        (void)tdelete(e, &by_window, order_by_window);
    gm_list_remove(&e->link);
    free(e);
}

int rt_memory_insert(struct rt_range *r)
{
    static uint64_t ids; /* map_lock */
    struct mapped *e = malloc(sizeof(*e));
    if (!e)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_rwlock_wrlock(&map_lock);
    r->id = ++ids;
    *e = (struct mapped) { .range = *r };
    bool entered = enter(e);
    pthread_rwlock_unlock(&map_lock);
    if (!entered) {
        free(e);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (GM_UNLIKELY(rt_checks))
        rt_hooks.check_entered(r);
    return CUDA_SUCCESS;
}

bool rt_memory_remove(uint64_t base, unsigned accept, struct rt_range *out)
{
    pthread_rwlock_wrlock(&map_lock);
    struct mapped *e = find_start(base);
    bool found = e && (accept & 1u << e->range.kind);
    if (found)
        take_out(e, out);
    pthread_rwlock_unlock(&map_lock);
    return found;
}

bool rt_memory_remove_any(const struct rt_context *c, struct rt_range *out)
{
    struct mapped *found = NULL;
    pthread_rwlock_wrlock(&map_lock);
    gm_list_for_each (e, &all, struct mapped, link)
        if (e->range.context == c) {
            found = e;
            break;
        }
    if (found)
        take_out(found, out);
    pthread_rwlock_unlock(&map_lock);
    return found != NULL;
}

/* --- forks ------------------------------------------------------------------------------------ */

void rt_memory_freeze(void)
{
    pthread_rwlock_wrlock(&map_lock);
}

void rt_memory_thaw(bool child)
{
    /* The lock knows the writer by a thread's number, which is another one in the child. */
    if (child)
        (void)pthread_rwlock_init(&map_lock, NULL);
    else
        pthread_rwlock_unlock(&map_lock);
}
