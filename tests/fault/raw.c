#include "raw.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "transport/memfd.h"

void raw_die(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: failed: %s (%s)\n", file, line, what, strerror(errno));
    abort();
}

static struct tp_packet *new_packet(void)
{
    struct tp_packet *p = NULL;
    RAW_CHECK(posix_memalign((void **)&p, 64, sizeof(*p)) == 0);
    return p;
}

/* --- server ----------------------------------------------------------------------------------- */

static void note(struct raw_server *s, const char *line)
{
    size_t n = strlen(line) + 1;
    if (s->log_size + n >= sizeof(s->log)) { /* keep the newer half */
        size_t half = s->log_size / 2;
        memmove(s->log, s->log + half, s->log_size - half);
        s->log_size -= half;
    }
    s->log_size +=
        (size_t)snprintf(s->log + s->log_size, sizeof(s->log) - s->log_size, "%s\n", line);
}

static void take_message(struct raw_server *s)
{
    struct wire_dec *d = &s->packet->body;
    struct wire_link_log log;
    struct wire_link_client_state state;
    switch (s->packet->header.type) {
    case WIRE_LINK_LOG:
        wire_get_link_log(d, &log);
        note(s, log.line);
        break;
    case WIRE_LINK_CLIENT_STATE:
        wire_get_link_client_state(d, &state);
        if (state.context == 0 && state.state == WIRE_CLIENT_STATE_CONNECTED)
            s->connected++;
        if (state.context == 0 && state.state == WIRE_CLIENT_STATE_EXITED)
            s->connected--;
        break;
    case WIRE_LINK_FAULT:
        s->faults++;
        break;
    default:
        break;
    }
}

bool raw_server_read(struct raw_server *s, int ms)
{
    struct pollfd p = { .fd = s->link, .events = POLLIN };
    if (poll(&p, 1, ms) <= 0)
        return false;
    if (tp_recv(s->link, s->packet) != 1)
        return false;
    take_message(s);
    tp_packet_finish(s->packet);
    return true;
}

bool raw_server_says(struct raw_server *s, const char *text)
{
    uint64_t end = gm_now_ns() + 20 * GM_NS_PER_S;
    while (!strstr(s->log, text)) {
        if (gm_now_ns() > end)
            return false;
        raw_server_read(s, 200);
    }
    return true;
}

void raw_server_forget_log(struct raw_server *s)
{
    while (raw_server_read(s, 0))
        ;
    s->log_size = 0;
    s->log[0] = '\0';
}

static void server_start(struct raw_server *s, const char *device, bool multiuser)
{
    int fds[2];
    char number[16];
    const char *program = getenv("GMUX_SERVER");
    RAW_CHECK(program != NULL);
    memset(s, 0, sizeof(*s));
    s->packet = new_packet();
    RAW_CHECK(tp_pair(fds) == 0);
    RAW_CHECK(fcntl(fds[1], F_SETFD, 0) == 0);
    snprintf(number, sizeof(number), "%d", fds[1]);
    char *const args[] = { strdup(program),    strdup("--control"), number,
                           strdup("--device"), strdup(device),      NULL };
    RAW_CHECK(posix_spawn(&s->pid, program, NULL, NULL, args, environ) == 0);
    free(args[0]);
    free(args[1]);
    free(args[3]);
    free(args[4]);
    close(fds[1]);
    s->link = fds[0];

    uint8_t buffer[8192];
    struct wire_enc e;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_link_setup(&e, 0,
                         &(struct wire_link_setup) { .share_pct = 100,
                                                     .pipe_directory = "/nowhere",
                                                     .multiuser = multiuser });
    RAW_CHECK(tp_send(s->link, &e, NULL, 0) == 0);
    RAW_CHECK(raw_server_says(s, "Server has started"));
}

void raw_server_start(struct raw_server *s, const char *device)
{
    server_start(s, device, false);
}

void raw_server_start_multiuser(struct raw_server *s, const char *device)
{
    server_start(s, device, true);
}

