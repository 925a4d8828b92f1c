/*
 * The block is contiguous, and in an order that respects all edges, whatever branches its records
 * go to. So it would also be correct in a single stream, and a device that has graphs of its own
 * can be given it as it is.
 *
 * Pageable memory is read and written when the graph runs, not when it is made. Such a copy goes
 * through pinned memory that the executable graph owns, and a function of this library's, in the
 * place of a host function, moves the bytes.
 */
#include "client/graph/exec.h"

#include <stdlib.h>
#include <string.h>

/* --- pageable memory -------------------------------------------------------------------------- */

static void move_rows(const struct rt_box *b, uint8_t *packed, uint64_t address,
                      const struct rt_side *side, bool in)
{
    for (uint64_t z = 0; z < b->depth; z++)
        for (uint64_t y = 0; y < b->height; y++, packed += b->width) {
            void *at = (void *)(uintptr_t)(address + z * side->slice + y * side->pitch);
            memcpy(in ? (void *)packed : at, in ? at : (void *)packed, b->width);
        }
}

static void CUDA_CB stage_in(void *arg)
{
    const struct rt_staged *s = arg;
    move_rows(&s->box, (uint8_t *)(uintptr_t)s->memory, s->box.src.address, &s->box.src, true);
}

static void CUDA_CB stage_out(void *arg)
{
    const struct rt_staged *s = arg;
    move_rows(&s->box, (uint8_t *)(uintptr_t)s->memory, s->box.dst.address, &s->box.dst, false);
}

static void CUDA_CB copy_pageable(void *arg)
{
    const struct rt_staged *s = arg;
    for (uint64_t z = 0; z < s->box.depth; z++)
        for (uint64_t y = 0; y < s->box.height; y++)
            memmove((void *)(uintptr_t)(s->box.dst.address + z * s->box.dst.slice +
                                        y * s->box.dst.pitch),
                    (const void *)(uintptr_t)(s->box.src.address + z * s->box.src.slice +
                                              y * s->box.src.pitch),
                    s->box.width);
}

static void staged_free_all(struct rt_exec_body *b)
{
    while (b->staged) {
        struct rt_staged *s = b->staged;
        b->staged = s->next;
        if (s->memory)
            (void)rt_request_free(rt_session, s->memory);
        free(s);
    }
}

static int staged_create(struct rt_exec_body *b, const struct rt_box *box, bool pinned,
                         struct rt_staged **out)
{
    struct rt_staged *s = calloc(1, sizeof(*s));
    int r = s ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (s && pinned)
        r = rt_request_alloc(rt_session, box->width * box->height * box->depth, 0,
                             WIRE_MEMORY_KIND_HOST, 0, &s->memory);
    if (r) {
        free(s);
        return r;
    }
    s->box = *box;
    s->next = b->staged;
    b->staged = s;
    *out = s;
    return CUDA_SUCCESS;
}

/* --- the block -------------------------------------------------------------------------------- */

static struct rt_step *add_step(struct rt_exec_body *b, enum rt_step_kind kind)
{
    if (b->steps_count == b->steps_capacity) {
        uint32_t capacity = b->steps_capacity ? b->steps_capacity * 2 : 8;
        struct rt_step *grown = realloc(b->steps, capacity * sizeof(*grown));
        if (!grown)
            return NULL;
        b->steps = grown;
        b->steps_capacity = capacity;
    }
    struct rt_step *s = &b->steps[b->steps_count++];
    *s = (struct rt_step) { .kind = kind, .branch = b->branch };
    return s;
}

static int add_record(struct rt_exec_body *b, const struct wire_record *record, struct rt_node *n)
{
    size_t size = gm_padded(record->size);
    if (b->block_size + size > b->block_capacity) {
        size_t capacity = GM_MAX(2 * b->block_capacity, b->block_size + size + 1024);
        uint8_t *grown = realloc(b->block, capacity);
        if (!grown)
            return CUDA_ERROR_OUT_OF_MEMORY;
        b->block = grown;
        b->block_capacity = capacity;
    }
    struct rt_step *s = b->steps_count ? &b->steps[b->steps_count - 1] : NULL;
    if (!s || s->kind != RT_STEP_RECORDS || s->branch != b->branch) {
        s = add_step(b, RT_STEP_RECORDS);
        if (!s)
            return CUDA_ERROR_OUT_OF_MEMORY;
        s->at = b->block_size;
    }
    s->size += size;
    memset(b->block + b->block_size + size - 8, 0, 8); /* the padding */
    memcpy(b->block + b->block_size, record, record->size);
    n->at = b->block_size;
    n->size = record->size;
    b->block_size += size;
    return CUDA_SUCCESS;
}

