/*
 * Shared memory as stencils and scans use it: `if (t >= k) x = s[t - k]`, with the addresses that
 * compilers write for it. Lanes that do not run have addresses outside of the array, in front of
 * shared memory where the array comes first. Lanes of a warp also store to one place.
 */
#include "random_maker.h"

/* One exchange: elements of `size` bytes, in structures of `stride`. */
struct exchange {
    unsigned size, stride, offset, vector;
    int distance; /* to the neighbour, in threads */
};

/* Makes an operand "[register+offset]" that names the element `distance` threads away. */
static void address(struct maker *m, const struct exchange *e, unsigned form, int distance,
                    char *out, size_t n)
{
    int away = distance * (int)e->stride + (int)e->offset, inside = (int)e->offset;
    switch (form == 5 && m->deep ? 1 : form) {
    case 0: /* nvcc: one address, displacements */
        fprintf(
            m->out,
            "\tmul.lo.s32 %%t0, %%me, %u;\n\tmov.u32 %%t1, near;\n\tadd.s32 %%t0, %%t1, %%t0;\n",
            e->stride);
        snprintf(out, n, "[%%t0+%d]", away);
        break;
    case 1: /* nvcc: the index is computed */
        fprintf(m->out,
                "\tadd.s32 %%t0, %%me, %d;\n\tmul.lo.s32 %%t0, %%t0, %u;\n\tmov.u32 %%t1, near;\n"
                "\tadd.s32 %%t0, %%t1, %%t0;\n",
                distance, e->stride);
        snprintf(out, n, "[%%t0+%d]", inside);
        break;
    case 2:
        fprintf(m->out,
                "\tadd.s32 %%t0, %%me, %d;\n\tmov.u32 %%t1, near;\n\tmad.lo.s32 %%t0, %%t0, %u, "
                "%%t1;\n",
                distance, e->stride);
        snprintf(out, n, "[%%t0+%d]", inside);
        break;
    case 3: /* clang: 64 bits */
        fprintf(m->out,
                "\tadd.s32 %%t0, %%me, %d;\n\tmul.wide.s32 %%a0, %%t0, %u;\n\tmov.u64 %%a1, near;\n"
                "\tadd.s64 %%a0, %%a1, %%a0;\n",
                distance, e->stride);
        snprintf(out, n, "[%%a0+%d]", inside);
        break;
    case 4:
        fprintf(
            m->out,
            "\tmul.wide.u32 %%a0, %%me, %u;\n\tmov.u64 %%a1, near;\n\tadd.s64 %%a0, %%a1, %%a0;\n",
            e->stride);
        snprintf(out, n, "[%%a0+%d]", away);
        break;
    case 5: /* rows and columns */
        fprintf(m->out,
                "\tmov.u32 %%t0, %%tid.x;\n\tadd.s32 %%t0, %%t0, %d;\n\tmov.u32 %%t1, %%tid.y;\n"
                "\tmad.lo.s32 %%t0, %%t1, %%width, %%t0;\n\tmul.lo.s32 %%t0, %%t0, %u;\n\tmov.u32 "
                "%%t1, near;\n"
                "\tadd.s32 %%t0, %%t0, %%t1;\n",
                distance, e->stride);
        snprintf(out, n, "[%%t0+%d]", inside);
        break;
    default: /* a shift, and the sum the other way round */
        fprintf(m->out,
                "\tmov.u32 %%t1, near;\n\tshl.b32 %%t0, %%me, %u;\n\tadd.s32 %%t0, %%t0, %d;\n"
                "\tadd.s32 %%t0, %%t0, %%t1;\n",
                (unsigned)__builtin_ctz(e->stride), away);
        snprintf(out, n, "[%%t0]");
        break;
    }
}

