/*
 * Making random kernels; see random_ptx.h.
 */
#include "random_ptx.h"

#include <stdlib.h>
#include <string.h>

#include "random_maker.h"

/* Whether devices differ in the result: integers divided by zero, products and sums that may become
 * one instruction, approximations, %warpid; sums with an end, which ptxas 13.0 reorders, and field
 * lengths over 31, which it takes modulo 32 if they are constant. */
static bool is_open(const char *op)
{
    bool sums =
        strncmp(op, "add.", 4) == 0 || strncmp(op, "sub.", 4) == 0 || strncmp(op, "mul.", 4) == 0;
    if (strstr(op, "%warpid") || strstr(op, ".approx") || strstr(op, ".sat.s32") ||
        strncmp(op, "rem.", 4) == 0 || strncmp(op, "div.u", 5) == 0 || strncmp(op, "div.s", 5) == 0)
        return true;
    return sums && (strstr(op, ".f") || strstr(op, ".bf")) && !strstr(op, ".r");
}

const char *random_pick_op(struct maker *m, const char *const *ops, unsigned count)
{
    const char *op;
    do {
        op = ops[pick(m, count)];
    } while (m->portable && is_open(op));
    return op;
}

static const char *int_source(struct maker *m, char *buffer, size_t n)
{
    static const int special[] = {
        0, 1, -1, 2, 31, 32, 33, 255, 65535, 0x7fffffff, (int)0x80000000, 0x12345678
    };
    if (pick(m, 4) == 0)
        snprintf(buffer, n, "%d", PICK(m, special));
    else
        snprintf(buffer, n, "%%r%u", pick(m, INTS));
    return buffer;
}

static const char *float_source(struct maker *m, char *buffer, size_t n)
{
    static const uint32_t special[] = { 0,          0x80000000, 0x3f800000, 0xbf000000,
                                        0x7f800000, 0xff800000, 0x7fffffff, 0x00000001,
                                        0x807fffff, 0x4f000000, 0x40490fdb };
    if (pick(m, 5) == 0)
        snprintf(buffer, n, "0f%08X", PICK(m, special));
    else
        snprintf(buffer, n, "%%f%u", pick(m, FLOATS));
    return buffer;
}

/* --- single instructions ---------------------------------------------------------------------- */

static void int_op(struct maker *m)
{
    static const char *const two[] = { "add.s32",     "sub.s32",     "mul.lo.s32", "mul.hi.u32",
                                       "mul.hi.s32",  "and.b32",     "or.b32",     "xor.b32",
                                       "shl.b32",     "shr.u32",     "shr.s32",    "min.s32",
                                       "max.u32",     "min.u32",     "max.s32",    "div.u32",
                                       "rem.u32",     "div.s32",     "rem.s32",    "add.sat.s32",
                                       "sub.sat.s32", "mul24.lo.u32" };
    static const char *const three[] = { "mad.lo.s32",  "mad.hi.u32",     "sad.s32",
                                         "prmt.b32",    "shf.l.wrap.b32", "shf.r.clamp.b32",
                                         "dp4a.s32.u32" };
    static const char *const one[] = { "not.b32", "neg.s32",  "abs.s32",   "popc.b32",
                                       "clz.b32", "brev.b32", "bfind.u32", "cnot.b32" };
    char a[24], b[24], c[24];
    unsigned d = pick(m, INTS);
    switch (pick(m, 6)) {
    case 0:
    case 1:
    case 2:
        fprintf(m->out, "\t%s %%r%u, %%r%u, %s;\n", PICK_OP(m, two), d, pick(m, INTS),
                int_source(m, b, sizeof(b)));
        break;
    case 3:
        fprintf(m->out, "\t%s %%r%u, %s, %s, %s;\n", PICK(m, three), d, int_source(m, a, sizeof(a)),
                int_source(m, b, sizeof(b)), int_source(m, c, sizeof(c)));
        break;
    case 4:
        fprintf(m->out, "\t%s %%r%u, %%r%u;\n", PICK_OP(m, one), d, pick(m, INTS));
        break;
    default:
        if (pick(m, 4) == 0)
            fprintf(m->out, "\tbfe.%s %%r%u, %%r%u, %%r%u, %u;\n", pick(m, 2) ? "u32" : "s32", d,
                    pick(m, INTS), pick(m, INTS), pick(m, 40));
        else if (pick(m, 2))
            fprintf(m->out, "\tlop3.b32 %%r%u, %%r%u, %%r%u, %%r%u, 0x%02x;\n", d, pick(m, INTS),
                    pick(m, INTS), pick(m, INTS), pick(m, 256));
        else
            fprintf(m->out, "\tbfi.b32 %%r%u, %%r%u, %%r%u, %u, %u;\n", d, pick(m, INTS),
                    pick(m, INTS), pick(m, m->portable ? 32 : 40), pick(m, m->portable ? 32 : 40));
        break;
    }
}

