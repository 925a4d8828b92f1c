/*
 * Starts server processes, tries again if that fails, hands clients over to them, and ends them.
 * What servers say over the link is in link.c.
 */
#include "control/server.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "control/cgroup.h"
#include "control/conn.h"
#include "control/group.h"
#include "control/log.h"
#include "control/partition.h"
#include "control/process.h"
#include "control/space.h"
#include "control/spawn.h"
#include "control/users.h"

/* How many lines a server may write at once, and in a second in the long run. */
#define LINES_BURST 5000
#define LINES_RATE  200

/* How often the link of a server that has ended is read for its last packets. */
#define LAST_BURSTS 64

#define TICK_MS 250
/* Above every process id of Linux. NVIDIA's servers use numbers there, too. */
#define HIDDEN_PIDS 0x40000000u

static void start(struct ctl_server *s);
static void on_timer(void *owner);

void ctl_server_name(struct ctl_server *s, struct ctl_named *named)
{
    s->named = named;
    if (named)
        snprintf(s->name, sizeof(s->name), "%s", named->name);
    else
        ctl_name_of_user(s->uid, s->name);
}

struct ctl_server *ctl_server_new(struct ctl_daemon *d, uid_t uid, gid_t gid,
                                  struct ctl_named *named)
{
    struct ctl_server *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->daemon = d;
    s->uid = uid;
    s->gid = gid;
    s->process = -1;
    ctl_server_name(s, named);
    gm_list_init(&s->pending);
    gm_list_init(&s->clients);
    gm_list_init(&s->asked);
    s->timer = ctl_timer_create(&d->loop, on_timer, s);
    if (!s->timer) {
        free(s);
        return NULL;
    }
    s->limits = d->limits;
    ctl_ration_init(&s->lines, LINES_BURST, LINES_RATE);
    gm_list_append(&d->servers, &s->link);
    d->servers_count++;
    return s;
}

struct ctl_server *ctl_server_create(struct ctl_daemon *d, uid_t uid, gid_t gid,
                                     struct ctl_named *named)
{
    struct ctl_server *s = ctl_server_new(d, uid, gid, named);
    if (s)
        start(s);
    return s;
}

static void close_process(struct ctl_server *s)
{
    ctl_channel_close(s->channel);
    s->channel = NULL;
    ctl_lines_close(s->output);
    s->output = NULL;
    s->pid = 0;
    s->process = gm_close(s->process);
}

static void forget_client(struct ctl_server *s, struct ctl_client *c)
{
    gm_list_remove(&c->link);
    s->clients_count--;
    ctl_group_put(c->group);
    free(c);
}

static void refuse_pending(struct ctl_server *s, int result, const char *reason)
{
    while (!gm_list_empty(&s->pending))
        ctl_conn_refuse(gm_list_entry(s->pending.next, struct ctl_conn, waiting), result, reason);
}

static void destroy(struct ctl_server *s)
{
    struct ctl_daemon *d = s->daemon;
    close_process(s);
    ctl_timer_close(s->timer);
    gm_list_remove(&s->link);
    d->servers_count--;
    refuse_pending(s, GM_CUDA_MPS_CONNECTION_FAILED, "the server has ended");
    gm_list_for_each_safe (c, &s->clients, struct ctl_client, link)
        forget_client(s, c);
    ctl_hooks.server_ends(s);
    free(s);
    ctl_hooks.server_gone(d);
}

bool ctl_users_take_turns(const struct ctl_daemon *d)
{
    bool exclusive = d->options.exclusive_user;
    for (unsigned i = 0; i < d->devices_count && d->devices_believed; i++)
        exclusive |= d->devices[i].exclusive;
    return exclusive;
}

/* --- start ------------------------------------------------------------------------------------ */

/* Whether the device turned out to admit one server and another user's server was there first. Then
 * the clients of this one wait for their turn. */
static bool waits_for_turn(struct ctl_server *s)
{
    struct ctl_daemon *d = s->daemon;
    bool others = false, turns = ctl_users_take_turns(d);
    /* Otherwise both servers have to say so: this one that it found no room, the other that it
     * leaves none. */
    gm_list_for_each (o, &d->servers, struct ctl_server, link)
        others |= o->state == CTL_SERVER_ACTIVE &&
                  (turns || (o->exclusive && s->result == GM_CUDA_DEVICES_UNAVAILABLE));
    if (!others)
        return false;
    ctl_log(d, "Server for user %u cannot start beside another: its clients wait for their turn",
            (unsigned)s->uid);
    while (!gm_list_empty(&s->pending)) {
        struct ctl_conn *c = gm_list_entry(s->pending.next, struct ctl_conn, waiting);
        gm_list_remove(&c->waiting);
        gm_list_append(&d->queue, &c->waiting);
    }
    destroy(s);
    return true;
}

