/*
 * The life of a range: it is charged, taken from the heap's ranges, mapped by the executor and
 * handed out. In the end it is unmapped, given back to its keeper and to the ranges, and its charge
 * is released. Allocations from a slab that is already mapped do not involve the executor.
 */
#include "server/hooks.h"
#include "server/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/result.h"
#include "server/object.h"
#include "server/send.h"
#include "server/serve.h"
#include "server/server.h"

#define PAID_MIN (4u << 20) /* a range that takes a while to be freed */

struct alloc_op {
    struct gm_list link; /* heap->deferred */
    struct srv_allocation *allocation;
    struct srv_mapping *mapping;
    uint64_t size;
    uint64_t align;
    bool small;
    bool slab;    /* `mapping` is a slab, and not for this allocation alone */
    bool refused; /* the device had no memory at the last attempt */
    bool trimmed; /* even after it had given back what it keeps */
    srv_allocated_fn *done;
    void *arg;
    uint64_t serial;
};

struct free_op {
    struct srv_sweep sweep;
    struct srv_heap *heap;
    struct srv_mapping *mapping;
    struct srv_allocation *allocation; /* NULL: a slab that is freed by itself */
    bool paid;                         /* it is charged until it is unmapped */
    srv_freed_fn *done;
    void *arg;
    uint64_t serial;
};

/* A question how much memory is left. A program that asks then wants to allocate it, so first the
 * device gets back what is on its way. */
struct info_op {
    struct gm_list link; /* heap->questions */
    uint64_t serial;
    unsigned unmapping; /* how many ranges, in order, still have to come back */
};

static void on_rest(void *session)
{
    srv_hooks.session_check_end(session);
}

bool srv_heap_rests(struct srv_heap *h)
{
    if (!h->session)
        return true;
    srv_sweep_cancel(&h->session->server->sweeper, &h->sweeps);
    return srv_sweep_rests(&h->session->server->sweeper, &h->sweeps);
}

void srv_heap_init(struct srv_heap *h, struct srv_session *c, struct srv_area *area,
                   uint32_t device, enum srv_quantity quantity, const struct srv_keeper_ops *keeper)
{
    h->keeper = keeper;
    h->session = c;
    h->area = area;
    h->device = device;
    h->quantity = quantity;
    gm_list_init(&h->mappings);
    gm_list_init(&h->allocations);
    gm_list_init(&h->deferred);
    gm_list_init(&h->questions);
    srv_sweep_owner_init(&h->sweeps, on_rest, c);
    srv_ranges_init(&h->small, SRV_GRANULE);
}

static void allocation_destroy(struct srv_allocation *a)
{
    gm_list_remove(&a->link);
    srv_charge_release(&a->bytes);
    srv_charge_release(&a->count);
    free(a);
}

/* Takes the mapping's range back; the executor does not know it any more. */
static void mapping_destroy(struct srv_heap *h, struct srv_mapping *m)
{
    gm_list_remove(&m->link);
    srv_charge_release(&m->charge);
    if (m->block) {
        if (h->keeper->give)
            h->keeper->give(h, m);
        h->area->mapped -= m->block->size;
        srv_ranges_free(&h->area->pages, m->block);
    }
    free(m);
}

bool srv_heap_finish(struct srv_heap *h, uint64_t until_ns)
{
    if (!h->session)
        return true;
    gm_list_for_each_safe (a, &h->allocations, struct srv_allocation, link) {
        if (gm_now_ns() >= until_ns)
            return false;
        if (!a->mapping && a->block)
            (void)srv_ranges_free(&h->small, a->block);
        allocation_destroy(a);
    }
    gm_list_for_each_safe (m, &h->mappings, struct srv_mapping, link) {
        if (gm_now_ns() >= until_ns)
            return false;
        /* The pages go when the file does, unless others have that open. Until then a process that
         * lives on finds the old contents. */
        if (h->area->kept && !m->kept && h->keeper->swept) {
            bool goes = srv_user_sweep(h->session->user, h->area->fd,
                                       m->block->address - h->area->base, m->block->size);
            (void)goes; /* else it stays until those have closed it */
        }
        mapping_destroy(h, m);
    }
    gm_list_for_each_safe (op, &h->deferred, struct alloc_op, link)
        free(op);
    gm_list_for_each_safe (op, &h->questions, struct info_op, link)
        free(op);
    srv_ranges_finish(&h->small);
    h->session = NULL;
    return true;
}

