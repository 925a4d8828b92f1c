/*
 * Control flow: predecessors, dominators, post-dominators, loops, and the order of blocks that the
 * execution scheme uses as priority: reverse post-order in which every natural loop is contiguous.
 * Contiguity matters because lanes that left a loop wait behind it until the last lane leaves, so
 * no block of the loop may come after the place where they wait.
 *
 * How a loop becomes contiguous: a first depth-first walk finds dominators and loops. When a second
 * one enters the header of a loop it first visits the targets of all the loop's exits, then the
 * header's own successors. So the exits and everything after them are finished, and the rest of the
 * walk below the header numbers only blocks of the loop.
 *
 * Functions that stay apart (outline.c) come before their callers, behind the first block, so that
 * lanes that made no call wait until all others have returned. Dominators and loops are found for
 * each function by itself: there a call leads to the block behind it.
 */
#include "device/soft/ir/analyse.h"

/* An edge that leaves a loop, in the list of that loop's header. */
struct ir_exit {
    uint32_t target;
    uint32_t next;
};

struct ir_orderer {
    struct ir_analyser *an;
    uint32_t count;
    uint32_t *stack, *stack_exit, *stack_succ;
    uint8_t *seen;
    uint32_t *roots; /* the first blocks of the entry and of functions, callers first */
    uint32_t root_count;
    uint32_t *exit_head; /* by header: first of `exits`, or IR_NONE */
    struct ir_exit *exits;
    uint32_t exit_count, exit_cap;
    uint32_t *post; /* blocks in order of finishing */
    uint32_t post_count;
};

static bool push_exit(struct ir_orderer *o, uint32_t header, uint32_t target)
{
    if (o->exit_count == o->exit_cap) {
        uint32_t cap = o->exit_cap ? o->exit_cap * 2 : 64;
        struct ir_exit *grown = realloc(o->exits, (size_t)cap * sizeof(*grown));
        if (!grown)
            return false;
        o->exits = grown;
        o->exit_cap = cap;
    }
    o->exits[o->exit_count] = (struct ir_exit) { .target = target, .next = o->exit_head[header] };
    o->exit_head[header] = o->exit_count++;
    return true;
}

/* The block to which way number k leads from a block; IR_NONE: there is none. Returns of functions
 * are no ways, and calls are only if `into`. */
static uint32_t way(const struct ir_fn *fn, uint32_t block, uint32_t k, bool into)
{
    const struct ir_block *b = &fn->blocks[block];
    const struct ir_instr *last = ir_last(fn, block);
    if (last->mode == IR_BRANCH_RETURN)
        return IR_NONE;
    if (last->mode == IR_BRANCH_CALL && last->op == IR_OP_BRA && k-- == 0)
        return block + 1;
    if (last->mode == IR_BRANCH_CALL && !into)
        return IR_NONE;
    return k < b->succ_count ? fn->succ[b->succ_first + k] : IR_NONE;
}

/* Walks depth first, and takes the loops' exits first where they are known. */
static void walk_from(struct ir_orderer *o, uint32_t root, bool into)
{
    uint32_t depth = 0;
    for (uint32_t next = root;;) {
        if (next != IR_NONE && !o->seen[next]) {
            o->seen[next] = 1;
            o->stack[depth] = next;
            o->stack_exit[depth] = o->exit_head[next];
            o->stack_succ[depth++] = 0;
        }
        if (depth == 0)
            return;
        uint32_t b = o->stack[depth - 1], *exit = &o->stack_exit[depth - 1];
        if (*exit != IR_NONE) {
            next = o->exits[*exit].target;
            *exit = o->exits[*exit].next;
            continue;
        }
        next = way(o->an->fn, b, o->stack_succ[depth - 1]++, into);
        if (next == IR_NONE) {
            o->post[o->post_count++] = b;
            depth--;
        }
    }
}

