/*
 * What the analyses say about small kernels written for one question each.
 */
#include <criterion/criterion.h>

#include <errno.h>

#include "common.h"
#include "device/soft/ir/clones.h"

/* A kernel being looked at. */
struct subject {
    struct ir_module *m;
    const struct ir_fn *fn;
    struct ir_analysis *a;
};

static struct subject look(const char *body, const struct ir_analyse_options *opt)
{
    char *text = ptx_kernel(body);
    struct ptx_error err;
    struct subject s = { .m = ptx_try(text, &err) };
    cr_assert(s.m != NULL, "%u:%u %s\n%s", err.line, err.column, err.text, text);
    s.fn = &s.m->fns[0];
    cr_assert(ir_analyse(s.m, 0, opt, &s.a) == 0);
    free(text);
    return s;
}

static void done(struct subject *s)
{
    ir_analysis_destroy(s->a);
    ir_module_destroy(s->m);
}

/* Register by its name in the text, as "%r3". */
static uint32_t reg_index(const struct subject *s, const char *name)
{
    for (uint32_t r = 0; r < s->fn->reg_count; r++) {
        char full[64];
        const struct ir_reg *reg = &s->fn->regs[r];
        snprintf(full, sizeof(full), "%s%.0u", ir_name(s->m, reg->name), reg->number);
        if (reg->number == 0)
            snprintf(full, sizeof(full), "%s0", ir_name(s->m, reg->name));
        if (strcmp(full, name) == 0)
            return r;
    }
    cr_assert_fail("no register %s", name);
    return 0;
}

static const struct ir_reg_info *reg(const struct subject *s, const char *name)
{
    return &s->a->regs[reg_index(s, name)];
}

static enum ir_shape shape(const struct subject *s, const char *name)
{
    return reg(s, name)->shape;
}

/* Frontier of a block as text: "3,5". */
static const char *frontier(const struct subject *s, uint32_t block)
{
    static char text[256];
    struct ir_list list = s->a->blocks[block].frontier;
    text[0] = '\0';
    for (uint32_t k = 0; k < list.count; k++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u", k ? "," : "",
                 s->a->pool[list.first + k]);
    return text;
}

static const char *order(const struct subject *s)
{
    static char text[512];
    text[0] = '\0';
    for (uint32_t k = 0; k < s->a->order_count; k++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u", k ? "," : "",
                 s->a->order[k]);
    return text;
}

static const struct ir_analyse_options rows = { .rows = true };

Test(ir_analysis, shapes_of_special_registers)
{
    static const char body[] =
        "mov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %laneid;"
        "mov.u32 %r4, %ntid.x; mov.u32 %r5, %warpid;";
    struct ir_analyse_options none = { 0 }, square = { .ntid = { 16, 16, 1 } },
                              wide = { .ntid = { 32, 8, 1 } };
    struct subject s = look(body, &rows);
    cr_expect(shape(&s, "%r0") == IR_AFFINE && reg(&s, "%r0")->stride == 1 &&
              !reg(&s, "%r0")->block_uniform);
    cr_expect(shape(&s, "%r1") == IR_UNIFORM && !reg(&s, "%r1")->block_uniform);
    cr_expect(shape(&s, "%r2") == IR_UNIFORM && reg(&s, "%r2")->block_uniform);
    cr_expect(shape(&s, "%r3") == IR_AFFINE && reg(&s, "%r3")->block_uniform);
    cr_expect(shape(&s, "%r5") == IR_UNIFORM && !reg(&s, "%r5")->block_uniform);
    done(&s);
    s = look(body, &none);
    cr_expect(shape(&s, "%r0") == IR_VARYING && shape(&s, "%r1") == IR_VARYING);
    done(&s);
    s = look(body, &square);
    cr_expect(shape(&s, "%r0") == IR_PATTERN && reg(&s, "%r0")->block_uniform);
    cr_expect(shape(&s, "%r1") == IR_PATTERN && !reg(&s, "%r1")->block_uniform);
    cr_expect(reg(&s, "%r4")->is_const && reg(&s, "%r4")->value == 16);
    done(&s);
    s = look(body, &wide);
    cr_expect(shape(&s, "%r0") == IR_AFFINE && reg(&s, "%r0")->block_uniform);
    cr_expect(shape(&s, "%r1") == IR_UNIFORM && !reg(&s, "%r1")->block_uniform);
    done(&s);
}

/* What lane `lane` has more than lane 0. */
static int32_t apart(const struct subject *s, const char *name, unsigned lane)
{
    const struct ir_pattern *p = &s->a->patterns[reg(s, name)->pattern - 1];
    return p->at[lane] - p->at[0];
}

