/*
 * The connection to the daemon: where it listens, whether it is to be believed, and how long it may
 * be silent.
 */
#ifndef GMUX_CLIENT_SESSION_CONNECT_H
#define GMUX_CLIENT_SESSION_CONNECT_H

#include "base/attr.h"

/* Connects to the daemon, if it runs as root, as this program's user, or as the one that
 * GMUX_DAEMON_USER names. Descriptor, or -errno after a line on standard error where somebody
 * expects one: -EAGAIN if a daemon is there and does not answer, others: nobody to be served by.
 * *made is the descriptor + 1 from when there is one. */
GM_MUST_CHECK int rt_daemon_connect(_Atomic int *made);

/* GMUX_REQUIRE=1: a program that cannot be served by a daemon is refused. */
bool rt_sharing_required(void);

/* What comes over this socket has to come within GMUX_ANSWER_TIMEOUT seconds, or may take any time.
 */
void rt_answers_within(int fd, bool bounded);

/* A line for the person who started the program: to standard error, once, or to the log where
 * GMUX_LOG is set. */
void rt_attach_say(const char *fmt, ...) GM_PRINTF(1, 2);

#endif