/* The process died before it was ready, or was never started. Frees `s` if it gives up. */
static void start_failed(struct ctl_server *s)
{
    struct ctl_daemon *d = s->daemon;
    close_process(s);
    if (waits_for_turn(s))
        return;
    if (s->starts < CTL_SERVER_STARTS) {
        unsigned pause = CTL_RETRY_MS << (s->starts - 1);
        ctl_log(d, "Server for user %u failed to start: %s. Trying again in %ums (%u of %d)",
                (unsigned)s->uid, s->cause, pause, s->starts, CTL_SERVER_STARTS - 1);
        s->state = CTL_SERVER_RETRYING;
        ctl_timer_start(s->timer, pause);
        return;
    }
    ctl_log(d, "Server for user %u failed to start %d times, giving up: %s", (unsigned)s->uid,
            CTL_SERVER_STARTS, s->cause);
    refuse_pending(s, s->result ? s->result : GM_CUDA_MPS_CONNECTION_FAILED, s->cause);
    destroy(s);
}

static void on_output(void *owner, const char *line)
{
    struct ctl_server *s = owner;
    ctl_server_log(s, line);
    if (s->state == CTL_SERVER_STARTING && !s->result) /* it has not said itself why it fails */
        snprintf(s->cause, sizeof(s->cause), "%.*s", (int)sizeof(s->cause) - 1, line);
}

static void send_setup(struct ctl_server *s)
{
    uint8_t buffer[10240];
    char memory[CTL_MEMORY_TEXT_MAX + 1];
    struct wire_enc e;
    ctl_limits_memory_text(&s->limits, memory);
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_link_setup(&e, 0,
                         &(struct wire_link_setup) { .share_pct = s->limits.share_pct,
                                                     .priority = s->limits.priority,
                                                     .memory_limits = memory,
                                                     .pipe_directory = s->daemon->pipe_directory,
                                                     .multiuser = s->daemon->options.multiuser });
    ctl_server_send(s, &e);
}

/* Starts the process. What goes wrong is noticed later, by the timer or when the process ends. */
static void start(struct ctl_server *s)
{
    struct ctl_daemon *d = s->daemon;
    struct ctl_spawn how = {
        .path = d->server_path,
        .name = d->server_name,
        .change_user = d->uid == 0 && s->uid != d->uid,
        .uid = s->uid,
        .gid = s->gid,
        .visible_devices = s->named && *s->named->visible ? s->named->visible : NULL,
    };
    int link_fd, output_fd;
    s->state = CTL_SERVER_STARTING;
    s->starts++;
    s->cause[0] = '\0';
    s->result = 0;
    s->killed = false;
    s->initialised = false;
    s->knows_spaces = true; /* a new server knows as much as this daemon */
    pid_t pid = ctl_spawn_server(&how, &link_fd, &output_fd);
    if (pid < 0) {
        snprintf(s->cause, sizeof(s->cause), "cannot make a process: %s", strerror((int)-pid));
        ctl_timer_start(s->timer, 0);
        return;
    }
    s->pid = pid;
    ctl_logfile_write(&d->control_log, "Control", pid, "Starting new server %d for user %u",
                      (int)pid, (unsigned)s->uid);
    s->channel = ctl_channel_create(&d->loop, link_fd, ctl_hooks.link, s);
    s->output = ctl_lines_create(&d->loop, output_fd, on_output, s);
    if (!s->channel || !s->output) {
        ctl_server_kill(s, "out of memory");
        return;
    }
    ctl_timer_start(s->timer, CTL_START_MS);
    send_setup(s);
}

/* --- clients ---------------------------------------------------------------------------------- */

struct ctl_client *ctl_server_client(struct ctl_server *s, uint32_t key)
{
    gm_list_for_each (c, &s->clients, struct ctl_client, link)
        if (c->key == key)
            return c;
    return NULL;
}

