/*
 * Makes addresses, and has the two calls of each side.
 */
#include "transport/door.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "transport/sock.h"

#define PREFIX "gmux-" /* so that a person who reads /proc/net/unix recognises it */

static socklen_t make_address(const uint8_t name[TP_DOOR_NAME], struct sockaddr_un *a)
{
    char text[sizeof(PREFIX) + 2 * TP_DOOR_NAME] = PREFIX;
    size_t n = sizeof(PREFIX) - 1;
    for (unsigned i = 0; i < TP_DOOR_NAME; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%02x", name[i]);
    *a = (struct sockaddr_un) { .sun_family = AF_UNIX };
    memcpy(a->sun_path + 1, text, n); /* the address is abstract, because it begins with a zero */
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

int tp_door_listen(const uint8_t name[TP_DOOR_NAME])
{
    struct sockaddr_un a;
    socklen_t size = make_address(name, &a);
    GM_AUTO_FD int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&a, size) < 0 || listen(fd, 64) < 0)
        return -errno;
    return gm_take_fd(&fd);
}

int tp_door_connect(const uint8_t name[TP_DOOR_NAME])
{
    struct sockaddr_un a;
    struct tp_peer peer;
    socklen_t size = make_address(name, &a);
    GM_AUTO_FD int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    while (connect(fd, (const struct sockaddr *)&a, size) < 0)
        if (errno != EINTR)
            return -errno;
    int r = tp_peer(fd, &peer);
    if (r < 0)
        return r;
    return peer.uid == geteuid() ? gm_take_fd(&fd)
                                 : -EPERM; /* anybody can take a name that is free again */
}
