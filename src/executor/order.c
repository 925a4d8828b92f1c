/*
 * Keeps the orders that wait or are being carried out, finds orders that need not wait for any
 * before them, and runs workers. work.c has what each order does.
 */
#include "executor/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* How many orders of one client workers may have at once: a new executor may have to load a
 * thousand modules of a client. */
#define BESIDE_MAX 4u
/* How many workers stay when they have no work. */
#define IDLE_MAX 2u

/* --- whose turn it is ------------------------------------------------------------------------- */

/* Both orders are about the same module, or one of them is about all modules. */
static bool share_module(const struct exe_order *a, const struct exe_order *b)
{
    return a->touches & b->touches & EXE_MODULES &&
           (!a->module || !b->module || a->module == b->module);
}

/* The order has to wait for one before it. `before` sums up what those touch; since modules share
 * bits there, the orders themselves are compared if a bit is set.
 */
static bool is_behind(const struct exe_order *o, const struct exe_order *before)
{
    if (before->touches & (o->touches | o->needs) & ~EXE_MODULES ||
        before->needs & o->touches & EXE_VALUES)
        return true;
    if (!(before->modules & o->modules))
        return false;
    gm_list_for_each (other, &o->client->orders, struct exe_order, link) {
        if (other == o)
            break;
        if (share_module(other, o))
            return true;
    }
    return false;
}

static void add(struct exe_order *before, const struct exe_order *o)
{
    before->touches |= o->touches;
    before->needs |= o->needs;
    before->modules |= o->modules;
}

/* The order may begin, if no order before it is in its way. A client gets at most BESIDE_MAX loads
 * at a time; orders that need something do not count, since a stop may wait for them. An order that
 * was tried while the device answered the client waits until that is over. */
static bool may_begin(const struct exe_order *o)
{
    bool one_of_many = (o->touches & EXE_MODULES) && o->module && !o->needs;
    if (one_of_many && o->client->beside >= BESIDE_MAX)
        return false;
    return !o->again || !atomic_load_explicit(&o->client->asking, memory_order_acquire);
}

/* --- workers ---------------------------------------------------------------------------------- */

static void work(struct exe_engine *e, struct exe_order *o)
{
    exe_order_work(e, o);
    pthread_mutex_lock(&e->jobs.lock);
    if (o->leaves && !o->client->gone)
        o->client->removal = o; /* done when the device says that the client is gone */
    else
        gm_list_append(&e->jobs.done, &o->job);
    pthread_mutex_unlock(&e->jobs.lock);
    exe_engine_wake(e);
}

void exe_order_client_gone(void *arg, struct tp_session *session)
{
    struct exe_engine *e = arg;
    struct exe_client *c = GM_CONTAINER_OF(session, struct exe_client, session);
    pthread_mutex_lock(&e->jobs.lock);
    c->gone = true;
    if (c->removal)
        gm_list_append(&e->jobs.done, &c->removal->job);
    pthread_mutex_unlock(&e->jobs.lock);
    exe_engine_wake(e);
}

/* The next order, or NULL if the worker is not needed any more. The lock is held. */
static struct exe_order *next_job(struct exe_jobs *j)
{
    if (gm_list_empty(&j->to_do) && j->idle >= IDLE_MAX)
        return NULL;
    j->idle++;
    while (gm_list_empty(&j->to_do))
        pthread_cond_wait(&j->more, &j->lock);
    j->idle--;
    struct exe_order *o = gm_list_entry(j->to_do.next, struct exe_order, job);
    gm_list_remove(&o->job);
    j->count--;
    return o;
}

static void *worker_thread(void *arg)
{
    struct exe_engine *e = arg;
    struct exe_order *o;
    pthread_setname_np(pthread_self(), "worker");
    pthread_detach(pthread_self());
    pthread_mutex_lock(&e->jobs.lock);
    while ((o = next_job(&e->jobs)) != NULL) {
        pthread_mutex_unlock(&e->jobs.lock);
        work(e, o);
        pthread_mutex_lock(&e->jobs.lock);
    }
    pthread_mutex_unlock(&e->jobs.lock);
    return NULL;
}

/* Gives the order to a worker. There are as many workers as there are orders for them, since
 * otherwise a client would wait for another one's order. If no thread can be started, the main
 * thread carries the order out. */
static void hand_over(struct exe_engine *e, struct exe_order *o)
{
    struct exe_jobs *j = &e->jobs;
    pthread_t thread;
    o->working = true;
    o->client->beside++;
    pthread_mutex_lock(&j->lock);
    gm_list_append(&j->to_do, &o->job);
    bool is_taken = ++j->count <= j->idle || exe_thread_start(&thread, worker_thread, e) == 0;
    if (!is_taken) {
        gm_list_remove(&o->job);
        j->count--;
    }
    pthread_cond_signal(&j->more);
    pthread_mutex_unlock(&j->lock);
    if (!is_taken)
        work(e, o);
}

/* --- the way ---------------------------------------------------------------------------------- */

