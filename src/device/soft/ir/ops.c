/*
 * The tables of ops.h as data, and look-ups in a module.
 */
#include "device/soft/ir/ir.h"

#include <stdlib.h>
#include <string.h>

const struct ir_op_info ir_ops[IR_OP_COUNT] = {
#define IR_OP(name, text, form, sources, types, modifiers, properties)                             \
    { text, sources, properties },
#include "device/soft/ir/ops.h"
};

const struct ir_type_info ir_types[IR_TYPE_COUNT] = {
#define CLASS_B                          'B'
#define CLASS_U                          'U'
#define CLASS_S                          'S'
#define CLASS_F                          'F'
#define CLASS_P                          'P'
#define IR_TYPE(name, text, size, class) { text, size, CLASS_##class },
#include "device/soft/ir/ops.h"
};

const struct ir_sreg_info ir_sregs[IR_SREG_COUNT] = {
#define IR_SREG(name, text, type) { text, IR_##type },
#include "device/soft/ir/ops.h"
};

const char *const ir_helper_names[IR_HELPER_COUNT] = {
    [IR_HELPER_VPRINTF] = "vprintf",
    [IR_HELPER_ASSERTFAIL] = "__assertfail",
    [IR_HELPER_CHILD_BYTES] = "__gmux_child_bytes",
    [IR_HELPER_CHILD_LAUNCH] = "__gmux_child_launch",
};

void ir_module_destroy(struct ir_module *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; i < m->fn_count; i++) {
        free(m->fns[i].instrs);
        free(m->fns[i].blocks);
        free(m->fns[i].regs);
        free(m->fns[i].succ);
    }
    free(m->fns);
    free(m->symbols);
    free(m->params);
    free(m->relocs);
    free(m->init_bytes);
    free(m->strings);
    free(m);
}

uint64_t ir_module_bytes(const struct ir_module *m)
{
    uint64_t bytes = sizeof(*m) + m->fn_count * sizeof(*m->fns) +
                     m->symbol_count * sizeof(*m->symbols) + m->param_count * sizeof(*m->params) +
                     m->reloc_count * sizeof(*m->relocs) + m->init_size + m->strings_size;
    for (uint32_t i = 0; i < m->fn_count; i++) {
        const struct ir_fn *f = &m->fns[i];
        bytes += f->instr_count * sizeof(*f->instrs) + f->block_count * sizeof(*f->blocks) +
                 f->reg_count * sizeof(*f->regs) + f->succ_count * sizeof(*f->succ);
    }
    return bytes;
}

enum ir_helper ir_find_helper(const char *name)
{
    enum ir_helper h = 0;
    while (h < IR_HELPER_COUNT && strcmp(ir_helper_names[h], name) != 0)
        h++;
    return h;
}

uint32_t ir_module_find_fn(const struct ir_module *m, const char *name)
{
    for (uint32_t i = 0; i < m->fn_count; i++)
        if (m->fns[i].is_entry && strcmp(ir_name(m, m->fns[i].name), name) == 0)
            return i;
    return IR_NONE;
}

uint32_t ir_module_find_symbol(const struct ir_module *m, const char *name)
{
    for (uint32_t i = 0; i < m->symbol_count; i++)
        if (m->symbols[i].fn == IR_NONE && ir_symbol_is_placed(m, i) &&
            strcmp(ir_name(m, m->symbols[i].name), name) == 0)
            return i;
    return IR_NONE;
}
