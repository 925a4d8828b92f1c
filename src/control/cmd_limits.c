/*
 * Commands about limits. The defaults are for servers that start later. What is set for a server
 * takes effect on its running clients as well, unless the daemon runs with --classic-limits.
 */
#include <string.h>

#include "control/command.h"
#include "control/server.h"

/* Finds the server that word 1 names. Replies if there is none. */
static struct ctl_server *named_server(struct ctl_request *r)
{
    const char *word = ctl_words_at(&r->words, 1);
    struct ctl_server *s = ctl_server_find(r->daemon, word);
    if (!s)
        ctl_reply(r, "Server %s not found\n", word);
    return s;
}

/* --- share ------------------------------------------------------------------------------------ */

void ctl_cmd_get_default_share(struct ctl_request *r)
{
    ctl_reply(r, "%.1f\n", r->daemon->limits.share_pct);
}

void ctl_cmd_set_default_share(struct ctl_request *r)
{
    ctl_limits_set_share(&r->daemon->limits, ctl_words_at(&r->words, 1));
    /* Replies the value in force, also if the word was no percentage. */
    ctl_cmd_get_default_share(r);
}

void ctl_cmd_get_share(struct ctl_request *r)
{
    struct ctl_server *s = named_server(r);
    if (s)
        ctl_reply(r, "%.1f\n", s->limits.share_pct);
}

void ctl_cmd_set_share(struct ctl_request *r)
{
    struct ctl_server *s = named_server(r);
    if (!s)
        return;
    if (ctl_limits_set_share(&s->limits, ctl_words_at(&r->words, 2)))
        ctl_server_limits_changed(s);
    ctl_reply(r, "%.1f\n", s->limits.share_pct);
}

/* --- device memory ---------------------------------------------------------------------------- */

static void reply_memory(struct ctl_request *r, const struct ctl_limits *l, const char *device)
{
    const char *value = ctl_limits_memory(l, device);
    if (value)
        ctl_reply(r, "%s\n", value);
}

void ctl_cmd_get_default_memory(struct ctl_request *r)
{
    reply_memory(r, &r->daemon->limits, ctl_words_at(&r->words, 1));
}

/* NVIDIA's program ignores a bad value without a word, and so does this one. */
void ctl_cmd_set_default_memory(struct ctl_request *r)
{
    ctl_limits_set_memory(&r->daemon->limits, ctl_words_at(&r->words, 1),
                          ctl_words_at(&r->words, 2));
}

void ctl_cmd_get_memory(struct ctl_request *r)
{
    struct ctl_server *s = named_server(r);
    if (s)
        reply_memory(r, &s->limits, ctl_words_at(&r->words, 2));
}

void ctl_cmd_set_memory(struct ctl_request *r)
{
    struct ctl_server *s = named_server(r);
    if (s &&
        ctl_limits_set_memory(&s->limits, ctl_words_at(&r->words, 2), ctl_words_at(&r->words, 3)))
        ctl_server_limits_changed(s);
}

/* --- priority --------------------------------------------------------------------------------- */

void ctl_cmd_get_default_priority(struct ctl_request *r)
{
    ctl_reply(r, "%d\n", r->daemon->limits.priority);
}

void ctl_cmd_set_default_priority(struct ctl_request *r)
{
    if (!ctl_limits_set_priority(&r->daemon->limits, ctl_words_at(&r->words, 1)))
        ctl_reply(r, "Invalid priority value - must be 0 or 1!\n");
}
