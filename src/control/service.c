/*
 * Speaks systemd's protocols: it reports that the daemon is ready, and takes sockets that systemd
 * has opened.
 */
#include "control/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "control/place.h"

#define FIRST_FD 3
#define FDS_MAX  16u

static bool is_listener(int fd)
{
    int type = 0, listens = 0;
    socklen_t size = sizeof(int);
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET &&
           getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens;
}

static bool add(struct ctl_inherited *out, int fd, const char *name)
{
    const char *why = NULL;
    if (strcmp(name, CTL_SOCKET) != 0 && strcmp(name, CTL_PRIVILEGED_SOCKET) != 0)
        why = "it is called neither " CTL_SOCKET " nor " CTL_PRIVILEGED_SOCKET;
    else if (ctl_inherited_has(out, name))
        why = "there are two of that name";
    else if (!is_listener(fd))
        why = "it is not a socket that listens for packets (ListenSequentialPacket=)";
    else if (ctl_inherited_add(out, fd, name) < 0)
        why = "there is no memory";
    if (why)
        fprintf(stderr, "gmux-control: the socket \"%s\" from the service manager: %s\n", name,
                why);
    return !why;
}

bool ctl_service_sockets(struct ctl_inherited *out)
{
    const char *for_whom = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS"),
               *given = getenv("LISTEN_FDNAMES");
    GM_AUTO_FREE char *names = strdup(given ? given : "");
    char *rest = names;
    uint64_t pid = 0, n = 0;
    bool good = names != NULL;
    if (for_whom && gm_parse_u64(for_whom, INT32_MAX, &pid) && (pid_t)pid == getpid() && count &&
        gm_parse_u64(count, FDS_MAX, &n)) {
        for (int i = 0; good && i < (int)n; i++) {
            const char *name = strsep(&rest, ":");
            good = add(out, FIRST_FD + i, name ? name : "");
        }
    }
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return good;
}

void ctl_service_ready(void)
{
    static const char ready[] = "READY=1\n";
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    size_t length = path ? strlen(path) : 0;
    if (length < 2 || length >= sizeof(a.sun_path) || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(a.sun_path, path, length);
    if (a.sun_path[0] == '@')
        a.sun_path[0] = '\0'; /* an abstract address */
    GM_AUTO_FD int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) /* no manager listens: nobody waits for the report */
        (void)sendto(fd, ready, sizeof(ready) - 1, MSG_NOSIGNAL, (const struct sockaddr *)&a,
                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
}
