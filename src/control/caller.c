/*
 * Gives each user a bucket of tokens. A job whose hundreds of processes begin at once passes; a
 * flood of processes is slowed down.
 */
#include "control/caller.h"

#include <stdlib.h>

#include "base/clock.h"
#include "control/conn.h"

/* A user may connect CLIENTS_BURST clients at once, and CLIENTS_RATE a second in the long run. */
#define CLIENTS_BURST 512
#define CLIENTS_RATE  250
#define ADVANCE_MS    20

static struct ctl_caller *find(const struct ctl_daemon *d, uid_t uid)
{
    gm_list_for_each (u, &d->callers, struct ctl_caller, link)
        if (u->uid == uid)
            return u;
    return NULL;
}

struct ctl_caller *ctl_caller_get(struct ctl_daemon *d, uid_t uid)
{
    struct ctl_caller *u = find(d, uid);
    if (!u) {
        u = calloc(1, sizeof(*u));
        if (!u)
            return NULL;
        u->uid = uid;
        gm_list_init(&u->late);
        ctl_ration_init(&u->ration, CLIENTS_BURST, CLIENTS_RATE);
        gm_list_append(&d->callers, &u->link);
    }
    u->conns++;
    return u;
}

static void forget(struct ctl_caller *u)
{
    if (u->conns || !ctl_ration_is_whole(&u->ration, gm_now_ns()))
        return;
    gm_list_remove(&u->link);
    free(u);
}

void ctl_caller_put(struct ctl_daemon *d, struct ctl_caller *u)
{
    u->conns--;
    if (d->finished) {
        u->ration.left = u->ration.burst; /* nobody else will connect */
        forget(u);
    }
}

unsigned ctl_caller_conns(const struct ctl_daemon *d, uid_t uid)
{
    const struct ctl_caller *u = find(d, uid);
    return u ? u->conns : 0;
}

/* After a restart the daemon serves nobody until the servers of the daemon before it have come
 * back. A user who was served earlier would get a second server. */
static bool is_whole(struct ctl_daemon *d)
{
    if (d->returning && gm_now_ns() >= d->return_by_ns)
        d->returning = 0;
    return d->returning == 0;
}

static bool may_serve(struct ctl_daemon *d, struct ctl_caller *u)
{
    unsigned late;
    return is_whole(d) && ctl_ration_take(&u->ration, gm_now_ns(), 0, &late);
}

void ctl_caller_admit(struct ctl_conn *c)
{
    struct ctl_caller *u = c->caller;
    if (gm_list_empty(&u->late) && may_serve(c->daemon, u)) {
        ctl_hooks.client(c);
        return;
    }
    gm_list_append(&u->late, &c->waiting);
    ctl_timer_start(c->daemon->advance, ADVANCE_MS);
}

static bool advance(struct ctl_daemon *d, struct ctl_caller *u)
{
    while (!gm_list_empty(&u->late) && may_serve(d, u)) {
        struct ctl_conn *c = gm_list_entry(u->late.next, struct ctl_conn, waiting);
        gm_list_remove(&c->waiting);
        ctl_hooks.client(c);
    }
    return !gm_list_empty(&u->late);
}

void ctl_callers_advance(void *daemon)
{
    struct ctl_daemon *d = daemon;
    bool more = false;
    gm_list_for_each (u, &d->callers, struct ctl_caller, link)
        more |= advance(d, u);
    if (more)
        ctl_timer_start(d->advance, ADVANCE_MS);
}

void ctl_callers_sweep(struct ctl_daemon *d)
{
    gm_list_for_each_safe (u, &d->callers, struct ctl_caller, link)
        forget(u);
}
