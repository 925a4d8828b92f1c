/*
 * Asks the executor, watches it and replaces it. The order of requests matters: they are answered
 * first in, first out, unless the executor says that one has to wait; and after a death earlier
 * requests are repeated before new ones are sent. executor.h has the rules.
 */
#include "server/executor.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/result.h"
#include "server/hooks.h"
#include "server/request.h"
#include "server/server.h"

/* An executor that does not start within this time hangs. */
#define START_BOUND_MS 30000u
/* an executor that had everything restored and lived so long did not die of the same cause as the
 * one before */
#define PEACE_NS GM_NS_PER_S
/* The most deaths in a row that are counted while each executor had everything restored: the client
 * that killed it has lost its session then. */
#define DEATHS_WITH_PROGRESS 3u
#define PAUSE_MS             50u
#define PAUSE_MAX_MS         5000u
#define START_TRIES          3u
/* how often sessions are looked at that wait because of their images */
#define LOOK_MS 100u
/* how long the work of all waits until the last client has been restored */
#define RESTORE_MS 1000u
/* After this many deaths no new client waits for the next start. A client's hang-up might not be
 * noticed, because it may have sent us its own end of the connection. */
#define DEATHS_MAX 6u

static const struct srv_peer_ops executor_ops;

void srv_executor_init(struct srv_executor *x, struct srv_server *s)
{
    memset(x, 0, sizeof(*x));
    x->server = s;
    x->peer.fd = -1;
    x->next_serial = 1;
    gm_list_init(&x->sent);
    srv_turns_init(&x->turns);
    uv_timer_init(&s->loop, &x->timer);
    uv_timer_init(&s->loop, &x->patience);
    uv_unref((uv_handle_t *)&x->patience);
    uv_timer_init(&s->loop, &x->resume);
    uv_unref((uv_handle_t *)&x->resume);
}

/* --- asking and being answered ---------------------------------------------------------------- */

static void on_bound(uv_timer_t *timer)
{
    struct srv_executor *x = GM_CONTAINER_OF(timer, struct srv_executor, timer);
    srv_say(x->server, "Executor %d does not answer, ending it", (int)x->process.pid);
    uv_process_kill(&x->process, SIGKILL);
}

static void watch_requests(struct srv_executor *x)
{
    uint64_t now = gm_now_ns() / GM_NS_PER_MS;
    uint64_t until = srv_requests_patience(&x->sent, now);
    if (until)
        uv_timer_start(&x->timer, on_bound, until > now ? until - now : 0, 0);
    else
        uv_timer_stop(&x->timer);
}

static void put_request(struct srv_executor *x, struct srv_request *r)
{
    const struct wire_enc e = { .data = r->packet, .size = r->size, .capacity = r->size };
    r->unsent = false;
    srv_peer_send(&x->peer, &e, r->fds, r->fds_count);
}

/* A queued packet keeps copies of its descriptors, and a replay may need more descriptors than
 * there are. So only one packet is queued in the socket, and the others wait here. */
static void send_request(struct srv_executor *x, struct srv_request *r)
{
    bool first = !srv_requests_current(&x->sent);
    r->later = r->working = false;
    r->until_ms = 0;
    r->unsent = srv_peer_is_behind(&x->peer);
    gm_list_append(&x->sent, &r->link);
    srv_turns_begin(&x->turns, r);
    if (!r->unsent)
        put_request(x, r);
    if (first)
        watch_requests(x);
}

/* When the executor forgets a client, these are the requests that lead to that. */
static bool leads_there(const struct srv_request *r)
{
    return r->type == WIRE_ENGINE_CLIENT_STOP || r->type == WIRE_ENGINE_CLIENT_REMOVE ||
           r->type == WIRE_ENGINE_UNMAP;
}

static void on_patience(uv_timer_t *timer)
{
    srv_executor_go_on(GM_CONTAINER_OF(timer, struct srv_executor, patience));
}

/* Whether the client has to wait with its next image, because executors died over its user's images
 * and there are other users. This is checked again now and then, since the others may leave. */
static bool makes_wait(struct srv_executor *x, const struct srv_session *c)
{
    const uint64_t now = gm_now_ns();
    if (x->server->users_count < 2 || !srv_backoff_until(&x->backoff, c->uid, now))
        return false;
    if (!uv_is_active((uv_handle_t *)&x->patience))
        uv_timer_start(&x->patience, on_patience, LOOK_MS, 0);
    return true;
}

