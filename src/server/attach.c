/*
 * Ranges of a window that a client has reserved, and the objects that are mapped there. An object
 * that another program shared is mapped into a range that is made for it. The client is only told
 * addresses; its executor maps the bytes.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/result.h"
#include "server/object.h"
#include "server/send.h"
#include "server/serve.h"
#include "server/server.h"
#include "transport/signal.h"

struct srv_range {
    struct srv_span at; /* in session->reserved */
    struct srv_session *session;
    struct srv_area *area;
    struct srv_charge count;
    struct srv_block *block;
    unsigned mappings;
};

struct srv_attachment {
    struct srv_span at; /* in session->attachments */
    struct srv_session *session;
    struct srv_object *object;
    struct srv_range *range;
    bool own_range; /* its range was made for it */
    struct srv_charge mapping;
    struct srv_charge imported;
    uint32_t access, asked; /* what the executor has granted, and what it is asked for */
    bool live;              /* the executor has mapped it */
    bool busy;              /* the executor has been asked, and has not answered yet */
    uint64_t serial;
    bool answered; /* the client does not wait until it is unmapped */
};

/* --- ranges ----------------------------------------------------------------------------------- */

static void range_free(struct srv_range *r)
{
    srv_charge_release(&r->count);
    if (r->block)
        srv_ranges_free(&r->area->pages, r->block);
    free(r);
}

static struct srv_range *range_create(struct srv_session *c, struct srv_area *area, uint64_t size,
                                      uint64_t align)
{
    struct srv_range *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    r->session = c;
    r->area = area;
    if (srv_charge(&r->count, &c->account, SRV_NAMES, 1) == 0)
        r->block = srv_ranges_alloc(&area->pages, size, GM_MAX(align, area->page));
    if (r->block)
        r->at = (struct srv_span) { r->block->address, r->block->size };
    if (!r->block || !srv_spans_add(&c->reserved, &r->at)) {
        range_free(r);
        return NULL;
    }
    return r;
}

static void range_destroy(struct srv_range *r)
{
    srv_spans_remove(&r->session->reserved, &r->at);
    range_free(r);
}

/* The reserved range that contains all of [address, address + size); NULL: there is none. */
static struct srv_range *find_range(struct srv_session *c, uint64_t address, uint64_t size)
{
    struct srv_span *at = srv_spans_find(&c->reserved, address, 1);
    return at && at->address <= address && size <= at->size - (address - at->address)
               ? GM_CONTAINER_OF(at, struct srv_range, at)
               : NULL;
}

const char *srv_on_range_reserve(struct srv_session *c, const struct wire_range_reserve *m,
                                 uint64_t serial)
{
    struct srv_range *r = NULL;
    uint64_t size = 0;
    if (m->kind != WIRE_MEMORY_KIND_DEVICE && m->kind != WIRE_MEMORY_KIND_HOST)
        return "memory of an unknown kind";
    struct srv_area *area = &c->areas[m->kind == WIRE_MEMORY_KIND_HOST];
    int result = c->failed;
    if (!result &&
        (m->size == 0 || (m->align && !gm_is_pow2(m->align)) || m->align > SRV_ALIGN_MAX))
        result = GM_CUDA_INVALID_VALUE;
    if (!result && (m->size > area->size || !gm_align_up(m->size, area->page, &size) ||
                    !(r = range_create(c, area, size, m->align))))
        result = GM_CUDA_OUT_OF_MEMORY;
    srv_answer_memory_allocated(
        c, serial, &(struct wire_memory_allocated) { result, r ? r->block->address : 0 });
    return NULL;
}

const char *srv_on_range_release(struct srv_session *c, const struct wire_range_release *m,
                                 uint64_t serial)
{
    struct srv_range *r = find_range(c, m->address, 1);
    bool good = r && r->block->address == m->address && r->mappings == 0;
    if (good)
        range_destroy(r);
    srv_session_status(c, serial, good ? GM_CUDA_SUCCESS : GM_CUDA_INVALID_VALUE);
    return NULL;
}

/* --- mappings --------------------------------------------------------------------------------- */

/* Ends the signals that the mapping's client would have stored there. For a mapped page that takes
 * some 0.1 ms. */
static void end_signals(struct srv_attachment *a)
{
    struct srv_session *c = a->session;
    _Static_assert(SRV_WINDOW_MIN >= 1ull << TP_SIGNAL_WINDOW_BITS,
                   "recorders have names of their own");
    if (c->signals_ended || !a->object->host || a->object->size != TP_SIGNAL_PAGE ||
        a->object->signals_ended == c->id)
        return;
    void *page = mmap(NULL, TP_SIGNAL_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, a->object->fd, 0);
    if (page == MAP_FAILED) {
        srv_say(c->server, "Client {PID: %u, Context ID: 0}: its signals cannot be ended", c->pid);
        return;
    }
    /* Once for all mappings of the object. */
    if (c->removing)
        a->object->signals_ended = c->id;
    tp_signals_end(page, tp_signal_recorder(c->window_base, (uint32_t)getpid()));
    munmap(page, TP_SIGNAL_PAGE);
}

