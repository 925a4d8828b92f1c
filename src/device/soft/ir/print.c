/*
 * Prints a module as text, for tests and for people. An entry is printed as PTX (except for calls
 * of helpers) that parses to the same code; registers are named after their numbers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "device/soft/ir/ir.h"

static const char *const spaces[] = { "", ".global", ".const", ".shared", ".local", ".param" };
static const char *const rounds[] = { "",     ".rn",  ".rz",  ".rm",  ".rp",
                                      ".rni", ".rzi", ".rmi", ".rpi", ".rna" };
static const char *const compares[] = { "",     ".eq",  ".ne",  ".lt",  ".le",
                                        ".gt",  ".ge",  ".equ", ".neu", ".ltu",
                                        ".leu", ".gtu", ".geu", ".num", ".nan" };
static const char *const boolops[] = { "", ".and", ".or", ".xor" };
static const char *const orders[] = { "",         ".relaxed", ".acquire", ".release",
                                      ".acq_rel", ".sc",      ".volatile" };
static const char *const scopes[] = { "", ".cta", ".cluster", ".gpu", ".sys" };
static const char *const modes[] = {
    [IR_MODE_NONE] = "",
    [IR_MUL_LO] = ".lo",
    [IR_MUL_HI] = ".hi",
    [IR_MUL_WIDE] = ".wide",
    [IR_SHF_L] = ".l",
    [IR_SHF_R] = ".r",
    [IR_PRMT_F4E] = ".f4e",
    [IR_PRMT_B4E] = ".b4e",
    [IR_PRMT_RC8] = ".rc8",
    [IR_PRMT_ECL] = ".ecl",
    [IR_PRMT_ECR] = ".ecr",
    [IR_PRMT_RC16] = ".rc16",
    [IR_TESTP_FINITE] = ".finite",
    [IR_TESTP_INFINITE] = ".infinite",
    [IR_TESTP_NUMBER] = ".number",
    [IR_TESTP_NOTANUMBER] = ".notanumber",
    [IR_TESTP_NORMAL] = ".normal",
    [IR_TESTP_SUBNORMAL] = ".subnormal",
    [IR_ATOM_ADD] = ".add",
    [IR_ATOM_MIN] = ".min",
    [IR_ATOM_MAX] = ".max",
    [IR_ATOM_AND] = ".and",
    [IR_ATOM_OR] = ".or",
    [IR_ATOM_XOR] = ".xor",
    [IR_ATOM_INC] = ".inc",
    [IR_ATOM_DEC] = ".dec",
    [IR_ATOM_EXCH] = ".exch",
    [IR_ATOM_CAS] = ".cas",
    [IR_ATOM_PHASE] = ".phase",
    [IR_SHFL_UP] = ".up",
    [IR_SHFL_DOWN] = ".down",
    [IR_SHFL_BFLY] = ".bfly",
    [IR_SHFL_IDX] = ".idx",
    [IR_VOTE_ALL] = ".all",
    [IR_VOTE_ANY] = ".any",
    [IR_VOTE_UNI] = ".uni",
    [IR_VOTE_BALLOT] = ".ballot",
    [IR_BAR_SYNC] = ".sync",
    [IR_BAR_ARRIVE] = ".arrive",
    [IR_BAR_RED_AND] = ".red.and",
    [IR_BAR_RED_OR] = ".red.or",
    [IR_BAR_RED_POPC] = ".red.popc",
    [IR_TRAP_PC] = "",
    [IR_BRANCH_CALL] = ".call",
    [IR_BRANCH_RETURN] = ".return",
    [IR_CVTA_FROM] = "",
    [IR_CVTA_TO] = ".to",
};

static const char *const geometries[] = { ".1d", ".2d", ".3d", ".a1d", ".a2d", ".cube", ".acube" };
static const char *const textures[] = { ".base",     ".level",    ".gather.r", ".gather.g",
                                        ".gather.b", ".gather.a", ".lod",      ".pack" };
static const char *const elements[] = {
    [IR_MMA_F16] = ".f16",       [IR_MMA_BF16] = ".bf16",     [IR_MMA_TF32] = ".tf32",
    [IR_MMA_E4M3] = ".e4m3",     [IR_MMA_E5M2] = ".e5m2",     [IR_MMA_S8] = ".s8",
    [IR_MMA_U8] = ".u8",         [IR_MMA_S4] = ".s4",         [IR_MMA_U4] = ".u4",
    [IR_MMA_B1_XOR] = ".b1.xor", [IR_MMA_B1_AND] = ".b1.and",
};

struct ir_printer {
    const struct ir_module *m;
    const struct ir_fn *fn;
    FILE *out;
};

static const char *prefix(enum ir_type type)
{
    if (type == IR_PRED)
        return "%p";
    bool is_float = type == IR_F32 || type == IR_F64;
    switch (ir_types[type].size) {
    case 1:
        return "%rc";
    case 2:
        return "%rs";
    case 4:
        return is_float ? "%f" : "%r";
    default:
        return is_float ? "%fd" : "%rd";
    }
}

static void print_reg(const struct ir_printer *p, uint32_t reg)
{
    if (reg == IR_NONE)
        fputs("_", p->out);
    else
        fprintf(p->out, "%s%u", prefix(p->fn->regs[reg].type), reg);
}

/* The type of operand `n`, for printing constants. */
static enum ir_type constant_type(const struct ir_instr *i, unsigned n)
{
    switch (i->op) {
    case IR_OP_CVT:
    case IR_OP_SET:
        return n < 2 ? i->type2 : IR_PRED;
    case IR_OP_SETP:
        return n < 2 ? i->type : IR_PRED;
    case IR_OP_SLCT:
        return n < 2 ? i->type : i->type2;
    case IR_OP_SHL:
    case IR_OP_SHR:
        return n == 0 ? i->type : IR_U32;
    case IR_OP_BFE:
        return n == 0 ? i->type : IR_U32;
    case IR_OP_BFI:
        return n < 2 ? i->type : IR_U32;
    case IR_OP_BAR:
    case IR_OP_PACK:
        return IR_U32;
    default:
        return i->type;
    }
}