static void long_op(struct maker *m)
{
    static const char *const two[] = { "add.s64", "sub.s64", "mul.lo.s64", "mul.hi.u64",
                                       "and.b64", "or.b64",  "xor.b64",    "min.s64",
                                       "max.u64", "div.u64", "rem.s64" };
    unsigned d = pick(m, LONGS);
    switch (pick(m, 6)) {
    case 0:
    case 1:
        fprintf(m->out, "\t%s %%rd%u, %%rd%u, %%rd%u;\n", PICK_OP(m, two), d, pick(m, LONGS),
                pick(m, LONGS));
        break;
    case 2:
        fprintf(m->out, "\t%s %%rd%u, %%r%u, %%r%u;\n",
                pick(m, 2) ? "mul.wide.u32" : "mul.wide.s32", d, pick(m, INTS), pick(m, INTS));
        break;
    case 3:
        fprintf(m->out, "\t%s %%rd%u, %%rd%u, %%r%u;\n", pick(m, 2) ? "shl.b64" : "shr.s64", d,
                pick(m, LONGS), pick(m, INTS));
        break;
    case 4:
        fprintf(m->out, "\tmov.b64 %%rd%u, {%%r%u, %%r%u};\n", d, pick(m, INTS), pick(m, INTS));
        break;
    default: {
        unsigned r = pick(m, INTS);
        fprintf(m->out, "\tmov.b64 {%%r%u, %%r%u}, %%rd%u;\n", r, (r + 1) % INTS, pick(m, LONGS));
        break;
    }
    }
}

static void float_op(struct maker *m)
{
    static const char *const two[] = { "add.f32",        "sub.f32",       "mul.f32",
                                       "min.f32",        "max.f32",       "add.ftz.f32",
                                       "mul.ftz.f32",    "add.sat.f32",   "div.rn.f32",
                                       "add.rz.f32",     "mul.rm.f32",    "sub.rp.f32",
                                       "max.ftz.f32",    "add.rn.f32",    "mul.rn.f32",
                                       "sub.rn.ftz.f32", "mul.rn.sat.f32" };
    static const char *const one[] = { "neg.f32",           "abs.f32",         "sqrt.rn.f32",
                                       "rcp.rn.f32",        "cvt.rni.f32.f32", "cvt.rmi.f32.f32",
                                       "cvt.sat.f32.f32",   "sin.approx.f32",  "cos.approx.f32",
                                       "ex2.approx.f32",    "lg2.approx.f32",  "tanh.approx.f32",
                                       "ex2.approx.ftz.f32" };
    static const char *const wide[] = { "add.f64", "sub.f64",    "mul.f64",    "min.f64",
                                        "max.f64", "div.rn.f64", "add.rn.f64", "mul.rn.f64" };
    char a[24], b[24], c[24];
    switch (pick(m, 6)) {
    case 0:
    case 1:
        fprintf(m->out, "\t%s %%f%u, %s, %s;\n", PICK_OP(m, two), pick(m, FLOATS),
                float_source(m, a, sizeof(a)), float_source(m, b, sizeof(b)));
        break;
    case 2:
        fprintf(m->out, "\t%s %%f%u, %s, %s, %s;\n", pick(m, 4) ? "fma.rn.f32" : "fma.rn.ftz.f32",
                pick(m, FLOATS), float_source(m, a, sizeof(a)), float_source(m, b, sizeof(b)),
                float_source(m, c, sizeof(c)));
        break;
    case 3:
        fprintf(m->out, "\t%s %%f%u, %%f%u;\n", PICK_OP(m, one), pick(m, FLOATS), pick(m, FLOATS));
        break;
    case 4:
        fprintf(m->out, "\t%s %%fd%u, %%fd%u, %%fd%u;\n", PICK_OP(m, wide), pick(m, DOUBLES),
                pick(m, DOUBLES), pick(m, DOUBLES));
        break;
    default:
        fprintf(m->out, "\tfma.rn.f64 %%fd%u, %%fd%u, %%fd%u, %%fd%u;\n", pick(m, DOUBLES),
                pick(m, DOUBLES), pick(m, DOUBLES), pick(m, DOUBLES));
        break;
    }
}

