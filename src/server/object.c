/*
 * Objects and their names. A client knows an object by a number (its own name for it), a token, or
 * a descriptor that only proves access: an empty memfd that is recognised by its inode. The
 * descriptor of the bytes is given to executors alone; except for host memory, which the client has
 * to map.
 */
#include "server/hooks.h"
#include "server/object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <fcntl.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/result.h"
#include "server/send.h"
#include "server/serve.h"
#include "server/server.h"
#include "transport/foreign.h"
#include "transport/memfd.h"

struct srv_name {
    struct gm_list link; /* session->names */
    struct gm_index_link by_number;
    struct srv_session *session;
    struct srv_charge count;
    struct srv_charge imported;
    struct srv_object *object;
    uint32_t number;
};

/* --- objects ---------------------------------------------------------------------------------- */

struct srv_object *srv_object_ref(struct srv_object *o)
{
    o->refs++;
    return o;
}

/* Makes an object that is charged to `owner`, with one reference. NULL: it may not have it. */
static struct srv_object *object_new(struct srv_session *owner, enum srv_quantity quantity,
                                     uint64_t bytes)
{
    struct srv_object *o = calloc(1, sizeof(*o));
    if (!o)
        return NULL;
    if (srv_charge(&o->count, &owner->account, SRV_OBJECTS, 1) < 0 ||
        (bytes && srv_charge(&o->bytes, &owner->account, quantity, bytes) < 0)) {
        srv_charge_release(&o->count);
        free(o);
        return NULL;
    }
    o->refs = 1;
    o->uid = owner->uid;
    o->owner = owner;
    o->fd = o->token_fd = o->door = -1;
    o->server = owner->server;
    gm_list_append(&owner->objects, &o->link);
    return o;
}

/* Tokens are looked up by their last bytes, which are random in all tokens. The rest, which is
 * compared then, is as secret as before. */
static uint64_t number_of(const uint8_t *token)
{
    uint64_t number;
    memcpy(&number, token + SRV_TOKEN_BYTES - sizeof(number), sizeof(number));
    return number;
}

/* Called after gm_index_room(). */
static void set_shared(struct srv_object *o)
{
    gm_index_add(&o->server->tokens, &o->by_token, number_of(o->token));
}

static void end_shared(struct srv_object *o)
{
    gm_index_remove(&o->server->tokens, &o->by_token);
}

void srv_object_unref(struct srv_object *o)
{
    if (!o || --o->refs != 0)
        return;
    gm_list_remove(&o->link);
    end_shared(o);
    gm_index_remove(&o->server->token_files, &o->by_file);
    srv_charge_release(&o->bytes);
    srv_charge_release(&o->count);
    if (o->handle)
        srv_keeper_cuda_release(o->handle);
    /* The file may have many pages. */
    tp_close_foreign(o->fd);
    gm_close(o->token_fd);
    if (o->door >= 0)
        tp_hang_up(o->door);
    free(o);
}

struct srv_object *srv_object_open(struct srv_object *o)
{
    o->mappings++;
    return srv_object_ref(o);
}

void srv_object_close(struct srv_object *o)
{
    o->mappings--;
    if (o->mappings == 0 && o->source && o->source->doomed)
        srv_memory_free(o->source, NULL, NULL, 0);
    srv_object_unref(o);
}

