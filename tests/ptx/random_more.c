/*
 * Forms that programs contain less often: collectives of a part of the warp, vectors, halves,
 * guarded instructions of all kinds, shared atomics.
 */
#include "random_maker.h"

/* Through memory of the thread's own, in one width and in another. */
static void vector_op(struct maker *m)
{
    unsigned r = pick(m, INTS), at = 16 * pick(m, RANDOM_WORDS_OUT / 4), half = 16 * pick(m, 2);
    switch (pick(m, 6)) {
    case 0:
        fprintf(m->out,
                "\tand.b32 %%t0, %%r%u, %u;\n\tmul.wide.u32 %%a0, %%t0, 16;\n\tadd.s64 %%a0, %%in, "
                "%%a0;\n"
                "\tld.global.v4.u32 {%%r%u, %%r%u, %%r%u, %%r%u}, [%%a0];\n",
                r, RANDOM_WORDS_IN / 4 - 1, r, (r + 1) % INTS, (r + 3) % INTS, (r + 5) % INTS);
        break;
    case 1:
        fprintf(m->out, "\tst.global.v4.b32 [%%out+%u], {%%r%u, %%r%u, %%r%u, %%r%u};\n", at, r,
                pick(m, INTS), pick(m, INTS), (r + 1) % INTS);
        fprintf(m->out, "\tld.global.v2.b64 {%%rd%u, %%rd%u}, [%%out+%u];\n", r % LONGS,
                (r + 1) % LONGS, at);
        break;
    case 2:
        fprintf(m->out, "\tst.global.v2.b64 [%%out+%u], {%%rd%u, %%rd%u};\n", at, pick(m, LONGS),
                pick(m, LONGS));
        fprintf(m->out, "\tld.global.v4.%s {%%r%u, %%r%u, %%r%u, %%r%u}, [%%out+%u];\n",
                pick(m, 2) ? "u8" : "s8", r, (r + 1) % INTS, (r + 2) % INTS, (r + 3) % INTS,
                at + 4 * pick(m, 4));
        break;
    case 3:
        fprintf(m->out, "\tst.local.v4.b32 [lm+%u], {%%r%u, %%r%u, %%r%u, %%r%u};\n", half, r,
                pick(m, INTS), pick(m, INTS), pick(m, INTS));
        fprintf(m->out, "\tld.local.v2.u16 {%%h0, %%h%u}, [lm+%u];\n", 1 + pick(m, SHORTS - 1),
                4 * pick(m, 8));
        break;
    case 4: { /* bytes and halves of local memory, at a computed place */
        unsigned wide = pick(m, 2);
        fprintf(
            m->out,
            "\tand.b32 %%t0, %%r%u, %u;\n\tcvt.u64.u32 %%a0, %%t0;\n\tadd.s64 %%a0, %%lmb, %%a0;\n"
            "\tst.local.%s [%%a0], %%r%u;\n\tld.local.%s %%r%u, [%%a0];\n",
            r, wide ? 30 : 31, wide ? "b16" : "b8", pick(m, INTS), wide ? "s16" : "s8",
            pick(m, INTS));
        break;
    }
    default:
        fprintf(
            m->out,
            "\tst.global.v2.b16 [%%out+%u], {%%h%u, %%h%u};\n\tld.global.b32 %%r%u, [%%out+%u];\n",
            at, pick(m, SHORTS), pick(m, SHORTS), r, at);
        break;
    }
}

/* Registers that are vectors, as a whole and by element; 128 bits of the thread's own memory at
 * once. */