static void map(struct srv_heap *h, const struct srv_mapping *m, srv_answer_fn *done, void *arg)
{
    const struct wire_engine_map w = { h->session->id, h->device, m->block->address,
                                       m->block->size };
    srv_engine_map(h->session, &w, m->fd, done, arg);
}

void srv_heap_replay(struct srv_heap *h)
{
    gm_list_for_each (m, &h->mappings, struct srv_mapping, link)
        if (m->live)
            map(h, m, NULL, NULL);
}

/* A range of pages with its charge and its memory, not known to the executor yet. NULL: there is no
 * room, or the keeper `refused`. */
static struct srv_mapping *mapping_create(struct srv_heap *h, uint64_t size, uint64_t align,
                                          bool *refused)
{
    *refused = false;
    struct srv_mapping *m = calloc(1, sizeof(*m));
    if (!m)
        return NULL;
    gm_list_init(&m->link);
    m->fd = -1;
    if (srv_charge(&m->charge, &h->session->account, SRV_MAPPINGS, 1) == 0)
        m->block = srv_ranges_alloc(&h->area->pages, size, align);
    if (m->block)
        h->area->mapped += m->block->size;
    *refused = m->block && h->keeper->take && h->keeper->take(h, m) != GM_CUDA_SUCCESS;
    if (!m->block || *refused) {
        mapping_destroy(h, m);
        return NULL;
    }
    m->block->user = m;
    gm_list_append(&h->mappings, &m->link);
    return m;
}

/* --- allocating ------------------------------------------------------------------------------- */

static void finish_alloc(struct alloc_op *op, int result)
{
    struct srv_allocation *a = op->allocation;
    if (result == 0) {
        a->busy = false;
        if (a->mapping)
            a->mapping->allocation = a;
        else
            a->block->user = a;
    } else {
        allocation_destroy(a);
        a = NULL;
    }
    op->done(op->arg, op->serial, result, a);
    free(op);
}

/* Whether the slab that contains `b` contains nothing else. */
static bool alone_in_slab(const struct srv_block *b)
{
    return (!b->below || (b->below->free && !b->below->below)) &&
           (!b->above || (b->above->free && !b->above->above));
}

/* What is not the client's (variables and constants of its modules) lies at the other end of the
 * slab: programs write a little beyond their allocations, and on a GPU that hits no constant. */
static bool alloc_small(struct alloc_op *op)
{
    struct srv_allocation *a = op->allocation;
    a->block = a->internal ? srv_ranges_alloc_high(&a->heap->small, op->size, op->align)
                           : srv_ranges_alloc(&a->heap->small, op->size, op->align);
    if (a->block && alone_in_slab(a->block))
        a->heap->empty_slabs--;
    return a->block != NULL;
}

static bool is_host(const struct srv_heap *h)
{
    return h == &h->session->host;
}

/* Charges everything that the allocation costs, or nothing. */
static bool charge_alloc(struct alloc_op *op)
{
    struct srv_allocation *a = op->allocation;
    struct srv_account *account = &a->heap->session->account;
    if (a->count.amount)
        return true;
    if (srv_charge(&a->bytes, account, a->heap->quantity, op->size) < 0)
        return false;
    if (srv_charge(&a->count, account, SRV_ALLOCATIONS, 1) == 0)
        return true;
    srv_charge_release(&a->bytes);
    return false;
}

static void start_alloc(struct alloc_op *op);

static void on_mapped(void *arg, int result, struct tp_packet *answer)
{
    struct alloc_op *op = arg;
    struct srv_heap *h = op->allocation->heap;
    struct srv_mapping *m = op->mapping;
    (void)answer;
    if (result == 0 && op->slab && srv_ranges_add(&h->small, m->block->address, m->block->size) < 0)
        result = GM_CUDA_OUT_OF_MEMORY;
    if (result != 0) {
        mapping_destroy(h, m);
        finish_alloc(op, result);
        return;
    }
    m->live = true;
    if (!op->slab) {
        op->allocation->block = m->block;
        op->allocation->mapping = m;
        finish_alloc(op, 0);
        return;
    }
    h->empty_slabs++;
    start_alloc(op); /* a small one from that slab, unless somebody else was faster */
}

