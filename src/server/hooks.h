/*
 * Upward calls in the server. Files call only files below them (server.h has the order). What those
 * below have to tell those above goes through this table, which server.c fills in. Event loop only.
 */
#ifndef GMUX_SERVER_HOOKS_H
#define GMUX_SERVER_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

struct srv_allocation;
struct srv_server;
struct srv_session;

struct srv_hooks {
    /* executor_ready: an executor is ready, the first or a later one. executor_failed: there will
     * be none. executor_ended: the last one has ended. */
    void (*executor_ready)(struct srv_server *s);
    void (*executor_failed)(struct srv_server *s, int result, const char *reason);
    void (*executor_ended)(struct srv_server *s);
    /* session_replay: tell a new executor about the session. session_resume: after that, its work
     * goes on. */
    void (*session_replay)(struct srv_session *c);
    void (*session_resume)(struct srv_session *c);
    /* The session has failed because of the executor, or of its end; leave.c. */
    void (*session_fail)(struct srv_session *c, int result, uint64_t address, const char *why);
    void (*session_refuse)(struct srv_session *c, int result, const char *reason);
    /* A request of the session has been answered; it may be able to end now. */
    void (*session_check_end)(struct srv_session *c);
    /* The owner frees the allocation; object.h says what the result means. */
    bool (*allocation_kept)(struct srv_allocation *a);
    /* A private server is about to share something; door.h. */
    int (*door_open)(struct srv_server *s, uint8_t *token);
};

extern const struct srv_hooks srv_hooks;

#endif