/* Fills `post`, then order and priorities. */
static void walk(struct ir_orderer *o)
{
    struct ir_analysis *a = o->an->a;
    memset(o->seen, 0, o->count);
    o->post_count = 0;
    for (uint32_t b = 0; b < o->count; b++)
        a->blocks[b].priority = IR_NONE;
    for (uint32_t r = 0; r < o->root_count; r++) {
        uint32_t first = o->post_count;
        walk_from(o, o->roots[r], false);
        for (uint32_t n = first; n < o->post_count; n++)
            a->blocks[o->post[n]].function = o->roots[r];
    }
    a->order_count = 0;
    a->order[a->order_count++] = 0;
    for (uint32_t n = o->post_count; n-- > 0;)
        if (o->post[n] != 0)
            a->order[a->order_count++] = o->post[n];
    for (uint32_t n = 0; n < a->order_count; n++)
        a->blocks[a->order[n]].priority = n;
}

/* Finds the first block of the entry and of each function that is called. */
static void find_roots(struct ir_orderer *o)
{
    const struct ir_fn *fn = o->an->fn;
    uint8_t *called = o->seen + o->count;
    memset(o->seen, 0, 2 * (size_t)o->count);
    walk_from(o, 0, true);
    for (uint32_t n = 0; n < o->post_count; n++) {
        const struct ir_block *b = &fn->blocks[o->post[n]];
        for (uint32_t s = 0; ir_last(fn, o->post[n])->mode == IR_BRANCH_CALL && s < b->succ_count;
             s++)
            called[fn->succ[b->succ_first + s]] = 1;
    }
    called[0] = 1;
    for (uint32_t n = o->post_count; n-- > 0;)
        if (called[o->post[n]])
            o->roots[o->root_count++] = o->post[n];
}

/* Lists the reachable predecessors, once per edge: all, or only those in the same function
 * (`within`). */
static int find_preds(struct ir_orderer *o, bool within)
{
    const struct ir_fn *fn = o->an->fn;
    struct ir_analysis *a = o->an->a;
    for (unsigned pass = 0; pass < 2; pass++) {
        for (uint32_t n = 0; n < a->order_count; n++) {
            struct ir_list *preds = &a->blocks[a->order[n]].preds;
            preds->first = o->an->pool_count;
            for (uint32_t k = 0; pass && k < preds->count; k++)
                if (!ir_pool_push(o->an, IR_NONE))
                    return -ENOMEM;
            preds->count = 0;
        }
        for (uint32_t n = 0; n < a->order_count; n++) {
            const struct ir_block *b = &fn->blocks[a->order[n]];
            for (uint32_t s = 0;; s++) {
                uint32_t to = within              ? way(fn, a->order[n], s, false)
                              : s < b->succ_count ? fn->succ[b->succ_first + s]
                                                  : IR_NONE;
                if (to == IR_NONE)
                    break;
                struct ir_list *preds = &a->blocks[to].preds;
                if (pass)
                    a->pool[preds->first + preds->count] = a->order[n];
                preds->count++;
            }
        }
    }
    return 0;
}

/* Nearest common ancestor in the (post-)dominator tree, by Cooper, Harvey, Kennedy. `rank` rises
 * away from the root. IR_NONE is the root of the post-dominator tree. */
static bool intersect(struct ir_analyser *an, const uint32_t *rank, const uint32_t *idom,
                      uint32_t x, uint32_t y, uint32_t *out)
{
    while (x != y) {
        if (!ir_spend(an, 1))
            return false;
        if (x == IR_NONE || y == IR_NONE) {
            x = y = IR_NONE;
        } else if (rank[x] > rank[y]) {
            x = idom[x];
        } else {
            y = idom[y];
        }
    }
    *out = x;
    return true;
}