/* A function's variable may have the same name as one of the module's; as printed, all belong to
 * the module. */
static void print_name(const struct ir_module *m, uint32_t symbol, FILE *out)
{
    const char *name = ir_name(m, m->symbols[symbol].name);
    fputs(name, out);
    for (uint32_t s = 0; s < symbol; s++)
        if (ir_symbol_is_placed(m, s) && strcmp(ir_name(m, m->symbols[s].name), name) == 0) {
            fprintf(out, "$%" PRIu32, symbol);
            break;
        }
}

static void print_src(const struct ir_printer *p, const struct ir_instr *i, unsigned n)
{
    const struct ir_src *s = &i->src[n];
    if (s->negated)
        fputs("!", p->out);
    switch (s->kind) {
    case IR_SRC_REG:
        print_reg(p, s->index);
        break;
    case IR_SRC_IMM: {
        enum ir_type type = constant_type(i, n);
        if (type == IR_F32)
            fprintf(p->out, "0f%08" PRIX32, (uint32_t)s->bits);
        else if (type == IR_F64)
            fprintf(p->out, "0d%016" PRIX64, s->bits);
        else if (ir_type_is_signed(type))
            fprintf(p->out, "%" PRId64, (int64_t)s->bits);
        else
            fprintf(p->out, "%" PRIu64, s->bits);
        break;
    }
    case IR_SRC_SYMBOL:
        print_name(p->m, s->index, p->out);
        if (s->bits)
            fprintf(p->out, "+%" PRId64, (int64_t)s->bits);
        break;
    case IR_SRC_SREG:
        fputs(ir_sregs[s->index].text, p->out);
        break;
    default:
        fputs("_", p->out);
        break;
    }
}

static void print_sources(const struct ir_printer *p, const struct ir_instr *i, unsigned from,
                          bool vector)
{
    unsigned count = i->src_count;
    if (ir_ops[i->op].properties & IR_P_CARRY_IN)
        count--; /* not written in PTX */
    if (vector)
        fputs("{", p->out);
    for (unsigned n = from; n < count; n++) {
        fputs(n > from ? ", " : "", p->out);
        print_src(p, i, n);
    }
    if (vector)
        fputs("}", p->out);
}

static void print_address(const struct ir_printer *p, const struct ir_instr *i)
{
    const struct ir_address *a = &i->address;
    fputs("[", p->out);
    if (a->base != IR_NONE)
        print_reg(p, a->base);
    else if (a->symbol != IR_NONE)
        print_name(p->m, a->symbol, p->out);
    if (a->base == IR_NONE && a->symbol == IR_NONE)
        fprintf(p->out, "%" PRIu64, (uint64_t)a->displacement);
    else if (a->displacement)
        fprintf(p->out, "+%" PRId64, a->displacement);
    fputs("]", p->out);
}

