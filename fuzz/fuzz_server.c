/*
 * The server among liars: an executor, three clients and a control daemon that say anything in any
 * order. The server is the real one, without its process: its executor is a socket in here.
 * Whatever they say, all ends once they hang up, nothing is charged and no handle is left open.
 *
 * The input is a list of steps: a byte that says whose turn it is (enum step), then what that step
 * needs; messages are as in liar.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

/* The executor's process, and its pauses, which are none here. */
static int fake_spawn(uv_loop_t *loop, uv_process_t *process, const uv_process_options_t *options);
static int fake_kill(uv_process_t *process, int number);
static int fake_timer(uv_timer_t *timer, uv_timer_cb done, uint64_t timeout, uint64_t repeat);
static int no_thread(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *),
                     void *arg);
#define uv_spawn        fake_spawn
#define uv_process_kill fake_kill
#define uv_timer_start  fake_timer
#include "server/executor.c"
#define access(path, mode) 0 /* any program will do: it is not started */
#include "server/program.c"
#undef access
#undef uv_spawn
#undef uv_process_kill
#undef uv_timer_start
#define pthread_create no_thread
#include "server/sweep.c"
#undef pthread_create

#include "base/log.h"
#include "server/object.h"
#include "server/server.h"
#include "liar.h"
#include "transport/memfd.h"

#define CLIENTS       3u
#define ADDRESSES     8u
#define QUESTIONS     64u
#define ROUNDS        8u /* of the loop, after which nothing is left that it could do at once */
#define SILENT_ROUNDS 2u /* nor after so many in which it says nothing */