/* Makes an object with memory of its own. A CUresult. */
static int object_create(struct srv_session *c, const struct wire_object_create *m,
                         struct srv_object **out)
{
    bool host = m->kind == WIRE_MEMORY_KIND_HOST, compressible = m->compressible != 0;
    uint64_t size = m->size;
    uint64_t page = host ? SRV_PAGE : SRV_SLAB;
    if (size == 0 || size % page)
        return GM_CUDA_INVALID_VALUE;
    if (size > c->window_size / 2)
        return GM_CUDA_OUT_OF_MEMORY;
    struct srv_object *o = object_new(c, host ? SRV_HOST_BYTES : srv_device_bytes(m->device), size);
    if (!o)
        return GM_CUDA_OUT_OF_MEMORY;
    int r = GM_CUDA_SUCCESS;
    o->host = host;
    o->device = m->device;
    o->size = o->length = size;
    if (!host && c->server->memory_apart)
        r = srv_keeper_cuda_create(m->device, size, &compressible, &o->handle, &o->fd);
    else if ((o->fd = tp_memfd_create("gmux-object", size)) < 0)
        r = GM_CUDA_OUT_OF_MEMORY;
    if (r != GM_CUDA_SUCCESS) {
        o->fd = -1;
        srv_object_unref(o);
        return r;
    }
    o->compressible = !host && c->server->memory_apart && compressible;
    *out = o;
    return GM_CUDA_SUCCESS;
}

/* --- allocations that are shared -------------------------------------------------------------- */

/* The allocation's own mapping, or the slab that it lies in. */
static struct srv_mapping *mapping_of(const struct srv_allocation *a)
{
    return a->mapping ? a->mapping
                      : srv_ranges_find(&a->heap->area->pages,
                                        a->block->address & ~(uint64_t)(SRV_SLAB - 1))
                            ->user;
}

/* The object that stands for an allocation of device memory. It is everything that is mapped for
 * it, which may be a slab that also has other allocations of the same client. */
static int object_of(struct srv_session *c, struct srv_allocation *a, struct srv_object **out)
{
    struct srv_mapping *m = mapping_of(a);
    /* The allocation is charged already. */
    struct srv_object *o = object_new(c, SRV_DEVICE_BYTES, 0);
    if (!o)
        return GM_CUDA_OUT_OF_MEMORY;
    o->device = a->heap->device;
    o->fd = fcntl(m->fd >= 0 ? m->fd : a->heap->area->fd, F_DUPFD_CLOEXEC, 0);
    if (o->fd < 0) {
        srv_object_unref(o);
        return GM_CUDA_OUT_OF_MEMORY;
    }
    o->offset = m->fd >= 0 ? 0 : m->block->address - a->heap->area->base;
    o->size = m->block->size;
    o->skip = a->block->address - m->block->address;
    o->length = a->block->size;
    o->source = a;
    a->object = o;
    *out = o;
    return GM_CUDA_SUCCESS;
}

bool srv_object_keeps(struct srv_allocation *a)
{
    struct srv_object *o = a->object;
    if (!o)
        return false;
    end_shared(o);
    if (o->mappings != 0)
        return true;
    a->object = NULL;
    o->source = NULL;
    srv_object_unref(o);
    return false;
}

/* --- names ------------------------------------------------------------------------------------ */

static struct srv_name *find_name(struct srv_session *c, uint32_t number)
{
    gm_index_for_each (n, &c->named, number, struct srv_name, by_number)
        return n;
    return NULL;
}

struct srv_object *srv_object_named(struct srv_session *c, uint32_t name)
{
    struct srv_name *n = find_name(c, name);
    return n ? n->object : NULL;
}

static void name_destroy(struct srv_name *n)
{
    gm_index_remove(&n->session->named, &n->by_number);
    gm_list_remove(&n->link);
    srv_charge_release(&n->count);
    srv_charge_release(&n->imported);
    srv_object_unref(n->object);
    free(n);
}

/* Makes a name for an object, and takes over a reference to it, also on failure. A CUresult. */
static int name_create(struct srv_session *c, struct srv_object *o, uint32_t *number)
{
    struct srv_name *n = calloc(1, sizeof(*n));
    if (!n) {
        srv_object_unref(o);
        return GM_CUDA_OUT_OF_MEMORY;
    }
    gm_list_init(&n->link);
    n->session = c;
    n->object = o;
    if (!gm_index_room(&c->named) || srv_charge(&n->count, &c->account, SRV_NAMES, 1) < 0 ||
        (o->owner != c &&
         srv_charge(&n->imported, &c->account, srv_imported_bytes(o->device), o->size) < 0)) {
        name_destroy(n);
        return GM_CUDA_OUT_OF_MEMORY;
    }
    n->number = *number = ++c->next_name;
    gm_index_add(&c->named, &n->by_number, n->number);
    gm_list_append(&c->names, &n->link);
    return GM_CUDA_SUCCESS;
}

