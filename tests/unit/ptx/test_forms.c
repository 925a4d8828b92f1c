/*
 * Every form of every instruction: it is accepted, printed, and what is printed means the same
 * again.
 */
#include <criterion/criterion.h>

#include "common.h"

static const char *const forms[] = {
    /* moves */
    "mov.u32 %r0, %r1;",
    "mov.b32 %r0, 7;",
    "mov.u64 %rd0, -1;",
    "mov.f32 %f0, 0f3F800000;",
    "mov.f32 %f0, 1.5;",
    "mov.f64 %fd0, 0d3FF0000000000000;",
    "mov.pred %p0, 1;",
    "mov.b16 %h0, %h1;",
    "mov.b64 %rd0, {%r1, %r2};",
    "mov.b64 {%r1, %r2}, %rd0;",
    "mov.b32 {%h0, %h1}, %r0;",
    "mov.b32 %r0, {%h0, %h1};",
    "mov.b64 {%r1, _}, %rd0;",
    "mov.b64 {%h0, %h1, %h2, %h3}, %rd0;",
    "mov.u32 %r0, %tid.x;",
    "mov.u32 %r0, %laneid;",
    "mov.u64 %rd0, %clock64;",
    "mov.u32 %r0, %lanemask_lt;",
    "mov.u32 %r0, WARP_SZ;",
    "mov.b32 %r0, %f0;",
    "mov.b32 %r0, 0f40000000;",
    /* memory */
    "ld.param.u64 %rd0, [a];",
    "ld.param.u32 %r0, [n];",
    "ld.param.v2.u32 {%r0, %r1}, [s+8];",
    "ld.param.u8 %h0, [s+3];",
    "ld.global.u32 %r0, [%rd0];",
    "ld.global.f32 %f0, [%rd0+16];",
    "ld.global.nc.v4.f32 {%f0, %f1, %f2, %f3}, [%rd0];",
    "ld.shared.v2.u64 {%rd0, %rd1}, [%rd2];",
    "ld.shared.f32 %f0, [%r0+4];",
    "ld.global.u8 %h0, [%rd0];",
    "ld.global.s8 %r0, [%rd0+-4];",
    "ld.global.s16 %rd1, [%rd0-4];",
    "ld.u32 %r0, [%rd0];",
    "ld.volatile.shared.u32 %r0, [%r1];",
    "ld.relaxed.gpu.global.u32 %r0, [%rd0];",
    "ld.acquire.sys.u64 %rd0, [%rd1];",
    "ld.const.f64 %fd0, [%rd0];",
    "ld.global.ca.u32 %r0, [%rd0];",
    "ld.global.L1::no_allocate.L2::128B.u32 %r0, [%rd0];",
    "ldu.global.u32 %r0, [%rd0];",
    "ld.weak.global.b32 %r0, [%rd0];",
    "ld.local.u32 %r0, [%rd0];",
    "ld.shared.b32 %r0, [16];",
    "ld.global.v2.u32 {_, %r0}, [%rd0];",
    "ld.shared::cta.u32 %r0, [%r1];",
    "st.global.u32 [%rd0], %r0;",
    "st.global.v4.f32 [%rd0+16], {%f0, %f1, %f2, %f3};",
    "st.shared.u8 [%r0], %h0;",
    "st.global.u32 [%rd0], 5;",
    "st.global.f32 [%rd0], 0f00000000;",
    "st.volatile.global.u32 [%rd0], %r0;",
    "st.release.gpu.global.u32 [%rd0], %r0;",
    "st.local.v2.b32 [%rd0], {%r0, %r1};",
    "st.global.wt.u16 [%rd0], %r0;",
    "st.b64 [%rd0], %rd1;",
    "st.relaxed.cta.shared.u32 [%r0], %r1;",
    "prefetch.global.L2 [%rd0];",
    "prefetchu.L1 [%rd0];",
    /* conversions */
    "cvt.u64.u32 %rd0, %r0;",
    "cvt.s64.s32 %rd0, %r0;",
    "cvt.u32.u64 %r0, %rd0;",
    "cvt.u16.u32 %h0, %r0;",
    "cvt.u32.u8 %r0, %h0;",
    "cvt.s32.s8 %r0, %r1;",
    "cvt.rn.f32.u32 %f0, %r0;",
    "cvt.rn.f32.s64 %f0, %rd0;",
    "cvt.rzi.s32.f32 %r0, %f0;",
    "cvt.rni.ftz.u32.f32 %r0, %f0;",
    "cvt.rmi.f32.f32 %f0, %f1;",
    "cvt.rpi.ftz.f32.f32 %f0, %f1;",
    "cvt.f64.f32 %fd0, %f0;",
    "cvt.rn.f32.f64 %f0, %fd0;",
    "cvt.sat.f32.f32 %f0, %f1;",
    "cvt.sat.u8.s32 %r0, %r1;",
    "cvt.rn.f16.f32 %h0, %f0;",
    "cvt.f32.f16 %f0, %h0;",
    "cvt.rn.bf16.f32 %h0, %f0;",
    "cvt.rn.f16x2.f32 %r0, %f0, %f1;",
    "cvt.rzi.u64.f64 %rd0, %fd0;",
    "cvt.rn.f64.s32 %fd0, %r0;",
    "cvt.rz.f32.u32 %f0, %r0;",
    "cvt.rzi.s16.f32 %h0, %f0;",
    "cvt.s32.s16 %r0, %h0;",
    "cvta.to.global.u64 %rd0, %rd1;",
    "cvta.shared.u64 %rd0, %rd1;",
    "cvta.local.u64 %rd0, %rd1;",
    "cvta.to.shared.u64 %rd0, %rd1;",
    "isspacep.shared %p0, %rd0;",
    "isspacep.global %p0, %rd0;",
    /* integers */
    "add.s32 %r0, %r1, %r2;",
    "add.u64 %rd0, %rd1, 16;",
    "add.s16 %h0, %h1, -1;",
    "add.sat.s32 %r0, %r1, %r2;",
    "sub.s32 %r0, 1, %r1;",
    "add.cc.u32 %r0, %r1, %r2;",
    "addc.cc.u32 %r0, %r1, %r2;",
    "addc.u32 %r0, %r1, 0;",
    "sub.cc.s32 %r0, %r1, %r2;",
    "subc.u32 %r0, %r1, %r2;",
    "mul.lo.s32 %r0, %r1, %r2;",
    "mul.hi.u64 %rd0, %rd1, %rd2;",
    "mul.wide.u32 %rd0, %r1, 4;",
    "mul.wide.s16 %r0, %h1, %h2;",
    "mad.lo.s32 %r0, %r1, %r2, %r3;",
    "mad.hi.u32 %r0, %r1, %r2, %r3;",
    "mad.wide.s32 %rd0, %r1, %r2, %rd3;",
    "mad.hi.sat.s32 %r0, %r1, %r2, %r3;",
    "mad.lo.cc.u32 %r0, %r1, %r2, %r3;",
    "madc.hi.u32 %r0, %r1, %r2, %r3;",
    "madc.lo.cc.u32 %r0, %r1, %r2, 0;",
    "mul24.lo.s32 %r0, %r1, %r2;",
    "mad24.hi.u32 %r0, %r1, %r2, %r3;",
    "sad.u32 %r0, %r1, %r2, %r3;",
    "div.s32 %r0, %r1, %r2;",
    "div.u64 %rd0, %rd1, %rd2;",
    "rem.u32 %r0, %r1, 10;",
    "rem.s64 %rd0, %rd1, %rd2;",
    "abs.s32 %r0, %r1;",
    "neg.s64 %rd0, %rd1;",
    "min.u32 %r0, %r1, %r2;",
    "max.s64 %rd0, %rd1, 0;",
    "min.s16 %h0, %h1, %h2;",
    "max.relu.s32 %r0, %r1, %r2;",
    "dp4a.u32.u32 %r0, %r1, %r2, %r3;",
    "dp4a.s32.u32 %r0, %r1, %r2, %r3;",
    "dp2a.lo.s32.s32 %r0, %r1, %r2, %r3;",
    "dp2a.hi.u32.s32 %r0, %r1, %r2, -1;",
    /* floating point */
    "add.f32 %f0, %f1, %f2;",
    "add.rn.f32 %f0, %f1, %f2;",
    "add.rz.ftz.sat.f32 %f0, %f1, %f2;",
    "sub.rm.f64 %fd0, %fd1, %fd2;",
    "mul.f32 %f0, %f1, 0f40000000;",
    "mul.rp.f64 %fd0, %fd1, %fd2;",
    "mul.ftz.f32 %f0, %f1, %f2;",
    "fma.rn.f32 %f0, %f1, %f2, %f3;",
    "fma.rz.ftz.sat.f32 %f0, %f1, %f2, %f3;",
    "fma.rn.f64 %fd0, %fd1, %fd2, %fd3;",
    "mad.rn.f32 %f0, %f1, %f2, %f3;",
    "fma.rn.f16 %h0, %h1, %h2, %h3;",
    "fma.rn.f16x2 %r0, %r1, %r2, %r3;",
    "fma.rn.relu.bf16 %h0, %h1, %h2, %h3;",
    "add.f16 %h0, %h1, %h2;",
    "add.f16x2 %r0, %r1, %r2;",
    "mul.bf16x2 %r0, %r1, %r2;",
    "sub.f16 %h0, %h1, %h2;",
    "div.rn.f32 %f0, %f1, %f2;",
    "div.approx.f32 %f0, %f1, %f2;",
    "div.full.ftz.f32 %f0, %f1, %f2;",
    "div.rn.f64 %fd0, %fd1, %fd2;",
    "rcp.rn.f32 %f0, %f1;",
    "rcp.approx.ftz.f32 %f0, %f1;",
    "rcp.rn.f64 %fd0, %fd1;",
    "rcp.approx.ftz.f64 %fd0, %fd1;",
    "sqrt.rn.f32 %f0, %f1;",
    "sqrt.approx.f32 %f0, %f1;",
    "sqrt.rn.f64 %fd0, %fd1;",
    "rsqrt.approx.f32 %f0, %f1;",
    "rsqrt.approx.f64 %fd0, %fd1;",
    "sin.approx.f32 %f0, %f1;",
    "cos.approx.ftz.f32 %f0, %f1;",
    "ex2.approx.ftz.f32 %f0, %f1;",
    "lg2.approx.f32 %f0, %f1;",
    "tanh.approx.f32 %f0, %f1;",
    "copysign.f32 %f0, %f1, %f2;",
    "copysign.f64 %fd0, %fd1, %fd2;",
    "abs.f32 %f0, %f1;",
    "abs.ftz.f32 %f0, %f1;",
    "neg.f64 %fd0, %fd1;",
    "neg.f16 %h0, %h1;",
    "min.f32 %f0, %f1, %f2;",
    "max.NaN.f32 %f0, %f1, %f2;",
    "min.ftz.xorsign.abs.f32 %f0, %f1, %f2;",
    "max.f64 %fd0, %fd1, %fd2;",
    "min.f16x2 %r0, %r1, %r2;",
    /* bits */
    "and.b32 %r0, %r1, 255;",
    "or.b64 %rd0, %rd1, %rd2;",
    "xor.b16 %h0, %h1, %h2;",
    "and.pred %p0, %p1, %p2;",
    "not.pred %p0, %p1;",
    "not.b32 %r0, %r1;",
    "cnot.b32 %r0, %r1;",
    "shl.b32 %r0, %r1, 2;",
    "shl.b64 %rd0, %rd1, %r2;",
    "shr.u32 %r0, %r1, 31;",
    "shr.s64 %rd0, %rd1, 3;",
    "shr.b16 %h0, %h1, 1;",
    "shf.l.wrap.b32 %r0, %r1, %r2, %r3;",
    "shf.r.clamp.b32 %r0, %r1, %r2, 7;",
    "lop3.b32 %r0, %r1, %r2, %r3, 0xE8;",
    "prmt.b32 %r0, %r1, %r2, 0x5410;",
    "prmt.b32.f4e %r0, %r1, %r2, %r3;",
    "prmt.b32.rc16 %r0, %r1, %r2, %r3;",
    "bfe.u32 %r0, %r1, 8, 4;",
    "bfe.s64 %rd0, %rd1, %r2, %r3;",
    "bfi.b32 %r0, %r1, %r2, 8, 4;",
    "bfi.b64 %rd0, %rd1, %rd2, %r3, %r4;",
    "bfind.u32 %r0, %r1;",
    "bfind.shiftamt.s64 %r0, %rd1;",
    "brev.b32 %r0, %r1;",
    "clz.b64 %r0, %rd1;",
    "popc.b32 %r0, %r1;",
    "popc.b64 %r0, %rd1;",
    "bmsk.clamp.b32 %r0, %r1, %r2;",
    "bmsk.wrap.b32 %r0, 0, 8;",
    "szext.clamp.s32 %r0, %r1, %r2;",
    "fns.b32 %r0, %r1, 0, %r3;",
    /* comparison */
    "setp.lt.s32 %p0, %r1, %r2;",
    "setp.ne.b64 %p0, %rd1, 0;",
    "setp.eq.and.u32 %p0, %r1, %r2, %p1;",
    "setp.gtu.ftz.f32 %p0, %f1, %f2;",
    "setp.lo.u32 %p0, %r1, %r2;",
    "setp.hs.or.u64 %p0|%p1, %rd1, %rd2, !%p2;",
    "setp.num.f64 %p0, %fd1, %fd2;",
    "setp.nan.xor.f32 %p0|%p2, %f1, %f2, %p1;",
    "setp.eq.f16 %p0, %h1, %h2;",
    "set.lt.u32.s32 %r0, %r1, %r2;",
    "set.gt.f32.f32 %f0, %f1, %f2;",
    "set.eq.and.s32.u64 %r0, %rd1, %rd2, !%p1;",
    "set.leu.ftz.f32.f32 %f0, %f1, %f2;",
    "selp.b32 %r0, %r1, %r2, %p0;",
    "selp.f64 %fd0, %fd1, 0d0000000000000000, %p0;",
    "selp.u16 %h0, 1, 0, %p1;",
    "slct.s32.f32 %r0, %r1, %r2, %f3;",
    "slct.f32.s32 %f0, %f1, %f2, %r3;",
    "slct.ftz.u64.f32 %rd0, %rd1, %rd2, %f3;",
    "testp.finite.f32 %p0, %f1;",
    "testp.notanumber.f64 %p0, %fd1;",
    "testp.subnormal.f32 %p0, %f1;",
    /* control */
    "bra L; L:",
    "@%p0 bra L; add.s32 %r0, %r0, 1; L:",
    "@!%p0 bra.uni L; L: ret;",
    "ret.uni;",
    "@%p1 ret;",
    "exit;",
    "@!%p1 exit;",
    "trap;",
    "brkpt;",
    "t: .branchtargets A, B; brx.idx %r0, t; A: ret; B: exit;",
    "t: .branchtargets A, B; brx.idx.uni 1, t; A: ret; B: exit;",
    "nanosleep.u32 100;",
    "nanosleep.u32 %r0;",
    "pmevent 3;",
    "pmevent.mask 7;",
    "setmaxnreg.inc.sync.aligned.u32 40;",
    "griddepcontrol.wait;",
    "griddepcontrol.launch_dependents;",
    /* synchronisation */
    "bar.sync 0;",
    "bar.sync 1, 64;",
    "bar.sync %r0;",
    "bar.arrive 1, 128;",
    "bar.red.popc.u32 %r0, 0, %p1;",
    "bar.red.and.pred %p0, 0, 64, !%p1;",
    "bar.red.or.pred %p0, %r1, %p2;",
    "barrier.sync 0;",
    "barrier.cta.sync.aligned 0;",
    "barrier.sync.aligned 2, %r0;",
    "bar.warp.sync -1;",
    "bar.warp.sync %r0;",
    "bar.cta.sync 0;",
    "membar.gl;",
    "membar.cta;",
    "membar.sys;",
    "fence.acq_rel.gpu;",
    "fence.sc.cta;",
    "atom.global.add.u32 %r0, [%rd0], %r1;",
    "atom.add.f32 %f0, [%rd0], %f1;",
    "atom.global.add.f64 %fd0, [%rd0], %fd1;",
    "atom.shared.min.s32 %r0, [%r1], %r2;",
    "atom.max.u64 %rd0, [%rd1], %rd2;",
    "atom.and.b32 %r0, [%rd0], 1;",
    "atom.or.b64 %rd0, [%rd1+8], %rd2;",
    "atom.xor.b32 %r0, [%rd0], %r1;",
    "atom.inc.u32 %r0, [%rd0], %r1;",
    "atom.dec.u32 %r0, [%rd0], 7;",
    "atom.exch.b64 %rd0, [%rd1], %rd2;",
    "atom.cas.b32 %r0, [%rd0], %r1, %r2;",
    "atom.global.acq_rel.gpu.cas.b64 %rd0, [%rd1], %rd2, %rd3;",
    "atom.relaxed.sys.global.add.u32 %r0, [%rd0], 1;",
    "atom.global.add.u32 _, [%rd0], %r1;",
    "red.global.add.f32 [%rd0], %f1;",
    "red.shared.add.u32 [%r0], 1;",
    "red.release.gpu.global.max.s32 [%rd0], %r1;",
    "red.global.add.u64 [%rd0], %rd1;",
    /* lanes */
    "shfl.sync.down.b32 %r0|%p0, %r1, 16, 31, -1;",
    "shfl.sync.idx.b32 %r0, %r1, %r2, 31, %r3;",
    "shfl.sync.bfly.b32 %f0, %f1, 1, 31, -1;",
    "shfl.sync.up.b32 %r0, %r1, 1, 0, -1;",
    "shfl.down.b32 %r0, %r1, 1, 31;",
    "vote.sync.ballot.b32 %r0, %p0, -1;",
    "vote.sync.all.pred %p0, !%p1, %r0;",
    "vote.sync.any.pred %p0, %p1, -1;",
    "vote.sync.uni.pred %p0, %p1, -1;",
    "vote.ballot.b32 %r0, %p0;",
    "match.any.sync.b32 %r0, %r1, -1;",
    "match.all.sync.b64 %r0|%p0, %rd1, %r2;",
    "redux.sync.add.s32 %r0, %r1, -1;",
    "redux.sync.xor.b32 %r0, %r1, %r2;",
    "redux.sync.max.u32 %r0, %r1, -1;",
    "activemask.b32 %r0;",
    "elect.sync %r0|%p0, -1;",
    "elect.sync _|%p0, %r1;",
    /* scopes, guards, directives inside */
    "{ .reg .b32 t; mov.b32 t, 1; { .reg .b32 t; mov.b32 t, 2; } add.s32 %r0, t, t; }",
    "@%p0 add.s32 %r0, %r1, %r2;",
    "@!%p7 st.global.u32 [%rd0], %r0;",
    ".pragma \"nounroll\"; .loc 1 2 3\n mov.b32 %r0, 1;",
    "{ L: @%p0 bra L; } { L: @%p1 bra L; }",
    "{ bra M; } M:",
    "L: { bra L; L: } bra L;",
    ".reg .b32 %r1x, %x; mov.b32 %r1x, %x;",
    "; ;",
    ".shared .align 4 .b8 buf[64]; mov.u32 %r0, buf; st.shared.u32 [buf+4], %r0;",
    (".local .align 8 .b8 frame[32]; mov.u64 %rd0, frame; st.local.u32 [frame], 1; "
     "cvta.local.u64 %rd1, %rd0;"),
};