/* Whether the request is pointless: if its client is being forgotten, its descriptors may already
 * be closed. */
static bool is_void(const struct srv_request *r)
{
    return r->session->removing && !leads_there(r);
}

static bool is_held_back(void *executor, const struct srv_request *r)
{
    struct srv_executor *x = executor;
    bool load = r->type == WIRE_ENGINE_MODULE_LOAD,
         may_end_it = r->session->held_back || (x->wary && load);
    return !is_void(r) && (r->session->to_replay || (may_end_it && !x->restored) ||
                           (load && makes_wait(x, r->session)));
}

static void complete(struct srv_request *r, int result, struct tp_packet *answer);

void srv_executor_go_on(struct srv_executor *x)
{
    struct srv_request *r;
    while (x->state == SRV_EXECUTOR_READY &&
           (r = srv_turns_next(&x->turns, is_held_back, x)) != NULL) {
        if (is_void(r))
            complete(r, GM_CUDA_INVALID_HANDLE, NULL); /* this may add further requests */
        else
            send_request(x, r);
    }
}

static bool is_repeating(const struct srv_executor *x)
{
    gm_list_for_each (c, &x->server->sessions, struct srv_session, link)
        if (c->repeats)
            return true;
    return false;
}

/* Tells the executor about the clients that exist; about the next one only, if it has to be
 * careful. Their work goes on when all have everything back: a module that is loaded again may end
 * this executor, too, and clients with work in flight would be lost with it. */
static void replay(struct srv_executor *x)
{
    gm_list_for_each (c, &x->server->sessions, struct srv_session, link) {
        if (!c->to_replay)
            continue;
        if (x->careful && is_repeating(x))
            return;
        c->to_replay = false;
        srv_hooks.session_replay(c);
    }
    if (is_repeating(x) && !x->resumes)
        return;
    gm_list_for_each (c, &x->server->sessions, struct srv_session, link)
        srv_hooks.session_resume(c);
}

static void set_restored(struct srv_executor *x)
{
    x->restored = true;
    srv_executor_settle(x);
}

/* Called after an answer. */
static void go_on(struct srv_executor *x)
{
    if (x->restored) {
        srv_executor_go_on(x);
        return;
    }
    replay(x);
    if (srv_requests_are_settled(&x->sent))
        set_restored(x);
    srv_executor_go_on(x);
}

static void on_resume(uv_timer_t *timer)
{
    struct srv_executor *x = GM_CONTAINER_OF(timer, struct srv_executor, resume);
    if (x->state != SRV_EXECUTOR_READY || x->careful)
        return;
    x->resumes = true;
    go_on(x);
}

/* The answer, a CUresult, if the executor need not be asked. */
static int answer_to(const struct srv_executor *x, const struct srv_request *r)
{
    if (!r)
        return GM_CUDA_OUT_OF_MEMORY;
    if (x->state == SRV_EXECUTOR_NONE)
        return GM_CUDA_MPS_RPC_FAILURE;
    if (!r->session->removing || leads_there(r))
        return 0;
    return r->session->failed ? r->session->failed : GM_CUDA_INVALID_HANDLE;
}

static void repeat(struct srv_executor *x, struct srv_session *c, const struct wire_enc *e,
                   const int *fds, unsigned fds_count)
{
    struct srv_request *r = srv_request_create(c, x->next_serial++, e, fds, fds_count);
    if (!r) {
        srv_hooks.session_fail(c, GM_CUDA_LAUNCH_FAILED, 0, "no memory to restore it");
        return;
    }
    c->repeats++;
    send_request(x, r);
}

void srv_executor_ask(struct srv_executor *x, struct srv_session *c, const struct wire_enc *e,
                      const int *fds, unsigned fds_count, srv_answer_fn *done, void *arg)
{
    if (!done) {
        repeat(x, c, e, fds, fds_count);
        return;
    }
    struct srv_request *r = srv_request_create(c, x->next_serial++, e, fds, fds_count);
    int result = answer_to(x, r);
    if (result != 0) {
        free(r);
        done(arg, result, NULL);
        return;
    }
    r->done = done;
    r->arg = arg;
    c->asks++;
    srv_turns_add(&x->turns, r);
    srv_executor_go_on(x);
}

/* Finishes a request, in whatever way. If it fails because its client has failed, it gets the
 * client's error. */
