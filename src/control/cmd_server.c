/*
 * Commands about servers and the daemon's own end.
 */
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "control/command.h"
#include "control/conn.h"
#include "control/log.h"
#include "control/queue.h"
#include "control/quit.h"
#include "control/restart.h"
#include "control/server.h"

/* `quit -t` waits for a day at most before it uses force. */
#define QUIT_MAX_S 86400u
/* A restart is put off for this long while programs wait for a server. */
#define RESTART_LOOK_MS 50
#define RESTART_TRIES   200

void ctl_cmd_version(struct ctl_request *r)
{
    ctl_reply(r, "gmux %s\n", GMUX_VERSION);
}

void ctl_cmd_get_server_list(struct ctl_request *r)
{
    gm_list_for_each (s, &r->daemon->servers, struct ctl_server, link)
        if (s->pid > 0)
            ctl_reply(r, "%d\n", (int)s->pid);
}

void ctl_cmd_get_server_status(struct ctl_request *r)
{
    const char *word = ctl_words_at(&r->words, 1);
    struct ctl_server *s = ctl_server_find(r->daemon, word);
    if (!s)
        ctl_reply(r, "Server %s not found\n", word);
    else
        ctl_reply(r, "%s\n", s->state == CTL_SERVER_STARTING ? "INITIALIZING" : "ACTIVE");
}

void ctl_cmd_start_server(struct ctl_request *r)
{
    const char *word = ctl_words_after(&r->words, "-uid");
    uint64_t uid;
    if (!word || !gm_parse_u64(word, CTL_UID_MAX, &uid)) {
        ctl_reply(r, "A user id (UID) is required to start a new server\n");
        return;
    }
    const char *problem = r->daemon->quitting ? "The daemon is about to end"
                                              : ctl_queue_start(r->daemon, (uid_t)uid, NULL);
    if (problem)
        ctl_reply(r, "%s\n", problem);
}

void ctl_cmd_shutdown_server(struct ctl_request *r)
{
    const char *word = ctl_words_at(&r->words, 1);
    if (strcmp(word, "-f") == 0)
        word = ctl_words_at(&r->words, 2);
    struct ctl_server *s = ctl_server_find(r->daemon, word);
    if (!s)
        ctl_reply(r, "Server %s not found\n", word);
    else
        ctl_server_shutdown(s, ctl_words_have(&r->words, "-f"));
}

/* Whether the server still has to take clients. A restart closes the link, and would lose the
 * clients that are on their way through it. */
static bool is_taking(const struct ctl_server *s)
{
    gm_list_for_each (c, &s->clients, struct ctl_client, link)
        if (!c->connected)
            return true;
    return s->state == CTL_SERVER_STARTING;
}

/* Whether programs wait for a server. A restart would close their connections. */
static bool somebody_waits(const struct ctl_daemon *d)
{
    gm_list_for_each (c, &d->conns, struct ctl_conn, link)
        if (c->phase != CTL_CONN_UI)
            return true;
    gm_list_for_each (s, &d->servers, struct ctl_server, link)
        if (is_taking(s))
            return true;
    return false;
}

static void on_restart(void *request)
{
    struct ctl_request *r = request;
    struct ctl_daemon *d = r->daemon;
    bool waits = somebody_waits(d);
    if (waits && r->tries++ < RESTART_TRIES) {
        ctl_timer_start(r->timer, RESTART_LOOK_MS);
        return;
    }
    bool may = !waits && !d->quitting && d->program;
    ctl_reply(r, "%s\n",
              may           ? "Restarting"
              : d->quitting ? "The daemon is about to end"
              : waits       ? "Programs wait for a server: the daemon was not restarted"
                            : "The daemon does not know its program file");
    ctl_request_finish(r);
    if (may)
        ctl_log(d, "Cannot restart: %s", strerror(-ctl_restart(d)));
}

void ctl_cmd_restart(struct ctl_request *r)
{
    if (*ctl_words_at(&r->words, 1)) { /* with words it is a mistake: nothing is restarted */
        ctl_reply(r, "restart takes no words\n");
        return;
    }
    const char *config = getenv("GMUX_CONFIG");
    char why[1024];
    if (config && *config && ctl_config_check(config, why, sizeof(why)) < 0) {
        ctl_reply(r, "%s: the daemon was not restarted\n", why);
        return;
    }
    r->timer = ctl_timer_create(&r->daemon->loop, on_restart, r);
    if (!r->timer) {
        ctl_reply(r, "out of memory\n");
        return;
    }
    ctl_request_keep(r);
    ctl_timer_start(r->timer, 0);
}

void ctl_cmd_quit(struct ctl_request *r)
{
    const char *word = ctl_words_after(&r->words, "-t");
    uint64_t seconds = 0;
    if (word && !gm_parse_u64(word, QUIT_MAX_S, &seconds)) {
        ctl_reply(r, "Invalid timeout - must be a number of seconds up to %u\n", QUIT_MAX_S);
        return;
    }
    ctl_request_keep(r);
    gm_list_append(&r->daemon->quits, &r->link);
    ctl_quit(r->daemon, word ? (int64_t)seconds * 1000 : -1);
}