struct ctl_client *ctl_server_add_client(struct ctl_server *s, uint32_t key, uid_t uid,
                                         const struct ctl_wish *wish, const char *command)
{
    struct ctl_client *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->key = key;
    while (c->key == 0 || ctl_server_client(s, c->key))
        c->key = HIDDEN_PIDS + s->daemon->next_hidden_pid++ % HIDDEN_PIDS;
    c->uid = uid;
    c->wish = *wish;
    c->memory_most = UINT64_MAX;
    snprintf(c->command, sizeof(c->command), "%s", command);
    gm_list_append(&s->clients, &c->link);
    s->clients_count++;
    return c;
}

/* Whether the user may have another client on the way to this server. Clients that come faster than
 * the server takes them must not fill its link. */
static bool has_room(const struct ctl_server *s, uid_t uid)
{
    unsigned n = 0;
    if (s->daemon->options.multiuser)
        gm_list_for_each (c, &s->clients, struct ctl_client, link)
            n += c->uid == uid;
    return s->clients_count < CTL_CLIENTS_MAX && n < CTL_CLIENTS_PER_USER;
}

void ctl_server_client_left(struct ctl_server *s, struct ctl_client *c)
{
    forget_client(s, c);
    if (!s->clients_count)
        ctl_hooks.turn(s->daemon);
}

/* Whether the client is to have a partition that this server cannot give: it must not get the whole
 * device instead. */
static bool wants_impossible(const struct ctl_daemon *d, const struct ctl_conn *conn)
{
    return *conn->partition && !ctl_partitions_hold(d);
}

static void hand_over(struct ctl_server *s, struct ctl_conn *conn)
{
    uint8_t buffer[2048];
    struct wire_enc e;
    struct ctl_daemon *d = s->daemon;
    struct ctl_client *c = NULL;
    if (wants_impossible(d, conn)) {
        ctl_conn_refuse(conn, GM_CUDA_INVALID_RESOURCE_CONFIGURATION,
                        "CUDA_MPS_SM_PARTITION: multiprocessors are not partitioned here");
        return;
    }
    if (has_room(s, conn->peer.uid))
        c = ctl_server_add_client(s, conn->peer.pid > 0 ? (uint32_t)conn->peer.pid : 0,
                                  conn->peer.uid, &conn->wish, conn->command);
    if (!c) {
        ctl_conn_refuse(conn, GM_CUDA_MPS_MAX_CLIENTS_REACHED, "its server has too many clients");
        return;
    }
    ctl_log_stranger(d, "NEW CLIENT %d from user %u: Server already exists", (int)conn->peer.pid,
                     (unsigned)s->uid);
    if (d->options.multiuser) /* NVIDIA's line names the server's user */
        ctl_log_stranger(d, "Client %u is process %d of user %u", c->key, (int)conn->peer.pid,
                         (unsigned)conn->peer.uid);
    c->space = conn->space;
    c->memory_most = ctl_cgroup_memory(d, s, conn);
    ctl_partition_tell(s, c, conn->partition);
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_link_client(&e, 0,
                          &(struct wire_link_client) { .pid = c->key,
                                                       .uid = conn->peer.uid,
                                                       .gid = conn->peer.gid,
                                                       .share_pct = conn->wish.share_pct,
                                                       .priority = conn->wish.priority,
                                                       .memory_limits = conn->wish.memory,
                                                       .command = conn->command });
    int r = s->channel ? ctl_conn_hand_over(conn, s->channel, &e) : -EPIPE;
    if (r == 0) {
        if (c->space || ctl_user_limits(d, c->uid))
            ctl_client_send_limits(s, c);
        if (c->wish.guarantee_pct > 0 && !s->guarantees)
            ctl_log_stranger(d, "Client %u asks for a guarantee, and the device gives none",
                             c->key);
        if (*c->wish.group || c->wish.guarantee_pct > 0)
            ctl_client_place(s, c);
        return;
    }
    forget_client(s, c);
    if (r != -EPIPE && r != -ECONNRESET && r != -ENOBUFS) {
        ctl_conn_refuse(conn, GM_CUDA_MPS_CONNECTION_FAILED,
                        strerror(-r)); /* the failure is the daemon's, not the server's */
        return;
    }
    /* The server hangs, or has died and the daemon has not been told yet. The client gets the next
     * server. */
    ctl_server_kill(s, r == -ENOBUFS ? "it does not read its link" : "it has closed its link");
    if (++conn->attempts < CTL_SERVER_STARTS)
        ctl_hooks.client(conn);
    else
        ctl_conn_refuse(conn, GM_CUDA_MPS_CONNECTION_FAILED,
                        "servers die as soon as they are ready");
}