static int find_dominators(struct ir_orderer *o, uint32_t *rank, uint32_t *idom, uint8_t *done)
{
    struct ir_analysis *a = o->an->a;
    memset(done, 0, o->count);
    for (uint32_t n = 0; n < a->order_count; n++)
        rank[a->order[n]] = n;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t n = 0; n < a->order_count; n++) {
            uint32_t b = a->order[n], best = IR_NONE;
            /* The first block has no predecessor. */
            bool any = b == a->blocks[b].function;
            const struct ir_list *preds = &a->blocks[b].preds;
            for (uint32_t k = 0; k < preds->count; k++) {
                uint32_t p = a->pool[preds->first + k];
                if (!done[p] || b == a->blocks[b].function)
                    continue;
                if (!any)
                    best = p;
                else if (!intersect(o->an, rank, idom, p, best, &best))
                    return -E2BIG;
                any = true;
            }
            if (!ir_spend(o->an, preds->count + 1u))
                return -E2BIG;
            if (!done[b] || idom[b] != best) {
                idom[b] = best;
                done[b] = 1;
                changed = true;
            }
        }
    }
    for (uint32_t b = 0; b < o->count; b++)
        a->blocks[b].idom = ir_reachable(a, b) ? idom[b] : IR_NONE;
    return 0;
}

/* Whether the exit is among the block's successors: of a guarded return it is, beside the next
 * block. */
static bool leaves(const struct ir_fn *fn, uint32_t block)
{
    const struct ir_instr *last = ir_last(fn, block);
    return last->op == IR_OP_RET || last->op == IR_OP_EXIT;
}

/* Finds post-dominators, which are dominators backwards from the exits. Blocks that cannot reach an
 * exit keep IR_NONE. */
static int find_post_dominators(struct ir_orderer *o, uint32_t *rank, uint32_t *ipdom,
                                uint8_t *done)
{
    const struct ir_fn *fn = o->an->fn;
    struct ir_analysis *a = o->an->a;
    memset(done, 0, o->count);
    for (uint32_t n = 0; n < o->count; n++)
        ipdom[n] = IR_NONE;
    /* A backward walk from the exits gives the order. */
    uint32_t depth = 0, finished = 0;
    for (uint32_t n = a->order_count; n-- > 0;) {
        uint32_t root = a->order[n];
        if (!leaves(fn, root) || done[root])
            continue;
        done[root] = 1;
        o->stack[depth] = root;
        o->stack_succ[depth++] = 0;
        while (depth > 0) {
            uint32_t b = o->stack[depth - 1];
            const struct ir_list *preds = &a->blocks[b].preds;
            if (o->stack_succ[depth - 1] == preds->count) {
                o->post[finished++] = b;
                depth--;
                continue;
            }
            uint32_t p = a->pool[preds->first + o->stack_succ[depth - 1]++];
            if (!done[p]) {
                done[p] = 1;
                o->stack[depth] = p;
                o->stack_succ[depth++] = 0;
            }
        }
    }
    for (uint32_t n = 0; n < finished; n++)
        rank[o->post[n]] = finished - 1 - n;
    memset(done, 0, o->count);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t n = finished; n-- > 0;) {
            uint32_t b = o->post[n], best = IR_NONE;
            const struct ir_block *block = &fn->blocks[b];
            /* A guarded return has a second successor: the exit. */
            bool any = leaves(fn, b);
            for (uint32_t s = 0; s < block->succ_count; s++) {
                uint32_t t = fn->succ[block->succ_first + s];
                if (!done[t])
                    continue;
                if (!any)
                    best = t;
                else if (!intersect(o->an, rank, ipdom, t, best, &best))
                    return -E2BIG;
                any = true;
            }
            if (!ir_spend(o->an, block->succ_count + 1u))
                return -E2BIG;
            if (any && (!done[b] || ipdom[b] != best)) {
                ipdom[b] = best;
                done[b] = 1;
                changed = true;
            }
        }
    }
    for (uint32_t b = 0; b < o->count; b++)
        a->blocks[b].ipdom = done[b] ? ipdom[b] : IR_NONE;
    return 0;
}

static bool dominates(struct ir_analyser *an, uint32_t above, uint32_t below)
{
    const struct ir_analysis *a = an->a;
    while (below != IR_NONE && a->blocks[below].priority > a->blocks[above].priority) {
        if (!ir_spend(an, 1))
            return false;
        below = a->blocks[below].idom;
    }
    return below == above;
}