Test(ir_analysis, patterns)
{
    static const char body[] =
        ".reg .b32 %q<4>; mov.u32 %r0, %tid.x; mov.u32 %q0, %ctaid.x;"
        "xor.b32 %r1, %r0, 5; and.b32 %r2, %r0, 3; shl.b32 %r3, %r0, 1; sub.s32 %r4, %r3, %r2;"
        "mul.wide.s32 %rd0, %r4, 4; shr.u32 %r5, %r4, 2; and.b32 %r6, %r0, %q0;"
        "add.s32 %r7, %r0, %q0; xor.b32 %q3, %r7, 1; xor.b32 %q1, %r0, 100;"
        "@%p0 xor.b32 %q2, %r0, 3;";
    struct ir_analyse_options line = { .ntid = { 256, 1, 1 } }, none = { 0 };
    struct subject s = look(body, &line);
    cr_expect(shape(&s, "%r1") == IR_PATTERN && shape(&s, "%r4") == IR_PATTERN);
    for (unsigned l = 0; l < 32; l++) {
        int32_t lane = (int32_t)l;
        cr_expect(apart(&s, "%r1", l) == (lane ^ 5) - 5);
        cr_expect(apart(&s, "%r4", l) == 2 * lane - lane % 4);
        cr_expect(apart(&s, "%rd0", l) == 4 * (2 * lane - lane % 4));
        cr_expect(apart(&s, "%r5", l) == (2 * lane - lane % 4) / 4);
        cr_expect(apart(&s, "%q1", l) == (lane ^ 4) - 4);
    }
    cr_expect(shape(&s, "%r0") == IR_AFFINE);
    /* Not known now; no multiple of a power of two below lane 0's; not the same definition for all
     * lanes. */
    cr_expect(shape(&s, "%r6") == IR_VARYING && shape(&s, "%q3") == IR_VARYING);
    cr_expect(shape(&s, "%q2") == IR_VARYING);
    done(&s);
    s = look(body, &none); /* rows may begin in the middle of a warp */
    cr_expect(shape(&s, "%r1") == IR_VARYING && shape(&s, "%r4") == IR_VARYING);
    done(&s);
}

Test(ir_analysis, affine_arithmetic)
{
    struct subject s = look(
        "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; add.s32 %r2, %r0, %r1; shl.b32 %r3, %r2, 2;"
        "sub.s32 %r4, %r1, %r3; mul.lo.s32 %r5, %r4, %r1; sub.s32 %r6, %r2, %r0; and.b32 %r7, %r0, "
        "31;"
        "mov.b32 %r1, -4; mul.wide.s32 %rd0, %r0, -4; mad.wide.u32 %rd1, %r0, 8, %rd0; cvt.u64.u32 "
        "%rd2, %r0;"
        "ld.param.u64 %rd3, [a]; add.s64 %rd4, %rd3, %rd1; cvt.u32.u64 %r3, %rd4; neg.s64 %rd5, "
        "%rd4;",
        &rows);
    cr_expect(reg(&s, "%r2")->shape == IR_AFFINE && reg(&s, "%r2")->stride == 1);
    cr_expect(reg(&s, "%r4")->shape == IR_AFFINE || reg(&s, "%r4")->shape == IR_VARYING);
    cr_expect(shape(&s, "%r5") == IR_VARYING); /* the factor is not known now */
    cr_expect(shape(&s, "%r6") == IR_UNIFORM); /* the thread number cancels */
    cr_expect(shape(&s, "%r7") == IR_AFFINE && reg(&s, "%r7")->stride == 1 &&
              reg(&s, "%r7")->block_uniform);
    cr_expect(reg(&s, "%rd0")->stride == -4 && !reg(&s, "%rd0")->may_wrap);
    cr_expect(reg(&s, "%rd1")->stride == 4 && !reg(&s, "%rd1")->may_wrap);
    cr_expect(reg(&s, "%rd2")->stride == 1);
    cr_expect(reg(&s, "%rd4")->stride == 4 && reg(&s, "%rd5")->stride == -4);
    done(&s);
}

