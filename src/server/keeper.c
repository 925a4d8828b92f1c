/*
 * Memory of the area's own file. The only work is to free its pages when they are not used any more
 * (sweep.h). A GPU pins pages of host memory that it has mapped, and would keep using the old ones,
 * so nothing is freed before it is unmapped.
 */
#include "server/keeper.h"

#include "server/memory.h"

const struct srv_keeper_ops srv_keeper_memfd = { .page = SRV_PAGE, .swept = true };
