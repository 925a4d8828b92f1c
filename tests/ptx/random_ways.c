/*
 * Control flow of random kernels: branches, loops that some lanes leave or begin anew, switches,
 * tangles; and what lanes do together that have parted: tiles of a warp, barriers in both sides of
 * a branch, loops in which some threads wait for each other while the rest is at a barrier.
 */
#include "random_maker.h"

static void if_statement(struct maker *m)
{
    unsigned label = m->labels++, p = random_compare(m);
    bool together = m->together;
    m->together = false;
    fprintf(m->out, "\t@%s%%p%u bra L%u_else;\n", pick(m, 2) ? "!" : "", p, label);
    random_statements(m, 1 + pick(m, 4));
    if (pick(m, 2)) {
        fprintf(m->out, "\tbra L%u_end;\nL%u_else:\n", label, label);
        random_statements(m, 1 + pick(m, 4));
        fprintf(m->out, "L%u_end:\n", label);
    } else {
        fprintf(m->out, "L%u_else:\n", label);
    }
    m->together = together;
}

/* The end of a loop, from where all lanes go back at one place, or some before others, which have
 * more to do. */
static void go_back(struct maker *m, unsigned label, unsigned counter)
{
    fprintf(m->out, "L%u_next:\n\tsub.s32 %%n%u, %%n%u, 1;\n\tsetp.ne.s32 %%q, %%n%u, 0;\n", label,
            counter, counter, counter);
    if (pick(m, 3) == 0) {
        unsigned p, open = m->open;
        bool together = m->together;
        m->together = false;
        m->open = 0; /* what follows is behind L_next */
        fprintf(m->out, "\t@!%%q bra L%u_end;\n", label);
        p = random_compare(m);
        fprintf(m->out, "\t@%%p%u bra L%u_loop;\n", p, label);
        random_statements(m, 1 + pick(m, 2));
        fprintf(m->out, "\tbra L%u_loop;\nL%u_end:\n", label, label);
        m->together = together;
        m->open = open;
    } else {
        fprintf(m->out, "\t@%%q bra L%u_loop;\nL%u_end:\n", label, label);
    }
}

/* A loop whose trip count is the same for all, or depends on the lane; perhaps with a break. */
static void loop_statement(struct maker *m)
{
    unsigned label = m->labels++, counter = m->loop_regs++;
    /* At the end of a loop around this one, that loop's label stands where this one's is to be. */
    unsigned around = m->open, covered = m->opened[around];
    bool together = m->together, uniform = pick(m, 3) == 0;
    if (uniform)
        fprintf(m->out, "\tmov.u32 %%n%u, %u;\n", counter, 1 + pick(m, 5));
    else
        fprintf(m->out, "\tand.b32 %%n%u, %%r%u, 7;\n\tadd.s32 %%n%u, %%n%u, 1;\n", counter,
                pick(m, INTS), counter, counter);
    m->together = together && uniform;
    m->loops++;
    if (m->together)
        m->open = 0; /* nobody may leave */
    else
        m->opened[m->open++] = label;
    if (together && pick(m, 3) == 0)
        fprintf(m->out, "\tbar.sync 0;\n"); /* directly before it */
    fprintf(m->out, "L%u_loop:\n", label);
    random_statements(m, 1 + pick(m, 4));
    if (!m->together && pick(m, 2)) {
        unsigned p = random_compare(m);
        fprintf(m->out, "\t@%%p%u bra L%u_end;\n", p, label);
        random_statements(m, 1 + pick(m, 2));
    }
    go_back(m, label, counter);
    m->open = around;
    m->opened[around] = covered;
    m->loops--;
    m->together = together;
}

