/*
 * Clients that cannot be served yet wait in one list, in the order in which they came. The list is
 * gone through again after each change that a client may wait for.
 */
#include "control/queue.h"

#include "control/conn.h"
#include "control/door.h"
#include "control/log.h"
#include "control/server.h"
#include "control/users.h"

static uid_t owner_of(const struct ctl_daemon *d, uid_t uid)
{
    if (!d->options.multiuser)
        return uid;
    return d->options.has_server_user ? d->options.server_uid : d->uid;
}

static bool may_serve(const struct ctl_daemon *d, uid_t uid)
{
    return d->uid == 0 || uid == d->uid;
}

/* Finds the server that takes the user's new clients; in protocol 3 the server of that name. */
static struct ctl_server *server_of(struct ctl_daemon *d, uid_t uid, const struct ctl_named *named)
{
    gm_list_for_each (s, &d->servers, struct ctl_server, link)
        if (s->uid == uid && s->named == named && s->state != CTL_SERVER_STOPPING)
            return s;
    return NULL;
}

static struct ctl_named *named_of(const struct ctl_conn *c)
{
    return c->space ? c->space->server : NULL;
}

/* Whether the user has to wait because a device admits one server at a time. A server that is
 * ending counts as well, even if it is the user's own. */
static bool must_wait(struct ctl_daemon *d, uid_t uid, const struct ctl_named *named)
{
    const struct ctl_server *own = server_of(d, uid, named);
    if (!ctl_users_take_turns(d))
        return own && own->exclusive && !gm_list_empty(&d->queue);
    if (!gm_list_empty(&d->queue) || d->start_wanted)
        return true;
    return !gm_list_empty(&d->servers) && !own;
}

static void log_pending(struct ctl_conn *c, uid_t uid)
{
    ctl_log_stranger(c->daemon,
                     "NEW CLIENT %d from user %u: Server is not ready, push client to pending list",
                     (int)c->peer.pid, (unsigned)uid);
}

static void serve(struct ctl_conn *c)
{
    struct ctl_daemon *d = c->daemon;
    uid_t uid = owner_of(d, c->peer.uid);
    struct ctl_server *s = server_of(d, uid, named_of(c));
    if (!s || s->state != CTL_SERVER_ACTIVE)
        log_pending(c, uid);
    if (!s && d->servers_count >= CTL_SERVERS_MAX) {
        ctl_conn_refuse(c, GM_CUDA_MPS_MAX_CLIENTS_REACHED, "there are too many servers");
        return;
    }
    if (!s)
        s = ctl_server_create(d, uid, d->options.multiuser ? CTL_NO_GROUP : c->peer.gid,
                              named_of(c));
    if (!s) {
        ctl_conn_refuse(c, GM_CUDA_MPS_CONNECTION_FAILED, "out of memory");
        return;
    }
    ctl_server_give(s, c);
}

/* Forgets users' servers that have no process, no namespaces and no limits: they would be made
 * again just as they are. */
static void drop_unused(struct ctl_daemon *d)
{
    gm_list_for_each_safe (n, &d->names, struct ctl_named, link) {
        uid_t uid;
        bool used = !ctl_name_is_user(n->name, &uid) || n->spaces.next->next != &n->spaces ||
                    ctl_space_limits(ctl_space_default(n)) || *n->visible;
        gm_list_for_each (s, &d->servers, struct ctl_server, link)
            used |= s->named == n;
        if (used)
            continue;
        ctl_queue_forget(d, n);
        ctl_door_close_server(d, n);
        ctl_named_free(n);
    }
}

static struct ctl_named *server_of_user(struct ctl_daemon *d, uid_t uid)
{
    struct ctl_named *n = ctl_door_user(d, uid);
    if (n)
        return n;
    drop_unused(d);
    return ctl_door_user(d, uid);
}

/* Puts the client into a namespace, which each client of protocol 3 has. Returns false if there is
 * none for it, after it has told the client. */
static bool choose_space(struct ctl_conn *c)
{
    struct ctl_daemon *d = c->daemon;
    uid_t owner = owner_of(d, c->peer.uid);
    if (!d->options.modules)
        return true;
    struct ctl_named *n = c->space ? c->space->server : server_of_user(d, owner);
    if (!n) {
        ctl_conn_refuse(c, GM_CUDA_MPS_MAX_CLIENTS_REACHED, "there are too many servers");
        return false;
    }
    if (n->uid != owner) {
        char text[160];
        snprintf(text, sizeof(text), "the server %s is user %u's", n->name, (unsigned)n->uid);
        ctl_conn_refuse(c, GM_CUDA_NOT_PERMITTED, text);
        return false;
    }
    c->space = c->space ? c->space : ctl_space_default(n);
    return true;
}

void ctl_queue_admit(struct ctl_conn *c)
{
    struct ctl_daemon *d = c->daemon;
    uid_t uid = c->peer.uid;
    if (d->quitting) {
        ctl_conn_refuse(c, GM_CUDA_MPS_SERVER_NOT_READY, "the daemon is about to end");
    } else if (!may_serve(d, uid)) {
        char text[128];
        snprintf(text, sizeof(text), "the daemon runs as user %u and serves nobody else",
                 (unsigned)d->uid);
        ctl_conn_refuse(c, GM_CUDA_NOT_PERMITTED, text);
    } else if (!choose_space(c)) {
        return;
    } else if (must_wait(d, owner_of(d, uid), named_of(c))) {
        log_pending(c, owner_of(d, uid));
        gm_list_append(&d->queue, &c->waiting);
        ctl_queue_advance(d);
    } else {
        serve(c);
    }
}