static void vector_register_op(struct maker *m)
{
    static const char letters[] = "xyzwrgba";
    unsigned r = pick(m, INTS), d = pick(m, LONGS), at = 16 * pick(m, RANDOM_WORDS_OUT / 4);
    if (pick(m, 2)) {
        fprintf(m->out,
                "\t{\n\t.reg .v4 .b32 %%four;\n\t.reg .v2 .b32 %%two<2>;\n"
                "\tmov.v4.b32 %%four, {%%r%u, %%r%u, %%r%u, %%r%u};\n",
                r, pick(m, INTS), pick(m, INTS), pick(m, INTS));
        fprintf(m->out, "\tadd.s32 %%four.%c, %%four.%c, %%r%u;\n", letters[pick(m, 8)],
                letters[pick(m, 8)], pick(m, INTS));
        fprintf(m->out, "\tmov.v2.b32 %%two1, {%%four.%c, %%four.%c};\n\tmov.b64 %%rd%u, %%two1;\n",
                letters[pick(m, 8)], letters[pick(m, 8)], d);
        fprintf(m->out, "\tmov.v4.b32 {%%r%u, %%r%u, %%r%u, %%r%u}, %%four;\n\t}\n", (r + 5) % INTS,
                r, (r + 3) % INTS, (r + 1) % INTS);
        return;
    }
    fprintf(m->out,
            "\t{\n\t.reg .b128 %%wide<3>;\n\tmov.b128 %%wide0, {%%rd%u, %%rd%u};\n"
            "\tld.%sglobal.b128 %%wide1, [%%out+%u];\n",
            d, pick(m, LONGS), pick(m, 2) ? "" : "relaxed.gpu.", at);
    if (pick(m, 2))
        fprintf(m->out, "\tatom.global.exch.b128 %%wide2, [%%out+%u], %%wide0;\n", at);
    else
        fprintf(m->out, "\tatom.global.cas.b128 %%wide2, [%%out+%u], %%wide%u, %%wide0;\n", at,
                pick(m, 2));
    fprintf(m->out, "\tmov.b128 {%%rd%u, %%rd%u}, %%wide%u;\n\t}\n", d, (d + 1) % LONGS,
            1 + pick(m, 2));
}

static void half_op(struct maker *m)
{
    static const char *const shorts[] = { "add.f16",    "mul.f16",        "max.f16", "sub.ftz.f16",
                                          "mul.lo.u16", "mul.hi.s16",     "div.u16", "rem.s16",
                                          "add.rn.f16", "mul.rn.ftz.f16", "min.u16", "or.b16" };
    static const char *const pairs[] = { "add.f16x2", "mul.f16x2",    "sub.f16x2",
                                         "min.f16x2", "add.rn.f16x2", "sub.rn.sat.f16x2",
                                         "max.f16x2" };
    static const char *const compares[] = { "lt.f16", "geu.f16", "eq.s16",
                                            "lo.u16", "ne.b16",  "gt.s16" };
    unsigned h = pick(m, SHORTS), r = pick(m, INTS);
    switch (pick(m, 7)) {
    case 0:
        fprintf(m->out, "\t%s %%h%u, %%h%u, %%h%u;\n", PICK_OP(m, shorts), h, pick(m, SHORTS),
                pick(m, SHORTS));
        break;
    case 6:
        fprintf(m->out, "\t%s.b16 %%h%u, %%h%u, %%r%u;\n", pick(m, 2) ? "shl" : "shr", h,
                pick(m, SHORTS), r);
        break;
    case 1:
        fprintf(m->out, "\t%s %%r%u, %%r%u, %%r%u;\n", PICK_OP(m, pairs), r, pick(m, INTS),
                pick(m, INTS));
        break;
    case 2:
        fprintf(m->out, "\tfma.rn.f16 %%h%u, %%h%u, %%h%u, %%h%u;\n", h, pick(m, SHORTS),
                pick(m, SHORTS), pick(m, SHORTS));
        break;
    case 3:
        fprintf(m->out, "\tsetp.%s %%p%u, %%h%u, %%h%u;\n", PICK(m, compares), pick(m, PREDS), h,
                pick(m, SHORTS));
        break;
    case 4:
        fprintf(m->out, "\tmul.wide.%s16 %%r%u, %%h%u, %%h%u;\n", pick(m, 2) ? "u" : "s", r, h,
                pick(m, SHORTS));
        break;
    default:
        fprintf(m->out,
                "\tmad.lo.u16 %%h%u, %%h%u, %%h%u, %%h%u;\n\tmov.b32 %%r%u, {%%h%u, %%h%u};\n", h,
                pick(m, SHORTS), pick(m, SHORTS), h, r, h, pick(m, SHORTS));
        break;
    }
}

