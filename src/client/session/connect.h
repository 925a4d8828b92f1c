/*
 * The connection to the daemon: where it listens, whether it is trusted, and how long it may take
 * to answer.
 */
#ifndef GMUX_CLIENT_SESSION_CONNECT_H
#define GMUX_CLIENT_SESSION_CONNECT_H

#include "base/attr.h"

/* Connects to the daemon, if it runs as root, as this program's user, or as the user that
 * GMUX_DAEMON_USER names. A descriptor; or -errno, after a line on standard error if the user
 * expects a daemon. -EAGAIN: a daemon is there and does not answer; others: there is none that
 * serves us. *made is the descriptor + 1 as soon as there is one. */
GM_MUST_CHECK int rt_daemon_connect(_Atomic int *made);

/* GMUX_REQUIRE=1: a program that no daemon can serve is refused. */
bool rt_sharing_required(void);

/* Sets whether what is read from this socket has to come within GMUX_ANSWER_TIMEOUT seconds, or may
 * take any time. */
void rt_answers_within(int fd, bool bounded);

/* Prints a line for the person who started the program: to standard error, once for each `fmt`; or
 * to the log if GMUX_LOG is set. */
void rt_attach_say(const char *fmt, ...) GM_PRINTF(1, 2);

#endif
