#include "frame.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct raw_server server;
struct raw_client neighbour;
static char directory[] = "/tmp/gmux-slow-XXXXXX", fifo[64], end_fifo[64];

void frame_begin(unsigned seconds)
{
    alarm(seconds);
    signal(SIGPIPE, SIG_IGN);
    RAW_CHECK(mkdtemp(directory) != NULL);
    snprintf(fifo, sizeof(fifo), "%s/go", directory);
    snprintf(end_fifo, sizeof(end_fifo), "%s/end", directory);
    RAW_CHECK(mkfifo(fifo, 0600) == 0 && setenv("GMUX_SLOW", fifo, 1) == 0);
    RAW_CHECK(mkfifo(end_fifo, 0600) == 0 && setenv("GMUX_SLOW_END", end_fifo, 1) == 0);
    raw_server_start(&server, "slow");
    raw_client_open(&neighbour, raw_server_connect(&server, 200));
}

void frame_end(void)
{
    unlink(fifo);
    unlink(end_fifo);
    rmdir(directory);
    puts("ok");
}

int slow_begins(void)
{
    int go = open(fifo, O_WRONLY | O_CLOEXEC);
    RAW_CHECK(go >= 0);
    return go;
}

int slow_ends_begin(void)
{
    int go = open(end_fifo, O_WRONLY | O_CLOEXEC);
    RAW_CHECK(go >= 0);
    return go;
}

void let_go(int go)
{
    RAW_CHECK(write(go, "", 1) == 1);
    close(go);
}

int let_two_go(void)
{
    int go = open(fifo, O_RDWR | O_CLOEXEC);
    RAW_CHECK(go >= 0 && write(go, "ab", 2) == 2);
    return go;
}

void goes_on(struct raw_client *c)
{
    uint64_t p = raw_alloc(c, 8 << 20, WIRE_MEMORY_KIND_DEVICE, NULL);
    RAW_CHECK(p != 0);
    raw_work_and_check(c, p);
    RAW_CHECK(raw_free(c, p) == 0);
    p = raw_alloc(c, 16 << 20, WIRE_MEMORY_KIND_HOST, NULL);
    RAW_CHECK(p != 0 && raw_free(c, p) == 0);
    uint32_t module = raw_load(c, FAST, NULL);
    RAW_CHECK(module && raw_unload(c, module) == 0);
}

bool has_answer(const struct raw_client *c)
{
    struct pollfd p = { .fd = c->fd, .events = POLLIN };
    return poll(&p, 1, 0) > 0;
}