static void complete(struct srv_request *r, int result, struct tp_packet *answer)
{
    struct srv_session *c = r->session;
    srv_turns_end(&c->server->executor.turns, r);
    result = result != 0 && c->failed ? c->failed : result;
    gm_list_remove(&r->link);
    if (r->done) {
        r->done(r->arg, result, answer);
        c->asks--;
    } else {
        c->repeats--;
        if (result != 0 && !c->failed)
            srv_hooks.session_fail(c, GM_CUDA_LAUNCH_FAILED, 0,
                                   "it could not be restored on a new executor");
        else if (r->type == WIRE_ENGINE_CLIENT_SET) /* the client has all its modules back */
            c->suspected = 0;
    }
    free(r);
    srv_hooks.session_check_end(c);
}

static struct srv_request *first_unsent(struct srv_executor *x)
{
    gm_list_for_each (r, &x->sent, struct srv_request, link)
        if (r->unsent)
            return r;
    return NULL;
}

/* The executor has read what was queued. */
static void on_drained(struct srv_peer *p)
{
    struct srv_executor *x = GM_CONTAINER_OF(p, struct srv_executor, peer);
    struct srv_request *r;
    while (srv_peer_is_open(p) && !srv_peer_is_behind(p) && (r = first_unsent(x)) != NULL) {
        if (is_void(r))
            complete(r, GM_CUDA_INVALID_HANDLE, NULL);
        else
            put_request(x, r);
    }
    if (x->state == SRV_EXECUTOR_READY)
        go_on(x);
    watch_requests(x);
}

static const char *on_later(struct srv_executor *x, struct tp_packet *p)
{
    struct srv_request *r = srv_requests_find(&x->sent, p->header.serial);
    struct wire_engine_later m;
    wire_get_engine_later(&p->body, &m);
    if (!r)
        return "putting off what nobody asked for";
    srv_request_put_off(r, m.working != 0);
    srv_turns_end(&x->turns, r);
    srv_executor_go_on(x);
    watch_requests(x);
    return NULL;
}

static const char *on_answer(struct srv_executor *x, struct tp_packet *p)
{
    struct srv_request *r = srv_requests_find(&x->sent, p->header.serial);
    if (!r)
        return "an answer that nobody asked for";
    bool load = r->type == WIRE_ENGINE_MODULE_LOAD;
    if (load != (p->header.type == WIRE_ENGINE_MODULE_LOADED))
        return "an answer to another question";
    int result;
    if (load) {
        struct wire_dec body = p->body;
        struct wire_engine_module_loaded m;
        wire_get_engine_module_loaded(&body, &m);
        result = m.result;
        if ((result == 0) != (p->fds_count == 1))
            return "a module without information, or a failure with it";
    } else {
        struct wire_engine_done m;
        wire_get_engine_done(&p->body, &m);
        result = m.result;
    }
    if (load && result == 0)
        srv_acquit(&x->server->blame, r->session->uid, srv_request_image(r));
    complete(r, result, load ? p : NULL);
    go_on(x);
    watch_requests(x);
    return NULL;
}

/* --- the executor's life ---------------------------------------------------------------------- */

static void when_dead(struct srv_executor *x);

static void on_process_closed(uv_handle_t *handle)
{
    struct srv_executor *x =
        GM_CONTAINER_OF((uv_process_t *)(void *)handle, struct srv_executor, process);
    x->process_alive = false;
    when_dead(x);
}

static void on_exit_status(uv_process_t *process, int64_t status, int signal)
{
    struct srv_executor *x = GM_CONTAINER_OF(process, struct srv_executor, process);
    if (signal)
        snprintf(x->why, sizeof(x->why), "executor %d was ended by signal %d (%s)",
                 (int)process->pid, signal, strsignal(signal));
    else
        snprintf(x->why, sizeof(x->why), "executor %d exited with status %d", (int)process->pid,
                 (int)status);
    x->killed = signal == SIGKILL;
    if (!x->closing)
        srv_say(x->server, "Device 0: %s", x->why);
    srv_peer_close(&x->peer);
    uv_close((uv_handle_t *)process, on_process_closed);
}

static void on_gone(struct srv_peer *p, bool broke, const char *why)
{
    struct srv_executor *x = GM_CONTAINER_OF(p, struct srv_executor, peer);
    if (broke)
        srv_say(x->server, "Executor %d: %s; ending it", (int)x->process.pid, why);
    srv_peer_close(p);
    if (x->process_alive && !uv_is_closing((uv_handle_t *)&x->process))
        uv_process_kill(&x->process, SIGKILL);
}

