/*
 * Commands about servers and the daemon's own end.
 */
#include <string.h>

#include "base/parse.h"
#include "control/command.h"
#include "control/server.h"

/* Force comes after at most a day. */
#define QUIT_MAX_S 86400u

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
    const char *problem = r->daemon->quitting ? "The daemon is about to end" : ctl_queue_start(r->daemon, (uid_t)uid);
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
    ctl_daemon_quit(r->daemon, word ? (int64_t)seconds * 1000 : -1);
}
