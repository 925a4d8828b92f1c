/*
 * The daemon's life: it takes the directory and its lock, opens sockets and logs, runs the loop,
 * and cleans up at its end. See daemon.h.
 *
 * There is one daemon for each pipe directory: the one that holds the lock on `control_lock`. The
 * kernel releases the lock however a daemon dies. So the holder may replace what a dead daemon
 * left.
 */
#include "control/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "control/caller.h"
#include "control/command.h"
#include "control/conn.h"
#include "control/door.h"
#include "control/group.h"
#include "control/link.h"
#include "control/log.h"
#include "control/options.h"
#include "control/partition.h"
#include "control/place.h"
#include "control/queue.h"
#include "control/quit.h"
#include "control/return.h"
#include "control/server.h"
#include "control/service.h"
#include "control/spawn.h"
#include "control/state.h"
#include "control/users.h"
#include "transport/foreign.h"
#include "transport/memfd.h"

/* --- end -------------------------------------------------------------------------------------- */

static void close_handle(uv_handle_t *h)
{
    if (!uv_is_closing(h))
        uv_close(h, NULL);
}

/* There is nothing left to wait for. When the last UI learns of the end, the next daemon can
 * already take the directory. */
static void finish(struct ctl_daemon *d)
{
    for (size_t i = 0; i < GM_ARRAY_LEN(d->listeners); i++) {
        close_handle((uv_handle_t *)&d->listeners[i].poll);
        d->listeners[i].fd = gm_close(d->listeners[i].fd);
    }
    close_handle((uv_handle_t *)&d->watch);
    gm_list_for_each (n, &d->names, struct ctl_named, link)
        ctl_door_close_server(d, n);
    ctl_log(d, "Exit with status 0");
    ctl_place_leave(d);

    ctl_partition_known(d); /* no server will describe the devices now */
    gm_list_for_each_safe (r, &d->quits, struct ctl_request, link) {
        gm_list_remove(&r->link);
        ctl_request_finish(r);
    }
    gm_list_for_each_safe (c, &d->conns, struct ctl_conn, link)
        ctl_conn_close(c);
    for (size_t i = 0; i < GM_ARRAY_LEN(d->signals); i++)
        close_handle((uv_handle_t *)&d->signals[i]);
    ctl_callers_sweep(d);
    ctl_timer_close(d->sweep);
    ctl_timer_close(d->advance);
    ctl_timer_close(d->backoff);
    ctl_timer_close(d->end);
}

/* Ends the daemon. The loop calls this later, because it frees objects that callers still use where
 * the end of the last server is noticed. */
static void on_end(void *daemon)
{
    struct ctl_daemon *d = daemon;
    if (!gm_list_empty(&d->servers) || d->finished)
        return;
    d->finished = true;
    finish(d);
}

/* --- start ------------------------------------------------------------------------------------ */

static void on_place(uv_fs_event_t *watch, const char *name, int events, int status);

/* Watches the pipe directory, and makes again what has been removed from it. If something was, the
 * watch may be on a directory that is gone, so it begins again. */
static void watch_place(struct ctl_daemon *d)
{
    int missing;
    do {
        uv_fs_event_stop(&d->watch);
        int r = uv_fs_event_start(&d->watch, on_place, d->pipe_directory, 0);
        /* Names may have changed before the watch began. */
        missing = ctl_place_restore(d);
        if (missing > 0)
            ctl_conn_listen(d, true);
        else if (r < 0 && missing == 0)
            ctl_log(d, "Cannot watch the pipe directory: %s", uv_strerror(r));
    } while (missing > 0);
    if (missing < 0) {
        uv_fs_event_stop(&d->watch);
        ctl_quit(d, -1);
    }
}

/* A name in the pipe directory has changed. Programs find the daemon by these names: without them
 * programs would run without it, and a second daemon would find no lock. */