static void switch_statement(struct maker *m)
{
    unsigned label = m->labels++, cases = 2 + pick(m, 4);
    bool together = m->together;
    m->together = false;
    fprintf(m->out, "\trem.u32 %%t0, %%r%u, %u;\nL%u_table: .branchtargets ", pick(m, INTS), cases,
            label);
    for (unsigned k = 0; k < cases; k++)
        fprintf(m->out, "%sL%u_case%u", k ? ", " : "", label, k);
    fprintf(m->out, ";\n\tbrx.idx %%t0, L%u_table;\n", label);
    for (unsigned k = 0; k < cases; k++) {
        fprintf(m->out, "L%u_case%u:\n", label, k);
        random_statements(m, 1 + pick(m, 2));
        if (pick(m, 3))
            fprintf(m->out, "\tbra L%u_end;\n", label);
    }
    fprintf(m->out, "L%u_end:\n", label);
    m->together = together;
}

/* Two blocks that jump into each other from two entries: no structure, but an end. */
static void tangle_statement(struct maker *m)
{
    unsigned label = m->labels++, fuel = m->loop_regs++, p = random_compare(m);
    bool together = m->together;
    m->together = false;
    fprintf(m->out, "\tmov.u32 %%n%u, %u;\n\t@%%p%u bra L%u_b;\nL%u_a:\n", fuel, 2 + pick(m, 6), p,
            label, label);
    random_statements(m, 1 + pick(m, 2));
    p = random_compare(m);
    fprintf(m->out,
            "\tsub.s32 %%n%u, %%n%u, 1;\n\tsetp.le.s32 %%q, %%n%u, 0;\n\t@%%q bra L%u_end;\n", fuel,
            fuel, fuel, label);
    fprintf(m->out, "\t@%%p%u bra L%u_a;\nL%u_b:\n", p, label, label);
    random_statements(m, 1 + pick(m, 2));
    p = random_compare(m);
    fprintf(
        m->out,
        "\tsub.s32 %%n%u, %%n%u, 1;\n\tsetp.gt.s32 %%q, %%n%u, 0;\n\tand.pred %%q, %%q, %%p%u;\n",
        fuel, fuel, fuel, p);
    fprintf(m->out, "\t@%%q bra L%u_a;\nL%u_end:\n", label, label);
    m->together = together;
}

/* Out of one of the loops around this place, or to its next round, for some lanes. */
void random_jump(struct maker *m)
{
    if (m->open == 0)
        return;
    unsigned label = m->opened[pick(m, m->open)], p = random_compare(m);
    fprintf(m->out, "\t@%s%%p%u bra L%u_%s;\n", pick(m, 2) ? "!" : "", p, label,
            pick(m, 2) ? "end" : "next");
}

void random_way(struct maker *m)
{
    unsigned kind = pick(m, 8);
    if (kind < 4 || m->loops >= 3)
        if_statement(m);
    else if (kind < 6)
        loop_statement(m);
    else
        pick(m, 2) ? tangle_statement(m) : switch_statement(m);
}

/* One instruction for the lanes of a tile; %first is its first lane. */
static void tile_op(struct maker *m, unsigned size)
{
    static const char *const modes[] = { "up", "down", "bfly", "idx" };
    static const char *const sums[] = { "add.s32", "min.s32", "max.u32", "or.b32" };
    unsigned d = pick(m, INTS), r = pick(m, INTS), p = pick(m, PREDS), mode = pick(m, 4);
    switch (pick(m, 5)) {
    case 0:
    case 1:
        fprintf(m->out, "\tshfl.sync.%s.b32 %%r%u|%%p%u, %%r%u, %u, %u, %%tile;\n", modes[mode], d,
                p, r, pick(m, size), (32 - size) << 8 | (mode ? 31 : 0));
        break;
    case 2:
        fprintf(m->out, "\tvote.sync.ballot.b32 %%r%u, %%p%u, %%tile;\n", d, p);
        break;
    case 3:
        fprintf(m->out, "\tredux.sync.%s %%r%u, %%r%u, %%tile;\n", PICK(m, sums), d, r);
        break;
    default:
        fprintf(m->out,
                "\tshfl.sync.idx.b32 %%t0, %%r%u, %%r%u, %u, %%tile;\n\tmatch.any.sync.b32 %%r%u, "
                "%%t0, %%tile;\n",
                r, d, (32 - size) << 8 | 31, d);
        break;
    }
}

