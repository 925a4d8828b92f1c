/*
 * Decides how the process runs, and keeps what comes of that. The daemon is asked first, by
 * connecting: a daemon that was set up is meant to be used. If a connection was made and then
 * fails, that is an error (805 or the daemon's), and never a reason to run without limits. If
 * nobody listens, that is an error only with GMUX_REQUIRE (connect.c).
 */
#include "client/session/attach.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/parse.h"
#include "client/entry/hooks.h"
#include "client/entry/late.h"
#include "client/gen/api.h"
#include "client/session/companion.h"
#include "client/session/connect.h"
#include "client/session/older.h"
#include "client/session/session.h"
#include "device/genuine/genuine.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("attach");
static pthread_mutex_t attach_lock = PTHREAD_MUTEX_INITIALIZER;

_Atomic int rt_state = RT_DETACHED;
static struct rt_api genuine_api; /* protected by attach_lock until it is activated */

/* What an attach in progress has made so far. Protected by attach_lock, but not in the child of a
 * fork. */
static struct {
    _Atomic int fd; /* the connection + 1, at least until the session owns it */
    struct rt_session *_Atomic session;
} attaching;

int rt_ready(void)
{
    return GM_LIKELY(atomic_load_explicit(&rt_state, memory_order_acquire) == RT_SESSION)
               ? CUDA_SUCCESS
               : CUDA_ERROR_NOT_INITIALIZED;
}

/* Reads the command line that `ps` shows, with blanks between the arguments. */
static void read_command(char *out, size_t size)
{
    GM_AUTO_FD int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, size - 1) : -1;
    if (n <= 0) {
        (void)snprintf(out, size, "%s", program_invocation_name);
        return;
    }
    while (n > 0 && out[n - 1] == '\0')
        n--;
    for (ssize_t i = 0; i < n; i++)
        if (out[i] == '\0' || out[i] == '\n')
            out[i] = ' ';
    out[n] = '\0';
}

/* Tells the daemon the group and the guarantee, if there are any. Returns 0 or -errno. */
static int say_join(int fd)
{
    uint8_t buffer[128];
    struct wire_enc e;
    double guarantee = 0;
    const char *group = secure_getenv("GMUX_GROUP");
    const char *text = secure_getenv("GMUX_GUARANTEE");
    if (text && *text && !gm_parse_share(text, &guarantee))
        gm_warn(&topic, "GMUX_GUARANTEE=%s is not a percentage; ignored", text);
    if (group && strlen(group) > 64) {
        gm_warn(&topic, "GMUX_GROUP is too long; ignored");
        group = NULL;
    }
    if (!(group && *group) && guarantee <= 0)
        return 0;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_join(&e, 0, &(struct wire_join) { .group = group, .guarantee_pct = guarantee });
    return tp_send(fd, &e, NULL, 0);
}

/* Tells the daemon the name of the partition, which the daemon checks. */
static int say_partition(int fd)
{
    uint8_t buffer[256];
    struct wire_enc e;
    const char *name = secure_getenv("CUDA_MPS_SM_PARTITION");
    if (!name || !*name)
        return 0;
    if (strlen(name) > 128)
        name = "?"; /* no partition has this name */
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_partition(&e, 0, &(struct wire_partition) { .name = name });
    return tp_send(fd, &e, NULL, 0);
}