const char *ctl_queue_start(struct ctl_daemon *d, uid_t uid, struct ctl_named *named)
{
    uid = owner_of(d, uid);
    if (d->options.modules && !named)
        named = server_of_user(d, uid);
    if (!may_serve(d, uid))
        return "The daemon does not run as root: it can start servers for its own user only";
    if (server_of(d, uid, named))
        return NULL;
    if (must_wait(d, uid, named)) {
        d->start_wanted = true;
        d->start_uid = uid;
        d->start_named = named;
        ctl_queue_advance(d);
        return NULL;
    }
    return ctl_server_create(d, uid, CTL_NO_GROUP, named) ? NULL : "out of memory";
}

/* Serves the first user in the queue, and those right behind who are the same user. */
static void next_user(struct ctl_daemon *d)
{
    if (gm_list_empty(&d->queue)) {
        d->start_wanted = false;
        ctl_server_create(d, d->start_uid, CTL_NO_GROUP, d->start_named);
        return;
    }
    const struct ctl_conn *first = gm_list_entry(d->queue.next, struct ctl_conn, waiting);
    const uid_t uid = first->peer.uid;
    const struct ctl_named *named = named_of(first);
    while (!gm_list_empty(&d->queue)) {
        struct ctl_conn *c = gm_list_entry(d->queue.next, struct ctl_conn, waiting);
        if (c->peer.uid != uid || named_of(c) != named)
            break;
        gm_list_remove(&c->waiting);
        serve(c);
    }
}

static void on_backoff(void *daemon)
{
    struct ctl_daemon *d = daemon;
    d->backoff_ms = GM_MIN(d->backoff_ms * 2, (unsigned)CTL_BACKOFF_MAX_MS);
    d->backoff_running = false;
    ctl_queue_advance(d);
}

/* Asks a server to end, and make room. The same is tried again when its last client leaves. The
 * timer is for the log, in which users look up what they wait for. */
static void try_ending(struct ctl_server *s)
{
    struct ctl_daemon *d = s->daemon;
    if (s->state != CTL_SERVER_ACTIVE || (d->backoff_running && s->clients_count))
        return;
    ctl_log(d, "Try shutting down server %d, backoff is enabled", (int)s->pid);
    if (!s->clients_count) {
        ctl_server_shutdown(s, false);
        return;
    }
    ctl_log(d, "Server %d has %u active worker threads. Server will not shutdown.", (int)s->pid,
            s->clients_count);
    ctl_log(d, "Control will try shutting down server %d again in at most %ums", (int)s->pid,
            d->backoff_ms);
    if (!d->backoff)
        d->backoff = ctl_timer_create(&d->loop, on_backoff, d);
    if (d->backoff) {
        d->backoff_running = true;
        ctl_timer_start(d->backoff, d->backoff_ms);
    }
}

/* Whether the clients in the queue wait for this server to end. */
static bool in_the_way(const struct ctl_server *s)
{
    return s->exclusive || ctl_users_take_turns(s->daemon);
}

static bool is_free(const struct ctl_daemon *d)
{
    gm_list_for_each (s, &d->servers, struct ctl_server, link)
        if (in_the_way(s))
            return false;
    return true;
}

void ctl_queue_advance(struct ctl_daemon *d)
{
    if (gm_list_empty(&d->queue) && !d->start_wanted) {
        if (d->backoff)
            ctl_timer_stop(d->backoff);
        d->backoff_running = false;
        d->backoff_ms = CTL_BACKOFF_MS;
    } else if (is_free(d)) {
        next_user(d);
        ctl_queue_advance(d);
    } else {
        gm_list_for_each_safe (s, &d->servers, struct ctl_server, link)
            if (in_the_way(s))
                try_ending(s);
    }
}

void ctl_queue_forget_space(struct ctl_daemon *d, struct ctl_space *s)
{
    struct ctl_space *left = ctl_space_default(s->server);
    gm_list_for_each_safe (c, &d->conns, struct ctl_conn, link) {
        if (c->space != s)
            continue;
        c->space = NULL;
        if (c->phase == CTL_CONN_WAITING)
            ctl_conn_refuse(c, GM_CUDA_MPS_SERVER_NOT_READY, "its namespace was deleted");
        else if (c->phase == CTL_CONN_NEW)
            ctl_conn_drop(c, "its namespace was deleted");
    }
    gm_list_for_each (server, &d->servers, struct ctl_server, link)
        gm_list_for_each (c, &server->clients, struct ctl_client, link)
            if (c->space == s) {
                c->space = left == s ? NULL : left;
                ctl_client_send_limits(server, c);
            }
}

void ctl_queue_forget(struct ctl_daemon *d, const struct ctl_named *named)
{
    gm_list_for_each (s, &named->spaces, struct ctl_space, link)
        ctl_queue_forget_space(d, s);
    gm_list_for_each (s, &d->servers, struct ctl_server, link)
        if (s->named == named)
            s->named = NULL;
    if (d->start_named == named)
        d->start_wanted = false;
}

void ctl_queue_refuse_all(struct ctl_daemon *d, int result, const char *reason)
{
    d->start_wanted = false;
    while (!gm_list_empty(&d->queue))
        ctl_conn_refuse(gm_list_entry(d->queue.next, struct ctl_conn, waiting), result, reason);
}
