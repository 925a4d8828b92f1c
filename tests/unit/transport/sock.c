/*
 * Sockets: packets with descriptors, too many of them, cut packets, credentials, and what a full
 * socket says.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "transport/foreign.h"
#include "transport/memfd.h"
#include "transport/sock.h"
#include "wire/messages.h"

static struct tp_packet in;

static unsigned open_descriptors(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* Those of others are closed by a thread. */
static bool descriptors_become(unsigned n)
{
    uint64_t end = gm_now_ns() + 10 * GM_NS_PER_S;
    while (open_descriptors() != n)
        if (sched_yield() != 0 || gm_now_ns() > end)
            return false;
    return true;
}

static struct wire_enc some_packet(uint8_t *buffer, size_t size)
{
    struct wire_enc e;
    wire_enc_init(&e, buffer, size);
    wire_pack_memory_free(&e, 77, &(struct wire_memory_free) { .address = 4711 });
    return e;
}

/* Sends bytes and `count` copies of standard input, past tp_send()'s own checks. */
static void send_raw(int fd, const void *data, size_t size, unsigned count)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * 64)];
    } control = { 0 };
    struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = size };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
    if (count) {
        m.msg_control = &control;
        m.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * count);
        memset(CMSG_DATA(c), 0, sizeof(int) * count);
    }
    cr_assert_eq(sendmsg(fd, &m, 0), (ssize_t)size);
}

