/*
 * Which server a client gets. Each user has one, so users do not wait for each other; in the
 * multi-user mode all share the daemon's. In the exclusive mode (NVIDIA's classic behaviour) there
 * is one server at a time: clients of another user queue, the running server is ended once its own
 * clients have left, and clients that come meanwhile queue behind, so that nobody starves. A device
 * in EXCLUSIVE_PROCESS mode admits one context: there it is the same without being asked for, as
 * soon as a server has said so. A server that runs as some user is that user's: its word that the
 * device is its alone makes nobody wait but those whose own server finds no room there.
 */
#ifndef GMUX_CONTROL_QUEUE_H
#define GMUX_CONTROL_QUEUE_H

#include "control/daemon.h"

/* A client has said hello: hands it to its server, or has it wait for one, or refuses it. */
void ctl_queue_admit(struct ctl_conn *c);
/* start_server: NULL, or why not. `named` NULL: the server that the user's programs have. */
const char *ctl_queue_start(struct ctl_daemon *d, uid_t uid, struct ctl_named *named);
/* A server's name, or one namespace of it, is about to be no more: nobody waits for it, or is in
 * it. Its process may go on. */
void ctl_queue_forget(struct ctl_daemon *d, const struct ctl_named *named);
void ctl_queue_forget_space(struct ctl_daemon *d, struct ctl_space *s);
/* Something changed in the exclusive mode (a client left, a server is gone): moves on if it can. */
void ctl_queue_advance(struct ctl_daemon *d);
/* Refuses all who wait. */
void ctl_queue_refuse_all(struct ctl_daemon *d, int result, const char *reason);

#endif
