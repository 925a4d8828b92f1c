/*
 * A list with a count for each user, made with his first session and freed with the last.
 */
#include "server/user.h"

#include <stdlib.h>

#include "server/server.h"

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
    srv_sweep_owner_init(&u->sweeps, srv_sweep_user_rests, u);
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
