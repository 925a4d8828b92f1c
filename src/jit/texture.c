/*
 * Samples of textures: a call of the host's function, which does it for all lanes that run
 * (device/soft/texture).
 */
#include "jit/gen.h"

#include "device/soft/exec/helpers.h"
#include "device/soft/texture/texture.h"

static LLVMValueRef row(struct jit_gen *g, size_t offset, unsigned k, size_t size)
{
    LLVMValueRef at = LLVMConstInt(g->i64, offset + k * SOFT_WARP * size, 0);
    return LLVMBuildGEP2(g->b, g->i8, g->samples, &at, 1, "");
}

static void put(struct jit_gen *g, unsigned source, enum ir_type type, LLVMValueRef at)
{
    LLVMSetAlignment(LLVMBuildStore(g->b, jit_src(g, &g->i->src[source], type, true), at), 8);
}

static LLVMValueRef call(struct jit_gen *g)
{
    LLVMTypeRef params[] = { g->ptr, g->i32, g->i32, g->i32, g->ptr };
    LLVMTypeRef type = LLVMFunctionType(g->i32, params, 5, 0);
    LLVMValueRef args[] = { g->block, LLVMConstInt(g->i32, soft_texture_form(g->i), 0), g->w->first,
                            jit_active(g), g->samples };
    return LLVMBuildCall2(
        g->b, type, jit_helper_function(g, offsetof(struct soft_helpers, texture)), args, 5, "");
}

void jit_emit_texture(struct jit_gen *g)
{
    LLVMValueRef results[SOFT_TEXTURE_CHANNELS];
    LLVMBasicBlockRef fault = jit_new_block(g, "fault");
    if (!g->samples)
        g->samples =
            jit_alloca(g, LLVMArrayType(g->i64, sizeof(struct soft_texture_lanes) / 8), "samples");
    put(g, 0, IR_B64, row(g, offsetof(struct soft_texture_lanes, texture), 0, 8));
    put(g, 1, IR_B64, row(g, offsetof(struct soft_texture_lanes, sampler), 0, 8));
    for (unsigned k = 2; k < g->i->src_count; k++)
        put(g, k, IR_B32, row(g, offsetof(struct soft_texture_lanes, in), k - 2, 4));
    LLVMValueRef outcome = call(g);
    jit_branch_unlikely(g, LLVMBuildICmp(g->b, LLVMIntNE, outcome, LLVMConstNull(g->i32), ""),
                        fault);
    LLVMBasicBlockRef next = LLVMGetInsertBlock(g->b);
    jit_position(g, fault);
    LLVMBuildRet(g->b,
                 LLVMBuildSub(g->b, LLVMConstInt(g->i32, (uint64_t)JIT_FAULT(0), 1), outcome, ""));
    jit_position(g, next);
    for (unsigned k = 0; k < g->i->dst_count; k++) {
        results[k] = LLVMBuildLoad2(g->b, jit_vec(g, g->i32),
                                    row(g, offsetof(struct soft_texture_lanes, out), k, 4), "");
        LLVMSetAlignment(results[k], 8);
    }
    for (unsigned k = 0; k < g->i->dst_count; k++)
        if (g->i->dst[k] != IR_NONE)
            jit_set(g, k, results[k]);
}
