/*
 * Bad texts: what is said, and which place is named. -ENOTSUP: the text is fine and the module
 * loads, but its kernel k cannot be launched on this device.
 */
#include <criterion/criterion.h>

#include <errno.h>

#include "common.h"

struct bad {
    const char *body;
    uint32_t line, column;
    const char *words; /* part of the message */
    int error;
};

/* What a text is answered with is what `b` says; the place in the text of a kernel's lack is at its
 * beginning. */
static void expect(const struct bad *b, const char *text)
{
    struct ir_module *m;
    struct ptx_error err;
    int rc = ptx_parse(text, strlen(text), &m, &err);
    if (b->error == -ENOTSUP && rc == 0) {
        uint32_t fn = ir_module_find_fn(m, "k");
        const char *lacks = fn == IR_NONE ? "" : ir_name(m, m->fns[fn].lacks);
        int words = 0;
        rc = sscanf(lacks, "%u:%u: %n", &err.line, &err.column, &words) == 2 ? -ENOTSUP : 0;
        snprintf(err.text, sizeof(err.text), "%s", lacks + words);
    } else {
        cr_expect(m == NULL, "%s: loaded", b->body);
    }
    cr_expect(rc == b->error, "%s: %d, %s", b->body, rc, err.text);
    cr_expect(err.line == b->line && err.column == b->column, "%s: at %u:%u, not %u:%u: %s",
              b->body, err.line, err.column, b->line, b->column, err.text);
    cr_expect(strstr(err.text, b->words) != NULL, "%s: '%s' without '%s'", b->body, err.text,
              b->words);
    ir_module_destroy(m);
}

