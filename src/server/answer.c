/*
 * Answers a client's requests, and stops reading from a client that has too many of them under way.
 * Answers that contain more than a status are packed by send.c, which the generator writes.
 */
#include "server/server.h"

void srv_session_pace(struct srv_session *c)
{
    /* A client waits if it asks faster than the executor answers, while its session_ready is being
     * answered, and while the daemon has not read what it has to know of the client. */
    srv_peer_pause(&c->peer,
                   c->pending >= SRV_PENDING_MAX || c->phase == SRV_ATTACHING || c->unheard);
}

void srv_session_answer(struct srv_session *c, uint64_t serial, const struct wire_enc *e,
                        const int *fds, unsigned fds_count)
{
    c->pending--;
    if (serial != 0)
        srv_peer_send(&c->peer, e, fds, fds_count);
    srv_session_pace(c);
}

void srv_session_status(struct srv_session *c, uint64_t serial, int result)
{
    struct wire_enc e = srv_encoder(c->server);
    wire_pack_status(&e, serial, &(struct wire_status) { result });
    srv_session_answer(c, serial, &e, NULL, 0);
}