static void predicate_op(struct maker *m)
{
    static const char *const logic[] = { "and", "or", "xor" };
    unsigned p = pick(m, PREDS), r = pick(m, INTS), a = pick(m, INTS), b = pick(m, INTS);
    const char *not = pick(m, 2) ? "!" : "";
    switch (pick(m, 8)) {
    case 0:
        fprintf(m->out, "\t%s.pred %%p%u, %%p%u, %%p%u;\n", PICK(m, logic), p, pick(m, PREDS),
                pick(m, PREDS));
        break;
    case 1:
        fprintf(m->out, "\tnot.pred %%p%u, %%p%u;\n", p, pick(m, PREDS));
        break;
    case 2:
        fprintf(m->out, "\t@%s%%p%u setp.lt.or.s32 %%p%u|%%p%u, %%r%u, %%r%u, !%%p%u;\n", not,
                pick(m, PREDS), p, (p + 1) % PREDS, a, b, pick(m, PREDS));
        break;
    case 3:
        fprintf(m->out, "\t@%s%%p%u mad.lo.s32 %%r%u, %%r%u, %%r%u, %%r%u;\n", not, p, r, a, b, r);
        break;
    case 4:
        fprintf(
            m->out,
            "\tselp.b64 %%rd%u, %%rd%u, %%rd%u, %%p%u;\n\t@%s%%p%u shl.b64 %%rd%u, %%rd%u, 3;\n",
            r % LONGS, a % LONGS, b % LONGS, p, not, pick(m, PREDS), a % LONGS, b % LONGS);
        break;
    case 5:
        fprintf(m->out,
                "\tselp.b16 %%h%u, %%h%u, %%h%u, %%p%u;\n\t@%s%%p%u cvt.u16.u32 %%h%u, %%r%u;\n",
                r % SHORTS, a % SHORTS, b % SHORTS, p, not, pick(m, PREDS), a % SHORTS, b);
        break;
    case 6:
        fprintf(m->out,
                "\tand.b32 %%t0, %%r%u, 7;\n\tmul.wide.u32 %%a0, %%t0, 4;\n\tadd.s64 %%a0, "
                "%%atoms, %%a0;\n"
                "\t@%s%%p%u red.global.add.u32 [%%a0], %%r%u;\n",
                r, not, p, a);
        break;
    default:
        fprintf(m->out,
                "\tset.%s %%r%u, %%r%u, %%r%u;\n\tselp.f32 %%f%u, %%f%u, 0f3F800000, %%p%u;\n",
                pick(m, 2) ? "lt.u32.s32" : "ne.s32.u32", r, a, b, a % FLOATS, b % FLOATS, p);
        break;
    }
}

/* Each kind has words of its own, so that the order does not matter; they are read where all
 * threads come together. */
static void shared_atomic_op(struct maker *m)
{
    static const char *const atoms[] = { "add.u32", "min.s32", "max.u32",
                                         "and.b32", "or.b32",  "xor.b32" };
    unsigned kind = pick(m, GM_ARRAY_LEN(atoms)), r = pick(m, INTS);
    if (pick(m, 4) == 0) {
        fprintf(m->out, "\tatom.shared.%s %%r%u, [%%mine], %%r%u;\n",
                pick(m, 2) ? "exch.b32" : "inc.u32", pick(m, INTS), r);
        return;
    }
    fprintf(m->out,
            "\tand.b32 %%t0, %%r%u, 7;\n\tshl.b32 %%t0, %%t0, 2;\n\tmov.u32 %%t1, sa;\n\tadd.s32 "
            "%%t0, %%t0, %%t1;\n",
            r);
    if (pick(m, 3) == 0)
        fprintf(m->out, "\t@%%p%u ", pick(m, PREDS));
    else
        fprintf(m->out, "\t");
    fprintf(m->out, "red.shared.%s [%%t0+%u], %%r%u;\n", atoms[kind], 32 * kind, pick(m, INTS));
}