int rt_say_hello(int fd, bool has_daemon)
{
    char command[1024];
    uint8_t buffer[4096];
    struct wire_enc e;
    double share = 0;
    uint64_t priority;
    const char *share_text = secure_getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    const char *priority_text = secure_getenv("CUDA_MPS_CLIENT_PRIORITY");
    const char *limits = secure_getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");

    if (share_text && !gm_parse_percentage(share_text, &share))
        gm_warn(&topic, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=%s is not a percentage; ignored",
                share_text);
    bool has_priority = priority_text && gm_parse_u64(priority_text, 1, &priority);
    if (priority_text && !has_priority)
        gm_warn(&topic, "CUDA_MPS_CLIENT_PRIORITY=%s is neither 0 nor 1; ignored", priority_text);
    if (limits && strlen(limits) > 512) {
        gm_warn(&topic, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT is too long; ignored");
        limits = NULL;
    }
    read_command(command, sizeof(command));
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_hello(&e, 1,
                    &(struct wire_hello) {
                        .version = WIRE_VERSION,
                        .protocol_min = WIRE_VERSION,
                        .share_pct = share,
                        .priority = has_priority ? (int32_t)priority : -1,
                        .memory_limits = limits,
                        .command = command,
                    });
    int r = has_daemon ? say_join(fd) : 0;
    if (r == 0 && has_daemon)
        r = say_partition(fd);
    return r < 0 ? r : tp_send(fd, &e, NULL, 0);
}

/* --- forks ------------------------------------------------------------------------------------ */

static void before_fork(void)
{
    rt_companion_fork_prepare();
    rt_hooks.fork_prepare();
}

static void after_fork_in_parent(void)
{
    rt_hooks.fork_parent();
    rt_companion_fork_end();
}

/* Forgets the attach of a thread that the child does not have. The child may attach itself. */
static void forget_attaching(void)
{
    int fd = atomic_load(&attaching.fd) - 1;
    if (attaching.session)
        rt_session_abandon(attaching.session);
    else if (fd >= 0)
        gm_close(fd);
    attaching.session = NULL;
    atomic_store(&attaching.fd, 0);
    rt_session = NULL;
    (void)pthread_mutex_init(&attach_lock, NULL);
}

/* Only the thread that forked lives on in the child. It must not have a current context, and no
 * thread may have the session. */
static void after_fork_in_child(void)
{
    rt_hooks.fork_child();
    rt_companion_fork_end();
    switch (atomic_load(&rt_state)) {
    case RT_DETACHED:
        forget_attaching();
        break;
    case RT_SESSION:
        atomic_store(&rt_state, RT_FORKED);
        rt_session_abandon(rt_session);
        break;
    default:
        break;
    }
}

/* Registers the handlers of forks. If a fork comes in the middle of it, another thread or the child
 * does it again. */
static void watch_forks(void)
{
    static atomic_bool done;
    if (!atomic_exchange(&done, true))
        (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* --- attaching -------------------------------------------------------------------------------- */

/* A daemon that has just been connected to may hand the program over to a server that is dying. It
 * knows better the next time. */
#define DAEMON_TRIES 3u
#define TRY_AGAIN    (-1) /* no CUresult */

static int open_session(int fd, bool is_private, bool may_try_again)
{
    const char *const peer = is_private ? "private server" : "daemon";
    char why[600] = "";
    struct rt_session *s;

    int r = rt_say_hello(fd, !is_private);
    s = r < 0 ? NULL : rt_session_create(fd);
    attaching.session = s;
    atomic_store(&attaching.fd, 0); /* the session owns it now */
    if (r < 0) {
        gm_close(fd);
        rt_attach_say("the %s hung up: %s", peer, strerror(-r));
        return CUDA_ERROR_MPS_CONNECTION_FAILED;
    }
    if (!s) {
        gm_close(fd);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    r = rt_session_open(s, why, sizeof(why));
    if (r != CUDA_SUCCESS) {
        const bool again = s->unanswered && may_try_again;
        attaching.session = NULL;
        rt_session_close(s);
        if (again)
            return TRY_AGAIN;
        rt_attach_say("no session with the %s: %s: error %d", peer, why, r);
        return r;
    }
    s->is_private = is_private;
    s->device_count = rt_device_visible(s->devices, s->device_count);
    if (s->device_count == 0) {
        gm_info(&topic, "CUDA_VISIBLE_DEVICES leaves no device");
        attaching.session = NULL;
        rt_session_close(s);
        return CUDA_ERROR_NO_DEVICE;
    }
    rt_session = s;
    if (s->memory_apart)
        rt_companion_open(s);
    rt_late_decide(false);
    atomic_store(&rt_state, RT_SESSION);
    rt_api_activate(&rt_api_session);
    gm_info(&topic, "%s, server %u, device \"%s\", window %#llx + %#llx",
            is_private ? "private server" : "session with the daemon", s->server_pid,
            s->devices[0].name, (unsigned long long)s->window_base,
            (unsigned long long)s->window_half * 2);
    return CUDA_SUCCESS;
}

static void *genuine_symbol(void *library, const char *symbol)
{
    return dlsym(library, symbol);
}

/* Makes the genuine driver's functions the active ones. CUDA_ERROR_NO_DEVICE means that there is no
 * genuine driver here. */
static int pass_through(unsigned flags, char *why, size_t why_size)
{
    void *library = dev_genuine_library(why, why_size);
    if (!library)
        return CUDA_ERROR_NO_DEVICE;
    rt_api_load(&genuine_api, genuine_symbol, library);
    int r = (int)genuine_api.cuInit(flags);
    if (r == CUDA_SUCCESS) {
        rt_late_decide(true);
        rt_api_activate(&genuine_api);
        atomic_store(&rt_state, RT_GENUINE);
        gm_info(&topic, "pass-through to the genuine driver");
    }
    return r;
}

static int attach_private(char *why, size_t why_size)
{
    int fd = rt_private_start(why, why_size);
    if (fd < 0) {
        gm_error(&topic, "no private server: %s", why);
        return CUDA_ERROR_NO_DEVICE;
    }
    atomic_store(&attaching.fd, fd + 1);
    return open_session(fd, true, false);
}

/* A checked program gets a software device of its own whatever else there is, so that no other
 * program is slowed down. */
static int attach_checked(char *why, size_t why_size)
{
    if (rt_sharing_required()) {
        rt_attach_say("GMUX_CHECK is for private servers, and GMUX_REQUIRE asks for the daemon");
        return CUDA_ERROR_MPS_CONNECTION_FAILED;
    }
    int r = attach_private(why, why_size);
    r = r ? r : rt_hooks.check_begin();
    if (r && rt_session) {
        rt_attach_say("this device has no checker (error %d): GMUX_CHECK needs the software device",
                      r);
        tp_session_fail(&rt_session->shared, (uint32_t)r, 0);
    }
    return r;
}

/* TRY_AGAIN: there is no daemon, and `fd` says why. */
static int attach_to_daemon(int *fd)
{
    int r = TRY_AGAIN;
    for (unsigned left = DAEMON_TRIES; r == TRY_AGAIN; left--) {
        *fd = rt_daemon_connect(&attaching.fd);
        if (*fd < 0)
            return left == DAEMON_TRIES ? TRY_AGAIN : CUDA_ERROR_MPS_CONNECTION_FAILED;
        r = open_session(*fd, false, left > 1);
    }
    return r;
}

static int attach_locked(unsigned flags)
{
    char why[600] = "";
    if (!rt_check_read(why, sizeof(why))) {
        rt_attach_say("%s", why);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (rt_checks)
        return attach_checked(why, sizeof(why));
    int fd, r = attach_to_daemon(&fd);
    if (r != TRY_AGAIN)
        return r;
    atomic_store(&attaching.fd, 0);
    gm_debug(&topic, "no daemon");
    if (fd == -EAGAIN || rt_sharing_required())
        return CUDA_ERROR_MPS_CONNECTION_FAILED;

    r = pass_through(flags, why, sizeof(why));
    if (r != CUDA_ERROR_NO_DEVICE)
        return r;
    gm_debug(&topic, "no genuine driver: %s", *why ? why : "it has no device");

    return attach_private(why, sizeof(why));
}

/* --- leaving ---------------------------------------------------------------------------------- */

/* Leaves the session for the genuine library, which is the companion already: it was initialised
 * for the session's devices, and not for a daemon of NVIDIA's. Called with attach_lock held. */
static int leave_locked(void)
{
    char why[256];
    if (!rt_session_leave(rt_session)) {
        rt_older_say(RT_OLDER_TOO_LATE);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    int r = pass_through(0, why, sizeof(why));
    if (r == CUDA_SUCCESS)
        rt_older_say(RT_OLDER_LEFT);
    return r;
}

int rt_attach_leave(bool used)
{
    int r = CUDA_SUCCESS;
    if (rt_sharing_required() || used) {
        rt_older_say(used ? RT_OLDER_TOO_LATE : RT_OLDER_REFUSED);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    pthread_mutex_lock(&attach_lock);
    if (atomic_load(&rt_state) == RT_SESSION)
        r = leave_locked();
    pthread_mutex_unlock(&attach_lock);
    return r;
}

/* --- the end of the process ------------------------------------------------------------------- */

static struct rt_api ended_api;

/* Stands for functions with any parameters, which it ignores. */
static CUresult ended(void)
{
    return CUDA_ERROR_DEINITIALIZED;
}

static void *find_ended(void *arg, const char *symbol)
{
    void *texts = strcmp(symbol, "cuGetErrorName") == 0     ? (void *)(uintptr_t)rt_cuGetErrorName
                  : strcmp(symbol, "cuGetErrorString") == 0 ? (void *)(uintptr_t)rt_cuGetErrorString
                                                            : NULL;
    return texts ? texts : (void *)(uintptr_t)ended;
}

/* Makes every later call fail. The driver, too, has such a handler from cuInit on: destructors of
 * static objects that call it afterwards learn that it has ended. */
static void end_calls(void)
{
    if (atomic_load(&rt_state) != RT_SESSION)
        return;
    if (rt_checks)
        rt_hooks.check_end();
    (void)rt_api_load(&ended_api, find_ended, NULL);
    rt_api_activate(&ended_api);
}

int rt_attach(unsigned flags)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    int r = CUDA_SUCCESS;
    switch (atomic_load(&rt_state)) {
    case RT_SESSION:
        return CUDA_SUCCESS;
    case RT_FORKED:
        return CUDA_ERROR_NOT_INITIALIZED;
    default:
        break;
    }
    (void)pthread_once(&once, watch_forks);
    pthread_mutex_lock(&attach_lock);
    if (atomic_load(&rt_state) == RT_DETACHED)
        r = attach_locked(flags);
    /* The program has used nothing yet. Later, when its runtime asks (export_table.c), it may
     * have. */
    if (atomic_load(&rt_state) == RT_SESSION && rt_session->memory_apart && rt_older_loaded() &&
        !rt_sharing_required())
        (void)leave_locked();
    attaching.session = NULL;
    atomic_store(&attaching.fd, 0);
    if (atomic_load(&rt_state) == RT_SESSION)
        (void)atexit(end_calls);
    pthread_mutex_unlock(&attach_lock);
    return r;
}

int rt_attach_driver_version(int *version)
{
    char why[256];
    if (atomic_load(&rt_state) == RT_SESSION) {
        *version = rt_session->driver_version;
        return CUDA_SUCCESS;
    }
    *version = CUDA_VERSION;
    void *library = dev_genuine_library(why, sizeof(why));
    CUresult (*genuine)(int *) =
        library ? (CUresult(*)(int *))dlsym(library, "cuDriverGetVersion") : NULL;
    return genuine ? (int)genuine(version) : CUDA_SUCCESS;
}