static void tile_ops(struct maker *m, unsigned size)
{
    for (unsigned n = 1 + pick(m, 3); n; n--) {
        tile_op(m, size);
        if (pick(m, 2))
            random_statements(m, 1 + pick(m, 2));
    }
}

/* Tiles of a warp go different ways, or so many rounds of a loop, each one as a whole. */
void random_tiles_statement(struct maker *m)
{
    unsigned label = m->labels++, shift = 1 + pick(m, 4), size = 1u << shift, open = m->open;
    bool stay = m->stay, loop = pick(m, 3) == 0;
    fprintf(m->out,
            "\t{\n\t.reg .b32 %%tile, %%first, %%count;\n\t.reg .pred %%go;\n\tmov.u32 %%count, "
            "%%laneid;\n\tand.b32 %%first, %%count, %u;\n\tmov.u32 %%tile, 0x%x;\n\tshl.b32 "
            "%%tile, %%tile, %%first;\n\tshr.u32 %%count, %%first, %u;\n",
            32 - size, (1u << size) - 1, shift);
    m->together = false;
    m->stay = true;
    m->open = 0;
    if (loop) {
        fprintf(m->out, "\tand.b32 %%count, %%count, 3;\nL%u_loop:\n", label);
        tile_ops(m, size);
        fprintf(m->out,
                "\tsub.s32 %%count, %%count, 1;\n\tsetp.ge.s32 %%go, %%count, 0;\n"
                "\t@%%go bra L%u_loop;\n\t}\n",
                label);
    } else {
        fprintf(m->out,
                "\tand.b32 %%count, %%count, %u;\n\tsetp.eq.s32 %%go, %%count, 0;\n"
                "\t@%%go bra L%u_else;\n",
                1 + pick(m, 3), label);
        tile_ops(m, size);
        fprintf(m->out, "\tbra L%u_end;\nL%u_else:\n", label, label);
        if (pick(m, 2))
            tile_ops(m, size);
        fprintf(m->out, "L%u_end:\n\t}\n", label);
    }
    m->together = true;
    m->stay = stay;
    m->open = open;
}

/* One side of a branch; each side waits for the warp by itself. */
static void sync_side(struct maker *m)
{
    unsigned r = pick(m, INTS), d = pick(m, INTS);
    if (pick(m, 2))
        random_statements(m, 1 + pick(m, 2));
    fprintf(m->out,
            "\tst.shared.b32 [%%mine], %%r%u;\n\tbar.warp.sync -1;\n"
            "\tld.shared.b32 %%r%u, [%%other];\n\tbar.warp.sync -1;\n",
            r, d);
}

/* Lanes of a warp exchange values though they have parted. Only where all threads of the block
 * come. */
void random_parted_sync(struct maker *m)
{
    unsigned label = m->labels++, open = m->open, sides = 1 + pick(m, 2);
    bool stay = m->stay;
    fprintf(m->out,
            "\t{\n\t.reg .b32 %%other;\n\tbar.sync 0;\n\txor.b32 %%t0, %%me, %u;\n\tsetp.lt.u32 "
            "%%q, %%t0, %%all;\n\tselp.b32 %%t0, %%t0, %%me, %%q;\n\tshl.b32 %%t0, %%t0, 2;\n"
            "\tmov.u32 %%t1, sm;\n\tadd.s32 %%other, %%t0, %%t1;\n",
            1 + pick(m, 31));
    m->together = false;
    m->stay = true;
    m->open = 0;
    for (unsigned k = 0; k < sides; k++) {
        fprintf(m->out, "\t@%%p%u bra L%u_side%u;\n", random_compare(m), label, k);
        sync_side(m);
        fprintf(m->out, "\tbra L%u_end;\nL%u_side%u:\n", label, label, k);
    }
    sync_side(m);
    fprintf(m->out, "L%u_end:\n\tbar.sync 0;\n\t}\n", label);
    m->together = true;
    m->stay = stay;
    m->open = open;
}

