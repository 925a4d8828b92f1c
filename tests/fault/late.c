/*
 * A device that takes long to answer one client's question, as a driver that compiles does: nobody
 * else notices, whatever that client does meanwhile. It unloads a module, it ends; what it asked
 * for comes when the device is done with it.
 */
#include <unistd.h>

#include "frame.h"

static struct raw_client asker;

static void ask_device(uint64_t number)
{
    struct wire_rec_call call = { .number = number, .function = 1 };
    raw_post(&asker, 3, WIRE_OP_CALL, &call, sizeof(call), NULL, 0);
}

static void unload_while_asking(void)
{
    uint8_t buffer[256];
    struct wire_enc e;
    raw_client_open(&asker, raw_server_connect(&server, 100));
    uint32_t module = raw_load(&asker, FAST, NULL);
    RAW_CHECK(module != 0);
    ask_device(1);
    int go = slow_begins();
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_module_unload(&e, ++asker.serial, &(struct wire_module_unload) { module });
    RAW_CHECK(tp_send(asker.fd, &e, NULL, 0) == 0);
    goes_on(&neighbour);
    RAW_CHECK(!has_answer(&asker));
    RAW_CHECK(write(go, "", 1) == 1);
    RAW_CHECK(raw_client_receive(&asker) && asker.packet->header.type == WIRE_STATUS);
    close(go);
    RAW_CHECK(raw_wait(&asker, 3, asker.seq[3]) == 0);
}

static void end_while_asking(void)
{
    ask_device(2);
    int go = slow_begins();
    pid_t executor = raw_server_executor(&server);
    raw_client_close(&asker);
    RAW_CHECK(raw_server_says(&server, "Client process 100 disconnected"));
    goes_on(&neighbour);
    close(go);
    raw_server_settle(&server, 1);
    goes_on(&neighbour);
    RAW_CHECK(raw_server_executor(&server) == executor);
}

int main(void)
{
    frame_begin(25);
    unload_while_asking();
    end_while_asking();
    raw_client_close(&neighbour);
    raw_server_drain(&server);
    raw_server_stop(&server);
    frame_end();
    return 0;
}