void random_more_op(struct maker *m)
{
    switch (pick(m, 8)) {
    case 0:
        vector_op(m);
        break;
    case 1:
        vector_register_op(m);
        break;
    case 2:
    case 3:
        half_op(m);
        break;
    case 4:
    case 5:
        predicate_op(m);
        break;
    case 6:
        shared_atomic_op(m);
        break;
    default:
        m->calls ? random_call(m) : predicate_op(m);
        break;
    }
}

void random_read_shared_atomics(struct maker *m)
{
    fprintf(m->out, "\tbar.sync 0;\n\tld.shared.b32 %%r%u, [sa+%u];\n\tbar.sync 0;\n",
            pick(m, INTS), 4 * pick(m, RANDOM_SHARED_ATOMS));
}

/* One instruction for the lanes in %members. */
static void member_op(struct maker *m)
{
    static const char *const modes[] = { "any", "all", "uni" };
    static const char *const shuffles[] = { "down", "bfly", "idx" };
    static const char *const sums[] = { "add.s32", "min.u32", "max.s32", "and.b32", "xor.b32" };
    unsigned d = pick(m, INTS), r = pick(m, INTS), p = pick(m, PREDS);
    switch (pick(m, 7)) {
    case 0:
        fprintf(m->out, "\tshfl.sync.idx.b32 %%r%u|%%p%u, %%r%u, %%leader, 31, %%members;\n", d, p,
                r);
        break;
    case 6: /* from lanes that may be no members */
        fprintf(m->out, "\tshfl.sync.%s.b32 %%r%u|%%p%u, %%r%u, %u, 31, %%members;\n",
                PICK(m, shuffles), d, p, r, pick(m, 32));
        break;
    case 1:
        fprintf(m->out, "\tvote.sync.%s.pred %%p%u, %%p%u, %%members;\n", PICK(m, modes), p,
                pick(m, PREDS));
        break;
    case 2:
        fprintf(m->out, "\tvote.sync.ballot.b32 %%r%u, %%p%u, %%members;\n", d, p);
        break;
    case 3:
        fprintf(m->out, "\tand.b32 %%t0, %%r%u, 3;\n\tmatch.any.sync.b32 %%r%u, %%t0, %%members;\n",
                r, d);
        break;
    case 4:
        fprintf(m->out, "\tredux.sync.%s %%r%u, %%r%u, %%members;\n", PICK(m, sums), d, r);
        break;
    default:
        fprintf(m->out,
                "\tbar.warp.sync %%members;\n\tmatch.all.sync.b32 %%r%u|%%p%u, %%r%u, %%members;\n",
                d, p, r);
        break;
    }
}

void random_members_statement(struct maker *m)
{
    unsigned label = m->labels++, p = pick(m, PREDS), open = m->open;
    bool stay = m->stay;
    fprintf(m->out,
            "\t{\n\t.reg .b32 %%members, %%leader;\n\tvote.sync.ballot.b32 %%members, %%p%u, -1;\n"
            "\tbfind.u32 %%leader, %%members;\n\t@!%%p%u bra L%u_out;\n",
            p, p, label);
    m->together = false;
    m->stay = true;
    m->open = 0;
    for (unsigned n = 1 + pick(m, 3); n; n--) {
        member_op(m);
        if (pick(m, 2))
            random_statements(m, 1 + pick(m, 2));
    }
    m->together = true;
    m->stay = stay;
    m->open = open;
    fprintf(m->out, "L%u_out:\n\t}\n", label);
}