static void convert_op(struct maker *m)
{
    static const struct {
        const char *op;
        char d, s;
    } ops[] = {
        { "cvt.rn.f32.s32", 'f', 'r' },    { "cvt.rn.f32.u32", 'f', 'r' },
        { "cvt.rzi.s32.f32", 'r', 'f' },   { "cvt.rzi.u32.f32", 'r', 'f' },
        { "cvt.rni.s32.f32", 'r', 'f' },   { "cvt.f64.f32", 'd', 'f' },
        { "cvt.rn.f32.f64", 'f', 'd' },    { "cvt.rz.f32.f64", 'f', 'd' },
        { "cvt.rn.f64.s32", 'd', 'r' },    { "cvt.rn.f64.u64", 'd', 'l' },
        { "cvt.rn.f32.s64", 'f', 'l' },    { "cvt.rzi.s64.f64", 'l', 'd' },
        { "cvt.rzi.u64.f32", 'l', 'f' },   { "cvt.rpi.s32.f64", 'r', 'd' },
        { "cvt.s64.s32", 'l', 'r' },       { "cvt.u64.u32", 'l', 'r' },
        { "cvt.u32.u64", 'r', 'l' },       { "cvt.u16.u32", 'h', 'r' },
        { "cvt.s32.s16", 'r', 'h' },       { "cvt.u32.u16", 'r', 'h' },
        { "cvt.s32.s8", 'r', 'r' },        { "cvt.u32.u8", 'r', 'r' },
        { "cvt.sat.s16.s32", 'h', 'r' },   { "cvt.sat.u8.s32", 'r', 'r' },
        { "cvt.rn.f16.f32", 'h', 'f' },    { "cvt.f32.f16", 'f', 'h' },
        { "cvt.rm.f32.s32", 'f', 'r' },    { "cvt.rn.sat.f16.s16", 'h', 'h' },
        { "cvt.rn.sat.f16.u8", 'h', 'r' }, { "cvt.rn.sat.f16.f32", 'h', 'f' },
    };
    static const struct {
        char key;
        const char *name;
        unsigned count;
    } files[] = { { 'r', "r", INTS },
                  { 'l', "rd", LONGS },
                  { 'f', "f", FLOATS },
                  { 'd', "fd", DOUBLES },
                  { 'h', "h", SHORTS } };
    unsigned k = pick(m, GM_ARRAY_LEN(ops)), d = 0, s = 0;
    for (unsigned n = 0; n < GM_ARRAY_LEN(files); n++) {
        d = files[n].key == ops[k].d ? n : d;
        s = files[n].key == ops[k].s ? n : s;
    }
    fprintf(m->out, "\t%s %%%s%u, %%%s%u;\n", ops[k].op, files[d].name, pick(m, files[d].count),
            files[s].name, pick(m, files[s].count));
}

static void short_op(struct maker *m)
{
    static const char *const two[] = { "add.s16", "sub.s16", "mul.lo.s16", "and.b16",
                                       "xor.b16", "min.s16", "max.u16" };
    fprintf(m->out, "\t%s %%h%u, %%h%u, %%h%u;\n", PICK_OP(m, two), pick(m, SHORTS),
            pick(m, SHORTS), pick(m, SHORTS));
}

