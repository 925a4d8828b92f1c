/*
 * Instructions by pattern: what is not made by a function of its own. In a pattern, $r stands for
 * any register of 32 bits, as do $l (64), $h (16), $f, $d and $p for others; $o is the one behind
 * the last $p, $m the one behind the last $l, $x the one behind the last $h; $i is a number below
 * 32, $k an offset in the thread's own words of global memory, $n the number of a new label.
 */
#include "random_maker.h"

#include <string.h>

static const char *const integers[] = {
    "add.cc.u32 $r, $r, $r;\n\taddc.cc.u32 $r, $r, $r;\n\taddc.s32 $r, $r, $i",
    "sub.cc.s32 $r, $r, $r;\n\tsubc.cc.u32 $r, $r, $r;\n\tsubc.u32 $r, $r, $r",
    "add.cc.u64 $l, $l, $l;\n\taddc.u64 $l, $l, $l",
    "sub.cc.s64 $l, $l, $l;\n\tsubc.s64 $l, $l, $l",
    "mad.lo.cc.u32 $r, $r, $r, $r;\n\tmadc.hi.cc.s32 $r, $r, $r, $r;\n\tmadc.lo.u32 $r, $r, $r, $r",
    "popc.b64 $r, $l",
    "clz.b64 $r, $l",
    "brev.b64 $l, $l",
    "bfind.u64 $r, $l",
    "bfind.s64 $r, $l",
    "bfind.shiftamt.s64 $r, $l",
    "bfind.shiftamt.u32 $r, $r",
    "bfe.u64 $l, $l, $r, $i",
    "bfe.s64 $l, $l, $i, $r",
    "bfi.b64 $l, $l, $l, $i, $i",
    "bfi.b32 $r, $r, $r, $r, $r",
    "not.b64 $l, $l",
    "cnot.b64 $l, $l",
    "neg.s64 $l, $l",
    "abs.s64 $l, $l",
    "shr.u64 $l, $l, $r",
    "shr.s64 $l, $l, $i",
    "shl.b64 $l, $l, $r",
    "min.u64 $l, $l, $l",
    "max.s64 $l, $l, $l",
    "rem.u64 $l, $l, $l",
    "div.s64 $l, $l, $l",
    "mad.lo.s64 $l, $l, $l, $l",
    "mad.hi.u64 $l, $l, $l, $l",
    "mul.hi.s64 $l, $l, $l",
    "mad.wide.u32 $l, $r, $r, $l",
    "mad.wide.s32 $l, $r, $i, $l",
    "mad.wide.s16 $r, $h, $h, $r",
    "sad.u64 $l, $l, $l, $l",
    "sad.s16 $h, $h, $h, $h",
    "mul24.hi.s32 $r, $r, $r",
    "mad24.lo.s32 $r, $r, $r, $r",
    "mad24.hi.u32 $r, $r, $r, $r",
    "bmsk.clamp.b32 $r, $r, $r",
    "bmsk.wrap.b32 $r, $r, $r",
    "szext.clamp.s32 $r, $r, $r",
    "szext.wrap.u32 $r, $r, $r",
    "fns.b32 $r, $r, $i, $i",
    "dp2a.lo.u32.s32 $r, $r, $r, $r",
    "dp2a.hi.s32.u32 $r, $r, $r, $r",
    "dp4a.u32.u32 $r, $r, $r, $r",
    "prmt.b32.f4e $r, $r, $r, $r",
    "prmt.b32.b4e $r, $r, $r, $r",
    "prmt.b32.rc8 $r, $r, $r, $r",
    "prmt.b32.ecl $r, $r, $r, $r",
    "prmt.b32.ecr $r, $r, $r, $r",
    "prmt.b32.rc16 $r, $r, $r, $r",
    "prmt.b32 $r, $r, $r, 0x7531",
    "slct.s32.f32 $r, $r, $r, $f",
    "slct.b64.s32 $l, $l, $l, $r",
    "shf.l.clamp.b32 $r, $r, $r, $r",
    "shf.r.wrap.b32 $r, $r, $r, $i",
    "lop3.or.b32 $r|$p, $r, $r, $r, 0x3c, $p",
    "vadd4.s32.s32.s32.sat $r, $r, $r, $r",
    "vabsdiff4.u32.u32.u32.add $r, $r, $r, $r",
    "vmin2.s32.u32.s32 $r, $r, $r, $r",
    "vavrg4.u32.u32.u32 $r, $r, $r, $r",
    "vadd.s32.u32.s32.sat $r, $r.b0, $r.h1",
    "vmad.s32.s32.u32.shr7 $r, $r.b1, $r.h0, $r",
    "vset.u32.s32.lt $r, $r, $r",
    "vshl.u32.u32.u32.clamp $r, $r, $r",
    "vabsdiff.u32.s32.u32.min $r, $r.b2, $r, $r",
    "setp.lt.s64 $p, $l, $l",
    "setp.hi.u64 $p|$o, $l, $l",
    "setp.ne.xor.b32 $p|$o, $r, $i, !$p",
    "setp.ls.u16 $p, $h, $h",
    "set.eq.xor.u32.s64 $r, $l, $l, $p",
    "mov.b32 {$h, $x}, $r",
    "mov.b64 {$h, $x, _, _}, $l",
    "mov.b64 $l, {$h, $h, $h, $h}",
    "cvt.pack.sat.s8.s32.b32 $r, $r, $r, $r",
    "cvt.pack.sat.u16.s32 $r, $r, $r",
    "cvt.sat.u64.s32 $l, $r",
    "cvt.sat.s8.s64 $r, $l",
    "cvt.s64.s8 $l, $r",
    "cvt.s16.s8 $h, $h",
    "cvt.u8.s64 $r, $l",
    "mov.u32 $r, %lanemask_lt",
    "mov.u32 $r, %lanemask_ge",
    "mov.u32 $r, %laneid",
    "mov.u32 $r, %warpid",
    "mov.u32 $r, %tid.z",
    "mov.u32 $r, %ctaid.x",
    "mov.u32 $r, %nctaid.x",
    "isspacep.global $p, %out",
    "isspacep.local $p, %out",
    "neg.s16 $h, $h",
    "rem.u16 $h, $h, $h",
    "shl.b16 $h, $h, $i",
    "shr.s16 $h, $h, $r",
    "popc.b32 $r, $r;\n\tselp.s32 $r, $r, -1, $p",
};

