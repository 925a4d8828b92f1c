/*
 * What programs share with each other: allocations and events. A handle of 64 bytes, which the
 * program itself carries to the other process, contains a token that the server knows.
 */
#ifndef GMUX_CLIENT_SESSION_IPC_H
#define GMUX_CLIENT_SESSION_IPC_H

#include <string.h>

#include "client/entry/dispatch.h"
#include "client/session/session.h"

#define RT_IPC_MAGIC "gmux ipc" /* without its final zero */

enum rt_ipc_kind {
    RT_IPC_MEMORY = 1,
    RT_IPC_EVENT = 3, /* 2: with another page */
};

struct rt_ipc_handle {
    char magic[8];
    uint8_t token[RT_TOKEN_BYTES];
    uint32_t kind;
    uint32_t slot;         /* for an event: which signal of the page */
    uint64_t offset, size; /* for memory: the part that is meant; size 0: all of it */
};
_Static_assert(sizeof(struct rt_ipc_handle) == CU_IPC_HANDLE_SIZE, "layout");

/* Fills in all but slot, offset and size. */
static inline void rt_ipc_handle_init(struct rt_ipc_handle *h, enum rt_ipc_kind kind,
                                      const uint8_t token[RT_TOKEN_BYTES])
{
    *h = (struct rt_ipc_handle) { .kind = kind };
    memcpy(h->magic, RT_IPC_MAGIC, sizeof(h->magic));
    memcpy(h->token, token, RT_TOKEN_BYTES);
}

static inline bool rt_ipc_handle_is(const struct rt_ipc_handle *h, enum rt_ipc_kind kind)
{
    return memcmp(h->magic, RT_IPC_MAGIC, sizeof(h->magic)) == 0 && h->kind == (uint32_t)kind;
}

#endif
