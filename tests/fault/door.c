/*
 * The door of a private server: visitors that say nonsense, and connections handed over for
 * adoption in which somebody else has written what he liked.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "raw.h"
#include "transport/door.h"
#include "transport/memfd.h"
#include "wire/messages.h"

#define MIB      (1ull << 20)
#define VISITORS 600 /* more than are let in */

static struct raw_client a;
static struct tp_packet packet;
static uint8_t buffer[WIRE_PACKET_MAX];

static void start(void)
{
    int fds[2], status;
    char number[16], *program = getenv("GMUX_SERVER");
    struct wire_enc e;
    pid_t pid;
    RAW_CHECK(tp_pair(fds) == 0 && fcntl(fds[1], F_SETFD, 0) == 0);
    snprintf(number, sizeof(number), "%d", fds[1]);
    char *const args[] = {
        program, (char[]) { "--private" }, number, (char[]) { "--device" }, (char[]) { "null" },
        NULL
    };
    RAW_CHECK(posix_spawn(&pid, program, NULL, NULL, args, environ) == 0);
    close(fds[1]);
    RAW_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_hello(&e, 0,
                    &(struct wire_hello) { .version = WIRE_VERSION,
                                           .protocol_min = WIRE_VERSION,
                                           .share_pct = 100,
                                           .priority = -1 });
    RAW_CHECK(tp_send(fds[0], &e, NULL, 0) == 0);
    raw_client_open(&a, fds[0]);
}

static void share(uint64_t address, uint8_t token[32])
{
    struct wire_memory_shared m;
    RAW_ASK(&a, memory_share, .address = address);
    wire_get_memory_shared(&a.packet->body, &m);
    RAW_CHECK(m.result == 0 && m.token.size == 32);
    memcpy(token, m.token.data, 32);
}

/* --- visitors --------------------------------------------------------------------------------- */

static int visit(const uint8_t *token)
{
    int fd = tp_door_connect(token);
    RAW_CHECK(fd >= 0);
    return fd;
}

static void ask(int fd, const uint8_t *token)
{
    struct wire_enc e;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_object_fetch(&e, 1, &(struct wire_object_fetch) { .token = { token, 32 } });
    (void)!tp_send(fd, &e, NULL, 0); /* it may have hung up already */
}

/* 1: an answer, which is in `packet`; 0: the server has hung up. */
static int answer(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    RAW_CHECK(poll(&p, 1, 20000) == 1);
    int r = tp_recv(fd, &packet);
    return r == -ECONNRESET ? 0 : r;
}

static int result_of(struct wire_object_fetched *f)
{
    wire_get_object_fetched(&packet.body, f);
    return f->result;
}

static void visitors(uint64_t memory, const uint8_t *token)
{
    struct wire_object_fetched f;
    uint8_t wrong[32];
    int fd = visit(token);
    RAW_CHECK(send(fd, "nonsense", 8, 0) == 8);
    RAW_CHECK(answer(fd) == 0);
    close(fd);

    memcpy(wrong, token, sizeof(wrong));
    wrong[31] ^= 1;
    fd = visit(token);
    ask(fd, wrong);
    RAW_CHECK(answer(fd) == 1 && result_of(&f) != 0 && packet.fds_count == 0);
    ask(fd, token); /* may try again */
    RAW_CHECK(answer(fd) == 1 && result_of(&f) == 0 && packet.fds_count == 1);
    RAW_CHECK(f.length == MIB && f.size >= f.length);
    RAW_CHECK(lseek(packet.fds[0], 0, SEEK_END) >= (off_t)(f.offset + f.size));
    tp_packet_finish(&packet);
    ask(fd, token); /* but has one object */
    RAW_CHECK(answer(fd) == 0);
    close(fd);
    RAW_CHECK(memory != 0);
}

/* What a visitor has open stays where it is when it is freed, and is given back when the visitor
 * goes. */
static void freed_while_open(void)
{
    uint8_t token[32];
    struct wire_object_fetched f;
    uint64_t before = raw_memory_free(&a),
             memory = raw_alloc(&a, 8 * MIB, WIRE_MEMORY_KIND_DEVICE, NULL);
    share(memory, token);
    int fd = visit(token);
    ask(fd, token);
    RAW_CHECK(answer(fd) == 1 && result_of(&f) == 0);
    tp_packet_finish(&packet);
    RAW_CHECK(raw_free(&a, memory) == 0);
    RAW_CHECK(raw_memory_free(&a) < before);
    int late = visit(token);
    ask(late, token);
    RAW_CHECK(answer(late) == 1 && result_of(&f) != 0); /* nobody else gets it */
    close(late);
    close(fd);
    for (unsigned i = 0; raw_memory_free(&a) != before;
         i++) /* each is a turn of the server's loop */
        RAW_CHECK(i < 100000);
}

static void too_many(const uint8_t *token)
{
    static int fds[VISITORS];
    struct wire_object_fetched f;
    unsigned in = 0;
    for (unsigned i = 0; i < VISITORS; i++) {
        fds[i] = visit(token);
        ask(fds[i], token);
        if (answer(fds[i]) == 1)
            in += result_of(&f) == 0;
        tp_packet_finish(&packet);
    }
    RAW_CHECK(in > 0 && in < VISITORS);
    for (unsigned i = 0; i < VISITORS; i++)
        close(fds[i]);
    RAW_CHECK(raw_alloc(&a, 4096, WIRE_MEMORY_KIND_DEVICE, NULL) != 0);
}

