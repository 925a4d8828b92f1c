/*
 * Whose daemon is believed. Anybody can make a directory in /tmp and listen there; the kernel says
 * who it was (SO_PEERCRED). Believed are root, oneself, and the user that GMUX_DAEMON_USER names,
 * by number or name.
 *
 * In a user namespace the machine's users that are not mapped, root among them, all look like one
 * (65534). They cannot be told apart, and are not believed either unless GMUX_DAEMON_USER says so:
 * the person who put the pipe directory into the container knows whose it is.
 */
#ifndef GMUX_TRANSPORT_TRUST_H
#define GMUX_TRANSPORT_TRUST_H

#include <sys/types.h>

#include "base/attr.h"

/* Any thread. */
GM_MUST_CHECK bool tp_daemon_is_trusted(uid_t uid);

#endif