unsigned random_compare(struct maker *m)
{
    static const char *const ints[] = { "eq.s32", "ne.s32", "lt.s32", "le.s32",
                                        "gt.u32", "ge.u32", "lt.u32" };
    static const char *const floats[] = { "lt.f32",  "ge.f32",     "eq.f32", "neu.f32",
                                          "ltu.f32", "gt.ftz.f32", "num.f32" };
    char a[24], b[24];
    unsigned p = pick(m, PREDS);
    switch (pick(m, 5)) {
    case 0:
        fprintf(m->out, "\tsetp.%s %%p%u, %s, %s;\n", PICK(m, floats), p,
                float_source(m, a, sizeof(a)), float_source(m, b, sizeof(b)));
        break;
    case 1:
        fprintf(m->out, "\tsetp.%s.and.%s %%p%u|%%p%u, %%r%u, %s, %%p%u;\n",
                pick(m, 2) ? "lt" : "ne", "s32", p, (p + 1) % PREDS, pick(m, INTS),
                int_source(m, b, sizeof(b)), pick(m, PREDS));
        break;
    case 2:
        fprintf(m->out, "\txor.pred %%p%u, %%p%u, %%p%u;\n", p, pick(m, PREDS), pick(m, PREDS));
        break;
    default: {
        char low[24];
        snprintf(low, sizeof(low), "%u", pick(m, 16));
        fprintf(m->out, "\tand.b32 %%t0, %%r%u, 15;\n\tsetp.%s %%p%u, %%t0, %s;\n", pick(m, INTS),
                PICK(m, ints), p, low);
        break;
    }
    }
    return p;
}

static void select_op(struct maker *m)
{
    if (pick(m, 2))
        fprintf(m->out, "\tselp.b32 %%r%u, %%r%u, %%r%u, %%p%u;\n", pick(m, INTS), pick(m, INTS),
                pick(m, INTS), pick(m, PREDS));
    else
        fprintf(m->out, "\t@%s%%p%u mov.b32 %%r%u, %%r%u;\n", pick(m, 2) ? "!" : "", pick(m, PREDS),
                pick(m, INTS), pick(m, INTS));
}

static void memory_op(struct maker *m)
{
    static const char *const atoms[] = { "add.u32", "min.s32", "max.u32",
                                         "and.b32", "or.b32",  "xor.b32" };
    static const char *const loads[] = { "u32", "s8", "u8", "s16", "u16" };
    unsigned r = pick(m, INTS);
    switch (pick(m, 7)) {
    case 6: { /* the neighbour's element, if there is one */
        int away = (int)pick(m, 80) - 40;
        fprintf(m->out,
                "\tadd.s32 %%t0, %%me, %d;\n\tsetp.lt.u32 %%q, %%t0, %%all;\n\tmul.wide.s32 %%a0, "
                "%%t0, 4;\n"
                "\tadd.s64 %%a0, %%in, %%a0;\n\t@%%q ld.global.b32 %%r%u, [%%a0];\n",
                away, pick(m, INTS));
        break;
    }
    case 0:
        fprintf(m->out,
                "\tand.b32 %%t0, %%r%u, %u;\n\tmul.wide.u32 %%a0, %%t0, 4;\n\tadd.s64 %%a0, %%in, "
                "%%a0;\n",
                r, RANDOM_WORDS_IN - 1);
        fprintf(m->out, "\tld.global.%s %%r%u, [%%a0];\n", PICK(m, loads), pick(m, INTS));
        break;
    case 1:
        fprintf(m->out,
                "\tand.b32 %%t0, %%r%u, %u;\n\tmul.wide.u32 %%a0, %%t0, 16;\n\tadd.s64 %%a0, %%in, "
                "%%a0;\n",
                r, RANDOM_WORDS_IN / 4 - 1);
        fprintf(m->out, "\tld.global.v2.f32 {%%f0, %%f%u}, [%%a0+8];\n", 1 + pick(m, FLOATS - 1));
        break;
    case 2:
        fprintf(m->out,
                "\tand.b32 %%t0, %%r%u, 7;\n\tshl.b32 %%t0, %%t0, 2;\n\tmov.u32 %%t1, lm;\n"
                "\tadd.s32 %%t0, %%t0, %%t1;\n",
                r);
        fprintf(m->out, "\tst.local.b32 [%%t0], %%r%u;\n", pick(m, INTS));
        break;
    case 3:
        fprintf(m->out,
                "\tand.b32 %%t0, %%r%u, 7;\n\tshl.b32 %%t0, %%t0, 2;\n\tmov.u32 %%t1, lm;\n"
                "\tadd.s32 %%t0, %%t0, %%t1;\n",
                r);
        fprintf(m->out, "\tld.local.b32 %%r%u, [%%t0];\n", pick(m, INTS));
        break;
    case 4: { /* each word of its own kind, so that the order does not matter */
        unsigned kind = pick(m, GM_ARRAY_LEN(atoms));
        fprintf(m->out,
                "\tand.b32 %%t0, %%r%u, 7;\n\tmul.wide.u32 %%a0, %%t0, 4;\n\tadd.s64 %%a0, "
                "%%atoms, %%a0;\n",
                r);
        bool red = pick(m, 2);
        fprintf(m->out, "\t%s.global.%s %s[%%a0+%u], %%r%u;\n", red ? "red" : "atom", atoms[kind],
                red ? "" : "%t1, ", 32 * kind, pick(m, INTS));
        break;
    }
    default: /* vectors, through generic addresses of local memory */
        fprintf(m->out, "\tcvta.local.u64 %%a0, %%lmb;\n\tst.v2.b32 [%%a0+16], {%%r%u, %%r%u};\n",
                pick(m, INTS), pick(m, INTS));
        fprintf(m->out, "\tld.b64 %%rd%u, [%%a0+%u];\n", pick(m, LONGS), 8 * pick(m, 4));
        break;
    }
}

