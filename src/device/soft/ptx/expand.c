/*
 * Which opcodes are expanded into several instructions, and by which function.
 */
#include "device/soft/ptx/expand.h"

bool ptx_is_expanded(const struct ptx_token *opcode, ptx_expansion **out)
{
    static const struct {
        const char *word;
        ptx_expansion *run;
    } all[] = {
        { "createpolicy", ptx_x_policy },
        { "applypriority", ptx_x_hint },
        { "discard", ptx_x_hint },
        { "mapa", ptx_x_mapa },
        { "getctarank", ptx_x_rank },
        { "cp", ptx_x_cp },
        { "ldmatrix", ptx_x_matrix },
        { "mbarrier", ptx_x_mbarrier },
        { "mma", ptx_x_mma },
        { "movmatrix", ptx_x_matrix },
        { "stmatrix", ptx_x_matrix },
        { "vabsdiff", ptx_x_video },
        { "vabsdiff2", ptx_x_video },
        { "vabsdiff4", ptx_x_video },
        { "vadd", ptx_x_video },
        { "vadd2", ptx_x_video },
        { "vadd4", ptx_x_video },
        { "vmax", ptx_x_video },
        { "vmax2", ptx_x_video },
        { "vmax4", ptx_x_video },
        { "vmin", ptx_x_video },
        { "vmin2", ptx_x_video },
        { "vmin4", ptx_x_video },
        { "vavrg2", ptx_x_video },
        { "vavrg4", ptx_x_video },
        { "vmad", ptx_x_vmad },
        { "vset", ptx_x_video },
        { "vset2", ptx_x_video },
        { "vset4", ptx_x_video },
        { "vshl", ptx_x_video },
        { "vshr", ptx_x_video },
        { "vsub", ptx_x_video },
        { "vsub2", ptx_x_video },
        { "vsub4", ptx_x_video },
        { "wmma", ptx_x_wmma },
        { "tex", ptx_x_tex },
        { "tld4", ptx_x_tld4 },
        { "suld", ptx_x_suld },
        { "sust", ptx_x_sust },
        { "sured", ptx_x_sured },
        { "txq", ptx_x_query },
        { "suq", ptx_x_query },
        { "istypep", ptx_x_istypep },
        { "alloca", ptx_x_alloca },
        { "stacksave", ptx_x_stacksave },
        { "stackrestore", ptx_x_stackrestore },
    };
    for (size_t k = 0; k < GM_ARRAY_LEN(all); k++) {
        if (ptx_text_is(opcode, all[k].word)) {
            *out = all[k].run;
            return true;
        }
    }
    return false;
}

bool ptx_parse_expanded(struct ptx_parser *p, const struct ptx_token *opcode, ptx_expansion *run,
                        uint32_t guard, bool guard_not)
{
    struct ptx_expand x = { .p = p, .opcode = opcode, .guard = guard, .guard_not = guard_not };
    for (; p->token.kind == PTX_DOT; ptx_advance(p)) {
        if (x.count == PTX_EXPAND_MODIFIERS)
            return ptx_fail(p, -EINVAL, &p->token, "too many modifiers");
        x.modifiers[x.count++] = p->token;
    }
    return run(&x) && !p->why.error && ptx_expect(p, ';');
}
