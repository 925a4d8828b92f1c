#include "transport/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

/* A file in memory of so many bytes is closed at once: to free the pages of a large one takes its time. */
#define LITTLE (1u << 20)

/* So many may hang before the others wait. */
#define CLOSERS_MAX   64u
#define CLOSERS_STACK (64u << 10)

struct closing {
    struct closing *next;
    int fd;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct closing *closings;
static unsigned closers;

bool tp_is_memory(int fd)
{
    return fcntl(fd, F_GET_SEALS) >= 0;
}

static bool is_quick(int fd)
{
    struct stat st;
    return tp_is_memory(fd) && fstat(fd, &st) == 0 && st.st_blocks <= LITTLE / 512;
}

static struct closing *next(void)
{
    pthread_mutex_lock(&lock);
    struct closing *c = closings;
    if (c)
        closings = c->next;
    else
        closers--;
    pthread_mutex_unlock(&lock);
    return c;
}

static void *closer(void *unused)
{
    for (struct closing *c; (c = next());) {
        close(c->fd);
        free(c);
    }
    return unused;
}

static bool start_closer(void)
{
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, CLOSERS_STACK);
    int r = pthread_create(&thread, &attr, closer, NULL);
    pthread_attr_destroy(&attr);
    return r == 0;
}

static void close_later(struct closing *c)
{
    pthread_mutex_lock(&lock);
    c->next = closings;
    closings = c;
    /* Without a thread it stays until there is one: better than to wait here. */
    if (closers < CLOSERS_MAX && start_closer())
        closers++;
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

int tp_hang_up(int fd)
{
    if (fd >= 0)
        shutdown(fd, SHUT_RDWR);
    return tp_close_foreign(fd);
}
