/*
 * Where second barriers stand. Between a barrier and its second one a thread is "open". The code is
 * divided into what is reached open and what is not, by instruction:
 *
 *   - The beginning, writes of shared memory, what may poll and all barriers are not open, nor is
 *     what comes behind them before the next barrier. All else is open, however it is reached:
 *     straight on, by jumps back, from several barriers.
 *   - The second barrier stands where open code goes on to code that is not, on the way there: so a
 *     thread that has passed a barrier comes to one second barrier before it comes to another
 *     barrier, or is at its end before.
 *   - At a branch that could lead to several second barriers, the lanes of a warp might wait at
 *     different ones. So what is behind the branch is not open either, and the barrier stands
 *     before it. That is repeated until each open instruction leads to one second barrier at most.
 *     Where a branch leads to different barriers of the kernel's, or to one and to the end, lanes
 *     do not part, or they would wait at those.
 */
#include "device/soft/ir/second.h"

#define STEPS_MOST UINT64_C(1 << 24) /* instructions looked at; then no barrier is added */

#define SEVERAL (IR_NONE - 1)

struct ir_seconds {
    struct ir_raw_fn *raw;
    const uint8_t *marks;
    bool *open;      /* by instruction: a thread that comes to it is open */
    uint32_t *place; /* by open instruction: before which instruction the second barrier stands to
                        which it leads, or the branch of `together` behind which they stand;
                        IR_NONE: it leads to none; SEVERAL */
    bool *together;  /* by instruction: a branch at which lanes do not part */
    bool *seen;      /* by instruction, in a search or a round */
    uint32_t *stack;
    uint64_t steps;
};

/* The k-th instruction that may come behind instruction n (instr_count: the end); IR_NONE: there
 * are fewer. */
static uint32_t next_of(const struct ir_raw_fn *raw, uint32_t n, uint32_t k)
{
    uint32_t count;
    const uint32_t *targets = ir_raw_targets(raw, &raw->instrs[n], &count);
    if (k < count)
        return raw->labels[targets[k]];
    return k == count && ir_falls_through(&raw->instrs[n]) ? n + 1 : IR_NONE;
}

/* --- what is open ----------------------------------------------------------------------------- */

static void close_one(struct ir_seconds *s, uint32_t n, uint32_t *top)
{
    if (n < s->raw->instr_count && s->open[n]) {
        s->open[n] = false;
        s->stack[(*top)++] = n;
    }
}

/* Instruction n is not open, nor is what comes behind it up to the next barriers. */
static void close_from(struct ir_seconds *s, uint32_t n)
{
    uint32_t top = 0, to;
    close_one(s, n, &top);
    while (top > 0) {
        uint32_t at = s->stack[--top];
        s->steps++;
        for (uint32_t k = 0;
             !(s->marks[at] & IR_MARK_BARRIER) && (to = next_of(s->raw, at, k)) != IR_NONE; k++)
            close_one(s, to, &top);
    }
}

static uint32_t place_at(const struct ir_seconds *s, uint32_t n)
{
    return s->open[n] ? s->place[n] : n;
}

/* As long as `place` is the next barrier of the kernel's. */
static uint32_t barrier_at(const struct ir_seconds *s, uint32_t n)
{
    return s->marks[n] & IR_MARK_BARRIER ? n : s->place[n];
}

/* What of the instructions behind instruction n is. */
static uint32_t place_behind(const struct ir_seconds *s, uint32_t n,
                             uint32_t (*at)(const struct ir_seconds *s, uint32_t n))
{
    uint32_t place = IR_NONE, to;
    for (uint32_t k = 0; (to = next_of(s->raw, n, k)) != IR_NONE; k++) {
        uint32_t other = to < s->raw->instr_count ? at(s, to) : IR_NONE;
        if (other != IR_NONE && other != place)
            place = place == IR_NONE ? other : SEVERAL;
    }
    return place == SEVERAL && s->together[n] ? n : place;
}

static void find_places(struct ir_seconds *s,
                        uint32_t (*at)(const struct ir_seconds *s, uint32_t n))
{
    memset(s->place, 0xff, s->raw->instr_count * sizeof(*s->place));
    for (bool changed = true; changed && s->steps <= STEPS_MOST;) {
        changed = false;
        for (uint32_t n = s->raw->instr_count; n-- > 0; s->steps++) {
            uint32_t place = place_behind(s, n, at);
            changed |= place != s->place[n];
            s->place[n] = place;
        }
    }
}