static void print_destinations(const struct ir_printer *p, const struct ir_instr *i)
{
    if (i->dst_count > 1)
        fputs("{", p->out);
    for (unsigned d = 0; d < i->dst_count; d++) {
        fputs(d ? ", " : "", p->out);
        print_reg(p, i->dst[d]);
    }
    if (i->dst_count > 1)
        fputs("}", p->out);
    if (i->dst_pred != IR_NONE && !(i->flags & IR_F_CARRY_OUT)) {
        fputs("|", p->out);
        print_reg(p, i->dst_pred);
    }
}

static bool is_to_tf32(const struct ir_instr *i)
{
    return i->op == IR_OP_CVT && i->type == IR_B32 && i->type2 == IR_F32;
}

static void print_flags(const struct ir_printer *p, const struct ir_instr *i)
{
    unsigned f = i->flags;
    fputs(f & IR_F_APPROX ? ".approx" : "", p->out);
    fputs(f & IR_F_FTZ ? ".ftz" : "", p->out);
    fputs(f & IR_F_NAN ? ".NaN" : "", p->out);
    fputs(f & IR_F_XORSIGN ? ".xorsign.abs" : "", p->out);
    fputs(f & IR_F_RELU ? ".relu" : "", p->out);
    bool finite = i->op == IR_OP_CVT && (i->type == IR_E4M3X2 || i->type == IR_E5M2X2);
    fputs(!(f & IR_F_SAT) ? "" : is_to_tf32(i) ? ".satfinite" : ".sat", p->out);
    fputs(finite ? ".satfinite" : "", p->out);
    bool half = ir_type_is_float(i->type) && i->type != IR_F32 && i->type != IR_F64;
    fputs((i->op == IR_OP_ATOM || i->op == IR_OP_RED) && half ? ".noftz" : "", p->out);
    fputs(f & IR_F_SHIFTAMT ? ".shiftamt" : "", p->out);
    fputs(f & IR_F_CARRY_OUT ? ".cc" : "", p->out);
    bool amount = i->op == IR_OP_SHF || i->op == IR_OP_BMSK || i->op == IR_OP_SZEXT;
    fputs(!amount ? "" : f & IR_F_WRAP ? ".wrap" : ".clamp", p->out);
}

static void print_opcode(const struct ir_printer *p, const struct ir_instr *i)
{
    bool memory = ir_ops[i->op].properties & (IR_P_LOAD | IR_P_STORE);
    bool mode_last = i->op == IR_OP_PRMT;
    unsigned width = i->op == IR_OP_LD ? i->dst_count : i->op == IR_OP_ST ? i->src_count : 1;
    fputs(ir_ops[i->op].text, p->out);
    if (i->op == IR_OP_BARWARP)
        fputs(".warp.sync", p->out);
    if (i->op == IR_OP_BRX)
        fputs(".idx", p->out);
    fputs(i->flags & IR_F_UNI ? ".uni" : "", p->out);
    fputs(i->flags & IR_F_SYNC ? ".sync" : "", p->out);
    if (memory || i->op == IR_OP_FENCE || i->op == IR_OP_MEMBAR) {
        fputs(orders[i->order], p->out);
        fputs(scopes[i->scope], p->out);
    }
    if (i->op != IR_OP_CVTA)
        fputs(spaces[i->space], p->out);
    if (i->op == IR_OP_TEX)
        fprintf(p->out, "%s%s", geometries[i->mode], textures[i->mode2]);
    else if (i->op == IR_OP_MMA)
        fprintf(p->out, "%s%s", elements[i->mode], elements[i->mode2]);
    else if (!mode_last)
        fputs(modes[i->mode], p->out);
    if (i->op == IR_OP_CVTA)
        fputs(spaces[i->space], p->out);
    fputs(i->flags & IR_F_NC ? ".nc" : "", p->out);
    fputs(compares[i->cmp], p->out);
    fputs(boolops[i->boolop], p->out);
    fputs(rounds[i->round], p->out);
    print_flags(p, i);
    if (width > 1)
        fprintf(p->out, ".v%u", width);
    if (i->type != IR_VOID)
        fprintf(p->out, ".%s", is_to_tf32(i) ? "tf32" : ir_types[i->type].text);
    if (i->type2 != IR_VOID)
        fprintf(p->out, ".%s", ir_types[i->type2].text);
    if (mode_last)
        fputs(modes[i->mode], p->out);
}

