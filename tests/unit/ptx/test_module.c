/*
 * Modules as a whole: parameters' layout, variables and their initial values, both dialects, device
 * functions.
 */
#include <criterion/criterion.h>

#include "common.h"

static struct ir_module *parse(const char *text)
{
    struct ptx_error err;
    struct ir_module *m = ptx_try(text, &err);
    cr_assert(m != NULL, "%u:%u %s\n%s", err.line, err.column, err.text, text);
    return m;
}

static const struct ir_fn *entry(const struct ir_module *m, const char *name)
{
    uint32_t f = ir_module_find_fn(m, name);
    cr_assert(f != IR_NONE);
    return &m->fns[f];
}

static unsigned count_ops(const struct ir_fn *fn, enum ir_op op)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < fn->instr_count; i++)
        n += fn->instrs[i].op == op;
    return n;
}

Test(ptx_module, header)
{
    struct ir_module *m = parse(
        "  // blanks first\n.version 9.0\n.target sm_90a, texmode_independent\n.address_size 64\n");
    cr_expect(m->version == 90 && m->target == 90 && m->fn_count == 0);
    ir_module_destroy(m);
    ir_module_destroy(NULL);
}

/* Offsets: the running end rounded up to each parameter's alignment. */
Test(ptx_module, parameter_layout)
{
    struct ir_module *m = parse(
        PTX_HEADER
        ".visible .entry k(.param .u8 c, .param .f64 d, .param .align 4 .b8 s[12], .param .align "
        "16 .b8 q[20],\n"
        ".param .u16 h, .param .u64 .ptr .global .align 16 p, .param .b8 t[3], .param .u32 u)\n"
        ".maxntid 256, 2\n.minnctapersm 3\n{ ret; }\n.entry e() .reqntid 32, 4, 2 { }");
    static const struct {
        uint64_t offset, size;
        uint32_t align;
    } want[] = { { 0, 1, 1 },  { 8, 8, 8 },  { 16, 12, 4 }, { 32, 20, 16 },
                 { 52, 2, 2 }, { 56, 8, 8 }, { 64, 3, 1 },  { 68, 4, 4 } };
    const struct ir_fn *fn = entry(m, "k");
    cr_assert(fn->param_count == GM_ARRAY_LEN(want));
    for (uint32_t i = 0; i < fn->param_count; i++) {
        const struct ir_symbol *s = &m->symbols[m->params[fn->param_first + i].symbol];
        cr_expect(s->offset == want[i].offset && s->size == want[i].size &&
                      s->align == want[i].align,
                  "parameter %u: %u+%u/%u", i, (unsigned)s->offset, (unsigned)s->size, s->align);
    }
    cr_expect(fn->param_bytes == 72);
    cr_expect(fn->maxntid[0] == 256 && fn->maxntid[1] == 2 && fn->maxntid[2] == 1 &&
              fn->minnctapersm == 3);
    fn = entry(m, "e");
    cr_expect(fn->reqntid[0] == 32 && fn->reqntid[1] == 4 && fn->reqntid[2] == 2 &&
              fn->param_count == 0);
    cr_expect(fn->instr_count == 1 && fn->instrs[0].op == IR_OP_RET);
    ir_module_destroy(m);
}

