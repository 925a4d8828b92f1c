/*
 * The memfd and the ranges of its addresses.
 */
#include "server/area.h"

#include <assert.h>
#include <sys/stat.h>

#include "transport/foreign.h"
#include "transport/memfd.h"

/* Pages that may be there without being allocated: huge ones, and ones that are being freed. */
#define OVERDRAFT (64u << 20)

int srv_area_init(struct srv_area *area, const char *name, uint64_t base, uint64_t size,
                  uint64_t page)
{
    area->fd = tp_memfd_create(name, size);
    area->base = base;
    area->size = size;
    area->page = page;
    if (area->fd < 0)
        return area->fd;
    srv_ranges_init(&area->pages, page);
    return srv_ranges_add(&area->pages, base, size);
}

int srv_area_move(struct srv_area *area, uint64_t base)
{
    assert(area->pages.used.used == 0);
    srv_ranges_finish(&area->pages);
    area->base = base;
    srv_ranges_init(&area->pages, area->page);
    return srv_ranges_add(&area->pages, base, area->size);
}

void srv_area_finish(struct srv_area *area)
{
    if (area->fd < 0)
        return;
    srv_ranges_finish(&area->pages);
    /* A client may have filled many of its pages. */
    area->fd = tp_close_foreign(area->fd);
}

bool srv_area_is_overdrawn(const struct srv_area *area)
{
    struct stat st;
    return area->fd >= 0 && fstat(area->fd, &st) == 0 &&
           (uint64_t)st.st_blocks * 512 > 2 * area->mapped + OVERDRAFT;
}