static struct srv_attachment *attachment_at(const struct srv_session *c, uint32_t place)
{
    return GM_CONTAINER_OF(c->attachments.all[place], struct srv_attachment, at);
}

bool srv_signals_end(struct srv_session *c, uint64_t until_ns)
{
    for (uint32_t i = 0; i < c->attachments.count && !c->signals_ended; i++) {
        struct srv_attachment *a = attachment_at(c, i);
        if (a->at.address < c->signals_at)
            continue;
        if (gm_now_ns() >= until_ns)
            return false;
        end_signals(a);
        c->signals_at = a->at.address + 1;
    }
    c->signals_ended = true;
    return true;
}

static void attachment_destroy(struct srv_attachment *a)
{
    struct srv_object *o = a->object;
    end_signals(a);
    srv_spans_remove(&a->session->attachments, &a->at);
    srv_charge_release(&a->mapping);
    srv_charge_release(&a->imported);
    a->range->mappings--;
    if (a->own_range)
        range_destroy(a->range);
    srv_object_close(o);
    free(a);
}

/* Creates a mapping. On success it owns the range that was made for it. A CUresult; on failure
 * nothing has changed. */
static int attachment_create(struct srv_session *c, struct srv_object *o, struct srv_range *range,
                             bool own_range, uint64_t address, struct srv_attachment **out)
{
    struct srv_attachment *a = calloc(1, sizeof(*a));
    if (!a)
        return GM_CUDA_OUT_OF_MEMORY;
    a->at = (struct srv_span) { address, o->size };
    if (srv_charge(&a->mapping, &c->account, SRV_MAPPINGS, 1) < 0 ||
        (own_range && o->owner != c &&
         srv_charge(&a->imported, &c->account, srv_imported_bytes(o->device), o->length) < 0) ||
        !srv_spans_add(&c->attachments, &a->at)) {
        srv_charge_release(&a->imported);
        srv_charge_release(&a->mapping);
        free(a);
        return GM_CUDA_OUT_OF_MEMORY;
    }
    a->session = c;
    a->object = srv_object_open(o);
    a->range = range;
    a->own_range = own_range;
    range->mappings++;
    *out = a;
    return GM_CUDA_SUCCESS;
}

static void tell(struct srv_attachment *a, uint32_t access, srv_answer_fn *done)
{
    const struct wire_engine_attach m = { a->session->id, access,     a->object->device,
                                          a->at.address,  a->at.size, a->object->offset };
    srv_engine_attach(a->session, &m, a->object->fd, done, a);
}

void srv_attachments_replay(struct srv_session *c)
{
    for (uint32_t i = 0; i < c->attachments.count; i++) {
        struct srv_attachment *a = attachment_at(c, i);
        if (a->live)
            tell(a, a->access, NULL);
    }
}

bool srv_attachments_end(struct srv_session *c, bool all, uint64_t until_ns)
{
    for (uint32_t i = c->attachments.count; i-- > 0;) {
        struct srv_attachment *a = attachment_at(c, i);
        if (!all && a->object->host)
            continue;
        if (gm_now_ns() >= until_ns)
            return false;
        attachment_destroy(a);
    }
    for (uint32_t i = c->reserved.count; i-- > 0;) {
        struct srv_range *r = GM_CONTAINER_OF(c->reserved.all[i], struct srv_range, at);
        if (!all && r->area != &c->areas[0])
            continue;
        if (gm_now_ns() >= until_ns)
            return false;
        range_destroy(r);
    }
    if (all) {
        srv_spans_finish(&c->attachments);
        srv_spans_finish(&c->reserved);
    }
    return true;
}

static struct srv_attachment *find_attachment(struct srv_session *c, uint64_t address)
{
    struct srv_span *at = srv_spans_find(&c->attachments, address, 1);
    struct srv_attachment *a = at ? GM_CONTAINER_OF(at, struct srv_attachment, at) : NULL;
    return a && (at->address == address ||
                 (a->own_range && at->address + a->object->skip == address))
               ? a
               : NULL;
}

static void attached(struct srv_attachment *a, int result)
{
    a->busy = false;
    if (result != 0)
        return;
    a->live = true;
    a->access = a->asked;
}

static void on_mapped(void *arg, int result, struct tp_packet *answer)
{
    struct srv_attachment *a = arg;
    struct srv_session *c = a->session;
    uint64_t serial = a->serial;
    (void)answer;
    attached(a, result);
    if (!a->live)
        attachment_destroy(a);
    srv_session_status(c, serial, result);
}

static void attach(struct srv_attachment *a, uint32_t access, uint64_t serial, srv_answer_fn *done)
{
    a->busy = true;
    a->serial = serial;
    a->asked = access;
    tell(a, access, done);
}

/* Checks a request, and finds or makes the mapping of which the executor has to be told. A
 * CUresult. */