static void on_trimmed(void *arg, int result, struct tp_packet *answer)
{
    struct alloc_op *op = arg;
    (void)answer;
    if (result == 0)
        start_alloc(op);
    else
        finish_alloc(op, GM_CUDA_OUT_OF_MEMORY);
}

/* No large allocation lies at the very beginning of a program's memory: programs read a little
 * before their first one, and natively memory of the context lies there. */
static bool begins_with_slab(const struct srv_heap *h)
{
    return h->keeper != &srv_keeper_host && gm_list_empty(&h->mappings);
}

/* Takes a range from a slab, or has one mapped: a new slab, or one for this allocation. */
static void start_alloc(struct alloc_op *op)
{
    struct srv_heap *h = op->allocation->heap;
    bool charged = charge_alloc(op);
    if (charged && op->small && alloc_small(op)) {
        finish_alloc(op, 0);
        return;
    }
    op->slab = op->small || begins_with_slab(h);
    op->mapping = charged && op->slab ? mapping_create(h, SRV_SLAB, SRV_SLAB, &op->refused) : NULL;
    if (charged && !op->small && !op->mapping) {
        op->slab = false;
        op->mapping = mapping_create(h, op->size, op->align, &op->refused);
    }
    if (op->mapping) {
        map(h, op->mapping, on_mapped, op);
        /* Room, or the charge, may be on its way back. */
    } else if (h->unmapping != 0 && (charged || h->unmapping_paid != 0)) {
        gm_list_append(&h->deferred, &op->link);
    } else if (op->refused && !op->trimmed) {
        op->trimmed = true;
        srv_memory_trim(h->session, h->device, on_trimmed, op);
    } else {
        finish_alloc(op, GM_CUDA_OUT_OF_MEMORY);
    }
}

void srv_memory_trim(struct srv_session *c, uint32_t device, srv_answer_fn *done, void *arg)
{
    srv_engine_trim(c, &(struct wire_engine_trim) { c->id, device }, done, arg);
}

static void start_deferred(struct srv_heap *h)
{
    struct gm_list again;
    gm_list_init(&again);
    /* Allocations that do not fit yet return to that list. */
    for (struct gm_list *first; (first = h->deferred.next) != &h->deferred;) {
        gm_list_remove(first);
        gm_list_append(&again, first);
    }
    while (!gm_list_empty(&again)) {
        struct alloc_op *op = gm_list_entry(again.next, struct alloc_op, link);
        gm_list_remove(&op->link);
        start_alloc(op);
    }
}

/* Makes the operation with its allocation, which is not charged yet. A CUresult. */
static int prepare_alloc(struct srv_heap *h, uint64_t size, uint64_t align, struct alloc_op **out)
{
    bool small = size <= SRV_SMALL_MAX && align <= SRV_PAGE;
    if (size == 0 || (align && !gm_is_pow2(align)) || align > SRV_ALIGN_MAX)
        return GM_CUDA_INVALID_VALUE;
    uint64_t unit = small ? SRV_GRANULE : h->keeper->charged;
    if (size > h->area->size || !gm_align_up(size, unit, &size))
        return GM_CUDA_OUT_OF_MEMORY;
    struct srv_allocation *a = calloc(1, sizeof(*a));
    struct alloc_op *op = calloc(1, sizeof(*op));
    if (!a || !op) {
        free(a);
        free(op);
        return GM_CUDA_OUT_OF_MEMORY;
    }
    gm_list_init(&op->link);
    a->heap = h;
    a->busy = true;
    gm_list_append(&h->allocations, &a->link);
    op->allocation = a;
    op->small = small;
    op->size = size;
    op->align = GM_MAX(align, unit);
    *out = op;
    return 0;
}

