/*
 * The pool: lists of numbers that belong to an analysis, one behind the other.
 */
#include <stdlib.h>

#include "device/soft/ir/analyse.h"

bool ir_pool_push(struct ir_analyser *an, uint32_t value)
{
    if (an->pool_count == an->pool_cap) {
        uint32_t cap = an->pool_cap ? an->pool_cap * 2 : 256;
        uint32_t *grown =
            cap > an->pool_cap ? realloc(an->a->pool, (size_t)cap * sizeof(*grown)) : NULL;
        if (!grown) {
            an->no_memory = true;
            return false;
        }
        an->a->pool = grown;
        an->pool_cap = cap;
    }
    an->a->pool[an->pool_count++] = value;
    return true;
}