static const char *const reals[] = {
    "set.gtu.f32.f32 $f, $f, $f",
    "set.lt.s32.f64 $r, $d, $d",
    "set.num.u32.f32 $r, $f, $f",
    "setp.ltu.f64 $p, $d, $d",
    "setp.eq.and.f32 $p|$o, $f, $f, !$p",
    "testp.normal.f32 $p, $f",
    "testp.subnormal.f32 $p, $f",
    "testp.infinite.f64 $p, $d",
    "selp.f64 $d, $d, $d, $p",
    "fma.rz.f32 $f, $f, $f, $f",
    "fma.rp.sat.f32 $f, $f, $f, $f",
    "fma.rm.ftz.f32 $f, $f, $f, $f",
    "min.NaN.f32 $f, $f, $f",
    "max.NaN.ftz.f32 $f, $f, $f",
    "rcp.rz.f32 $f, $f",
    "sqrt.rm.f32 $f, $f",
    "div.rp.f32 $f, $f, $f",
    "div.rn.ftz.f32 $f, $f, $f",
    "sqrt.rn.f64 $d, $d",
    "sqrt.rp.f64 $d, $d",
    "rcp.rn.f64 $d, $d",
    "fma.rz.f64 $d, $d, $d, $d",
    "mul.rp.f64 $d, $d, $d",
    "add.rm.f64 $d, $d, $d",
    "sub.rz.f64 $d, $d, $d",
    "cvt.rni.f64.f64 $d, $d",
    "cvt.rpi.ftz.f32.f32 $f, $f",
    "cvt.rzi.sat.f32.f32 $f, $f",
    "cvt.rzi.s8.f32 $r, $f",
    "cvt.rmi.u16.f32 $h, $f",
    "cvt.rzi.u64.f64 $l, $d",
    "cvt.rni.ftz.s64.f32 $l, $f",
    "cvt.rp.f32.u64 $f, $l",
    "cvt.rz.f64.s64 $d, $l",
    "cvt.rn.f64.u32 $d, $r",
    "cvt.rn.f32.u8 $f, $r",
    "cvt.rn.f32.s16 $f, $h",
    "cvt.rn.ftz.f32.f64 $f, $d",
    "cvt.rn.sat.f32.f64 $f, $d",
    "cvt.rna.tf32.f32 $r, $f",
};