static void print_targets(const struct ir_printer *p, const struct ir_instr *i, uint32_t block)
{
    if (i->op == IR_OP_BRA) {
        fprintf(p->out, " $B%u", i->target);
    } else {
        fputs(" ", p->out);
        print_src(p, i, 0);
        fprintf(p->out, ", $T%u", block);
    }
}

/* In PTX the hidden parameter has no name, but its halves have. */
static bool print_workspace(const struct ir_printer *p, const struct ir_instr *i)
{
    const uint32_t symbol = i->address.symbol;
    if (i->op != IR_OP_LD || symbol == IR_NONE || !(p->m->symbols[symbol].flags & IR_SYM_WORKSPACE))
        return false;
    fputs("mov.b32 ", p->out);
    print_destinations(p, i);
    fprintf(p->out, ", %%envreg%u;\n", i->address.displacement ? 1 : 2);
    return true;
}

static void print_of_texture(const struct ir_printer *p, const struct ir_src *s, bool real)
{
    if (s->kind == IR_SRC_REG)
        print_reg(p, s->index);
    else
        fprintf(p->out, real ? "0f%08" PRIX64 : "%" PRIu64, real ? s->bits & UINT32_MAX : s->bits);
}

/* Prints samples that PTX has as one instruction: not the level that derivatives ask for, and not
 * elements of 16 bits. */
static bool print_texture(const struct ir_printer *p, const struct ir_instr *i)
{
    static const uint8_t dimensions[] = { 1, 2, 3, 1, 2, 3, 3 };
    bool level = i->mode2 == IR_TEXTURE_LEVEL, real = i->type2 == IR_F32;
    bool layered = i->mode == IR_GEO_A1D || i->mode == IR_GEO_A2D || i->mode == IR_GEO_ACUBE;
    if (i->op != IR_OP_TEX || i->mode2 > IR_TEXTURE_GATHER_A || i->type == IR_F16 ||
        i->src[7].kind != IR_SRC_IMM)
        return false;
    if (i->mode2 >= IR_TEXTURE_GATHER_R)
        fprintf(p->out, "tld4.%c", "rgba"[i->mode2 - IR_TEXTURE_GATHER_R]);
    else
        fputs(level ? "tex.level" : "tex", p->out);
    fprintf(p->out, "%s.v4.%s.%s {", geometries[i->mode], ir_types[i->type].text,
            ir_types[i->type2].text);
    for (unsigned d = 0; d < 4; d++) {
        fputs(d ? ", " : "", p->out);
        print_reg(p, i->dst[d]);
    }
    fputs("}, [", p->out);
    for (unsigned k = 0; k < 2; k++) {
        print_of_texture(p, &i->src[k], false);
        fputs(", ", p->out);
    }
    fputs("{", p->out);
    if (layered)
        print_of_texture(p, &i->src[5], false);
    for (unsigned k = 0; k < dimensions[i->mode]; k++) {
        fputs(k || layered ? ", " : "", p->out);
        print_of_texture(p, &i->src[2 + k], real);
    }
    fputs("}]", p->out);
    if (level) {
        fputs(", ", p->out);
        print_of_texture(p, &i->src[6], real);
    }
    const uint32_t by = (uint32_t)i->src[7].bits;
    if (by)
        fprintf(p->out, ", {%d, %d, %d}", (int8_t)by, (int8_t)(by >> 8), (int8_t)(by >> 16));
    fputs(";\n", p->out);
    return true;
}

static void print_instr(const struct ir_printer *p, const struct ir_instr *i, uint32_t block)
{
    fputs("\t", p->out);
    if (print_workspace(p, i))
        return;
    if (i->guard != IR_NONE) {
        fprintf(p->out, "@%s", i->flags & IR_F_GUARD_NOT ? "!" : "");
        print_reg(p, i->guard);
        fputs(" ", p->out);
    }
    if (print_texture(p, i))
        return;
    print_opcode(p, i);
    bool any = false;
    if (i->op == IR_OP_BRA || i->op == IR_OP_BRX) {
        print_targets(p, i, block);
        fputs(";\n", p->out);
        return;
    }
    if (i->op == IR_OP_HELPER)
        fprintf(p->out, " %s", ir_helper_names[i->target]);
    if (i->dst_count || (i->op == IR_OP_ATOM)) {
        fputs(any ? ", " : " ", p->out);
        if (i->dst_count)
            print_destinations(p, i);
        else
            fputs("_", p->out);
        any = true;
    }
    if (ir_ops[i->op].properties & (IR_P_LOAD | IR_P_STORE)) {
        fputs(any ? ", " : " ", p->out);
        print_address(p, i);
        any = true;
    }
    if (i->src_count) {
        fputs(any ? ", " : " ", p->out);
        print_sources(p, i, 0,
                      (i->op == IR_OP_ST && i->src_count > 1) || i->op == IR_OP_PACK ||
                          i->type == IR_B128);
    }
    fputs(";\n", p->out);
}

