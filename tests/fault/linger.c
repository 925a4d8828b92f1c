/*
 * Clients that pass descriptors whose end takes its time: a connection with unsent bytes that
 * lingers, as a file of a user's own file system could. The server lets go of them without waiting,
 * however they come.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "raw.h"

#define MANY 200u /* more than hang at once */

static struct raw_server server;

/* Nothing is received in between: the last close() of a descriptor on its way is the receiver's. */
static void pass(int to, const struct wire_enc *e, unsigned count)
{
    int status;
    RAW_CHECK(kill(server.pid, SIGSTOP) == 0 &&
              waitpid(server.pid, &status, WUNTRACED) == server.pid);
    for (unsigned i = 0; i < count; i++) {
        int fd = raw_lingering();
        RAW_CHECK(tp_send(to, e, &fd, 1) == 0);
        close(fd);
    }
    RAW_CHECK(kill(server.pid, SIGCONT) == 0);
}

/* Many in one packet, which tp_send() would not do. */
static void pass_together(int to, const struct wire_enc *e)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * MANY)];
    } control = { 0 };
    struct iovec iov = { .iov_base = e->data, .iov_len = e->size };
    struct msghdr m = { .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control.space,
                        .msg_controllen = sizeof(control.space) };
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    *c = (struct cmsghdr) { .cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS,
                            .cmsg_len = CMSG_LEN(sizeof(int) * MANY) };
    int fds[MANY];
    for (unsigned i = 0; i < MANY; i++)
        fds[i] = raw_lingering();
    memcpy(CMSG_DATA(c), fds, sizeof(fds));
    RAW_CHECK(kill(server.pid, SIGSTOP) == 0 && waitpid(server.pid, NULL, WUNTRACED) == server.pid);
    RAW_CHECK(sendmsg(to, &m, 0) == (ssize_t)e->size);
    for (unsigned i = 0; i < MANY; i++)
        close(fds[i]);
    RAW_CHECK(kill(server.pid, SIGCONT) == 0);
}

static void check_neighbour(void)
{
    raw_neighbour_check();
    uint64_t p = raw_alloc(&raw_neighbour, 4 << 20, WIRE_MEMORY_KIND_DEVICE, NULL);
    RAW_CHECK(p && raw_free(&raw_neighbour, p) == 0);
}

static bool blocks_sigterm(const char *thread)
{
    char path[300], line[256];
    unsigned long long blocked = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)server.pid, thread);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f) && sscanf(line, "SigBlk: %llx", &blocked) != 1)
        ;
    RAW_CHECK(!f || fclose(f) == 0);
    return !f || blocked >> (SIGTERM - 1) & 1; /* or it has ended */
}

/* A thread that hangs would not handle the signals that the process gets. */
static void check_signals(void)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)server.pid);
    DIR *threads = opendir(path);
    RAW_CHECK(threads != NULL);
    for (struct dirent *d; (d = readdir(threads));)
        if (atoi(d->d_name) > 0)
            RAW_CHECK(blocks_sigterm(d->d_name) == (atoi(d->d_name) != server.pid));
    closedir(threads);
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
    check_signals();
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

/* More than can be waited for at once: the server does not run out of descriptors over them. */
static void many(void)
{
    static struct raw_client c;
    uint8_t buffer[64];
    const unsigned before = raw_descriptors(server.pid);
    raw_client_open(&c, raw_server_connect(&server, 103));
    struct wire_enc e = import(buffer, sizeof(buffer), ++c.serial);
    for (unsigned i = 0; i < MANY; i += MANY / 4) {
        pass(c.fd, &e, MANY / 4);
        for (unsigned n = 0; n < MANY / 4; n++)
            RAW_CHECK(raw_client_receive(&c) && c.packet->header.type == WIRE_OBJECT_MADE);
    }
    check_neighbour();
    pass_together(c.fd, &e);
    RAW_CHECK(raw_server_says(&server, "malformed packet"));
    check_neighbour();
    raw_client_close(&c);
    raw_expect_descriptors(server.pid, before);
}

int main(void)
{
    alarm(55);
    signal(SIGPIPE, SIG_IGN);
    raw_server_start(&server, "null");
    raw_neighbour_open(&server, 100);
    imported();
    surplus();
    many();
    raw_client_close(&raw_neighbour);
    raw_server_drain(&server);
    raw_server_stop(&server);
    puts("ok");
    return 0;
}