/* Inside kernel k: the statement begins at 5:1. */
static const struct bad statements[] = {
    { "wgmma.fence;", 5, 1, "instruction 'wgmma' is not supported", -ENOTSUP },
    { "add.s32 %r0, %r1, %r2;\n  wgmma.fence;", 6, 3, "instruction 'wgmma'", -ENOTSUP },
    { "add.rn.s32 %r0, %r1, %r2;", 5, 1, "'add.s32' takes no modifier of floating point", -EINVAL },
    { "frobnicate %r0;", 5, 1, "instruction 'frobnicate' is not known", -EINVAL },
    { "add.foo.s32 %r0, %r1, %r2;", 5, 4, "modifier '.foo' of 'add' is not supported", -ENOTSUP },
    { "add.uni.s32 %r0, %r1, %r2;", 5, 4, "does not belong there", -EINVAL },
    { "add.rn.rz.f32 %f0, %f1, %f2;", 5, 7, "contradicts", -EINVAL },
    { "add.s32.s32 %r0, %r1, %r2;", 5, 8, "one too many", -EINVAL },
    { "add %r0, %r1, %r2;", 5, 1, "'add' needs a type", -EINVAL },
    { "add.b32 %r0, %r1, %r2;", 5, 4, "'add' of type '.b32'", -ENOTSUP },
    { "add.s32 %r0, %r1;", 5, 17, "',' expected, not ';'", -EINVAL },
    { "add.s32 %r0, %r1, %r2, %r3;", 5, 22, "';' expected, not ','", -EINVAL },
    { "add.s32 %r0, %r1, %rd2;", 5, 19, "'%rd2' is .b64 where .s32 is wanted", -EINVAL },
    { "add.s32 %p0, %r1, %r2;", 5, 9, "'%p0' is .pred", -EINVAL },
    { "add.s32 %r0, %r1, %r8;", 5, 19, "'%r8' is not declared", -EINVAL },
    { "add.s32 %r0, %r1, %r01;", 5, 19, "'%r01' is not declared", -EINVAL },
    { "add.f32 %f0, %f1, 3;", 5, 19, "constant does not suit", -EINVAL },
    { "add.s32 %r0, %r1, 1.5;", 5, 19, "constant does not suit", -EINVAL },
    { "mov.u32 %r0, 0xFFFFFFFFFFFFFFFFF;", 5, 14, "does not fit 64 bits", -EINVAL },
    { "mov.f32 %f0, 0f3F80;", 5, 14, "malformed floating point", -EINVAL },
    { "mov.u32 %r0, 12x;", 5, 14, "malformed integer", -EINVAL },
    { "mov.u32 %r0, 09;", 5, 14, "malformed integer", -EINVAL },
    { "mov.u32 %r0, %tid.v;", 5, 14, "'%tid' is not declared", -EINVAL },
    { "mov.u32 %r0, %envreg03;", 5, 14, "'%envreg03' is not declared", -EINVAL },
    { "mov.u32 %r0, %reserved_smem_offset_2;", 5, 14, "'%reserved_smem_offset_2' is not declared",
      -EINVAL },
    { "mov.u64 %rd0, %tid.x;", 5, 15, "'%tid.x' is .u32", -EINVAL },
    { "mov.u32 %r0, k;", 5, 14, "the address of 'k' does not fit .u32", -EINVAL },
    { "add.u64 %rd0, %rd0, k;", 5, 21, "'k' is no register", -EINVAL },
    { "mov.b64 %rd0, {%r0, %r1, %r2};", 5, 16, "'%r0' is .b32 where .b16", -EINVAL },
    { "mul.s32 %r0, %r1, %r2;", 5, 1, "needs .lo, .hi or .wide", -EINVAL },
    { "mul.lo.f32 %f0, %f1, %f2;", 5, 1, "no half", -EINVAL },
    { "mul.wide.u64 %rd0, %rd1, %rd2;", 5, 1, "cannot be .wide", -EINVAL },
    { "fma.f32 %f0, %f1, %f2, %f3;", 5, 1, "needs a rounding", -EINVAL },
    { "div.f32 %f0, %f1, %f2;", 5, 1, "needs a rounding", -EINVAL },
    { "sin.f32 %f0, %f1;", 5, 1, "needs .approx", -EINVAL },
    { "sqrt.approx.f64 %fd0, %fd1;", 5, 1, "needs a rounding", -EINVAL },
    { "setp.s32 %p0, %r1, %r2;", 5, 1, "needs a comparison", -EINVAL },
    { "setp.lt.b32 %p0, %r1, %r2;", 5, 1, "no such comparison", -EINVAL },
    { "setp.ltu.s32 %p0, %r1, %r2;", 5, 1, "no such comparison", -EINVAL },
    { "cvt.f32.u32 %f0, %r0;", 5, 1, "needs a rounding", -EINVAL },
    { "cvt.s32.f32 %r0, %f0;", 5, 1, "needs .rni", -EINVAL },
    { "cvt.u32 %r0, %r1;", 5, 1, "two types", -EINVAL },
    { "cvt.rn.e4m3x2.f32 %h0, %f0, %f1;", 5, 1, "needs .rn and .satfinite", -EINVAL },
    { "cvt.rn.satfinite.e2m1x2.f32 %h0, %f0, %f1;", 5, 17, "'.e2m1x2' of 'cvt' is not supported",
      -ENOTSUP },
    { "vadd4.u32.u32.u32 %r0, %r1.b3280, %r2, %r3;", 5, 27, "selects nothing", -EINVAL },
    { "mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 %r0, %r0, %r0, %r0;", 5, 1,
      "'mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32' is not supported", -ENOTSUP },
    { "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0}, [%r1];", 5, 49, "1 registers for '.x2'",
      -EINVAL },
    { "cp.async.ca.shared.global [%r0], [%rd0], 3;", 5, 40, "4, 8 or 16 bytes", -EINVAL },
    { "cvta.to.global.u32 %r0, %r1;", 5, 1, "'cvta.u32' is not supported", -ENOTSUP },
    { "ld.global.v4.f32 {%f0, %f1}, [%rd0];", 5, 1, "2 registers for a vector of 4", -EINVAL },
    { "ld.global.v2.f32 {%f0, %f1, %f2}, [%rd0];", 5, 18, "vector of 3", -EINVAL },
    { "ld.global.u32 %r0, [%r1];", 5, 21, "'%r1' is .b32", -EINVAL },
    { "ld.global.u32 %r0, [a];", 5, 21, "another space", -EINVAL },
    { "ld.global.u32 %r0, [nothing];", 5, 21, "'nothing' is not declared", -EINVAL },
    { "ld.global.u32 %r0, [%rd0+3000000000];", 5, 26, "over 2 GiB", -E2BIG },
    { "ld.param.u32 %r0, [s+22];", 5, 1, "outside of the parameter", -ENOTSUP },
    { "ld.param.u32 %r0, [s-4];", 5, 1, "outside of the parameter", -ENOTSUP },
    { "st.param.u32 [n], %r0;", 5, 1, "store to a kernel parameter", -EINVAL },
    { "st.const.u32 [%rd0], %r0;", 5, 1, "cannot store there", -EINVAL },
    { "ld.global.u32 %r0, %rd0;", 5, 20, "'[' expected", -EINVAL },
    { "atom.global.u32 %r0, [%rd0], %r1;", 5, 1, "needs an operation", -EINVAL },
    { "atom.global.add.b32 %r0, [%rd0], %r1;", 5, 1, "is not supported", -ENOTSUP },
    { "atom.global.min.noftz.f16 %h0, [%rd0], %h1;", 5, 1, "is not supported", -ENOTSUP },
    { "red.global.max.v2.f32 [%rd0], {%f0, %f1};", 5, 1, "'red.global.max.v2.f32' is not supported",
      -ENOTSUP },
    { "red.global.add.v4.f32 [%rd0], {%f0, %f1};", 5, 23, "a vector of 4 is wanted", -EINVAL },
    { "cp.async.bulk.shared::cta.global.bulk_group [%r0], [%rd0], 16;", 5, 1,
      "'cp.async.bulk.shared::cta.global.bulk_group' is not supported", -ENOTSUP },
    { "atom.local.add.u32 %r0, [%rd0], %r1;", 5, 1, "in this space", -EINVAL },
    { "atom.global.add.f16x2 %r0, [%rd0], %r1;", 5, 1, "needs .noftz", -EINVAL },
    { "atom.global.add.noftz.f32 %f0, [%rd0], %f1;", 5, 1, "takes no .noftz", -EINVAL },
    { "bar.sync 16;", 5, 10, "16 barriers", -EINVAL },
    { "bar.red.popc.pred %p0, 0, %p1;", 5, 1, "wrong type", -EINVAL },
    { "barrier.cluster;", 5, 1, "'barrier.cluster' is not supported", -ENOTSUP },
    { "shfl.sync.b32 %r0, %r1, 1, 31, -1;", 5, 1, "needs .up", -EINVAL },
    { "lop3.b32 %r0, %r1, %r2, %r3, %r4;", 5, 28, "constant 0 .. 255", -EINVAL },
    { "lop3.b32 %r0, %r1, %r2, %r3, 256;", 5, 28, "constant 0 .. 255", -EINVAL },
    { "bra NOWHERE;", 5, 5, "label 'NOWHERE' is not defined", -EINVAL },
    { "{ L: } bra L;", 5, 12, "label 'L' is not defined", -EINVAL },
    { "bra n;", 5, 5, "no label", -EINVAL },
    { "L: L:", 5, 4, "declared twice", -EINVAL },
    { "brx.idx %r0, L; L:", 5, 14, "no .branchtargets", -EINVAL },
    { ".reg .b32 %r<4>;", 5, 11, "declared twice", -EINVAL },
    { ".reg .b32 %q<2000000>;", 5, 14, "over 1048576", -E2BIG },
    { ".reg .v2 .pred v;", 5, 10, "no vector register is like that", -EINVAL },
    { ".reg .v4 .f64 v;", 5, 10, "no vector register is like that", -EINVAL },
    { ".param .b32 q<2> = 3;", 5, 18, "';' expected, not '='", -EINVAL },
    { ".param .b32 q<2000000>;", 5, 15, "number of variables over 131072", -E2BIG },
    { ".shared .align 3 .b8 x[4];", 5, 16, "power of two", -EINVAL },
    { ".shared .b8 x[2000000];", 5, 13, "shared memory", -E2BIG },
    { ".shared .b8 x[];", 5, 13, "is not known", -EINVAL },
    { ".shared .b32 x = 1;", 5, 18, "initial values", -EINVAL },
    { ".local .b8 x[600000];", 5, 12, "local memory", -E2BIG },
    { ".reg .frob q;", 5, 6, "type '.frob' is not known", -EINVAL },
    { ".frobnicate 3;", 5, 1, "directive '.frobnicate' is not known", -EINVAL },
    { "call nothing;", 5, 6, "'nothing' is not declared", -EINVAL },
    { "call %rd0, (), p;", 5, 16, "'p' is not declared", -EINVAL },
    { "call %rd0, (), %r0;", 5, 16, "'%r0' is no prototype", -EINVAL },
    { "call %rd0;", 5, 10, "',' expected", -EINVAL },
    { "call %r0, (), p;", 5, 6, "'%r0' does not hold an address", -EINVAL },
    { "p: .callprototype (.global .b32 _) _;", 5, 20, "'.param' or '.reg' expected", -EINVAL },
    { "p: .calltargets k; call %rd0, (1), p;", 5, 36, "a constant in a call without a prototype",
      -ENOTSUP },
    { "call k;", 5, 6, "no device function", -EINVAL },
    { "@%r0 bra L; L:", 5, 2, "'%r0' is .b32 where .pred", -EINVAL },
    { "@%p0", 6, 1, "instruction expected", -EINVAL },
    { "\"text\";", 5, 1, "statement expected", -EINVAL },
    { "mov.u32 %r0, 1", 6, 1, "';' expected, not '}'", -EINVAL },
    { "/* open", 5, 1, "comment does not end", -EINVAL },
    { "mov.u32 %r0, \x01;", 5, 14, "does not belong here", -EINVAL },
    { ".pragma \"x", 5, 9, "string does not end", -EINVAL },
};