static const char *const halves[] = {
    "fma.rn.bf16 $h, $h, $h, $h",
    "fma.rn.relu.bf16 $h, $h, $h, $h",
    "add.bf16 $h, $h, $h",
    "sub.rn.bf16x2 $r, $r, $r",
    "mul.rn.bf16 $h, $h, $h",
    "min.bf16 $h, $h, $h",
    "max.NaN.bf16 $h, $h, $h",
    "neg.bf16 $h, $h",
    "abs.bf16 $h, $h",
    "mul.bf16x2 $r, $r, $r",
    "fma.rn.bf16x2 $r, $r, $r, $r",
    "max.bf16x2 $r, $r, $r",
    "max.xorsign.abs.f16x2 $r, $r, $r",
    "min.NaN.f16 $h, $h, $h",
    "fma.rn.sat.f16 $h, $h, $h, $h",
    "fma.rn.ftz.relu.f16x2 $r, $r, $r, $r",
    "fma.rn.f16x2 $r, $r, $r, $r",
    "sub.sat.f16 $h, $h, $h",
    "add.ftz.f16x2 $r, $r, $r",
    "neg.f16 $h, $h",
    "abs.f16x2 $r, $r",
    "setp.lt.f16x2 $p|$o, $r, $r",
    "setp.geu.bf16 $p, $h, $h",
    "setp.ne.and.bf16x2 $p|$o, $r, $r, $p",
    "set.eq.f16.f16 $h, $h, $h",
    "set.lt.f16x2.f16x2 $r, $r, $r",
    "set.ge.u32.f16 $r, $h, $h",
    "cvt.rn.bf16.f32 $h, $f",
    "cvt.rz.bf16.f32 $h, $f",
    "cvt.rn.relu.bf16.f32 $h, $f",
    "cvt.rn.f16x2.f32 $r, $f, $f",
    "cvt.rz.relu.f16x2.f32 $r, $f, $f",
    "cvt.rn.relu.bf16x2.f32 $r, $f, $f",
    "cvt.f32.bf16 $f, $h",
    "cvt.f64.f16 $d, $h",
    "cvt.rn.f16.f64 $h, $d",
    "cvt.rn.f16.s32 $h, $r",
    "cvt.rz.f16.u64 $h, $l",
    "cvt.rzi.s32.f16 $r, $h",
    "cvt.rni.u16.f16 $h, $h",
    "cvt.rpi.s64.f16 $l, $h",
    "cvt.rmi.f16.f16 $h, $h",
    "cvt.rn.satfinite.e4m3x2.f32 $h, $f, $f",
    "cvt.rn.f16x2.e5m2x2 $r, $h",
};

static const char *const places[] = {
    "and.b32 %t0, $r, 60;\n\tcvt.u64.u32 %a0, %t0;\n\tmov.u64 %a1, table;\n\tadd.s64 %a0, %a0, "
    "%a1;\n\tld.const.b32 $r, [%a0]",
    "and.b32 %t0, $r, 31;\n\tcvt.u64.u32 %a0, %t0;\n\tmov.u64 %a1, table;\n\tadd.s64 %a0, %a0, "
    "%a1;\n\tld.const.s8 $r, [%a0+17]",
    "ld.const.v2.u16 {$h, $x}, [table+4]",
    "and.b32 %t0, $r, 15;\n\tmul.wide.u32 %a0, %t0, 16;\n\tadd.s64 %a0, %in, %a0;\n\t"
    "ld.global.nc.v2.b64 {$l, $m}, [%a0+32]",
    "ld.global.nc.f32 $f, [%in+$k]",
    "st.global.u8 [%out+$k], $r;\n\tld.global.s32 $r, [%out+$k]",
    "st.global.v4.u8 [%out+$k], {$r, $r, $r, $r};\n\tld.global.b64 $l, [%out+$k]",
    "st.global.cs.b16 [%out+$k], $h;\n\tld.global.cv.u16 $r, [%out+$k]",
    "ld.volatile.global.b32 $r, [%out+$k];\n\tst.volatile.global.b32 [%out+$k], $r",
    "st.release.gpu.global.b64 [%out+$k], $l;\n\tld.acquire.sys.global.b32 $r, [%out+$k]",
    "cvt.rn.f32.s32 $f, $r;\n\tst.global.b32 [%out+$k], 0x40490fdb;\n\t"
    "atom.global.add.f32 $f, [%out+$k], 0f3FC00000",
    "st.global.b64 [%out+$k], 0x400921fb54442d18;\n\tatom.add.f64 $d, [%out+$k], "
    "0d3FF8000000000000",
    "and.b32 %t0, $r, 0x3bff3bff;\n\tst.global.b32 [%out+$k], %t0;\n\t"
    "atom.global.add.noftz.f16x2 $r, [%out+$k], %t0",
    "and.b32 %t0, $r, 0x3f7f3f7f;\n\tst.global.b32 [%out+$k], %t0;\n\t"
    "atom.global.add.noftz.bf16x2 $r, [%out+$k], %t0",
    "atom.global.cas.b32 $r, [%out+$k], $r, $r",
    "atom.cas.b64 $l, [%out+$k], $l, $l",
    "atom.global.cas.b16 $h, [%out+$k], $h, $h",
    "atom.global.exch.b64 $l, [%out+$k], $l",
    "atom.global.min.s64 $l, [%out+$k], $l",
    "atom.max.u64 $l, [%out+$k], $l",
    "atom.global.inc.u32 $r, [%out+$k], $r",
    "atom.global.dec.u32 $r, [%out+$k], $r",
    "atom.acq_rel.gpu.global.and.b64 $l, [%out+$k], $l",
    "red.global.xor.b64 [%out+$k], $l",
    "atom.shared.cas.b32 $r, [%mine], $r, $r",
    "atom.shared.dec.u32 $r, [%mine], $r",
    "cvt.u64.u32 %a0, %mine;\n\tcvta.shared.u64 %a0, %a0;\n\tatom.max.s32 $r, [%a0], $r",
    "cvt.u64.u32 %a0, %mine;\n\tcvta.shared.u64 %a0, %a0;\n\tst.u8 [%a0+1], $r;\n\t"
    "ld.s16 $r, [%a0+2];\n\tisspacep.shared $p, %a0",
    "st.shared.u8 [%mine+3], $r;\n\tld.shared.u16 $h, [%mine]",
    "red.global.add.u64 [%atoms+192], $l",
    "red.max.s64 [%atoms+200], $l",
    "red.global.min.u64 [%atoms+208], $l",
    "red.global.xor.b64 [%atoms+216], $l",
    "red.global.inc.u32 [%atoms+224], 1000",
    "atom.global.dec.u32 %t0, [%atoms+228], 77",
    "{\n\t.reg .b32 %old, %was, %new;\n\t.reg .pred %again;\n\tld.global.b32 %old, [%atoms+232];\n"
    "L$n_cas:\n\tadd.s32 %new, %old, $r;\n\tatom.global.cas.b32 %was, [%atoms+232], %old, %new;\n"
    "\tsetp.ne.s32 %again, %was, %old;\n\tmov.b32 %old, %was;\n\t@%again bra L$n_cas;\n\t}\n\t"
    "mov.b32 $r, $r",
};

