/*
 * Part of vector.c: loads and stores of 32- and 64-bit elements in global and shared memory.
 *
 * Three patterns are fast: all running lanes at one address; consecutive elements (or vectors of
 * elements) for a run of lanes; and any other addresses, one by one. Whatever is wrong with an
 * address (window, alignment) is left to the slow handlers, which find the lane and report it.
 */

enum pattern { ONE_ADDRESS, CONSECUTIVE, SCATTERED };

struct span {
    u64 at[SOFT_WARP];
    enum pattern pattern;
    u32 first, lanes; /* the consecutive lanes that run */
};

static inline void span_find(struct span *s, const struct interp_run *r,
                             const struct interp_access *a, u64 step, bool shared)
{
    u64 displacement = a->displacement;
    if (a->symbol != IR_NONE)
        displacement += r->block->globals[a->symbol];
    if (a->base == INTERP_NOWHERE) {
        FOR_LANES(l)
        s->at[l] = displacement;
    } else if (a->base_width == INTERP_W64) {
        const u64 *base = interp_operand(r, a->base);
        FOR_LANES(l)
        s->at[l] = base[l] + displacement;
    } else {
        const u32 *base = interp_operand(r, a->base);
        FOR_LANES(l)
        s->at[l] = base[l] + (u32)displacement;
    }
    if (shared) {
        u64 mask = r->block->shared_mask;
        FOR_LANES(l)
        s->at[l] &= mask;
    }
    s->first = (u32)__builtin_ctz(r->mask);
    s->lanes = (u32)__builtin_popcount(r->mask);
    u64 start = s->at[s->first], moved = 0, stepped = 0;
    u64 origin = start - s->first * step;
    FOR_LANES(l)
    {
        u64 m = (u64)(s64)r->lanes[l];
        moved |= (s->at[l] - start) & m;
        stepped |= (s->at[l] - origin - (u64)l * step) & m;
    }
    bool run = (r->mask >> s->first) == (s->lanes == 32 ? ~0u : (1u << s->lanes) - 1);
    s->pattern = moved == 0 ? ONE_ADDRESS : stepped == 0 && run ? CONSECUTIVE : SCATTERED;
}

/* The host's address of `bytes` bytes at `at`; NULL: not all of them are accessible, or they are
 * not aligned to `align`. */
static inline u8 *span_reach(const struct interp_run *r, u64 at, u64 bytes, u64 align, bool shared)
{
    const struct soft_block *b = r->block;
    if (GM_UNLIKELY(at & (align - 1)))
        return NULL;
    if (shared)
        return bytes <= b->shared_mask + 1 - at ? b->shared + at : NULL;
    if (GM_UNLIKELY(at - b->window_base > b->window_mask - (bytes - 1)))
        return NULL;
    return (u8 *)(uintptr_t)at;
}

