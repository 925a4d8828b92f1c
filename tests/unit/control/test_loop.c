/*
 * Channels, lines and timers: order and bounds of what waits, hand-over of a socket, closing from
 * inside callbacks.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/loop.h"
#include "wire/messages.h"

TestSuite(loop, .timeout = 30);

struct owner {
    struct ctl_channel *channel;
    unsigned packets;
    int gone; /* 1: not yet */
    bool close_at_packet;
};

static void on_packet(void *arg, struct tp_packet *p)
{
    struct owner *o = arg;
    cr_assert_eq(p->header.type, WIRE_LINK_TERMINATE);
    o->packets++;
    if (o->close_at_packet)
        ctl_channel_close(o->channel);
}

static void on_gone(void *arg, int error)
{
    struct owner *o = arg;
    o->gone = error;
    ctl_channel_close(o->channel);
}

static const struct ctl_channel_ops ops = { .packet = on_packet, .gone = on_gone };

static uv_loop_t loop;
static int peer;

static struct owner open_channel(struct owner *o)
{
    int pair[2];
    uv_loop_init(&loop);
    cr_assert_eq(tp_pair(pair), 0);
    peer = pair[1];
    *o = (struct owner) { .channel = ctl_channel_create(&loop, pair[0], &ops, o), .gone = 1 };
    cr_assert_not_null(o->channel);
    return *o;
}

static void close_loop(void)
{
    uv_run(&loop, UV_RUN_DEFAULT);
    cr_assert_eq(uv_loop_close(&loop), 0, "a handle was left open");
}

static struct wire_enc number(uint32_t n, uint8_t *buffer, size_t size)
{
    struct wire_enc e;
    wire_enc_init(&e, buffer, size);
    wire_pack_link_terminate(&e, 0, &(struct wire_link_terminate) { .pid = n });
    return e;
}

static uint32_t receive(int fd)
{
    static struct tp_packet p;
    struct wire_link_terminate m;
    cr_assert_eq(tp_recv(fd, &p), 1);
    wire_get_link_terminate(&p.body, &m);
    cr_assert(wire_dec_finish(&p.body));
    return m.pid;
}

Test(loop, packets_then_the_end)
{
    struct owner o;
    uint8_t buffer[64];
    open_channel(&o);
    struct wire_enc e = number(1, buffer, sizeof(buffer));
    for (int i = 0; i < 100; i++)
        cr_assert_eq(tp_send(peer, &e, NULL, 0), 0);
    close(peer);
    close_loop();
    cr_assert_eq(o.packets, 100);
    cr_assert_eq(o.gone, 0);
}

Test(loop, malformed)
{
    struct owner o;
    open_channel(&o);
    cr_assert_eq(send(peer, "garbage", 7, 0), 7);
    close_loop();
    cr_assert_eq(o.gone, -EBADMSG);
    close(peer);
}

Test(loop, closing_inside_a_callback)
{
    struct owner o;
    uint8_t buffer[64];
    open_channel(&o);
    o.close_at_packet = true;
    struct wire_enc e = number(1, buffer, sizeof(buffer));
    cr_assert_eq(tp_send(peer, &e, NULL, 0), 0);
    cr_assert_eq(tp_send(peer, &e, NULL, 0), 0);
    close_loop();
    cr_assert_eq(o.packets, 1, "no callback after closing");
    cr_assert_eq(o.gone, 1);
    close(peer);
}

/* A connection whose last close() waits for ten minutes: nobody receives what was sent. */
static int lingering(void)
{
    static uint8_t bytes[65536];
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct sockaddr *address = (struct sockaddr *)&a;
    socklen_t size = sizeof(a);
    const struct linger l = { .l_onoff = 1, .l_linger = 600 };
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(bind(listener, address, size), 0);
    cr_assert_eq(listen(listener, 1), 0);
    cr_assert_eq(getsockname(listener, address, &size), 0);
    cr_assert_eq(connect(fd, address, size), 0);
    cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)), 0);
    while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        ;
    return fd;
}

/* What it has sent ends with it, and that is not to be waited for. */
Test(loop, a_client_is_handed_over_to_nobody)
{
    struct owner o, client = { .gone = 1 };
    uint8_t buffer[64];
    int pair[2], fd = lingering();
    open_channel(&o);
    struct wire_enc e = number(1, buffer, sizeof(buffer));
    while (ctl_channel_unread(o.channel) == 0)
        cr_assert_eq(ctl_channel_send(o.channel, &e, -1), 0);
    cr_assert_eq(tp_pair(pair), 0);
    client.channel = ctl_channel_create(&loop, pair[0], &ops, &client);
    cr_assert_not_null(client.channel);
    cr_assert_eq(tp_send(pair[1], &e, &fd, 1), 0);
    close(fd);
    cr_assert_eq(ctl_channel_hand_over(o.channel, &e, client.channel), 0);
    close(pair[1]);
    close(peer);
    ctl_channel_close(o.channel);
    close_loop();
}

Test(loop, what_the_socket_does_not_take_waits_in_order)
{
    struct owner o;
    uint8_t buffer[64];
    enum { COUNT = 4000 };
    open_channel(&o);
    for (uint32_t i = 0; i < COUNT; i++) {
        struct wire_enc e = number(i, buffer, sizeof(buffer));
        cr_assert_eq(ctl_channel_send(o.channel, &e, -1), 0);
    }
    fcntl(peer, F_SETFL, O_NONBLOCK);
    for (uint32_t i = 0; i < COUNT;) {
        static struct tp_packet p;
        int r = tp_recv(peer, &p);
        if (r == -EAGAIN) {
            uv_run(&loop, UV_RUN_ONCE);
            continue;
        }
        struct wire_link_terminate m;
        cr_assert_eq(r, 1);
        wire_get_link_terminate(&p.body, &m);
        cr_assert_eq(m.pid, i++);
    }
    close(peer);
    close_loop();
    cr_assert_eq(o.gone, 0);
}

