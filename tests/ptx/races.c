/*
 * Threads that race, found while the interpreter runs a launch; see races.h.
 */
#include "races.h"

#include <stdlib.h>
#include <string.h>

#include "device/soft/ir/ir.h"
#include "device/soft/ir/ops.h"

#define PLACES  (1u << 22) /* bytes known; a power of two */
#define NOBODY  UINT32_MAX
#define SEVERAL (UINT32_MAX - 1)

/* The threads that have accessed a byte since the last barrier. */
struct place {
    const uint8_t *at;
    uint32_t since;
    uint32_t writer, reader; /* threads, NOBODY, SEVERAL */
};

struct races {
    struct soft_bench *bench;
    struct place *places;
    uint32_t now; /* barriers passed */
    uint32_t used;
    struct race first;
};

bool races_can_find(const struct ir_fn *fn)
{
    for (uint32_t k = 0; k < fn->instr_count; k++) {
        const struct ir_instr *i = &fn->instrs[k];
        if (ir_ops[i->op].properties & IR_P_CROSS_LANE || i->order != IR_ORDER_WEAK ||
            i->op == IR_OP_CALL || i->op == IR_OP_ATOM || i->op == IR_OP_RED)
            return false;
    }
    return true;
}

/* NULL: all places are taken; then less is found. */
static struct place *find(struct races *r, const uint8_t *at)
{
    uint64_t h = (uint64_t)(uintptr_t)at * UINT64_C(0x9e3779b97f4a7c15) >> 42;
    for (;; h = (h + 1) % PLACES) {
        struct place *p = &r->places[h];
        if (p->at == at)
            return p;
        if (!p->at) {
            if (r->used == PLACES / 2)
                return NULL;
            r->used++;
            p->at = at;
            return p;
        }
    }
}

static void note(struct races *r, uint32_t thread, const uint8_t *at, const uint8_t *value)
{
    struct place *p = find(r, at);
    if (!p)
        return;
    if (p->since != r->now)
        *p = (struct place) { .at = at, .since = r->now, .writer = NOBODY, .reader = NOBODY };
    uint32_t other = p->writer != NOBODY && p->writer != thread ? p->writer : NOBODY;
    if (value && *value == *at)
        return; /* the order makes no difference */
    if (value && other == NOBODY && p->reader != NOBODY && p->reader != thread)
        other = p->reader;
    if (other != NOBODY && !r->first.found)
        r->first = (struct race) { .found = true, .at = at, .threads = { other, thread } };
    if (value)
        p->writer = thread;
    else
        p->reader = p->reader == NOBODY || p->reader == thread ? thread : SEVERAL;
}

static void on_access(void *arg, uint32_t thread, const void *at, uint32_t bytes, const void *value)
{
    struct races *r = arg;
    if (!at)
        r->now++;
    for (uint32_t k = 0; at && k < bytes; k++)
        note(r, thread, (const uint8_t *)at + k, value ? (const uint8_t *)value + k : NULL);
}

struct races *races_create(struct soft_bench *s)
{
    struct races *r = calloc(1, sizeof(*r));
    if (!r || !(r->places = calloc(PLACES, sizeof(*r->places))))
        abort();
    r->bench = s;
    soft_bench_watch(s, on_access, r);
    return r;
}

void races_destroy(struct races *r)
{
    soft_bench_watch(r->bench, NULL, NULL);
    free(r->places);
    free(r);
}

struct race races_first(const struct races *r)
{
    return r->first;
}
