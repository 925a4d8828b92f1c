/*
 * The device's own replacement for NVIDIA's device runtime: the grid's barrier, here, and malloc
 * (heap.c). The barrier is the second word of the launch's workspace (reserved.c): every block adds
 * 1, and one of them adds so much more that the last block changes the upper bit.
 *
 * Functions with the runtime's names are a unit of their own (link.c), which is added to a text
 * that calls one of them.
 */
#include "device/soft/ptx/parse.h"

static const char grids[] =
    "\n.pragma \"gmux unit own device runtime\";\n"
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    /* 1: the handle of the grid; 2: of several grids, which do not exist here. */
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
    /* A handle is the address of the condition's value. */
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
    /* These units come behind the text's lines. */
    p->lexer.line = line + 1;
    ptx_advance(p);
    return ptx_parse_units(p) && ptx_unit_end(p);
}

bool ptx_add_runtime(struct ptx_parser *p)
{
    return (!lacks(p, is_of_grids) || read_unit(p, grids, sizeof(grids) - 1)) &&
           (!lacks(p, is_of_heap) || read_unit(p, ptx_heap, ptx_heap_size));
}