void srv_memory_alloc(struct srv_heap *h, uint64_t size, uint64_t align, bool internal,
                      srv_allocated_fn *done, void *arg, uint64_t serial)
{
    struct alloc_op *op = NULL;
    int result = prepare_alloc(h, size, align, &op);
    if (result != 0) {
        done(arg, serial, result, NULL);
        return;
    }
    op->allocation->internal = internal;
    op->done = done;
    op->arg = arg;
    op->serial = serial;
    start_alloc(op);
}

/* --- what is left ----------------------------------------------------------------------------- */

/* As in MPS, a limit shows in what is free; the total is the device's. */
static void answer_info(struct srv_heap *h, uint64_t serial)
{
    struct srv_session *c = h->session;
    const uint64_t total = c->server->devices[h->device].memory_total;
    const struct wire_memory_info_is m = { .free = srv_account_left(&c->account, h->quantity),
                                           .total = c->memory_most ? GM_MIN(total, c->memory_most)
                                                                   : total,
                                           .ready = srv_ranges_left(&h->small) };
    srv_answer_memory_info_is(c, serial, &m);
}

static void answer_questions(struct srv_heap *h)
{
    gm_list_for_each_safe (op, &h->questions, struct info_op, link) {
        if (--op->unmapping != 0)
            continue;
        gm_list_remove(&op->link);
        answer_info(h, op->serial);
        free(op);
    }
}

const char *srv_on_memory_info(struct srv_session *c, const struct wire_memory_info *m,
                               uint64_t serial)
{
    struct srv_heap *h = srv_session_heap(c, false, m->device);
    if (!h)
        return "a question about a device that there is not";
    struct info_op *op = h->unmapping ? malloc(sizeof(*op)) : NULL;
    if (!op) {
        answer_info(h, serial);
        return NULL;
    }
    op->serial = serial;
    op->unmapping = h->unmapping;
    gm_list_init(&op->link);
    gm_list_append(&h->questions, &op->link);
    return NULL;
}

/* --- freeing ---------------------------------------------------------------------------------- */

/* Whether the heap's memory is not taken back range by range any more, because the session ends. */
static bool goes_with_session(const struct srv_heap *h)
{
    return is_host(h) && srv_session_holds_host(h->session);
}

static void finish_free(struct free_op *op)
{
    if (!goes_with_session(op->heap)) {
        mapping_destroy(op->heap, op->mapping);
        if (op->allocation)
            allocation_destroy(op->allocation);
    }
    if (op->done)
        op->done(op->arg, op->serial);
    op->heap->unmapping--;
    op->heap->unmapping_paid -= op->paid;
    answer_questions(op->heap);
    start_deferred(op->heap);
    free(op);
}

static void on_swept(struct srv_sweep *sweep, bool cancelled)
{
    struct free_op *op = GM_CONTAINER_OF(sweep, struct free_op, sweep);
    if (cancelled) {
        free(op);
        return;
    }
    finish_free(op);
}

static void on_unmapped(void *arg, int result, struct tp_packet *answer)
{
    struct free_op *op = arg;
    struct srv_heap *h = op->heap;
    const struct srv_mapping *m = op->mapping;
    (void)result; /* without an executor there is no mapping */
    (void)answer;
    if (goes_with_session(h) || m->kept || !h->keeper->swept)
        finish_free(op);
    else
        srv_sweep(&h->session->server->sweeper, &op->sweep, &h->sweeps, h->area->fd,
                  m->block->address - h->area->base, m->block->size, on_swept);
}

/* Has the executor unmap a range, then gives it back; without memory for that it stays. */
static void unmap(struct srv_heap *h, struct srv_mapping *m, struct srv_allocation *a,
                  srv_freed_fn *done, void *arg, uint64_t serial)
{
    struct srv_session *c = h->session;
    struct free_op *op = calloc(1, sizeof(*op));
    if (!op) {
        if (done)
            done(arg, serial);
        return;
    }
    *op = (struct free_op) {
        .heap = h, .mapping = m, .allocation = a, .done = done, .arg = arg, .serial = serial
    };
    op->paid = a && a->bytes.amount;
    m->live = false;
    h->unmapping++;
    h->unmapping_paid += op->paid;
    if (!srv_session_is_mapped(c, is_host(h))) {
        on_unmapped(op, 0, NULL);
        return;
    }
    const struct wire_engine_unmap u = { c->id, m->block->address, m->block->size };
    srv_engine_unmap(c, &u, on_unmapped, op);
}

