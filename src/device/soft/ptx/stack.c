/*
 * alloca, stacksave and stackrestore: memory of the thread that a kernel takes while it runs. It is
 * taken from the thread's stack, which begins behind the kernel's local memory and is as large as
 * the client's limit says. A register has the address of what is free, and grows; where that leaves
 * the stack, an access is an error as any other one outside of local memory.
 *
 * A function that is called would have to give back at its end what it took: only kernels take
 * some. (Compilers replace calls of such functions by their bodies.)
 */
#include <string.h>

#include "device/soft/ptx/expand.h"

#define ALIGN_MOST  (1u << 23)
#define ALIGN_USUAL 8u

/* The register; at the kernel's first use it is made. */
static bool find_top(struct ptx_expand *x, struct ir_src *top)
{
    struct ptx_parser *p = x->p;
    if (!p->m->fns[p->fn].is_entry)
        return ptx_fail(p, -ENOTSUP, x->opcode, "'%.*s' in a device function is not supported",
                        PTX_TEXT(x->opcode));
    if (p->stack_top == IR_NONE)
        p->stack_top = ptx_x_register(x, IR_B64);
    *top = ir_src_reg(p->stack_top);
    return !p->why.error;
}

/* The type of the addresses: .u32 or .u64. */
static bool take_type(struct ptx_expand *x, enum ir_type *type)
{
    bool narrow = ptx_x_take(x, "u32");
    *type = narrow ? IR_U32 : IR_U64;
    return narrow || ptx_x_take(x, "u64") ? ptx_x_taken_all(x) : ptx_x_refuse(x);
}

static void give(struct ptx_expand *x, enum ir_type type, uint32_t to, struct ir_src address)
{
    ptx_x_move(x, type, to, type == IR_U32 ? ptx_x_convert(x, IR_U32, IR_U64, address) : address);
}

/* alloca.u64 address, bytes, alignment; */
bool ptx_x_alloca(struct ptx_expand *x)
{
    enum ir_type type;
    struct ir_src top = { 0 }, bytes;
    uint32_t to;
    uint64_t align = ALIGN_USUAL;
    if (!take_type(x, &type) || !find_top(x, &top))
        return false;
    ptx_x_destinations(x, type, false, 1, &to);
    ptx_expect(x->p, ',');
    ptx_x_sources(x, type, false, 1, &bytes);
    struct ptx_token at = x->p->token;
    if (ptx_accept(x->p, ','))
        ptx_expect_uint(x->p, ALIGN_MOST, &align, "alignment");
    if (x->p->why.error)
        return false;
    if (align == 0 || (align & (align - 1)))
        return ptx_fail(x->p, -EINVAL, &at, "an alignment is a power of two");
    if (type == IR_U32 && bytes.kind == IR_SRC_REG)
        bytes = ptx_x_convert(x, IR_U64, IR_U32, bytes);
    struct ir_src address = ptx_x_op2(x, IR_OP_ADD, IR_U64, top, ptx_x_imm(align - 1));
    address = ptx_x_op2(x, IR_OP_AND, IR_B64, address, ptx_x_imm(~(align - 1)));
    ptx_x_move(x, IR_B64, top.index, ptx_x_op2(x, IR_OP_ADD, IR_U64, address, bytes));
    if (to != IR_NONE)
        give(x, type, to, address);
    return true;
}

/* stacksave.u64 mark; */
bool ptx_x_stacksave(struct ptx_expand *x)
{
    enum ir_type type;
    struct ir_src top = { 0 };
    uint32_t to;
    if (!take_type(x, &type) || !find_top(x, &top))
        return false;
    ptx_x_destinations(x, type, false, 1, &to);
    if (to != IR_NONE)
        give(x, type, to, top);
    return true;
}

/* stackrestore.u64 mark; */
bool ptx_x_stackrestore(struct ptx_expand *x)
{
    enum ir_type type;
    struct ir_src top = { 0 }, mark;
    if (!take_type(x, &type) || !find_top(x, &top))
        return false;
    ptx_x_sources(x, type, false, 1, &mark);
    if (type == IR_U32 && mark.kind == IR_SRC_REG)
        mark = ptx_x_convert(x, IR_U64, IR_U32, mark);
    ptx_x_move(x, IR_B64, top.index, mark);
    return true;
}

bool ptx_begin_stack(struct ptx_parser *p)
{
    const struct ptx_variable v = { .name = { .text = "%stack", .length = 6 },
                                    .space = IR_SPACE_LOCAL,
                                    .type = IR_B8,
                                    .vector = 1,
                                    .align = 16,
                                    .is_unsized = true };
    struct ir_raw_fn *raw = p->raw;
    struct ir_instr mov;
    if (p->stack_top == IR_NONE)
        return true;
    if (!p->has_stack && !ptx_new_symbol(p, &v, IR_SYM_EXTERN, &p->stack))
        return false;
    p->has_stack = true;
    ir_instr_init(&mov, IR_OP_MOV, p->m->fns[p->fn].line, 1);
    mov.type = IR_B64;
    mov.dst_count = mov.src_count = 1;
    mov.dst[0] = p->stack_top;
    mov.src[0] = (struct ir_src) { .kind = IR_SRC_SYMBOL, .index = p->stack };
    if (!ptx_append_instr(p, &mov))
        return false;
    memmove(raw->instrs + 1, raw->instrs, (raw->instr_count - 1) * sizeof(*raw->instrs));
    raw->instrs[0] = mov;
    for (uint32_t l = 0; l < raw->label_count; l++)
        raw->labels[l]++;
    return true;
}