/* Kinds of registers: letter, name, how many, the letter of the next one. */
static const struct {
    char letter;
    const char *name;
    unsigned count;
    char next;
} kinds[] = {
    { 'r', "r", INTS, 0 },   { 'l', "rd", LONGS, 'm' }, { 'h', "h", SHORTS, 'x' },
    { 'f', "f", FLOATS, 0 }, { 'd', "fd", DOUBLES, 0 }, { 'p', "p", PREDS, 'o' },
};

static void register_of(struct maker *m, char letter, unsigned *last)
{
    for (unsigned k = 0; k < GM_ARRAY_LEN(kinds); k++) {
        if (letter != kinds[k].letter && (!kinds[k].next || letter != kinds[k].next))
            continue;
        last[k] =
            letter == kinds[k].letter ? pick(m, kinds[k].count) : (last[k] + 1) % kinds[k].count;
        fprintf(m->out, "%%%s%u", kinds[k].name, last[k]);
    }
}

/* Instructions that ptxas 13.0 makes several of, and whose guard it forgets. */
static bool loses_guard(const char *text)
{
    return strncmp(text, "set.", 4) == 0 || strncmp(text, "testp.", 6) == 0 ||
           strncmp(text, "lop3.or", 7) == 0;
}

static void pattern(struct maker *m, const char *text)
{
    unsigned last[GM_ARRAY_LEN(kinds)] = { 0 }, label = m->labels++;
    unsigned offset = 8 * pick(m, RANDOM_WORDS_OUT / 2);
    fputc('\t', m->out);
    if (!strchr(text, '\n') && pick(m, 5) == 0 && !(m->portable && loses_guard(text)))
        fprintf(m->out, "@%s%%p%u ", pick(m, 2) ? "!" : "", pick(m, PREDS));
    for (; *text; text++) {
        if (*text != '$') {
            fputc(*text, m->out);
            continue;
        }
        text++;
        if (*text == 'i')
            fprintf(m->out, "%u", pick(m, 32));
        else if (*text == 'k')
            fprintf(m->out, "%u", offset);
        else if (*text == 'n')
            fprintf(m->out, "%u", label);
        else
            register_of(m, *text, last);
    }
    fprintf(m->out, ";\n");
}

void random_form(struct maker *m)
{
    switch (pick(m, 4)) {
    case 0:
        pattern(m, PICK_OP(m, integers));
        break;
    case 1:
        pattern(m, PICK_OP(m, reals));
        break;
    case 2:
        pattern(m, PICK_OP(m, halves));
        break;
    default:
        pattern(m, PICK_OP(m, places));
        break;
    }
}
