/*
 * Memory objects: bytes without an address, and where they are mapped. A program makes them
 * (virtual memory management). A shared allocation is one, and so is a page of host memory through
 * which several programs signal each other. An object lives as long as somebody has a name for it
 * or has it mapped, even after its maker is gone.
 *
 * Who pays: the maker is charged for the bytes while it lives, also for an allocation that it has
 * freed but others still have open. A client that opens another program's object (by descriptor or
 * token) is charged the same amount as imported bytes, with the same limit as its own memory. So
 * when the maker goes, what stays is within some client's limit.
 *
 * A client may open it if it has a token (32 random bytes) or a descriptor of the object, and
 * belongs to the same user.
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
    struct gm_index_link by_token; /* in server->tokens while the token is valid */
    struct gm_index_link by_file;  /* in server->token_files once it was exported */
    /* names and mappings, and one for the allocation that it stands for */
    unsigned refs;
    unsigned mappings;
    uint32_t uid;
    bool host;
    bool compressible;
    uint32_t device; /* 0 for host memory */
    int fd;          /* executors map `size` bytes of it, from `offset` on */
    uint64_t offset;
    uint64_t size;
    uint64_t skip;   /* where a shared allocation begins in it */
    uint64_t length; /* how long that allocation is */
    uint64_t handle; /* the keeper's; 0: none */
    uint8_t token[SRV_TOKEN_BYTES];
    uint32_t signals_ended; /* the last session at whose end its signals were ended */
    /* the connection to the private server that it was fetched from; -1: it is our own */
    int door;
    int token_fd;              /* -1: never exported */
    struct srv_session *owner; /* the session that pays; NULL: it is gone */
    struct srv_charge bytes;
    struct srv_charge count;
    struct srv_allocation *source; /* the owner's allocation; NULL: none, or gone */
};

/* srv_object_ref() takes a reference, srv_object_unref() gives one back; the last one frees the
 * object. */
struct srv_object *srv_object_ref(struct srv_object *o);
void srv_object_unref(struct srv_object *o);

/* srv_object_open() counts the object as open, mapped here or in another server: a reference and a
 * mapping. srv_object_close() undoes that. */
struct srv_object *srv_object_open(struct srv_object *o);
void srv_object_close(struct srv_object *o);

/* For door.c: the object that a token names, for another private server of the same user. NULL:
 * there is none. */
struct srv_object *srv_object_for_visitor(struct srv_server *s, const uint8_t *token, size_t size);
/* Makes an object, without a name yet, of what another private server gave for a token; takes `fd`.
 * NULL, with a CUresult. */
struct srv_object *srv_object_adopt(struct srv_session *c, const struct wire_object_fetched *f,
                                    const uint8_t *token, int fd, int *result);
/* Gives the object a name and answers the client; without an object it answers with the result
 * alone. */
void srv_object_answer_adopted(struct srv_session *c, uint64_t serial, struct srv_object *o,
                               int result);

/* The object for which the session has this name; NULL: there is none. */
struct srv_object *srv_object_named(struct srv_session *c, uint32_t name);
/* The object that a token names, if the session may open it; else NULL with a CUresult. */
struct srv_object *srv_object_by_token(struct srv_session *c, const uint8_t *token, size_t size,
                                       int *result);

/* Called when the owner frees the allocation. True: others have it open, so it must stay until
 * srv_memory_free() is called again. */
bool srv_object_keeps(struct srv_allocation *a);

/* Ends the session's objects. The executor knows nothing of the session any more or, without `all`,
 * only its host memory. Objects that others have open stay. Works until `until_ns`; false: there
 * are more. */
GM_MUST_CHECK bool srv_objects_end(struct srv_session *c, bool all, uint64_t until_ns);

/* --- attach.c: ranges and what is mapped there ------------------------------------------------ */

/* Ends the session's signals; nothing of it runs any more, so nobody needs to wait for what it has
 * recorded. Works until `until_ns`; false: there is more. */
GM_MUST_CHECK bool srv_signals_end(struct srv_session *c, uint64_t until_ns);
/* Frees what is left of ranges and mappings; parameters as in srv_objects_end(). */
GM_MUST_CHECK bool srv_attachments_end(struct srv_session *c, bool all, uint64_t until_ns);
/* Tells a new executor about the mappings. */
void srv_attachments_replay(struct srv_session *c);

#endif