/* The header of the outermost loop known so far that contains b; b itself if there is none. */
static uint32_t outermost(struct ir_orderer *o, const uint32_t *parent, uint32_t b)
{
    uint32_t header = o->an->a->blocks[b].loop;
    if (header == IR_NONE)
        return b;
    while (parent[header] != IR_NONE && ir_spend(o->an, 1))
        header = parent[header];
    return header;
}

/* Finds loops from the inside out: headers in descending priority, with a backward walk from the
 * latches to the header that jumps over loops found already. parent[header]: header of the
 * enclosing loop. */
static int find_loops(struct ir_orderer *o, uint32_t *parent, uint32_t *work)
{
    struct ir_analysis *a = o->an->a;
    for (uint32_t b = 0; b < o->count; b++) {
        a->blocks[b].loop = IR_NONE;
        parent[b] = IR_NONE;
    }
    for (uint32_t n = a->order_count; n-- > 0;) {
        uint32_t header = a->order[n], count = 0;
        bool is_loop = false;
        const struct ir_list *preds = &a->blocks[header].preds;
        for (uint32_t k = 0; k < preds->count; k++) {
            uint32_t p = a->pool[preds->first + k];
            if (a->blocks[p].priority < n)
                continue;
            if (!dominates(o->an, header, p)) {
                a->irreducible = true;
                continue;
            }
            is_loop = true;
            uint32_t x = outermost(o, parent, p);
            if (x != header && !o->seen[x]) {
                o->seen[x] = 1;
                work[count++] = x;
            }
        }
        if (!is_loop)
            continue;
        for (uint32_t w = 0; w < count; w++) {
            uint32_t b = work[w];
            const struct ir_list *inner = &a->blocks[b].preds;
            for (uint32_t k = 0; k < inner->count; k++) {
                uint32_t p = a->pool[inner->first + k];
                uint32_t x = outermost(o, parent, p);
                if (x == header || o->seen[x] || !dominates(o->an, header, x))
                    continue;
                o->seen[x] = 1;
                work[count++] = x;
            }
            if (!ir_spend(o->an, inner->count + 1u))
                return -E2BIG;
        }
        for (uint32_t w = 0; w < count; w++) {
            uint32_t b = work[w];
            o->seen[b] = 0;
            if (a->blocks[b].loop == b)
                parent[b] = header;
            else
                a->blocks[b].loop = header;
        }
        a->blocks[header].loop = header;
    }
    for (uint32_t n = 0; n < a->order_count; n++) {
        struct ir_block_info *info = &a->blocks[a->order[n]];
        info->loop_depth = 0;
        for (uint32_t h = info->loop; h != IR_NONE; h = parent[h], info->loop_depth++)
            if (!ir_spend(o->an, 1))
                return -E2BIG;
    }
    return o->an->budget ? 0 : -E2BIG;
}

/* For each loop, lists the targets of the edges that leave it. */
static int find_exits(struct ir_orderer *o, const uint32_t *parent)
{
    const struct ir_fn *fn = o->an->fn;
    const struct ir_analysis *a = o->an->a;
    for (uint32_t n = 0; n < a->order_count; n++) {
        uint32_t b = a->order[n];
        for (uint32_t s = 0, target; (target = way(fn, b, s, false)) != IR_NONE; s++) {
            for (uint32_t h = a->blocks[b].loop; h != IR_NONE; h = parent[h]) {
                /* Is target inside loop h? It is if h is among the loops around it. */
                uint32_t t = a->blocks[target].loop;
                while (t != IR_NONE && t != h && ir_spend(o->an, 1))
                    t = parent[t];
                if (!ir_spend(o->an, 4))
                    return -E2BIG;
                if (t == h)
                    break;
                if (!push_exit(o, h, target))
                    return -ENOMEM;
            }
        }
    }
    return 0;
}

/* Whether the block ends with bar.warp.sync for the lanes in `mask`. */
static bool syncs(const struct ir_fn *fn, uint32_t block, const struct ir_src *mask)
{
    const struct ir_instr *last = ir_last(fn, block);
    return last->op == IR_OP_BARWARP && fn->blocks[block].succ_count == 1 &&
           (!mask || (last->src[0].kind == mask->kind && last->src[0].index == mask->index &&
                      last->src[0].bits == mask->bits));
}