enum step {
    EXECUTOR_SAYS,
    CLIENT_SAYS,
    DAEMON_SAYS,
    CLIENT_COMES,
    CLIENT_GOES,
    EXECUTOR_DIES,
    EXECUTOR_ANSWERS,
    STEPS
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct srv_server server;
static struct tp_packet packet;
static int daemon_fd, executor_fd, client_fds[CLIENTS];
static uv_process_t *process; /* NULL: none runs */
static uv_exit_cb on_exit_of_process;
static bool dying;
static uint64_t addresses[ADDRESSES];
static unsigned addresses_count;
static uint8_t token[SRV_TOKEN_BYTES];
static struct question {
    uint64_t serial;
    uint16_t type;
} questions[QUESTIONS]; /* to the executor, without an answer */
static unsigned questions_count;
static int image, unsealed, nothing;

/* --- the executor's process ------------------------------------------------------------------- */

static int fake_spawn(uv_loop_t *loop, uv_process_t *p, const uv_process_options_t *options)
{
    _Static_assert(sizeof(uv_idle_t) <= sizeof(uv_process_t), "one stands for the other");
    uv_idle_init(loop, (uv_idle_t *)(void *)p); /* a handle that can be closed */
    p->pid = 42;
    executor_fd = fcntl(options->stdio[3].data.fd, F_DUPFD_CLOEXEC, 0);
    fcntl(executor_fd, F_SETFL, O_NONBLOCK);
    on_exit_of_process = options->exit_cb;
    process = p;
    dying = false;
    questions_count = 0;
    return 0;
}

static int fake_kill(uv_process_t *p GM_UNUSED, int number GM_UNUSED)
{
    dying = true;
    return 0;
}

static int fake_timer(uv_timer_t *timer, uv_timer_cb done, uint64_t timeout, uint64_t repeat)
{
    return uv_timer_start(timer, done, timeout <= PAUSE_MAX_MS ? 0 : timeout, repeat);
}

/* What takes a thread is done in the loop. */
static int no_thread(pthread_t *thread GM_UNUSED, const pthread_attr_t *attr GM_UNUSED,
                     void *(*body)(void *)GM_UNUSED, void *arg GM_UNUSED)
{
    return EAGAIN;
}

static void hang_up(int *fd)
{
    *fd = gm_close(*fd);
}

static void end_executor(void)
{
    uv_process_t *p = process;
    process = NULL;
    dying = false;
    hang_up(&executor_fd);
    on_exit_of_process(p, 0, SIGKILL);
}

/* --- what the server says --------------------------------------------------------------------- */

static void note_answer(void)
{
    struct wire_memory_allocated allocated;
    struct wire_memory_opened opened;
    struct wire_memory_shared shared;
    uint64_t address = 0;
    switch (packet.header.type) {
    case WIRE_MEMORY_ALLOCATED:
        wire_get_memory_allocated(&packet.body, &allocated);
        address = allocated.address;
        break;
    case WIRE_MEMORY_OPENED:
        wire_get_memory_opened(&packet.body, &opened);
        address = opened.address;
        break;
    case WIRE_MEMORY_SHARED:
        wire_get_memory_shared(&packet.body, &shared);
        if (shared.token.size == sizeof(token))
            memcpy(token, shared.token.data, sizeof(token));
        break;
    default:
        break;
    }
    if (address)
        addresses[addresses_count++ % ADDRESSES] = address;
}

static void listen_to(unsigned who)
{
    struct question q = { packet.header.serial, packet.header.type };
    if (who < CLIENTS)
        note_answer();
    else if (who == CLIENTS && questions_count < QUESTIONS)
        questions[questions_count++] = q;
}

/* False: it has said nothing. Whom it has hung up on is not asked again. */
static bool listen_to_server(void)
{
    int *fds[CLIENTS + 2] = { [CLIENTS] = &executor_fd, [CLIENTS + 1] = &daemon_fd };
    struct pollfd from[CLIENTS + 2];
    for (unsigned i = 0; i < CLIENTS; i++)
        fds[i] = &client_fds[i];
    for (unsigned i = 0; i < GM_ARRAY_LEN(from); i++)
        from[i] = (struct pollfd) { .fd = *fds[i], .events = POLLIN };
    bool heard = false;
    if (poll(from, GM_ARRAY_LEN(from), 0) <= 0)
        return false;
    for (unsigned i = 0; i < GM_ARRAY_LEN(from); i++) {
        int r = 1;
        while ((from[i].revents & POLLIN) && (r = tp_recv(*fds[i], &packet)) == 1) {
            listen_to(i);
            tp_packet_finish(&packet);
            heard = true;
        }
        if (r == 0)
            hang_up(fds[i]);
    }
    return heard;
}

static void run_server(void)
{
    unsigned silent = 0;
    for (unsigned i = 0; i < ROUNDS && silent < SILENT_ROUNDS; i++) {
        uv_run(&server.loop, UV_RUN_NOWAIT);
        bool died = process && dying;
        if (died)
            end_executor();
        silent = listen_to_server() || died ? 0 : silent + 1;
    }
}

/* --- what the others say ---------------------------------------------------------------------- */

static void send_packet(int fd, const struct wire_enc *e, const int *fds, unsigned count)
{
    if (fd >= 0) {
        int r = tp_send(fd, e, fds, count);
        (void)r; /* a peer that does not listen is not told */
    }
}

/* One message that this party may send at all. */
static void say(int fd, enum wire_party sender)
{
    struct liar_message m;
    const struct liar_words words = { addresses, ADDRESSES, token };
    const unsigned kind = liar_message(&m, sender, WIRE_SERVER, &words);
    const int one_of[] = { image, unsealed, nothing, fd };
    unsigned count = kind & 0x80 ? wire_message_info(m.type)->fds_min : kind >> 4 & 3;
    const int fds[TP_FDS_MAX] = { one_of[kind & 3], one_of[kind & 3], image, image };
    send_packet(fd, &m.packet, fds, count);
}

static void announce(void)
{
    uint8_t list[512], buffer[1024], uuid[16] = { 1 };
    struct wire_enc devices, e;
    wire_enc_init(&devices, list, sizeof(list));
    wire_put_device(&devices, &(struct wire_device) { .name = "liar",
                                                      .uuid = { uuid, sizeof(uuid) },
                                                      .memory_total = 1ull << 30,
                                                      .multiprocessors = 8,
                                                      .multiprocessors_shared = 8 });
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_engine_ready(
        &e, 0, &(struct wire_engine_ready) { .devices = { list, (uint32_t)devices.size } });
    send_packet(executor_fd, &e, NULL, 0);
}

/* As an honest executor: the result alone is not. */
static void answer(void)
{
    uint8_t buffer[512];
    struct wire_enc e;
    int result = liar_take();
    if (process && server.executor.state == SRV_EXECUTOR_STARTING) {
        announce();
        return;
    }
    if (questions_count == 0)
        return;
    struct question q = questions[0];
    memmove(questions, questions + 1, --questions_count * sizeof(q));
    wire_enc_init(&e, buffer, sizeof(buffer));
    bool load = q.type == WIRE_ENGINE_MODULE_LOAD;
    if (load)
        wire_pack_engine_module_loaded(
            &e, q.serial,
            &(struct wire_engine_module_loaded) { .result = result & 1,
                                                  .globals_size = (uint64_t)result << 4 });
    else
        wire_pack_engine_done(&e, q.serial,
                              &(struct wire_engine_done) { result < 128 ? 0 : result });
    send_packet(executor_fd, &e, &image, load && !(result & 1) ? 1 : 0);
}

static void come(unsigned i)
{
    uint8_t buffer[512];
    struct wire_enc e;
    int fds[2];
    hang_up(&client_fds[i]);
    if (tp_pair(fds) < 0)
        return;
    client_fds[i] = fds[0];
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_link_client(
        &e, 0, &(struct wire_link_client) { .pid = 100 + i, .uid = 1000 + i % 2, .priority = -1 });
    send_packet(daemon_fd, &e, &fds[1], 1);
    close(fds[1]);
}

static void do_step(void)
{
    uint8_t what = liar_take();
    unsigned i = what / STEPS % CLIENTS;
    switch ((enum step)(what % STEPS)) {
    case EXECUTOR_SAYS:
        say(executor_fd, WIRE_EXECUTOR);
        break;
    case CLIENT_SAYS:
        say(client_fds[i], WIRE_CLIENT);
        break;
    case DAEMON_SAYS:
        say(daemon_fd, WIRE_CONTROL);
        break;
    case CLIENT_COMES:
        come(i);
        break;
    case CLIENT_GOES:
        hang_up(&client_fds[i]);
        break;
    case EXECUTOR_DIES:
        dying = true;
        break;
    case EXECUTOR_ANSWERS:
    case STEPS:
        answer();
        break;
    }
}

/* --- one life of a server --------------------------------------------------------------------- */

static void prepare(void)
{
    static const char text[] = ".version 7.0";
    image = tp_memfd_from_bytes("image", text, sizeof(text));
    unsealed = tp_memfd_create("unsealed", 4096);
    nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    gm_log_init("fuzz", GM_LOG_NONE);
    setenv("GMUX_VMSTAT", "/dev/null", 1); /* the kernel's takes long to read */
}

static void begin(bool multiuser)
{
    uint8_t buffer[512];
    struct wire_enc e;
    int fds[2];
    if (srv_server_init(&server, "liar") < 0 || tp_pair(fds) < 0 ||
        srv_peer_open(&server.link, &server.loop, fds[1], &srv_link_ops) < 0)
        abort();
    server.has_link = true;
    daemon_fd = fds[0];
    fcntl(daemon_fd, F_SETFL, O_NONBLOCK);
    for (unsigned i = 0; i < CLIENTS; i++)
        client_fds[i] = -1;
    executor_fd = -1;
    process = NULL;
    addresses_count = 0;
    memset(addresses, 0, sizeof(addresses));
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_link_setup(&e, 0,
                         &(struct wire_link_setup) { .share_pct = 100,
                                                     .pipe_directory = "/nowhere",
                                                     .multiuser = multiuser });
    send_packet(daemon_fd, &e, NULL, 0);
    run_server();
    if (!process)
        abort(); /* without an executor hardly anything would be tried */
}

/* All hang up. An executor that is started even now does not live long. */
static void end(void)
{
    for (unsigned i = 0; i < CLIENTS; i++)
        hang_up(&client_fds[i]);
    hang_up(&daemon_fd);
    for (unsigned i = 0; i < 10000 && uv_loop_alive(&server.loop); i++) {
        dying = process != NULL;
        run_server();
    }
    if (uv_loop_alive(&server.loop))
        abort(); /* it has not ended */
    uv_close((uv_handle_t *)&server.ending_idle, NULL);
    run_server();
    for (unsigned q = 0; q < SRV_QUANTITIES; q++)
        if (server.account.used[q] != 0)
            abort();
    if (!gm_list_empty(&server.sessions) || !gm_list_empty(&server.users) ||
        server.tokens.used != 0 || server.token_files.used != 0)
        abort();
    srv_ranges_finish(&server.windows);
    gm_index_finish(&server.tokens);
    gm_index_finish(&server.token_files);
    if (uv_loop_close(&server.loop) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!image)
        prepare();
    liar_input = data;
    liar_left = size;
    begin(liar_take() & 1);
    while (liar_left) {
        do_step();
        run_server();
    }
    end();
    return 0;
}