/* The object's owner goes. */
static void disown(struct srv_object *o)
{
    struct srv_allocation *a = o->source;
    gm_list_remove(&o->link);
    o->owner = NULL;
    srv_charge_release(&o->bytes);
    srv_charge_release(&o->count);
    if (!a)
        return;
    /* Its pages stay as they are. */
    if (o->mappings)
        mapping_of(a)->kept = a->heap->area->kept = true;
    a->object = NULL;
    o->source = NULL;
    end_shared(o);
    srv_object_unref(o);
}

bool srv_objects_end(struct srv_session *c, bool all, uint64_t until_ns)
{
    gm_list_for_each_safe (n, &c->names, struct srv_name, link) {
        if (!all && n->object->host)
            continue;
        if (gm_now_ns() >= until_ns)
            return false;
        name_destroy(n);
    }
    if (all)
        gm_index_finish(&c->named);
    gm_list_for_each_safe (o, &c->objects, struct srv_object, link) {
        if (!all && o->host)
            continue;
        if (gm_now_ns() >= until_ns)
            return false;
        disown(o);
    }
    return true;
}

/* --- tokens ----------------------------------------------------------------------------------- */

static int make_token(struct srv_server *s, struct srv_object *o)
{
    if (gm_index_has(&o->by_token))
        return GM_CUDA_SUCCESS;
    if (!gm_index_room(&s->tokens))
        return GM_CUDA_OUT_OF_MEMORY;
    if (getrandom(o->token, sizeof(o->token), 0) != (ssize_t)sizeof(o->token))
        return GM_CUDA_OPERATING_SYSTEM;
    int r =
        s->private_mode && !s->memory_apart ? srv_hooks.door_open(s, o->token) : GM_CUDA_SUCCESS;
    if (r == GM_CUDA_SUCCESS)
        set_shared(o);
    return r;
}

/* Takes the same time for every pair of tokens. */
static bool same_token(const uint8_t *a, const uint8_t *b)
{
    unsigned different = 0;
    for (unsigned i = 0; i < SRV_TOKEN_BYTES; i++)
        different |= a[i] ^ b[i];
    return different == 0;
}

struct srv_object *srv_object_by_token(struct srv_session *c, const uint8_t *token, size_t size,
                                       int *result)
{
    *result = GM_CUDA_INVALID_VALUE;
    if (size != SRV_TOKEN_BYTES)
        return NULL;
    gm_index_for_each (o, &c->server->tokens, number_of(token), struct srv_object, by_token) {
        if (o->uid != c->uid || !same_token(o->token, token))
            continue;
        if (o->owner != c)
            return o;
        /* A client does not open its own memory again. */
        *result = GM_CUDA_INVALID_CONTEXT;
        return NULL;
    }
    return NULL;
}

struct srv_object *srv_object_for_visitor(struct srv_server *s, const uint8_t *token, size_t size)
{
    if (size != SRV_TOKEN_BYTES)
        return NULL;
    gm_index_for_each (o, &s->tokens, number_of(token), struct srv_object, by_token)
        if (o->door < 0 && o->uid == geteuid() && same_token(o->token, token))
            return o;
    return NULL;
}

/* A sealed memfd can be mapped as a whole; the part that the other server names has to lie inside
 * it. */
