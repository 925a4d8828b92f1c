/*
 * Which server a client gets. Each user has a server, so users do not wait for each other; in the
 * multi-user mode all share one. In the exclusive mode (NVIDIA's classic behaviour) there is one
 * server at a time: clients of another user queue. The running server is ended once its own clients
 * have left, and clients that come meanwhile queue behind, so that nobody starves. A device in
 * EXCLUSIVE_PROCESS mode admits one context: there the exclusive mode holds without an option, as
 * soon as a server has reported that. But if a server that runs as some user reports it, only users
 * wait whose own server finds no room on the device.
 */
#ifndef GMUX_CONTROL_QUEUE_H
#define GMUX_CONTROL_QUEUE_H

#include "control/daemon.h"

/* A client has said hello: hands it to its server, lets it wait for one, or refuses it. */
void ctl_queue_admit(struct ctl_conn *c);
/* Carries out start_server. NULL, or why not. `named` NULL: the server for programs of the user
 * that name none. */
const char *ctl_queue_start(struct ctl_daemon *d, uid_t uid, struct ctl_named *named);
/* A server's name, or one of its namespaces, is about to be removed: from now on nobody waits for
 * it or is in it. Its process may go on. */
void ctl_queue_forget(struct ctl_daemon *d, const struct ctl_named *named);
void ctl_queue_forget_space(struct ctl_daemon *d, struct ctl_space *s);
/* A client has left or a server is gone: goes on in the exclusive mode, if possible. */
void ctl_queue_advance(struct ctl_daemon *d);
/* Refuses all clients that wait. */
void ctl_queue_refuse_all(struct ctl_daemon *d, int result, const char *reason);

#endif
