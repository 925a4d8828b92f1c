/*
 * What a session has: limits, memory, and a place with the executor. A client is offered the
 * session, maps it and says so; then the executor makes room for it. Later its limits may change,
 * and an executor that takes over is told everything that the one before knew.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/result.h"
#include "server/object.h"
#include "server/send.h"
#include "server/serve.h"
#include "server/server.h"

/* Computes shares and limits from what server and client ask for. */
static void set_limits(struct srv_session *c)
{
    const struct srv_server *s = c->server;
    c->granted_pct = GM_MIN(s->limits.share_pct, c->share_pct);
    if (c->group && c->group->share_pct > 0)
        c->granted_pct = GM_MIN(c->granted_pct, c->group->share_pct);
    const double partition_pct = srv_partition_share(c); /* it replaces percentages */
    if (partition_pct > 0)
        c->granted_pct = partition_pct;
    c->granted_priority =
        c->priority >= 0 ? GM_MAX(c->priority, s->limits.priority) : s->limits.priority;
    for (uint32_t d = 0; d < s->devices_count; d++) {
        uint64_t limit = GM_MIN(s->limits.memory[d],
                                srv_limits_memory(c->memory_text, d, s->devices[d].uuid.data));
        limit = GM_MIN(limit, srv_limits_memory(c->memory_ceiling, d, s->devices[d].uuid.data));
        limit = GM_MIN(limit, srv_limits_memory(c->space_memory, d, s->devices[d].uuid.data));
        if (c->memory_most)
            limit = GM_MIN(limit, c->memory_most);
        if (c->group)
            limit = GM_MIN(limit, c->group->account.limit[srv_device_bytes(d)]);
        if (c->window_size)
            limit = GM_MIN(limit, c->window_size / 2);
        c->account.limit[srv_device_bytes(d)] = limit;
        c->account.limit[srv_imported_bytes(d)] = GM_MIN(limit, s->devices[d].memory_total);
        const uint32_t own = srv_partition_size(c, d);
        c->granted_multiprocessors[d] =
            own ? own : srv_limits_multiprocessors(&s->devices[d], c->granted_pct);
        c->engine_multiprocessors[d] =
            own && !s->guarantees ? s->devices[d].multiprocessors : c->granted_multiprocessors[d];
    }
    if (!c->shared.control)
        return;
    atomic_store_explicit(&c->shared.control->share_permille, (uint32_t)(c->granted_pct * 10 + 0.5),
                          memory_order_relaxed);
    for (uint32_t d = 0; d < s->devices_count; d++)
        atomic_store_explicit(&c->shared.control->multiprocessors[d], c->granted_multiprocessors[d],
                              memory_order_relaxed);
}

void srv_session_take_wish(struct srv_session *c, double share_pct, int priority,
                           const char *memory_limits)
{
    char *text = strdup(memory_limits ? memory_limits : "");
    if (text) {
        free(c->memory_text);
        c->memory_text = text;
    }
    c->share_pct = share_pct > 0 && share_pct <= 100 ? share_pct : 100;
    c->priority = priority == 0 || priority == 1 ? priority : -1;
}

/* Makes session memory, window and areas. 0 or -errno. */
static int make_memory(struct srv_session *c)
{
    set_limits(c);
    c->window_size = srv_session_window_size(c);
    c->shared_fd = tp_session_create();
    int r = c->shared_fd < 0 ? c->shared_fd
                             : tp_session_attach(&c->shared, c->shared_fd, TP_SESSION_SIZE);
    if (r == 0) {
        srv_partition_write(c);
        r = srv_session_take_window(c);
    }
    const struct srv_keeper_ops *device =
        c->server->memory_apart ? &srv_keeper_cuda : &srv_keeper_memfd;
    uint64_t half = c->window_size / 2;
    if (r == 0)
        r = srv_area_init(&c->areas[0], "gmux-device", c->window_base, half, device->page);
    if (r == 0)
        r = srv_area_init(&c->areas[1], "gmux-host", c->window_base + half, half,
                          srv_keeper_host.page);
    if (r < 0)
        return r;
    for (uint32_t d = 0; d < c->server->devices_count; d++)
        srv_heap_init(&c->heaps[d], c, &c->areas[0], d, srv_device_bytes(d), device);
    srv_heap_init(&c->host, c, &c->areas[1], 0, SRV_HOST_BYTES, &srv_keeper_host);
    set_limits(c);
    return 0;
}

