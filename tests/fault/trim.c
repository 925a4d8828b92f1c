/*
 * A device without memory left gives back what it keeps, once for each allocation, and is asked
 * again. This program is its own executor, as in impostor.c; full.c is the driver in which the
 * server makes memory.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "raw.h"

static struct raw_server server;
static struct raw_client c;
static char directory[] = "/tmp/gmux-trim-XXXXXX", full_path[64], stubborn_path[64];

/* --- the executor ----------------------------------------------------------------------------- */

static uint8_t bytes[WIRE_PACKET_MAX];
static struct tp_packet packet;

static void send_ready(int fd)
{
    uint8_t encoded[1024];
    static const uint8_t uuid[16] = { 1 };
    struct wire_enc list, e;
    wire_enc_init(&list, encoded, sizeof(encoded));
    wire_put_device(&list, &(struct wire_device) { .name = "full",
                                                   .uuid = { uuid, sizeof(uuid) },
                                                   .memory_total = 1 << 30,
                                                   .multiprocessors = 1,
                                                   .priorities = 1 });
    wire_enc_init(&e, bytes, sizeof(bytes));
    wire_pack_engine_ready(&e, 0,
                           &(struct wire_engine_ready) {
                               .memory_apart = 1, .devices = { encoded, (uint32_t)list.size } });
    RAW_CHECK(tp_send(fd, &e, NULL, 0) == 0);
}

/* What it keeps is the file. */
static int executor(int fd)
{
    send_ready(fd);
    while (tp_recv(fd, &packet) == 1) {
        struct wire_enc e;
        const uint64_t serial = packet.header.serial;
        if (packet.header.type == WIRE_ENGINE_TRIM &&
            access(getenv("GMUX_TEST_STUBBORN"), F_OK) != 0)
            unlink(getenv("GMUX_TEST_FULL"));
        tp_packet_finish(&packet);
        wire_enc_init(&e, bytes, sizeof(bytes));
        wire_pack_engine_done(&e, serial, &(struct wire_engine_done) { 0 });
        RAW_CHECK(tp_send(fd, &e, NULL, 0) == 0);
    }
    return 0;
}

/* --- the test --------------------------------------------------------------------------------- */

static void prepare(void)
{
    raw_stand_in_begin(directory);
    snprintf(full_path, sizeof(full_path), "%s/full", directory);
    snprintf(stubborn_path, sizeof(stubborn_path), "%s/stubborn", directory);
    RAW_CHECK(setenv("GMUX_TEST_FULL", full_path, 1) == 0 &&
              setenv("GMUX_TEST_STUBBORN", stubborn_path, 1) == 0);
}

static void touch(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    RAW_CHECK(fd >= 0);
    close(fd);
}

static int make_object(void)
{
    struct wire_object_made made;
    RAW_ASK(&c, object_create, .kind = WIRE_MEMORY_KIND_DEVICE, .size = 2 << 20);
    wire_get_object_made(&c.packet->body, &made);
    return made.result;
}

static void gives_way(void)
{
    int result = 0;
    touch(full_path);
    RAW_CHECK(raw_alloc(&c, 4 << 20, WIRE_MEMORY_KIND_DEVICE, NULL) != 0);
    touch(full_path);
    RAW_CHECK(raw_alloc(&c, 100, WIRE_MEMORY_KIND_DEVICE, NULL) != 0);
    touch(full_path);
    RAW_CHECK(make_object() == 0);
    RAW_CHECK(access(full_path, F_OK) != 0);
    touch(full_path);
    touch(stubborn_path);
    RAW_CHECK(raw_alloc(&c, 4 << 20, WIRE_MEMORY_KIND_DEVICE, &result) == 0 && result == 2);
    RAW_CHECK(make_object() == 2);
    unlink(full_path);
    RAW_CHECK(raw_alloc(&c, 4 << 20, WIRE_MEMORY_KIND_DEVICE, NULL) != 0);
}

int main(int argc, char **argv)
{
    alarm(50);
    if (argc > 1)
        return executor(3);
    prepare();
    raw_server_start(&server, "null");
    raw_client_open(&c, raw_server_connect(&server, 100));
    gives_way();
    raw_client_close(&c);
    raw_server_finish(&server);
    unlink(stubborn_path);
    raw_stand_in_end(directory);
    puts("ok");
    return 0;
}