/* Only where all threads come together. */
static void together_op(struct maker *m)
{
    unsigned r = pick(m, INTS), d = pick(m, INTS);
    if (m->waits && !m->exited && m->polls < RANDOM_POLLS && pick(m, 3) == 0) {
        random_poll_statement(m);
        return;
    }
    if (pick(m, 2)) {
        unsigned kind = pick(m, 5);
        kind < 2    ? random_neighbour_op(m)
        : kind == 2 ? random_permuted_op(m)
                    : random_meeting_op(m);
        return;
    }
    if (pick(m, 3) == 0) {
        if (m->exited || m->left < 4)
            random_read_shared_atomics(m);
        else
            pick(m, 3) == 0   ? random_members_statement(m)
            : pick(m, 2) == 0 ? random_parted_sync(m)
                              : random_tiles_statement(m);
        return;
    }
    if (pick(m, 6) == 0) {
        m->calls && !m->exited && pick(m, 2) ? random_meeting_call(m) : random_barrier_op(m);
        return;
    }
    switch (pick(m, 5)) { /* lanes that have left are named, too */
    case 0:
    case 1:
        fprintf(m->out, "\tbar.sync 0;\n\tst.shared.b32 [%%mine], %%r%u;\n\tbar.sync 0;\n", r);
        fprintf(
            m->out,
            "\tadd.s32 %%t0, %%me, %u;\n\trem.u32 %%t0, %%t0, %%all;\n\tshl.b32 %%t0, %%t0, 2;\n"
            "\tmov.u32 %%t1, sm;\n\tadd.s32 %%t0, %%t0, %%t1;\n\tld.shared.b32 %%r%u, [%%t0];\n"
            "\tbar.sync 0;\n", /* the word may change again */
            1 + pick(m, 70), d);
        break;
    case 2: {
        static const char *const modes[] = { "up", "down", "bfly", "idx" };
        static const unsigned clamps[] = { 0, 31, 31, 31 };
        unsigned k = pick(m, 4);
        fprintf(m->out, "\tshfl.sync.%s.b32 %%r%u|%%p%u, %%r%u, %u, %u, -1;\n", modes[k], d,
                pick(m, PREDS), r, pick(m, 32), clamps[k]);
        break;
    }
    case 3:
        fprintf(m->out, "\tvote.sync.ballot.b32 %%r%u, %%p%u, -1;\n", d, pick(m, PREDS));
        break;
    default:
        fprintf(m->out, "\tvote.sync.%s.pred %%p%u, %%p%u, -1;\n", pick(m, 2) ? "any" : "all",
                pick(m, PREDS), pick(m, PREDS));
        break;
    }
}

