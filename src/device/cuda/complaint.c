/*
 * A thread reads the pipe that standard error is, and passes everything on. Lines about failed
 * assertions are also kept for the program that they are about.
 */
#include "device/cuda/complaint.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

#define KEPT_BYTES 32768u
#define LINE_BYTES 1024u

static struct gm_log_topic topic = GM_LOG_TOPIC("assert");

static int from = -1;   /* the end of the pipe to read from; constant once open, like the next */
static int onward = -1; /* where standard error went before */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char line[LINE_BYTES], kept[KEPT_BYTES]; /* lock */
static size_t line_size, kept_size;

/* A line is complete, perhaps one such as "k.cu:7: void f(int): block: [0,0,0], thread: [3,0,0]
 * Assertion `x > 0` failed." Called with the lock held. */
static void end_line(void)
{
    static const char sign[] = "Assertion `";
    if (memmem(line, line_size, sign, sizeof(sign) - 1) && line_size <= sizeof(kept) - kept_size) {
        memcpy(kept + kept_size, line, line_size);
        kept_size += line_size;
    }
    line_size = 0;
}

static void keep(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        line[line_size++] = text[i];
        if (text[i] == '\n' || line_size == sizeof(line))
            end_line();
    }
}

static void pass_on(const char *text, size_t size)
{
    while (size) {
        ssize_t n = write(onward, text, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* nowhere left to say it */
        text += n;
        size -= (size_t)n;
    }
}

static void drain(void)
{
    char text[4096];
    ssize_t n;
    pthread_mutex_lock(&lock);
    while ((n = read(from, text, sizeof(text))) > 0) {
        pass_on(text, (size_t)n);
        keep(text, (size_t)n);
    }
    pthread_mutex_unlock(&lock);
}

static void *reader(void *arg)
{
    struct pollfd p = { .fd = from, .events = POLLIN };
    (void)arg;
    for (;;)
        if (poll(&p, 1, -1) > 0)
            drain();
    return NULL;
}

/* Passes on what the C library says when it aborts the process. */
static void on_abort(int number)
{
    char text[512];
    ssize_t n;
    (void)number;
    while ((n = read(from, text, sizeof(text))) > 0)
        pass_on(text, (size_t)n);
}

int cuda_complaint_open(void)
{
    const struct sigaction last_words = { .sa_handler = on_abort, .sa_flags = (int)SA_RESETHAND };
    pthread_t thread;
    int ends[2];
    onward = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (onward < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    from = ends[0];
    int r = fcntl(from, F_SETFL, O_NONBLOCK) < 0 ? -errno
                                                 : -pthread_create(&thread, NULL, reader, NULL);
    if (r == 0) {
        pthread_detach(thread);
        gm_log_to(onward);
        r = dup2(ends[1], STDERR_FILENO) < 0 ? -errno : 0;
    }
    if (r == 0)
        (void)sigaction(SIGABRT, &last_words, NULL);
    close(ends[1]);
    return r;
}

/* The client whose assertion it was. NULL: nobody knows, or nobody is to be told. */
static struct dev_client *find_culprit(struct dev *d)
{
    struct dev_client *one = NULL, *any = NULL;
    unsigned count = 0;
    bool users = false;
    gm_list_for_each (c, &d->clients, struct dev_client, link) {
        if (!cuda_client_is_busy(c))
            continue;
        users |= any && any->uid != c->uid;
        any = c;
        if (atomic_load_explicit(&c->asserts, memory_order_relaxed)) {
            one = c;
            count++;
        }
    }
    return count == 1 && !users ? one : NULL;
}

void cuda_complaint_deliver(struct dev *d)
{
    if (from < 0)
        return;
    cuda_for_each_context (g, d, UINT32_MAX)
        if (g->print_stream)
            (void)d->api.cuStreamQuery(g->print_stream); /* the driver speaks when it is asked */
    drain();
    pthread_mutex_lock(&lock);
    if (kept_size) {
        struct dev_client *c = find_culprit(d);
        if (c)
            (void)tp_output_write(&c->prints.output, 2, kept, kept_size);
        else
            gm_error(&topic, "an assertion of one of several programs failed: none is told which");
        kept_size = 0;
    }
    pthread_mutex_unlock(&lock);
}