static void find_together(struct ir_seconds *s)
{
    const struct ir_raw_fn *raw = s->raw;
    find_places(s, barrier_at);
    for (uint32_t n = 0; n < raw->instr_count; n++) {
        uint32_t next[2] = { next_of(raw, n, 0), next_of(raw, n, 1) }, barrier[2];
        for (unsigned k = 0; k < 2; k++)
            barrier[k] = next[k] < raw->instr_count ? barrier_at(s, next[k]) : IR_NONE;
        s->together[n] = raw->instrs[n].op == IR_OP_BRA && next[1] != IR_NONE &&
                         barrier[0] != barrier[1] && barrier[0] != SEVERAL && barrier[1] != SEVERAL;
    }
}

/* Whether ways to different second barriers part at instruction n, not only further on. An indexed
 * branch cannot be led to a second barrier, as others may use its list. */
static bool parts(const struct ir_seconds *s, uint32_t n)
{
    const bool indexed = s->raw->instrs[n].op == IR_OP_BRX;
    uint32_t to, place;
    for (uint32_t k = 0; (to = next_of(s->raw, n, k)) != IR_NONE; k++) {
        place = to < s->raw->instr_count ? place_at(s, to) : IR_NONE;
        if (place != IR_NONE && place != SEVERAL &&
            (s->place[n] == SEVERAL || (indexed && place == to)))
            return true;
    }
    return false;
}

/* False: it would take too long. */
static bool divide(struct ir_seconds *s)
{
    const uint32_t count = s->raw->instr_count;
    find_together(s);
    memset(s->open, true, count);
    close_from(s, 0);
    for (uint32_t n = 0; n < count; n++)
        if (s->marks[n] & (IR_MARK_BARRIER | IR_MARK_WRITE | IR_MARK_POLL))
            close_from(s, n);
    for (bool changed = true; changed && s->steps <= STEPS_MOST;) {
        changed = false;
        find_places(s, place_at);
        for (uint32_t n = 0; n < count; n++)
            s->seen[n] = s->open[n] && parts(s, n);
        for (uint32_t n = 0; n < count; n++)
            if (s->seen[n]) {
                close_from(s, n);
                changed = true;
            }
    }
    return s->steps <= STEPS_MOST;
}

/* Whether a second barrier stands between a read and a write of shared memory. */
static bool gains(struct ir_seconds *s)
{
    uint32_t top = 0, to;
    memset(s->seen, false, s->raw->instr_count);
    for (uint32_t n = 0; n < s->raw->instr_count; n++) {
        uint32_t place = s->open[n] && s->marks[n] & IR_MARK_READ ? s->place[n] : IR_NONE;
        if (place != IR_NONE && !s->seen[place]) {
            s->seen[place] = true;
            s->stack[top++] = place;
        }
    }
    while (top > 0) {
        uint32_t at = s->stack[--top];
        if (s->marks[at] & IR_MARK_WRITE)
            return true;
        for (uint32_t k = 0;
             !(s->marks[at] & IR_MARK_BARRIER) && (to = next_of(s->raw, at, k)) != IR_NONE; k++)
            if (to < s->raw->instr_count && !s->seen[to]) {
                s->seen[to] = true;
                s->stack[top++] = to;
            }
    }
    return false;
}

/* --- the code with second barriers ------------------------------------------------------------ */

/* How an instruction that is not open is reached. */
enum ir_entered {
    ENTERED_OPEN = 1, /* by threads that are open */
    ENTERED_PAST = 2, /* straight on by threads that are not */
};

/* Bits of enum ir_entered, by instruction. */
static void find_entered(const struct ir_seconds *s, uint8_t *entered)
{
    uint32_t to;
    entered[0] = ENTERED_PAST;
    for (uint32_t n = 0; n < s->raw->instr_count; n++) {
        bool open = s->open[n] || s->marks[n] & IR_MARK_BARRIER;
        for (uint32_t k = 0; (to = next_of(s->raw, n, k)) != IR_NONE; k++)
            if (to < s->raw->instr_count && !s->open[to] && (open || to == n + 1))
                entered[to] |= open ? ENTERED_OPEN : ENTERED_PAST;
    }
}