/* --- statements ------------------------------------------------------------------------------- */

static void store_results(struct maker *m);

static void exit_statement(struct maker *m)
{
    unsigned label = m->labels++, p = random_compare(m);
    fprintf(m->out, "\t@!%%p%u bra L%u_stay;\n", p, label);
    store_results(m);
    fprintf(m->out, "\t%s;\nL%u_stay:\n", pick(m, 2) ? "ret" : "exit", label);
    m->exited = true;
}

static void simple_statement(struct maker *m)
{
    switch (pick(m, 20)) {
    case 16:
    case 17:
    case 18:
    case 19:
        random_form(m);
        break;
    case 12:
    case 13:
    case 14:
    case 15:
        random_more_op(m);
        break;
    case 0:
    case 1:
    case 2:
        int_op(m);
        break;
    case 3:
        long_op(m);
        break;
    case 4:
    case 5:
        float_op(m);
        break;
    case 6:
        convert_op(m);
        break;
    case 7:
        short_op(m);
        break;
    case 8:
        select_op(m);
        break;
    case 9:
        random_compare(m);
        break;
    default:
        memory_op(m);
        break;
    }
}

static void statement(struct maker *m)
{
    bool nest = m->depth < 5 && m->left > 4;
    m->depth++;
    switch (pick(m, 14)) {
    case 0:
    case 1:
    case 2:
    case 3:
        nest ? random_way(m) : simple_statement(m);
        break;
    case 4:
        pick(m, 6) == 0 && !m->stay ? exit_statement(m) : simple_statement(m);
        break;
    case 5:
    case 6:
        m->together ? together_op(m) : simple_statement(m);
        break;
    case 7:
        random_jump(m);
        break;
    default:
        simple_statement(m);
        break;
    }
    m->depth--;
}

void random_statements(struct maker *m, unsigned count)
{
    for (; count && m->left; count--) {
        m->left--;
        statement(m);
    }
    if (pick(m, 8) == 0)
        int_op(m);
}

static void store_results(struct maker *m)
{
    unsigned at = 0;
    for (unsigned k = 0; k < INTS; k++, at += 4)
        fprintf(m->out, "\tst.global.b32 [%%out+%u], %%r%u;\n", at, k);
    for (unsigned k = 0; k < LONGS; k++, at += 8)
        fprintf(m->out, "\tst.global.b64 [%%out+%u], %%rd%u;\n", at, k);
    for (unsigned k = 0; k < FLOATS; k++, at += 4)
        fprintf(m->out,
                "\ttestp.notanumber.f32 %%q, %%f%u;\n\tselp.f32 %%f%u, 0f7FFFFFFF, %%f%u, %%q;\n"
                "\tst.global.f32 [%%out+%u], %%f%u;\n",
                k, k, k, at, k);
    for (unsigned k = 0; k < 1; k++, at += 8)
        fprintf(m->out,
                "\ttestp.notanumber.f64 %%q, %%fd%u;\n\tselp.f64 %%fd%u, 0d7FFFFFFFFFFFFFFF, "
                "%%fd%u, %%q;\n"
                "\tst.global.f64 [%%out+%u], %%fd%u;\n",
                k, k, k, at, k);
}

/* One thread clears what nobody else writes before others read it. */
static void clear_shared(struct maker *m, unsigned threads)
{
    fprintf(m->out,
            "\tsetp.ne.u32 %%q, %%me, 0;\n\t@%%q bra L_cleared;\n\tmov.u32 %%n0, %u;\nL_near:\n"
            "\tsub.u32 %%n0, %%n0, 4;\n\tmov.u32 %%t0, near;\n\tadd.u32 %%t0, %%t0, %%n0;\n"
            "\tst.shared.b32 [%%t0], 0;\n\tsetp.ne.u32 %%q, %%n0, 0;\n\t@%%q bra L_near;\n",
            NEIGHBOUR_BYTES * threads);
    for (unsigned n = 0; n < RANDOM_SHARED_ATOMS; n += 4)
        fprintf(m->out, "\tst.shared.v4.b32 [sa+%u], {%%n0, %%n0, %%n0, %%n0};\n", 4 * n);
    for (unsigned n = 0; m->waits && n < RANDOM_POLLS; n++)
        fprintf(m->out, "\tst.shared.b32 [po+%u], %%n0;\n", 4 * n);
    fprintf(m->out, "L_cleared:\n\tbar.sync 0;\n");
}