static struct ir_module *parse(const char *text, const char *what)
{
    struct ptx_error err;
    struct ir_module *m = ptx_try(text, &err);
    cr_assert(m != NULL, "%s: %u:%u %s\n%s", what, err.line, err.column, err.text, text);
    return m;
}

static char *again(const char *text, const char *what)
{
    struct ir_module *m = parse(text, what);
    char *printed = ir_text(m);
    ir_module_destroy(m);
    return printed;
}

Test(ptx_forms, round_trip)
{
    for (size_t i = 0; i < GM_ARRAY_LEN(forms); i++) {
        char *text = ptx_kernel(forms[i]);
        char *once = again(text, forms[i]);
        char *second = again(once, forms[i]);
        char *third = again(second, forms[i]);
        /* The carry register has no name, so it may change its number once. */
        cr_expect_str_eq(second, third);
        if (!strstr(forms[i], ".cc"))
            cr_expect_str_eq(once, second);
        free(text);
        free(once);
        free(second);
        free(third);
    }
}

/* What a statement becomes, for those where the text does not show it. */
static const struct {
    const char *statement, *printed;
} meanings[] = {
    { "mov.u32 %r0, %tid.x;", "mov.u32 %r0, %tid.x;" },
    { "mov.f32 %f0, 1.5;", "mov.f32 %f0, 0f3FC00000;" },
    { "mov.u32 %r0, -1;", "mov.u32 %r0, 4294967295;" },
    { "add.s32 %r0, %r0, 0xFFFFFFFF;", "add.s32 %r0, %r0, -1;" },
    { "mov.b32 %r0, 017;", "mov.b32 %r0, 15;" },
    { "mov.b32 %r0, 0b101;", "mov.b32 %r0, 5;" },
    { "mov.b32 %r0, 12U;", "mov.b32 %r0, 12;" },
    { "mov.b32 %r0, ~0;", "mov.b32 %r0, 4294967295;" },
    { "mov.pred %p0, -1;", "mov.pred %p0, 1;" },
    { "add.f32 %f0, %f0, %f0;", "add.rn.f32 %f0, %f0, %f0;" },
    { "mad.rn.f32 %f0, %f0, %f0, %f0;", "fma.rn.f32 %f0, %f0, %f0, %f0;" },
    { "setp.lo.u32 %p0, %r1, %r1;", "setp.lt.u32 %p0, %r1, %r1;" },
    { "ldu.global.u32 %r0, [4096];", "ld.global.u32 %r0, [4096];" },
    { "barrier.cta.sync.aligned 0;", "bar.sync 0;" },
    { "atom.global.add.u32 _, [64], 1;", "atom.relaxed.global.add.u32 _, [64], 1;" },
    { "ld.u32 %r0, [n];", "ld.param.u32 %r0, [n];" },
    { ".shared .align 4 .b8 x[8]; .shared .align 16 .b8 y[8]; ld.shared.u32 %r0, [y+4];",
      "ld.shared.u32 %r0, [20];" },
    { ".shared .align 4 .b8 x[8]; .shared .align 16 .b8 y[8]; mov.u32 %r0, y;",
      "mov.u32 %r0, 16;" },
    { ".local .b8 x[3]; .local .b64 y; ld.local.b64 %rd0, [y];", "ld.local.b64 %rd0, [8];" },
};