static void values(const struct exchange *e, unsigned first, char *out, size_t n)
{
    if (e->vector == 4)
        snprintf(out, n, "{%%r%u, %%r%u, %%r%u, %%r%u}", first % INTS, (first + 1) % INTS,
                 (first + 2) % INTS, (first + 3) % INTS);
    else if (e->vector == 2)
        snprintf(out, n, "{%%r%u, %%r%u}", first % INTS, (first + 1) % INTS);
    else
        snprintf(out, n, "%%%s%u", e->size == 8 ? "rd" : "r",
                 first % (e->size == 8 ? LONGS : INTS));
}

static void access(struct maker *m, const struct exchange *e, bool store, int distance,
                   unsigned reg)
{
    static const char *const loads[] = { "s8", "u8", "s16", "u16", "b32", "b64" };
    char operand[48], list[64], type[8];
    unsigned k = e->vector > 1 ? 4 : e->size == 8 ? 5 : 2 * (unsigned)__builtin_ctz(e->size);
    bool guarded = distance != 0, branch = guarded && pick(m, 2);
    unsigned label = m->labels++;
    snprintf(type, sizeof(type), "%s", loads[k + (k < 4 ? pick(m, 2) : 0)]);
    values(e, reg, list, sizeof(list));
    if (branch)
        fprintf(m->out, "\t@!%%q bra L%u_far;\n", label);
    address(m, e, pick(m, 7), distance, operand, sizeof(operand));
    fprintf(m->out, "\t%s%s%s.shared%s.%s ", guarded && !branch ? "@%q " : "", store ? "st" : "ld",
            pick(m, 3) ? "" : ".volatile",
            e->vector == 4   ? ".v4"
            : e->vector == 2 ? ".v2"
                             : "",
            type);
    if (store)
        fprintf(m->out, "%s, %s;\n", operand, list);
    else
        fprintf(m->out, "%s, %s;\n", list, operand);
    if (branch)
        fprintf(m->out, "L%u_far:\n", label);
}

void random_neighbour_op(struct maker *m)
{
    static const struct {
        unsigned size, vector;
    } shapes[] = {
        { 4, 1 }, { 4, 1 }, { 4, 1 }, { 1, 1 }, { 2, 1 }, { 8, 1 }, { 8, 2 }, { 16, 4 }
    };
    unsigned k = pick(m, GM_ARRAY_LEN(shapes)), apart = 1u << (pick(m, 3) == 0);
    unsigned distance = 1 + pick(m, pick(m, 2) ? 4 : 40);
    struct exchange e = { .size = shapes[k].size, .vector = shapes[k].vector };
    e.stride = e.size * apart;
    e.offset = e.size * pick(m, apart);
    e.distance = pick(m, 3) ? -(int)distance : (int)distance;
    fprintf(m->out, "\tbar.sync 0;\n");
    access(m, &e, true, 0, pick(m, INTS));
    fprintf(m->out, "\tbar.sync 0;\n");
    if (e.distance < 0)
        fprintf(m->out, "\tsetp.ge.u32 %%q, %%me, %u;\n", distance);
    else
        fprintf(m->out, "\tadd.s32 %%t0, %%me, %u;\n\tsetp.lt.u32 %%q, %%t0, %%all;\n", distance);
    if (pick(m, 3) == 0)
        fprintf(m->out, "\tand.pred %%q, %%q, %%p%u;\n", pick(m, PREDS));
    if (pick(m, 2)) {
        access(m, &e, false, e.distance, pick(m, INTS));
    } else {
        access(m, &e, true, e.distance, pick(m, INTS));
        fprintf(m->out, "\tbar.sync 0;\n");
        access(m, &e, false, 0, pick(m, INTS));
    }
    fprintf(m->out, "\tbar.sync 0;\n");
}

/* Makes %t0 an index that is made of the thread number's bits, another one for each thread if
 * `distinct`. */
