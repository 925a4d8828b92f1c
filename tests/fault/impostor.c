/*
 * An executor that is not what it should be: it runs programs' kernels, and nobody believes it.
 * This program is its own executor, found by the server under that name in a directory of the
 * test's.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "raw.h"

#define PUT_OFF 64u

static struct raw_server server;
static struct raw_client c, witness;
static char directory[] = "/tmp/gmux-impostor-XXXXXX", go_path[64], second_path[64];

/* --- the executor ----------------------------------------------------------------------------- */

static uint8_t bytes[WIRE_PACKET_MAX];
static struct tp_packet packet;
static int socket_fd;

static void send_ready(void)
{
    uint8_t encoded[1024];
    static const uint8_t uuid[16] = { 1 };
    struct wire_enc list, e;
    wire_enc_init(&list, encoded, sizeof(encoded));
    wire_put_device(&list, &(struct wire_device) { .name = "impostor",
                                                   .uuid = { uuid, sizeof(uuid) },
                                                   .memory_total = 1 << 30,
                                                   .multiprocessors = 1,
                                                   .priorities = 1 });
    wire_enc_init(&e, bytes, sizeof(bytes));
    wire_pack_engine_ready(
        &e, 0, &(struct wire_engine_ready) { .devices = { encoded, (uint32_t)list.size } });
    RAW_CHECK(tp_send(socket_fd, &e, NULL, 0) == 0);
}

static void send_done(uint64_t serial, int result)
{
    struct wire_enc e;
    wire_enc_init(&e, bytes, sizeof(bytes));
    wire_pack_engine_done(&e, serial, &(struct wire_engine_done) { result });
    RAW_CHECK(tp_send(socket_fd, &e, NULL, 0) == 0);
}

static void send_later(uint64_t serial)
{
    struct wire_enc e;
    wire_enc_init(&e, bytes, sizeof(bytes));
    wire_pack_engine_later(&e, serial, &(struct wire_engine_later) { 1 });
    RAW_CHECK(tp_send(socket_fd, &e, NULL, 0) == 0);
}

/* The first client is the one; the second one's fault says that it was removed. */
static void send_fault(void)
{
    struct wire_enc e;
    wire_enc_init(&e, bytes, sizeof(bytes));
    wire_pack_engine_client_fault(
        &e, 0,
        &(struct wire_engine_client_fault) { .client = 2, .result = 700, .text = "removed" });
    RAW_CHECK(tp_send(socket_fd, &e, NULL, 0) == 0);
}

static void wait_for_test(void)
{
    char go;
    int fd = open(getenv("GMUX_IMPOSTOR_GO"), O_RDONLY | O_CLOEXEC);
    RAW_CHECK(fd >= 0 && read(fd, &go, 1) >= 0);
    close(fd);
}

/* The first one does what it is told, and nothing. The second one says at once that a client is
 * removed, and about all that it was told of it before that it could not be done, when that client
 * is long gone. */
static int impostor(void)
{
    uint64_t put_off[PUT_OFF];
    unsigned count = 0;
    bool second = access(getenv("GMUX_IMPOSTOR_SECOND"), F_OK) == 0;
    bool removed = false;
    socket_fd = 3;
    send_ready();
    while (tp_recv(socket_fd, &packet) == 1) {
        uint64_t serial = packet.header.serial;
        unsigned type = packet.header.type;
        tp_packet_finish(&packet);
        if (!second || removed || type == WIRE_ENGINE_CLIENT_STOP ||
            type == WIRE_ENGINE_CLIENT_REMOVE) {
            send_done(serial, 0);
        } else {
            RAW_CHECK(count < PUT_OFF);
            send_later(serial);
            put_off[count++] = serial;
        }
        if (!second || removed || type != WIRE_ENGINE_CLIENT_REMOVE)
            continue;
        removed = true;
        send_fault();
        wait_for_test();
        for (unsigned i = 0; i < count; i++)
            send_done(put_off[i], 1);
    }
    return 0;
}

/* --- the test --------------------------------------------------------------------------------- */

static void prepare(void)
{
    raw_stand_in_begin(directory);
    snprintf(go_path, sizeof(go_path), "%s/go", directory);
    snprintf(second_path, sizeof(second_path), "%s/second", directory);
    RAW_CHECK(mkfifo(go_path, 0600) == 0);
    RAW_CHECK(setenv("GMUX_IMPOSTOR_GO", go_path, 1) == 0);
    RAW_CHECK(setenv("GMUX_IMPOSTOR_SECOND", second_path, 1) == 0);
}

/* A session is there until nothing can come any more that is about it. */
static void answers_about_one_that_is_gone(void)
{
    raw_client_open(&c, raw_server_connect(&server, 100));
    raw_client_open(&witness, raw_server_connect(&server, 101));
    RAW_CHECK(raw_alloc(&c, 4 << 20, WIRE_MEMORY_KIND_DEVICE, NULL) != 0);
    pid_t executor = raw_server_executor(&server);
    close(open(second_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    RAW_CHECK(kill(executor, SIGKILL) == 0);
    RAW_CHECK(raw_server_says(&server, "takes over"));
    raw_client_close(&c);
    RAW_CHECK(raw_server_says(&server, "gets error 700: removed"));
    raw_server_charged(&server);
    RAW_CHECK(strstr(server.log, "Sessions: 2,"));
    int go = open(go_path, O_WRONLY | O_CLOEXEC);
    RAW_CHECK(go >= 0);
    close(go);
    raw_server_settle(&server, 1);
    raw_client_close(&witness);
    raw_server_drain(&server);
    RAW_CHECK(raw_server_charged(&server) == 0);
}

int main(int argc, char **argv)
{
    alarm(50);
    if (argc > 1 && strcmp(argv[1], "--server") == 0)
        return impostor();
    prepare();
    raw_server_start(&server, "null");
    answers_about_one_that_is_gone();
    raw_server_stop(&server);
    unlink(go_path);
    unlink(second_path);
    raw_stand_in_end(directory);
    puts("ok");
    return 0;
}