static void send_offer(struct srv_session *c)
{
    struct srv_server *s = c->server;
    struct wire_enc list;
    uint8_t encoded[sizeof(s->device_packet)];
    uint64_t memory = 0;

    wire_enc_init(&list, encoded, sizeof(encoded));
    for (uint32_t i = 0; i < s->devices_count; i++) {
        struct wire_device d = s->devices[i];
        d.multiprocessors_granted = c->granted_multiprocessors[i];
        wire_put_device(&list, &d);
        memory += GM_MIN(c->account.limit[srv_device_bytes(i)], d.memory_total);
    }
    const struct wire_session_open m = {
        .version = WIRE_VERSION,
        .features = s->memory_apart ? WIRE_FEATURE_MEMORY_APART : 0,
        .window_base = c->window_base,
        .window_size = c->window_size,
        .session_size = TP_SESSION_SIZE,
        .memory_limit = memory,
        .share_pct = c->granted_pct,
        .server_pid = (uint32_t)getpid(),
        .driver_version = SRV_CUDA_VERSION,
        .device_count = s->devices_count,
        .devices = { encoded, (uint32_t)list.size },
    };
    const int fds[] = { c->shared_fd, c->areas[0].fd, c->areas[1].fd };
    struct wire_enc e = srv_encoder(s);
    wire_pack_session_open(&e, 0, &m);
    srv_peer_send(&c->peer, &e, fds, GM_ARRAY_LEN(fds));
}

void srv_session_offer(struct srv_session *c)
{
    int r = make_memory(c);
    if (r < 0) {
        char reason[128];
        snprintf(reason, sizeof(reason), "no memory for another session: %s", strerror(-r));
        srv_session_refuse(c, GM_CUDA_OUT_OF_MEMORY, reason);
        return;
    }
    c->phase = SRV_OFFERED;
    send_offer(c);
}

const char *srv_on_session_window_busy(struct srv_session *c,
                                       const struct wire_session_window_busy *m, uint64_t serial)
{
    (void)serial;
    c->pending--;
    if (m->window_base != c->window_base)
        return "a complaint about a window that it was not offered";
    /* Keeps the rejected windows, so that they are not offered again. */
    int r = srv_session_take_window(c);
    if (r == 0)
        r = srv_area_move(&c->areas[0], c->window_base);
    if (r == 0)
        r = srv_area_move(&c->areas[1], c->window_base + c->window_size / 2);
    if (r < 0)
        srv_session_refuse(c, GM_CUDA_OUT_OF_MEMORY, "no free range of addresses");
    else
        send_offer(c);
    return NULL;
}

struct ready_op {
    struct srv_session *session;
    uint64_t serial;
};

static void on_client_added(void *arg, int result, struct tp_packet *answer)
{
    struct ready_op *op = arg;
    struct srv_session *c = op->session;
    (void)answer;
    if (c->phase == SRV_ATTACHING) {
        if (result == 0) {
            c->phase = SRV_ATTACHED;
            srv_say(c->server, "Creating worker thread for client {PID: %u, Context ID: 0}",
                    c->pid);
        } else {
            c->in_executor = false;
            c->phase = SRV_FAILED;
            c->failed = result;
            tp_session_fail(&c->shared, (uint32_t)result, 0);
        }
    }
    srv_session_status(c, op->serial, result);
    free(op);
}

static struct wire_bytes encode_multiprocessors(const struct srv_session *c)
{
    return (struct wire_bytes) { c->engine_multiprocessors, sizeof(c->engine_multiprocessors) };
}

/* Tells an executor everything that it has to know of the client itself. */
static void add_client(struct srv_session *c, bool resumed, srv_answer_fn *done, void *arg)
{
    const int fds[] = { c->shared_fd, c->areas[0].fd, c->areas[1].fd };
    const struct wire_engine_client_add m = {
        .client = c->id,
        .pid = c->pid,
        .uid = c->uid,
        .window_base = c->window_base,
        .window_size = c->window_size,
        .session_size = TP_SESSION_SIZE,
        .share_pct = c->granted_pct,
        .multiprocessors = encode_multiprocessors(c),
        .priority = c->granted_priority,
        .resumed = resumed,
    };
    srv_engine_client_add(c, &m, fds, done, arg);
}

