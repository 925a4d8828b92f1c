/*
 * The client library and a server that lies: what it says is in the socket before the library asks.
 * The first byte says whether the session is offered as a server should; then come messages as in
 * liar.h. The library opens a session and makes every request once. It must get to the end of all
 * of them, with an error or without.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "client/session/session.h"
#include "liar.h"
#include "transport/memfd.h"

#define WINDOW_BASE 0x300000000000ull
#define WINDOW_HALF (1ull << 22)
#define MESSAGES    64u /* which a socket takes before anybody reads */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int session_fd, area, info, unsealed;

static void prepare(void)
{
    static const uint8_t nothing_in_it[64];
    area = tp_memfd_create("area", WINDOW_HALF);
    info = tp_memfd_from_bytes("info", nothing_in_it, sizeof(nothing_in_it));
    unsealed = open("/dev/null", O_RDWR | O_CLOEXEC);
    session_fd = tp_session_create();
    if (area < 0 || info < 0 || unsealed < 0 || session_fd < 0)
        abort();
    gm_log_init("fuzz", GM_LOG_NONE);
}

/* What an earlier input has left in the session's memory. */
static void clear_session(void)
{
    struct tp_session s;
    if (tp_session_attach(&s, session_fd, TP_SESSION_SIZE) != 0)
        abort();
    memset(s.control, 0, sizeof(*s.control));
    tp_session_detach(&s);
}

static void offer(int fd)
{
    uint8_t device[512], buffer[1024], uuid[16] = { 1 };
    struct wire_enc list, e;
    wire_enc_init(&list, device, sizeof(device));
    wire_put_device(&list, &(struct wire_device) { .name = "liar",
                                                   .uuid = { uuid, sizeof(uuid) },
                                                   .memory_total = 1ull << 30,
                                                   .multiprocessors = 8 });
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_session_open(
        &e, 0,
        &(struct wire_session_open) { .version = WIRE_VERSION,
                                      .window_base = WINDOW_BASE,
                                      .window_size = 2 * WINDOW_HALF,
                                      .session_size = TP_SESSION_SIZE,
                                      .device_count = 1,
                                      .devices = { device, (uint32_t)list.size } });
    const int fds[] = { session_fd, area, area };
    if (tp_send(fd, &e, fds, 3) < 0)
        abort();
}

static void say_all(int fd)
{
    static const uint8_t token[LIAR_TOKEN_BYTES];
    const uint64_t addresses[] = { WINDOW_BASE, WINDOW_BASE + WINDOW_HALF };
    const struct liar_words words = { addresses, GM_ARRAY_LEN(addresses), token };
    if (liar_take() & 1)
        offer(fd);
    for (unsigned i = 0; liar_left && i < MESSAGES; i++) {
        struct liar_message m;
        const unsigned kind = liar_message(&m, WIRE_SERVER, WIRE_CLIENT, &words);
        const int one_of[] = { area, info, unsealed, session_fd };
        const int fds[TP_FDS_MAX] = { kind & 4 ? session_fd : one_of[kind & 3], one_of[kind & 3],
                                      one_of[kind & 3], info };
        unsigned count = kind & 0x80 ? wire_message_info(m.type)->fds : kind >> 4 & 3;
        if (tp_send(fd, &m.packet, fds, count) < 0)
            break;
    }
    shutdown(fd, SHUT_WR);
}

static void ask_all(struct rt_session *s)
{
    struct rt_memory_info left;
    struct rt_made made;
    struct rt_loaded loaded = { .info_fd = -1 };
    uint8_t token[RT_TOKEN_BYTES] = { 0 };
    uint64_t address, size;
    int device, fd = -1;
    (void)rt_request_context_open(s, 1, 0);
    (void)rt_request_alloc(s, 4096, 0, WIRE_MEMORY_KIND_DEVICE, 0, &address);
    (void)rt_request_free(s, WINDOW_BASE);
    (void)rt_request_memory_info(s, 0, &left);
    if (rt_request_module_load(s, info, 64, WIRE_IMAGE_KIND_PTX, 0, &loaded) == 0 &&
        loaded.info_fd < 0)
        abort();
    gm_close(loaded.info_fd);
    free(loaded.log);
    (void)rt_request_module_unload(s, 1);
    if (rt_request_object_create(s, 4096, WIRE_MEMORY_KIND_HOST, 0, false, &made) == 0)
        gm_close(made.fd);
    (void)rt_request_object_release(s, 1);
    if (rt_request_object_export(s, 1, &fd) == 0)
        gm_close(fd);
    if (rt_request_object_import(s, info, &made) == 0)
        gm_close(made.fd);
    (void)rt_request_range_reserve(s, 4096, 0, WIRE_MEMORY_KIND_DEVICE, &address);
    (void)rt_request_range_release(s, WINDOW_BASE);
    (void)rt_request_object_map(s, 1, 3, WINDOW_BASE, 4096);
    (void)rt_request_object_unmap(s, WINDOW_BASE);
    (void)rt_request_memory_share(s, WINDOW_BASE, 0, token);
    fd = -1;
    if (rt_request_memory_open(s, token, &address, &size, &device, &fd) == 0)
        gm_close(fd);
    (void)rt_request_array_memory(s, 0, 4096);
    (void)rt_request_peer_access(s, 0, 0, true);
    (void)rt_request_context_close(s, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[600];
    int fds[2];
    if (!area)
        prepare();
    liar_input = data;
    liar_left = size;
    if (tp_pair(fds) < 0)
        abort();
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    clear_session();
    say_all(fds[0]);
    struct rt_session *s = rt_session_create(fds[1]);
    if (!s)
        abort();
    if (rt_session_open(s, why, sizeof(why)) == 0) {
        rt_session = s;
        ask_all(s);
        rt_session = NULL;
    }
    rt_session_close(s);
    close(fds[0]);
    return 0;
}
