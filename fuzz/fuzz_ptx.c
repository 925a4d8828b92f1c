/*
 * PTX text, as a client may load it. Beyond not crashing: what is accepted is well-formed (the
 * interpreter and the compiler trust every index and width in it), its printed form is accepted
 * again, and the analyses answer.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/soft/ir/analysis.h"
#include "device/soft/ir/ir.h"
#include "device/soft/ptx/ptx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

static void check_register(const struct ir_fn *fn, uint32_t reg)
{
    require(reg == IR_NONE || reg < fn->reg_count);
}

static void check_instr(const struct ir_module *m, const struct ir_fn *fn, const struct ir_instr *i)
{
    require(i->op < IR_OP_COUNT && i->type < IR_TYPE_COUNT && i->type2 < IR_TYPE_COUNT);
    require(i->op != IR_OP_CALL && i->op != IR_OP_BARRIER && i->op != IR_OP_LDU);
    require(i->dst_count <= IR_MAX_DST && i->src_count <= IR_MAX_SRC);
    check_register(fn, i->guard);
    check_register(fn, i->dst_pred);
    check_register(fn, i->address.base);
    require(i->guard == IR_NONE || fn->regs[i->guard].type == IR_PRED);
    require(i->dst_pred == IR_NONE || fn->regs[i->dst_pred].type == IR_PRED);
    for (unsigned d = 0; d < i->dst_count; d++)
        check_register(fn, i->dst[d]);
    for (unsigned s = 0; s < i->src_count; s++) {
        const struct ir_src *src = &i->src[s];
        require(src->kind == IR_SRC_REG || src->kind == IR_SRC_IMM || src->kind == IR_SRC_SYMBOL ||
                src->kind == IR_SRC_SREG);
        require(src->kind != IR_SRC_REG || src->index < fn->reg_count);
        require(src->kind != IR_SRC_SREG || (src->index < IR_SREG_COUNT && i->op == IR_OP_MOV));
        require(src->kind != IR_SRC_SYMBOL ||
                (src->index < m->symbol_count && ir_symbol_is_placed(m, src->index)));
    }
    uint32_t symbol = i->address.symbol;
    if (symbol == IR_NONE)
        return;
    require(symbol < m->symbol_count);
    require(ir_symbol_is_placed(m, symbol) || (m->symbols[symbol].flags & IR_SYM_KERNEL_PARAM));
    if (!ir_symbol_is_placed(m, symbol))
        require(i->address.base == IR_NONE &&
                m->symbols[symbol].offset + m->symbols[symbol].size <= fn->param_bytes);
}

static void check_fn(const struct ir_module *m, const struct ir_fn *fn)
{
    uint32_t next = 0;
    require(fn->block_count > 0);
    for (uint32_t b = 0; b < fn->block_count; b++) {
        const struct ir_block *block = &fn->blocks[b];
        require(block->first == next && block->count > 0);
        next += block->count;
        require(next <= fn->instr_count && block->succ_first + block->succ_count <= fn->succ_count);
        for (uint32_t s = 0; s < block->succ_count; s++)
            require(fn->succ[block->succ_first + s] < fn->block_count &&
                    fn->succ[block->succ_first + s] != 0);
        for (uint32_t n = 0; n < block->count; n++) {
            const struct ir_instr *i = &fn->instrs[block->first + n];
            bool last = n + 1 == block->count;
            require(last || !((ir_ops[i->op].properties & IR_P_TERMINATOR) || ir_is_barrier(i)));
            check_instr(m, fn, i);
            if (i->op == IR_OP_BRA)
                require(i->target == fn->succ[block->succ_first]);
        }
    }
    require(next == fn->instr_count);
}

static void check_analysis(const struct ir_module *m, uint32_t fn,
                           const struct ir_analyse_options *opt)
{
    struct ir_analysis *a;
    int rc = ir_analyse(m, fn, opt, &a);
    require(rc == 0 || rc == -E2BIG || rc == -ENOMEM);
    if (rc)
        return;
    for (uint32_t n = 0; n < a->order_count; n++) {
        const struct ir_block_info *info = &a->blocks[a->order[n]];
        require(info->priority == n);
        for (uint32_t k = 0; k < info->frontier.count; k++)
            require(a->blocks[a->pool[info->frontier.first + k]].priority > n);
    }
    for (uint32_t r = 0; r < a->reg_count; r++) {
        require(a->regs[r].shape <= IR_PATTERN);
        require((a->regs[r].shape == IR_AFFINE) == (a->regs[r].stride != 0));
        require(a->regs[r].pattern <= a->pattern_count);
        require(a->regs[r].shape != IR_PATTERN || a->regs[r].pattern != 0);
    }
    for (uint32_t r = 0; r < a->region_count; r++)
        require(a->regions[r].blocks.count > 0 && a->regions[r].start < a->block_count);
    ir_analysis_destroy(a);
}

/* Host calls and addresses in initial values are not written as PTX; nor are levels of textures by
 * derivatives, elements of 16 bits, and offsets that are not constants, which the parser makes of
 * several instructions. */
static bool is_written(const struct ir_instr *i)
{
    bool odd = i->mode2 > IR_TEXTURE_GATHER_A || i->type == IR_F16 || i->src[7].kind != IR_SRC_IMM;
    return i->op != IR_OP_HELPER && !(i->op == IR_OP_TEX && odd);
}

static void check_again(const struct ir_module *m)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    ir_print(m, out);
    fclose(out);
    bool whole = m->reloc_count == 0;
    for (uint32_t f = 0; f < m->fn_count; f++)
        for (uint32_t i = 0; i < m->fns[f].instr_count; i++)
            whole &= is_written(&m->fns[f].instrs[i]);
    struct ir_module *again;
    struct ptx_error err;
    int rc = ptx_parse(text, size, &again, &err);
    require(rc == 0 || rc == -E2BIG || rc == -ENOMEM || !whole);
    ir_module_destroy(again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct ir_analyse_options options[] = {
        { .rows = false },
        { .rows = true, .small_grid = true },
        { .ntid = { 16, 16, 1 }, .small_grid = true },
    };
    struct ir_module *m;
    struct ptx_error err;
    int rc = ptx_parse((const char *)data, size, &m, &err);
    require((rc == 0) == (m != NULL));
    require(rc == 0 || (err.text[0] != '\0' && memchr(err.text, '\0', sizeof(err.text))));
    if (!m)
        return 0;
    for (uint32_t f = 0; f < m->fn_count; f++) {
        if (!m->fns[f].is_entry || m->fns[f].lacks) {
            require(m->fns[f].instr_count == 0);
            continue;
        }
        check_fn(m, &m->fns[f]);
        for (size_t o = 0; o < sizeof(options) / sizeof(options[0]); o++)
            check_analysis(m, f, &options[o]);
    }
    if (size < 1 << 16)
        check_again(m);
    ir_module_destroy(m);
    return 0;
}