/* ctaid * ntid + tid may wrap in 32 bits, unless the caller promises a small grid. */
Test(ir_analysis, wrap)
{
    static const char body[] = "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, "
                               "%ntid.x;\nmad.lo.s32 %r3, %r1, %r2, %r0;\n"
                               "mul.wide.s32 %rd0, %r3, 4;\nmul.lo.s32 %r4, %r2, %r1; add.s32 %r5, "
                               "%r0, %r4; cvt.u64.u32 %rd1, %r5;\n"
                               "ld.param.u32 %r6, [n]; add.s32 %r7, %r6, %r0; mul.wide.u32 %rd2, "
                               "%r7, 4; .reg .b32 %last; ld.global.u32 "
                               "%last, [%rd2];";
    struct ir_analyse_options small = { .rows = true, .small_grid = true };
    struct subject s = look(body, &rows);
    cr_expect(reg(&s, "%rd0")->shape == IR_AFFINE && reg(&s, "%rd0")->may_wrap);
    cr_expect(reg(&s, "%rd1")->may_wrap && !s.a->used_small_grid);
    done(&s);
    s = look(body, &small);
    cr_expect(reg(&s, "%rd0")->shape == IR_AFFINE && !reg(&s, "%rd0")->may_wrap);
    cr_expect(reg(&s, "%rd1")->shape == IR_AFFINE && !reg(&s, "%rd1")->may_wrap &&
              s.a->used_small_grid);
    /* An offset from a parameter can be anything. */
    cr_expect(reg(&s, "%rd2")->shape == IR_AFFINE && reg(&s, "%rd2")->may_wrap);
    unsigned marked = 0;
    for (uint32_t i = 0; i < s.fn->instr_count; i++) {
        if (s.a->instrs[i].widen) {
            cr_expect(s.a->instrs[i].widen == IR_WIDEN_UNSIGNED && s.a->instrs[i].widen_src == 0);
            marked++;
        }
        if (s.fn->instrs[i].op == IR_OP_LD && s.fn->instrs[i].space == IR_SPACE_GLOBAL)
            cr_expect(s.a->instrs[i].address == IR_AFFINE && s.a->instrs[i].address_stride == 4 &&
                      s.a->instrs[i].address_may_wrap);
    }
    cr_expect(marked == 1);
    done(&s);
}

/* if (tid < n) x = 1; else x = 2; use(x) */
Test(ir_analysis, thread_numbers_by_warps)
{
    struct subject s =
        look("mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; shr.u32 %r2, %r0, 4; and.b32 %r3, %r0, 96;"
             "and.b32 %r4, %r0, 48; setp.lt.u32 %p0, %r0, 64; setp.gt.u32 %p1, %r0, 31;"
             "setp.lt.u32 %p2, %r0, 33; setp.eq.s32 %p3, %r0, 32; or.b32 %r5, %r0, 31;"
             "or.b32 %r6, %r0, 15; xor.b32 %r7, %r0, 31;",
             &rows);
    cr_expect(shape(&s, "%r1") == IR_UNIFORM && !reg(&s, "%r1")->block_uniform);
    cr_expect(shape(&s, "%r2") == IR_PATTERN);
    cr_expect(shape(&s, "%r3") == IR_UNIFORM);
    cr_expect(shape(&s, "%r4") == IR_PATTERN);
    cr_expect(shape(&s, "%p0") == IR_UNIFORM && shape(&s, "%p1") == IR_UNIFORM);
    cr_expect(shape(&s, "%p2") == IR_VARYING && shape(&s, "%p3") == IR_VARYING);
    cr_expect(shape(&s, "%r5") == IR_UNIFORM && !reg(&s, "%r5")->block_uniform);
    cr_expect(shape(&s, "%r6") != IR_UNIFORM && shape(&s, "%r7") != IR_UNIFORM);
    done(&s);
}

