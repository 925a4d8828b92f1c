/*
 * Only here does a client without a daemon speak to another program's server. It sends one message,
 * with the token. The connection that comes back goes to this client's own server.
 */
#include "client/session/adopt.h"

#include <poll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "transport/door.h"
#include "transport/memfd.h"
#include "wire/messages.h"

#define ANSWER_MS 10000

int rt_adopt_fetch(const struct rt_session *s, const uint8_t token[RT_TOKEN_BYTES])
{
    uint8_t buffer[128];
    struct wire_enc e;
    if (!s->is_private || s->memory_apart)
        return -1;
    GM_AUTO_FD int fd = tp_door_connect(token);
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_object_fetch(&e, 1,
                           &(struct wire_object_fetch) { .token = { token, RT_TOKEN_BYTES } });
    struct pollfd answer = { .fd = fd, .events = POLLIN };
    if (fd < 0 || tp_send(fd, &e, NULL, 0) < 0 || poll(&answer, 1, ANSWER_MS) != 1)
        return -1;
    return gm_take_fd(&fd);
}

bool rt_adopt_token(const struct rt_session *s, int fd, uint8_t token[RT_TOKEN_BYTES])
{
    return s->is_private && tp_memfd_check(fd, RT_TOKEN_BYTES, true) == 0 &&
           pread(fd, token, RT_TOKEN_BYTES, 0) == RT_TOKEN_BYTES;
}
