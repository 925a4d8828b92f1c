/*
 * UI commands: one row per command in a table (cmd_*.c hold the functions), a request per command
 * received.
 *
 * A reply goes to the UI's standard output as it is and into control.log line by line. Most
 * commands have answered when their function returns; those that wait for a server keep the request
 * (ctl_request_keep) and finish it later.
 */
#ifndef GMUX_CONTROL_COMMAND_H
#define GMUX_CONTROL_COMMAND_H

#include <sys/types.h>

#include "base/list.h"
#include "control/text.h"

#define CTL_WORDS_MAX 16
#define CTL_LINE_MAX  4096

struct ctl_client;
struct ctl_conn;
struct ctl_daemon;
struct wire_client_usage;
struct ctl_server;

/* A command line cut at blanks. words[0] is the command; a missing word is "". */
struct ctl_words {
    unsigned count;
    const char *word[CTL_WORDS_MAX];
    char storage[CTL_LINE_MAX + 1];
};

struct ctl_request {
    struct gm_list link; /* who holds it while it waits */
    struct ctl_daemon *daemon;
    struct ctl_conn *conn; /* NULL: the UI has gone; the command goes on */
    struct ctl_words words;
    struct ctl_text reply;
    bool kept;
    unsigned tries; /* restart */
    struct ctl_timer *timer;
    struct ctl_server *server; /* which was asked .. */
    unsigned awaits;           /* .. for this message */
    uint32_t client;           /* terminate_client */
    uint64_t serial;           /* clients */
};

enum ctl_command_flags {
    CTL_CHANGES = 1, /* only for the daemon's user and root */
    CTL_OWN = 2,  /* the same, and for each user as far as his own clients go (ctl_request_may) */
    CTL_KEPT = 4, /* what it sets outlives a daemon that is killed (state.h) */
};

struct ctl_command {
    const char *name;
    const char *arguments; /* for the manual page */
    const char *help;
    unsigned flags;
    void (*exec)(struct ctl_request *r);
};

/* Ends with a row whose name is NULL. */
extern const struct ctl_command ctl_commands[];

/* NULL if there is none of that name. */
const struct ctl_command *ctl_command_find(const char *name);

/* Cuts a line into words; false if it is too long. Words beyond the last that fits are ignored, as
 * surplus words are by every command. */
GM_MUST_CHECK bool ctl_words_parse(struct ctl_words *w, const char *line);
/* Word `i`, or "". */
const char *ctl_words_at(const struct ctl_words *w, unsigned i);
/* The word behind the word `name`, "" if it is the last one, NULL if `name` is not there. */
const char *ctl_words_after(const struct ctl_words *w, const char *name);
bool ctl_words_have(const struct ctl_words *w, const char *name);

/* Executes a line for `c`, which gets the reply (NULL: nobody). False if the line is too long, or
 * without memory. */
GM_MUST_CHECK bool ctl_command_run(struct ctl_daemon *d, struct ctl_conn *c, bool may_change,
                                   const char *line);
/* As above, for a line that came over a UI connection. */
void ctl_command_received(struct ctl_conn *c, const char *line);

void ctl_reply(struct ctl_request *r, const char *fmt, ...) GM_PRINTF(2, 3);
/* Whether its sender may act on, and see all of, what is that user's. */
bool ctl_request_may(const struct ctl_request *r, uid_t owner);
/* The request outlives its function. */
void ctl_request_keep(struct ctl_request *r);
/* Sends the reply, logs it, frees the request. */
void ctl_request_finish(struct ctl_request *r);
/* The UI has gone. */
void ctl_request_orphan(struct ctl_request *r);

/* A line of the answer to `clients`. */
void ctl_cmd_clients_row(struct ctl_request *r, const struct ctl_server *s,
                         const struct ctl_client *c, const struct wire_client_usage *u);

/* The rows' functions. */
void ctl_cmd_clients(struct ctl_request *r);
void ctl_cmd_pending(struct ctl_request *r);
void ctl_cmd_limit_client(struct ctl_request *r);
void ctl_cmd_limit_user(struct ctl_request *r);
void ctl_cmd_limit_group(struct ctl_request *r);
void ctl_cmd_groups(struct ctl_request *r);
void ctl_cmd_version(struct ctl_request *r);
void ctl_cmd_get_server_list(struct ctl_request *r);
void ctl_cmd_get_server_status(struct ctl_request *r);
void ctl_cmd_start_server(struct ctl_request *r);
void ctl_cmd_shutdown_server(struct ctl_request *r);
void ctl_cmd_get_client_list(struct ctl_request *r);
void ctl_cmd_get_device_client_list(struct ctl_request *r);
void ctl_cmd_ps(struct ctl_request *r);
void ctl_cmd_terminate_client(struct ctl_request *r);
void ctl_cmd_device_query(struct ctl_request *r);
void ctl_cmd_restart(struct ctl_request *r);
void ctl_cmd_quit(struct ctl_request *r);
void ctl_cmd_get_default_share(struct ctl_request *r);
void ctl_cmd_set_default_share(struct ctl_request *r);
void ctl_cmd_get_share(struct ctl_request *r);
void ctl_cmd_set_share(struct ctl_request *r);
void ctl_cmd_get_default_memory(struct ctl_request *r);
void ctl_cmd_set_default_memory(struct ctl_request *r);
void ctl_cmd_get_memory(struct ctl_request *r);
void ctl_cmd_set_memory(struct ctl_request *r);
void ctl_cmd_get_default_priority(struct ctl_request *r);
void ctl_cmd_set_default_priority(struct ctl_request *r);

#endif
