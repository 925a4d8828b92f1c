/*
 * Clients that do not go: one whose own socket lies among what it has sent and nobody has read; one
 * that says nothing once it is offered a session, or ends half of its connection; one that is
 * stopped (SIGSTOP) with a full ring behind a host function that is to run. Others go on, the
 * device is idle meanwhile, and each of them is gone when its programs are.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "raw.h"

#define LOOK_NS (200 * GM_NS_PER_MS)

static struct raw_server server;

/* --- sockets ---------------------------------------------------------------------------------- */

/* Messages that bring a descriptor, until the socket is full or the server has hung up. */
static void send_own_socket(int over, int fd)
{
    uint8_t buffer[64];
    struct wire_enc e;
    int r = 0;
    RAW_CHECK(fcntl(over, F_SETFL, O_NONBLOCK) == 0);
    for (unsigned patience = 0; patience < 20;) {
        wire_enc_init(&e, buffer, sizeof(buffer));
        wire_pack_object_import(&e, 1, &(struct wire_object_import) { 0 });
        r = tp_send(over, &e, &fd, 1);
        patience = r == 0 ? 0 : patience + 1;
        if (r != 0 && r != -EAGAIN)
            return;
        if (r == -EAGAIN)
            raw_server_charged(&server); /* it has had a turn */
    }
}

/* Nobody has it open but the message in which it is on its way to the server. */
static void holds_itself(void)
{
    static struct raw_client c;
    raw_client_open(&c, raw_server_connect(&server, 101));
    send_own_socket(c.fd, c.fd);
    raw_neighbour_check();
    raw_client_close(&c);
    raw_server_settle(&server, 1);
}

/* Two of them, each with the other one's. */
static void hold_each_other(void)
{
    static struct raw_client a, b;
    raw_client_open(&a, raw_server_connect(&server, 102));
    raw_client_open(&b, raw_server_connect(&server, 103));
    send_own_socket(a.fd, b.fd);
    send_own_socket(b.fd, a.fd);
    raw_neighbour_check();
    raw_client_close(&a);
    raw_client_close(&b);
    raw_server_settle(&server, 1);
}

static void half_open(void)
{
    static struct raw_client offered, deaf, mute;
    raw_client_wait_offer(&offered, raw_server_connect(&server, 104));
    raw_client_open(&deaf, raw_server_connect(&server, 105));
    raw_client_open(&mute, raw_server_connect(&server, 106));
    uint64_t memory = raw_alloc(&mute, 4096, WIRE_MEMORY_KIND_DEVICE, NULL);
    RAW_CHECK(memory && shutdown(deaf.fd, SHUT_RD) == 0 && shutdown(mute.fd, SHUT_WR) == 0);
    raw_neighbour_check();
    /* A client that says that it will say nothing more has left. */
    RAW_CHECK(!raw_client_receive(&mute));
    raw_server_settle(&server, 3);
    raw_server_terminate(&server, 104);
    raw_server_terminate(&server, 105);
    raw_neighbour_check();
    raw_client_close(&offered);
    raw_client_close(&deaf);
    raw_client_close(&mute);
    raw_server_settle(&server, 1);
}

/* --- a full ring ------------------------------------------------------------------------------ */

static int in_vain(void *unused GM_UNUSED)
{
    return -ETIMEDOUT;
}

/* The device is to open the gate when a host function has run, which it will not. */
static void fill_ring(struct raw_client *c, uint64_t memory)
{
    const struct tp_wait_policy policy = { .spin_ns = 100000,
                                           .slice_ms = 500,
                                           .watchdog = in_vain };
    struct wire_rec_gate gate = { 0 };
    int r = 0;
    for (uint32_t stream = 0; stream < 8; stream++)
        raw_post(c, stream, WIRE_OP_GATE, &gate, sizeof(gate), NULL, 0);
    while (r == 0) {
        struct wire_rec_fill f = {
            .dst = memory, .pitch = 64, .width = 16, .height = 1, .element_size = 4
        };
        f.head = (struct wire_record) {
            .op = WIRE_OP_FILL, .size = sizeof(f), .stream = 0, .seq = ++c->seq[0]
        };
        r = tp_ring_write(&c->ring, &f.head, sizeof(f), NULL, 0, &policy);
    }
    RAW_CHECK(r == -ETIMEDOUT);
}

static double processor_s(pid_t pid)
{
    char path[64];
    unsigned long user = 0, system = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    RAW_CHECK(f != NULL);
    RAW_CHECK(fscanf(f, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                     &system) == 2);
    fclose(f);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

/* In a process of its own, which stops where a program would be stopped. */
static pid_t start_stopped(int fd)
{
    static struct raw_client c;
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        raw_client_open(&c, fd);
        fill_ring(&c, raw_alloc(&c, 4096, WIRE_MEMORY_KIND_DEVICE, NULL));
        raise(SIGSTOP);
        _exit(1);
    }
    close(fd);
    RAW_CHECK(pid > 0 && waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
    return pid;
}

static void stopped_with_a_full_ring(void)
{
    pid_t first = start_stopped(raw_server_connect(&server, 107)),
          second = start_stopped(raw_server_connect(&server, 108)),
          executor = raw_server_executor(&server);
    raw_neighbour_check();
    const double before = processor_s(executor);
    const uint64_t end = gm_now_ns() + LOOK_NS;
    while (gm_now_ns() < end)
        raw_server_read(&server, 10);
    const double took = processor_s(executor) - before;
    printf("two full rings: the executor used %.2f s in %.2f\n", took, (double)LOOK_NS / 1e9);
    RAW_CHECK(took < (double)LOOK_NS / 1e9 / 2);
    raw_server_terminate(&server, 107);
    raw_neighbour_check();
    RAW_CHECK(kill(second, SIGKILL) == 0 && waitpid(second, NULL, 0) == second);
    raw_server_settle(&server, 2);
    raw_neighbour_check();
    RAW_CHECK(kill(first, SIGKILL) == 0 && waitpid(first, NULL, 0) == first);
    raw_server_settle(&server, 1);
    raw_neighbour_check();
}

int main(void)
{
    alarm(55);
    signal(SIGPIPE, SIG_IGN);
    raw_server_start(&server, "null");
    raw_neighbour_open(&server, 100);
    holds_itself();
    hold_each_other();
    half_open();
    stopped_with_a_full_ring();
    raw_client_close(&raw_neighbour);
    raw_server_finish(&server);
    puts("ok");
    return 0;
}