static int prepare_map(struct srv_session *c, const struct wire_object_map *m,
                       struct srv_attachment **out)
{
    struct srv_object *o = srv_object_named(c, m->object);
    if (!o || m->size != o->size || m->address % c->areas[o->host].page)
        return GM_CUDA_INVALID_VALUE;
    struct srv_range *range = find_range(c, m->address, m->size);
    if (!range || range->area != &c->areas[o->host])
        return GM_CUDA_INVALID_VALUE;
    struct srv_attachment *a = find_attachment(c, m->address);
    if (a && a->object == o && !a->own_range && !a->busy) {
        *out = a; /* it exists already, and gets another access */
        return GM_CUDA_SUCCESS;
    }
    if (srv_spans_find(&c->attachments, m->address, m->size))
        return GM_CUDA_INVALID_VALUE;
    return attachment_create(c, o, range, false, m->address, out);
}

static bool access_is_known(const struct srv_session *c, uint32_t access)
{
    for (uint32_t d = 0; d < TP_DEVICES; d++) {
        uint32_t of = access >> 2 * d & 3;
        if (of == 2 || (of && d >= c->server->devices_count))
            return false;
    }
    return access != 0;
}

const char *srv_on_object_map(struct srv_session *c, const struct wire_object_map *m,
                              uint64_t serial)
{
    struct srv_attachment *a = NULL;
    if (!access_is_known(c, m->access))
        return "an unknown kind of access";
    int r = c->failed ? c->failed : prepare_map(c, m, &a);
    if (r)
        srv_session_status(c, serial, r);
    else
        attach(a, m->access, serial, on_mapped);
    return NULL;
}

static void on_unmapped(void *arg, int result, struct tp_packet *answer)
{
    struct srv_attachment *a = arg;
    struct srv_session *c = a->session;
    uint64_t serial = a->serial;
    bool answered = a->answered;
    (void)result; /* without an executor there is no mapping */
    (void)answer;
    attachment_destroy(a);
    if (!answered)
        srv_session_status(c, serial, GM_CUDA_SUCCESS);
}

const char *srv_on_object_unmap(struct srv_session *c, const struct wire_object_unmap *m,
                                uint64_t serial)
{
    struct srv_attachment *a = find_attachment(c, m->address);
    if (!a || a->busy) {
        srv_session_status(c, serial, GM_CUDA_INVALID_VALUE);
        return NULL;
    }
    a->live = false;
    a->busy = true;
    a->serial = serial;
    /* It is unmapped at the session's end. */
    if (a->object->host && srv_session_holds_host(c)) {
        srv_session_status(c, a->serial, GM_CUDA_SUCCESS);
        return NULL;
    }
    if (!srv_session_is_mapped(c, a->object->host)) {
        on_unmapped(a, 0, NULL);
        return NULL;
    }
    /* Host memory may have to be unpinned, and the client does not wait for that. But if the
     * program chose the address, it may want to use it again. */
    a->answered = a->object->host && a->own_range;
    if (a->answered)
        srv_session_status(c, a->serial, GM_CUDA_SUCCESS);
    srv_engine_unmap(c, &(struct wire_engine_unmap) { c->id, a->at.address, a->at.size },
                     on_unmapped, a);
    return NULL;
}

static void answer_opened(struct srv_session *c, uint64_t serial, int result,
                          const struct srv_attachment *a)
{
    const struct srv_object *o = a ? a->object : NULL;
    const struct wire_memory_opened m = { result, o ? o->device : 0,
                                          o ? a->at.address + o->skip : 0, o ? o->length : 0 };
    srv_answer_memory_opened(c, serial, &m, o && o->host ? o->fd : -1);
}

static void on_opened(void *arg, int result, struct tp_packet *answer)
{
    struct srv_attachment *a = arg;
    (void)answer;
    attached(a, result);
    answer_opened(a->session, a->serial, result, result == 0 ? a : NULL);
    if (result != 0)
        attachment_destroy(a);
}

static int prepare_open(struct srv_session *c, const struct wire_bytes *token,
                        struct srv_attachment **out)
{
    int r;
    struct srv_object *o = srv_object_by_token(c, token->data, token->size, &r);
    if (!o)
        return r;
    struct srv_range *range =
        range_create(c, &c->areas[o->host], o->size, o->host ? SRV_PAGE : SRV_SLAB);
    if (!range)
        return GM_CUDA_OUT_OF_MEMORY;
    r = attachment_create(c, o, range, true, range->block->address, out);
    if (r)
        range_destroy(range);
    return r;
}

const char *srv_on_memory_open(struct srv_session *c, const struct wire_memory_open *m,
                               uint64_t serial)
{
    struct srv_attachment *a = NULL;
    int r = c->failed ? c->failed : prepare_open(c, &m->token, &a);
    if (r)
        answer_opened(c, serial, r, NULL);
    else
        attach(a, 0, serial, on_opened); /* mapped like the client's own memory */
    return NULL;
}
