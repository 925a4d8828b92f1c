/*
 * What the control daemon orders: limits that change under running clients, termination, shutdown
 * in both ways; what happens when the daemon goes, and when there is no device to serve.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/result.h"
#include "raw.h"

static struct raw_server server;
static struct raw_client a, b;
static uint8_t buffer[WIRE_PACKET_MAX];

static void send_limits(double share, const char *memory, bool running)
{
    struct wire_enc e;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_link_limits(&e, 0,
                          &(struct wire_link_limits) {
                              .share_pct = share, .memory_limits = memory, .running = running });
    RAW_CHECK(tp_send(server.link, &e, NULL, 0) == 0);
    raw_server_charged(&server); /* it has taken notice */
}

static uint32_t permille(const struct raw_client *c)
{
    return atomic_load(&c->shared.control->share_permille);
}

static void limits_change(void)
{
    int result;
    raw_client_open(&a, raw_server_connect(&server, 11));
    RAW_CHECK(permille(&a) == 1000);
    RAW_CHECK(raw_memory_free(&a) > 1u << 30);
    uint64_t held = raw_alloc(&a, 256u << 20, WIRE_MEMORY_KIND_DEVICE, &result);
    RAW_CHECK(held != 0);

    send_limits(33.5, "0=1G", false);
    RAW_CHECK(permille(&a) == 1000);
    RAW_CHECK(raw_memory_free(&a) > 1u << 30);
    raw_client_open(&b, raw_server_connect(&server, 12));
    RAW_CHECK(permille(&b) == 335);
    RAW_CHECK(raw_memory_free(&b) == 1u << 30);

    send_limits(50, "0=200M", true);
    RAW_CHECK(permille(&a) == 500 && permille(&b) == 500);
    RAW_CHECK(raw_memory_free(&a) == 0); /* it has more than it may; what it has it keeps */
    RAW_CHECK(raw_memory_free(&b) == 200u << 20);
    RAW_CHECK(raw_alloc(&a, 4096, WIRE_MEMORY_KIND_DEVICE, &result) == 0 && result == 2);
    RAW_CHECK(raw_free(&a, held) == 0);
    RAW_CHECK(raw_memory_free(&a) == 200u << 20);
    RAW_CHECK(raw_alloc(&b, 201u << 20, WIRE_MEMORY_KIND_DEVICE, &result) == 0 && result == 2);
    RAW_CHECK(raw_alloc(&b, 200u << 20, WIRE_MEMORY_KIND_DEVICE, &result) != 0);

    send_limits(100, "", true);
    RAW_CHECK(permille(&a) == 1000 && raw_memory_free(&a) > 1u << 30);
    raw_client_close(&a);
    raw_client_close(&b);
    raw_server_drain(&server);
    RAW_CHECK(raw_server_charged(&server) == 0);
}

static void termination(void)
{
    struct wire_rec_gate gate = { 0 };
    int result;
    raw_client_open(&a, raw_server_connect(&server, 21));
    raw_client_open(&b, raw_server_connect(&server, 22));
    uint64_t memory = raw_alloc(&b, 4096, WIRE_MEMORY_KIND_DEVICE, NULL);
    uint64_t standing = raw_post(&a, 3, WIRE_OP_GATE, &gate, sizeof(gate), NULL, 0);
    raw_server_terminate(&server, 21);
    RAW_CHECK(raw_wait(&a, 3, standing) == 810);
    RAW_CHECK(raw_server_says(&server, "Client termination succeeded."));
    RAW_CHECK(raw_alloc(&a, 4096, WIRE_MEMORY_KIND_DEVICE, &result) == 0 && result == 810);
    /* A wait for anything of it returns at once, now and later. */
    uint64_t end = gm_now_ns() + 10 * GM_NS_PER_S;
    while (atomic_load(&a.shared.streams[1000].completed.value) != TP_SEQ_FAILED)
        RAW_CHECK(gm_now_ns() < end);
    uint64_t seq = raw_fill(&b, 0, memory, 5, 1024);
    RAW_CHECK(raw_wait(&b, 0, seq) == 0);
    raw_server_terminate(&server, 99999);
    raw_client_close(&a);
    raw_server_settle(&server, 1);
    RAW_CHECK(raw_server_charged(&server) != 0);
    raw_client_close(&b);
    raw_server_drain(&server);
}

static void stop(bool force)
{
    struct wire_enc e;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_link_shutdown(&e, 0, &(struct wire_link_shutdown) { .force = force });
    RAW_CHECK(tp_send(server.link, &e, NULL, 0) == 0);
}

static void wait_for_end(void)
{
    int status;
    RAW_CHECK(waitpid(server.pid, &status, 0) == server.pid);
    RAW_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(server.link);
    free(server.packet);
}