/* The warp's number in the grid, if the block's size is a multiple of the warp's. */
Test(ir_analysis, thread_numbers_in_the_grid)
{
    static const char body[] =
        ".reg .b32 %q<8>; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;"
        "mad.lo.s32 %r3, %r1, %r2, %r0; shr.u32 %r4, %r3, 5; and.b32 %r5, %r3, 31;"
        "setp.lt.u32 %p0, %r3, 96; cvt.u64.u32 %rd0, %r3; shr.u64 %rd1, %rd0, 6;"
        "shl.b32 %r6, %r4, 5; or.b32 %r7, %r6, %r5; mul.wide.u32 %rd2, %r7, 4;"
        "or.b32 %q0, %r4, %r5; shr.u32 %q1, %r3, 4;"
        /* Signed division by 32: not of what may be negative. */
        "shr.s32 %q2, %r3, 31; shr.u32 %q3, %q2, 27; add.s32 %q4, %r3, %q3; shr.s32 %q5, %q4, 5;"
        /* over the grid */
        "mov.u32 %q6, %r3; L: shr.u32 %q7, %q6, 5; add.s32 %q6, %q6, %r2;"
        "setp.lt.u32 %p1, %q7, %r1; @%p1 bra L;";
    struct ir_analyse_options even = { .ntid = { 64, 1, 1 } },
                              small = { .ntid = { 64, 1, 1 }, .small_grid = true },
                              odd = { .ntid = { 50, 1, 1 } };
    struct subject s = look(body, &even);
    cr_expect(shape(&s, "%r4") == IR_UNIFORM && !reg(&s, "%r4")->block_uniform);
    cr_expect(shape(&s, "%r5") == IR_AFFINE && reg(&s, "%r5")->block_uniform);
    cr_expect(shape(&s, "%p0") == IR_UNIFORM && shape(&s, "%rd1") == IR_UNIFORM);
    cr_expect(shape(&s, "%rd0") == IR_AFFINE && !reg(&s, "%rd0")->may_wrap);
    cr_expect(shape(&s, "%r7") == IR_AFFINE && reg(&s, "%r7")->stride == 1);
    cr_expect(reg(&s, "%rd2")->stride == 4 && !reg(&s, "%rd2")->may_wrap);
    cr_expect(shape(&s, "%q0") == IR_VARYING && shape(&s, "%q1") != IR_UNIFORM);
    cr_expect(shape(&s, "%q5") != IR_UNIFORM && !s.a->used_small_grid);
    cr_expect(shape(&s, "%q7") == IR_UNIFORM && shape(&s, "%p1") == IR_UNIFORM);
    done(&s);
    s = look(body, &small);
    cr_expect(shape(&s, "%q5") == IR_UNIFORM && s.a->used_small_grid);
    done(&s);
    s = look(body, &odd); /* a block may begin in the middle of 32 numbers */
    cr_expect(shape(&s, "%r4") == IR_VARYING && shape(&s, "%p0") == IR_VARYING);
    cr_expect(shape(&s, "%q7") == IR_VARYING);
    done(&s);
    s = look(body, &rows);
    cr_expect(shape(&s, "%r4") == IR_VARYING && shape(&s, "%r7") == IR_VARYING);
    done(&s);
}

Test(ir_analysis, divergent_if)
{
    struct subject s =
        look("mov.u32 %r0, %tid.x; ld.param.u32 %r1, [n]; mov.b32 %r4, 5; setp.lt.u32 %p0, %r0, "
             "%r1; @%p0 bra T;\n"
             "mov.b32 %r2, 2; mov.b32 %r3, 3; add.s32 %r3, %r3, 1; bra J; T: mov.b32 %r2, 1;\n"
             "J: add.s32 %r2, %r2, %r4; st.global.u32 [64], %r2;",
             &rows);
    /* B0; B1 else; B2 T; B3 J */
    cr_expect(s.a->blocks[0].divergent && !s.a->blocks[0].masked);
    cr_expect_str_eq(order(&s), "0,1,2,3");
    cr_expect_str_eq(frontier(&s, 1), "2");
    cr_expect_str_eq(frontier(&s, 2), "3");
    cr_expect(!s.a->blocks[3].masked && s.a->blocks[0].ipdom == 3 && s.a->blocks[3].idom == 0);
    cr_expect(shape(&s, "%p0") == IR_VARYING);
    /* x is blended where the other side's value waits; r3 lives on one side only and stays a
     * scalar. */
    cr_expect(shape(&s, "%r2") == IR_VARYING && shape(&s, "%r3") == IR_UNIFORM &&
              shape(&s, "%r4") == IR_UNIFORM);
    for (uint32_t i = 0; i < s.fn->instr_count; i++) {
        const struct ir_instr *in = &s.fn->instrs[i];
        bool in_t = i >= s.fn->blocks[2].first && i < s.fn->blocks[2].first + s.fn->blocks[2].count;
        if (in->op == IR_OP_MOV)
            cr_expect(s.a->instrs[i].blend == (in_t ? 1 : 0), "line %u", in->line);
    }
    done(&s);
}

