/*
 * Without a daemon each program has a server of its own. Memory that another program shared is
 * fetched from that program's server (server/door.h) and handed to ours.
 */
#ifndef GMUX_CLIENT_SESSION_ADOPT_H
#define GMUX_CLIENT_SESSION_ADOPT_H

#include "client/session/session.h"

/* Asks at the door that `token` names. A connection that carries the answer, for our server; -1:
 * nobody is there, or the door is full. */
int rt_adopt_fetch(const struct rt_session *s, const uint8_t token[RT_TOKEN_BYTES]);
/* Reads the token out of a handle for other processes. False: there is none. */
bool rt_adopt_token(const struct rt_session *s, int fd, uint8_t token[RT_TOKEN_BYTES]);

#endif
