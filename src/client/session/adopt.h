/*
 * Without a daemon each program has a server of its own. What another program shared is fetched
 * from that one's server (server/door.h) and handed to ours.
 */
#ifndef GMUX_CLIENT_SESSION_ADOPT_H
#define GMUX_CLIENT_SESSION_ADOPT_H

#include "client/session/session.h"

/* Asks at the door that `token` names. A connection with the answer in it, which our server may
 * have; -1: nobody is there, or nobody can be. */
int rt_adopt_fetch(const struct rt_session *s, const uint8_t token[RT_TOKEN_BYTES]);
/* The token that a handle for other processes has in it. False: there is none. */
bool rt_adopt_token(const struct rt_session *s, int fd, uint8_t token[RT_TOKEN_BYTES]);

#endif
