/*
 * Finding the door of another private server (server/door.h): a socket in the abstract namespace,
 * whose name is random.
 */
#ifndef GMUX_TRANSPORT_DOOR_H
#define GMUX_TRANSPORT_DOOR_H

#include <stdint.h>

#include "base/attr.h"

#define TP_DOOR_NAME 16u /* bytes of the name */

/* Listening, not blocking. Descriptor, or -errno. */
GM_MUST_CHECK int tp_door_listen(const uint8_t name[TP_DOOR_NAME]);
/* Connected to a process of one's own user, blocking. Descriptor, or -errno: -EPERM if it is
 * another user's. */
GM_MUST_CHECK int tp_door_connect(const uint8_t name[TP_DOOR_NAME]);

#endif