static void print_branch_targets(const struct ir_printer *p, uint32_t block)
{
    const struct ir_block *b = &p->fn->blocks[block];
    const struct ir_instr *last = &p->fn->instrs[b->first + b->count - 1];
    if (last->op != IR_OP_BRX)
        return;
    uint32_t count = b->succ_count - (last->guard != IR_NONE);
    fprintf(p->out, "$T%u: .branchtargets ", block);
    for (uint32_t s = 0; s < count; s++)
        fprintf(p->out, "%s$B%u", s ? ", " : "", p->fn->succ[b->succ_first + s]);
    fputs(";\n", p->out);
}

void ir_print_fn(const struct ir_module *m, uint32_t fn, FILE *out)
{
    const struct ir_fn *f = &m->fns[fn];
    struct ir_printer p = { .m = m, .fn = f, .out = out };
    fprintf(out, ".visible .entry %s(", ir_name(m, f->name));
    for (uint32_t k = 0; k < f->param_count; k++) {
        const struct ir_symbol *s = &m->symbols[m->params[f->param_first + k].symbol];
        fprintf(out, "%s\n\t.param .align %u .%s %s", k ? "," : "", s->align,
                ir_types[s->type].text, ir_name(m, s->name));
        if (s->flags & IR_SYM_ARRAY)
            fprintf(out, "[%" PRIu64 "]", s->size / ir_types[s->type].size);
    }
    fputs(")\n", out);
    if (f->maxntid[0])
        fprintf(out, ".maxntid %u, %u, %u\n", f->maxntid[0], f->maxntid[1], f->maxntid[2]);
    if (f->reqntid[0])
        fprintf(out, ".reqntid %u, %u, %u\n", f->reqntid[0], f->reqntid[1], f->reqntid[2]);
    if (f->minnctapersm)
        fprintf(out, ".minnctapersm %u\n", f->minnctapersm);
    fputs("{\n", out);
    if (f->shared_static)
        fprintf(out, "\t.shared .align 16 .b8 $shared[%u];\n", f->shared_static);
    if (f->local_bytes)
        fprintf(out, "\t.local .align 16 .b8 $local[%u];\n", f->local_bytes);
    for (uint32_t r = 0; r < f->reg_count; r++)
        fprintf(out, "\t.reg .%s %s%u;\n", ir_types[f->regs[r].type].text, prefix(f->regs[r].type),
                r);
    for (uint32_t b = 0; b < f->block_count; b++) {
        print_branch_targets(&p, b);
        fprintf(out, "$B%u:\n", b);
        for (uint32_t n = 0; n < f->blocks[b].count; n++)
            print_instr(&p, &f->instrs[f->blocks[b].first + n], b);
    }
    fputs("}\n", out);
}

static void print_symbol(const struct ir_module *m, uint32_t symbol, FILE *out)
{
    const struct ir_symbol *s = &m->symbols[symbol];
    fprintf(out, "%s .align %u .b8 ", spaces[s->space], s->align);
    print_name(m, symbol, out);
    fprintf(out, "[%" PRIu64 "]", s->size);
    for (uint64_t n = 0; n < s->init_size; n++)
        fprintf(out, "%s%u", n ? ", " : " = {", m->init_bytes[s->init + n]);
    fputs(s->init_size ? "};\n" : ";\n", out);
}

void ir_print(const struct ir_module *m, FILE *out)
{
    fprintf(out, ".version %u.%u\n.target sm_%u\n.address_size 64\n", m->version / 10,
            m->version % 10, m->target);
    for (uint32_t s = 0; s < m->symbol_count; s++)
        if (ir_symbol_is_placed(m, s))
            print_symbol(m, s, out);
    for (uint32_t f = 0; f < m->fn_count; f++)
        if (m->fns[f].is_entry && m->fns[f].is_defined)
            ir_print_fn(m, f, out);
}