Test(sock, a_packet_with_descriptors)
{
    int fds[2], pipes[2];
    uint8_t buffer[64];
    struct wire_memory_free m;
    cr_assert_eq(tp_pair(fds), 0);
    cr_assert_eq(pipe(pipes), 0);
    struct wire_enc e = some_packet(buffer, sizeof(buffer));
    cr_assert_eq(tp_send(fds[0], &e, pipes, 2), 0);
    cr_assert_eq(tp_recv(fds[1], &in), 1);
    cr_assert_eq(in.header.type, WIRE_MEMORY_FREE);
    cr_assert_eq(in.header.serial, 77);
    wire_get_memory_free(&in.body, &m);
    cr_assert(wire_dec_finish(&in.body));
    cr_assert_eq(m.address, 4711);
    cr_assert_eq(in.fds_count, 2);
    int taken = tp_packet_take_fd(&in, 1);
    cr_assert_geq(taken, 0);
    cr_assert_eq(fcntl(taken, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    cr_assert_eq(tp_packet_take_fd(&in, 1), -1);
    cr_assert_eq(tp_packet_take_fd(&in, 2), -1);
    cr_assert_eq(write(taken, "x", 1), 1);
    tp_packet_finish(&in);
    tp_packet_finish(&in);
}

Test(sock, too_many_descriptors_are_not_opened)
{
    int fds[2];
    uint8_t buffer[64];
    struct wire_enc e = some_packet(buffer, sizeof(buffer));
    unsigned before = open_descriptors();
    static const unsigned counts[] = { TP_FDS_MAX, TP_FDS_MAX + 1, 2 * TP_FDS_MAX,
                                       2 * TP_FDS_MAX + 1, 50 };
    for (size_t i = 0; i < GM_ARRAY_LEN(counts); i++) {
        cr_assert_eq(tp_pair(fds), 0);
        send_raw(fds[0], e.data, e.size, counts[i]);
        cr_assert_eq(tp_recv_plain(fds[1], &in), -EBADMSG, "%u descriptors", counts[i]);
        cr_assert_eq(open_descriptors(), before + 2);
        cr_assert_eq(tp_recv(fds[1], &in), i == 0 ? 1 : -EBADMSG, "%u descriptors", counts[i]);
        tp_packet_finish(&in);
        cr_assert(descriptors_become(before + 2));
        tp_hang_up(fds[1]);
        close(fds[0]);
        cr_assert(descriptors_become(before));
    }
    cr_assert_eq(tp_pair(fds), 0);
    cr_assert_eq(tp_send(fds[0], &e, fds, TP_FDS_MAX + 1), -EMSGSIZE);
}

Test(sock, packets_cut_at_every_length)
{
    int fds[2];
    uint8_t buffer[64];
    struct wire_enc e = some_packet(buffer, sizeof(buffer));
    cr_assert_eq(tp_pair(fds), 0);
    unsigned before = open_descriptors();
    for (size_t n = 1; n < e.size; n++) {
        send_raw(fds[0], e.data, n, 1);
        cr_assert_eq(tp_recv(fds[1], &in), -EBADMSG, "cut at %zu", n);
        cr_assert(descriptors_become(before));
    }
    /* Longer than it says, and a header that is none. */
    uint8_t longer[64] = { 0 };
    memcpy(longer, e.data, e.size);
    send_raw(fds[0], longer, e.size + 1, 0);
    cr_assert_eq(tp_recv(fds[1], &in), -EBADMSG);
    longer[2] = 1; /* reserved */
    send_raw(fds[0], longer, e.size, 0);
    cr_assert_eq(tp_recv(fds[1], &in), -EBADMSG);
}

Test(sock, a_packet_longer_than_any_may_be)
{
    static uint8_t big[WIRE_PACKET_MAX + 8];
    int fds[2];
    cr_assert_eq(tp_pair(fds), 0);
    struct wire_header h = { .type = WIRE_MEMORY_FREE, .size = sizeof(big) };
    memcpy(big, &h, sizeof(h));
    send_raw(fds[0], big, sizeof(big), 1);
    cr_assert_eq(tp_recv(fds[1], &in), -EBADMSG);
}

Test(sock, the_end_of_a_connection)
{
    int fds[2];
    uint8_t buffer[64];
    struct wire_enc e = some_packet(buffer, sizeof(buffer));
    cr_assert_eq(tp_pair(fds), 0);
    cr_assert_eq(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
    cr_assert_eq(tp_recv(fds[1], &in), -EAGAIN);
    cr_assert_eq(tp_send(fds[0], &e, NULL, 0), 0);
    close(fds[0]);
    cr_assert_eq(tp_recv(fds[1], &in), 1, "what was sent before arrives");
    cr_assert_eq(tp_recv(fds[1], &in), 0);
    int r = tp_send(fds[1], &e, NULL, 0); /* no SIGPIPE */
    cr_assert(r == -EPIPE || r == -ECONNRESET);
}

Test(sock, a_full_socket_says_so)
{
    int fds[2];
    uint8_t buffer[64];
    struct wire_enc e = some_packet(buffer, sizeof(buffer));
    int r = 0;
    cr_assert_eq(tp_pair(fds), 0);
    cr_assert_eq(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
    for (unsigned i = 0; r == 0 && i < 100000; i++)
        r = tp_send(fds[0], &e, NULL, 0);
    cr_assert_eq(r, -EAGAIN);
}

static void receive(int fd, unsigned packets)
{
    while (packets--) {
        cr_assert_eq(tp_recv(fd, &in), 1);
        tp_packet_finish(&in);
    }
}

/* A process without privileges that sends descriptors while nobody receives them. */
static int crowd(int fd, int go, int report)
{
    uint8_t buffer[64], word = 0;
    struct wire_enc e = some_packet(buffer, sizeof(buffer));
    const uid_t nobody = 65534;
    unsigned sent = 0;
    int r = 0;
    if ((geteuid() == 0 && setresuid(nobody, nobody, nobody) < 0) ||
        setrlimit(RLIMIT_NOFILE, &(struct rlimit) { 16, 16 }) < 0 ||
        fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        return 1;
    while (sent < 100 && (r = tp_send(fd, &e, &report, 1)) == 0)
        sent++;
    if (r != -EAGAIN || tp_send(fd, &e, NULL, 0) != 0)
        return 2;
    if (write(report, &sent, sizeof(sent)) != sizeof(sent) || read(go, &word, 1) != 1)
        return 3;
    if (tp_send(fd, &e, &report, 1) != 0 || fcntl(fd, F_SETFL, 0) < 0)
        return 4;
    for (unsigned i = 0; i < 100; i++) /* a socket that blocks */
        if (tp_send(fd, &e, &report, 1) != 0)
            return 5;
    return 0;
}

Test(sock, too_many_descriptors_on_their_way)
{
    int fds[2], go[2], report[2], status;
    unsigned sent = 0;
    cr_assert_eq(tp_pair(fds), 0);
    cr_assert(pipe(go) == 0 && pipe(report) == 0);
    pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0)
        _exit(crowd(fds[0], go[0], report[1]));
    close(fds[0]);
    close(report[1]);
    cr_assert_eq(read(report[0], &sent, sizeof(sent)), sizeof(sent));
    receive(fds[1], sent + 1);
    cr_assert_eq(write(go[1], "", 1), 1);
    receive(fds[1], 101);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0, "%d", WEXITSTATUS(status));
}

/* Closed at once where nothing that others sent is closed with it, else by a thread. */
Test(sock, hanging_up)
{
    static const struct {
        unsigned packets, size, descriptors;
        bool at_once;
    } cases[] = { { 0, 0, 0, true },   { 3, 16, 0, true }, { 2, 0, 0, true },
                  { 1, 16, 1, false }, { 1, 0, 1, false }, { 40, 1, 0, false } };
    const uint8_t bytes[16] = { 0 };
    unsigned before = open_descriptors();
    for (size_t i = 0; i < GM_ARRAY_LEN(cases); i++) {
        int fds[2], pipes[2];
        cr_assert_eq(tp_pair(fds), 0);
        cr_assert_eq(pipe(pipes), 0);
        for (unsigned n = 0; n < cases[i].packets; n++)
            send_raw(fds[0], bytes, cases[i].size, cases[i].descriptors);
        cr_assert_eq(tp_hang_up(fds[1]), -1);
        if (cases[i].at_once)
            cr_assert_lt(fcntl(fds[1], F_GETFD), 0, "case %zu", i);
        close(fds[0]);
        close(pipes[0]);
        close(pipes[1]);
        cr_assert(descriptors_become(before), "case %zu", i);
    }
}

Test(sock, a_packet_for_whose_descriptors_there_is_no_room)
{
    int fds[2];
    uint8_t buffer[64];
    struct wire_memory_free m;
    struct rlimit limit;
    struct wire_enc e = some_packet(buffer, sizeof(buffer));
    cr_assert_eq(tp_pair(fds), 0);
    cr_assert_eq(tp_send(fds[0], &e, fds, 2), 0);
    cr_assert_eq(tp_send(fds[0], &e, fds, 2), 0);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit one_more = { (rlim_t)fds[1] + 2, limit.rlim_max };
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &one_more), 0);
    cr_assert_eq(tp_recv(fds[1], &in), -EMFILE);
    wire_get_memory_free(&in.body, &m);
    cr_assert(wire_dec_finish(&in.body) && m.address == 4711);
    cr_assert_eq(in.fds_count, 0);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    tp_recv_skip(fds[1]);
    cr_assert_eq(tp_recv(fds[1], &in), 1, "the connection goes on");
    cr_assert_eq(in.fds_count, 2);
    tp_packet_finish(&in);
    cr_assert_eq(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
    cr_assert_eq(tp_recv(fds[1], &in), -EAGAIN);
}

Test(sock, an_overflowing_encoder_is_not_sent)
{
    int fds[2];
    uint8_t buffer[8];
    struct wire_enc e = some_packet(buffer, sizeof(buffer));
    cr_assert_eq(tp_pair(fds), 0);
    cr_assert_eq(tp_send(fds[0], &e, NULL, 0), -EMSGSIZE);
}

static bool kernel_is_at_least(unsigned major, unsigned minor)
{
    struct utsname u;
    unsigned has_major, has_minor;
    cr_assert_eq(uname(&u), 0);
    cr_assert_eq(sscanf(u.release, "%u.%u", &has_major, &has_minor), 2);
    return has_major > major || (has_major == major && has_minor >= minor);
}

/* As where /proc shows nobody other users' processes (hidepid=2). */
Test(sock, the_peers_process_is_known_without_proc)
{
    char dir[] = "/tmp/gmux-sock-XXXXXX";
    int fds[2];
    if (geteuid() != 0 || !kernel_is_at_least(6, 13))
        cr_skip_test("no root, or an older kernel");
    cr_assert_not_null(mkdtemp(dir));
    cr_assert_eq(tp_pair(fds), 0);
    cr_assert_eq(chroot(dir), 0);
    cr_assert_geq(tp_peer_process(fds[0]), 0);
}

/* Also once it is somebody else, or gone: its socket is here. */
Test(sock, the_peers_process_has_to_run_as_who_connected)
{
    int fds[2], own[2];
    uint8_t buffer[64];
    cr_assert_eq(tp_pair(fds), 0);
    cr_assert_geq(tp_peer_process(fds[0]), 0);
    pid_t child = fork();
    if (child == 0) {
        const struct wire_enc e = some_packet(buffer, sizeof(buffer));
        _exit(tp_pair(own) < 0 || tp_send(fds[1], &e, own, 1) < 0);
    }
    cr_assert_eq(waitpid(child, NULL, 0), child);
    cr_assert_eq(tp_recv(fds[0], &in), 1);
    cr_assert_eq(tp_peer_process(in.fds[0]), -ESRCH);
    tp_packet_finish(&in);
    if (geteuid() != 0)
        return;
    cr_assert_eq(seteuid(1000), 0);
    cr_assert_eq(tp_peer_process(fds[0]), -ESRCH);
}

/* What a program prints that has closed them does not go where we write, or keep memory. */
Test(sock, nothing_of_ours_has_the_numbers_of_standard_descriptors)
{
    int fds[2];
    uint8_t buffer[64];
    const struct wire_enc e = some_packet(buffer, sizeof(buffer));
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    bool good = tp_pair(fds) == 0 && fds[0] > STDERR_FILENO && fds[1] > STDERR_FILENO;
    int memory = tp_memfd_create("test", 4096);
    good = good && memory > STDERR_FILENO && tp_memfd_from_bytes("test", "", 1) > STDERR_FILENO;
    good = good && tp_send(fds[0], &e, &memory, 1) == 0 && tp_recv(fds[1], &in) == 1;
    good = good && in.fds_count == 1 && in.fds[0] > STDERR_FILENO;
    for (int i = 0; i <= STDERR_FILENO; i++)
        good = good && fcntl(i, F_GETFD) < 0;
    _exit(good ? 0 : 1);
}

Test(sock, listening_connecting_and_who_it_is)
{
    char dir[] = "/tmp/gmux-sock-XXXXXX";
    char path[64];
    char long_path[200];
    struct tp_peer peer;
    cr_assert_not_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/control", dir);
    cr_assert_eq(tp_connect(path), -ENOENT);
    int listener = tp_listen(path);
    cr_assert_geq(listener, 0);
    cr_assert_eq(tp_listen(path), -EADDRINUSE);
    int fd = tp_connect(path);
    cr_assert_geq(fd, 0);
    int other = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    cr_assert_geq(other, 0);
    cr_assert_eq(tp_peer(other, &peer), 0);
    cr_assert_eq(peer.pid, getpid());
    cr_assert_eq(peer.uid, getuid());
    cr_assert_eq(peer.gid, getgid());
    close(listener);
    cr_assert_eq(tp_connect(path), -ECONNREFUSED);
    unlink(path);
    rmdir(dir);

    memset(long_path, 'x', sizeof(long_path) - 1);
    long_path[sizeof(long_path) - 1] = '\0';
    cr_assert_eq(tp_listen(long_path), -ENAMETOOLONG);
    cr_assert_eq(tp_connect(long_path), -ENAMETOOLONG);
    cr_assert_lt(tp_peer(0, &peer), 0);
}
