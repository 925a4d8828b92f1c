/*
 * Descriptors of every kind, few and many, with every message that a client may send, before and
 * after it is attached: files in memory that are not sealed, or not yet, or of another size or of
 * huge pages, pipes, directories, devices, sockets, descriptors that may not be used (O_PATH), ones
 * that hang when they are closed. The sender has an error or is dropped, nobody else notices, and
 * none of them stays open.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "raw.h"
#include "sample.h"
#include "transport/memfd.h"

#define SIZE    4096u
#define MANY    253u /* as many as the kernel takes */
#define WATCHED 64u

static struct raw_server server;
static struct raw_client neighbour, sender;
static uint64_t neighbours_memory;
static uint32_t next_pid = 1000;
static uint8_t buffer[WIRE_PACKET_MAX];
static uint8_t bytes[SIZE];

/* --- descriptors ------------------------------------------------------------------------------ */

static int memory(unsigned flags, off_t size, int seals)
{
    int fd = memfd_create("kind", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
    if (fd >= 0 && (ftruncate(fd, size) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0))
        fd = gm_close(fd);
    return fd;
}

static int unsealed(void)
{
    return memory(0, SIZE, 0);
}

static int half_sealed(void)
{
    return memory(0, SIZE, F_SEAL_SHRINK | F_SEAL_WRITE);
}

static int sealed_for_the_future(void)
{
    return memory(0, SIZE, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE);
}

static int other_size(void)
{
    return memory(0, SIZE + 1, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
}

static int right_and_zero(void)
{
    return memory(0, SIZE, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
}

static int huge(void)
{
    return memory(MFD_HUGETLB, 2 << 20, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
}

static int read_end(void)
{
    int fds[2];
    RAW_CHECK(pipe2(fds, O_CLOEXEC) == 0);
    close(fds[1]);
    return fds[0];
}

static int full_pipe(void)
{
    int fds[2];
    RAW_CHECK(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
    while (write(fds[1], bytes, sizeof(bytes)) > 0)
        ;
    close(fds[0]);
    return fds[1];
}

static int directory(void)
{
    return open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int path_only(void)
{
    return open("/etc/passwd", O_PATH | O_CLOEXEC);
}

static int file(void)
{
    return open("/etc/passwd", O_RDONLY | O_CLOEXEC);
}

static int zeroes(void)
{
    return open("/dev/zero", O_RDWR | O_CLOEXEC);
}

static int full_device(void)
{
    return open("/dev/full", O_RDWR | O_CLOEXEC);
}

static int shared_memory(void)
{
    return open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

static int own_socket(void)
{
    return fcntl(sender.fd, F_DUPFD_CLOEXEC, 0);
}

static int listener(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    RAW_CHECK(fd >= 0);
    return fd;
}

static int watches(void)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);
    RAW_CHECK(fd >= 0);
    for (unsigned i = 0; i < WATCHED; i++) {
        GM_AUTO_FD int other = eventfd(0, EFD_CLOEXEC);
        (void)epoll_ctl(fd, EPOLL_CTL_ADD, other, &(struct epoll_event) { .events = EPOLLIN });
    }
    return fd;
}

static int events(void)
{
    return eventfd(UINT32_MAX, EFD_CLOEXEC);
}

static int timer(void)
{
    return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
}

static int notices(void)
{
    return inotify_init1(IN_CLOEXEC);
}

static const struct kind {
    const char *name;
    int (*make)(void);
} kinds[] = {
    { "not sealed", unsealed },
    { "half sealed", half_sealed },
    { "sealed for the future", sealed_for_the_future },
    { "of another size", other_size },
    { "zeroes, sealed", right_and_zero },
    { "huge pages", huge },
    { "pipe without writers", read_end },
    { "pipe that is full", full_pipe },
    { "directory", directory },
    { "O_PATH", path_only },
    { "file", file },
    { "/dev/zero", zeroes },
    { "/dev/full", full_device },
    { "/dev/shm", shared_memory },
    { "the connection itself", own_socket },
    { "socket", listener },
    { "epoll", watches },
    { "eventfd", events },
    { "timerfd", timer },
    { "inotify", notices },
    { "connection that lingers", raw_lingering },
};

/* --- messages --------------------------------------------------------------------------------- */

/* With more descriptors than tp_send() takes. */
static bool send_with(int fd, const void *data, size_t size, const int *fds, unsigned count)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * MANY)];
    } control = { 0 };
    struct iovec iov = { (void *)(uintptr_t)data, size };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
    if (count) {
        m.msg_control = control.space;
        m.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * count);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * count);
    }
    return sendmsg(fd, &m, MSG_NOSIGNAL) == (ssize_t)size;
}

