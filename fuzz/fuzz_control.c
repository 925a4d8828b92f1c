/*
 * The control daemon's command text. Each line of the input is a command, executed on a daemon that
 * has a server and two clients, one of them with a nasty name. Not executed: what starts processes
 * or ends this one.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "control/command.h"
#include "control/group.h"
#include "control/link.h"
#include "control/users.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SERVER_PID 658

static void add_client(struct ctl_server *s, struct ctl_client *c, uint32_t key,
                       const char *command)
{
    *c = (struct ctl_client) { .key = key, .uid = 1000, .connected = true, .contexts_count = 1 };
    c->contexts[0].id = 1;
    strcpy(c->command, command);
    gm_list_append(&s->clients, &c->link);
    s->clients_count++;
}

static void ignore(void *owner)
{
    (void)owner;
}

static void run_lines(struct ctl_daemon *d, const uint8_t *data, size_t size)
{
    static char line[CTL_LINE_MAX + 2];
    while (size) {
        const uint8_t *newline = memchr(data, '\n', size);
        size_t n = newline ? (size_t)(newline - data) : size;
        size_t kept = GM_MIN(n, sizeof(line) - 1);
        memcpy(line, data, kept);
        line[kept] = '\0';
        struct ctl_words w;
        bool fits = ctl_words_parse(&w, line);
        assert(fits == (strlen(line) <= CTL_LINE_MAX));
        assert(!fits || w.count <= CTL_WORDS_MAX);
        if (fits && strcmp(ctl_words_at(&w, 0), "quit") != 0) {
            bool ran = ctl_command_run(d, NULL, true, line);
            assert(ran);
            ran = ctl_command_run(d, NULL, false, line);
            assert(ran);
        }
        n += newline != NULL;
        data += n;
        size -= n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ctl_daemon d;
    static struct ctl_server s;
    static struct ctl_client clients[2];
    struct ctl_timer *timer;

    d = (struct ctl_daemon) { .control_log = { .fd = -1, .echo = -1 },
                              .server_log = { .fd = -1, .echo = -1 },
                              .limits = { .share_pct = 100 },
                              .devices_count = 1,
                              .loading = true, /* nothing is written down */
                              .quitting = true };
    uv_loop_init(&d.loop);
    timer = ctl_timer_create(&d.loop, ignore, NULL);
    strcpy(d.devices[0].name, "Fake Device");
    strcpy(d.devices[0].uuid, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
    strcpy(d.devices[0].pci, "0000:06:00.0");
    gm_list_init(&d.conns);
    gm_list_init(&d.users);
    gm_list_init(&d.groups);
    gm_list_init(&d.names);
    gm_list_init(&d.servers);
    gm_list_init(&d.queue);
    gm_list_init(&d.quits);
    s = (struct ctl_server) { .daemon = &d,
                              .state = CTL_SERVER_ACTIVE,
                              .pid = SERVER_PID,
                              .process = -1,
                              .killed = true, /* nobody is sent a signal */
                              .timer = timer,
                              .lines = { .burst = 1, .per_second = 1 },
                              .limits = d.limits };
    gm_list_init(&s.pending);
    gm_list_init(&s.clients);
    gm_list_init(&s.asked);
    gm_list_append(&d.servers, &s.link);
    add_client(&s, &clients[0], 669, "/tmp/bench");
    add_client(&s, &clients[1], 0x40000000u, "%s%n , \"x\"");

    run_lines(&d, data, size);

    ctl_link_give_up(&s);
    ctl_users_free(&d);
    ctl_groups_free(&d);
    assert(d.limits.share_pct > 0 && d.limits.share_pct <= 100);
    assert(s.limits.share_pct > 0 && s.limits.share_pct <= 100);
    assert(d.limits.memory_count <= CTL_MEMORY_LIMITS_MAX &&
           s.limits.memory_count <= CTL_MEMORY_LIMITS_MAX);
    ctl_timer_close(timer);
    uv_run(&d.loop, UV_RUN_DEFAULT);
    int r = uv_loop_close(&d.loop);
    assert(r == 0); /* nothing is left open */
    return 0;
}
