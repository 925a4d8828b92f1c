/*
 * The door of a private server: where other processes of its user get what its client has shared. A
 * private server has one client, so two programs that share memory without a daemon have two
 * servers, and one of them fetches the object from the other. The door is a socket in the abstract
 * namespace, which is made with the first token. The token's first half is the door's name and its
 * second half is the secret, so a token is all that a program needs.
 *
 * A visitor is a client of another server: it sends the token and gets the object's bytes. It hands
 * the connection to its own server. As long as the connection stands, the object counts as open
 * (docs/adr/0021-private-servers.md).
 *
 * Event loop only.
 */
#ifndef GMUX_SERVER_DOOR_H
#define GMUX_SERVER_DOOR_H

#include <uv.h>

#include "base/list.h"
#include "transport/door.h"

struct srv_server;

struct srv_door {
    uv_poll_t poll;
    int fd; /* -1: it does not listen */
    uint8_t name[TP_DOOR_NAME];
    struct gm_list visitors;
    unsigned visitors_count;
};

void srv_door_init(struct srv_door *d);
/* Listens, if it does not yet, and writes the door's name into the first half of a token. A
 * CUresult. */
int srv_door_open(struct srv_server *s, uint8_t *token);
/* Closes the door. Visitors keep what they have: they have the bytes' descriptors. */
void srv_door_close(struct srv_server *s);

#endif