/* A child sends, and has the last of our copies when it ends: a process that ends does not wait for
 * one that hangs, as close() would if the server has closed its own by then. */
static void send_and_close(size_t size, int fd, unsigned count)
{
    static int fds[MANY];
    int gate[2];
    char none;
    for (unsigned i = 0; i < count; i++)
        fds[i] = fd;
    RAW_CHECK(pipe2(gate, O_CLOEXEC) == 0);
    pid_t child = fork();
    RAW_CHECK(child >= 0);
    if (child == 0) {
        close(gate[1]);
        (void)!read(gate[0], &none, 1); /* until the other copy is closed */
        (void)send_with(sender.fd, buffer, size, fds, count);
        _exit(0);
    }
    close(fd);
    close(gate[0]);
    close(gate[1]);
    RAW_CHECK(waitpid(child, NULL, 0) == child);
}

static size_t pack(const struct sample *s, enum sample_variant v)
{
    struct wire_enc e;
    if (s->type != WIRE_MODULE_LOAD || v != SAMPLE_SOME)
        return sample_pack(s, v, ++sender.serial, buffer, sizeof(buffer));
    wire_enc_init(&e, buffer, sizeof(buffer)); /* one whose size is right, for some */
    wire_pack_module_load(&e, ++sender.serial,
                          &(struct wire_module_load) { .size = SIZE, .kind = WIRE_IMAGE_KIND_PTX });
    return e.size;
}

static void open_sender(bool attached)
{
    int fd = raw_server_connect(&server, next_pid++);
    if (attached)
        raw_client_open(&sender, fd);
    else
        raw_client_wait_offer(&sender, fd);
}

/* Each message from a client of its own. What comes of it is the server's to say: the client waits
 * for a word, or for the end. */
static void send_once(const struct sample *s, enum sample_variant v, bool attached,
                      const struct kind *k, unsigned count)
{
    open_sender(attached);
    const int fd = count ? k->make() : unsealed(); /* one that hangs would do so unsent */
    if (fd >= 0) {                                 /* else there is no such thing here */
        send_and_close(pack(s, v), fd, count);
        (void)shutdown(sender.fd, SHUT_WR);
        while (raw_client_receive(&sender))
            tp_packet_finish(sender.packet);
    }
    raw_client_close(&sender);
}

static bool is_a_clients(const struct sample *s)
{
    const struct wire_message_info *info = s->type ? wire_message_info(s->type) : NULL;
    return info && info->sender == WIRE_CLIENT && info->receiver == WIRE_SERVER;
}

int main(void)
{
    static const unsigned counts[] = { 1, 0, 2, TP_FDS_MAX, TP_FDS_MAX + 1, MANY };
    unsigned sent = 0;
    alarm(170);
    raw_server_start(&server, "null");
    raw_client_open(&neighbour, raw_server_connect(&server, 1));
    neighbours_memory = raw_alloc(&neighbour, SIZE, WIRE_MEMORY_KIND_DEVICE, NULL);
    const pid_t executor = raw_server_executor(&server);
    raw_server_settle(&server, 1);
    const unsigned descriptors = raw_descriptors(server.pid), executors = raw_descriptors(executor);
    for (size_t i = 0; i < samples_count; i++) {
        const struct sample *s = &samples[i];
        if (!is_a_clients(s))
            continue;
        const bool takes_one = wire_message_info(s->type)->fds != 0;
        for (size_t k = 0; k < GM_ARRAY_LEN(kinds); k++) {
            if (takes_one || k % 4 == i % 4)
                send_once(s, SAMPLE_SOME, true, &kinds[k], 1), sent++;
            if (k % 7 == i % 7)
                send_once(s, SAMPLE_ZERO, k % 2, &kinds[k], counts[(i + k) % GM_ARRAY_LEN(counts)]),
                    sent++;
        }
        raw_work_and_check(&neighbour, neighbours_memory);
        raw_server_forget_log(&server);
    }
    raw_server_settle(&server, 1);
    RAW_CHECK(raw_server_executor(&server) == executor);
    raw_client_close(&neighbour);
    raw_server_drain(&server);
    RAW_CHECK(raw_server_charged(&server) == 0);
    raw_expect_descriptors(executor, executors);
    raw_expect_descriptors(server.pid, descriptors);
    raw_server_stop(&server);
    printf("%u messages\n", sent);
    return 0;
}