Test(ptx_forms, meanings)
{
    for (size_t i = 0; i < GM_ARRAY_LEN(meanings); i++) {
        char *text = ptx_kernel(meanings[i].statement);
        struct ir_module *m = parse(text, meanings[i].statement);
        char *printed = ir_text(m);
        /* Registers are printed by their number, which is 0 for the first one used. */
        cr_expect(strstr(printed, meanings[i].printed) != NULL, "%s became\n%s",
                  meanings[i].statement, printed);
        ir_module_destroy(m);
        free(text);
        free(printed);
    }
}

/* How many different opcodes the texts above use: the parser knows what the tables promise. */
Test(ptx_forms, every_opcode_is_tested)
{
#define IR_OP(name, text, form, ...) { text, #form },
    static const struct {
        const char *text, *form;
    } ops[] = {
#include "device/soft/ir/ops.h"
    };
    for (size_t o = 0; o < GM_ARRAY_LEN(ops); o++) {
        if (strcmp(ops[o].form, "INTERNAL") == 0 || strcmp(ops[o].form, "CALL") == 0)
            continue;
        bool found = false;
        size_t length = strlen(ops[o].text);
        for (size_t i = 0; i < GM_ARRAY_LEN(forms) && !found; i++)
            for (const char *at = forms[i]; (at = strstr(at, ops[o].text)); at += length)
                found |= (at == forms[i] || at[-1] == ' ') && strchr(".; ", at[length]);
        cr_expect(found, "no form of '%s'", ops[o].text);
    }
}