static void on_place(uv_fs_event_t *watch, const char *name, int events, int status)
{
    struct ctl_daemon *d = watch->data;
    (void)name;
    (void)events;
    (void)status;
    if (d->finished)
        return;
    watch_place(d);
    if (!d->quitting)
        ctl_door_restore(d);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct ctl_daemon *d = handle->data;
    if (number == SIGCHLD) {
        ctl_server_reap(d);
    } else if (number == SIGHUP) {
        ctl_place_reopen_logs(d);
        gm_list_for_each (n, &d->names, struct ctl_named, link)
            ctl_logfile_reopen(&n->log, -1);
    } else {
        ctl_log(d, "Signal %d (%s): quit", number, strsignal(number));
        ctl_quit(d, 0);
    }
}

/* Unblocks all signals. The process that started the daemon may have blocked some, and the daemon
 * must learn when a server ends. */
static void unblock_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Raises the limit of descriptors, which connections and clients need, as far as the system lets
 * it. Returns how many connections there may be. */
static unsigned raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 256;
    limit.rlim_cur = GM_MIN(limit.rlim_max, (rlim_t)65536);
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
    /* The other half is for servers, files and descriptors on their way to servers. */
    return limit.rlim_cur > 64 ? (unsigned)(limit.rlim_cur - 32) / 2 : 16;
}

static int start_loop(struct ctl_daemon *d)
{
    static const int numbers[] = { SIGCHLD, SIGHUP, SIGINT, SIGTERM };
    _Static_assert(GM_ARRAY_LEN(numbers) == GM_ARRAY_LEN(((struct ctl_daemon *)0)->signals),
                   "one handle each");
    int r = uv_loop_init(&d->loop);
    for (size_t i = 0; r == 0 && i < GM_ARRAY_LEN(numbers); i++) {
        uv_signal_init(&d->loop, &d->signals[i]);
        d->signals[i].data = d;
        r = uv_signal_start(&d->signals[i], on_signal, numbers[i]);
    }
    for (size_t i = 0; r == 0 && i < GM_ARRAY_LEN(d->listeners); i++) {
        r = uv_poll_init(&d->loop, &d->listeners[i].poll, d->listeners[i].fd);
        d->listeners[i].poll.data = d;
    }
    if (r == 0)
        r = uv_fs_event_init(&d->loop, &d->watch);
    if (r < 0)
        return r;
    d->sweep = ctl_timer_create(&d->loop, ctl_conn_sweep, d);
    d->advance = ctl_timer_create(&d->loop, ctl_callers_advance, d);
    d->end = ctl_timer_create(&d->loop, on_end, d);
    if (!d->sweep || !d->advance || !d->end)
        return -ENOMEM;
    d->watch.data = d;
    watch_place(d);
    ctl_conn_listen(d, true);
    return 0;
}

/* Closes the descriptors of the terminal or of the calling program, so that they are not held for
 * ever. */
static void detach(void)
{
    int zero = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (zero < 0)
        return;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        dup2(zero, fd);
    gm_close(zero);
}

static void say_started(struct ctl_daemon *d)
{
    ctl_log(d, "Starting control daemon using socket %s/control", d->pipe_directory);
    ctl_log(d, "To connect CUDA applications to this daemon, set %sCUDA_MPS_PIPE_DIRECTORY=%s",
            d->options.modules ? "" : "env ", d->pipe_directory);
    ctl_log(d, "CUDA MPS Control binary version: %d", CTL_BINARY_VERSION);
}

static void daemon_destroy(struct ctl_daemon *d)
{
    if (!d)
        return;
    ctl_logfile_finish(&d->control_log);
    ctl_logfile_finish(&d->server_log);
    ctl_users_free(d);
    ctl_groups_free(d);
    ctl_partitions_free(d);
    ctl_names_free(d);
    ctl_inherited_finish(&d->options.inherited);
    free(d->program);
    free(d->pipe_directory);
    free(d->log_directory);
    free(d->server_path);
    free(d);
}
GM_DEFINE_CLEANUP(daemon_cleanup, struct ctl_daemon *, daemon_destroy)

