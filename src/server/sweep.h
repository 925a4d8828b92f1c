/*
 * Ranges of memory files whose pages are being freed. For a GiB that takes 0.1 s of the server's
 * only thread, so large ones are freed when the server has nothing else to do, a slice at a time,
 * all of them in turn. Event loop only.
 */
#ifndef GMUX_SERVER_SWEEP_H
#define GMUX_SERVER_SWEEP_H

#include <stdint.h>
#include <uv.h>

#include "base/attr.h"
#include "base/list.h"

#define SRV_SWEEP_SLICE (4u << 20) /* some 0.5 ms: a thousand pages */

struct srv_sweep;

struct srv_sweeper {
    uv_idle_t idle;
    struct gm_list turns; /* struct srv_sweep */
};

typedef void srv_swept_fn(struct srv_sweep *s, bool cancelled);

struct srv_sweep {
    struct gm_list link;
    const void *owner;
    int fd;
    uint64_t offset, size; /* what is left to do */
    srv_swept_fn *done;
};

void srv_sweeper_init(struct srv_sweeper *w, uv_loop_t *loop);
void srv_sweeper_close(struct srv_sweeper *w);
/* Frees the pages of a range, then `done`: at once if it is a small one, or the sweeper is closed.
 * `fd` stays the caller's, and open. */
void srv_sweep(struct srv_sweeper *w, struct srv_sweep *s, const void *owner, int fd,
               uint64_t offset, uint64_t size, srv_swept_fn *done);
/* What that owner waits for is done, cancelled. */
void srv_sweep_cancel(struct srv_sweeper *w, const void *owner);
/* As above, for a file that the caller closes: false if nothing was done for lack of memory. */
GM_MUST_CHECK bool srv_sweep_apart(struct srv_sweeper *w, int fd, uint64_t offset, uint64_t size);

#endif