/* Handles the blocks that wait for the same lanes as block `first`, which is the first of them.
 * What follows one of them is ordered behind the blocks of all others that are as many such waits
 * away from the beginning. */
static int hold_alike(struct ir_orderer *o, uint32_t first, uint32_t *waits)
{
    const struct ir_fn *fn = o->an->fn;
    const struct ir_analysis *a = o->an->a;
    const struct ir_src *mask = &ir_last(fn, first)->src[0];
    uint32_t count = 0;
    for (uint32_t n = 0; n < a->order_count; n++) {
        uint32_t b = a->order[n];
        const struct ir_list *preds = &a->blocks[b].preds;
        waits[b] = 0;
        for (uint32_t k = 0; k < preds->count; k++) {
            uint32_t p = a->pool[preds->first + k];
            if (a->blocks[p].priority < n)
                waits[b] = GM_MAX(waits[b], waits[p] + syncs(fn, p, mask));
        }
        if (syncs(fn, b, mask))
            o->stack[count++] = b;
        if (!ir_spend(o->an, 1u + preds->count))
            return -E2BIG;
    }
    for (uint32_t x = 0; x < count; x++)
        for (uint32_t y = 0; y < count; y++) {
            uint32_t from = o->stack[x], to = o->stack[y];
            o->seen[from] = 1;
            if (!ir_spend(o->an, 1))
                return -E2BIG;
            if (x != y && waits[from] == waits[to] && a->blocks[from].loop == a->blocks[to].loop &&
                a->blocks[from].function == a->blocks[to].function &&
                !push_exit(o, from, fn->succ[fn->blocks[to].succ_first]))
                return -ENOMEM;
        }
    return 0;
}

/* Lanes that have diverged may wait for their warp at different bar.warp.sync instructions. */
static int hold_syncs(struct ir_orderer *o, uint32_t *waits)
{
    int rc = 0;
    memset(o->seen, 0, o->count);
    for (uint32_t n = 0; n < o->an->a->order_count && rc == 0; n++) {
        uint32_t b = o->an->a->order[n];
        if (!o->seen[b] && syncs(o->an->fn, b, NULL))
            rc = hold_alike(o, b, waits);
    }
    return rc;
}

static int order_blocks(struct ir_orderer *o, uint32_t *rank, uint32_t *tree)
{
    for (uint32_t b = 0; b < o->count; b++)
        o->exit_head[b] = IR_NONE;
    find_roots(o);
    walk(o);
    if (o->an->a->order_count > IR_ANALYSE_MAX_BLOCKS)
        return -E2BIG;
    int rc = find_preds(o, true);
    if (rc == 0)
        rc = find_dominators(o, rank, tree, o->seen);
    memset(o->seen, 0, o->count);
    uint32_t *parent = tree;
    if (rc == 0)
        rc = find_loops(o, parent, o->stack);
    if (rc == 0)
        rc = find_exits(o, parent);
    if (rc == 0)
        rc = hold_syncs(o, rank);
    if (rc)
        return rc;
    walk(o);
    rc = o->root_count > 1 ? find_preds(o, false) : 0;
    return rc ? rc : find_post_dominators(o, rank, tree, o->seen);
}

int ir_order_blocks(struct ir_analyser *an)
{
    struct ir_orderer o = { .an = an, .count = an->fn->block_count };
    uint32_t n = o.count;
    uint32_t *tables = malloc((size_t)n * 8 * sizeof(*tables));
    o.seen = malloc(2 * (size_t)n);
    int rc = -ENOMEM;
    if (tables && o.seen) {
        o.stack = tables;
        o.stack_exit = tables + n;
        o.stack_succ = tables + 2 * (size_t)n;
        o.exit_head = tables + 3 * (size_t)n;
        o.post = tables + 4 * (size_t)n;
        o.roots = tables + 5 * (size_t)n;
        rc = order_blocks(&o, tables + 6 * (size_t)n, tables + 7 * (size_t)n);
    }
    free(o.exits);
    free(o.seen);
    free(tables);
    return rc;
}
