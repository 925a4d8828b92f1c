/*
 * Memory objects: bytes without an address, and where they are mapped. A program makes them
 * (virtual memory management), a shared allocation is one, and so is a page of host memory that
 * several programs signal each other through. An object lives as long as somebody has a name for it
 * or has it mapped, even after its maker has gone.
 *
 * Who pays. The maker is charged for the bytes while it lives, also for an allocation that it has
 * freed but others still have open. A client that takes over another's object (by descriptor or
 * token) is charged the same amount in a quantity of its own, imported bytes, with the same limit
 * as its memory: when the maker goes, what stays is within some client's limit.
 *
 * Who may. A token (32 random bytes) or a descriptor says which object; it must be of the same
 * user.
 *
 * Event loop only.
 */
#ifndef GMUX_SERVER_OBJECT_H
#define GMUX_SERVER_OBJECT_H

#include <sys/types.h>

#include "base/index.h"
#include "server/account.h"

#define SRV_TOKEN_BYTES 32u

struct srv_allocation;
struct srv_session;
struct srv_server;
struct tp_packet;
struct wire_object_fetched;

struct srv_object {
    struct gm_list link; /* owner->objects */
    struct srv_server *server;
    struct gm_index_link by_token; /* in server->tokens while the token is good */
    struct gm_index_link by_file;  /* in server->token_files since it was exported */
    unsigned refs;                 /* names and mappings, and one of the allocation that it is */
    unsigned mappings;
    uint32_t uid;
    bool host;
    bool compressible;
    uint32_t device; /* 0 for host memory */
    int fd;          /* what executors map: `size` bytes from `offset` on */
    uint64_t offset;
    uint64_t size;
    uint64_t skip;   /* a shared allocation begins so far into it */
    uint64_t length; /* and so many bytes long is that */
    uint64_t handle; /* the keeper's; 0: none */
    uint8_t token[SRV_TOKEN_BYTES];
    uint32_t signals_ended; /* the last session at whose end they were */
    int door;               /* to the private server that it was fetched from; -1: it is our own */
    int token_fd;           /* -1: never exported */
    struct srv_session *owner; /* who pays; NULL: gone */
    struct srv_charge bytes;
    struct srv_charge count;
    struct srv_allocation *source; /* the owner's; NULL: none, or gone */
};

/* Takes and gives back a reference. With the last one it is freed. */
struct srv_object *srv_object_ref(struct srv_object *o);
void srv_object_unref(struct srv_object *o);

/* Has it open, mapped here or in another server: a reference and a mapping. */
struct srv_object *srv_object_open(struct srv_object *o);
void srv_object_close(struct srv_object *o);

/* For door.c: the object that a token names, for another private server of the same user. NULL:
 * there is none. */
struct srv_object *srv_object_for_visitor(struct srv_server *s, const uint8_t *token, size_t size);
/* What another private server gave for a token, without a name yet; takes `fd`. NULL with a
 * CUresult. */
struct srv_object *srv_object_adopt(struct srv_session *c, const struct wire_object_fetched *f,
                                    const uint8_t *token, int fd, int *result);
/* Gives it a name and answers; without an object the result alone. */
void srv_object_answer_adopted(struct srv_session *c, uint64_t serial, struct srv_object *o,
                               int result);

/* A session's name for an object; NULL: there is no such. */
struct srv_object *srv_object_named(struct srv_session *c, uint32_t name);
/* The object that a token names, if the session may open it; else NULL with a CUresult. */
struct srv_object *srv_object_by_token(struct srv_session *c, const uint8_t *token, size_t size,
                                       int *result);

/* The allocation is being freed by its owner: true if others have it open, so that it must stay
 * until srv_memory_free() comes again. */
bool srv_object_keeps(struct srv_allocation *a);

/* The session is at its end: the executor knows nothing of it any more, or (not `all`) nothing but
 * host memory. Objects that others have stay. Until so late; false: there are more. */
GM_MUST_CHECK bool srv_objects_end(struct srv_session *c, bool all, uint64_t until_ns);

/* --- attach.c: ranges and what is mapped there ------------------------------------------------ */

/* Nothing of the session runs any more: nobody needs to wait for what it has recorded. Until so
 * late; false: there is more. */
GM_MUST_CHECK bool srv_signals_end(struct srv_session *c, uint64_t until_ns);
/* Frees what is left of ranges and mappings, as above. */
GM_MUST_CHECK bool srv_attachments_end(struct srv_session *c, bool all, uint64_t until_ns);
/* Tells a new executor about them. */
void srv_attachments_replay(struct srv_session *c);

#endif