static void prologue(struct maker *m, const struct random_kernel *k)
{
    fprintf(m->out, ".version 8.4\n.target sm_90\n.address_size 64\n"
                    ".const .align 16 .b32 table[16] = {1, -2, 30, 0x80000000, 5, 77, 0x7fffffff, "
                    "0x01020304,\n\t-9, 10, 0xf0f1f2f3, 12, 0x3f800000, -14, 15, 16};\n");
    if (m->calls)
        random_functions(m);
    fprintf(m->out,
            ".visible .entry k(.param .u64 in, .param .u64 out, .param .u64 atoms)\n{\n"
            "\t.reg .pred %%p<%u>;\n\t.reg .b16 %%h<%u>;\n\t.reg .b32 %%r<%u>, %%n<64>, %%me, "
            "%%all, %%mine, %%width;\n"
            "\t.reg .b64 %%rd<%u>, %%in, %%out, %%atoms, %%lmb;\n\t.reg .f32 %%f<%u>;\n\t.reg .f64 "
            "%%fd<%u>;\n" RANDOM_TEMPORARIES,
            PREDS, SHORTS, INTS, LONGS, FLOATS, DOUBLES);
    unsigned threads = k->block[0] * k->block[1] * k->block[2], near = pick(m, 2);
    if (near)
        fprintf(m->out, "\t.shared .align 16 .b8 near[%u];\n", NEIGHBOUR_BYTES * threads);
    fprintf(m->out, "\t.shared .align 4 .b8 sm[%u];\n", 4 * threads);
    if (!near)
        fprintf(m->out, "\t.shared .align 16 .b8 near[%u];\n", NEIGHBOUR_BYTES * threads);
    fprintf(m->out, "\t.shared .align 16 .b8 sa[%u];\n\t.local .align 16 .b8 lm[32];\n",
            4 * RANDOM_SHARED_ATOMS);
    if (m->waits)
        fprintf(m->out, "\t.shared .align 4 .b8 po[%u];\n", 4 * RANDOM_POLLS);
    fprintf(m->out,
            "\tld.param.u64 %%in, [in];\n\tld.param.u64 %%a1, [out];\n\tld.param.u64 %%atoms, "
            "[atoms];\n"
            "\tmov.u32 %%t0, %%tid.x;\n\tmov.u32 %%t1, %%tid.y;\n\tmov.u32 %%width, %%ntid.x;\n"
            "\tmad.lo.s32 %%me, %%t1, %%width, %%t0;\n\tmov.u32 %%t1, %%ntid.y;\n"
            "\tmul.lo.s32 %%all, %%width, %%t1;\n");
    if (m->deep)
        fprintf(m->out, "\tmov.u32 %%t1, %%tid.z;\n\tmad.lo.s32 %%me, %%t1, %%all, %%me;\n"
                        "\tmov.u32 %%t1, %%ntid.z;\n\tmul.lo.s32 %%all, %%all, %%t1;\n");
    fprintf(m->out, "\tmov.u32 %%t1, %%ctaid.x;\n\tmad.lo.s32 %%t0, %%t1, %%all, %%me;\n");
    fprintf(
        m->out,
        "\tmul.wide.u32 %%a0, %%t0, %u;\n\tadd.s64 %%out, %%a1, %%a0;\n\tshl.b32 %%t1, %%me, 2;\n"
        "\tmov.u64 %%lmb, lm;\n",
        4 * RANDOM_WORDS_OUT);
    fprintf(
        m->out,
        "\t{\n\t.reg .b32 %%from;\n\tmov.u32 %%from, sm;\n\tadd.s32 %%mine, %%from, %%t1;\n\t}\n");
    for (unsigned r = 0; r < INTS; r++)
        if (r < 3)
            fprintf(m->out, "\tmul.lo.s32 %%r%u, %%t0, %u;\n", r,
                    r == 0 ? 1 : pick(m, 1u << 30) | 1);
        else
            fprintf(m->out,
                    "\tadd.s32 %%t1, %%t0, %u;\n\tand.b32 %%t1, %%t1, %u;\n\tmul.wide.u32 %%a0, "
                    "%%t1, 4;\n"
                    "\tadd.s64 %%a0, %%in, %%a0;\n\tld.global.u32 %%r%u, [%%a0];\n",
                    pick(m, 1000), RANDOM_WORDS_IN - 1, r);
    for (unsigned r = 0; r < LONGS; r++)
        fprintf(m->out, "\tmul.wide.s32 %%rd%u, %%r%u, %%r%u;\n", r, pick(m, INTS), pick(m, INTS));
    for (unsigned r = 0; r < FLOATS; r++)
        fprintf(m->out, "\tcvt.rn.f32.s32 %%f%u, %%r%u;\n\tmul.rn.f32 %%f%u, %%f%u, 0f%08X;\n", r,
                pick(m, INTS), r, r, 0x2f000000u + (pick(m, 40) << 23));
    for (unsigned r = 0; r < DOUBLES; r++)
        fprintf(m->out, "\tcvt.f64.f32 %%fd%u, %%f%u;\n", r, pick(m, FLOATS));
    for (unsigned r = 0; r < SHORTS; r++)
        fprintf(m->out, "\tcvt.u16.u32 %%h%u, %%r%u;\n", r, pick(m, INTS));
    for (unsigned r = 0; r < PREDS; r++)
        fprintf(m->out, "\tsetp.lt.s32 %%p%u, %%r%u, %%r%u;\n", r, pick(m, INTS), pick(m, INTS));
    for (unsigned r = 0; r < 8; r++)
        fprintf(m->out, "\tst.local.b32 [lm+%u], %%r%u;\n", 4 * r, r % INTS);
    fprintf(m->out, "\tst.shared.b32 [%%mine], %%r0;\n");
    clear_shared(m, threads);
}

