/*
 * Frees pages a slice at a time, while the loop has nothing else to do.
 */
#include "server/sweep.h"

#include <fcntl.h>
#include <stdlib.h>

#include "transport/foreign.h"

void srv_sweeper_init(struct srv_sweeper *w, uv_loop_t *loop)
{
    gm_list_init(&w->turns);
    uv_idle_init(loop, &w->idle);
}

void srv_sweeper_close(struct srv_sweeper *w)
{
    srv_sweep_cancel(w, w); /* those that nobody waits for: their files go with the process */
    uv_close((uv_handle_t *)&w->idle, NULL);
}

/* True: that was the last one. */
static bool free_slice(struct srv_sweep *s)
{
    uint64_t size = GM_MIN(s->size, (uint64_t)SRV_SWEEP_SLICE);
    /* Cannot fail on a memfd of ours but for lack of kernel memory; the range is then merely not
     * cleared for the same client, whose memfd it stays. */
    int r =
        fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)s->offset, (off_t)size);
    (void)r;
    s->offset += size;
    s->size -= size;
    return s->size == 0;
}

static void on_idle(uv_idle_t *idle)
{
    struct srv_sweeper *w = GM_CONTAINER_OF(idle, struct srv_sweeper, idle);
    if (gm_list_empty(&w->turns)) {
        uv_idle_stop(idle);
        return;
    }
    struct srv_sweep *s = gm_list_entry(w->turns.next, struct srv_sweep, link);
    gm_list_remove(&s->link);
    if (free_slice(s))
        s->done(s, false);
    else
        gm_list_append(&w->turns, &s->link); /* behind the others */
}

void srv_sweep(struct srv_sweeper *w, struct srv_sweep *s, const void *owner, int fd,
               uint64_t offset, uint64_t size, srv_swept_fn *done)
{
    *s = (struct srv_sweep) {
        .owner = owner, .fd = fd, .offset = offset, .size = size, .done = done
    };
    gm_list_init(&s->link);
    bool closed = uv_is_closing((uv_handle_t *)&w->idle);
    while (!free_slice(s))
        if (!closed) {
            gm_list_append(&w->turns, &s->link);
            uv_idle_start(&w->idle, on_idle);
            return;
        }
    done(s, false);
}

void srv_sweep_cancel(struct srv_sweeper *w, const void *owner)
{
    gm_list_for_each_safe (s, &w->turns, struct srv_sweep, link)
        if (s->owner == owner) {
            gm_list_remove(&s->link);
            s->done(s, true);
        }
}

static void end_apart(struct srv_sweep *s, bool cancelled)
{
    (void)cancelled;
    tp_close_foreign(s->fd);
    free(s);
}

bool srv_sweep_apart(struct srv_sweeper *w, int fd, uint64_t offset, uint64_t size)
{
    struct srv_sweep *s = malloc(sizeof(*s));
    int copy = s ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (copy < 0) {
        free(s);
        return false;
    }
    srv_sweep(w, s, w, copy, offset, size, end_apart);
    return true;
}