/* Tells the server that the order waits, or that it is being carried out and will take a while. */
static int announce(struct exe_engine *e, const struct exe_order *o, bool working)
{
    uint8_t packet[64];
    struct wire_enc enc;
    if (o->type == 0)
        return 0;
    wire_enc_init(&enc, packet, sizeof(packet));
    wire_pack_engine_later(&enc, o->serial, &(struct wire_engine_later) { working });
    return tp_send(e->server, &enc, NULL, 0);
}

static int finish(struct exe_engine *e, struct exe_order *o)
{
    int r = o->type ? exe_order_answer(e, o) : 0;
    for (unsigned i = 0; i < o->fds_count; i++)
        gm_close(o->fds[i]);
    e->descriptors -= o->fds_count;
    gm_list_remove(&o->link);
    free(o);
    return r;
}

static int begin(struct exe_engine *e, struct exe_order *o)
{
    int r = announce(e, o, true);
    if (r < 0)
        return r;
    if (o->beside) {
        hand_over(e, o);
        return 0;
    }
    exe_order_work(e, o);
    return finish(e, o);
}

/* Begins all orders of a client that can begin. */
static int go_on(struct exe_engine *e, struct exe_client *c)
{
    struct exe_order before = { 0 };
    int r = 0;
    gm_list_for_each_safe (o, &c->orders, struct exe_order, link) {
        bool begins = !o->working && !is_behind(o, &before) && may_begin(o);
        if (!begins || o->beside)
            add(&before, o);
        if (begins)
            r = begin(e, o);
        if (r < 0)
            break;
    }
    return r;
}

/* Makes a copy of the order, which takes its descriptors. */
static struct exe_order *keep(struct exe_engine *e, struct exe_order *o)
{
    const size_t size = o->body.size - o->body.pos;
    struct exe_order *kept = calloc(1, sizeof(*kept) + size);
    if (!kept)
        return NULL;
    *kept = *o;
    if (size)
        memcpy(kept->bytes, o->body.data + o->body.pos, size);
    wire_dec_init(&kept->body, kept->bytes, size);
    e->descriptors += o->fds_count;
    o->fds_count = 0;
    gm_list_init(&kept->job);
    gm_list_append(&o->client->orders, &kept->link);
    return kept;
}

void exe_order_stop(struct exe_engine *e, struct exe_client *c)
{
    struct exe_order o = { .client = c, .kind = exe_order_kind(0) };
    if (c->stopping)
        return;
    exe_order_plan(&o);
    c->stopping = keep(e, &o) != NULL;
}

int exe_order_take(struct exe_engine *e, struct exe_order *o)
{
    struct exe_order before = { 0 };
    exe_order_plan(o);
    if (o->client)
        gm_list_for_each (other, &o->client->orders, struct exe_order, link)
            add(&before, other);
    bool waits = o->client && (is_behind(o, &before) || !may_begin(o));
    if (!waits && !o->beside) {
        exe_order_work(e, o);
        return exe_order_answer(e, o);
    }
    o = keep(e, o);
    if (!o)
        return -ENOMEM;
    return waits ? announce(e, o, false) : begin(e, o);
}

/* The client is gone: carries out the orders that are left, which have nothing to do any more. */
static int forget(struct exe_engine *e, struct exe_client *c)
{
    int r = 0;
    gm_list_for_each_safe (o, &c->orders, struct exe_order, link) {
        o->client = NULL;
        exe_order_work(e, o);
        r = r < 0 ? r : finish(e, o);
    }
    exe_client_free(c);
    return r;
}

/* A worker has finished the order. */
static int take_back(struct exe_engine *e, struct exe_order *o)
{
    struct exe_client *c = o->client;
    bool removed = o->type == WIRE_ENGINE_CLIENT_REMOVE ||
                   (o->type == WIRE_ENGINE_CLIENT_ADD && o->result != 0);
    o->working = false;
    c->beside--;
    if (o->again)
        return announce(e, o, false);
    int r = finish(e, o);
    return r == 0 && removed ? forget(e, c) : r;
}

static struct exe_order *next_done(struct exe_jobs *j)
{
    struct exe_order *o = NULL;
    pthread_mutex_lock(&j->lock);
    if (!gm_list_empty(&j->done)) {
        o = gm_list_entry(j->done.next, struct exe_order, job);
        gm_list_remove(&o->job);
    }
    pthread_mutex_unlock(&j->lock);
    return o;
}

int exe_orders_go_on(struct exe_engine *e)
{
    struct exe_order *o;
    int r = 0;
    while (r == 0 && (o = next_done(&e->jobs)) != NULL)
        r = take_back(e, o);
    gm_list_for_each (c, &e->clients, struct exe_client, link)
        if (r == 0)
            r = go_on(e, c);
    return r;
}

bool exe_orders_are_many(const struct exe_engine *e)
{
    return e->descriptors >= e->descriptors_max;
}

void exe_jobs_init(struct exe_jobs *j)
{
    pthread_mutex_init(&j->lock, NULL);
    pthread_cond_init(&j->more, NULL);
    gm_list_init(&j->to_do);
    gm_list_init(&j->done);
    j->count = j->idle = 0;
}