struct srv_allocation *srv_memory_find(struct srv_heap *h, uint64_t address)
{
    if (!h->session || address < h->area->base || address - h->area->base >= h->area->size)
        return NULL;
    struct srv_block *b = srv_ranges_find(&h->small, address);
    struct srv_allocation *a = b ? b->user : NULL;
    if (!b && (b = srv_ranges_find(&h->area->pages, address)) != NULL && b->user)
        a = ((struct srv_mapping *)b->user)->allocation;
    return a && a->heap == h && !a->busy && !a->internal ? a : NULL;
}

void srv_memory_free(struct srv_allocation *a, srv_freed_fn *done, void *arg, uint64_t serial)
{
    struct srv_heap *h = a->heap;
    a->busy = true;
    if (srv_hooks.allocation_kept(a)) {
        a->doomed = true;
        if (done)
            done(arg, serial);
        return;
    }
    /* The client does not wait until it is unpinned; until then it is charged and its range
     * taken. */
    if (goes_with_session(h) || (a->mapping && is_host(h))) {
        if (!goes_with_session(h))
            unmap(h, a->mapping, a, NULL, NULL, 0);
        if (done)
            done(arg, serial);
        return;
    }
    if (a->mapping) {
        /* At once, so that the next allocation can have it: its mapping is answered after this one
         * is unmapped, since the executor answers in order. A large range stays charged until its
         * pages are freed. */
        if (!h->keeper->swept || a->block->size <= PAID_MIN) {
            srv_charge_release(&a->bytes);
            srv_charge_release(&a->count);
        }
        unmap(h, a->mapping, a, done, arg, serial);
        return;
    }
    struct srv_block *whole = srv_ranges_free(&h->small, a->block);
    allocation_destroy(a);
    if (whole && h->empty_slabs != 0) {
        struct srv_mapping *m = srv_ranges_find(&h->area->pages, whole->address)->user;
        srv_ranges_remove(&h->small, whole);
        unmap(h, m, NULL, NULL, NULL, 0);
    } else if (whole) {
        h->empty_slabs++;
    }
    if (done)
        done(arg, serial);
}

/* --- requests --------------------------------------------------------------------------------- */

static void answer_alloc(void *arg, uint64_t serial, int result, struct srv_allocation *a)
{
    const struct wire_memory_allocated m = { result, a ? a->block->address : 0 };
    srv_answer_memory_allocated(arg, serial, &m);
}

const char *srv_on_memory_alloc(struct srv_session *c, const struct wire_memory_alloc *m,
                                uint64_t serial)
{
    if (m->kind != WIRE_MEMORY_KIND_DEVICE && m->kind != WIRE_MEMORY_KIND_HOST)
        return "memory of an unknown kind";
    struct srv_heap *h = srv_session_heap(c, m->kind == WIRE_MEMORY_KIND_HOST, m->device);
    if (!h)
        return "memory of a device that there is not";
    if (c->failed)
        answer_alloc(c, serial, c->failed, NULL);
    else
        srv_memory_alloc(h, m->size, m->align, false, answer_alloc, c, serial);
    return NULL;
}

static void answer_free(void *arg, uint64_t serial)
{
    srv_session_status(arg, serial, 0);
}

const char *srv_on_memory_free(struct srv_session *c, const struct wire_memory_free *m,
                               uint64_t serial)
{
    struct srv_allocation *a = srv_session_allocation(c, m->address);
    if (a)
        srv_memory_free(a, answer_free, c, serial);
    else
        srv_session_status(c, serial, GM_CUDA_INVALID_VALUE);
    return NULL;
}

/* --- a session's ------------------------------------------------------------------------------ */

struct srv_allocation *srv_session_allocation(struct srv_session *c, uint64_t address)
{
    struct srv_allocation *a = srv_memory_find(&c->host, address);
    for (uint32_t d = 0; d < c->server->devices_count && !a; d++)
        a = srv_memory_find(&c->heaps[d], address);
    return a;
}