/* if (tid >= n) return; */
Test(ir_analysis, early_exit)
{
    struct subject s = look(
        "mov.u32 %r0, %tid.x; ld.param.u32 %r1, [n]; setp.ge.u32 %p0, %r0, %r1; @%p0 bra OUT;\n"
        "mov.b32 %r2, 2; st.global.u32 [64], %r2; OUT: ret;",
        &rows);
    cr_expect(s.a->blocks[0].early_exit && s.a->blocks[0].exit_taken && !s.a->blocks[0].divergent);
    cr_expect(!s.a->blocks[1].masked && s.a->blocks[2].only_returns &&
              shape(&s, "%r2") == IR_UNIFORM);
    cr_expect(s.a->region_count == 1 && !s.a->regions[0].jammable);
    done(&s);
    /* The other way round, through a chain of jumps, and as a guarded exit. */
    s = look(
        "mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 7; @%p0 bra IN; bra.uni A; A: bra B; B: ret;\n"
        "IN: @%p0 exit; st.global.u32 [64], 1;",
        &rows);
    cr_expect(s.a->blocks[0].early_exit && !s.a->blocks[0].exit_taken);
    cr_expect(s.a->blocks[4].early_exit && !s.a->blocks[4].divergent);
    for (uint32_t b = 0; b < s.fn->block_count; b++)
        cr_expect(!s.a->blocks[b].masked);
    done(&s);
}

/* for (i = tid; i < n; i += 32): lanes leave at different times. */
Test(ir_analysis, varying_trip_count)
{
    struct subject s = look(
        "mov.u32 %r0, %tid.x; ld.param.u32 %r1, [n]; mov.b32 %r2, 0; mov.b32 %r3, 0;\n"
        "L: add.s32 %r2, %r2, 1; add.s32 %r0, %r0, 32; add.s32 %r4, %r2, %r2; setp.lt.u32 %p0, "
        "%r0, %r1; @%p0 bra L;\n"
        "st.global.u32 [64], %r2; st.global.u32 [68], %r3; ret;",
        &rows);
    cr_expect(s.a->blocks[1].divergent);
    cr_expect_str_eq(frontier(&s, 1), "2");
    cr_expect(s.a->blocks[1].loop == 1 && s.a->blocks[1].loop_depth == 1 &&
              s.a->blocks[2].loop == IR_NONE);
    cr_expect(shape(&s, "%r2") == IR_VARYING); /* the count each lane left with */
    cr_expect(shape(&s, "%r0") == IR_AFFINE);  /* not used after the loop */
    cr_expect(shape(&s, "%r4") == IR_UNIFORM || shape(&s, "%r4") == IR_VARYING);
    cr_expect(shape(&s, "%r3") == IR_UNIFORM);
    done(&s);
    /* A uniform trip count leaves everything scalar. */
    s = look("ld.param.u32 %r1, [n]; mov.b32 %r2, 0;\nL: add.s32 %r2, %r2, 1; setp.lt.u32 %p0, "
             "%r2, %r1; @%p0 bra L;\n"
             "st.global.u32 [64], %r2;",
             &rows);
    cr_expect(!s.a->blocks[1].divergent && shape(&s, "%r2") == IR_UNIFORM &&
              reg(&s, "%r2")->block_uniform);
    cr_expect(s.a->regions[0].jammable);
    done(&s);
}

/* The loop's exits come after the loop, wherever they stand in the text; nested loops stay
 * contiguous. */
Test(ir_analysis, loops_are_contiguous)
{
    struct subject s = look("bra H; X: st.global.u32 [64], 1; ret; Y: st.global.u32 [64], 2; ret;\n"
                            "H: ld.global.u32 %r0, [0]; setp.eq.u32 %p0, %r0, 0; @%p0 bra A;\n"
                            "setp.eq.u32 %p1, %r0, 1; @%p1 bra Y; bra D;\n"
                            "A: setp.eq.u32 %p2, %r0, 2; @%p2 bra X;\n"
                            "I: ld.global.u32 %r1, [0]; setp.eq.u32 %p3, %r1, 3; @%p3 bra "
                            "I;\nsetp.eq.u32 %p4, %r1, 4; @%p4 bra Y;\n"
                            "D: bra H;",
                            &rows);
    uint32_t first = UINT32_MAX, last = 0, members = 0;
    for (uint32_t n = 0; n < s.a->order_count; n++)
        if (s.a->blocks[s.a->order[n]].loop != IR_NONE) {
            first = GM_MIN(first, n);
            last = GM_MAX(last, n);
            members++;
        }
    cr_expect(members >= 6 && last - first + 1 == members, "%s", order(&s));
    uint32_t deepest = 0;
    for (uint32_t b = 0; b < s.fn->block_count; b++)
        deepest = GM_MAX(deepest, s.a->blocks[b].loop_depth);
    cr_expect(deepest == 2 && !s.a->irreducible);
    done(&s);
}