static void permuted_index(struct maker *m, bool distinct)
{
    unsigned bit = pick(m, 6), low = (1u << bit) - 1;
    switch (pick(m, distinct ? 3 : 6)) {
    case 0:
        fprintf(m->out, "\txor.b32 %%t0, %%me, %u;\n", 1 + pick(m, 40));
        break;
    case 1: /* a butterfly's */
        fprintf(m->out,
                "\tand.b32 %%t0, %%me, %u;\n\tshl.b32 %%t1, %%me, 1;\n"
                "\tsub.s32 %%t0, %%t1, %%t0;\n",
                low);
        if (pick(m, 2))
            fprintf(m->out, "\tadd.s32 %%t0, %%t0, %u;\n", low + 1);
        break;
    case 2:
        fprintf(m->out,
                "\tshl.b32 %%t0, %%me, 1;\n\tor.b32 %%t0, %%t0, 1;\n\txor.b32 %%t0, %%t0, %u;\n",
                2 * low);
        break;
    case 3:
        fprintf(m->out, "\tshr.%c32 %%t0, %%me, %u;\n", "us"[pick(m, 2)], bit);
        break;
    case 4:
        fprintf(m->out, "\tand.b32 %%t0, %%me, %u;\n", pick(m, 64));
        break;
    default:
        fprintf(m->out, "\tshr.u32 %%t0, %%me, %u;\n\tor.b32 %%t0, %%t0, %u;\n", bit / 2,
                pick(m, 32));
        break;
    }
}

/* An access of the element with that index, where there is one. */
static void permuted_access(struct maker *m, unsigned size, bool store, bool own, unsigned reg)
{
    char operand[48], value[16];
    unsigned offset = own ? 0 : size * pick(m, 2);
    if (own)
        fprintf(m->out, "\tmov.u32 %%t0, %%me;\n");
    else
        permuted_index(m, store);
    fprintf(m->out, "\tadd.s32 %%t1, %%all, %%all;\n\tsub.s32 %%t1, %%t1, 1;\n"
                    "\tsetp.lt.u32 %%q, %%t0, %%t1;\n");
    if (!own && pick(m, 2))
        fprintf(m->out, "\tand.pred %%q, %%q, %%p%u;\n", pick(m, PREDS));
    bool wide = pick(m, 2);
    if (!wide)
        fprintf(m->out,
                "\tmul.lo.s32 %%t0, %%t0, %u;\n\tmov.u32 %%t1, near;\n\tadd.s32 %%t0, %%t0, "
                "%%t1;\n",
                size);
    else
        fprintf(m->out,
                "\tmul.wide.u32 %%a0, %%t0, %u;\n\tmov.u64 %%a1, near;\n\tadd.s64 %%a0, %%a1, "
                "%%a0;\n",
                size);
    snprintf(operand, sizeof(operand), "[%%%s+%u]", wide ? "a0" : "t0", offset);
    snprintf(value, sizeof(value), "%%%s%u", size == 8 ? "rd" : "r",
             reg % (size == 8 ? LONGS : INTS));
    if (store)
        fprintf(m->out, "\t@%%q st.shared.b%u %s, %s;\n", 8 * size, operand, value);
    else
        fprintf(m->out, "\t@%%q ld.shared.%c%u %s, %s;\n", size < 4 ? 'u' : 'b', 8 * size, value,
                operand);
}

void random_permuted_op(struct maker *m)
{
    unsigned size = 1u << (pick(m, 2) ? 2 : pick(m, 4)), half = pick(m, 2);
    fprintf(m->out, "\tbar.sync 0;\n");
    for (unsigned k = 0; k < 2; k++) { /* both elements of each thread have a value */
        fprintf(m->out,
                "\tmov.u32 %%t0, %%me;\n\t%s\n\tmul.lo.s32 %%t0, %%t0, %u;\n\tmov.u32 %%t1, near;\n"
                "\tadd.s32 %%t0, %%t0, %%t1;\n\tst.shared.b%u [%%t0], %%%s%u;\n",
                k ? "add.s32 %t0, %t0, %all;" : "", size, 8 * size, size == 8 ? "rd" : "r",
                pick(m, size == 8 ? LONGS : INTS));
    }
    fprintf(m->out, "\tbar.sync 0;\n");
    if (half) {
        permuted_access(m, size, true, false, pick(m, INTS));
        fprintf(m->out, "\tbar.sync 0;\n");
    }
    permuted_access(m, size, false, false, pick(m, INTS));
    permuted_access(m, size, false, half != 0, pick(m, INTS));
    fprintf(m->out, "\tbar.sync 0;\n");
}

