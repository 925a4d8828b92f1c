/*
 * Writes to the program's own descriptors, which may be of any kind and have any flags.
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "client/session/session.h"

/* Gives up at the first real error: the text has nowhere to go. */
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
