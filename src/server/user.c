/*
 * A list of users with a count for each; a user is made with the first session and freed with the
 * last.
 */
#include "server/user.h"

#include <stdlib.h>

#include "server/server.h"

static void rests(void *user)
{
    srv_user_put(user);
}

struct srv_user *srv_user_get(struct srv_server *s, uint32_t uid)
{
    gm_list_for_each (u, &s->users, struct srv_user, link)
        if (u->uid == uid) {
            u->sessions++;
            return u;
        }
    struct srv_user *u = calloc(1, sizeof(*u));
    if (!u)
        return NULL;
    u->server = s;
    u->uid = uid;
    u->sessions = 1;
    gm_list_init(&u->groups);
    gm_list_init(&u->turn);
    gm_list_init(&u->turns);
    srv_sweep_owner_init(&u->sweeps, rests, u);
    srv_images_init(&u->images, &s->reader);
    srv_account_init(&u->account, &s->account);
    if (s->multiuser)
        u->account.sharers = &s->users_count;
    gm_list_append(&s->users, &u->link);
    s->users_count++;
    return u;
}

void srv_user_put(struct srv_user *u)
{
    if (--u->sessions > 0)
        return;
    srv_account_check_clear(&u->account);
    srv_images_finish(&u->images);
    gm_list_remove(&u->link);
    u->server->users_count--;
    free(u);
}

/* --- what is left of a session ---------------------------------------------------------------- */

struct apart {
    struct srv_sweep sweep;
    struct srv_charge charge;
};

static void end_apart(struct srv_sweep *s, bool cancelled GM_UNUSED)
{
    struct apart *a = GM_CONTAINER_OF(s, struct apart, sweep);
    srv_charge_release(&a->charge);
    free(a);
}

bool srv_user_sweep(struct srv_user *u, int fd, uint64_t offset, uint64_t size)
{
    struct apart *a = calloc(1, sizeof(*a));
    if (!a || srv_charge(&a->charge, &u->account, SRV_LEAVING, 1) < 0) {
        free(a);
        return false;
    }
    const bool rested = srv_sweep_rests(&u->server->sweeper, &u->sweeps);
    u->sessions += rested; /* the user stays until they have been swept */
    srv_sweep(&u->server->sweeper, &a->sweep, &u->sweeps, fd, offset, size, end_apart);
    if (rested && srv_sweep_rests(&u->server->sweeper, &u->sweeps))
        srv_user_put(u);
    return true;
}