Test(ir_analysis, irreducible)
{
    struct subject s = look(
        "mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 3; @%p0 bra B;\n"
        "A: add.s32 %r1, %r0, 1; setp.lt.u32 %p1, %r1, %r0;\nB: add.s32 %r0, %r0, 1; setp.gt.u32 "
        "%p2, %r0, 99; @!%p2 bra A;\n"
        "st.global.u32 [64], %r0;",
        &rows);
    cr_expect(s.a->irreducible);
    /* Threads that wait while a block runs have lower priority. */
    for (uint32_t b = 0; b < s.fn->block_count; b++) {
        struct ir_list f = s.a->blocks[b].frontier;
        for (uint32_t k = 0; k < f.count; k++)
            cr_expect(s.a->blocks[s.a->pool[f.first + k]].priority > s.a->blocks[b].priority);
    }
    cr_expect(s.a->blocks[2].masked && s.a->blocks[2].divergent);
    done(&s);
}

/* Registers over a barrier in a loop. */
Test(ir_analysis, regions)
{
    struct subject s =
        look("mov.u32 %r0, %tid.x; ld.param.u32 %r1, [n]; mov.b32 %r2, 0; mov.b32 %r3, 7;\n"
             "L: st.shared.u32 [0], %r0; bar.sync 0;\nld.shared.u32 %r4, [4]; add.s32 %r2, %r2, 1;"
             "setp.lt.u32 %p0, %r2, %r1; bar.sync 0;\n@%p0 bra L;\nst.global.u32 [64], %r2;",
             &rows);
    cr_expect(s.a->region_count == 3 && s.a->has_barrier && !s.a->divergent_barrier);
    const struct ir_region *r = s.a->regions;
    cr_expect(r[0].start == 0 && r[0].live_in.count == 0 && r[0].jammable && r[1].jammable);
    uint32_t second = s.a->resume[1], third = s.a->resume[2];
    cr_expect(second == 1 && third == 2);
    /* Over the first barrier: r0, r1, r2; r3 and r4 are not needed. */
    cr_expect(r[1].live_in.count == 3);
    /* Over the second: r0, r1, r2 and p0. */
    cr_expect(r[2].live_in.count == 4);
    for (uint32_t k = 1; k < r[2].live_in.count; k++)
        cr_expect(s.a->pool[r[2].live_in.first + k] > s.a->pool[r[2].live_in.first + k - 1]);
    /* The third region goes round the loop to the first barrier, or to the end. */
    cr_expect(r[2].blocks.count == 3 && r[1].blocks.count == 1);
    done(&s);
}

Test(ir_analysis, divergent_barriers)
{
    static const char *const bad[] = {
        ("mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 16; @%p0 bra A;\nbar.sync 0; "
         "A: st.global.u32 [64], 1;"),
        "mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 16;\n@%p0 bar.sync 0;",
        "bar.arrive\n1, 64;",
        "st.global.u32 [0], 1;\nbar.sync 0, 64;",
    };
    for (size_t i = 0; i < GM_ARRAY_LEN(bad); i++) {
        struct subject s = look(bad[i], &rows);
        cr_expect(s.a->divergent_barrier, "%s", bad[i]);
        cr_expect(s.a->divergent_barrier_line == (i == 2 ? 5 : 6), "%s", bad[i]);
        done(&s);
    }
    /* After an early exit, or where only whole warps differ, barriers are fine. */
    struct subject s = look("mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 16; @%p0 ret;\nbar.sync 0; "
                            "st.global.u32 [64], 1;",
                            &rows);
    cr_expect(!s.a->divergent_barrier);
    done(&s);
    s = look("mov.u32 %r0, %warpid; setp.eq.u32 %p0, %r0, 0; @%p0 bra A;\nst.global.u32 [0], 1; A: "
             "bar.sync 0;",
             &rows);
    cr_expect(!s.a->divergent_barrier && !s.a->regions[0].jammable && s.a->regions[1].jammable);
    done(&s);
}

/* What only some warps wrote is not the same for the block, though it is uniform in each warp. */
Test(ir_analysis, block_uniform)
{
    struct ir_analyse_options block = { .ntid = { 32, 4, 1 } };
    struct subject s = look("mov.u32 %r0, %tid.y; mov.b32 %r1, 1; mov.b32 %r2, 1; setp.eq.u32 %p0, "
                            "%r0, 0; @%p0 bra A;\n"
                            "mov.b32 %r1, 2; ld.param.u32 %r3, [n];\nA: add.s32 %r4, %r1, %r2; "
                            "st.global.u32 [64], %r4; "
                            "st.global.u32 [68], %r3;",
                            &block);
    cr_expect(!s.a->blocks[0].divergent);
    cr_expect(shape(&s, "%r1") == IR_UNIFORM && !reg(&s, "%r1")->block_uniform);
    cr_expect(reg(&s, "%r2")->block_uniform && !reg(&s, "%r3")->block_uniform &&
              !reg(&s, "%r4")->block_uniform);
    cr_expect(!s.a->regions[0].jammable);
    done(&s);
}

