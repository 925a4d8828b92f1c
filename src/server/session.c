/*
 * A session's life, and the table of what its client may ask when. The client is believed nothing:
 * whatever it sends that it may not ends the connection, with one line in the log.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/result.h"
#include "server/object.h"
#include "server/serve.h"
#include "server/server.h"
#include "transport/foreign.h"
#include "transport/memfd.h"

static const struct srv_peer_ops session_ops;

/* --- answers ---------------------------------------------------------------------------------- */

static void update_pause(struct srv_session *c)
{
    /* A client that asks faster than the executor answers waits; so does one whose session_ready is
     * being answered. */
    srv_peer_pause(&c->peer, c->pending >= SRV_PENDING_MAX || c->phase == SRV_ATTACHING);
}

void srv_session_answer(struct srv_session *c, uint64_t serial, const struct wire_enc *e,
                        const int *fds, unsigned fds_count)
{
    c->pending--;
    if (serial != 0)
        srv_peer_send(&c->peer, e, fds, fds_count);
    update_pause(c);
}

void srv_session_status(struct srv_session *c, uint64_t serial, int result)
{
    srv_answer_status(c, serial, &(struct wire_status) { result });
}

/* --- windows ---------------------------------------------------------------------------------- */

static uint64_t window_size_for(const struct srv_server *s, const struct srv_session *c)
{
    uint64_t left = srv_account_left(&c->account, SRV_WINDOW_BYTES);
    uint64_t device = 0;
    for (uint32_t d = 0; d < s->devices_count; d++)
        device += GM_MIN(c->account.limit[srv_device_bytes(d)], s->devices[d].memory_total);
    uint64_t size = SRV_WINDOW_MIN;
    /* Each area several times what may be allocated on all devices, so that holes do not matter and
     * programs can reserve ranges as large as the devices; but never more than a part of the
     * addresses left to its user, so that there are always some for the next client. */
    while (size / 16 < device && size * 2 <= left / SRV_WINDOWS_SHARE)
        size *= 2;
    return size;
}

/* Adds a window to those the session holds and makes it the one in use. */
static int take_window(struct srv_session *c)
{
    struct srv_server *s = c->server;
    if (c->windows_count == SRV_WINDOWS_MAX)
        return -ENOSPC;
    struct srv_charge *charge = &c->windows_charge[c->windows_count];
    if (srv_charge(charge, &c->account, SRV_WINDOW_BYTES, c->window_size) < 0)
        return -EDQUOT;
    struct srv_block *b = srv_ranges_alloc(&s->windows, c->window_size, c->window_size);
    if (!b) {
        srv_charge_release(charge);
        return -ENOMEM;
    }
    c->windows[c->windows_count++] = b;
    c->window_base = b->address;
    return 0;
}

void srv_session_free_windows(struct srv_session *c, unsigned keep)
{
    for (unsigned i = 0; i + keep < c->windows_count; i++) {
        if (c->windows[i])
            srv_ranges_free(&c->server->windows, c->windows[i]);
        c->windows[i] = NULL;
        srv_charge_release(&c->windows_charge[i]);
    }
}

/* --- beginning -------------------------------------------------------------------------------- */

static uint64_t namespace_of(uint32_t pid)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/%u/ns/pid", pid);
    return stat(path, &st) == 0 ? st.st_ino : 0;
}

