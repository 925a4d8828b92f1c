/*
 * Closes descriptors of strangers in threads of its own, so that no other thread hangs in that. The
 * more there is to close, the more threads there are, up to a limit. A thread that hangs is woken
 * by a signal.
 */
#include "transport/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

/* A file in memory with fewer bytes is closed at once. To free the pages of a large one takes
 * time. */
#define LITTLE (1u << 20)

/* Packets of a connection that are looked at before it is closed. */
#define PACKETS_MAX 16u

#define CLOSERS_MAX   64u
#define CLOSERS_STACK (64u << 10)
/* With more descriptors than that waiting, threads that hang are woken, and a thread that adds
 * another one yields: closing must not fall behind where descriptors come fast. */
#define CLOSING_MAX  64u
#define GIVES_WAY_NS 5000000l

struct closing {
    struct closing *next;
    int fd;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t closed = PTHREAD_COND_INITIALIZER;
static struct closing *closings;
static unsigned closing;
static struct closer {
    bool runs;
    pthread_t thread;
} closers[CLOSERS_MAX];
static int wakes;  /* number of the signal; 0: none */
static bool stuck; /* a thread yielded in vain, and nothing has been closed since */

static void nothing(int signal GM_UNUSED)
{
}

void tp_foreign_init(int signal)
{
    struct sigaction sa = { .sa_handler = nothing };
    sigemptyset(&sa.sa_mask);
    if (sigaction(signal, &sa, NULL) == 0)
        wakes = signal;
}

bool tp_is_memory(int fd)
{
    return fcntl(fd, F_GET_SEALS) >= 0;
}

static bool is_quick(int fd)
{
    struct stat st;
    return tp_is_memory(fd) && fstat(fd, &st) == 0 && st.st_blocks <= LITTLE / 512;
}

/* Takes the next descriptor; the thread has closed `done` before. */
static struct closing *next(struct closer *self, unsigned done)
{
    pthread_mutex_lock(&lock);
    closing -= done;
    if (done) {
        stuck = false;
        pthread_cond_broadcast(&closed);
    }
    struct closing *c = closings;
    if (c)
        closings = c->next;
    else
        self->runs = false;
    pthread_mutex_unlock(&lock);
    return c;
}

static void *closer(void *self)
{
    unsigned done = 0;
    for (struct closing *c; (c = next(self, done)); done = 1) {
        close(c->fd);
        free(c);
    }
    return NULL;
}

/* Called with the lock held, as are the functions below. */
static void start_closer(void)
{
    struct closer *c = closers;
    pthread_attr_t attr;
    sigset_t others;
    while (c < closers + CLOSERS_MAX && c->runs)
        c++;
    if (c == closers + CLOSERS_MAX)
        return;
    /* The process's signals are for threads that do not hang. */
    sigfillset(&others);
    if (wakes)
        sigdelset(&others, wakes);
    pthread_attr_init(&attr);
    pthread_attr_setsigmask_np(&attr, &others);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, CLOSERS_STACK);
    c->runs = pthread_create(&c->thread, &attr, closer, c) == 0;
    pthread_attr_destroy(&attr);
}

/* Sends a signal to each thread that hangs: a connection that lingers does so until then. */
static void wake_closers(void)
{
    for (struct closer *c = closers; wakes && c < closers + CLOSERS_MAX; c++)
        if (c->runs)
            pthread_kill(c->thread, wakes);
}

static void give_way(void)
{
    struct timespec until;
    wake_closers();
    if (stuck)
        return;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += GIVES_WAY_NS;
    until.tv_sec += until.tv_nsec / 1000000000l;
    until.tv_nsec %= 1000000000l;
    stuck = pthread_cond_timedwait(&closed, &lock, &until) != 0;
}

static void close_later(struct closing *c)
{
    pthread_mutex_lock(&lock);
    c->next = closings;
    closings = c;
    closing++;
    /* Without a thread the descriptor waits until there is one, which is better than to wait
     * here. */
    start_closer();
    if (closing > CLOSING_MAX)
        give_way();
    pthread_mutex_unlock(&lock);
}

int tp_close_foreign(int fd)
{
    int saved = errno;
    if (fd < 0)
        return -1;
    struct closing *c = is_quick(fd) ? NULL : malloc(sizeof(*c));
    if (c) {
        c->fd = fd;
        close_later(c);
    } else {
        close(fd);
    }
    errno = saved;
    return -1;
}

void tp_packet_discard(struct tp_packet *p)
{
    for (unsigned i = 0; i < p->fds_count; i++)
        p->fds[i] = tp_close_foreign(p->fds[i]);
    p->fds_count = 0;
}

/* Whether nothing that was sent over a connection has descriptors, which the kernel would close.
 * The connection has been shut down. Each packet, even one without bytes, brings credentials, and
 * the end brings none. There is no room for more than credentials, and the kernel reports if more
 * was sent. */
static bool has_no_descriptors(int fd)
{
    char control[CMSG_SPACE(sizeof(struct ucred))];
    const int on = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
        return false;
    for (unsigned i = 0; i < PACKETS_MAX; i++) {
        struct msghdr m = { .msg_control = control, .msg_controllen = sizeof(control) };
        ssize_t n = recvmsg(fd, &m, MSG_PEEK | MSG_DONTWAIT);
        if (n < 0 || (m.msg_flags & MSG_CTRUNC))
            return false;
        if (n == 0 && m.msg_controllen == 0)
            return true;
        if (recv(fd, NULL, 0, MSG_DONTWAIT) < 0)
            return false;
    }
    return false;
}

int tp_hang_up(int fd)
{
    if (fd < 0)
        return -1;
    int saved = errno;
    bool is_harmless = shutdown(fd, SHUT_RDWR) == 0 && has_no_descriptors(fd);
    errno = saved;
    return is_harmless ? gm_close(fd) : tp_close_foreign(fd);
}