Test(ptx_errors, statements)
{
    for (size_t i = 0; i < GM_ARRAY_LEN(statements); i++) {
        char *text = ptx_kernel(statements[i].body);
        expect(&statements[i], text);
        free(text);
    }
}

/* Whole texts. */
static const struct bad texts[] = {
    { "", 1, 1, "begins with '.version'", -EINVAL },
    { "// nothing\n", 2, 1, "begins with '.version'", -EINVAL },
    { "\x7f"
      "ELF",
      1, 1, "character", -EINVAL },
    { ".version eight", 1, 10, "version number", -EINVAL },
    { PTX_HEADER ".pragma \"x\n", 4, 9, "string does not end", -EINVAL },
    { ".version 8.5\n.entry k() {}", 2, 1, "'.target' expected", -EINVAL },
    { ".version 8.5\n.target sm_xyz", 2, 9, "not known", -EINVAL },
    { ".version 8.5 .target sm_75 .address_size 32", 1, 42, "only .address_size 64", -ENOTSUP },
    { PTX_HEADER "entry k() {}", 4, 1, "directive expected, not 'entry'", -EINVAL },
    { PTX_HEADER ".entry k() { ret;", 4, 18, "function 'k' does not end", -EINVAL },
    { PTX_HEADER ".entry k() { ret; } .entry k() { ret; }", 4, 28, "declared twice", -EINVAL },
    { PTX_HEADER ".global .u32 k; .entry k() { ret; }", 4, 24, "declared twice", -EINVAL },
    { PTX_HEADER ".extern .global .u32 x; .visible .global .u64 x;", 4, 47, "declared twice",
      -EINVAL },
    { PTX_HEADER ".extern .global .u32 x; .global .u32 x;", 4, 38, "declared twice", -EINVAL },
    { PTX_HEADER ".visible .global .u32 x; .visible .global .u32 x;", 4, 48, "declared twice",
      -EINVAL },
    { PTX_HEADER ".entry k(.param .u32 a, .param .u32 a) { ret; }", 4, 37, "declared twice",
      -EINVAL },
    { PTX_HEADER ".entry k(.reg .u32 a) { ret; }", 4, 10, "'.param' expected", -EINVAL },
    { PTX_HEADER ".entry k(.param .b8 a[40000]) { ret; }", 4, 21, "32764", -E2BIG },
    { PTX_HEADER ".entry k() .maxntid 0 { ret; }", 4, 21, "threads is 0", -EINVAL },
    { PTX_HEADER ".entry k() .reqnctapercluster 2 { ret; }", 4, 12, "'.reqnctapercluster'",
      -ENOTSUP },
    { PTX_HEADER ".frobnicate x;", 4, 1, "directive '.frobnicate' is not known", -EINVAL },
    { PTX_HEADER ".extern .global .u32 x[]; .entry k() { st.global.u32 [x], 1; }", 0, 0,
      "Unresolved extern variable 'x'", -EINVAL },
    { PTX_HEADER ".global .u32 x[2] = {1, 2, 3};", 4, 29, "more initial values", -EINVAL },
    { PTX_HEADER ".global .u32 x[2][2] = {{1, 2}, {3, 4}, {5}};", 4, 43, "more initial values",
      -EINVAL },
    { PTX_HEADER ".global .u32 x = 1.5;", 4, 18, "constant does not suit", -EINVAL },
    { PTX_HEADER ".global .u64 x = y;", 4, 18, "'y' is not declared", -EINVAL },
    { PTX_HEADER ".global .u8 x = 0xFE(x);", 4, 17, "mask of an address that is not one byte",
      -EINVAL },
    { PTX_HEADER
      ".func f(.reg .pred p) { call f, (p); ret; }\n.entry k() {\n.reg .pred %p; call f, (%p); }",
      6, 16, "call of 'f': a predicate is passed to a function that is not inlined", -ENOTSUP },
    { PTX_HEADER ".func f(.reg .u32 x) { call f; ret; }\n.entry k() { call f, (1); }", 4, 24,
      "wrong number", -EINVAL },
    { PTX_HEADER ".global .u32 x[99999999999999];", 4, 16, "over 68719476736", -E2BIG },
    { PTX_HEADER ".global .u32 x[68719476736];", 4, 14, "too large", -E2BIG },
    { PTX_HEADER ".global .align 2097152 .b8 x;", 4, 16, "over 1048576", -E2BIG },
    { PTX_HEADER ".local .b8 x; .entry k() { st.local.u8 [x], 1; }", 4, 41, "directive '.local'",
      -ENOTSUP },
    { PTX_HEADER ".entry k();", 4, 1, "the kernel has no body", -ENOTSUP },
    { PTX_HEADER ".func f();\n.entry k() {\n call f;\n}", 0, 0, "Unresolved extern function 'f'",
      -EINVAL },
    { PTX_HEADER ".func f();\n.func g() { call f; wgmma.fence; }\n.func f() {\n call g;\n}\n.entry "
                 "k() { call f; }",
      5, 21, "'wgmma'", -ENOTSUP },
    { PTX_HEADER ".func f(.reg .u32 x) { ret; }\n.entry k() { call f; }", 5, 14, "wrong number",
      -EINVAL },
    { PTX_HEADER ".func f(.param .b64 x) { ret; }\n.entry k() {\n.param .b32 y;\n call f, (y);\n}",
      7, 2, "does not suit the parameter", -EINVAL },
    { PTX_HEADER
      ".extern .func vprintf(.param .b64 x);\n.entry k() { .param .b64 y; call vprintf, (y); }",
      5, 29, "wrong number", -EINVAL },
    { PTX_HEADER ".section .debug_str {", 4, 22, "'}' of .section", -EINVAL },
};

