/*
 * Checks records within records, from the outermost to the innermost.
 */
#include "executor/inner.h"

#include "device/device.h"

static bool is_operation(uint32_t op)
{
    return op == WIRE_OP_LAUNCH || op == WIRE_OP_COPY || op == WIRE_OP_FILL ||
           op == WIRE_OP_COPY_ARRAY;
}

/* A record of its own begins there, and ends within the `left` bytes. */
static bool fits(const struct wire_record *r, uint32_t left)
{
    return left >= sizeof(*r) && wire_record_check(r) && r->size <= left &&
           gm_padded(r->size) <= left && !r->stream && !r->seq;
}

bool exe_run_is_sound(const struct wire_rec_run *r)
{
    const uint32_t size = exe_inner_size(&r->head, sizeof(*r));
    uint32_t at = 0, count = 0;
    for (; at < size; count++) {
        const struct wire_record *op = exe_inner(r->records, at);
        if (!fits(op, size - at) || !is_operation(op->op))
            return false;
        at += (uint32_t)gm_padded(op->size);
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
        const struct wire_record *body = exe_inner(r->records, at);
        if (!fits(body, size - at) || body->op != WIRE_OP_BODY ||
            !are_sound(((const struct wire_rec_body *)(const void *)body)->records,
                       exe_inner_size(body, sizeof(struct wire_rec_body)), deep + 1))
            return false;
        at += (uint32_t)gm_padded(body->size);
    }
    return count > 0 && count == r->bodies;
}

/* Operations and conditions. */
static bool are_sound(const void *records, uint32_t size, uint32_t deep)
{
    for (uint32_t at = 0; at < size;) {
        const struct wire_record *r = exe_inner(records, at);
        const void *condition = r;
        if (!fits(r, size - at) ||
            (r->op == WIRE_OP_CONDITION ? !condition_is_sound(condition, deep)
                                        : !is_operation(r->op)))
            return false;
        at += (uint32_t)gm_padded(r->size);
    }
    return true;
}

bool exe_graph_is_sound(const struct wire_rec_graph *r)
{
    const uint32_t size = exe_inner_size(&r->head, sizeof(*r));
    if (r->reserved || r->handles > size / sizeof(struct dev_graph_handle))
        return false;
    const uint32_t first = r->handles * (uint32_t)sizeof(struct dev_graph_handle);
    return are_sound(r->records + first, size - first, 0);
}