struct random_kernel random_kernel_make(uint64_t seed, bool portable)
{
    static const uint32_t shapes[][3] = {
        { 32, 1, 1 }, { 64, 1, 1 },  { 48, 1, 1 }, { 7, 1, 1 },  { 8, 4, 1 },   { 33, 1, 1 },
        { 20, 5, 1 }, { 96, 1, 1 },  { 16, 1, 1 }, { 16, 5, 1 }, { 16, 8, 1 },  { 16, 3, 1 },
        { 32, 4, 1 }, { 12, 6, 1 },  { 33, 3, 1 }, { 64, 3, 1 }, { 256, 1, 1 }, { 1, 128, 1 },
        { 4, 4, 8 },  { 16, 16, 2 }, { 2, 32, 3 },
    };
    struct random_kernel k = { .grid = { 1, 1, 1 }, .block = { 32, 1, 1 } };
    struct maker m = { .state = seed * UINT64_C(0x9e3779b97f4a7c15) + 0x1234567,
                       .together = true,
                       .portable = portable };
    size_t size;
    for (int n = 0; n < 8; n++)
        pick(&m, 2);
    m.left = 10 + pick(&m, 36);
    k.grid[0] = 1 + pick(&m, 3);
    const uint32_t *shape = PICK(&m, shapes);
    memcpy(k.block, shape, sizeof(k.block));
    m.deep = k.block[2] > 1;
    m.calls = pick(&m, 3) == 0;
    m.waits = seed % 4 == 3 && !portable;
    m.out = open_memstream(&k.text, &size);
    if (!m.out)
        return k;
    prologue(&m, &k);
    random_statements(&m, 8 + pick(&m, 12));
    if (m.waits && !m.exited) {
        random_poll_statement(&m);
        random_statements(&m, 4);
    }
    store_results(&m);
    fprintf(m.out, "\tret;\n}\n");
    fclose(m.out);
    k.text = random_fresh_temporaries(k.text);
    return k;
}