static void on_peer_closed(struct srv_peer *p)
{
    struct srv_executor *x = GM_CONTAINER_OF(p, struct srv_executor, peer);
    x->peer_alive = false;
    when_dead(x);
}

static const char *on_ready(struct srv_executor *x, struct tp_packet *p)
{
    struct srv_server *s = x->server;
    struct wire_engine_ready m;
    wire_get_engine_ready(&p->body, &m);
    if (x->state != SRV_EXECUTOR_STARTING)
        return "that it is ready, twice";
    if (m.result != 0) {
        if (x->ready_once)
            return m.reason;
        srv_hooks.executor_failed(s, m.result, m.reason);
        return NULL;
    }
    if (!s->devices_count) {
        const char *why = srv_executor_learn(x, &m);
        if (why)
            return why;
    }
    x->state = SRV_EXECUTOR_READY;
    uv_timer_stop(&x->timer);
    bool again = x->ready_once;
    x->ready_once = true;
    x->resumes = false;
    uv_timer_start(&x->resume, on_resume, RESTORE_MS, 0);
    if (again) {
        for (uint32_t d = 0; d < s->devices_count; d++)
            srv_say(s, "Executor %d takes over device %u (%s)", (int)x->process.pid, d,
                    s->devices[d].name);
        gm_list_for_each (c, &s->sessions, struct srv_session, link)
            c->to_replay = true;
        replay(x);
    }
    srv_hooks.executor_ready(s);
    if (gm_list_empty(&x->sent))
        set_restored(x);
    srv_executor_go_on(x);
    return NULL;
}

static void on_client_fault(struct srv_executor *x, struct tp_packet *p)
{
    struct wire_engine_client_fault m;
    wire_get_engine_client_fault(&p->body, &m);
    gm_list_for_each (c, &x->server->sessions, struct srv_session, link)
        if (c->id == m.client && c->in_executor && !c->failed) {
            int result = m.result > 0 ? m.result : GM_CUDA_UNKNOWN;
            srv_link_fault(x->server, c->pid, result, m.text);
            srv_hooks.session_fail(c, result, m.address, m.text);
            break;
        }
}

static const char *on_packet(struct srv_peer *p, struct tp_packet *packet)
{
    struct srv_executor *x = GM_CONTAINER_OF(p, struct srv_executor, peer);
    switch (packet->header.type) {
    case WIRE_ENGINE_TRAITS:
        srv_executor_learn_traits(x, packet);
        return NULL;
    case WIRE_ENGINE_READY:
        return on_ready(x, packet);
    case WIRE_ENGINE_DONE:
    case WIRE_ENGINE_MODULE_LOADED:
        return on_answer(x, packet);
    case WIRE_ENGINE_LATER:
        return on_later(x, packet);
    case WIRE_ENGINE_CLIENT_FAULT:
        on_client_fault(x, packet);
        return NULL;
    default:
        return "a message out of place";
    }
}

static const struct srv_peer_ops executor_ops = {
    .sender = WIRE_EXECUTOR,
    .queue_bytes_max = 64u << 20,
    .packet = on_packet,
    .gone = on_gone,
    .closed = on_peer_closed,
    .drained = on_drained,
};

/* Makes the socket and starts the process. 0 or -errno; after a failure the loop takes down what
 * was made. */
static int start_process(struct srv_executor *x, const char *program)
{
    int fds[2];
    int r = tp_pair(fds);
    if (r < 0)
        return r;
    r = srv_executor_spawn(x, program, fds[1], on_exit_status);
    x->process_alive = true; /* the handle is in use even after a failure */
    gm_close(fds[1]);
    if (r < 0) {
        gm_close(fds[0]);
        uv_close((uv_handle_t *)&x->process, on_process_closed);
        return r;
    }
    r = srv_peer_open(&x->peer, &x->server->loop, fds[0], &executor_ops);
    if (r < 0)
        uv_process_kill(&x->process, SIGKILL);
    else
        x->peer_alive = true;
    return r;
}

void srv_executor_start(struct srv_executor *x)
{
    char program[PATH_MAX];
    x->started_ns = gm_now_ns();
    x->oom_kills = srv_oom_kills();
    x->state = SRV_EXECUTOR_STARTING;
    int r = srv_executor_find(program, sizeof(program)) ? start_process(x, program) : -ENOENT;
    if (r == 0) {
        uv_timer_start(&x->timer, on_bound, START_BOUND_MS, 0);
        return;
    }
    snprintf(x->why, sizeof(x->why), "cannot start %.400s: %s", program, uv_strerror(r));
    srv_say(x->server, "%s", x->why);
    when_dead(x);
}