/* Makes %t0 the address of an element that belongs to the lane's warp: the same one for several
 * lanes. %laneid also keeps the compiler from taking parts of a warp one after the other, which
 * would store in another order. */
static void meeting_place(struct maker *m, unsigned size)
{
    unsigned bit = pick(m, 6);
    fprintf(m->out, "\tmov.u32 %%t0, %%laneid;\n\tsub.s32 %%t1, %%me, %%t0;\n");
    switch (pick(m, 5)) {
    case 0:
        fprintf(m->out, "\tmov.u32 %%t0, %u;\n", pick(m, 32));
        break;
    case 1:
        fprintf(m->out, "\tshr.u32 %%t0, %%t0, %u;\n", bit);
        break;
    case 2:
        fprintf(m->out, "\tand.b32 %%t0, %%t0, %u;\n", pick(m, 32));
        break;
    case 3:
        fprintf(m->out, "\tmul.lo.s32 %%t0, %%t0, %u;\n\tbfe.u32 %%t0, %%t0, %u, 5;\n",
                2 * pick(m, 16) + 1, pick(m, 4));
        break;
    default:
        fprintf(m->out, "\tand.b32 %%t0, %%r%u, %u;\n", pick(m, INTS), pick(m, 32));
        break;
    }
    fprintf(m->out,
            "\tadd.s32 %%t0, %%t0, %%t1;\n\tsub.s32 %%t1, %%all, 1;\n\tmin.u32 %%t0, %%t0, %%t1;\n"
            "\tmul.lo.s32 %%t0, %%t0, %u;\n\tmov.u32 %%t1, near;\n\tadd.s32 %%t0, %%t0, %%t1;\n",
            size);
}

static void meeting_access(struct maker *m, const struct exchange *e)
{
    static const char *const atomics[] = { "add.u32", "exch.b32", "inc.u32", "min.s32", "xor.b32" };
    static const char *const stores[] = { "b8", "b16", "b32", "b64" };
    unsigned label = m->labels++, way = pick(m, 3);
    char list[64];
    fprintf(m->out, "\tand.pred %%q, %%p%u, %%p%u;\n", pick(m, PREDS), pick(m, PREDS));
    meeting_place(m, e->size);
    if (way == 1)
        fprintf(m->out, "\t@!%%q bra L%u_apart;\n", label);
    fprintf(m->out, "\t%s", way == 2 ? "@%q " : "");
    values(e, pick(m, INTS), list, sizeof(list));
    if (e->size == 4 && pick(m, 2))
        fprintf(m->out, "atom.shared.%s %%r%u, [%%t0], %s;\n", PICK(m, atomics), pick(m, INTS),
                list);
    else
        fprintf(m->out, "st.shared%s.%s [%%t0], %s;\n",
                e->vector == 4   ? ".v4"
                : e->vector == 2 ? ".v2"
                                 : "",
                stores[e->vector > 1 ? 2 : __builtin_ctz(e->size)], list);
    if (way == 1)
        fprintf(m->out, "L%u_apart:\n", label);
}

void random_meeting_op(struct maker *m)
{
    static const struct exchange shapes[] = {
        { .size = 4, .vector = 1 }, { .size = 4, .vector = 1 }, { .size = 1, .vector = 1 },
        { .size = 2, .vector = 1 }, { .size = 8, .vector = 1 }, { .size = 8, .vector = 2 },
        { .size = 16, .vector = 4 }
    };
    struct exchange e = PICK(m, shapes);
    e.stride = e.size;
    fprintf(m->out, "\tbar.sync 0;\n");
    access(m, &e, true, 0, pick(m, INTS));
    fprintf(m->out, "\tbar.sync 0;\n");
    meeting_access(m, &e);
    fprintf(m->out, "\tbar.sync 0;\n");
    access(m, &e, false, 0, pick(m, INTS));
    fprintf(m->out, "\tbar.sync 0;\n");
}