Test(ir_analysis, lanes_and_memory)
{
    struct subject s = look("ld.param.u64 %rd0, [a]; ld.global.u32 %r0, [%rd0]; ld.local.u32 %r1, "
                            "[8]; atom.global.add.u32 %r2, [%rd0], "
                            "1;\n"
                            "setp.eq.u32 %p0, %r0, 1; setp.eq.u32 %p1, %r1, 1; "
                            "vote.sync.ballot.b32 %r3, %p1, -1; activemask.b32 %r4;\n"
                            "shfl.sync.idx.b32 %r5, %r1, 0, 31, -1; shfl.sync.idx.b32 %r6, %r0, 0, "
                            "31, -1; @%p1 mov.b32 %r7, 1;\n"
                            "ld.u32 %r1, [%rd0]; bar.red.popc.u32 %r4, 0, %p1; "
                            "st.global.u32 [0], %r2;",
                            &rows);
    cr_expect(shape(&s, "%r0") == IR_UNIFORM && reg(&s, "%r0")->block_uniform);
    cr_expect(shape(&s, "%r1") == IR_VARYING && shape(&s, "%r2") == IR_VARYING);
    cr_expect(shape(&s, "%p0") == IR_UNIFORM && shape(&s, "%p1") == IR_VARYING);
    cr_expect(shape(&s, "%r3") == IR_UNIFORM && !reg(&s, "%r3")->block_uniform &&
              shape(&s, "%r4") == IR_UNIFORM);
    cr_expect(shape(&s, "%r5") == IR_VARYING && shape(&s, "%r6") == IR_UNIFORM &&
              shape(&s, "%r7") == IR_VARYING);
    done(&s);
    /* A generic address may point to the lane's own memory, if it has any. */
    s = look(".local .b8 x[8]; ld.param.u64 %rd0, [a]; ld.u32 %r0, [%rd0]; ld.global.u32 %r1, "
             "[%rd0]; st.local.b8 [x], 1;",
             &rows);
    cr_expect(shape(&s, "%r0") == IR_VARYING && shape(&s, "%r1") == IR_UNIFORM);
    done(&s);
}

/* Values without a beginning, blocks without a way to them, endless loops: all have an answer. */
Test(ir_analysis, odd_code)
{
    struct subject s = look(
        "mov.u32 %r1, %tid.x; L: add.s32 %r0, %r0, %r1; @%p0 bra L; bra E; add.s32 %r2, %r1, 1; "
        "E: st.global.u32 [0], %r0;",
        &rows);
    cr_expect(shape(&s, "%r0") == IR_VARYING);
    cr_expect(s.a->order_count == s.fn->block_count - 1 && s.a->blocks[3].priority == IR_NONE);
    done(&s);
    s = look("L: bra L;", &rows);
    cr_expect(s.a->blocks[1].ipdom == IR_NONE && s.a->blocks[1].loop == 1);
    done(&s);
    s = look("mov.u32 %r0, %tid.x; t: .branchtargets A, B, C; brx.idx %r0, t; A: st.global.u32 "
             "[0], 1; B: "
             "st.global.u32 [0], 2; C: st.global.u32 [4], 1;",
             &rows);
    cr_expect(s.a->blocks[0].divergent && !s.a->blocks[3].masked);
    done(&s);
}

/* Too much work is refused, not done. */
Test(ir_analysis, limits, .timeout = 30)
{
    size_t size = 4 << 20, at;
    char *text = malloc(size);
    at = (size_t)snprintf(text, size, "mov.u32 %%r0, %%tid.x; setp.eq.u32 %%p0, %%r0, 5;\n");
    for (int i = 0; i < 20000; i++)
        at += (size_t)snprintf(text + at, size - at, "@%%p0 bra L%d; st.global.u32 [0], 1; L%d:\n",
                               i, i);
    char *kernel = ptx_kernel(text);
    struct ptx_error err;
    struct ir_module *m = ptx_try(kernel, &err);
    cr_assert(m != NULL, "%s", err.text);
    struct ir_analysis *a;
    cr_expect(ir_analyse(m, 0, &rows, &a) == -E2BIG && a == NULL);
    ir_module_destroy(m);
    free(kernel);
    free(text);
}

/* A definition copied into both sides of a branch stays affine; where its source changes in a loop,
 * it is blended. */
