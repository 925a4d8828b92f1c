/*
 * The server as a whole: its loop, its beginning, and the hooks by which those above learn what
 * happens below (hooks.h).
 */
#include "server/server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/result.h"
#include "server/hooks.h"
#include "server/object.h"
#include "transport/foreign.h"
#include "transport/memfd.h"

/* How long a client that started us may take to say hello. */
#define HELLO_BOUND_S 10

/* socket, session memory, two areas, and answers on their way */
#define SESSION_DESCRIPTORS 8u
/* session memory and host area: what a session keeps when its client is gone */
#define LEAVING_DESCRIPTORS 2u

/* the most mappings of all clients in an executor: Linux allows a process 65,530 */
#define MAPPINGS_ALL 49152u

static struct gm_log_topic topic = GM_LOG_TOPIC("server");

static void on_terminate(uv_signal_t *handle, int number)
{
    (void)number;
    srv_server_stop(GM_CONTAINER_OF(handle, struct srv_server, terminate), true);
}

/* Whether the quantity is memory of a device that does not exist. */
static bool is_elsewhere(const struct srv_server *s, enum srv_quantity q)
{
    unsigned device =
        (unsigned)q - (q >= SRV_IMPORTED_BYTES ? SRV_IMPORTED_BYTES : SRV_DEVICE_BYTES);
    return srv_is_device_memory(q) && device >= GM_MAX(s->devices_count, 1u);
}

/* Logs what is charged, for people and for tests. */
static void on_dump(uv_signal_t *handle, int number)
{
    struct srv_server *s = GM_CONTAINER_OF(handle, struct srv_server, dump);
    (void)number;
    srv_say(s, "Sessions: %u, contexts: %u, users: %u, executor %d", s->sessions_count,
            s->contexts_count, s->users_count, (int)s->executor.process.pid);
    for (unsigned q = 0; q < SRV_QUANTITIES; q++) {
        if (is_elsewhere(s, (enum srv_quantity)q))
            continue;
        srv_say(s, "Charged %s: %llu", srv_quantity_name((enum srv_quantity)q),
                (unsigned long long)s->account.used[q]);
    }
}

/* Where windows may lie, the first choice last: above what programs use by themselves (with the
 * address sanitizer, up to the lowest one); around the place where position-independent programs
 * are loaded; and below where the kernel puts mappings of its own choice. */
static const struct {
    uint64_t begin, end;
} windows[] = {
#ifndef __SANITIZE_THREAD__
    { 0x110000000000, 0x400000000000 },
    { 0x580000000000, 0x780000000000 },
    { 0x400000000000, 0x540000000000 },
#else /* the thread sanitizer leaves a program few addresses */
    { 0x1000000000, 0x8000000000 },
#endif
};

/* Sessions and large images hold descriptors, and there is a limit of these. Messages that bring
 * some must always find room, so a part of the descriptors is kept for them, and for those that
 * have yet to be closed. */
static void limit_descriptors(struct srv_server *s)
{
    struct rlimit l;
    uint64_t all = 1024;
    if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
        l.rlim_cur = l.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &l);
        if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur != RLIM_INFINITY)
            all = l.rlim_cur;
    }
    s->account.limit[SRV_SESSIONS] =
        GM_MIN((uint64_t)SRV_CLIENTS_MAX, all / 2 / SESSION_DESCRIPTORS);
    s->account.limit[SRV_LEAVING] =
        GM_MIN((uint64_t)SRV_CLIENTS_MAX, all / 16 / LEAVING_DESCRIPTORS);
    s->account.limit[SRV_IMAGE_FILES] = all * 5 / 32;
    s->account.limit[SRV_OBJECTS] = all * 5 / 32;
}