void raw_server_stop(struct raw_server *s)
{
    uint8_t buffer[64];
    struct wire_enc e;
    int status;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_link_shutdown(&e, 0, &(struct wire_link_shutdown) { .force = 0 });
    RAW_CHECK(tp_send(s->link, &e, NULL, 0) == 0);
    RAW_CHECK(raw_server_says(s, "Exiting"));
    RAW_CHECK(waitpid(s->pid, &status, 0) == s->pid);
    RAW_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(s->link);
    free(s->packet);
}

int raw_server_connect(struct raw_server *s, uint32_t pid)
{
    return raw_server_connect_as(s, pid, getuid());
}

int raw_server_connect_as(struct raw_server *s, uint32_t pid, uint32_t uid)
{
    int fds[2];
    uint8_t buffer[2048];
    struct wire_enc e;
    RAW_CHECK(tp_pair(fds) == 0);
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_link_client(&e, 0,
                          &(struct wire_link_client) { .pid = pid, .uid = uid, .priority = -1 });
    RAW_CHECK(tp_send(s->link, &e, &fds[1], 1) == 0);
    close(fds[1]);
    return fds[0];
}

uint64_t raw_server_charged(struct raw_server *s)
{
    uint64_t sum = 0;
    raw_server_forget_log(s);
    RAW_CHECK(kill(s->pid, SIGUSR1) == 0);
    RAW_CHECK(raw_server_says(s, "Charged sessions: "));
    for (const char *p = s->log; (p = strstr(p, "Charged ")) != NULL;) {
        p = strstr(p, ": ") + 2;
        sum += strtoull(p, NULL, 10);
    }
    return sum;
}

void raw_server_settle(struct raw_server *s, unsigned sessions)
{
    uint64_t end = gm_now_ns() + 20 * GM_NS_PER_S;
    char text[32];
    snprintf(text, sizeof(text), "Sessions: %u,", sessions);
    do {
        RAW_CHECK(gm_now_ns() < end);
        raw_server_charged(s);
    } while (!strstr(s->log, text));
}

void raw_server_drain(struct raw_server *s)
{
    const uint64_t end = gm_now_ns() + 20 * GM_NS_PER_S;
    raw_server_settle(s, 0);
    RAW_CHECK(s->connected == 0);
    while (raw_server_charged(s) != 0 && gm_now_ns() < end)
        ; /* what they had in files that others had open is being freed */
}

pid_t raw_server_executor(struct raw_server *s)
{
    raw_server_charged(s);
    const char *p = strstr(s->log, ", executor ");
    RAW_CHECK(p != NULL);
    return (pid_t)strtol(p + 11, NULL, 10);
}

void raw_server_terminate(struct raw_server *s, uint32_t pid)
{
    uint8_t buffer[64];
    struct wire_enc e;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_link_terminate(&e, 1, &(struct wire_link_terminate) { .pid = pid });
    RAW_CHECK(tp_send(s->link, &e, NULL, 0) == 0);
}

/* Whether it is no mistake that a file below /proc could not be opened: only root may see what a
 * process has that protects itself (PR_SET_DUMPABLE). Then nothing is counted. */
static bool may_not_see(void)
{
    static bool said;
    if (errno != EACCES || geteuid() == 0)
        return false;
    if (!said)
        fprintf(stderr, "descriptors and memory are not counted: that needs root\n");
    return said = true;
}

