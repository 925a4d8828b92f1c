/*
 * Checks records within records, from the outermost to the innermost.
 */
#include "executor/inner.h"

static bool is_operation(uint32_t op)
{
    return op == WIRE_OP_LAUNCH || op == WIRE_OP_COPY || op == WIRE_OP_FILL ||
           op == WIRE_OP_COPY_ARRAY;
}

/* The record at *at, and steps over it. NULL: none begins there that ends within the `size` bytes.
 */
static const struct wire_record *next(const void *records, uint32_t size, uint32_t *at)
{
    const struct wire_record *r = exe_inner(records, *at);
    const uint32_t left = size - *at;
    const bool fits = left >= sizeof(*r) && wire_record_check(r) && r->size <= left &&
                      gm_padded(r->size) <= left && !r->stream && !r->seq;
    return fits ? exe_inner_next(records, at) : NULL;
}

bool exe_run_is_sound(const struct wire_rec_run *r)
{
    const uint32_t size = exe_inner_size(&r->head, sizeof(*r));
    uint32_t at = 0, count = 0;
    for (; at < size; count++) {
        const struct wire_record *op = next(r->records, size, &at);
        if (!op || !is_operation(op->op))
            return false;
    }
    return !r->reserved && count == r->count;
}

static bool are_sound(const void *records, uint32_t size, uint32_t deep);

static bool condition_is_sound(const struct wire_rec_condition *r, uint32_t deep)
{
    const uint32_t size = exe_inner_size(&r->head, sizeof(*r));
    uint32_t at = 0, count = 0;
    if (deep == EXE_CONDITIONS_DEEP || r->reserved)
        return false;
    for (; at < size; count++) {
        const struct wire_record *body = next(r->records, size, &at);
        if (!body || body->op != WIRE_OP_BODY ||
            !are_sound(((const struct wire_rec_body *)(const void *)body)->records,
                       exe_inner_size(body, sizeof(struct wire_rec_body)), deep + 1))
            return false;
    }
    return count > 0 && count == r->bodies;
}

/* Operations and conditions. */
static bool are_sound(const void *records, uint32_t size, uint32_t deep)
{
    for (uint32_t at = 0; at < size;) {
        const struct wire_record *r = next(records, size, &at);
        const void *condition = r;
        if (!r || (r->op == WIRE_OP_CONDITION ? !condition_is_sound(condition, deep)
                                              : !is_operation(r->op)))
            return false;
    }
    return true;
}

bool exe_graph_is_sound(const struct wire_rec_graph *r)
{
    const uint32_t size = exe_inner_size(&r->head, sizeof(*r));
    if (r->reserved || r->handles > size / sizeof(struct wire_graph_handle))
        return false;
    const uint32_t first = r->handles * (uint32_t)sizeof(struct wire_graph_handle);
    return are_sound(r->records + first, size - first, 0);
}
