/*
 * The side of the daemon's socket that sends a line and prints the answer.
 */
#include "control/ui.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "control/request.h"
#include "control/place.h"
#include "transport/sock.h"
#include "wire/messages.h"

/* How long the daemon's process may take to end after `quit`. */
#define GONE_MS 5000

/* The daemon gives a server CTL_ANSWER_MS for its answer, and answers itself after that. */
#define PATIENCE_S     15
#define PATIENCE_MAX_S 86400

static struct tp_packet packet;
static int output_error;

static int connect_to(const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", ctl_place_pipe_directory(), name);
    return tp_connect(path);
}

int ctl_ui_connect(void)
{
    int fd = connect_to(CTL_PRIVILEGED_SOCKET);
    return fd >= 0 ? fd : connect_to(CTL_SOCKET);
}

void ctl_ui_patience(int fd, bool bounded)
{
    const char *text = getenv("GMUX_ANSWER_TIMEOUT");
    uint64_t seconds;
    if (!text || !gm_parse_u64(text, PATIENCE_MAX_S, &seconds) || seconds == 0)
        seconds = PATIENCE_S;
    const struct timeval limit = { .tv_sec = bounded ? (time_t)seconds : 0 };
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

bool ctl_ui_ask(int fd, const char *line, FILE *out)
{
    uint8_t buffer[CTL_LINE_MAX + 64];
    struct wire_enc e;
    struct wire_ui_reply m;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_ui_command(&e, 0, &(struct wire_ui_command) { .line = line });
    if (tp_send(fd, &e, NULL, 0) < 0)
        return false;
    do {
        if (tp_recv(fd, &packet) <= 0)
            return false;
        wire_get_ui_reply(&packet.body, &m);
        bool good = packet.header.type == WIRE_UI_REPLY && wire_dec_finish(&packet.body);
        if (good)
            fwrite(m.text.data, 1, m.text.size, out);
        tp_packet_finish(&packet);
        if (!good)
            return false;
    } while (!m.last);
    if (fflush(out) < 0)
        output_error = errno;
    return true;
}

/* Waits until the daemon's process has ended. Scripts look for the process right after `quit`. */
static void wait_until_gone(int fd)
{
    struct tp_peer peer;
    if (tp_peer(fd, &peer) < 0 || peer.pid <= 0)
        return;
    GM_AUTO_FD int process = (int)syscall(SYS_pidfd_open, peer.pid, 0);
    struct pollfd p = { .fd = process, .events = POLLIN };
    if (process >= 0)
        poll(&p, 1, GONE_MS);
}

static bool is_quit(const char *line)
{
    struct ctl_words w;
    return ctl_words_parse(&w, line) && strcmp(ctl_words_at(&w, 0), "quit") == 0;
}

/* Sends one line. Returns 0 or an exit status. The first `quit` that works ends the daemon, and the
 * lines after it cannot be sent. */
static int run_line(int fd, const char *line)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    if (strlen(line) > CTL_LINE_MAX) {
        printf("Command too long\n");
        return 0;
    }
    /* `quit` waits for programs to end, so that it has no limit. */
    ctl_ui_patience(fd, !is_quit(line));
    if (!ctl_ui_ask(fd, line, stdout)) {
        printf("Cannot send command to MPS control daemon process\n");
        return 1;
    }
    /* A refused `quit` leaves the connection open. */
    if (is_quit(line) && poll(&p, 1, 100) > 0)
        wait_until_gone(fd);
    return 0;
}

static int run_input(int fd)
{
    GM_AUTO_FREE char *line = NULL;
    size_t capacity = 0;
    ssize_t n;
    int status = 0;
    while (status == 0 && (n = getline(&line, &capacity, stdin)) >= 0) {
        if (n > 0 && line[n - 1] == '\n')
            line[n - 1] = '\0';
        status = run_line(fd, line);
    }
    return status;
}

/* Returns the exit status, which tells of output that could not be written. A program that closes
 * the pipe early does so on purpose. */
static int finish_output(int status)
{
    if (fflush(stdout) < 0)
        output_error = errno;
    if (!output_error || output_error == EPIPE)
        return status;
    fprintf(stderr, "gmux-control: cannot write the output: %s\n", strerror(output_error));
    return 1;
}

static int run(int count, char **words)
{
    struct ctl_text line = { 0 };
    signal(SIGPIPE, SIG_IGN);
    GM_AUTO_FD int fd = ctl_ui_connect();
    if (fd < 0) {
        printf("Cannot find MPS control daemon process\n");
        return 1;
    }
    if (count == 0)
        return run_input(fd);
    for (int i = 0; i < count; i++)
        ctl_text_add(&line, "%s%s", i ? " " : "", words[i]);
    int status = run_line(fd, line.data ? line.data : "");
    ctl_text_finish(&line);
    return status;
}

int ctl_ui_run(int count, char **words)
{
    return finish_output(run(count, words));
}