int srv_server_init(struct srv_server *s, const char *device_name)
{
    memset(s, 0, sizeof(*s));
    s->device_name = device_name;
    s->link.fd = -1;
    srv_door_init(&s->door);
    s->limits = (struct srv_limits) { .share_pct = 100 };
    srv_server_limit_memory(s);
    gm_list_init(&s->sessions);
    gm_list_init(&s->ending);
    gm_list_init(&s->users);
    srv_account_init(&s->account, NULL);
    s->account.limit[SRV_HOST_BYTES] =
        (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    s->account.limit[SRV_MAPPINGS] = MAPPINGS_ALL;
    s->account.limit[SRV_ALLOCATIONS] = 16ull * SRV_ALLOCATIONS_MAX; /* a gigabyte of books */
    s->account.limit[SRV_IMAGE_BYTES] = SRV_SESSIONS_TOTAL * SRV_IMAGE_BYTES_MAX;
    s->account.limit[SRV_MODULES] = 8ull * SRV_MODULES_MAX;
    s->account.limit[SRV_CONTEXTS] = (uint64_t)SRV_SESSIONS_TOTAL * SRV_CONTEXTS_MAX;
    s->account.limit[SRV_NAMES] = (uint64_t)SRV_SESSIONS_TOTAL * SRV_NAMES_MAX;
    limit_descriptors(s);
    int r = 0;
    srv_ranges_init(&s->windows, SRV_WINDOW_MIN);
    for (unsigned i = 0; i < GM_ARRAY_LEN(windows) && r == 0;
         i++) /* the one that was added last is used first */
        r = srv_ranges_add(&s->windows, windows[i].begin, windows[i].end - windows[i].begin);
    if (r == 0)
        r = uv_loop_init(&s->loop);
    s->account.limit[SRV_WINDOW_BYTES] = srv_ranges_left(&s->windows);
    if (r == 0)
        r = uv_idle_init(&s->loop, &s->ending_idle);
    if (r == 0)
        r = srv_reader_init(&s->reader, &s->loop);
    if (r == 0)
        r = srv_sweeper_init(&s->sweeper, &s->loop);
    if (r < 0)
        return r;
    uv_signal_init(&s->loop, &s->terminate);
    uv_signal_start(&s->terminate, on_terminate, SIGTERM);
    uv_unref((uv_handle_t *)&s->terminate);
    uv_signal_init(&s->loop, &s->dump);
    uv_signal_start(&s->dump, on_dump, SIGUSR1);
    uv_unref((uv_handle_t *)&s->dump);
    uv_timer_init(&s->loop, &s->audit);
    uv_unref((uv_handle_t *)&s->audit);
    uv_timer_init(&s->loop, &s->relink);
    uv_unref((uv_handle_t *)&s->relink);
    signal(SIGPIPE, SIG_IGN);
    tp_files_of_any_size();
    tp_foreign_init(SIGURG);
    srv_executor_init(&s->executor, s);
    return 0;
}

static void executor_ready(struct srv_server *s)
{
    for (uint32_t d = 0; d < s->devices_count; d++)
        s->account.limit[srv_device_bytes(d)] = s->devices[d].memory_total;
    srv_server_limit_memory(s);
    if (!s->announced) {
        s->announced = true;
        for (uint32_t d = 0; d < s->devices_count; d++)
            srv_say(s, "Creating server context on device %u (%s)", d, s->devices[d].name);
        srv_say(s, "CUDA MPS Server for Linux/Unix. Binary version: %u", SRV_CUDA_VERSION);
        srv_say(s, "Active Threads Percentage set to %.1f", s->limits.share_pct);
        srv_say(s, "Server Priority set to %d", s->limits.priority);
        srv_say(s, "Server has started");
        srv_link_ready(s);
    }
    gm_list_for_each (c, &s->sessions, struct srv_session, link)
        if (c->phase == SRV_OPENING)
            srv_session_offer(c);
}

static void executor_failed(struct srv_server *s, int result, const char *reason)
{
    srv_say(s, "Server failed to start: %s", reason);
    srv_link_failed(s, result, reason);
    s->exit_status = 1;
    s->stopping = true;
    gm_list_for_each (c, &s->sessions, struct srv_session, link)
        if (c->phase == SRV_OPENING)
            srv_session_refuse(c, result, reason);
    srv_server_check_end(s);
}

const struct srv_hooks srv_hooks = {
    .executor_ready = executor_ready,
    .executor_failed = executor_failed,
    .executor_ended = srv_server_check_end,
    .session_replay = srv_session_replay,
    .session_resume = srv_session_resume,
    .session_fail = srv_session_fail,
    .session_refuse = srv_session_refuse,
    .session_check_end = srv_session_check_end,
    .allocation_kept = srv_object_keeps,
    .door_open = srv_door_open,
};

static int run(struct srv_server *s)
{
    uv_run(&s->loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&s->ending_idle, NULL); /* it may have been the last handle that ran */
    uv_run(&s->loop, UV_RUN_DEFAULT);
    if (!srv_sweeper_is_stuck(&s->sweeper) && !srv_account_check_clear(&s->account))
        s->exit_status = 1;
    srv_ranges_finish(&s->windows);
    gm_index_finish(&s->tokens);
    gm_index_finish(&s->token_files);
    int r = uv_loop_close(&s->loop);
    if (r < 0)
        gm_error(&topic, "the loop ends with open handles");
    return s->exit_status;
}

int srv_server_run_control(struct srv_server *s, int fd)
{
    int r = srv_peer_open(&s->link, &s->loop, fd, &srv_link_ops);
    if (r < 0) {
        gm_error(&topic, "control daemon's socket: %s", strerror(-r));
        return 1;
    }
    s->has_link = true;
    return run(s);
}

/* Reads the hello of our only client. 0 or -errno. */
static int read_hello(int fd, struct tp_packet *p, struct wire_hello *hello)
{
    const struct timeval bound = { .tv_sec = HELLO_BOUND_S };
    const struct wire_message_info *info = wire_message_info(WIRE_HELLO);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof(bound)) < 0)
        return -errno;
    int r = tp_recv(fd, p);
    if (r <= 0)
        return r == 0 ? -EPIPE : r;
    struct wire_dec body = p->body;
    bool good = p->header.type == WIRE_HELLO && p->fds_count == 0 && info->check(&body);
    tp_packet_discard(p);
    if (!good)
        return -EBADMSG;
    wire_get_hello(&p->body, hello);
    return hello->version >= WIRE_VERSION && hello->protocol_min <= WIRE_VERSION ? 0
                                                                                 : -EPROTONOSUPPORT;
}

