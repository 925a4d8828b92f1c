/*
 * Appends to the code of the function that is being parsed: instructions, and branches to labels
 * that may come later.
 */
#include "device/soft/ptx/parse.h"

bool ptx_add_fixup(struct ptx_parser *p, const struct ptx_token *name, uint32_t index,
                   bool in_targets)
{
    struct ptx_fixup *f = IR_PUSH(p->fixups, p->fixup_count, p->fixup_cap);
    if (!f)
        return ptx_out_of_memory(p);
    *f = (struct ptx_fixup) { .name = *name, .index = index, .in_targets = in_targets };
    return true;
}

bool ptx_append_instr(struct ptx_parser *p, const struct ir_instr *i)
{
    struct ir_raw_fn *raw = p->raw;
    if (raw->instr_count >= IR_MAX_INSTRS || p->instr_total >= p->instr_most) {
        struct ptx_token at = { .line = i->line, .column = i->column };
        return ptx_fail(p, -E2BIG, &at, "too many instructions");
    }
    struct ir_instr *added = IR_PUSH(raw->instrs, raw->instr_count, raw->instr_cap);
    if (!added)
        return ptx_out_of_memory(p);
    *added = *i;
    p->instr_total++;
    return true;
}