Test(ptx_errors, texts)
{
    for (size_t i = 0; i < GM_ARRAY_LEN(texts); i++)
        expect(&texts[i], texts[i].body);
}

/* What a kernel lacks is its own matter: others of the module are as they would be without it. What
 * is wrong with the text behind the lack is found all the same. */
Test(ptx_errors, lacking)
{
    static const char text[] =
        PTX_HEADER ".global .b8 t[8];\n"
                   ".func f(.reg .u64 x) { wgmma.fence {a, b}; ret; }\n"
                   ".entry calls() { call f, (0); }\n"
                   ".entry uses() { .reg .b64 %d; wgmma.fence; mov.u64 %d, t; }\n"
                   ".entry nested() { .reg .pred %p; L: { @%p wgmma.fence; } .reg .b128 q; { L2: "
                   "bra L3; mov.b128 q, "
                   "q; L3: } }\n"
                   ".entry clusters(.param .u64 a) .reqnctapercluster 2 { bra L; L: { } }\n"
                   ".entry fine(.param .u64 a) { .reg .b64 %d; ld.param.u64 %d, [a]; st.global.u32 "
                   "[%d], 1; }\n";
    static const struct {
        const char *name, *lacks;
    } entries[] = {
        { "calls", "5:24: instruction 'wgmma' is not supported" },
        { "uses", "7:31: instruction 'wgmma' is not supported" },
        { "nested", "8:43: instruction 'wgmma' is not supported" },
        { "clusters", "9:32: directive '.reqnctapercluster' is not supported" },
        { "fine", "" },
    };
    struct ptx_error err;
    struct ir_module *m = ptx_try(text, &err);
    cr_assert(m != NULL, "%u:%u: %s", err.line, err.column, err.text);
    for (size_t i = 0; i < GM_ARRAY_LEN(entries); i++) {
        uint32_t fn = ir_module_find_fn(m, entries[i].name);
        cr_assert(fn != IR_NONE, "%s", entries[i].name);
        cr_expect_str_eq(ir_name(m, m->fns[fn].lacks), entries[i].lacks);
        cr_expect((m->fns[fn].instr_count == 0) == (*entries[i].lacks != '\0'));
    }
    ir_module_destroy(m);

    static const struct bad wrong[] = {
        { PTX_HEADER ".entry k() {\n wgmma.fence;\n frobnicate; }", 6, 2,
          "'frobnicate' is not known", -EINVAL },
        { PTX_HEADER ".entry k() {\n wgmma.fence }", 5, 14, "';' expected, not '}'", -EINVAL },
        { PTX_HEADER ".entry k() {\n .reg .b128 q;", 5, 15, "function 'k' does not end", -EINVAL },
        { PTX_HEADER ".entry k() { wgmma.fence; }\n.entry l() { ret }", 5, 18, "';' expected",
          -EINVAL },
        { PTX_HEADER ".global .texref t", 4, 18, "';' expected", -EINVAL },
    };
    for (size_t i = 0; i < GM_ARRAY_LEN(wrong); i++)
        expect(&wrong[i], wrong[i].body);
}