Test(ptx_module, initial_values)
{
    struct ir_module *m =
        parse(PTX_HEADER ".global .align 4 .u32 a = 0x01020304;\n"
                         ".const .align 2 .b8 text[6] = {104, 105, 0};\n"
                         ".visible .global .u16 grid[2][3] = {{1, 2}, {3, -1, 5}};\n"
                         ".global .f32 f[2] = {0f3F800000, -2.5}, single = 1.0;\n"
                         ".global .f64 d = 0d3FF0000000000000;\n"
                         ".global .u64 table[3] = {a, generic(text)+2, 7};\n"
                         ".global .u8 open[] = {1, 2, 3, 4, 5};\n"
                         ".global .v4 .f32 vec = {1.0, 2.0, 3.0, 4.0};\n"
                         ".global .align 16 .b8 zero[1000000];\n"
                         ".global .attribute(.managed) .u32 managed;\n");
    struct want {
        const char *name;
        uint64_t size, init_size;
        const char *bytes;
    };
    static const struct want want[] = {
        { "a", 4, 4, "\4\3\2\1" },
        { "text", 6, 3, "hi\0" },
        { "grid", 12, 12, "\1\0\2\0\0\0\3\0\377\377\5\0" },
        { "f", 8, 8, "\0\0\200\77\0\0\040\300" },
        { "single", 4, 4, "\0\0\200\77" },
        { "d", 8, 8, "\0\0\0\0\0\0\360\77" },
        { "table", 24, 24, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0" },
        { "open", 5, 5, "\1\2\3\4\5" },
        { "vec", 16, 16, "\0\0\200\77\0\0\0\100\0\0\100\100\0\0\200\100" },
        { "zero", 1000000, 0, "" },
        { "managed", 4, 0, "" },
    };
    for (size_t i = 0; i < GM_ARRAY_LEN(want); i++) {
        uint32_t index = ir_module_find_symbol(m, want[i].name);
        cr_assert(index != IR_NONE, "%s", want[i].name);
        const struct ir_symbol *s = &m->symbols[index];
        cr_expect(s->size == want[i].size && s->init_size == want[i].init_size, "%s: %u, %u",
                  want[i].name, (unsigned)s->size, (unsigned)s->init_size);
        if (s->init_size)
            cr_expect(memcmp(m->init_bytes + s->init, want[i].bytes, s->init_size) == 0, "%s",
                      want[i].name);
    }
    cr_assert(m->reloc_count == 2);
    cr_expect(m->relocs[0].offset == 0 && m->relocs[0].target == ir_module_find_symbol(m, "a") &&
              m->relocs[0].size == 8);
    cr_expect(m->relocs[1].offset == 8 && m->relocs[1].target == ir_module_find_symbol(m, "text") &&
              m->relocs[1].addend == 2);
    cr_expect(ir_module_find_symbol(m, "nothing") == IR_NONE);
    ir_module_destroy(m);
}

/* Static shared variables of the module, of the entry, of a device function; the dynamic part after
 * them. */
Test(ptx_module, shared_layout)
{
    struct ir_module *m =
        parse(PTX_HEADER
              ".shared .align 4 .b8 common[12];\n.shared .b8 unused[64];\n.extern .shared .align "
              "32 .b8 dyn[];\n"
              ".func f() { .shared .align 8 .b64 mine; st.shared.b64 [mine], 1; }\n"
              ".entry a() { .shared .align 4 .b8 own[20]; .reg .b32 %r<4>; mov.u32 %r1, dyn; "
              "mov.u32 %r2, common;\n"
              " mov.u32 %r3, own; call f; st.shared.u32 [%r1], %r2; st.shared.u32 [%r3], 0; }\n"
              ".entry b() { .reg .b32 %r<4>; ld.shared.u32 %r1, [common+4]; }\n"
              ".entry c() { .reg .b64 %rd<4>; mov.u64 %rd1, dyn; st.shared.u32 [%rd1+4], 0; }\n");
    const struct ir_fn *a = entry(m, "a"), *b = entry(m, "b"), *c = entry(m, "c");
    cr_expect(a->shared_static == 40 && a->uses_dynamic_shared && a->shared_dynamic == 64);
    cr_expect(a->instrs[0].src[0].bits == 64);
    cr_expect(a->instrs[1].src[0].bits == 20);
    cr_expect(a->instrs[2].src[0].bits == 0);
    cr_expect(a->instrs[3].op == IR_OP_ST && a->instrs[3].address.displacement == 32);
    cr_expect(b->shared_static == 12 && !b->uses_dynamic_shared &&
              b->instrs[0].address.displacement == 4);
    cr_expect(c->shared_static == 0 && c->uses_dynamic_shared && c->shared_dynamic == 0);
    ir_module_destroy(m);
}

/* What nvcc writes: 32-bit shared addresses, demoted variables, debug sections, performance
 * directives. */
Test(ptx_module, nvcc_dialect)
{
    struct ir_module *m =
        parse("//\n// Generated by NVIDIA NVVM Compiler\n//\n.version 9.0\n.target "
              "sm_75\n.address_size 64\n\n"
              "\t// .globl\tk\n.extern .shared .align 16 .b8 smem[];\n"
              ".visible .entry k(\n\t.param .u64 .ptr .align 1 k_param_0,\n\t.param .u32 "
              "k_param_1\n)\n.maxntid 128\n{\n"
              "\t.reg .pred \t%p<2>;\n\t.reg .b32 \t%r<8>;\n\t.reg .b64 \t%rd<4>;\n"
              "\t.loc\t1 10 0\n\tld.param.b64 \t%rd1, [k_param_0];\n\tmov.b32 \t%r1, smem;\n"
              "\tshfl.sync.bfly.b32 \t%r2|%p1, %r1, %r3, %r4, %r5;\n"
              "$L__tmp0:\n\t.loc 1 11 3, function_name $L__info_string0, inlined_at 1 20 "
              "5\n\tst.shared.b32 \t[%r1+12], "
              "%r2;\n\tret;\n$L__func_end0:\n}\n"
              "\t.file\t1 \"/tmp/x.cu\", 1695000000, 2304\n"
              "\t.section\t.debug_abbrev\n\t{\n.b8 1\n.b8 17\n.b32 $L__tmp0-$L__func_end0\n\t}\n");
    const struct ir_fn *k = entry(m, "k");
    cr_expect(k->block_count == 1 && k->instr_count == 5);
    cr_expect(k->instrs[2].line == 22 && k->instrs[2].column == 2);
    cr_expect(k->instrs[2].dst_pred != IR_NONE);
    ir_module_destroy(m);
}

/* Calls as clang and nvcc write them become copies of registers. */
Test(ptx_module, calls_are_inlined)
{
    struct ir_module *m = parse(PTX_HEADER ".func (.param .b32 r) twice(.param .b32 x) {\n .reg "
                                           ".b32 %r<3>;\n ld.param.u32 %r1, [x];\n add.s32 %r2, "
                                           "%r1, %r1;\n"
                                           " st.param.b32 [r+0], %r2;\n ret;\n}\n"
                                           ".func (.param .align 4 .b8 r[8]) pair(.param .b32 x, "
                                           ".param .align 4 .b8 y[8]) {\n .reg .b32 %r<9>; .reg "
                                           ".pred %p;\n"
                                           " ld.param.u32 %r1, [x]; ld.param.v2.b32 {%r2, %r3}, "
                                           "[y];\n setp.eq.u32 %p, %r1, 0;\n @%p bra OUT;\n"
                                           " { .param .b32 a; st.param.b32 [a], %r2; .param .b32 "
                                           "b; call.uni (b), twice, (a); ld.param.b32 %r2, [b]; }\n"
                                           "OUT: st.param.v2.b32 [r], {%r2, %r3};\n ret;\n}\n"
                                           ".entry k(.param .u64 out) {\n .reg .b32 %r<9>; .reg "
                                           ".b64 %rd<3>; .reg .pred %p<2>;\n ld.param.u64 %rd1, "
                                           "[out];\n"
                                           " { .param .b32 p0; st.param.b32 [p0+0], 3; .param "
                                           ".align 4 .b8 p1[8]; st.param.b32 [p1], 4; st.param.b32 "
                                           "[p1+4], 5;\n"
                                           " .param .align 4 .b8 ret0[8]; call.uni (ret0), pair, "
                                           "(p0, p1);\n ld.param.b32 %r1, [ret0]; ld.param.b32 "
                                           "%r2, [ret0+4]; }\n"
                                           " setp.eq.u32 %p1, %r1, %r2;\n"
                                           " { .param .b32 p0; st.param.b32 [p0], %r1; .param .b32 "
                                           "q; @!%p1 call (q), twice, (p0); ld.param.b32 %r3, "
                                           "[q]; }\n"
                                           " st.global.u32 [%rd1], %r3;\n}\n");
    const struct ir_fn *k = entry(m, "k");
    cr_expect(count_ops(k, IR_OP_CALL) == 0);
    cr_expect(count_ops(k, IR_OP_ADD) == 2);
    cr_expect(count_ops(k, IR_OP_LD) == 1 && count_ops(k, IR_OP_ST) == 1);
    cr_expect(k->local_bytes == 0);
    /* The guarded call is jumped over. */
    unsigned guarded = 0;
    for (uint32_t i = 0; i < k->instr_count; i++)
        guarded += k->instrs[i].op == IR_OP_BRA && k->instrs[i].guard != IR_NONE;
    cr_expect(guarded == 2);
    ir_module_destroy(m);
}

/* Parameters in registers (older style), narrow ones, and one whose address is taken. */
Test(ptx_module, calls_with_other_parameters)
{
    struct ir_module *m = parse(
        PTX_HEADER
        ".func (.reg .f32 y) f(.reg .f32 x, .reg .pred p) { neg.f32 y, x; @p ret; mov.f32 y, x; }\n"
        ".func (.param .b32 r) g(.param .b8 c, .param .align 8 .b8 big[16]) { .reg .b32 %r<4>; "
        ".reg .b64 %rd<4>;\n"
        " ld.param.s8 %r1, [c]; mov.b64 %rd1, big; cvta.param.u64 %rd2, %rd1; ld.u32 %r2, "
        "[%rd2+4]; ld.param.u32 "
        "%r3, [%rd1+8];\n"
        " add.s32 %r1, %r1, %r2; st.param.b32 [r], %r1; }\n"
        ".entry k() { .reg .f32 %f<3>; .reg .pred %p; .reg .b32 %r<3>; .reg .b64 %rd<3>;\n"
        " call (%f1), f, (%f2, %p); call (%f1), f, (0f3F800000, %p);\n"
        " { .param .b8 c; st.param.b8 [c], %r1; .param .align 8 .b8 big[16]; st.param.b64 [big], "
        "%rd1; st.param.b64 "
        "[big+8], %rd2;\n"
        " .param .b32 r; call (r), g, (c, big); ld.param.b32 %r2, [r]; }\n}\n");
    const struct ir_fn *k = entry(m, "k");
    cr_expect(count_ops(k, IR_OP_NEG) == 2);
    cr_expect(k->local_bytes == 16);
    for (uint32_t i = 0; i < k->instr_count; i++)
        cr_expect(k->instrs[i].space != IR_SPACE_PARAM, "line %u", k->instrs[i].line);
    ir_module_destroy(m);
}

/* printf, assert, launches: calls of host functions. malloc and free are of the device runtime's
 * text, and have no calls left. */
Test(ptx_module, helpers)
{
    struct ir_module *m =
        parse(PTX_HEADER
              ".extern .func (.param .b32 func_retval0) vprintf\n(\n .param .b64 "
              "vprintf_param_0,\n .param .b64 "
              "vprintf_param_1\n)\n;\n"
              ".extern .func (.param .b64 func_retval0) malloc(.param .b64 malloc_param_0);\n"
              ".extern .func free(.param .b64 p);\n"
              ".extern .func (.param .b32 r) __gmux_child_bytes(.param .b64 a, .param .b64 b);\n"
              ".extern .func (.param .b32 r) __gmux_child_launch(.param .b64 a, .param .b64 b);\n"
              ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param "
              ".b64 d, .param .b64 e) "
              ".noreturn;\n"
              ".global .align 1 .b8 fmt[4] = {37, 100, 10, 0};\n"
              ".entry k() { .local .align 8 .b8 depot[8]; .reg .b64 %rd<9>; .reg .b32 %r<4>; "
              ".reg .pred %p;\n"
              " mov.u64 %rd1, depot; cvta.local.u64 %rd2, %rd1; mov.u64 %rd3, fmt; "
              "cvta.global.u64 %rd4, %rd3;\n"
              " { .param .b64 param0; st.param.b64 [param0+0], %rd4; .param .b64 param1; "
              "st.param.b64 [param1+0], %rd2;\n"
              "  .param .b32 retval0; call.uni (retval0), vprintf, (param0, param1); "
              "ld.param.b32 %r1, [retval0+0]; }\n"
              " { .param .b64 n; st.param.b64 [n], 64; .param .b64 r; call.uni (r), malloc, "
              "(n); ld.param.b64 %rd5, [r]; "
              "}\n"
              " { .param .b64 n; st.param.b64 [n], %rd5; call.uni free, (n); }\n"
              " { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e; "
              "st.param.b64 [a], %rd4;\n"
              "  st.param.b64 [b], %rd4; st.param.b32 [c], 7; st.param.b64 [d], %rd4; "
              "st.param.b64 [e], 1;\n"
              "  @%p call.uni __assertfail, (a, b, c, d, e); }\n"
              " { .param .b64 a; st.param.b64 [a], %rd1; .param .b64 b; st.param.b64 [b], 0; "
              ".param .b32 r;\n"
              "  call.uni (r), __gmux_child_bytes, (a, b); ld.param.b32 %r1, [r];\n"
              "  call.uni (r), __gmux_child_launch, (a, b); ld.param.b32 %r2, [r]; }\n}\n");
    const struct ir_fn *k = entry(m, "k");
    static const uint8_t sources[IR_HELPER_COUNT] = { 2, 5, 2, 2 },
                         results[IR_HELPER_COUNT] = { 1, 0, 1, 1 };
    uint32_t next = 0;
    for (uint32_t i = 0; i < k->instr_count; i++) {
        const struct ir_instr *in = &k->instrs[i];
        if (in->op != IR_OP_HELPER)
            continue;
        cr_expect(in->target == next && in->src_count == sources[next] &&
                      in->dst_count == results[next],
                  "helper %u", next);
        next++;
    }
    cr_expect(next == IR_HELPER_COUNT);
    cr_expect(k->local_bytes == 16 && count_ops(k, IR_OP_CALL) == 0 &&
              count_ops(k, IR_OP_ATOM) > 0);
    ir_module_destroy(m);
}

Test(ptx_module, blocks)
{
    struct ir_module *m =
        parse(PTX_HEADER ".entry k() { .reg .pred %p<3>; .reg .b32 %r<3>;\nA: add.s32 %r1, %r1, "
                         "1;\n @%p1 bra A;\n@%p2 ret;\n bar.sync 0;\n"
                         "T: .branchtargets A, B, A;\n brx.idx %r1, T;\nB: bra.uni C;\n C: \n}\n");
    const struct ir_fn *k = entry(m, "k");
    /* a jump before A, A.., ret, bar, brx, B, the return that was missing */
    static const uint32_t counts[] = { 1, 2, 1, 1, 1, 1, 1 }, succs[] = { 1, 2, 1, 1, 3, 1, 0 };
    cr_assert(k->block_count == GM_ARRAY_LEN(counts));
    for (uint32_t b = 0; b < k->block_count; b++)
        cr_expect(k->blocks[b].count == counts[b] && k->blocks[b].succ_count == succs[b],
                  "block %u", b);
    cr_expect(k->succ[k->blocks[1].succ_first] == 1 && k->succ[k->blocks[1].succ_first + 1] == 2);
    cr_expect(k->succ[k->blocks[4].succ_first] == 1 && k->succ[k->blocks[4].succ_first + 1] == 5);
    for (uint32_t b = 0; b < k->block_count; b++)
        for (uint32_t s = 0; s < k->blocks[b].succ_count; s++)
            cr_expect(k->succ[k->blocks[b].succ_first + s] != 0);
    ir_module_destroy(m);
}

/* The examples survive being printed and read again. */
Test(ptx_module, examples)
{
    static const char *const names[] = { "vecadd", "reduction", "mandelbrot", "matmul", "nbody" };
    for (size_t n = 0; n < GM_ARRAY_LEN(names); n++) {
        char path[512];
        static char text[1 << 17];
        snprintf(path, sizeof(path), "%s/%s/kernel.ptx", GMUX_EXAMPLES, names[n]);
        FILE *f = fopen(path, "rb");
        cr_assert(f != NULL, "%s", path);
        size_t size = fread(text, 1, sizeof(text) - 1, f);
        text[size] = '\0';
        fclose(f);
        struct ir_module *m = parse(text);
        char *once = ir_text(m);
        ir_module_destroy(m);
        m = parse(once);
        char *second = ir_text(m);
        ir_module_destroy(m);
        cr_expect_str_eq(once, second);
        free(once);
        free(second);
    }
}
