/*
 * What the device has of its own for programs that would link NVIDIA's device runtime: the grid's
 * barrier, here, and malloc (heap.c). %envreg2 and %envreg1 are the lower and the upper half of the
 * address of the launch's workspace, as compilers' headers for cooperative groups expect it, or 0
 * in a launch that is not cooperative; here it is a hidden parameter. The barrier is the word
 * behind the first one: every block adds 1, one of them so much more that the last one changes the
 * upper bit.
 *
 * Each block has shared memory beside what its program may know of: a word for each barrier, and
 * behind them what compilers' headers for cooperative groups keep there.
 *
 * Functions of the runtime's names are a unit of their own (link.c), made where a text calls one of
 * them.
 */
#include "device/soft/ptx/expand.h"

#include "device/soft/ir/spaces.h"

static const char grids[] =
    "\n.pragma \"gmux unit own device runtime\";\n"
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    /* 1: the grid's, 2: that of several grids, which there is not. */
    ".visible .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)\n{\n"
    " .reg .b32 %r<4>; .reg .b64 %h<3>; .reg .pred %p;\n"
    " ld.param.u32 %r1, [scope]; mov.u32 %r2, %envreg2; mov.u32 %r3, %envreg1; mov.b64 %h1, {%r2, "
    "%r3};\n"
    " setp.eq.u32 %p, %r1, 1; selp.b64 %h2, %h1, 0, %p;\n"
    " st.param.b64 [handle], %h2; ret;\n}\n"
    ".visible .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 "
    "flags)\n{\n"
    " .reg .b32 %r<12>; .reg .b64 %h; .reg .pred %p<4>;\n"
    " ld.param.u64 %h, [handle]; setp.ne.u64 %p1, %h, 0; @%p1 bra there; st.param.b32 [result], 1; "
    "ret;\n"
    "there:\n"
    " barrier.sync 0;\n"
    " mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;\n"
    " or.b32 %r1, %r1, %r2; or.b32 %r1, %r1, %r3; setp.ne.u32 %p1, %r1, 0; @%p1 bra met;\n"
    " mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z;\n"
    " or.b32 %r1, %r1, %r2; or.b32 %r1, %r1, %r3; setp.eq.u32 %p2, %r1, 0;\n"
    " mov.u32 %r4, %nctaid.x; mov.u32 %r5, %nctaid.y; mov.u32 %r6, %nctaid.z;\n"
    " mul.lo.u32 %r4, %r4, %r5; mul.lo.u32 %r4, %r4, %r6; sub.u32 %r4, 0x80000001, %r4; selp.b32 "
    "%r4, %r4, 1, %p2;\n"
    " atom.add.release.gpu.u32 %r7, [%h+4], %r4;\n"
    "wait:\n"
    " ld.acquire.gpu.u32 %r8, [%h+4]; xor.b32 %r8, %r8, %r7; setp.ge.s32 %p3, %r8, 0; @%p3 bra "
    "wait;\n"
    "met:\n"
    " barrier.sync 0; st.param.b32 [result], 0; ret;\n}\n"
    ".visible .func (.param .b32 result) cudaCGSynchronizeGrid(.param .b64 handle, .param .b32 "
    "flags)\n{\n"
    " .reg .b32 %r; { .param .b64 h; .param .b32 f; .param .b32 r; .reg .b64 %h; ld.param.b64 %h, "
    "[handle];\n"
    " st.param.b64 [h], %h; st.param.b32 [f], 0; call (r), cudaCGSynchronize, (h, f); ld.param.b32 "
    "%r, [r]; }\n"
    " st.param.b32 [result], %r; ret;\n}\n"
    ".visible .func (.param .b32 result) cudaCGGetSize(.param .b64 threads, .param .b64 grids, "
    ".param .b64 "
    "handle)\n{\n"
    " .reg .b32 %r<9>; .reg .b64 %h<4>; .reg .pred %p<4>;\n"
    " ld.param.u64 %h1, [handle]; setp.ne.u64 %p1, %h1, 0; mov.u32 %r1, 1; @!%p1 bra done;\n"
    " ld.param.u64 %h2, [threads]; ld.param.u64 %h3, [grids]; setp.ne.u64 %p2, %h2, 0; setp.ne.u64 "
    "%p3, %h3, 0;\n"
    " mov.u32 %r2, %ntid.x; mov.u32 %r3, %ntid.y; mov.u32 %r4, %ntid.z;\n"
    " mov.u32 %r5, %nctaid.x; mov.u32 %r6, %nctaid.y; mov.u32 %r7, %nctaid.z;\n"
    " mul.lo.u32 %r2, %r2, %r3; mul.lo.u32 %r2, %r2, %r4; mul.lo.u32 %r2, %r2, %r5;\n"
    " mul.lo.u32 %r2, %r2, %r6; mul.lo.u32 %r2, %r2, %r7;\n"
    " @%p2 st.u32 [%h2], %r2; @%p3 st.u32 [%h3], 1; mov.u32 %r1, 0;\n"
    "done:\n"
    " st.param.b32 [result], %r1; ret;\n}\n"
    ".visible .func (.param .b32 result) cudaCGGetRank(.param .b64 thread, .param .b64 grid, "
    ".param .b64 handle)\n{\n"
    " .reg .b32 %r<9>; .reg .b64 %h<4>; .reg .pred %p<4>;\n"
    " ld.param.u64 %h1, [handle]; setp.ne.u64 %p1, %h1, 0; mov.u32 %r1, 1; @!%p1 bra done;\n"
    " ld.param.u64 %h2, [thread]; ld.param.u64 %h3, [grid]; setp.ne.u64 %p2, %h2, 0; setp.ne.u64 "
    "%p3, %h3, 0;\n"
    " mov.u32 %r2, %ctaid.z; mov.u32 %r3, %nctaid.y; mov.u32 %r4, %ctaid.y; mad.lo.u32 %r2, %r2, "
    "%r3, %r4;\n"
    " mov.u32 %r3, %nctaid.x; mov.u32 %r4, %ctaid.x; mad.lo.u32 %r2, %r2, %r3, %r4;\n"
    " mov.u32 %r3, %ntid.z; mov.u32 %r4, %tid.z; mad.lo.u32 %r2, %r2, %r3, %r4;\n"
    " mov.u32 %r3, %ntid.y; mov.u32 %r4, %tid.y; mad.lo.u32 %r2, %r2, %r3, %r4;\n"
    " mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r2, %r2, %r3, %r4;\n"
    " @%p2 st.u32 [%h2], %r2; @%p3 st.u32 [%h3], 0; mov.u32 %r1, 0;\n"
    "done:\n"
    " st.param.b32 [result], %r1; ret;\n}\n"
    /* A handle is the address of its value. */
    ".visible .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value)\n{\n"
    " .reg .b32 %r; .reg .b64 %h; ld.param.u64 %h, [handle]; ld.param.u32 %r, [value];\n"
    " st.volatile.u32 [%h], %r; ret;\n}\n";

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static bool is_of_grids(const char *name)
{
    return begins(name, "cudaCG") || strcmp(name, "cudaGraphSetConditional") == 0;
}

