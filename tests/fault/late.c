/*
 * A device that takes long to answer one client's question, as a driver that compiles does: nobody else notices, whatever that
 * client does meanwhile. It unloads a module, it ends; what it asked for comes when the device is done with it.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "raw.h"

#define PTX ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n"

static struct raw_server server;
static struct raw_client asker, neighbour;
static char directory[] = "/tmp/gmux-late-XXXXXX", fifo[64];

static void ask_device(uint64_t number)
{
    struct wire_rec_call call = { .number = number, .function = 1 };
    raw_post(&asker, 3, WIRE_OP_CALL, &call, sizeof(call), NULL, 0);
}

/* Everything that takes a word with the executor. */
static void neighbour_goes_on(void)
{
    uint64_t p = raw_alloc(&neighbour, 8 << 20, WIRE_MEMORY_KIND_DEVICE, NULL);
    RAW_CHECK(p != 0);
    raw_work_and_check(&neighbour, p);
    RAW_CHECK(raw_free(&neighbour, p) == 0);
    uint32_t module = raw_load(&neighbour, PTX, NULL);
    RAW_CHECK(module && raw_unload(&neighbour, module) == 0);
}

static bool has_answer(void)
{
    struct pollfd p = { .fd = asker.fd, .events = POLLIN };
    return poll(&p, 1, 0) > 0;
}

static void unload_while_asking(void)
{
    uint8_t buffer[256];
    struct wire_enc e;
    raw_client_open(&asker, raw_server_connect(&server, 100));
    uint32_t module = raw_load(&asker, PTX, NULL);
    RAW_CHECK(module != 0);
    ask_device(1);
    int go = open(fifo, O_WRONLY | O_CLOEXEC);
    RAW_CHECK(go >= 0);
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_module_unload(&e, ++asker.serial, &(struct wire_module_unload) { module });
    RAW_CHECK(tp_send(asker.fd, &e, NULL, 0) == 0);
    neighbour_goes_on();
    RAW_CHECK(!has_answer());
    RAW_CHECK(write(go, "", 1) == 1);
    RAW_CHECK(raw_client_receive(&asker) && asker.packet->header.type == WIRE_STATUS);
    close(go);
    RAW_CHECK(raw_wait(&asker, 3, asker.seq[3]) == 0);
}

static void end_while_asking(void)
{
    ask_device(2);
    int go = open(fifo, O_WRONLY | O_CLOEXEC);
    RAW_CHECK(go >= 0);
    pid_t executor = raw_server_executor(&server);
    raw_client_close(&asker);
    RAW_CHECK(raw_server_says(&server, "Client process 100 disconnected"));
    neighbour_goes_on();
    close(go);
    raw_server_settle(&server, 1);
    neighbour_goes_on();
    RAW_CHECK(raw_server_executor(&server) == executor);
}

int main(void)
{
    alarm(25); /* a neighbour that waits would wait until the executor is replaced */
    signal(SIGPIPE, SIG_IGN);
    RAW_CHECK(mkdtemp(directory) != NULL);
    snprintf(fifo, sizeof(fifo), "%s/go", directory);
    RAW_CHECK(mkfifo(fifo, 0600) == 0 && setenv("GMUX_SLOW", fifo, 1) == 0);
    raw_server_start(&server, "slow");
    raw_client_open(&neighbour, raw_server_connect(&server, 200));
    unload_while_asking();
    end_while_asking();
    raw_client_close(&neighbour);
    raw_server_drain(&server);
    raw_server_stop(&server);
    unlink(fifo);
    rmdir(directory);
    puts("ok");
    return 0;
}