static void on_pause_over(uv_timer_t *timer)
{
    srv_executor_start(GM_CONTAINER_OF(timer, struct srv_executor, timer));
}

/* --- after a death ---------------------------------------------------------------------------- */

/* Puts requests without an answer back in front of the waiting ones, in order, or gives them up. */
static void judge_requests(struct srv_executor *x)
{
    struct gm_list given_up;
    gm_list_init(&given_up);
    gm_list_for_each (c, &x->server->sessions, struct srv_session, link)
        gm_list_for_each_safe (r, &c->waiting.requests, struct srv_request, link) {
            c->held_back |= r->suspected != 0;
            if (!c->in_executor) {
                srv_turns_take_out(r);
                gm_list_append(&given_up, &r->link);
            }
        }
    while (!gm_list_empty(&x->sent)) {
        struct srv_request *r = gm_list_entry(x->sent.prev, struct srv_request, link);
        bool culprit = r->suspected >= SRV_CULPRIT;
        gm_list_remove(&r->link);
        srv_turns_end(&x->turns, r);
        r->session->held_back |= r->suspected && r->done;
        if (culprit && r->done)
            srv_say(x->server, "Request %u of client {PID: %u, Context ID: 0} ended the executor",
                    r->type, r->session->pid);
        if (culprit || !r->done || !r->session->in_executor)
            gm_list_prepend(&given_up, &r->link);
        else
            srv_turns_put_back(&x->turns, r);
    }
    /* All others are in place before anybody is told, since a callback may ask for more, which
     * comes after them. */
    while (!gm_list_empty(&given_up)) {
        struct srv_request *r = gm_list_entry(given_up.next, struct srv_request, link);
        complete(r, r->done ? GM_CUDA_LAUNCH_FAILED : 0, NULL);
    }
}

static void when_dead(struct srv_executor *x)
{
    struct srv_server *s = x->server;
    if (x->process_alive || x->peer_alive)
        return;
    x->state = SRV_EXECUTOR_WAITING;
    uv_timer_stop(&x->timer);
    bool memory = x->killed && srv_oom_kills() > x->oom_kills;
    srv_requests_accuse(&x->sent, memory, x->careful);
    if (x->restored)
        x->died_ns = gm_now_ns();
    srv_executor_blame(x, memory);
    gm_list_for_each (c, &s->sessions, struct srv_session, link)
        c->held_back = c->to_resume = false;
    srv_executor_judge(x);
    judge_requests(x);
    if (x->closing) {
        x->state = SRV_EXECUTOR_NONE;
        srv_hooks.executor_ended(s);
        return;
    }
    if (x->restored && gm_now_ns() - x->started_ns > PEACE_NS)
        x->deaths = 0;
    x->deaths = x->restored ? GM_MIN(x->deaths + 1, DEATHS_WITH_PROGRESS) : x->deaths + 1;
    x->careful = !x->restored;
    x->restored = false;
    if (!x->ready_once && x->deaths >= START_TRIES) {
        srv_hooks.executor_failed(s, GM_CUDA_MPS_CONNECTION_FAILED, x->why);
        return;
    }
    if (x->deaths >= DEATHS_MAX)
        gm_list_for_each (c, &s->sessions, struct srv_session, link)
            if (c->phase == SRV_OPENING || c->phase == SRV_ATTACHING)
                srv_hooks.session_refuse(c, GM_CUDA_MPS_CONNECTION_FAILED, x->why);
    unsigned pause = x->deaths > 10  ? PAUSE_MAX_MS
                     : x->deaths > 1 ? PAUSE_MS << (x->deaths - 2)
                                     : 0;
    uv_timer_start(&x->timer, on_pause_over, GM_MIN(pause, PAUSE_MAX_MS), 0);
}

void srv_executor_close(struct srv_executor *x)
{
    if (x->closing)
        return;
    x->closing = true;
    uv_close((uv_handle_t *)&x->timer, NULL);
    uv_close((uv_handle_t *)&x->patience, NULL);
    uv_close((uv_handle_t *)&x->resume, NULL);
    srv_peer_close(&x->peer);
    if (x->process_alive && !uv_is_closing((uv_handle_t *)&x->process))
        uv_process_kill(&x->process, SIGKILL);
    /* Without an executor nobody else calls this. */
    when_dead(x);
}