/* Before instruction n, where a second barrier stands, threads that are not open go past it, and
 * jumps of those that are go to it, by a label of its own. */
static bool turn_jumps(struct ir_seconds *s, const uint8_t *entered)
{
    struct ir_raw_fn *raw = s->raw;
    uint32_t *doors = s->place; /* by instruction; the places are known no longer */
    memset(doors, 0xff, raw->instr_count * sizeof(*doors));
    for (uint32_t n = 0; n < raw->instr_count; n++) {
        struct ir_instr *i = &raw->instrs[n];
        uint32_t to = i->op == IR_OP_BRA ? raw->labels[i->target] : raw->instr_count;
        if (!s->open[n] || to == raw->instr_count || !(entered[to] & ENTERED_OPEN))
            continue;
        if (doors[to] == IR_NONE) {
            uint32_t *label = IR_PUSH(raw->labels, raw->label_count, raw->label_cap);
            if (!label)
                return false;
            *label = to;
            doors[to] = raw->label_count - 1;
        }
        i->target = doors[to];
    }
    return true;
}

/* Labels below `doors` stand behind the second barriers, the others before them. at: where each
 * instruction comes to stand. */
static void move_labels(struct ir_raw_fn *raw, uint32_t doors, const uint32_t *at)
{
    for (uint32_t l = 0; l < raw->label_count; l++)
        raw->labels[l] = at[raw->labels[l]] - (l >= doors);
}

static bool emit(struct ir_seconds *s, const struct ir_instr *barrier, const uint8_t *entered,
                 struct ir_instr *to)
{
    struct ir_raw_fn *raw = s->raw;
    for (uint32_t n = 0; n < raw->instr_count; n++) {
        const struct ir_instr *i = &raw->instrs[n];
        if (entered[n] == (ENTERED_OPEN | ENTERED_PAST)) {
            uint32_t *label = IR_PUSH(raw->labels, raw->label_count, raw->label_cap);
            if (!label)
                return false;
            *label = s->stack[n];
            ir_instr_init(to, IR_OP_BRA, i->line, i->column);
            to++->target = raw->label_count - 1;
        }
        if (entered[n] & ENTERED_OPEN) {
            *to = *barrier;
            to->line = i->line;
            to->column = i->column;
            to++->flags |= IR_F_SECOND;
        }
        *to++ = *i;
    }
    return true;
}

static bool add_barriers(struct ir_seconds *s, uint8_t *entered)
{
    struct ir_raw_fn *raw = s->raw;
    const uint32_t doors = raw->label_count;
    const struct ir_instr *barrier = NULL;
    uint32_t count = 0;
    find_entered(s, entered);
    for (uint32_t n = 0; n < raw->instr_count; n++) {
        if (entered[n] & ENTERED_OPEN)
            count += entered[n] & ENTERED_PAST ? 2 : 1;
        s->stack[n] = count++;
        if (s->marks[n] & IR_MARK_BARRIER)
            barrier = &raw->instrs[n];
    }
    s->stack[raw->instr_count] = count;
    struct ir_instr *instrs = calloc(count, sizeof(*instrs));
    if (!instrs || !turn_jumps(s, entered)) {
        free(instrs);
        return false;
    }
    move_labels(raw, doors, s->stack);
    if (!emit(s, barrier, entered, instrs)) {
        free(instrs);
        return false;
    }
    free(raw->instrs);
    raw->instrs = instrs;
    raw->instr_count = raw->instr_cap = count;
    return true;
}

bool ir_add_seconds(struct ir_raw_fn *raw, const uint8_t *marks)
{
    const size_t count = raw->instr_count;
    struct ir_seconds s = { .raw = raw, .marks = marks };
    uint8_t *entered = calloc(count, 1);
    s.open = calloc(count, sizeof(*s.open));
    s.place = calloc(count, sizeof(*s.place));
    s.together = calloc(count, sizeof(*s.together));
    s.seen = calloc(count, sizeof(*s.seen));
    s.stack = calloc(count + 1, sizeof(*s.stack));
    bool right = entered && s.open && s.place && s.together && s.seen && s.stack;
    if (right && divide(&s) && gains(&s))
        right = add_barriers(&s, entered);
    free(entered);
    free(s.open);
    free(s.place);
    free(s.together);
    free(s.seen);
    free(s.stack);
    return right;
}