static void apply_config(struct ctl_daemon *d)
{
    const struct ctl_config *c = &d->options.config;
    d->loading = true;
    for (unsigned i = 0; i < c->count; i++) {
        ctl_log(d, "From the configuration: %s", c->commands[i]);
        if (!ctl_command_run(d, NULL, true, c->commands[i]))
            ctl_log(d, "Out of memory: it has no effect");
    }
    d->loading = false;
}

static void server_gone(struct ctl_daemon *d)
{
    ctl_partition_server_gone(d);
    ctl_quit_server_gone(d);
}

/* The functions by which lower parts of the daemon tell those above them. */
const struct ctl_hooks ctl_hooks = {
    .command = ctl_command_received,
    .request_left = ctl_request_orphan,
    .server_returned = ctl_return_server,
    .client = ctl_queue_admit,
    .turn = ctl_queue_advance,
    .server_gone = server_gone,
    .server_ends = ctl_link_give_up,
    .parts_known = ctl_partition_known,
    .link = &ctl_link_ops,
};

int ctl_daemon_run(const struct ctl_options *options, bool background, int ready_fd, char **argv)
{
    GM_CLEANUP(daemon_cleanup) struct ctl_daemon *d = calloc(1, sizeof(*d));
    if (!d)
        return 1;
    *d = (struct ctl_daemon) {
        .options = *options,
        .uid = geteuid(),
        .pid = getpid(),
        .server_path = ctl_spawn_find_server(),
        /* The server that was built with this daemon. */
        .server_name = ctl_is_classic_name(argv[0]) ? "nvidia-cuda-mps-server" : "gmux-server",
        .program = realpath("/proc/self/exe", NULL),
        .argv = argv,
        .control_log = { .directory = -1, .fd = -1, .echo = background ? -1 : STDOUT_FILENO },
        .server_log = { .directory = -1, .fd = -1, .echo = background ? -1 : STDOUT_FILENO },
        .listeners = { { .fd = -1 }, { .fd = -1 } },
        .pipe_fd = -1,
        .lock_fd = -1,
        .conns_max = raise_descriptor_limit(),
        .backoff_ms = CTL_BACKOFF_MS,
        .memacct = true,
    };
    if (options->restarted) {
        d->returning = options->returning;
        d->return_by_ns = gm_now_ns() + CTL_RETURN_MS * GM_NS_PER_MS;
    }
    gm_list_init(&d->conns);
    gm_list_init(&d->callers);
    gm_list_init(&d->users);
    gm_list_init(&d->groups);
    gm_list_init(&d->names);
    gm_list_init(&d->doors);
    gm_list_init(&d->partitions);
    gm_list_init(&d->part_waits);
    gm_list_init(&d->servers);
    gm_list_init(&d->queue);
    gm_list_init(&d->quits);
    ctl_limits_from_environment(&d->limits);
    ctl_log_init(d);
    unblock_signals();
    signal(SIGPIPE, SIG_IGN);
    tp_files_of_any_size();
    tp_foreign_init(SIGURG);

    if (ctl_place_open(d) < 0)
        return 1; /* it has logged the reason */
    int r = start_loop(d);
    if (r < 0) {
        fprintf(stderr, "gmux-control: cannot start: %s\n", strerror(-r));
        return 1;
    }
    say_started(d);
    apply_config(d);
    ctl_state_load(d, ctl_command_again);
    ctl_inherited_finish(&d->options.inherited);
    if (background) {
        /* So the daemon does not keep a file system mounted. Nothing depends on it. */
        if (chdir("/") < 0)
            ctl_log(d, "Cannot change to /: %s", strerror(errno));
        detach();
    }
    if (ready_fd >= 0) {
        ssize_t written = write(ready_fd, "", 1);
        (void)written; /* the parent has gone, and nobody waits */
        gm_close(ready_fd);
    }
    ctl_service_ready();
    uv_run(&d->loop, UV_RUN_DEFAULT);
    uv_loop_close(&d->loop);
    return 0;
}
