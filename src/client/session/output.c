/*
 * Writes what kernels print, and what a failed assertion says. That waits in session memory
 * (transport/output.h) until this process has waited for something. Then it goes to `stdout` or
 * `stderr`, behind what the program itself has written there, and is flushed, as with the genuine
 * driver. With either, a program that ends without waiting does not see it.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "client/session/session.h"

/* The stream's own buffer is passed by: stdio loses what a descriptor does not take at once. */
static void put(FILE *to, const char *text, size_t size)
{
    fflush(to);
    int fd = fileno(to);
    if (fd >= 0) {
        rt_write_out(fd, text, size);
    } else { /* it writes to memory or by functions of the program's */
        (void)!fwrite(text, 1, size, to);
        fflush(to);
    }
}

/* The stream is locked first: a program may wait for the device while it holds that lock. */
void rt_output_show(struct rt_session *s)
{
    char text[TP_OUTPUT_TEXT_MAX];
    size_t n;
    int fd = 1, saved = errno;
    FILE *out = stdout;
    flockfile(out);
    pthread_mutex_lock(&s->output_lock);
    while ((n = tp_input_take(&s->output, &fd, text)) > 0)
        if (fd == TP_OUTPUT_REPORT) {
            rt_check_told++;
            rt_check_write(text, n);
        } else if (fd == STDOUT_FILENO) {
            put(out, text, n);
        } else {
            rt_write_out(fileno(stderr), text, n); /* which has no buffer */
        }
    pthread_mutex_unlock(&s->output_lock);
    funlockfile(out);
    errno = saved;
}

int rt_session_failed(struct rt_session *s, int error)
{
    if (tp_input_pending(&s->output))
        rt_output_show(s);
    return error;
}