/* Barriers that are more than a wait, or stand on both sides of a branch. Only where all threads of
 * the block come. */
void random_barrier_op(struct maker *m)
{
    unsigned label = m->labels++, r = pick(m, INTS), p = pick(m, PREDS);
    if (m->waits && m->exited) {
        fprintf(m->out, "\tbar.sync 0;\n");
        return;
    }
    switch (m->exited ? 0 : pick(m, 8) | (m->waits ? 6 : 0)) {
    case 0:
    case 1:
        fprintf(m->out, "\tbar.warp.sync -1;\n\tbar.sync 1;\n");
        break;
    case 2:
    case 3:
        fprintf(m->out, "\tbarrier.red.popc.u32 %%r%u, 0, %%p%u;\n", r, p);
        break;
    case 4:
    case 5:
        fprintf(m->out, "\tbarrier.red.%s.pred %%p%u, 0, %%p%u;\n", pick(m, 2) ? "and" : "or",
                pick(m, PREDS), p);
        break;
    case 6:
        fprintf(m->out,
                "\tsetp.lt.u32 %%q, %%me, %u;\n\t@%%q bra L%u_else;\n\tbarrier.sync 0;\n"
                "\tbra L%u_end;\nL%u_else:\n\tbarrier.sync 0;\nL%u_end:\n",
                pick(m, 80), label, label, label, label);
        break;
    default:
        fprintf(m->out,
                "\t@%%p%u bra L%u_else;\n\tadd.s32 %%r%u, %%r%u, 1;\n\tbarrier.sync 0;\n"
                "\tbra L%u_end;\nL%u_else:\n\tbarrier.sync 0;\nL%u_end:\n",
                p, label, r, r, label, label, label);
        break;
    }
}

/* Some threads, say thread 0 of each warp, count themselves and poll until all of them have: a
 * barrier as programs make for a grid. Others are at a barrier behind that, or go on. */
void random_poll_statement(struct maker *m)
{
    static const unsigned steps[] = { 32, 32, 16, 7, 3, 1000 };
    unsigned label = m->labels++, at = 4 * m->polls++, step = PICK(m, steps), open = m->open;
    unsigned first = pick(m, 2) ? 0 : pick(m, GM_MIN(step, 40u));
    bool stay = m->stay;
    if (pick(m, 2))
        fprintf(m->out, "\tbar.sync 0;\n");
    fprintf(m->out,
            "\t{\n\t.reg .b32 %%turn, %%seen;\n\trem.u32 %%t0, %%me, %u;\n"
            "\tsetp.ne.u32 %%q, %%t0, %u;\n\t@%%q bra L%u_come;\n"
            "\tadd.u32 %%t1, %%all, %u;\n\tdiv.u32 %%t1, %%t1, %u;\n"
            "\tatom.shared.add.u32 %%turn, [po+%u], 1;\n\tdiv.u32 %%turn, %%turn, %%t1;\n"
            "\tmad.lo.u32 %%turn, %%turn, %%t1, %%t1;\n",
            step, first, label, step - 1 - first, step, at);
    m->together = false;
    m->stay = true;
    m->open = 0;
    fprintf(m->out, "L%u_look:\n", label);
    fprintf(m->out,
            "\tld.volatile.shared.u32 %%seen, [po+%u];\n\tsetp.lt.u32 %%q, %%seen, %%turn;\n"
            "\t@%%q bra L%u_look;\n",
            at, label);
    if (pick(m, 2))
        random_statements(m, 1 + pick(m, 2));
    fprintf(m->out, "L%u_come:\n", label);
    if (pick(m, 3))
        fprintf(m->out, "\tbar.sync 0;\n");
    fprintf(m->out, "\t}\n");
    m->together = true;
    m->stay = stay;
    m->open = open;
}