Test(ir_analysis, definitions_alike_need_no_blend)
{
    struct subject s = look("  mov.u32 %r1, %tid.x;\n"
                            "  mov.u32 %r4, 0;\n"
                            "  setp.lt.u32 %p1, %r1, 7;\n"
                            "  @%p1 bra A;\n"
                            "  shl.b32 %r2, %r1, 2;\n"
                            "  bra.uni B;\n"
                            "A:\n"
                            "  shl.b32 %r2, %r1, 2;\n"
                            "B:\n"
                            "  add.s32 %r3, %r1, %r4;\n"
                            "  @%p1 bra C;\n"
                            "  shl.b32 %r5, %r3, 2;\n"
                            "  bra.uni D;\n"
                            "C:\n"
                            "  shl.b32 %r5, %r3, 2;\n"
                            "D:\n"
                            "  add.s32 %r4, %r4, 1;\n"
                            "  setp.lt.u32 %p2, %r4, %r1;\n"
                            "  @%p2 bra B;\n"
                            "  add.s32 %r6, %r2, %r5;\n"
                            "  st.global.u32 [0], %r6;\n"
                            "  ret;\n",
                            &(struct ir_analyse_options) { .ntid = { 32, 1, 1 } });
    cr_expect(shape(&s, "%r2") == IR_AFFINE && reg(&s, "%r2")->stride == 4);
    cr_expect(shape(&s, "%r5") == IR_VARYING);
    done(&s);
}

/* A warp of 32 lanes is two rows of a block that is 16 wide, one of 16 lanes is one. */
Test(ir_analysis, lanes_of_a_row)
{
    const char *body = "  mov.u32 %r1, %tid.x;\n"
                       "  mov.u32 %r2, %tid.y;\n"
                       "  mad.lo.s32 %r3, %r2, 16, %r1;\n"
                       "  st.global.u32 [0], %r3;\n"
                       "  ret;\n";
    struct subject s = look(body, &(struct ir_analyse_options) { .ntid = { 16, 16, 1 } });
    cr_expect(shape(&s, "%r1") == IR_PATTERN && shape(&s, "%r2") == IR_PATTERN);
    cr_expect(shape(&s, "%r3") == IR_AFFINE && reg(&s, "%r3")->stride == 1);
    done(&s);
    s = look(body, &(struct ir_analyse_options) { .ntid = { 16, 16, 1 }, .lanes = 16 });
    cr_expect(shape(&s, "%r1") == IR_AFFINE && shape(&s, "%r2") == IR_UNIFORM);
    cr_expect(shape(&s, "%r3") == IR_AFFINE && reg(&s, "%r3")->stride == 1);
    done(&s);
}

/* Which of its threads' indices a kernel reads, unless something in it counts threads or tells them
 * apart. */
Test(ir_analysis, indices_that_matter)
{
    static const struct {
        const char *body;
        unsigned dims;
    } kernels[] = {
        { "mov.u32 %r0, %ctaid.x; st.global.u32 [0], %r0;", 0 },
        { "mov.u32 %r0, %tid.x; mov.u32 %r1, %ntid.y; bar.sync 0; st.global.u32 [0], %r0;", 1 },
        { "mov.u32 %r1, %tid.y; st.global.u32 [0], %r1;", 2 },
        { "mov.u32 %r0, %tid.z; st.global.u32 [0], %r0;", 3 },
        { "mov.u32 %r0, %laneid;", 3 },
        { "mov.u32 %r0, %lanemask_lt;", 3 },
        { "mov.u32 %r0, %warpid;", 3 },
        { "activemask.b32 %r0;", 3 },
        { "vote.sync.ballot.b32 %r0, %p0, -1;", 3 },
        { "shfl.sync.idx.b32 %r0, %r1, 0, 31, -1;", 3 },
        { "bar.warp.sync -1;", 3 },
        { "bar.sync 1, 64;", 3 },
        { "bar.arrive 1, 64;", 3 },
        { "bar.red.popc.u32 %r0, 0, %p0;", 3 },
        { "red.shared.add.u32 [0], 1;", 3 },
        { "atom.global.add.u32 %r0, [0], 1;", 3 },
        { "ld.volatile.shared.u32 %r0, [0];", 3 },
        { "st.volatile.global.u32 [0], 1;", 3 },
        { "ld.acquire.gpu.global.u32 %r0, [0];", 3 },
        { "membar.gl;", 3 },
        { "fence.acq_rel.gpu;", 3 },
    };
    for (size_t k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++) {
        struct subject s = look(kernels[k].body, &rows);
        cr_expect(ir_thread_dims(s.fn) == kernels[k].dims, "%s", kernels[k].body);
        done(&s);
    }
}