static void on_limited(void *arg, int result, struct tp_packet *answer)
{
    (void)arg; /* a client that the executor has lost meanwhile gets the share with its replay */
    (void)result;
    (void)answer;
}

const char *srv_on_session_ready(struct srv_session *c, uint64_t serial)
{
    struct ready_op *op = calloc(1, sizeof(*op));
    if (!op)
        return "no memory";
    *op = (struct ready_op) { c, serial };
    c->phase = SRV_ATTACHING;
    c->in_executor = true;
    srv_session_free_windows(c, 1); /* the windows that the client could not use */
    add_client(c, false, on_client_added, op);
    if (srv_group_matters(c))
        srv_group_tell(c, on_limited);
    return NULL;
}

/* --- while it is attached --------------------------------------------------------------------- */

static void set_client(struct srv_session *c, srv_answer_fn *done)
{
    const struct wire_engine_client_set m = { c->id, c->granted_pct, encode_multiprocessors(c),
                                              c->granted_priority };
    srv_engine_client_set(c, &m, done, c);
}

static bool is_in_executor(const struct srv_session *c)
{
    return c->in_executor && (c->phase == SRV_ATTACHED || c->phase == SRV_ATTACHING);
}

void srv_session_limit(struct srv_session *c)
{
    set_limits(c);
    if (!is_in_executor(c))
        return;
    set_client(c, on_limited);
}

void srv_session_wish(struct srv_session *c, double share_pct, int priority,
                      const char *memory_limits, const char *memory_ceiling)
{
    srv_session_take_wish(c, share_pct, priority, memory_limits);
    snprintf(c->memory_ceiling, sizeof(c->memory_ceiling), "%s", memory_ceiling);
    srv_session_limit(c);
}

static void replace_text(char **old, const char *text)
{
    char *copy = *text ? strdup(text) : NULL;
    if (*text && !copy)
        return; /* without memory the old text stays */
    free(*old);
    *old = copy;
}

void srv_session_set_space(struct srv_session *c, const struct wire_link_client_space *m)
{
    replace_text(&c->space, m->name);
    replace_text(&c->space_memory, m->memory_limits);
    c->memory_most = m->memory_most == UINT64_MAX ? 0 : GM_MAX(m->memory_most, (uint64_t)1);
    srv_session_limit(c);
}

void srv_session_place(struct srv_session *c, const struct wire_link_client_group *m)
{
    bool before = srv_group_matters(c);
    srv_group_place(c, m);
    srv_session_limit(c);
    if (is_in_executor(c) && (before || srv_group_matters(c)))
        srv_group_tell(c, on_limited);
}

void srv_session_replay(struct srv_session *c)
{
    if (!c->in_executor || c->phase != SRV_ATTACHED)
        return; /* a client that is being attached asks by itself */
    if (srv_modules_are_blamed(c)) {
        c->in_executor = false; /* the executor does not know it yet */
        srv_session_fail(c, GM_CUDA_LAUNCH_FAILED, 0, "its module ended the executor");
        return;
    }
    atomic_fetch_add_explicit(&c->shared.control->generation, 1, memory_order_release);
    add_client(c, true, NULL, NULL);
    if (srv_group_matters(c))
        srv_group_tell(c, NULL);
    srv_devices_replay(c);
    for (uint32_t d = 0; d < c->server->devices_count; d++)
        srv_heap_replay(&c->heaps[d]);
    srv_heap_replay(&c->host);
    srv_attachments_replay(c);
    srv_arrays_replay(c);
    srv_modules_replay(c);
    c->to_resume = true;
}

void srv_session_resume(struct srv_session *c)
{
    if (c->to_resume && c->in_executor && c->phase == SRV_ATTACHED)
        set_client(c, NULL); /* from now on the executor reads its ring */
    c->to_resume = false;
}