Test(loop, a_peer_that_does_not_read_is_bounded)
{
    struct owner o;
    static uint8_t buffer[WIRE_PACKET_MAX];
    static char line[2048];
    open_channel(&o);
    memset(line, 'x', sizeof(line) - 1);
    int r = 0;
    unsigned sent;
    for (sent = 0; r == 0 && sent < 100000; sent++) {
        struct wire_enc e;
        wire_enc_init(&e, buffer, sizeof(buffer));
        wire_pack_link_log(&e, 0, &(struct wire_link_log) { .line = line });
        r = ctl_channel_send(o.channel, &e, -1);
    }
    cr_assert_eq(r, -ENOBUFS);
    cr_assert_lt(sent, 10000);
    ctl_channel_close(o.channel);
    close_loop();
    close(peer);
}

Test(loop, a_socket_is_handed_over_blocking_and_whole)
{
    struct owner link, given;
    uint8_t buffer[64];
    static struct tp_packet p;
    open_channel(&given);
    int client = peer;
    uv_loop_t *same = &loop;
    int pair[2];
    cr_assert_eq(tp_pair(pair), 0);
    link = (struct owner) { .channel = ctl_channel_create(same, pair[0], &ops, &link), .gone = 1 };

    struct wire_enc e = number(7, buffer, sizeof(buffer));
    cr_assert_eq(ctl_channel_hand_over(link.channel, &e, given.channel), 0);
    cr_assert_eq(tp_recv(pair[1], &p), 1);
    int fd = tp_packet_take_fd(&p, 0);
    cr_assert_geq(fd, 0);
    cr_assert_not(fcntl(fd, F_GETFL) & O_NONBLOCK);
    cr_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    e = number(8, buffer, sizeof(buffer));
    cr_assert_eq(tp_send(fd, &e, NULL, 0), 0);
    cr_assert_eq(receive(client), 8);
    e = number(9, buffer, sizeof(buffer));
    cr_assert_eq(tp_send(client, &e, NULL, 0), 0);
    uv_run(&loop, UV_RUN_NOWAIT);
    cr_assert_eq(given.packets, 0, "the loop has let go of it");
    cr_assert_eq(receive(fd), 9);
    ctl_channel_close(link.channel);
    close_loop();
}

Test(loop, a_hand_over_that_fails_leaves_the_socket_as_it_was)
{
    struct owner link, given;
    uint8_t buffer[64];
    int pair[2];
    open_channel(&given);
    int client = peer;
    cr_assert_eq(tp_pair(pair), 0);
    link = (struct owner) { .channel = ctl_channel_create(&loop, pair[0], &ops, &link), .gone = 1 };
    close(pair[1]);
    struct wire_enc e = number(7, buffer, sizeof(buffer));
    cr_assert_lt(ctl_channel_hand_over(link.channel, &e, given.channel), 0);
    ctl_channel_drain(given.channel); /* would block for ever on a blocking socket */
    cr_assert_eq(tp_send(client, &e, NULL, 0), 0);
    close(client);
    close_loop();
    cr_assert_eq(given.packets, 1);
    cr_assert_eq(given.gone, 0);
}

/* --- lines ------------------------------------------------------------------------------------ */

static char lines[8][2048];
static unsigned lines_count;

static void on_line(void *owner, const char *line)
{
    (void)owner;
    if (lines_count < 8)
        strcpy(lines[lines_count++], line);
}

Test(loop, lines)
{
    int fds[2];
    char big[3000];
    uv_loop_init(&loop);
    cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
    struct ctl_lines *l = ctl_lines_create(&loop, fds[0], on_line, NULL);
    cr_assert_not_null(l);
    memset(big, 'x', sizeof(big));
    cr_assert_eq(write(fds[1], "one\n\ntwo\0\033[2J\n", 14), 14);
    cr_assert_eq(write(fds[1], big, sizeof(big)), (ssize_t)sizeof(big));
    cr_assert_eq(write(fds[1], "\nrest", 5), 5);
    close(fds[1]);
    ctl_lines_drain(l);
    ctl_lines_close(l);
    close_loop();
    cr_assert_eq(lines_count, 4);
    cr_assert_str_eq(lines[0], "one");
    cr_assert_str_eq(lines[1], "two??[2J");
    cr_assert_eq(strlen(lines[2]), 1024, "a long line is cut");
    cr_assert_str_eq(lines[3], "rest");
}

/* --- timers ----------------------------------------------------------------------------------- */

static struct ctl_timer *timer;
static int fired;

static void on_timer(void *owner)
{
    cr_assert_eq(owner, &fired);
    if (++fired < 3)
        ctl_timer_start(timer, 1);
    else
        ctl_timer_close(timer);
}

Test(loop, timers)
{
    uv_loop_init(&loop);
    timer = ctl_timer_create(&loop, on_timer, &fired);
    ctl_timer_start(timer, 0);
    close_loop();
    cr_assert_eq(fired, 3);
    ctl_timer_close(NULL);
}