/* As tp_door_connect(), which looks who listens. */
static int visit_others(const uint8_t *token)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0),
        n = sprintf(address.sun_path + 1, "gmux-");
    for (unsigned i = 0; i < TP_DOOR_NAME; i++)
        n += sprintf(address.sun_path + 1 + n, "%02x", token[i]);
    const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    RAW_CHECK(fd >= 0 && connect(fd, (const struct sockaddr *)&address, size) == 0);
    return fd;
}

/* Another user's programs see the door's name, too. What one has sent when it is turned away takes
 * ten minutes to close. */
static void stranger(const uint8_t *token)
{
    struct wire_enc e;
    int fd = raw_lingering();
    pid_t server = (pid_t)a.server_pid;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_object_fetch(&e, 1, &(struct wire_object_fetch) { .token = { token, 32 } });
    RAW_CHECK(kill(server, SIGSTOP) == 0 && waitpid(server, NULL, WUNTRACED) == server);
    pid_t pid = fork();
    if (pid == 0) {
        if (setuid(12345) != 0)
            _exit(77); /* we are not root */
        int visitor = visit_others(token);
        _exit(tp_send(visitor, &e, &fd, 1) == 0 ? 0 : 1);
    }
    int status;
    close(fd);
    RAW_CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) != 1);
    RAW_CHECK(kill(server, SIGCONT) == 0);
    RAW_CHECK(raw_alloc(&a, 4096, WIRE_MEMORY_KIND_DEVICE, NULL) != 0);
}

/* --- adoption --------------------------------------------------------------------------------- */

static int adopt(int connection, const uint8_t *token)
{
    struct wire_object_made m;
    struct wire_enc e;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_object_adopt(&e, ++a.serial, &(struct wire_object_adopt) { .token = { token, 32 } });
    raw_client_ask(&a, &e, &connection, 1);
    wire_get_object_made(&a.packet->body, &m);
    tp_packet_finish(a.packet);
    return m.result;
}

/* As if a server had answered that. */
static int adopt_answer(const struct wire_object_fetched *f, int memory, const uint8_t *token)
{
    struct wire_enc e;
    int ends[2];
    RAW_CHECK(tp_pair(ends) == 0);
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_object_fetched(&e, 1, f);
    RAW_CHECK(tp_send(ends[1], &e, &memory, memory >= 0 ? 1 : 0) == 0);
    int r = adopt(ends[0], token);
    close(ends[0]);
    close(ends[1]);
    return r;
}

static void adoption(void)
{
    uint8_t token[32] = { 77 };
    int ends[2], pipes[2], sealed = tp_memfd_create("sealed", 4 * MIB),
                           loose = memfd_create("loose", MFD_CLOEXEC);
    const struct wire_object_fetched good = {
        .offset = MIB, .size = 2 * MIB, .skip = 4096, .length = MIB
    };
    struct wire_object_fetched bad[8];
    RAW_CHECK(sealed >= 0 && ftruncate(loose, 4 * MIB) == 0 && tp_pair(ends) == 0 &&
              pipe(pipes) == 0);
    RAW_CHECK(adopt(ends[0], token) != 0);  /* nothing in it */
    RAW_CHECK(adopt(pipes[0], token) != 0); /* no socket */
    close(ends[0]);
    close(ends[1]);
    RAW_CHECK(tp_pair(ends) == 0 && send(ends[1], "nonsense", 8, 0) == 8);
    RAW_CHECK(adopt(ends[0], token) != 0);
    for (unsigned i = 0; i < GM_ARRAY_LEN(bad); i++)
        bad[i] = good;
    bad[0].size = 8 * MIB;
    bad[1].offset = 3 * MIB;
    bad[2].offset = UINT64_MAX - 4095;
    bad[3].size = 0;
    bad[4].size = 5000;
    bad[5].skip = 2 * MIB;
    bad[6].length = UINT64_MAX;
    bad[7].device = 1000;
    for (unsigned i = 0; i < GM_ARRAY_LEN(bad); i++)
        RAW_CHECK(adopt_answer(&bad[i], sealed, token) != 0);
    RAW_CHECK(adopt_answer(&good, -1, token) != 0);
    RAW_CHECK(adopt_answer(&good, loose, token) != 0);
    RAW_CHECK(adopt_answer(&good, pipes[0], token) != 0);
    RAW_CHECK(adopt_answer(&good, sealed, token) == 0);

    struct wire_memory_opened m;
    RAW_ASK(&a, memory_open, .token = { token, 32 });
    wire_get_memory_opened(&a.packet->body, &m);
    RAW_CHECK(m.result == 0 && m.size == MIB);
    RAW_ASK(&a, object_unmap, .address = m.address);
    RAW_CHECK(raw_status(&a) == 0);
}

int main(void)
{
    uint8_t token[32];
    RAW_CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    start();
    uint64_t memory = raw_alloc(&a, MIB, WIRE_MEMORY_KIND_DEVICE, NULL);
    share(memory, token);
    visitors(memory, token);
    freed_while_open();
    too_many(token);
    stranger(token);
    adoption();
    int held = visit(token), status; /* nobody waits for a visitor that stays */
    ask(held, token);
    pid_t server = (pid_t)a.server_pid, gone;
    raw_client_close(&a);
    do {
        gone = waitpid(-1, &status, 0);
        RAW_CHECK(gone > 0);
        /* An executor that outlives its server is killed (PR_SET_PDEATHSIG). */
        RAW_CHECK(!WIFSIGNALED(status) || (gone != server && WTERMSIG(status) == SIGKILL));
    } while (gone != server);
    RAW_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(held);
    return 0;
}
