/*
 * Clients that pass descriptors whose end takes its time: a connection with unsent bytes that
 * lingers, as a file of a user's own file system could. The server lets go of them without waiting,
 * however they come.
 */
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "raw.h"

#define LINGER_S 600

static struct raw_server server;
static struct raw_client neighbour;
static uint64_t neighbours_memory;
static int listener;

static void listen_somewhere(struct sockaddr_in *a)
{
    socklen_t size = sizeof(*a);
    *a = (struct sockaddr_in) { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    RAW_CHECK(listener >= 0 && bind(listener, (const struct sockaddr *)a, size) == 0 &&
              listen(listener, 100) == 0);
    RAW_CHECK(getsockname(listener, (struct sockaddr *)a, &size) == 0);
}

/* One whose last close() waits until all was sent, and nobody receives it. */
static int lingering(void)
{
    static struct sockaddr_in address;
    static uint8_t bytes[65536];
    const struct linger l = { .l_onoff = 1, .l_linger = LINGER_S };
    if (!listener)
        listen_somewhere(&address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    RAW_CHECK(fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
    RAW_CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)) == 0);
    while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        ;
    return fd;
}

/* Nothing is received in between: the last close() of a descriptor on its way is the receiver's. */
static void pass(int to, const struct wire_enc *e, unsigned count)
{
    int status;
    RAW_CHECK(kill(server.pid, SIGSTOP) == 0 &&
              waitpid(server.pid, &status, WUNTRACED) == server.pid);
    for (unsigned i = 0; i < count; i++) {
        int fd = lingering();
        RAW_CHECK(tp_send(to, e, &fd, 1) == 0);
        close(fd);
    }
    RAW_CHECK(kill(server.pid, SIGCONT) == 0);
}

static void check_neighbour(void)
{
    raw_work_and_check(&neighbour, neighbours_memory);
    uint64_t p = raw_alloc(&neighbour, 4 << 20, WIRE_MEMORY_KIND_DEVICE, NULL);
    RAW_CHECK(p && raw_free(&neighbour, p) == 0);
}

static struct wire_enc import(uint8_t *buffer, size_t size, uint64_t serial)
{
    struct wire_enc e;
    wire_enc_init(&e, buffer, size);
    wire_pack_object_import(&e, serial, &(struct wire_object_import) { 0 });
    return e;
}

/* In a message that brings one. */
static void imported(void)
{
    static struct raw_client c;
    uint8_t buffer[64];
    raw_client_open(&c, raw_server_connect(&server, 101));
    struct wire_enc e = import(buffer, sizeof(buffer), ++c.serial);
    pass(c.fd, &e, 1);
    RAW_CHECK(raw_client_receive(&c) && c.packet->header.type == WIRE_OBJECT_MADE);
    check_neighbour();
    raw_client_close(&c);
}

/* In one that brings none; and those that were not received when the client was dropped. */
static void surplus(void)
{
    static struct raw_client c;
    uint8_t buffer[64];
    struct wire_enc e;
    raw_client_open(&c, raw_server_connect(&server, 102));
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_memory_info(&e, ++c.serial, &(struct wire_memory_info) { 0 });
    pass(c.fd, &e, 4);
    RAW_CHECK(raw_server_says(&server, "wrong number of descriptors"));
    check_neighbour();
    raw_client_close(&c);
}

int main(void)
{
    alarm(30);
    signal(SIGPIPE, SIG_IGN);
    raw_server_start(&server, "null");
    raw_client_open(&neighbour, raw_server_connect(&server, 100));
    neighbours_memory = raw_alloc(&neighbour, 1 << 20, WIRE_MEMORY_KIND_DEVICE, NULL);
    imported();
    surplus();
    raw_client_close(&neighbour);
    raw_server_drain(&server);
    raw_server_stop(&server);
    puts("ok");
    return 0;
}
