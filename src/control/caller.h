/*
 * The users of those connections that the daemon has: how many each has, and how fast his clients
 * are served. Starting and handing over is work that all users wait for, so each has a ration of
 * it, and clients beyond that wait without costing anything.
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

/* The user, for one more connection; NULL without memory. */
struct ctl_caller *ctl_caller_get(struct ctl_daemon *d, uid_t uid);
/* One less. */
void ctl_caller_put(struct ctl_daemon *d, struct ctl_caller *u);
/* How many connections he has; he need not have any. */
unsigned ctl_caller_conns(const struct ctl_daemon *d, uid_t uid);

/* A client has said hello: it is admitted at once, or when it is its turn. */
void ctl_caller_admit(struct ctl_conn *c);
/* A timer's: admits whose turn has come. */
void ctl_callers_advance(void *daemon);
/* Forgets users without connections whose ration is whole again. */
void ctl_callers_sweep(struct ctl_daemon *d);

#endif
