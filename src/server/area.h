/*
 * One half of a session's window, for device memory or host memory: addresses of one memfd, which
 * executor and client map as a whole.
 *
 * Event loop only.
 */
#ifndef GMUX_SERVER_AREA_H
#define GMUX_SERVER_AREA_H

#include "server/ranges.h"

struct srv_area {
    int fd; /* memfd */
    uint64_t base;
    uint64_t size;
    uint64_t page;
    struct srv_ranges pages;
    uint64_t mapped; /* bytes of all mappings */
    bool kept;       /* others have some of it open beyond the session's end */
};

/* Makes an area for [base, base + size), handed out in multiples of `page`. 0 or -errno. */
GM_MUST_CHECK int srv_area_init(struct srv_area *area, const char *name, uint64_t base,
                                uint64_t size, uint64_t page);
/* Moves the area to another window; nothing has been allocated yet. */
GM_MUST_CHECK int srv_area_move(struct srv_area *area, uint64_t base);
/* Called after the heaps in it are finished. An area that was never initialised is accepted if its
 * descriptor is -1. */
void srv_area_finish(struct srv_area *area);
/* Whether the client has touched far more of the area than it was given. It has mapped the whole
 * area, so it can. */
bool srv_area_is_overdrawn(const struct srv_area *area);

#endif