unsigned raw_descriptors(pid_t pid)
{
    char path[64];
    unsigned n = 0;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    if (!d && may_not_see())
        return 0;
    RAW_CHECK(d != NULL);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

void raw_expect_descriptors(pid_t pid, unsigned count)
{
    uint64_t end = gm_now_ns() + 10 * GM_NS_PER_S;
    unsigned now;
    while ((now = raw_descriptors(pid)) >
           count) /* one may have been on its way out when they were counted */
        if (gm_now_ns() > end) {
            fprintf(stderr, "process %d had %u descriptors and has %u\n", (int)pid, count, now);
            abort();
        }
}

bool raw_process_is_gone(pid_t pid)
{
    char path[64];
    char text[512] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    GM_AUTO_FILE FILE *f = fopen(path, "re");
    if (!f)
        return true;
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    text[n] = '\0';
    const char *state = strrchr(text, ')');
    return !state || state[2] == 'Z' || state[2] == 'X';
}

uint64_t raw_private_bytes(pid_t pid)
{
    char path[64];
    char line[256];
    uint64_t sum = 0;
    snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
    GM_AUTO_FILE FILE *f = fopen(path, "re");
    if (!f && may_not_see())
        return 0;
    RAW_CHECK(f != NULL);
    while (fgets(line, sizeof(line), f))
        if (strncmp(line, "Private_", 8) == 0)
            sum += strtoull(strchr(line, ':') + 1, NULL, 10) * 1024;
    return sum;
}

/* --- client ----------------------------------------------------------------------------------- */

static uint8_t *map_at(uint64_t address, uint64_t size, int fd)
{
    void *p = mmap((void *)(uintptr_t)address, size, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE, fd, 0);
    RAW_CHECK(p == (void *)(uintptr_t)address);
    return p;
}

static void receive(struct raw_client *c)
{
    struct pollfd p = { .fd = c->fd, .events = POLLIN };
    RAW_CHECK(poll(&p, 1, 20000) == 1);
    RAW_CHECK(tp_recv(c->fd, c->packet) == 1);
}

void raw_client_ask(struct raw_client *c, const struct wire_enc *e, const int *fds,
                    unsigned fds_count)
{
    struct wire_header h;
    memcpy(&h, e->data, sizeof(h));
    RAW_CHECK(tp_send(c->fd, e, fds, fds_count) == 0);
    receive(c);
    RAW_CHECK(c->packet->header.serial == h.serial);
}

bool raw_client_receive(struct raw_client *c)
{
    struct pollfd p = { .fd = c->fd, .events = POLLIN };
    RAW_CHECK(poll(&p, 1, 20000) == 1);
    int r = tp_recv(c->fd, c->packet);
    RAW_CHECK(r == 1 || r == 0 || r == -ECONNRESET);
    return r == 1;
}

void raw_client_wait_offer(struct raw_client *c, int fd)
{
    struct wire_session_open m;

    memset(c, 0, sizeof(*c));
    c->fd = fd;
    c->packet = new_packet();
    receive(c);
    RAW_CHECK(c->packet->header.type == WIRE_SESSION_OPEN);
    wire_get_session_open(&c->packet->body, &m);
    RAW_CHECK(wire_dec_finish(&c->packet->body));
    for (unsigned i = 0; i < 3; i++)
        c->fds[i] = tp_packet_take_fd(c->packet, i);
    RAW_CHECK(tp_session_attach(&c->shared, c->fds[0], m.session_size) == 0);
    tp_ring_init_producer(&c->ring, &c->shared.control->ring, c->shared.ring_data,
                          c->shared.ring_size);
    c->window_base = m.window_base;
    c->server_pid = m.server_pid;
    c->window_size = m.window_size;
    c->device = map_at(m.window_base, m.window_size / 2, c->fds[1]);
    c->host = map_at(m.window_base + m.window_size / 2, m.window_size / 2, c->fds[2]);
}

void raw_client_open(struct raw_client *c, int fd)
{
    uint8_t buffer[64];
    struct wire_enc e;
    raw_client_wait_offer(c, fd);
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_session_ready(&e, ++c->serial, &(struct wire_session_ready) { 0 });
    raw_client_ask(c, &e, NULL, 0);
    struct wire_status status;
    wire_get_status(&c->packet->body, &status);
    RAW_CHECK(c->packet->header.type == WIRE_STATUS && status.result == 0);
}

void raw_client_close(struct raw_client *c)
{
    close(c->fd);
    for (unsigned i = 0; i < 3; i++)
        close(c->fds[i]);
    munmap(c->device, c->window_size);
    tp_session_detach(&c->shared);
    tp_packet_finish(c->packet);
    free(c->packet);
}

uint64_t raw_alloc(struct raw_client *c, uint64_t size, uint32_t kind, int *result)
{
    uint8_t buffer[128];
    struct wire_enc e;
    struct wire_memory_allocated m;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_memory_alloc(&e, ++c->serial,
                           &(struct wire_memory_alloc) { .size = size, .kind = kind });
    raw_client_ask(c, &e, NULL, 0);
    RAW_CHECK(c->packet->header.type == WIRE_MEMORY_ALLOCATED);
    wire_get_memory_allocated(&c->packet->body, &m);
    if (result)
        *result = m.result;
    return m.result == 0 ? m.address : 0;
}

int raw_status(struct raw_client *c)
{
    struct wire_status m;
    RAW_CHECK(c->packet->header.type == WIRE_STATUS);
    wire_get_status(&c->packet->body, &m);
    return m.result;
}

int raw_free(struct raw_client *c, uint64_t address)
{
    uint8_t buffer[128];
    struct wire_enc e;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_memory_free(&e, ++c->serial, &(struct wire_memory_free) { .address = address });
    raw_client_ask(c, &e, NULL, 0);
    return raw_status(c);
}

uint64_t raw_memory_free(struct raw_client *c)
{
    uint8_t buffer[128];
    struct wire_enc e;
    struct wire_memory_info_is m;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_memory_info(&e, ++c->serial, &(struct wire_memory_info) { 0 });
    raw_client_ask(c, &e, NULL, 0);
    RAW_CHECK(c->packet->header.type == WIRE_MEMORY_INFO_IS);
    wire_get_memory_info_is(&c->packet->body, &m);
    return m.free;
}

uint32_t raw_load(struct raw_client *c, const char *ptx, int *result)
{
    uint8_t buffer[128];
    struct wire_enc e;
    struct wire_module_loaded m;
    size_t size = strlen(ptx) + 1;
    int fd = tp_memfd_from_bytes("image", ptx, size);
    RAW_CHECK(fd >= 0);
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_module_load(&e, ++c->serial,
                          &(struct wire_module_load) { .size = size, .kind = WIRE_IMAGE_KIND_PTX });
    raw_client_ask(c, &e, &fd, 1);
    close(fd);
    RAW_CHECK(c->packet->header.type == WIRE_MODULE_LOADED);
    wire_get_module_loaded(&c->packet->body, &m);
    tp_packet_finish(c->packet);
    if (result)
        *result = m.result;
    return m.result == 0 ? m.module : 0;
}

int raw_unload(struct raw_client *c, uint32_t module)
{
    uint8_t buffer[128];
    struct wire_enc e;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_module_unload(&e, ++c->serial, &(struct wire_module_unload) { .module = module });
    raw_client_ask(c, &e, NULL, 0);
    return raw_status(c);
}

int raw_error(const struct raw_client *c)
{
    return (int)atomic_load_explicit(&c->shared.control->error, memory_order_acquire);
}

static int watchdog(void *arg)
{
    return raw_error(arg);
}

uint64_t raw_post(struct raw_client *c, uint32_t stream, unsigned op, void *record, size_t size,
                  const void *tail, size_t tail_size)
{
    const struct tp_wait_policy policy = {
        .spin_ns = 10000, .slice_ms = 50, .watchdog = watchdog, .arg = c
    };
    struct wire_record *head = record;
    *head = (struct wire_record) { .op = (uint16_t)op,
                                   .size = (uint32_t)(size + tail_size),
                                   .stream = stream,
                                   .seq = ++c->seq[stream] };
    int r = tp_ring_write(&c->ring, head, size, tail, tail_size, &policy);
    RAW_CHECK(r >= 0);
    return c->seq[stream];
}

uint64_t raw_fill(struct raw_client *c, uint32_t stream, uint64_t dst, uint32_t value,
                  uint64_t elements)
{
    struct wire_rec_fill r = { .dst = dst,
                               .pitch = elements * 4,
                               .width = elements,
                               .height = 1,
                               .value = value,
                               .element_size = 4 };
    return raw_post(c, stream, WIRE_OP_FILL, &r, sizeof(r), NULL, 0);
}

struct bounded {
    struct raw_client *client;
    uint64_t end;
};

static int bounded_watchdog(void *arg)
{
    struct bounded *b = arg;
    if (gm_now_ns() > b->end)
        return -ETIMEDOUT;
    return raw_error(b->client);
}

int raw_wait(struct raw_client *c, uint32_t stream, uint64_t seq)
{
    struct bounded b = { c, gm_now_ns() + 20 * GM_NS_PER_S };
    const struct tp_wait_policy policy = {
        .spin_ns = 20000, .slice_ms = 50, .watchdog = bounded_watchdog, .arg = &b
    };
    int r = tp_word_wait(&c->shared.streams[stream].completed, seq, &policy);
    return r != 0 ? r : raw_error(c);
}

void raw_work_and_check(struct raw_client *c, uint64_t memory)
{
    static uint32_t value = 1;
    uint64_t seq = raw_fill(c, 0, memory, ++value, 1024);
    RAW_CHECK(raw_wait(c, 0, seq) == 0);
    const uint32_t *p = (const uint32_t *)(uintptr_t)memory;
    for (unsigned i = 0; i < 1024; i++)
        RAW_CHECK(p[i] == value);
}

/* --- descriptors that take their time ----------------------------------------------------------
 */

#define LINGER_S 600

static const int little = 4096;

static int listen_somewhere(struct sockaddr_in *a)
{
    socklen_t size = sizeof(*a);
    *a = (struct sockaddr_in) { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    RAW_CHECK(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)) == 0);
    RAW_CHECK(bind(fd, (const struct sockaddr *)a, size) == 0 && listen(fd, 1000) == 0);
    RAW_CHECK(getsockname(fd, (struct sockaddr *)a, &size) == 0);
    return fd;
}