static void refuse_hello(struct srv_server *s, int fd, const char *reason)
{
    struct wire_enc e = srv_encoder(s);
    const struct wire_session_failed m = { GM_CUDA_MPS_CONNECTION_FAILED, reason };
    wire_pack_session_failed(&e, 0, &m);
    int r = tp_send(fd, &e, NULL, 0);
    (void)r; /* the client may be gone */
}

int srv_server_run_private(struct srv_server *s, int fd)
{
    static struct tp_packet packet;
    struct wire_hello hello;
    struct tp_peer peer = { 0 };

    s->private_mode = true;
    srv_executor_start(&s->executor); /* it starts while we listen */
    int r = tp_peer(fd, &peer);
    if (r == 0)
        r = read_hello(fd, &packet, &hello);
    if (r < 0) {
        gm_warn(&topic, "hello of process %d: %s", (int)peer.pid, strerror(-r));
        if (r != -EPIPE)
            refuse_hello(s, fd,
                         r == -EPROTONOSUPPORT ? "client and server do not speak the same protocol"
                                               : "no hello came that we understand");
        tp_hang_up(fd);
        s->exit_status = 1;
    } else {
        const struct srv_client client = {
            .pid = (uint32_t)peer.pid,
            .uid = peer.uid,
            .gid = peer.gid,
            .share_pct = hello.share_pct,
            .priority = hello.priority,
            .memory_limits = hello.memory_limits,
            .command = hello.command,
        };
        srv_session_create(s, fd, &client);
    }
    s->stopping = true; /* ends with the only client */
    srv_server_check_end(s);
    return run(s);
}