/* Without memory its memory limits stay as they are. */
static void take_wish(struct srv_session *c, double share_pct, int priority,
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

static void read_client(struct srv_session *c, const struct srv_client *client)
{
    c->pid = client->pid;
    c->uid = client->uid;
    c->pid_namespace = namespace_of(client->pid);
    c->command = client->command ? strdup(client->command) : NULL;
    take_wish(c, client->share_pct, client->priority, client->memory_limits);
}

static void say_full(struct srv_session *c)
{
    struct srv_server *s = c->server;
    uint64_t most = s->account.limit[SRV_SESSIONS];
    if (srv_account_left(&s->account, SRV_SESSIONS) == 0)
        srv_say(s, "Failed to accept new client. Maximum number of clients (%llu) reached.",
                (unsigned long long)most);
    else
        srv_say(s,
                "Failed to accept new client. User %u has %llu clients, which is what he may have "
                "of %llu.",
                c->uid, (unsigned long long)c->user->account.used[SRV_SESSIONS],
                (unsigned long long)most);
}

void srv_session_create(struct srv_server *s, int fd, const struct srv_client *client)
{
    struct srv_session *c = calloc(1, sizeof(*c));
    if (c)
        c->user = srv_user_get(s, client->uid);
    if (!c || !c->user) {
        free(c);
        tp_hang_up(fd);
        srv_link_client_gone(s, client->pid, "out of memory");
        return;
    }
    c->server = s;
    c->id = ++s->next_session;
    c->shared_fd = -1;
    c->areas[0].fd = -1;
    c->areas[1].fd = -1;
    c->devices_used = 1; /* which is everybody's */
    c->phase = SRV_OPENING;
    gm_list_init(&c->names);
    gm_list_init(&c->reserved);
    gm_list_init(&c->attachments);
    gm_list_init(&c->modules);
    gm_list_init(&c->contexts);
    srv_account_init(&c->account, &c->user->account);
    c->account.limit[SRV_ALLOCATIONS] = SRV_ALLOCATIONS_MAX;
    c->account.limit[SRV_MAPPINGS] = SRV_MAPPINGS_MAX;
    c->account.limit[SRV_MODULES] = SRV_MODULES_MAX;
    c->account.limit[SRV_IMAGE_BYTES] = SRV_IMAGE_BYTES_MAX;
    c->account.limit[SRV_CONTEXTS] = SRV_CONTEXTS_MAX;
    for (uint32_t d = 0; d < TP_DEVICES; d++)
        c->arrays[d] = (struct srv_charge) { &c->account, srv_device_bytes(d), 0 };
    c->account.limit[SRV_OBJECTS] = SRV_OBJECTS_MAX;
    c->account.limit[SRV_NAMES] = SRV_NAMES_MAX;
    read_client(c, client);
    srv_partition_take(c);
    int r = srv_peer_open(&c->peer, &s->loop, fd, &session_ops);
    if (r < 0) {
        srv_link_client_gone(s, c->pid, strerror(-r));
        srv_user_put(c->user);
        free(c->memory_text);
        free(c->command);
        free(c);
        return;
    }
    gm_list_append(&s->sessions, &c->link);
    s->sessions_count++;
    srv_server_watch(s);
    srv_say(s, "Received new client request for {PID: %u, Context ID: 0}", c->pid);
    if (s->executor.closing) { /* there will be no other */
        srv_session_refuse(c, GM_CUDA_MPS_SERVER_NOT_READY, "the server is about to end");
        return;
    }
    if (srv_charge(&c->count, &c->account, SRV_SESSIONS, 1) < 0) {
        say_full(c);
        srv_session_refuse(c, GM_CUDA_MPS_MAX_CLIENTS_REACHED, "too many clients");
        return;
    }
    srv_say(s, "Client {PID: %u, Context ID: 0} connected", c->pid);
    srv_link_client_state(c, 0, 0, WIRE_CLIENT_STATE_CONNECTED);
    if (s->devices_count && s->executor.state == SRV_EXECUTOR_READY)
        srv_session_offer(c);
}

/* Shares and limits that follow from what server and client say. */
static void set_limits(struct srv_session *c)
{
    const struct srv_server *s = c->server;
    c->granted_pct = GM_MIN(s->limits.share_pct, c->share_pct);
    if (c->group && c->group->share_pct > 0)
        c->granted_pct = GM_MIN(c->granted_pct, c->group->share_pct);
    const double partition_pct = srv_partition_share(c); /* in place of percentages */
    if (partition_pct > 0)
        c->granted_pct = partition_pct;
    c->granted_priority =
        c->priority >= 0 ? GM_MAX(c->priority, s->limits.priority) : s->limits.priority;
    for (uint32_t d = 0; d < s->devices_count; d++) {
        uint64_t limit = GM_MIN(s->limits.memory[d],
                                srv_limits_memory(c->memory_text, d, s->devices[d].uuid.data));
        limit = GM_MIN(limit, srv_limits_memory(c->memory_ceiling, d, s->devices[d].uuid.data));
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

struct srv_heap *srv_session_heap(struct srv_session *c, bool host, uint32_t device)
{
    if (host)
        return device == 0 ? &c->host : NULL;
    return device < c->server->devices_count ? &c->heaps[device] : NULL;
}

struct srv_allocation *srv_session_allocation(struct srv_session *c, uint64_t address)
{
    struct srv_allocation *a = srv_memory_find(&c->host, address);
    for (uint32_t d = 0; d < c->server->devices_count && !a; d++)
        a = srv_memory_find(&c->heaps[d], address);
    return a;
}

/* Session memory, window, areas. 0 or -errno. */
static int make_memory(struct srv_session *c)
{
    set_limits(c);
    c->window_size = window_size_for(c->server, c);
    c->shared_fd = tp_session_create();
    int r = c->shared_fd < 0 ? c->shared_fd
                             : tp_session_attach(&c->shared, c->shared_fd, TP_SESSION_SIZE);
    if (r == 0) {
        srv_partition_write(c);
        r = take_window(c);
    }
    const struct srv_keeper_ops *device =
        c->server->memory_apart ? &srv_keeper_cuda : &srv_keeper_memfd;
    uint64_t half = c->window_size / 2;
    if (r == 0)
        r = srv_area_init(&c->areas[0], "gmux-device", c->window_base, half, device->page);
    if (r == 0)
        r = srv_area_init(&c->areas[1], "gmux-host", c->window_base + half, half,
                          srv_keeper_memfd.page);
    for (uint32_t d = 0; d < c->server->devices_count && r == 0; d++)
        r = srv_heap_init(&c->heaps[d], c, &c->areas[0], d, srv_device_bytes(d), device);
    if (r == 0)
        r = srv_heap_init(&c->host, c, &c->areas[1], 0, SRV_HOST_BYTES, &srv_keeper_memfd);
    if (r == 0)
        set_limits(c);
    return r;
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
    int r = take_window(c); /* keeps the others, so as not to be offered them again */
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
    (void)arg; /* a client that the executor lost meanwhile gets the share with its replay */
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
    srv_session_free_windows(c, 1); /* those it could not use */
    add_client(c, false, on_client_added, op);
    if (srv_group_matters(c))
        srv_group_tell(c, on_limited);
    return NULL;
}

/* --- in the middle ---------------------------------------------------------------------------- */

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
    take_wish(c, share_pct, priority, memory_limits);
    snprintf(c->memory_ceiling, sizeof(c->memory_ceiling), "%s", memory_ceiling);
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
        return; /* one being attached asks by itself */
    if (srv_modules_are_blamed(c)) {
        c->in_executor = false; /* which does not know it yet */
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
        set_client(c, NULL); /* from here on its ring is read */
    c->to_resume = false;
}

bool srv_session_is_busy(const struct srv_session *c)
{
    for (uint32_t i = 0; c->shared.control && i < c->shared.streams_count; i++) {
        const struct tp_stream_slot *slot = &c->shared.streams[i];
        if (atomic_load_explicit(&slot->accepted, memory_order_acquire) !=
            atomic_load_explicit(&slot->completed.value, memory_order_acquire))
            return true;
    }
    return false;
}

/* --- what a client asks: serve.c -------------------------------------------------------------- */

static const char *on_packet(struct srv_peer *p, struct tp_packet *packet)
{
    struct srv_session *c = GM_CONTAINER_OF(p, struct srv_session, peer);
    const char *why = srv_serve(c, packet);
    update_pause(c);
    return why;
}

static void on_gone(struct srv_peer *p, bool broke, const char *why)
{
    struct srv_session *c = GM_CONTAINER_OF(p, struct srv_session, peer);
    if (broke)
        srv_say(c->server, "Dropping client {PID: %u, Context ID: 0} of user %u: %s", c->pid,
                c->uid, why);
    srv_session_drop(c);
}

static void on_peer_closed(struct srv_peer *p)
{
    struct srv_session *c = GM_CONTAINER_OF(p, struct srv_session, peer);
    c->peer_closed = true;
    srv_session_check_end(c);
}

static const struct srv_peer_ops session_ops = {
    .sender = WIRE_CLIENT,
    .queue_bytes_max = 256u << 10, /* who asks one thing after the other has less */
    .packet = on_packet,
    .gone = on_gone,
    .closed = on_peer_closed,
};
