/*
 * A request lives until its command has answered, even if the connection that it came by is gone.
 */
#include "control/request.h"

#include <stdlib.h>
#include <string.h>

#include "control/conn.h"
#include "control/log.h"

#define REPLY_BYTES 32768 /* bytes of one message ui_reply */

void ctl_reply(struct ctl_request *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    ctl_text_vadd(&r->reply, fmt, ap);
    va_end(ap);
}

bool ctl_request_may(const struct ctl_request *r, uid_t owner)
{
    return !r->conn || r->conn->trusted || r->conn->peer.uid == owner;
}

void ctl_request_refuse(struct ctl_request *r)
{
    const char *command = ctl_words_at(&r->words, 0);
    if (r->daemon->uid == 0)
        ctl_reply(r, "Only root may use %s\n", command);
    else
        ctl_reply(r, "Only user %u and root may use %s\n", (unsigned)r->daemon->uid, command);
}

void ctl_request_keep(struct ctl_request *r)
{
    r->kept = true;
}

void ctl_request_orphan(struct ctl_request *r)
{
    r->conn = NULL;
}

/* Writes the request into the log. A UI that may leave a request waiting was trusted before; the
 * requests of others are answered at once. */
static void log_line(const struct ctl_request *r, const char *p, size_t n)
{
    if (r->conn)
        ctl_log_ui(r->conn, "%.*s", (int)n, p);
    else
        ctl_log(r->daemon, "%.*s", (int)n, p);
}

static void log_reply(const struct ctl_request *r, const struct ctl_text *t)
{
    const char *p = t->data;
    const char *end = p + t->size;
    while (p < end) {
        size_t n = strcspn(p, "\n");
        if (n)
            log_line(r, p, n);
        p += n + 1;
    }
}

static void send_reply(struct ctl_conn *c, const struct ctl_text *t)
{
    static uint8_t buffer[REPLY_BYTES + 64];
    size_t sent = 0;
    do {
        size_t n = GM_MIN(t->size - sent, (size_t)REPLY_BYTES);
        struct wire_ui_reply m = { .last = sent + n == t->size,
                                   .text = { n ? t->data + sent : "", (uint32_t)n } };
        struct wire_enc e;
        wire_enc_init(&e, buffer, sizeof(buffer));
        wire_pack_ui_reply(&e, 0, &m);
        if (ctl_conn_unread(c->daemon, c->peer.uid) + e.size > CTL_UNREAD_MAX ||
            ctl_channel_send(c->channel, &e, -1) < 0) {
            ctl_conn_drop(c, "it does not read the answers to its commands");
            return;
        }
        sent += n;
    } while (sent < t->size);
}

void ctl_request_finish(struct ctl_request *r)
{
    struct ctl_conn *c = r->conn;
    if (r->reply.size)
        log_reply(r, &r->reply);
    if (c) {
        c->request = NULL;
        send_reply(c, &r->reply);
    }
    ctl_timer_close(r->timer);
    ctl_text_finish(&r->reply);
    free(r);
}
