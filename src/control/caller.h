/*
 * The users who have connections to the daemon: how many connections each has, and how fast its
 * clients are served. Starting servers and handing over clients is work that all users wait for. So
 * each user has a ration of it, and clients beyond the ration wait without costing anything.
 */
#ifndef GMUX_CONTROL_CALLER_H
#define GMUX_CONTROL_CALLER_H

#include <sys/types.h>

#include "base/list.h"
#include "control/logfile.h"

struct ctl_conn;
struct ctl_daemon;

struct ctl_caller {
    struct gm_list link; /* daemon's callers */
    uid_t uid;
    unsigned conns;
    struct ctl_ration ration;
    struct gm_list late; /* struct ctl_conn, by `waiting`: clients that came too fast */
};

/* The user, for one more connection. NULL: no memory. */
struct ctl_caller *ctl_caller_get(struct ctl_daemon *d, uid_t uid);
/* The user has one connection less. */
void ctl_caller_put(struct ctl_daemon *d, struct ctl_caller *u);
/* How many connections a user has; 0 for a user who is not known. */
unsigned ctl_caller_conns(const struct ctl_daemon *d, uid_t uid);

/* A client has said hello: admits it, at once or when its turn comes. */
void ctl_caller_admit(struct ctl_conn *c);
/* For a timer: admits the clients whose turn has come. */
void ctl_callers_advance(void *daemon);
/* Forgets users without connections whose ration is whole again. */
void ctl_callers_sweep(struct ctl_daemon *d);

#endif