static bool lies_within(struct srv_session *c, const struct wire_object_fetched *f, int fd)
{
    struct stat st;
    return tp_is_memory(fd) && fstat(fd, &st) == 0 && st.st_size > 0 &&
           tp_memfd_check(fd, (uint64_t)st.st_size, false) == 0 && f->host <= 1 && f->size &&
           f->size % SRV_PAGE == 0 && f->offset % SRV_PAGE == 0 &&
           f->size <= (uint64_t)st.st_size && f->offset <= (uint64_t)st.st_size - f->size &&
           f->length <= f->size && f->skip <= f->size - f->length &&
           f->size <= c->window_size / 2 && srv_session_heap(c, f->host, f->device) != NULL;
}

struct srv_object *srv_object_adopt(struct srv_session *c, const struct wire_object_fetched *f,
                                    const uint8_t *token, int fd, int *result)
{
    struct srv_object *o = lies_within(c, f, fd) && gm_index_room(&c->server->tokens)
                               ? object_new(c, SRV_HOST_BYTES, 0)
                               : NULL;
    *result = o ? GM_CUDA_SUCCESS : GM_CUDA_INVALID_VALUE;
    if (!o) {
        tp_close_foreign(fd);
        return NULL;
    }
    gm_list_remove(&o->link);
    /* each client that has it open pays for it, as for any other program's object */
    o->owner = NULL;
    o->host = f->host;
    o->device = f->device;
    o->fd = fd;
    o->offset = f->offset;
    o->size = f->size;
    o->skip = f->skip;
    o->length = f->length;
    memcpy(o->token, token, SRV_TOKEN_BYTES);
    set_shared(o);
    return o;
}

/* --- requests --------------------------------------------------------------------------------- */

static void answer_made(struct srv_session *c, uint64_t serial, int result, uint32_t number,
                        const struct srv_object *o)
{
    bool made = result == GM_CUDA_SUCCESS;
    const struct wire_object_made m = { .result = result,
                                        .object = made ? number : 0,
                                        .device = made ? o->device : 0,
                                        .size = made ? o->length : 0,
                                        .compressible = made && o->compressible };
    srv_answer_object_made(c, serial, &m, made && o->host ? o->fd : -1);
}

void srv_object_answer_adopted(struct srv_session *c, uint64_t serial, struct srv_object *o,
                               int result)
{
    uint32_t number = 0;
    int r = o ? name_create(c, o, &number) : result;
    answer_made(c, serial, r, number, o);
}

static int create_named(struct srv_session *c, const struct wire_object_create *m, uint32_t *number,
                        struct srv_object **out)
{
    int r = c->failed ? c->failed : object_create(c, m, out);
    return r ? r : name_create(c, *out, number);
}

/* Asks the device once to give back what it keeps. */
struct create_op {
    struct srv_session *session;
    struct wire_object_create what;
    uint64_t serial;
};

static void on_trimmed(void *arg, int result, struct tp_packet *answer)
{
    struct create_op *op = arg;
    struct srv_object *o = NULL;
    uint32_t number = 0;
    (void)answer;
    int r = result == 0 ? create_named(op->session, &op->what, &number, &o) : GM_CUDA_OUT_OF_MEMORY;
    answer_made(op->session, op->serial, r, number, o);
    free(op);
}

const char *srv_on_object_create(struct srv_session *c, const struct wire_object_create *m,
                                 uint64_t serial)
{
    struct srv_object *o = NULL;
    uint32_t number = 0;
    if (m->kind != WIRE_MEMORY_KIND_DEVICE && m->kind != WIRE_MEMORY_KIND_HOST)
        return "memory of an unknown kind";
    if (!srv_session_heap(c, m->kind == WIRE_MEMORY_KIND_HOST, m->device))
        return "memory of a device that there is not";
    int r = create_named(c, m, &number, &o);
    bool refused =
        r == GM_CUDA_OUT_OF_MEMORY && m->kind == WIRE_MEMORY_KIND_DEVICE && c->server->memory_apart;
    struct create_op *op = refused ? malloc(sizeof(*op)) : NULL;
    if (!op) {
        answer_made(c, serial, r, number, o);
        return NULL;
    }
    *op = (struct create_op) { c, *m, serial };
    srv_memory_trim(c, m->device, on_trimmed, op);
    return NULL;
}

