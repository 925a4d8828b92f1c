/*
 * The table of UI commands, and what is common to all: receiving, permission, reply, log.
 */
#include "control/command.h"

#include <stdlib.h>
#include <string.h>

#include "control/daemon.h"
#include "control/state.h"

#define REPLY_BYTES 32768 /* of one ui_reply */

const struct ctl_command ctl_commands[] = {
    { "version", "",
      "Prints the version of the daemon, which may be an older one than the program that asks", 0,
      ctl_cmd_version },
    { "get_server_list", "", "Prints the process id of each server", 0, ctl_cmd_get_server_list },
    { "get_server_status", "SERVER", "Prints INITIALIZING or ACTIVE", 0,
      ctl_cmd_get_server_status },
    { "start_server", "-uid USER", "Starts a server for a user", CTL_CHANGES,
      ctl_cmd_start_server },
    { "shutdown_server", "SERVER [-f]", "Ends a server once its clients have left; with -f at once",
      CTL_CHANGES, ctl_cmd_shutdown_server },
    { "get_client_list", "SERVER", "Prints the process id of each client of a server", 0,
      ctl_cmd_get_client_list },
    { "clients", "SERVER",
      "Prints each client: pid, uid, device, state, share, priority, bytes used, limit, command, "
      "group, guarantee, "
      "with tabs",
      0, ctl_cmd_clients },
    { "pending", "",
      "Prints each program that waits for a server: pid, uid, seconds, why, command, group, with "
      "tabs",
      0, ctl_cmd_pending },
    { "groups", "",
      "Prints each group of programs: name, uid, programs, share, guarantee, memory, with tabs", 0,
      ctl_cmd_groups },
    { "limit_client", "SERVER CLIENT LIMIT=VALUE...",
      "Sets share=, guarantee=, memory=, priority= or group= of a client in place of what its "
      "environment says; "
      "prints 0 or why not",
      CTL_OWN, ctl_cmd_limit_client },
    { "limit_user", "USER LIMIT=VALUE...",
      "Sets what each client of a user may have; prints 0 or why not", CTL_CHANGES | CTL_KEPT,
      ctl_cmd_limit_user },
    { "limit_group", "[USER/]GROUP LIMIT=VALUE...",
      "Sets what the programs of a group have together: share=, guarantee= or memory=; prints 0 or "
      "why not",
      CTL_OWN | CTL_KEPT, ctl_cmd_limit_group },
    { "get_device_client_list", "[SERVER]",
      "Prints devices and who uses them, as process id and context", 0,
      ctl_cmd_get_device_client_list },
    { "ps", "[-p SERVER]", "Prints a table of clients", 0, ctl_cmd_ps },
    { "terminate_client", "SERVER CLIENT",
      "Takes the device away from a client; prints 0 or a CUDA error", CTL_OWN,
      ctl_cmd_terminate_client },
    { "device_query", "[SERVER] [--csv]", "Prints the devices that servers offer", 0,
      ctl_cmd_device_query },
    { "restart", "",
      "Starts the daemon anew from its program file, under its servers and their programs",
      CTL_CHANGES, ctl_cmd_restart },
    { "quit", "[-t SECONDS]",
      "Ends servers and daemon once all clients have left; with -t by force after that time",
      CTL_CHANGES, ctl_cmd_quit },
    { "get_default_active_thread_percentage", "", "Prints the share for servers to come", 0,
      ctl_cmd_get_default_share },
    { "set_default_active_thread_percentage", "PERCENTAGE",
      "Sets and prints the share for servers to come", CTL_CHANGES | CTL_KEPT,
      ctl_cmd_set_default_share },
    { "get_active_thread_percentage", "SERVER",
      "Prints the share that each client of a server may use", 0, ctl_cmd_get_share },
    { "set_active_thread_percentage", "SERVER PERCENTAGE",
      "Sets and prints the share of each client", CTL_CHANGES, ctl_cmd_set_share },
    { "get_default_device_pinned_mem_limit", "DEVICE",
      "Prints the device memory limit for servers to come", 0, ctl_cmd_get_default_memory },
    { "set_default_device_pinned_mem_limit", "DEVICE SIZE", "Sets the limit for servers to come",
      CTL_CHANGES | CTL_KEPT, ctl_cmd_set_default_memory },
    { "get_device_pinned_mem_limit", "SERVER DEVICE",
      "Prints the device memory limit of each client of a server", 0, ctl_cmd_get_memory },
    { "set_device_pinned_mem_limit", "SERVER DEVICE SIZE",
      "Sets the limit of each client of a server", CTL_CHANGES, ctl_cmd_set_memory },
    { "get_default_client_priority", "",
      "Prints the priority for servers to come: 0 (normal) or 1 (below normal)", 0,
      ctl_cmd_get_default_priority },
    { "set_default_client_priority", "PRIORITY", "Sets the priority for servers to come",
      CTL_CHANGES | CTL_KEPT, ctl_cmd_set_default_priority },
    { NULL, NULL, NULL, 0, NULL },
};

const struct ctl_command *ctl_command_find(const char *name)
{
    for (const struct ctl_command *c = ctl_commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

void ctl_reply(struct ctl_request *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    ctl_text_vadd(&r->reply, fmt, ap);
    va_end(ap);
}

static void reply_not_allowed(struct ctl_request *r)
{
    const char *command = ctl_words_at(&r->words, 0);
    if (r->daemon->uid == 0)
        ctl_reply(r, "Only root may use %s\n", command);
    else
        ctl_reply(r, "Only user %u and root may use %s\n", (unsigned)r->daemon->uid, command);
}

bool ctl_request_may(const struct ctl_request *r, uid_t owner)
{
    return !r->conn || r->conn->trusted || r->conn->peer.uid == owner;
}

void ctl_request_keep(struct ctl_request *r)
{
    r->kept = true;
}

void ctl_request_orphan(struct ctl_request *r)
{
    r->conn = NULL;
}

/* A UI that leaves a request waiting was trusted: others' requests are answered at once. */
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

static void exec_command(struct ctl_request *r, const struct ctl_command *command)
{
    struct ctl_daemon *d = r->daemon;
    command->exec(r);
    if (command->flags & CTL_KEPT)
        ctl_state_save(d);
}

bool ctl_command_run(struct ctl_daemon *d, struct ctl_conn *c, bool may_change, const char *line)
{
    struct ctl_request *r = calloc(1, sizeof(*r));
    if (!r || !ctl_words_parse(&r->words, line)) {
        free(r);
        return false;
    }
    gm_list_init(&r->link);
    r->daemon = d;
    r->conn = c;
    if (c)
        c->request = r;
    const char *name = ctl_words_at(&r->words, 0);
    const struct ctl_command *command = ctl_command_find(name);
    if (!command)
        ctl_reply(r, "Unknown command \"%s\"\n", name);
    else if ((command->flags & CTL_CHANGES) && !may_change)
        reply_not_allowed(r);
    else
        exec_command(r, command);
    if (!r->kept)
        ctl_request_finish(r);
    return true;
}

void ctl_command_received(struct ctl_conn *c, const char *line)
{
    ctl_log_ui(c, "Cmd:%s", line);
    if (!ctl_command_run(c->daemon, c, c->trusted, line))
        ctl_conn_drop(c, "command that cannot be kept");
}
