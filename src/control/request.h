/*
 * A command line that is being answered. The reply goes to the UI's standard output as it is and
 * into control.log line by line. Most commands have answered when their function returns; those
 * that wait for a server keep the request (ctl_request_keep) and finish it later.
 */
#ifndef GMUX_CONTROL_REQUEST_H
#define GMUX_CONTROL_REQUEST_H

#include <sys/types.h>

#include "base/list.h"
#include "control/text.h"

#define CTL_WORDS_MAX 16
#define CTL_LINE_MAX  4096

struct ctl_client;
struct ctl_conn;
struct ctl_daemon;
struct ctl_request;
struct ctl_server;
struct wire_client_usage;

/* Adds what one client of a server uses to the answer. */
typedef void ctl_usage_row(struct ctl_request *r, const struct ctl_server *s,
                           const struct ctl_client *c, const struct wire_client_usage *u);

/* A command line split at blanks. words[0] is the command; a missing word is "". */
struct ctl_words {
    unsigned count;
    const char *word[CTL_WORDS_MAX];
    char storage[CTL_LINE_MAX + 1];
};

struct ctl_request {
    struct gm_list link; /* in the list where it waits */
    struct ctl_daemon *daemon;
    struct ctl_conn *conn; /* NULL: the UI has gone; the command goes on */
    struct ctl_words words;
    struct ctl_text reply;
    bool kept;
    unsigned tries; /* restart: how often it was tried */
    struct ctl_timer *timer;
    struct ctl_server *server;            /* the server that was asked and has not answered yet */
    unsigned awaits;                      /* the message that is the answer */
    uint32_t client;                      /* terminate_client: which client */
    uint64_t serial;                      /* serial of the question what clients use */
    ctl_usage_row *row;                   /* adds a line of that answer to the reply */
    void (*again)(struct ctl_request *r); /* sm_partition: continues once devices are known */
};

/* Splits a line into words; false: it is too long. Words beyond the last that fits are ignored, as
 * every command ignores surplus words. */
GM_MUST_CHECK bool ctl_words_parse(struct ctl_words *w, const char *line);
/* Word `i`, or "". */
const char *ctl_words_at(const struct ctl_words *w, unsigned i);
/* The word behind the word `name`; "" if that is the last one; NULL if it is not there. */
const char *ctl_words_after(const struct ctl_words *w, const char *name);
bool ctl_words_have(const struct ctl_words *w, const char *name);

/* Protocol 3: behind a module and a verb, options (--key=value, key=value, --flag) stand between
 * plain words, in any order. Plain word `i`, or "". */
const char *ctl_words_plain(const struct ctl_words *w, unsigned i);
unsigned ctl_words_plain_count(const struct ctl_words *w);
/* An option's value; "" if it is a flag; NULL if it is not there. If it is given several times, the
 * last one counts. */
const char *ctl_words_option(const struct ctl_words *w, const char *name);
/* The name of an option, with the '=' of its value; NULL: the word is no option. */
const char *ctl_option_name(const char *word, size_t *size);

void ctl_reply(struct ctl_request *r, const char *fmt, ...) GM_PRINTF(2, 3);
/* Whether the sender may act on everything that belongs to that user, and see it. */
bool ctl_request_may(const struct ctl_request *r, uid_t owner);
/* Replies that its sender may not use the command. */
void ctl_request_refuse(struct ctl_request *r);
/* Keeps the request after its function has returned. */
void ctl_request_keep(struct ctl_request *r);
/* Sends the reply, logs it, frees the request. */
void ctl_request_finish(struct ctl_request *r);
/* The UI has gone; the request goes on without it. */
void ctl_request_orphan(struct ctl_request *r);

#endif
