/*
 * The session's socket. A request is sent, and its answer is the packet with the same serial
 * number. Nobody waits for the answers to frees; they are counted as they come.
 */
#include <cuda.h>

#include "client/session/session.h"

int rt_server_gone(struct rt_session *s)
{
    tp_session_fail(&s->shared, CUDA_ERROR_MPS_RPC_FAILURE, 0);
    return rt_session_error(s);
}

uint64_t rt_request_serial(struct rt_session *s)
{
    return ++s->serial;
}

void rt_request_encode(struct rt_session *s, struct wire_enc *e)
{
    wire_enc_init(e, s->request, WIRE_PACKET_MAX);
}

int rt_request_send(struct rt_session *s, struct wire_enc *e, int fd)
{
    return tp_send(s->fd, e, &fd, fd >= 0 ? 1 : 0) < 0 ? rt_server_gone(s) : CUDA_SUCCESS;
}

/* Turns a status into a result. In place of another answer it says that the request failed. */
static int status_result(struct tp_packet *p)
{
    struct wire_status m;
    wire_get_status(&p->body, &m);
    return m.result ? m.result : CUDA_ERROR_UNKNOWN;
}

int rt_request_wait(struct rt_session *s, uint64_t serial, unsigned want)
{
    struct tp_packet *p = s->packet;
    for (;;) {
        tp_packet_finish(p);
        if (tp_recv(s->fd, p) <= 0)
            return rt_server_gone(s);
        if (p->header.serial == serial && p->header.type == want)
            return CUDA_SUCCESS;
        if (p->header.serial == serial && p->header.type == WIRE_STATUS)
            return status_result(p);
        if (p->header.serial && s->frees_out)
            s->frees_out--;
    }
}
