/*
 * Puts the record of a graph together at each launch, from the blocks of its body and of the bodies
 * inside: they change one by one.
 */
#include "client/graph/whole.h"

#include <stdlib.h>
#include <string.h>

struct rt_whole {
    uint32_t count;
    uint32_t present;
    struct wire_graph_handle handles[];
};

/* The record behind its fields; one is made at a time. */
static uint64_t records[WIRE_REC_GRAPH_RECORDS_MAX / sizeof(uint64_t)];

struct writer {
    size_t size;
    bool full; /* there was not room for everything */
};

bool rt_whole_wanted(const struct rt_graph *g)
{
    return rt_session->memory_apart && rt_graph_has_conditions(g);
}

static void note(void *arg, const struct rt_condition *c)
{
    struct rt_whole *w = arg;
    w->handles[c->handle - 1] = (struct wire_graph_handle) { c->initial, c->assign };
    w->present++;
}

int rt_whole_create(const struct rt_graph *g, struct rt_whole **out)
{
    static atomic_bool said;
    if (g->parent) /* its handles are counted in the outermost */
        return CUDA_ERROR_INVALID_VALUE;
    struct rt_whole *w = calloc(1, sizeof(*w) + g->handles * sizeof(struct wire_graph_handle));
    if (!w)
        return CUDA_ERROR_OUT_OF_MEMORY;
    w->count = g->handles;
    rt_conditions_each(g, note, w);
    if (w->present < w->count) { /* the others went with a node, and the device would count on */
        free(w);
        return rt_not_supported("a graph from which a conditional node with handles inside was "
                                "taken",
                                &said);
    }
    *out = w;
    return CUDA_SUCCESS;
}

int rt_whole_replace(const struct rt_graph *g, struct rt_whole **whole)
{
    struct rt_whole *w = NULL;
    int r = rt_whole_create(g, &w);
    if (r)
        return r;
    free(*whole);
    *whole = w;
    return CUDA_SUCCESS;
}

/* --- the record ------------------------------------------------------------------------------- */

/* Where so many bytes are to stand; NULL: there is no room. */
static void *add(struct writer *w, size_t size)
{
    void *at = (uint8_t *)records + w->size;
    if (size > sizeof(records) - w->size) {
        w->full = true;
        return NULL;
    }
    w->size += size;
    return at;
}

static void add_operations(struct writer *w, const uint8_t *from, size_t size)
{
    uint8_t *at = add(w, size);
    if (!at)
        return;
    memcpy(at, from, size);
    for (uint8_t *end = at + size; at < end;) {
        struct wire_record *head = (struct wire_record *)(void *)at;
        head->flags = 0;
        head->stream = head->reserved = 0;
        head->seq = 0;
        at += gm_padded(head->size);
    }
}

static int add_body(struct writer *w, const struct rt_exec_body *b);

static int add_condition(struct writer *w, const struct rt_conditional_run *run)
{
    const size_t begin = w->size;
    struct wire_rec_condition *c = add(w, sizeof(*c));
    int r = CUDA_SUCCESS;
    for (unsigned i = 0; i < run->count && r == CUDA_SUCCESS; i++) {
        const size_t at = w->size;
        struct wire_rec_body *body = add(w, sizeof(*body));
        r = run->bodies[i]->memory ? CUDA_ERROR_NOT_SUPPORTED : add_body(w, run->bodies[i]);
        if (body)
            *body = (struct wire_rec_body) { .head = { .op = WIRE_OP_BODY,
                                                       .size = (uint32_t)(w->size - at) } };
    }
    if (c)
        *c = (struct wire_rec_condition) { .head = { .op = WIRE_OP_CONDITION,
                                                     .size = (uint32_t)(w->size - begin) },
                                           .handle = (uint32_t)run->condition->handle,
                                           .kind = run->kind,
                                           .bodies = run->count };
    return r == CUDA_ERROR_NOT_SUPPORTED ? CUDA_ERROR_INVALID_VALUE : r;
}

/* CUDA_ERROR_NOT_SUPPORTED: it has something that the device does not do. */
static int add_body(struct writer *w, const struct rt_exec_body *b)
{
    int r = CUDA_SUCCESS;
    for (uint32_t i = 0; i < b->steps_count && r == CUDA_SUCCESS; i++) {
        const struct rt_step *s = &b->steps[i];
        if (s->kind == RT_STEP_RECORDS)
            add_operations(w, b->block + s->at, s->size);
        else
            r = s->kind == RT_STEP_CONDITION ? add_condition(w, s->condition)
                                             : CUDA_ERROR_NOT_SUPPORTED;
    }
    return r;
}

static int make(const struct rt_exec_body *b, struct writer *w)
{
    const size_t size = b->whole->count * sizeof(struct wire_graph_handle);
    void *handles = add(w, size);
    if (handles)
        memcpy(handles, b->whole->handles, size);
    return add_body(w, b);
}

int rt_whole_check(const struct rt_exec_body *b)
{
    static atomic_bool said, said_large;
    struct writer w = { 0 };
    int r = make(b, &w);
    if (r == CUDA_ERROR_NOT_SUPPORTED)
        return rt_not_supported("a graph with conditional nodes and host functions, events, memory "
                                "operations or copies of pageable memory",
                                &said);
    if (r == CUDA_SUCCESS && w.full)
        return rt_not_supported("a graph with conditional nodes of more than 34 KiB", &said_large);
    return r;
}

int rt_whole_put(const struct rt_exec_body *b, struct rt_stream *st)
{
    struct writer w = { 0 };
    struct wire_rec_graph graph = { .head.op = WIRE_OP_GRAPH, .handles = b->whole->count };
    int r = make(b, &w);
    if (r == CUDA_SUCCESS && w.full) /* a node of a body was switched on since */
        r = CUDA_ERROR_NOT_SUPPORTED;
    return r ? r : rt_queue_put(st, &graph.head, sizeof(graph), records, w.size, NULL);
}
