/*
 * Memory of the area's own file. The only work is to free its pages when they are not used any more
 * (sweep.h). A GPU pins pages of host memory that it has mapped, and would keep using the old ones,
 * so nothing is freed before it is unmapped.
 */
#include "server/keeper.h"

#include "server/memory.h"

const struct srv_keeper_ops srv_keeper_host = { .page = SRV_PAGE,
                                                .charged = SRV_PAGE,
                                                .swept = true };

/* Mapped in pieces as large as a GPU's pages: programs touch a little more than they have
 * allocated, and on a GPU nobody notices before the next page. What is not touched costs nothing.
 */
const struct srv_keeper_ops srv_keeper_memfd = { .page = SRV_SLAB,
                                                 .charged = SRV_PAGE,
                                                 .swept = true };