static void shutdown_waits_for_clients(void)
{
    raw_client_open(&a, raw_server_connect(&server, 31));
    stop(false);
    RAW_CHECK(raw_server_says(&server, "Waiting for current clients to finish"));
    RAW_CHECK(raw_alloc(&a, 4096, WIRE_MEMORY_KIND_DEVICE, NULL) != 0);
    raw_client_close(&a);
    RAW_CHECK(raw_server_says(&server, "Exiting"));
    wait_for_end();
}

/* Nor does a client that has not noticed yet read something else than was there: it is told, or
 * finds what it had. */
static void forced_shutdown_does_not(void)
{
    struct wire_rec_gate gate = { 0 };
    raw_server_start(&server, "null");
    raw_client_open(&a, raw_server_connect(&server, 41));
    const uint64_t memory[] = { raw_alloc(&a, 4096, WIRE_MEMORY_KIND_DEVICE, NULL),
                                raw_alloc(&a, 4 << 20, WIRE_MEMORY_KIND_DEVICE, NULL),
                                raw_alloc(&a, 4 << 20, WIRE_MEMORY_KIND_HOST, NULL) };
    for (unsigned i = 0; i < GM_ARRAY_LEN(memory); i++)
        raw_work_and_check(&a, memory[i]);
    uint32_t before[GM_ARRAY_LEN(memory)];
    for (unsigned i = 0; i < GM_ARRAY_LEN(memory); i++)
        memcpy(&before[i], (const void *)(uintptr_t)memory[i], sizeof(before[i]));
    raw_post(&a, 3, WIRE_OP_GATE, &gate, sizeof(gate), NULL, 0);
    stop(true);
    RAW_CHECK(!raw_client_receive(&a));
    RAW_CHECK(raw_error(&a) == GM_CUDA_MPS_RPC_FAILURE);
    wait_for_end();
    for (unsigned i = 0; i < GM_ARRAY_LEN(memory); i++)
        RAW_CHECK(memcmp(&before[i], (const void *)(uintptr_t)memory[i], sizeof(before[i])) == 0);
    raw_client_close(&a);
}

/* While there is none, and the next one is not to be started yet. */
static void forced_shutdown_between_executors(void)
{
    char dir[] = "/tmp/gmux-life-XXXXXX", path[64], real[4096];
    snprintf(real, sizeof(real), "%s", getenv("GMUX_SERVER"));
    *strrchr(real, '/') = '\0';
    strncat(real, "/../executor/gmux-executor", sizeof(real) - strlen(real) - 1);
    RAW_CHECK(mkdtemp(dir) != NULL);
    snprintf(path, sizeof(path), "%s/gmux-executor", dir);
    RAW_CHECK(symlink(real, path) == 0 && setenv("GMUX_LIBEXECDIR", dir, 1) == 0);
    raw_server_start(&server, "null");
    raw_client_open(&a, raw_server_connect(&server, 45));
    RAW_CHECK(unlink(path) == 0 && symlink("/bin/false", path) == 0);
    RAW_CHECK(kill(raw_server_executor(&server), SIGKILL) == 0);
    for (unsigned i = 0; i < 6; i++) { /* the pauses in between get longer */
        RAW_CHECK(raw_server_says(&server, "exited with status 1"));
        raw_server_forget_log(&server);
    }
    stop(true);
    RAW_CHECK(!raw_client_receive(&a));
    wait_for_end();
    raw_client_close(&a);
    unsetenv("GMUX_LIBEXECDIR");
    unlink(path);
    rmdir(dir);
}

/* By somebody else than the daemon, which goes on handing over clients until it sees the end: they
 * hear so. */
static void terminated_while_clients_come(void)
{
    enum { CLIENTS = 100 };
    static struct tp_packet packet;
    int fds[CLIENTS], status;
    raw_server_start(&server, "null");
    raw_client_open(&a,
                    raw_server_connect(&server, 46)); /* which is not gone before the executor is */
    RAW_CHECK(kill(server.pid, SIGSTOP) == 0 &&
              waitpid(server.pid, &status, WUNTRACED) == server.pid);
    RAW_CHECK(kill(server.pid, SIGTERM) == 0);
    for (unsigned i = 0; i < CLIENTS; i++)
        fds[i] = raw_server_connect(&server, 1000 + i);
    RAW_CHECK(kill(server.pid, SIGCONT) == 0);
    wait_for_end();
    for (unsigned i = 0; i < CLIENTS; i++) {
        while (tp_recv(fds[i], &packet) == 1)
            tp_packet_finish(&packet);
        close(fds[i]);
    }
    raw_client_close(&a);
}