void ctl_server_give(struct ctl_server *s, struct ctl_conn *c)
{
    if (s->state == CTL_SERVER_ACTIVE)
        hand_over(s, c);
    else
        gm_list_append(&s->pending, &c->waiting);
}

bool ctl_server_believed(const struct ctl_server *s)
{
    return s->daemon->options.multiuser || s->uid == 0 || s->uid == s->daemon->uid;
}

/* Logs which way of serving several users is in use on a device that admits one context. */
static void log_turns(const struct ctl_server *s)
{
    struct ctl_daemon *d = s->daemon;
    if (d->turns_logged || d->options.exclusive_user || !s->exclusive)
        return;
    d->turns_logged = ctl_users_take_turns(d);
    if (d->options.multiuser)
        ctl_log(d, "The device is in exclusive mode: all users share one server (-M)");
    else if (!ctl_server_believed(s))
        ctl_log(d,
                "Server %d of user %u: The device is in exclusive mode: users take turns; with -M "
                "they would share "
                "one server",
                (int)s->pid, (unsigned)s->uid);
    else
        ctl_log(d, "The device is in exclusive mode: users take turns; with -M they would share "
                   "one server");
}

void ctl_server_ready(struct ctl_server *s)
{
    log_turns(s);
    ctl_log(s->daemon, "NEW SERVER %d: Ready", (int)s->pid);
    s->state = CTL_SERVER_ACTIVE;
    s->starts = 0;
    ctl_timer_stop(s->timer);
    while (s->state == CTL_SERVER_ACTIVE && !gm_list_empty(&s->pending)) {
        struct ctl_conn *c = gm_list_entry(s->pending.next, struct ctl_conn, waiting);
        gm_list_remove(&c->waiting);
        hand_over(s, c);
    }
    while (!gm_list_empty(&s->pending)) { /* the server failed in between */
        struct ctl_conn *c = gm_list_entry(s->pending.next, struct ctl_conn, waiting);
        gm_list_remove(&c->waiting);
        ctl_hooks.client(c);
    }
    ctl_hooks.turn(s->daemon);
}

void ctl_server_limits_changed(struct ctl_server *s)
{
    uint8_t buffer[8192];
    char memory[CTL_MEMORY_TEXT_MAX + 1];
    struct wire_enc e;
    ctl_limits_memory_text(&s->limits, memory);
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_link_limits(
        &e, 0,
        &(struct wire_link_limits) { .share_pct = s->limits.share_pct,
                                     .priority = s->limits.priority,
                                     .memory_limits = memory,
                                     .running = !s->daemon->options.classic_limits });
    ctl_server_send(s, &e);
}

/* --- end -------------------------------------------------------------------------------------- */

/* The process was killed and has not ended: it hangs in a driver, and the daemon stops waiting for
 * it. */
static void abandon(struct ctl_server *s)
{
    ctl_log(s->daemon, "Server %d cannot be killed: it is left behind", (int)s->pid);
    destroy(s);
}

void ctl_server_link_closed(struct ctl_server *s)
{
    if (s->process >= 0) { /* nobody will tell us when it ends */
        ctl_log(s->daemon, "Server %d has ended", (int)s->pid);
        destroy(s);
        return;
    }
    if (s->state == CTL_SERVER_STARTING) {
        if (!s->killed)
            ctl_timer_start(s->timer, CTL_END_MS);
        return;
    }
    s->state = CTL_SERVER_STOPPING;
    s->forced = true; /* it cannot be told any more */
    if (s->killed)
        return;
    if (!s->end_at_ns)
        s->end_at_ns = gm_now_ns() + CTL_END_MS * GM_NS_PER_MS;
    ctl_timer_start(s->timer, TICK_MS);
}

static void send_shutdown(struct ctl_server *s)
{
    uint8_t buffer[64];
    struct wire_enc e;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_link_shutdown(&e, 0, &(struct wire_link_shutdown) { .force = s->forced });
    ctl_server_send(s, &e);
}

/* Whether no client is left, in the system's view as well: a server that hangs does not report. */
static bool deserted(const struct ctl_server *s)
{
    gm_list_for_each (c, &s->clients, struct ctl_client, link)
        if (c->key >= HIDDEN_PIDS || kill((pid_t)c->key, 0) == 0 || errno != ESRCH)
            return false;
    return true;
}

