/*
 * The door of a private server: where other processes of its user ask for what its client has
 * shared. A private server has one client, so two programs that share memory without a daemon have
 * two servers, and one fetches the object from the other. Made with the first token, a socket in
 * the abstract namespace; the token's first half is the door's name and its second half the secret,
 * so that who has a token needs nothing else.
 *
 * A visitor is another server's client: it sends the token and gets the object's bytes. It hands
 * the connection to its own server, and as long as that stands somebody has the object open
 * (docs/adr/0021).
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
    int fd; /* -1: there is none */
    uint8_t name[TP_DOOR_NAME];
    struct gm_list visitors;
    unsigned visitors_count;
};

void srv_door_init(struct srv_door *d);
/* Listens, if it does not yet, and puts the name where a token begins. A CUresult. */
int srv_door_open(struct srv_server *s, uint8_t *token);
/* Visitors keep what they have got: the bytes are theirs, too. */
void srv_door_close(struct srv_server *s);

#endif