static int add_call(struct rt_exec_body *b, CUhostFn fn, void *arg)
{
    struct rt_step *s = add_step(b, RT_STEP_CALL);
    if (!s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->fn = fn;
    s->arg = arg;
    b->calls = true;
    return CUDA_SUCCESS;
}

union copy_record {
    struct wire_record head;
    struct wire_rec_copy memory;
    struct wire_rec_copy_array array;
};

/* Makes the record of a node's copy with another address, or with other pitches. */
static void copy_record(const struct rt_params *p, const struct rt_box *box, uint64_t dst,
                        uint64_t src, union copy_record *out)
{
    if (!p->copy.array.head.size) {
        rt_copy_record(box, dst, src, &out->memory);
        return;
    }
    out->array = p->copy.array;
    out->array.dst = dst;
    out->array.dst_pitch = box->dst.pitch;
    out->array.dst_slice = box->dst.slice;
    out->array.src = src;
    out->array.src_pitch = box->src.pitch;
    out->array.src_slice = box->src.slice;
}

/* Makes the record of a copy whose two sides lie in the window. Returns false for other copies. */
static bool plain_copy(const struct rt_params *p, union copy_record *out)
{
    if (!p->copy.plan.dst_in_window || !p->copy.plan.src_in_window)
        return false;
    copy_record(p, &p->copy.box, p->copy.plan.dst, p->copy.plan.src, out);
    return true;
}

static int add_copy(struct rt_exec_body *b, struct rt_node *n)
{
    const struct rt_copy_plan *plan = &n->params.copy.plan;
    struct rt_box box = n->params.copy.box;
    union copy_record record;
    struct rt_staged *s;
    if (box.width == 0 || box.height == 0 || box.depth == 0)
        return CUDA_SUCCESS;
    if (plain_copy(&n->params, &record))
        return add_record(b, &record.head, n);
    int r = staged_create(b, &box, plan->dst_in_window || plan->src_in_window, &s);
    if (r)
        return r;
    if (!s->memory)
        return add_call(b, copy_pageable, s);
    struct rt_side *packed = plan->dst_in_window ? &box.src : &box.dst;
    packed->pitch = box.width;
    packed->slice = box.width * box.height;
    if (plan->dst_in_window) {
        copy_record(&n->params, &box, plan->dst, s->memory, &record);
        r = add_call(b, stage_in, s);
        r = r ? r : add_record(b, &record.head, n);
    } else {
        copy_record(&n->params, &box, s->memory, plan->src, &record);
        r = add_record(b, &record.head, n);
        r = r ? r : add_call(b, stage_out, s);
    }
    n->size = 0; /* it cannot be replaced in its place */
    return r;
}

static int add_event(struct rt_exec_body *b, enum rt_step_kind kind, CUevent event)
{
    struct rt_step *s = add_step(b, kind);
    if (!s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->event = event;
    return CUDA_SUCCESS;
}

static int add_memops(struct rt_exec_body *b, const struct rt_memops *memops)
{
    struct rt_step *s = add_step(b, RT_STEP_MEMOPS);
    if (!s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->memops = memops;
    return CUDA_SUCCESS;
}

static int add_condition(struct rt_exec_body *b, const struct rt_conditional *c)
{
    struct rt_conditional_run *run = b->conditionals; /* the newest comes first */
    while (run && run->node != c)
        run = run->next;
    struct rt_step *s = add_step(b, RT_STEP_CONDITION);
    if (!run || !s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->condition = run;
    b->calls = true;
    return CUDA_SUCCESS;
}

static int add_node(struct rt_exec_body *b, struct rt_node *n)
{
    n->size = 0;
    if (n->disabled)
        return CUDA_SUCCESS;
    switch (n->params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return add_record(b, &n->params.kernel.record->head, n);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return add_copy(b, n);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        if (n->params.fill.nowhere)
            return CUDA_ERROR_INVALID_VALUE;
        return n->params.fill.record.width ? add_record(b, &n->params.fill.record.head, n)
                                           : CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_HOST:
        return add_call(b, n->params.host.fn, n->params.host.userData);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return add_event(b, RT_STEP_RECORD_EVENT, n->params.event);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return add_event(b, RT_STEP_WAIT_EVENT, n->params.event);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return add_memops(b, &n->params.memops);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return add_condition(b, &n->params.conditional);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        b->memory = true;
        return CUDA_SUCCESS;
    default: /* an empty node */
        return CUDA_SUCCESS;
    }
}

static int add_order(struct rt_exec_body *b, enum rt_step_kind kind, uint32_t item)
{
    struct rt_step *s = add_step(b, kind);
    if (!s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->item = item;
    return CUDA_SUCCESS;
}

static int add_item(struct rt_exec_body *b, uint32_t number)
{
    const struct rt_item *item = &b->items[number];
    b->branch = item->branch;
    int r = item->first ? add_order(b, RT_STEP_START, number) : CUDA_SUCCESS;
    for (uint32_t i = 0; i < item->waits_count && r == CUDA_SUCCESS; i++)
        r = add_order(b, RT_STEP_WAIT, b->waits[item->waits_at + i]);
    if (r == CUDA_SUCCESS && item->node)
        r = add_node(b, item->node);
    if (r == CUDA_SUCCESS && item->marked)
        r = add_order(b, RT_STEP_MARK, number);
    return r;
}

/* --- the kernels that the graph launches: their module may be unloaded before the graph ends
 * -------- */

static const void *function_of(const struct rt_node *n)
{
    const struct rt_kernel *k = &n->params.kernel;
    return k->func ? (const void *)k->func : (const void *)k->kern;
}

static int compare_functions(const void *a, const void *b)
{
    uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return (x > y) - (x < y);
}

static int list_functions(struct rt_exec_body *b)
{
    uint32_t count = 0, kept = 0;
    const void **list = realloc(b->functions, (b->order_count + 1) * sizeof(*list));
    if (!list)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < b->order_count; i++)
        if (b->order[i]->params.type == CU_GRAPH_NODE_TYPE_KERNEL)
            list[count++] = function_of(b->order[i]);
    qsort(list, count, sizeof(*list), compare_functions);
    for (uint32_t i = 0; i < count; i++)
        if (!kept || list[kept - 1] != list[i])
            list[kept++] = list[i];
    b->functions = list;
    b->functions_count = kept;
    return CUDA_SUCCESS;
}

static bool is_listed(const struct rt_exec_body *b, const struct rt_node *n)
{
    const void *key = function_of(n);
    return bsearch(&key, b->functions, b->functions_count, sizeof(key), compare_functions) != NULL;
}

int rt_block_build(struct rt_exec_body *b, bool idle)
{
    int r = list_functions(b);
    if (idle)
        staged_free_all(b);
    b->block_size = 0;
    b->steps_count = 0;
    b->calls = b->memory = false;
    for (uint32_t i = 0; i < b->items_count && r == CUDA_SUCCESS; i++)
        r = add_item(b, i);
    b->branch = 0;
    for (uint32_t i = 0; i < b->joins_count && r == CUDA_SUCCESS; i++)
        r = add_order(b, RT_STEP_WAIT, b->waits[b->joins_at + i]);
    return r;
}

/* Replaces a node's record, if the new one has the same length. */
bool rt_block_patch(struct rt_exec_body *b, const struct rt_node *n)
{
    union copy_record copy;
    const struct wire_record *record = NULL;
    if (n->params.type == CU_GRAPH_NODE_TYPE_KERNEL && is_listed(b, n))
        record = &n->params.kernel.record->head;
    else if (n->params.type == CU_GRAPH_NODE_TYPE_MEMSET && n->params.fill.record.width &&
             !n->params.fill.nowhere)
        record = &n->params.fill.record.head;
    else if (n->params.type == CU_GRAPH_NODE_TYPE_MEMCPY && plain_copy(&n->params, &copy))
        record = &copy.head;
    if (n->disabled || !record || n->size != record->size)
        return n->disabled;
    memcpy(b->block + n->at, record, record->size);
    return true;
}

void rt_block_finish(struct rt_exec_body *b)
{
    staged_free_all(b);
    free(b->functions);
    free(b->block);
    free(b->steps);
}
