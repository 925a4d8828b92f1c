/*
 * What goes up in the server: files call only those below them (server.h has the order), and what
 * happens below is told to those above by way of this table, which server.c fills in. Event loop
 * only.
 */
#ifndef GMUX_SERVER_HOOKS_H
#define GMUX_SERVER_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

struct srv_allocation;
struct srv_server;
struct srv_session;

struct srv_hooks {
    /* An executor is ready, the first or a further one; there will be none; the last has ended. */
    void (*executor_ready)(struct srv_server *s);
    void (*executor_failed)(struct srv_server *s, int result, const char *reason);
    void (*executor_ended)(struct srv_server *s);
    /* A new executor is to be told about the session, and after that to go on with its work. */
    void (*session_replay)(struct srv_session *c);
    void (*session_resume)(struct srv_session *c);
    /* The executor, or its end, has done this to the session; leave.c. */
    void (*session_fail)(struct srv_session *c, int result, uint64_t address, const char *why);
    void (*session_refuse)(struct srv_session *c, int result, const char *reason);
    /* One of its requests has been answered. */
    void (*session_check_end)(struct srv_session *c);
    /* Its owner frees it; object.h has what the answer means. */
    bool (*allocation_kept)(struct srv_allocation *a);
    /* A private server is about to share something; door.h. */
    int (*door_open)(struct srv_server *s, uint8_t *token);
};

extern const struct srv_hooks srv_hooks;

#endif