/* Its clients may finish; nobody new can come. */
static void daemon_goes(void)
{
    int status;
    raw_server_start(&server, "null");
    raw_client_open(&a, raw_server_connect(&server, 51));
    RAW_CHECK(raw_alloc(&a, 4096, WIRE_MEMORY_KIND_DEVICE, NULL) != 0);
    close(server.link);
    RAW_CHECK(raw_alloc(&a, 4096, WIRE_MEMORY_KIND_DEVICE, NULL) != 0);
    RAW_CHECK(waitpid(server.pid, &status, WNOHANG) == 0);
    raw_client_close(&a);
    RAW_CHECK(waitpid(server.pid, &status, 0) == server.pid);
    RAW_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    free(server.packet);
}

/* Starts a private server with our end of its socket in `*fd`; its first process ends at once. */
static void start_private(const char *device, int *fd)
{
    int fds[2];
    char number[16];
    char *program = getenv("GMUX_SERVER");
    char name[32];
    pid_t pid;
    int status;
    RAW_CHECK(tp_pair(fds) == 0 && fcntl(fds[1], F_SETFD, 0) == 0);
    snprintf(number, sizeof(number), "%d", fds[1]);
    snprintf(name, sizeof(name), "%s", device);
    char *const args[] = { program, (char[]) { "--private" }, number, (char[]) { "--device" }, name,
                           NULL };
    RAW_CHECK(posix_spawn(&pid, program, NULL, NULL, args, environ) == 0);
    close(fds[1]);
    RAW_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    *fd = fds[0];
}

static void say_hello(int fd, uint32_t version)
{
    struct wire_enc e;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_hello(
        &e, 0,
        &(struct wire_hello) {
            .version = version, .protocol_min = version, .share_pct = 50, .priority = -1 });
    RAW_CHECK(tp_send(fd, &e, NULL, 0) == 0);
}

/* It ends by itself, in order. Its orphans are ours (private_server()), and so are its executor's
 * of before. */
static void expect_end_of_private(int expected)
{
    int status;
    do
        RAW_CHECK(waitpid(-1, &status, 0) > 0 &&
                  !(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV));
    while (!WIFEXITED(status) || WEXITSTATUS(status) != expected);
}

static void private_server(void)
{
    int fd;
    RAW_CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    start_private("null", &fd);
    say_hello(fd, WIRE_VERSION);
    raw_client_open(&a, fd);
    RAW_CHECK(permille(&a) == 500);
    RAW_CHECK(raw_alloc(&a, 4096, WIRE_MEMORY_KIND_DEVICE, NULL) != 0);
    raw_client_close(&a);
    expect_end_of_private(0);

    a.packet = NULL;
    struct wire_session_failed m;
    static struct tp_packet packet;
    start_private("nosuch", &a.fd);
    say_hello(a.fd, WIRE_VERSION);
    a.packet = &packet;
    RAW_CHECK(raw_client_receive(&a));
    RAW_CHECK(packet.header.type == WIRE_SESSION_FAILED);
    wire_get_session_failed(&packet.body, &m);
    RAW_CHECK(m.result == 100 && *m.reason);
    RAW_CHECK(!raw_client_receive(&a));
    close(a.fd);
    expect_end_of_private(1);

    start_private("null", &a.fd);
    say_hello(a.fd, WIRE_VERSION + 1);
    RAW_CHECK(raw_client_receive(&a));
    RAW_CHECK(packet.header.type == WIRE_SESSION_FAILED);
    RAW_CHECK(!raw_client_receive(&a));
    close(a.fd);
    expect_end_of_private(1);
    RAW_CHECK(prctl(PR_SET_CHILD_SUBREAPER, 0) == 0);
}

/* One line with the cause, after a few tries. */
static void an_executor_that_does_not_start(void)
{
    char dir[] = "/tmp/gmux-life-XXXXXX";
    char path[64];
    static struct tp_packet packet;
    struct wire_session_failed m;
    RAW_CHECK(mkdtemp(dir) != NULL);
    snprintf(path, sizeof(path), "%s/gmux-executor", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    RAW_CHECK(fd >= 0 && write(fd, "#!/bin/sh\nexit 3\n", 17) == 17);
    close(fd);
    setenv("GMUX_LIBEXECDIR", dir, 1);
    start_private("null", &a.fd);
    say_hello(a.fd, WIRE_VERSION);
    a.packet = &packet;
    RAW_CHECK(raw_client_receive(&a));
    RAW_CHECK(packet.header.type == WIRE_SESSION_FAILED);
    wire_get_session_failed(&packet.body, &m);
    RAW_CHECK(m.result == 805 && strstr(m.reason, "exited with status 3"));
    RAW_CHECK(!raw_client_receive(&a));
    close(a.fd);
    unsetenv("GMUX_LIBEXECDIR");
    unlink(path);
    rmdir(dir);
}

int main(void)
{
    raw_server_start(&server, "null");
    limits_change();
    termination();
    shutdown_waits_for_clients();
    forced_shutdown_does_not();
    forced_shutdown_between_executors();
    terminated_while_clients_come();
    daemon_goes();
    private_server();
    an_executor_that_does_not_start();
    return 0;
}
