/*
 * Instructions that are computed lane by lane: everything that has a scalar form and no vector
 * handler, special registers, symbols whose address is known only at run time, logic on predicates,
 * and calls of host functions.
 */
#include "device/soft/interp/program.h"

#include "base/clock.h"
#include "device/soft/exec/helpers.h"
#include "device/soft/ir/spaces.h"

const struct interp_insn *interp_lanes_scalar(const struct interp_insn *i, struct interp_run *r)
{
    const struct interp_slow *x = &r->program->slows[i->extra];
    for (uint32_t left = r->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        uint64_t s[IR_MAX_SRC] = { 0 };
        bool p = false;
        for (unsigned k = 0; k < x->ir.src_count; k++)
            s[k] = interp_lane_read(r, x->s[k], x->s_width[k], l) ^ x->s_negated[k];
        uint64_t v = x->scalar(&x->ir, s, &p);
        if (x->d[0] != INTERP_NOWHERE)
            interp_lane_write(r, x->d[0], x->d_width[0], l, v);
        if (x->p != INTERP_NOWHERE)
            interp_lane_write(r, x->p, INTERP_W1, l, p);
    }
    return i + 1;
}

void interp_compute(const struct ir_instr *i, const uint64_t (*in)[SOFT_WARP],
                    uint64_t (*out)[SOFT_WARP])
{
    interp_scalar *scalar = interp_scalar_find(i);
#if defined(__x86_64__)
    unsigned mode = __builtin_ia32_stmxcsr();
    /* compiled code may have set a mode that flushes subnormal numbers */
    __builtin_ia32_ldmxcsr(0x1f80);
#endif
    for (unsigned l = 0; l < SOFT_WARP && scalar; l++) {
        uint64_t s[IR_MAX_SRC] = { 0 };
        bool p = false;
        for (unsigned k = 0; k < i->src_count; k++)
            s[k] = in[k][l];
        out[0][l] = scalar(i, s, &p);
        out[1][l] = p;
    }
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(mode);
#endif
}

/* mov {d, d ...}, s; the low part comes first. */
const struct interp_insn *interp_lanes_unpack(const struct interp_insn *i, struct interp_run *r)
{
    const struct interp_slow *x = &r->program->slows[i->extra];
    unsigned part = 8u * ir_types[x->ir.type].size / x->ir.dst_count;
    for (uint32_t left = r->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        uint64_t v = interp_lane_read(r, x->s[0], x->s_width[0], l);
        for (unsigned k = 0; k < x->ir.dst_count; k++) {
            uint64_t piece = v >> (k * part) & ((UINT64_C(1) << part) - 1);
            if (x->d[k] != INTERP_NOWHERE)
                interp_lane_write(r, x->d[k], x->d_width[k], l, piece);
        }
    }
    return i + 1;
}

uint64_t interp_scalar_isspacep(const struct ir_instr *i, const uint64_t *s, bool *p)
{
    uint64_t a = s[0];
    bool other = soft_address_is_shared(a) || soft_address_is_local(a) || soft_address_is_param(a);
    switch (i->space) {
    case IR_SPACE_SHARED:
        return soft_address_is_shared(a);
    case IR_SPACE_LOCAL:
        return soft_address_is_local(a);
    case IR_SPACE_PARAM:
        return soft_address_is_param(a);
    case IR_SPACE_CONST:
        return false; /* constants lie in global memory */
    default:
        return !other;
    }
}

/* Logic on predicates: 32 lanes in one word. INTERP_PRED_* are its operations. */
const struct interp_insn *interp_pred_logic(const struct interp_insn *i, struct interp_run *r)
{
    uint32_t a = *interp_pred(r, i->s[0]) ^ (i->value & INTERP_PRED_INVERT0 ? UINT32_MAX : 0);
    uint32_t b = *interp_pred(r, i->s[1]) ^ (i->value & INTERP_PRED_INVERT1 ? UINT32_MAX : 0);
    uint32_t bits;
    switch (i->value & 3) {
    case INTERP_PRED_AND:
        bits = a & b;
        break;
    case INTERP_PRED_OR:
        bits = a | b;
        break;
    default:
        bits = a ^ b;
        break;
    }
    interp_pred_write(r, i->d, bits);
    return i + 1;
}

/* A coordinate of %tid: computed by division for each lane that reads it. */
static uint32_t thread_coordinate(const struct soft_block *b, uint32_t thread, unsigned dimension)
{
    switch (dimension) {
    case 0:
        return thread % b->ntid[0];
    case 1:
        return thread / b->ntid[0] % b->ntid[1];
    default:
        return thread / b->ntid[0] / b->ntid[1];
    }
}

static uint64_t lane_sreg(const struct interp_run *r, enum ir_sreg sreg, unsigned lane)
{
    uint32_t bit = 1u << lane;
    switch (sreg) {
    case IR_SREG_TID_X:
    case IR_SREG_TID_Y:
    case IR_SREG_TID_Z:
        return thread_coordinate(r->block, r->first_thread + lane, sreg - IR_SREG_TID_X);
    case IR_SREG_LANEID:
        return lane;
    case IR_SREG_LANEMASK_EQ:
        return bit;
    case IR_SREG_LANEMASK_LE:
        return bit | (bit - 1);
    case IR_SREG_LANEMASK_LT:
        return bit - 1;
    case IR_SREG_LANEMASK_GE:
        return ~(bit - 1);
    default: /* LANEMASK_GT */
        return ~(bit | (bit - 1));
    }
}