#define DEFINE_LOAD(name, T, is_shared)                                                            \
    HOT const struct interp_insn *run_load_##name(const struct interp_insn *i,                     \
                                                  struct interp_run *r)                            \
    {                                                                                              \
        const struct interp_access *a = &r->program->accesses[i->extra];                           \
        struct span s;                                                                             \
        u32 count = a->count;                                                                      \
        u64 step = count * sizeof(T);                                                              \
        span_find(&s, r, a, step, is_shared);                                                      \
        if (s.pattern == ONE_ADDRESS) {                                                            \
            const u8 *p = span_reach(r, s.at[s.first], step, step, is_shared);                     \
            if (GM_UNLIKELY(!p))                                                                   \
                return interp_load_slow(i, r);                                                     \
            for (u32 k = 0; k < count; k++) {                                                      \
                if (a->value[k] == INTERP_NOWHERE)                                                 \
                    continue;                                                                      \
                T v = ((const T *)(const void *)p)[k];                                             \
                T *d = interp_operand(r, a->value[k]);                                             \
                if (GM_LIKELY(r->full)) {                                                          \
                    FOR_LANES(l)                                                                   \
                    d[l] = v;                                                                      \
                } else {                                                                           \
                    FOR_LANES(l)                                                                   \
                    d[l] = r->lanes[l] ? v : d[l];                                                 \
                }                                                                                  \
            }                                                                                      \
            return i + 1;                                                                          \
        }                                                                                          \
        if (s.pattern == CONSECUTIVE) {                                                            \
            const u8 *p = span_reach(r, s.at[s.first], s.lanes * step, step, is_shared);           \
            if (GM_UNLIKELY(!p))                                                                   \
                return interp_load_slow(i, r);                                                     \
            for (u32 k = 0; k < count; k++) {                                                      \
                if (a->value[k] == INTERP_NOWHERE)                                                 \
                    continue;                                                                      \
                const T *from = (const T *)(const void *)p + k;                                    \
                T *d = (T *)interp_operand(r, a->value[k]) + s.first;                              \
                if (count == 1)                                                                    \
                    memcpy(d, from, s.lanes * sizeof(T));                                          \
                else                                                                               \
                    for (u32 l = 0; l < s.lanes; l++)                                              \
                        d[l] = from[l * count];                                                    \
            }                                                                                      \
            return i + 1;                                                                          \
        }                                                                                          \
        for (u32 left = r->mask; left; left &= left - 1) {                                         \
            u32 l = (u32)__builtin_ctz(left);                                                      \
            const u8 *p = span_reach(r, s.at[l], step, step, is_shared);                           \
            if (GM_UNLIKELY(!p))                                                                   \
                return interp_load_lanes(i, r, left);                                              \
            for (u32 k = 0; k < count; k++)                                                        \
                if (a->value[k] != INTERP_NOWHERE)                                                 \
                    ((T *)interp_operand(r, a->value[k]))[l] = ((const T *)(const void *)p)[k];    \
        }                                                                                          \
        return i + 1;                                                                              \
    }

#define DEFINE_STORE(name, T, is_shared)                                                           \
    HOT const struct interp_insn *run_store_##name(const struct interp_insn *i,                    \
                                                   struct interp_run *r)                           \
    {                                                                                              \
        const struct interp_access *a = &r->program->accesses[i->extra];                           \
        struct span s;                                                                             \
        u32 count = a->count;                                                                      \
        u64 step = count * sizeof(T);                                                              \
        span_find(&s, r, a, step, is_shared);                                                      \
        if (s.pattern == CONSECUTIVE) {                                                            \
            u8 *p = span_reach(r, s.at[s.first], s.lanes * step, step, is_shared);                 \
            if (GM_UNLIKELY(!p))                                                                   \
                return interp_store_slow(i, r);                                                    \
            for (u32 k = 0; k < count; k++) {                                                      \
                T *to = (T *)(void *)p + k;                                                        \
                const T *v = (const T *)interp_operand(r, a->value[k]) + s.first;                  \
                if (count == 1)                                                                    \
                    memcpy(to, v, s.lanes * sizeof(T));                                            \
                else                                                                               \
                    for (u32 l = 0; l < s.lanes; l++)                                              \
                        to[l * count] = v[l];                                                      \
            }                                                                                      \
            return i + 1;                                                                          \
        }                                                                                          \
        u32 left = r->mask, turn = ir_store_group((u32)step) - 1;                                  \
        if (s.pattern == ONE_ADDRESS)                                                              \
            left = 1u << ir_store_lane(left, (u32)step);                                           \
        for (left = ir_store_order(left, turn); left; left &= left - 1) {                          \
            u32 l = (u32)__builtin_ctz(left) ^ turn;                                               \
            u8 *p = span_reach(r, s.at[l], step, step, is_shared);                                 \
            if (GM_UNLIKELY(!p))                                                                   \
                return interp_store_slow(i, r);                                                    \
            for (u32 k = 0; k < count; k++)                                                        \
                ((T *)(void *)p)[k] = ((const T *)interp_operand(r, a->value[k]))[l];              \
        }                                                                                          \
        return i + 1;                                                                              \
    }

DEFINE_LOAD(global32, u32, false)
DEFINE_LOAD(global64, u64, false)
DEFINE_LOAD(shared32, u32, true)
DEFINE_LOAD(shared64, u64, true)
DEFINE_STORE(global32, u32, false)
DEFINE_STORE(global64, u64, false)
DEFINE_STORE(shared32, u32, true)
DEFINE_STORE(shared64, u64, true)