const char *srv_on_object_release(struct srv_session *c, const struct wire_object_release *m,
                                  uint64_t serial)
{
    struct srv_name *n = find_name(c, m->object);
    if (n)
        name_destroy(n);
    srv_session_status(c, serial, n ? GM_CUDA_SUCCESS : GM_CUDA_INVALID_VALUE);
    return NULL;
}

/* Makes the proof. If there may be other servers it contains the token, for their clients. A
 * CUresult. */
static int make_token_fd(struct srv_server *s, struct srv_object *o)
{
    struct stat st;
    if (o->token_fd >= 0)
        return GM_CUDA_SUCCESS;
    bool told = s->private_mode && !s->memory_apart;
    int r = told ? make_token(s, o) : GM_CUDA_SUCCESS;
    if (r || !gm_index_room(&s->token_files))
        return r ? r : GM_CUDA_OUT_OF_MEMORY;
    o->token_fd = told ? tp_memfd_from_bytes("gmux-token", o->token, sizeof(o->token))
                       : tp_memfd_create("gmux-token", 0);
    if (o->token_fd < 0 || fstat(o->token_fd, &st) < 0) {
        o->token_fd = gm_close(o->token_fd);
        return GM_CUDA_OUT_OF_MEMORY;
    }
    gm_index_add(&s->token_files, &o->by_file, st.st_ino);
    return GM_CUDA_SUCCESS;
}

const char *srv_on_object_export(struct srv_session *c, const struct wire_object_export *m,
                                 uint64_t serial)
{
    struct srv_object *o = srv_object_named(c, m->object);
    int r = c->failed       ? c->failed
            : o && !o->host ? make_token_fd(c->server, o)
                            : GM_CUDA_INVALID_VALUE;
    srv_answer_object_token(c, serial, &(struct wire_object_token) { r },
                            r == 0 ? o->token_fd : -1);
    return NULL;
}

static struct srv_object *find_by_fd(struct srv_session *c, int fd)
{
    struct stat st, own;
    if (!tp_is_memory(fd) || fstat(fd, &st) < 0)
        return NULL;
    gm_index_for_each (o, &c->server->token_files, st.st_ino, struct srv_object, by_file)
        if (o->uid == c->uid && fstat(o->token_fd, &own) == 0 && own.st_dev == st.st_dev)
            return o;
    return NULL;
}

const char *srv_on_object_import(struct srv_session *c, struct tp_packet *p, uint64_t serial)
{
    uint32_t number = 0;
    struct srv_object *o = find_by_fd(c, p->fds[0]);
    int r = c->failed ? c->failed : o ? GM_CUDA_SUCCESS : GM_CUDA_INVALID_VALUE;
    r = r ? r : name_create(c, srv_object_ref(o), &number);
    answer_made(c, serial, r, number, o);
    return NULL;
}

static int share(struct srv_session *c, const struct wire_memory_share *m, struct srv_object **out)
{
    if (m->address == 0)
        *out = srv_object_named(c, m->object);
    else {
        struct srv_allocation *a = srv_session_allocation(c, m->address);
        a = a && a->heap != &c->host ? a : NULL;
        *out = a ? a->object : NULL;
        int r = a && !a->object ? object_of(c, a, out) : GM_CUDA_SUCCESS;
        if (r)
            return r;
    }
    return *out ? make_token(c->server, *out) : GM_CUDA_INVALID_VALUE;
}

const char *srv_on_memory_share(struct srv_session *c, const struct wire_memory_share *m,
                                uint64_t serial)
{
    struct srv_object *o = NULL;
    int r = c->failed ? c->failed : share(c, m, &o);
    struct wire_memory_shared answer = { .result = r };
    if (r == 0)
        answer.token = (struct wire_bytes) { o->token, SRV_TOKEN_BYTES };
    srv_answer_memory_shared(c, serial, &answer);
    return NULL;
}