static bool sreg_is_uniform(enum ir_sreg sreg)
{
    return sreg > IR_SREG_TID_Z && sreg != IR_SREG_LANEID &&
           (sreg < IR_SREG_LANEMASK_EQ || sreg > IR_SREG_LANEMASK_GT);
}

static uint64_t uniform_sreg(const struct interp_run *r, enum ir_sreg sreg)
{
    const struct soft_block *b = r->block;
    switch (sreg) {
    case IR_SREG_NTID_X:
    case IR_SREG_NTID_Y:
    case IR_SREG_NTID_Z:
        return b->ntid[sreg - IR_SREG_NTID_X];
    case IR_SREG_CTAID_X:
    case IR_SREG_CTAID_Y:
    case IR_SREG_CTAID_Z:
        return b->ctaid[sreg - IR_SREG_CTAID_X];
    case IR_SREG_NCTAID_X:
    case IR_SREG_NCTAID_Y:
    case IR_SREG_NCTAID_Z:
        return b->nctaid[sreg - IR_SREG_NCTAID_X];
    case IR_SREG_WARPID:
        return r->warp_index;
    case IR_SREG_NWARPID:
        return b->warps;
    case IR_SREG_CLOCK:
    case IR_SREG_CLOCK64:
        return gm_cycles() - b->clock_base;
    case IR_SREG_CLOCK_HI:
        return (gm_cycles() - b->clock_base) >> 32;
    case IR_SREG_GLOBALTIMER:
    case IR_SREG_GLOBALTIMER_LO:
        return soft_helper_wall_ns();
    case IR_SREG_GLOBALTIMER_HI:
        return soft_helper_wall_ns() >> 32;
    case IR_SREG_DYNAMIC_SMEM:
        return b->dynamic_shared;
    case IR_SREG_TOTAL_SMEM:
        return b->shared_size;
    case IR_SREG_NSMID:
        return 1;
    case IR_SREG_GRIDID:
        return b->grid_id;
    default: /* SMID: not known to a block. */
        return 0;
    }
}

/* `value`: enum ir_sreg. `extra`: width of the destination. */
const struct interp_insn *interp_sreg(const struct interp_insn *i, struct interp_run *r)
{
    enum ir_sreg sreg = (enum ir_sreg)i->value;
    bool uniform = sreg_is_uniform(sreg);
    uint64_t v = uniform ? uniform_sreg(r, sreg) : 0;
    for (uint32_t left = r->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        interp_lane_write(r, i->d, (uint8_t)i->extra, l, uniform ? v : lane_sreg(r, sreg, l));
    }
    return i + 1;
}

/* The address of the placed symbol `other`, plus `value`. `extra`: width of the destination. */
const struct interp_insn *interp_symbol(const struct interp_insn *i, struct interp_run *r)
{
    uint64_t at = r->block->globals[i->other] + i->value;
    for (uint32_t left = r->mask; left; left &= left - 1)
        interp_lane_write(r, i->d, (uint8_t)i->extra, (unsigned)__builtin_ctz(left), at);
    return i + 1;
}

/* NULL: it is not of that type. */
static soft_helper *helper_of(const struct soft_helpers *h, uint32_t target)
{
    switch (target) {
    case IR_HELPER_VPRINTF:
        return h->vprintf;
    case IR_HELPER_CHILD_BYTES:
        return h->child_bytes;
    case IR_HELPER_CHILD_LAUNCH:
        return h->child_launch;
    default:
        return NULL;
    }
}

const struct interp_insn *interp_helper(const struct interp_insn *i, struct interp_run *r)
{
    const struct interp_slow *x = &r->program->slows[i->extra];
    struct soft_block *b = r->block;
    for (uint32_t left = r->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        uint64_t s[IR_MAX_SRC] = { 0 }, result = 0;
        for (unsigned k = 0; k < x->ir.src_count; k++)
            s[k] = interp_lane_read(r, x->s[k], x->s_width[k], l);
        soft_helper *helper = b->helpers ? helper_of(b->helpers, x->ir.target) : NULL;
        if (helper) {
            int32_t n = helper(b, r->first_thread + l, s[0], s[1]);
            if (n == SOFT_HELPER_FAULT)
                return interp_fault(r, SOFT_FAULT_ADDRESS, b->fault_address, l);
            result = (uint64_t)(int64_t)n;
        } else if (x->ir.target == IR_HELPER_ASSERTFAIL) {
            if (b->helpers)
                b->helpers->assert_fail(b, r->first_thread + l, s[0], s[1], (uint32_t)s[2], s[3]);
            return interp_fault(r, SOFT_FAULT_ASSERT, 0, l);
        }
        if (x->d[0] != INTERP_NOWHERE)
            interp_lane_write(r, x->d[0], x->d_width[0], l, result);
    }
    return i + 1;
}