static char *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    cr_assert(f != NULL, "%s", path);
    cr_assert(fseek(f, 0, SEEK_END) == 0);
    *size = (size_t)ftell(f);
    rewind(f);
    char *text = malloc(*size + 1);
    cr_assert(fread(text, 1, *size, f) == *size);
    text[*size] = '\0';
    fclose(f);
    return text;
}

/* Cut at every byte: an error with a place inside the text, never a crash; whole: fine. The cut
 * text has its own allocation, so that a sanitizer sees a read behind its end. */
Test(ptx_errors, truncated)
{
    static const char *const names[] = { "vecadd", "reduction", "mandelbrot", "matmul" };
    for (size_t n = 0; n < GM_ARRAY_LEN(names); n++) {
        char path[512];
        size_t size, last = 0;
        snprintf(path, sizeof(path), "%s/%s/kernel.ptx", GMUX_EXAMPLES, names[n]);
        char *text = read_file(path, &size);
        struct ir_module *m;
        struct ptx_error err;
        cr_assert(ptx_parse(text, size, &m, &err) == 0, "%s: %u:%u %s", path, err.line, err.column,
                  err.text);
        ir_module_destroy(m);
        for (size_t k = 0; k < size; k++)
            if (text[k] == '}')
                last = k;
        for (size_t cut = 0; cut < size; cut++) {
            char *copy = malloc(cut + 1);
            memcpy(copy, text, cut);
            int rc = ptx_parse(copy, cut, &m, &err);
            if (rc == 0)
                /* Without the kernel's last brace nothing is whole, except the header alone. */
                cr_expect(cut > last || (m->fn_count == 0 && m->symbol_count == 0), "%s cut at %zu",
                          path, cut);
            else
                cr_expect(err.line > 0 && err.column > 0 && err.text[0], "%s cut at %zu", path,
                          cut);
            ir_module_destroy(m);
            free(copy);
        }
        free(text);
    }
}

