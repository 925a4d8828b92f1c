/*
 * What kernels print and what a failed assertion says: it waits in session memory
 * (transport/output.h) until this process has waited for something, and is then written to its
 * standard output or standard error, not through stdio, as the genuine driver does. A program that
 * ends without waiting does not see it, there as here.
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "client/session/session.h"

/* Gives up at the first error that is one: the text has nowhere to go. */
void rt_write_out(int fd, const char *text, size_t size)
{
    while (size) {
        ssize_t n = write(fd, text, size);
        if (n > 0) {
            text += n;
            size -= (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            struct pollfd p = { .fd = fd, .events = POLLOUT };
            if (poll(&p, 1, -1) < 0 && errno != EINTR)
                return;
        } else if (n == 0 || errno != EINTR) {
            return;
        }
    }
}

void rt_output_show(struct rt_session *s)
{
    char text[TP_OUTPUT_TEXT_MAX];
    size_t n;
    int fd = 1, saved = errno;
    pthread_mutex_lock(&s->output_lock);
    while ((n = tp_input_take(&s->output, &fd, text)) > 0)
        if (fd == TP_OUTPUT_REPORT) {
            rt_check_told++;
            rt_check_write(text, n);
        } else {
            rt_write_out(fd, text, n);
        }
    pthread_mutex_unlock(&s->output_lock);
    errno = saved;
}

int rt_session_failed(struct rt_session *s, int error)
{
    if (tp_input_pending(&s->output))
        rt_output_show(s);
    return error;
}
