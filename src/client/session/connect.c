/*
 * Connects to the daemon that listens in the pipe directory. One that is not trusted
 * (transport/trust.h) gets nothing from this program.
 */
#include "client/session/connect.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "transport/sock.h"
#include "transport/trust.h"

#define DEFAULT_PIPE_DIRECTORY "/tmp/nvidia-mps"
#define ANSWER_S               30
#define ANSWER_MAX_S           86400
#define LOOK_AGAIN_MS          20

static struct gm_log_topic topic = GM_LOG_TOPIC("attach");

/* True for the first call with this format. */
static bool is_news(const char *fmt)
{
    static const char *_Atomic said[12]; /* more than there are calls of rt_attach_say() */
    for (size_t i = 0; i < GM_ARRAY_LEN(said); i++) {
        const char *was = NULL;
        if (atomic_compare_exchange_strong(&said[i], &was, fmt))
            return true;
        if (was == fmt)
            return false;
    }
    return false;
}

void rt_attach_say(const char *fmt, ...)
{
    char text[900];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (secure_getenv("GMUX_LOG"))
        gm_warn(&topic, "%s", text);
    else if (is_news(fmt))
        (void)dprintf(STDERR_FILENO, "gmux: %s\n", text);
}

bool rt_sharing_required(void)
{
    const char *required = secure_getenv("GMUX_REQUIRE");
    return required && strcmp(required, "1") == 0;
}

void rt_answers_within(int fd, bool bounded)
{
    const char *text = secure_getenv("GMUX_ANSWER_TIMEOUT");
    uint64_t seconds = ANSWER_S;
    if (text && (!gm_parse_u64(text, ANSWER_MAX_S, &seconds) || seconds == 0))
        seconds = ANSWER_S;
    struct timeval limit = { .tv_sec = bounded ? (time_t)seconds : 0 };
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

static const char *why_not(int error)
{
    switch (error) {
    case -ENOENT:
    case -ENOTDIR:
        return "there is no socket of a daemon";
    case -ECONNREFUSED:
        return "its daemon has ended";
    case -ENAMETOOLONG:
        return "the path is too long for a socket";
    case -EAGAIN:
        return "its daemon does not answer";
    default:
        return strerror(-error);
    }
}

/* Returns how long to wait for a daemon that is not there. */
static uint64_t patience_ns(void)
{
    const char *text = secure_getenv("GMUX_WAIT");
    uint64_t seconds = 0;
    return text && gm_parse_u64(text, ANSWER_MAX_S, &seconds) ? seconds * GM_NS_PER_S : 0;
}

/* Tries again for as long as the program is patient. Waiting for a change of the directory would
 * not do, because it may not exist yet. */
static int connect_in_time(const char *path, _Atomic int *made)
{
    const struct timespec pause = { .tv_nsec = LOOK_AGAIN_MS * GM_NS_PER_MS };
    const uint64_t patience = patience_ns();
    const uint64_t begin = gm_now_ns();
    int fd = tp_connect_noted(path, made);
    while ((fd == -ENOENT || fd == -ENOTDIR || fd == -ECONNREFUSED) &&
           gm_now_ns() - begin < patience) {
        (void)nanosleep(&pause, NULL);
        fd = tp_connect_noted(path, made);
    }
    return fd;
}

int rt_daemon_connect(_Atomic int *made)
{
    char path[512];
    struct tp_peer peer;
    const char *named = secure_getenv("CUDA_MPS_PIPE_DIRECTORY");
    const char *directory = named && *named ? named : DEFAULT_PIPE_DIRECTORY;
    const char *without =
        rt_sharing_required() ? "refused, since GMUX_REQUIRE is set" : "running without a daemon";
    int n = snprintf(path, sizeof(path), "%s/control", directory);
    GM_AUTO_FD int fd =
        n < 0 || (size_t)n >= sizeof(path) ? -ENAMETOOLONG : connect_in_time(path, made);
    if (fd < 0) {
        /* On most machines nothing listens, and nobody has named another place. */
        if (directory == named || rt_sharing_required() || (fd != -ENOENT && fd != -ENOTDIR))
            rt_attach_say("%.300s: %s: %s", path, why_not(fd),
                          fd == -EAGAIN ? "error 805" : without);
        return fd;
    }
    int r = tp_peer(fd, &peer);
    if (r < 0)
        return r;
    if (tp_daemon_is_trusted(peer.uid))
        return gm_take_fd(&fd);
    rt_attach_say("%.300s: user %u listens there, who is neither root nor you (GMUX_DAEMON_USER=%u "
                  "would believe "
                  "this user): %s",
                  path, (unsigned)peer.uid, (unsigned)peer.uid, without);
    return -EPERM;
}