/* Deep nesting, endless calls, huge declarations: refused, and quickly. */
Test(ptx_errors, limits, .timeout = 20)
{
    size_t size = 1 << 20;
    char *text = malloc(size);
    struct ir_module *m;
    struct ptx_error err;
    /* 100,000 scopes */
    size_t at = (size_t)snprintf(text, size, "%s.entry k() {", PTX_HEADER);
    memset(text + at, '{', 100000);
    text[at + 100000] = '\0';
    cr_expect(ptx_parse(text, size, &m, &err) == -E2BIG);
    /* f0 calls f1 twice, f1 calls f2 twice ... */
    at = (size_t)snprintf(text, size, "%s", PTX_HEADER);
    for (int i = 40; i-- > 0;) {
        if (i == 39)
            at += (size_t)snprintf(text + at, size - at, ".func f39() { trap; }\n");
        else
            at += (size_t)snprintf(text + at, size - at, ".func f%d() { call f%d; call f%d; }\n", i,
                                   i + 1, i + 1);
    }
    snprintf(text + at, size - at, ".entry k() { call f0; }");
    cr_expect(ptx_parse(text, strlen(text), &m, &err) == -E2BIG);
    cr_expect(strstr(err.text, "after inlining") != NULL, "%s", err.text);
    /* Registers: 16 functions of the greatest size are too many together. */
    at = (size_t)snprintf(text, size, "%s", PTX_HEADER);
    for (int i = 0; i < 100; i++)
        at +=
            (size_t)snprintf(text + at, size - at, ".entry k%d() { .reg .b32 %%r<1048576>; }\n", i);
    cr_expect(ptx_parse(text, strlen(text), &m, &err) == -E2BIG);
    cr_expect(strstr(err.text, "too many registers") != NULL, "%s", err.text);
    free(text);
}