static bool is_of_heap(const char *name)
{
    return strcmp(name, "malloc") == 0 || strcmp(name, "free") == 0;
}

static bool lacks(const struct ptx_parser *p, bool (*is_one)(const char *name))
{
    for (uint32_t n = 0; n < p->link_count; n++) {
        const struct ptx_link *l = &p->links[n];
        if (l->kind == PTX_NAME_FN && !p->m->fns[l->index].is_defined &&
            is_one(ir_name(p->m, p->m->fns[l->index].name)))
            return true;
    }
    return false;
}

static bool read_unit(struct ptx_parser *p, const char *text, size_t size)
{
    uint32_t line = p->lexer.line;
    ptx_lexer_init(&p->lexer, text, size);
    p->lexer.line = line + 1; /* behind the text's lines */
    ptx_advance(p);
    return ptx_parse_units(p) && ptx_unit_end(p);
}

bool ptx_add_runtime(struct ptx_parser *p)
{
    return (!lacks(p, is_of_grids) || read_unit(p, grids, sizeof(grids) - 1)) &&
           (!lacks(p, is_of_heap) || read_unit(p, ptx_heap, ptx_heap_size));
}

/* %envreg1, %envreg2 as a load. */
bool ptx_parse_workspace(struct ptx_parser *p, const struct ptx_token *t, unsigned half,
                         struct ir_src *out)
{
    const struct ptx_variable v = {
        .name = { .text = "%envreg", .length = 7, .line = t->line, .column = t->column },
        .space = IR_SPACE_PARAM,
        .type = IR_B64,
        .vector = 1,
        .align = 8,
        .size = 8
    };
    struct ir_instr ld;
    uint32_t name;
    if (!p->has_workspace &&
        !ptx_new_symbol(p, &v, IR_SYM_KERNEL_PARAM | IR_SYM_WORKSPACE, &p->workspace))
        return false;
    p->has_workspace = true;
    ir_instr_init(&ld, IR_OP_LD, t->line, t->column);
    ld.type = IR_B32;
    ld.space = IR_SPACE_PARAM;
    ld.dst_count = 1;
    ld.address.symbol = p->workspace;
    ld.address.displacement = half * 4;
    if (!ptx_intern(p, t, t->length, &name) ||
        !ptx_new_register(p, t, IR_B32, name, IR_NONE, &ld.dst[0]))
        return false;
    *out = ir_src_reg(ld.dst[0]);
    return ptx_append_instr(p, &ld);
}

struct ir_src ptx_x_behind_shared(struct ptx_expand *x)
{
    struct ir_src end =
        ptx_x_op2(x, IR_OP_ADD, IR_U32, ptx_x_sreg(x, IR_SREG_TOTAL_SMEM), ptx_x_imm(15));
    return ptx_x_op2(x, IR_OP_AND, IR_B32, end, ptx_x_imm(~15u));
}

bool ptx_parse_reserved(struct ptx_parser *p, const struct ptx_token *t, const char *text,
                        uint32_t length, struct ir_src *out)
{
    /* Where they are: the headers take less than 300 bytes at the second one. */
    static const struct {
        const char *text;
        uint32_t at;
    } all[] = {
        { "%reserved_smem_offset_begin", SOFT_SHARED_BARRIERS },
        { "%reserved_smem_offset_0", SOFT_SHARED_BARRIERS },
        { "%reserved_smem_offset_1", SOFT_SHARED_BARRIERS + SOFT_SHARED_RESERVED / 2 },
        { "%reserved_smem_offset_end", SOFT_SHARED_BARRIERS + SOFT_SHARED_RESERVED },
    };
    static const char cap[] = "%reserved_smem_offset_cap";
    struct ptx_expand x = { .p = p, .opcode = t, .guard = IR_NONE };
    if (length == sizeof(cap) - 1 && memcmp(text, cap, length) == 0) {
        *out = ptx_x_imm(SOFT_SHARED_RESERVED);
        return true;
    }
    for (size_t k = 0; k < GM_ARRAY_LEN(all); k++) {
        if (length != strlen(all[k].text) || memcmp(text, all[k].text, length) != 0)
            continue;
        *out = ptx_x_op2(&x, IR_OP_ADD, IR_U32, ptx_x_behind_shared(&x), ptx_x_imm(all[k].at));
        return true;
    }
    return false;
}