int raw_lingering(void)
{
    static struct sockaddr_in address;
    static uint8_t bytes[65536];
    static int listener;
    const struct linger l = { .l_onoff = 1, .l_linger = LINGER_S };
    if (!listener)
        listener = listen_somewhere(&address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    RAW_CHECK(fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
    RAW_CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)) == 0);
    RAW_CHECK(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof(little)) == 0);
    while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        ;
    return fd;
}

/* --- what many tests do ----------------------------------------------------------------------- */

void raw_server_finish(struct raw_server *s)
{
    raw_server_drain(s);
    RAW_CHECK(raw_server_charged(s) == 0);
    raw_server_stop(s);
}

void raw_send_load(struct raw_client *c, const char *ptx)
{
    uint8_t buffer[128];
    struct wire_enc e;
    size_t size = strlen(ptx) + 1;
    int fd = tp_memfd_from_bytes("image", ptx, size);
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_module_load(&e, ++c->serial,
                          &(struct wire_module_load) { .size = size, .kind = WIRE_IMAGE_KIND_PTX });
    RAW_CHECK(fd >= 0 && tp_send(c->fd, &e, &fd, 1) == 0);
    close(fd);
}

uint64_t raw_launch(struct raw_client *c, uint32_t stream, uint32_t module)
{
    struct wire_rec_launch r = { .module = module,
                                 .grid_x = 1,
                                 .grid_y = 1,
                                 .grid_z = 1,
                                 .block_x = 1,
                                 .block_y = 1,
                                 .block_z = 1 };
    return raw_post(c, stream, WIRE_OP_LAUNCH, &r, sizeof(r), NULL, 0);
}

struct raw_client raw_neighbour;
static uint64_t neighbours_memory;

void raw_neighbour_open(struct raw_server *s, uint32_t pid)
{
    raw_client_open(&raw_neighbour, raw_server_connect(s, pid));
    neighbours_memory = raw_alloc(&raw_neighbour, 1 << 20, WIRE_MEMORY_KIND_DEVICE, NULL);
}

void raw_neighbour_check(void)
{
    raw_work_and_check(&raw_neighbour, neighbours_memory);
}

uint32_t raw_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

void raw_stand_in_begin(char *directory)
{
    char self[4096], path[64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    RAW_CHECK(n > 0 && mkdtemp(directory) != NULL);
    self[n] = '\0';
    snprintf(path, sizeof(path), "%s/gmux-executor", directory);
    RAW_CHECK(symlink(self, path) == 0 && setenv("GMUX_LIBEXECDIR", directory, 1) == 0);
}

void raw_stand_in_end(const char *directory)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/gmux-executor", directory);
    unlink(path);
    rmdir(directory);
}
