/*
 * Memory of the area's own file: all that there is to do is to free its pages when they are not
 * used any more (sweep.h). A GPU pins the pages of host memory that it has mapped and would go on
 * with the old ones, so nothing is freed before it is unmapped.
 */
#include "server/keeper.h"

#include "server/memory.h"

const struct srv_keeper_ops srv_keeper_memfd = { .page = SRV_PAGE, .swept = true };
