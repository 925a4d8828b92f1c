/*
 * Special registers that tell a kernel of memory that its text does not declare.
 *
 * %envreg2 and %envreg1 are the lower and upper half of the address of the launch's workspace, as
 * compilers' headers for cooperative groups expect, or 0 in a launch that is not cooperative. Here
 * the address is a hidden parameter.
 *
 * %reserved_smem_offset_* are places in the shared memory that each block has beyond what its
 * program knows of: one word per barrier, and behind these what those headers keep there.
 */
#include "device/soft/ptx/expand.h"

#include "device/soft/ir/spaces.h"

/* Reads %envreg1 or %envreg2 by a load. */
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
    /* Where the places lie. The headers use less than 300 bytes at the second one. */
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
