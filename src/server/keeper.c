/*
 * Host memory. Under a device that is made of it, a part of a slab that is freed is punched out at
 * once. A GPU pins the pages of what it has mapped and would go on with the old ones, so there
 * nothing is punched before it is unmapped.
 */
#include "server/keeper.h"

#include <fcntl.h>

#include "server/memory.h"

static void punch(struct srv_heap *h, uint64_t address, uint64_t size)
{
    /* Cannot fail on a memfd of ours but for lack of kernel memory; the range is then merely not
     * cleared for the same client, whose memfd it stays. */
    int r = fallocate(h->area->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      (off_t)(address - h->area->base), (off_t)size);
    (void)r;
}

static void give(struct srv_heap *h, struct srv_mapping *m)
{
    if (!m->kept && !m->swept)
        punch(h, m->block->address, m->block->size);
}

const struct srv_keeper_ops srv_keeper_memfd = {
    .page = SRV_PAGE, .give = give, .swept = true, .clear = punch
};
const struct srv_keeper_ops srv_keeper_pinned = { .page = SRV_PAGE, .give = give, .swept = true };