static void tick(struct ctl_server *s)
{
    uint64_t now = gm_now_ns();
    if (s->killed && now >= s->end_at_ns) {
        abandon(s);
        return;
    }
    if (s->force_at_ns && now >= s->force_at_ns && !s->forced)
        ctl_server_shutdown(s, true);
    if (!s->end_at_ns && deserted(s))
        s->end_at_ns = now + CTL_END_MS * GM_NS_PER_MS;
    if (!s->killed && s->end_at_ns && now >= s->end_at_ns)
        ctl_server_kill(s, "it was asked to end and does not"); /* restarts the timer */
    else
        ctl_timer_start(s->timer, TICK_MS);
}

static void on_timer(void *owner)
{
    struct ctl_server *s = owner;
    switch (s->state) {
    case CTL_SERVER_RETRYING:
        start(s);
        break;
    case CTL_SERVER_STARTING:
        if (s->killed) {
            abandon(s);
        } else if (s->pid > 0) {
            ctl_server_kill(s, s->channel ? "it is not ready in time" : "it has closed its link");
        } else {
            start_failed(s);
        }
        break;
    case CTL_SERVER_STOPPING:
        tick(s);
        break;
    case CTL_SERVER_ACTIVE:
        break;
    }
}

void ctl_server_shutdown(struct ctl_server *s, bool force)
{
    struct ctl_daemon *d = s->daemon;
    bool first = s->state != CTL_SERVER_STOPPING;
    if (!first && (!force || s->forced))
        return;
    refuse_pending(s, GM_CUDA_MPS_SERVER_NOT_READY, "the server was told to end");
    s->state = CTL_SERVER_STOPPING;
    if (s->pid == 0) {
        destroy(s);
        return;
    }
    s->forced = force;
    if (force)
        ctl_log(d, "Force shutting down server %d", (int)s->pid);
    else
        ctl_log(d, "Try shutting down server %d, backoff is disabled", (int)s->pid);
    if (force || !s->clients_count)
        s->end_at_ns = gm_now_ns() + CTL_END_MS * GM_NS_PER_MS;
    ctl_timer_start(s->timer, TICK_MS);
    send_shutdown(s);
}

void ctl_server_force_after(struct ctl_server *s, uint64_t ms)
{
    if (s->state != CTL_SERVER_STOPPING || s->forced)
        return;
    uint64_t at = gm_now_ns() + ms * GM_NS_PER_MS;
    if (!s->force_at_ns || at < s->force_at_ns)
        s->force_at_ns = at;
    if (ms == 0)
        ctl_server_shutdown(s, true);
}

static void ended(struct ctl_server *s, int status)
{
    struct ctl_daemon *d = s->daemon;
    char how[96];
    s->killed = true; /* another process may get the process id */
    /* Its last lines may still be in the pipe. */
    if (s->output)
        ctl_lines_drain(s->output);
    for (int i = 0; i < LAST_BURSTS && s->channel; i++)
        ctl_channel_drain(s->channel);
    if (WIFEXITED(status))
        snprintf(how, sizeof(how), "exited with status %d", WEXITSTATUS(status));
    else
        snprintf(how, sizeof(how), "was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    ctl_log(d, "Server %d %s", (int)s->pid, how);
    s->pid = 0;
    if (s->state != CTL_SERVER_STARTING) {
        destroy(s);
        return;
    }
    if (!s->cause[0])
        snprintf(s->cause, sizeof(s->cause), "it %s", how);
    start_failed(s);
}

static struct ctl_server *server_of_process(struct ctl_daemon *d, pid_t pid)
{
    gm_list_for_each (s, &d->servers, struct ctl_server, link)
        if (s->pid == pid)
            return s;
    return NULL;
}

void ctl_server_reap(struct ctl_daemon *d)
{
    siginfo_t child;
    for (;;) {
        int status;
        child.si_pid = 0;
        if (waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) < 0 || child.si_pid == 0)
            return;
        struct ctl_server *s = server_of_process(d, child.si_pid);
        /* The process belonged to a server. Otherwise the server had come back and its link has
         * been closed already, or the server had been left behind. */
        if (waitpid(child.si_pid, &status, WNOHANG) == child.si_pid && s)
            ended(s, status);
    }
}

struct ctl_server *ctl_server_find(struct ctl_daemon *d, const char *word)
{
    uint64_t pid;
    if (!gm_parse_u64(word, INT32_MAX, &pid) || pid == 0)
        return NULL;
    gm_list_for_each (s, &d->servers, struct ctl_server, link)
        if ((uint64_t)s->pid == pid)
            return s;
    return NULL;
}
