#!/usr/bin/env python3
"""Writes probes: one instruction form each over a table of edge inputs, whose expected outputs a GPU gave.

    make_probes.py DIRECTORY [RECORDED]

RECORDED has a line for each probe, `NAME OUTPUT...`, as `run_driver --record` prints it; without it the probes expect
nothing, which is how they are recorded. All data are bits: which NaN comes out counts.
"""
import itertools
import lzma
import os
import struct
import sys

WIDTH = {"b16": 2, "b32": 4, "b64": 8}
MEMORY = {"f16": "b16", "bf16": "b16", "f16x2": "b32", "bf16x2": "b32", "f32": "b32", "f64": "b64", "u8": "b16", "s8": "b16", "b8": "b16"}

F32 = [0, 0x80000000, 1, 0x80000001, 0x00400000, 0x807FFFFF, 0x007FFFFF, 0x00800000, 0x80800001, 0x3F800000, 0xBF800000,
       0x3F800001, 0x3F7FFFFF, 0x3F000000, 0xC0200000, 0x40490FDB, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000,
       0x7F800001, 0xFFC12345, 0x7F000000, 0x4B7FFFFF, 0x33800000, 0x00FFFFFF, 0x1F800000]
F32_MORE = F32 + [
    0x7FFFFFFF, 0xFFFFFFFF, 0xFFA00000, 0x3FC00000, 0x40000000, 0x40400000, 0xC0400000, 0x3EAAAAAB, 0x3E800000, 0xBF000000,
    0x3F000001, 0x3EFFFFFF, 0x4B000000, 0x4B000001, 0x4AFFFFFF, 0xCB000001, 0x42FF0000, 0x43000000, 0x437F8000, 0x43800000, 0xC3000000, 0xC3008000,
    0x46FFFE00, 0x47000000, 0x477FFF80, 0x47800000, 0xC7000000, 0xC7000100, 0x477FE000, 0x477FEFFF, 0x477FF000, 0x33000000, 0x33000001,
    0x38800000, 0x387FC000, 0x387FE000, 0x387FF000, 0x4EFFFFFF, 0x4F000000, 0x4F7FFFFF, 0x4F800000, 0xCF000000, 0xCF000001, 0x5EFFFFFF, 0x5F000000,
    0x5F7FFFFF, 0x5F800000, 0xDF000000, 0xDF000001, 0x00200000, 0x80200000, 0x003FFFFF, 0x7E800000, 0x7E7FFFFF, 0x7F7FFFFE, 0xFE800001,
    0x42FC0000, 0x42FE0000, 0x42FFFFFF, 0xC2FC0000, 0xC2FD0000, 0xC2FE0000, 0xC3140000, 0xC3150000, 0xC3160000, 0xC3170000, 0x3FC90FDB, 0x40C90FDB,
    0x461C4000, 0x4E6E6B28, 0x501502F9, 0x3F7F8000, 0x3F808000, 0x3F818000, 0x3F801000, 0x3F803000, 0x7F7F8000, 0x7F7FFF00, 0x7F7FF000, 0x3B000000,
    0x3A800000, 0x3AC00000, 0x43E00000, 0x43E80000, 0x43E88000, 0x47600000, 0x47700000, 0x37800000, 0x37000000, 0x36800000, 0x36800001, 0xBF7FFFFF, 0x41200000,
    0xBDCCCCCD, 0x3DCCCCCD, 0xC1A00000, 0x41A00000, 0x3C23D70A, 0x358637BD]
F64 = [0, 1 << 63, 1, 0x8000000000000001, 0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x8018000000000000, 0x3FF0000000000000, 0xBFF0000000000000,
       0x3FF0000000000001, 0x3FEFFFFFFFFFFFFF, 0x3FE0000000000000, 0xC004000000000000, 0x400921FB54442D18, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF,
       0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0x7FF0000000000001, 0xFFF8123456789ABC, 0x7FE0000000000000, 0x433FFFFFFFFFFFFF, 0x3CA0000000000000]
F64_MORE = F64 + [
    0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 0xFFF4000000000000, 0x3FF8000000000000, 0x4004000000000000, 0x400C000000000000, 0xBFE0000000000000,
    0x3FD5555555555555, 0x3FDFFFFFFFFFFFFF, 0x4330000000000000, 0x4330000000000001, 0x432FFFFFFFFFFFFF, 0x405FE00000000000, 0x4060000000000000,
    0x406FF00000000000, 0xC060000000000000, 0xC060100000000000, 0x40DFFFC000000000, 0x40E0000000000000, 0x40EFFFF000000000, 0x41DFFFFFFFC00000,
    0x41DFFFFFFFE00000, 0x41E0000000000000, 0x41EFFFFFFFE00000, 0x41EFFFFFFFF00000, 0x41F0000000000000, 0xC1E0000000000000, 0xC1E0000000200000,
    0xC1E0000000100000, 0x43DFFFFFFFFFFFFF, 0x43E0000000000000, 0x43EFFFFFFFFFFFFF, 0x43F0000000000000, 0xC3E0000000000000, 0xC3E0000000000001,
    0x40EFFC0000000000, 0x40EFFDFFFFFFFFFF, 0x40EFFE0000000000, 0x3E60000000000000, 0x3E60000000000001, 0x3F10000000000000, 0x3F0FFC0000000000,
    0x47EFFFFFE0000000, 0x47EFFFFFEFFFFFFF, 0x47EFFFFFF0000000, 0x47F0000000000000, 0x3810000000000000, 0x380FFFFFE0000000, 0x380FFFFFF0000000,
    0x36A0000000000000, 0x3690000000000000, 0x3690000000000001, 0x3FF0000010000000, 0x3FF0000030000000, 0x3FF0020000000000, 0x3FF0060000000000, 0x3FF0100000000000,
    0x7FD0000000000000, 0x7FDFFFFFFFFFFFFF, 0x0008000000000000, 0x0004000000000000, 0x8004000000000000, 0x0000000080000000, 0x00000000FFFFFFFF]
F16 = [0, 0x8000, 1, 0x8001, 0x03FF, 0x0200, 0x0400, 0x8401, 0x3C00, 0xBC00, 0x3C01, 0x3BFF, 0x3800, 0xC100, 0x4248, 0x7BFF, 0xFBFF,
       0x7C00, 0xFC00, 0x7E00, 0x7C01, 0xFE55, 0x7FFF, 0x7800, 0x63FF, 0x1400, 0x3555, 0x3E00]
BF16 = [0, 0x8000, 1, 0x8001, 0x007F, 0x0040, 0x0080, 0x8081, 0x3F80, 0xBF80, 0x3F81, 0x3F7F, 0x3F00, 0xC020, 0x4049, 0x7F7F, 0xFF7F,
        0x7F80, 0xFF80, 0x7FC0, 0x7F81, 0xFFD5, 0x7FFF, 0x7F00, 0x4B7F, 0x3380, 0x3EAB, 0x3FC0]
I16 = [0, 1, 2, 3, 7, 15, 16, 17, 0xFF, 0x100, 0x1234, 0x7FFF, 0x8000, 0x8001, 0xFFFE, 0xFFFF]
I32 = [0, 1, 2, 7, 8, 16, 31, 32, 33, 0xFF, 0x100, 0x10000, 0x123456, 0x7FFFFF, 0x800000, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFF80, 0xFFFFFFFE, 0xFFFFFFFF,
       0x12345678, 0xDEADBEEF, 0x80808080]
I64 = [0, 1, 2, 7, 31, 32, 63, 64, 0xFFFFFFFF, 0x100000000, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0x8000000000000001,
       0xFFFFFFFFFFFFFFFE, 0xFFFFFFFFFFFFFFFF, 0x123456789ABCDEF0, 0xDEADBEEFCAFEF00D, 0xFFFFFFFF00000000, 0x0020000000000001, 0x7FFFFFBFFFFFFFFF]
SHIFTS = [0, 1, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 257, 0x80000001, 0xFFFFFFFF]
ALL16 = sorted(set(F16 + BF16 + I16 + [k * 0x511 & 0xFFFF for k in range(60)]))


def memory(t):
    return MEMORY.get(t, "b" + t[1:])


def table(t, arity):
    if t == "f32":
        return F32_MORE if arity == 1 else F32 if arity == 2 else F32[:26]
    if t == "f64":
        return F64_MORE if arity == 1 else F64
    if t in ("f16", "bf16"):
        if arity == 1:
            return ALL16
        return F16 if t == "f16" else BF16
    if t in ("f16x2", "bf16x2"):
        v = F16 if t == "f16x2" else BF16
        return [v[k] | v[(k * 5 + 3) % len(v)] << 16 for k in range(len(v))]
    return {1: [0, 1, 0x7F, 0x80, 0x81, 0xFF, 0x155, 0x1FF], 2: I16, 4: I32, 8: I64}[int(t[1:]) // 8]


def rows(types, limit):
    """Every combination; of too many, a fixed share spread over all."""
    every = list(itertools.product(*[table(t, len(types)) for t in types]))
    if len(every) <= limit:
        return every
    step = len(every) / limit
    return [every[int(k * step)] for k in range(limit)]


# What the software device does not have: constants are global memory there.
LACKING = ("isspacep_const_const", "isspacep_global_const")
PROBES = {}


def lines(head, words):
    text, line = [], head
    for w in words:
        if len(line) + len(w) > 118:
            text.append(line)
            line = "//+"
        line += " " + w
    return text + [line]


def probe(name, body, ins, out, values=None, limit=320, extra=""):
    """`body` takes %a, %b .. and leaves %o, registers of the memory types of `ins` and `out`."""
    values = values or rows(ins, limit)
    values = [v if isinstance(v, tuple) else (v,) for v in values]
    if len(values) % 2:
        values.append(values[-1])
    assert name not in PROBES and len(values) <= 1024, name
    PROBES[name] = (body, ins, out, values, extra)


# Relative errors that PTX documents, or those of the hardware where it has more. What is not listed is exact.
TOLERANCE = {"div_approx": 4e-7, "div_full": 4e-7, "rcp_approx": 4e-7, "sqrt_approx": 4e-7, "rsqrt_approx": 4e-7, "ex2_approx": 4e-7,
             "lg2_approx": 1e-6, "sin_approx": 4e-6, "cos_approx": 4e-6, "tanh_approx": 1e-3}


def tolerance(name, out):
    if out[:3] in ("f16", "bf1"):
        return 2e-3 if out[0] == "f" else 1.6e-2
    if name in ("rcp_approx_ftz_f64", "rsqrt_approx_ftz_f64"):
        return 1e-6
    return TOLERANCE.get("_".join(name.split("_")[:2]))


def is_loose(name, x, e):
    """Where the hardware's error is not a relative one: f32 subnormals, logarithms near 1, angles near multiples of pi / 2."""
    size = e & 0x7FFFFFFF
    angle = name.startswith(("sin", "cos")) and 0x02000000 < x & 0x7FFFFFFF < 0x7F800000
    return 0 < size < 0x00800000 or angle and size < 0x3DCCCCCD or name.startswith("lg2") and 0 < size < 0x3E800000


def is_arithmetic(name, out):
    """Which NaN an operation on f32 or f64 gives is left to the CPU: telling them apart would cost more than the operation."""
    return out in ("f32", "f64") and not (
        name.startswith(("min", "max")) and out == "f32" or name.startswith(("slct", "set", "copysign", "cvt")))


def out_type(name, out):
    return out if is_arithmetic(name, out) else "u" + memory(out)[1:]


def number(name, out, x, hexadecimal):
    if not is_arithmetic(name, out):
        return "0x" + hexadecimal
    if out == "f32" and tolerance(name, out) and is_loose(name, x, int(hexadecimal, 16)):
        return "_"
    v, wide = int(hexadecimal, 16), out == "f64"
    if v & ((1 << 63) - 1 if wide else 0x7FFFFFFF) > (0x7FF << 52 if wide else 0x7F800000):
        return "nan"
    return ("0d%016X" if wide else "0f%08X") % v


def as_f32(v, t):
    """Bits of f16 or bf16 as those of f32."""
    if t == "bf16":
        return v << 16
    sign, exponent, fraction = v >> 15 << 31, v >> 10 & 31, v & 0x3FF
    if exponent == 31:
        return sign | 0x7F800000 | fraction << 13
    return sign | struct.unpack("<I", struct.pack("<f", (fraction + (exponent > 0) * 1024) * 2.0 ** (max(exponent, 1) - 25)))[0]


def text_of(name, recorded):
    body, ins, out, values, extra = PROBES[name]
    inexact = "_".join(name.split("_")[:2]) in TOLERANCE
    if inexact and out in ("f16", "bf16"): # compared as numbers
        body, out = body.replace("%o", "%h0") + "\ncvt.f32.%s %%o, %%h0;" % out, "f32"
        recorded = {name: ["%x" % as_f32(int(e, 16), PROBES[name][2]) for e in recorded.get(name, [])]}
    names = ["a", "b", "c", "d"][:len(ins)]
    n = len(values)
    expected = recorded.get(name)
    head = ["// kernel: k", "// grid: 2", "// block: %d" % (n // 2)]
    for k, t in enumerate(ins):
        head += lines("// in %s: %s" % (names[k], "u" + memory(t)[1:]), ["0x%x" % v[k] for v in values])
    head += lines("// out o: %s" % out_type(name, out), [number(name, out, v[0], e) for v, e in zip(values, expected)] if expected else ["_"] * n)
    if inexact:
        head.append("// tol: %g" % tolerance(name, PROBES[name][2]))
        if "rsqrt" in name:
            head.append("// estimate: compiled code begins with the CPU's")
    text = head + [".version 8.4", ".target sm_90", ".address_size 64"] + ([extra] if extra else [])
    text += [".visible .entry k(%s)" % ", ".join(".param .u64 p%s" % x for x in names + ["o"]), "{",
             "    .reg .pred %p, %q, %p1, %p2;", "    .reg .b16 %h<8>;", "    .reg .b32 %t, %r<8>;", "    .reg .b64 %x, %l<8>;",
             "    .reg .f32 %f<4>;", "    .reg .f64 %g<4>;"]
    for x, t in zip(names + ["o"], list(ins) + [out]):
        text.append("    .reg .%s %%%s;" % (memory(t), x))
    text += ["    mov.u32 %t, %ctaid.x;", "    mov.u32 %r0, %ntid.x;", "    mov.u32 %r1, %tid.x;", "    mad.lo.s32 %t, %t, %r0, %r1;"]
    for x, t in zip(names, ins):
        text += ["    ld.param.u64 %%x, [p%s];" % x, "    mad.wide.u32 %%x, %%t, %d, %%x;" % WIDTH[memory(t)],
                 "    ld.global.%s %%%s, [%%x];" % (memory(t), x)]
    text += ["    " + line for line in body.split("\n")]
    text += ["    ld.param.u64 %x, [po];", "    mad.wide.u32 %%x, %%t, %d, %%x;" % WIDTH[memory(out)],
             "    st.global.%s [%%x], %%o;" % memory(out), "    ret;", "}"]
    return "\n".join(text) + "\n"


def op(form, ins, out=None, values=None, limit=320):
    """A plain instruction: destination, then sources."""
    letters = ["%a", "%b", "%c", "%d"][:len(ins)]
    probe(form.replace(".", "_").replace("::", "_"), "%s %%o, %s;" % (form, ", ".join(letters)), ins, out or ins[0], values, limit)


def product(*parts):
    return ["".join(p) for p in itertools.product(*parts)]


ROUND = [".rn", ".rz", ".rm", ".rp"]


def floats():
    for m in product([""] + ROUND, ["", ".ftz"], ["", ".sat"]):
        for name in ("add", "sub", "mul"):
            op(name + m + ".f32", ["f32"] * 2)
    for m in product(ROUND, ["", ".ftz"], ["", ".sat"]):
        op("fma" + m + ".f32", ["f32"] * 3, limit=640)
    op("mad.rn.f32", ["f32"] * 3)
    op("mad.rz.ftz.f32", ["f32"] * 3)
    for m in product([".approx", ".full"] + ROUND, ["", ".ftz"]):
        op("div" + m + ".f32", ["f32"] * 2, limit=800)
        if m.startswith(".full"):
            continue
        op("rcp" + m + ".f32", ["f32"])
        op("sqrt" + m + ".f32", ["f32"])
    for name in ("rsqrt", "sin", "cos", "lg2", "ex2"):
        for m in ("", ".ftz"):
            op(name + ".approx" + m + ".f32", ["f32"])
    op("tanh.approx.f32", ["f32"])
    for name in ("min", "max"):
        for m in product(["", ".ftz"], ["", ".NaN"], ["", ".xorsign.abs"]):
            op(name + m + ".f32", ["f32"] * 2, limit=800)
        op(name + ".f64", ["f64"] * 2, limit=600)
    for name in ("abs", "neg"):
        op(name + ".f32", ["f32"])
        op(name + ".ftz.f32", ["f32"])
        op(name + ".f64", ["f64"])
    op("copysign.f32", ["f32"] * 2)
    op("copysign.f64", ["f64"] * 2)
    for m in [""] + ROUND:
        for name in ("add", "sub", "mul"):
            op(name + m + ".f64", ["f64"] * 2, limit=576)
        if m:
            op("fma" + m + ".f64", ["f64"] * 3, limit=640)
            op("div" + m + ".f64", ["f64"] * 2, limit=576)
            op("rcp" + m + ".f64", ["f64"])
            op("sqrt" + m + ".f64", ["f64"])
    op("mad.rn.f64", ["f64"] * 3)
    op("rcp.approx.ftz.f64", ["f64"])
    op("rsqrt.approx.f64", ["f64"])
    op("rsqrt.approx.ftz.f64", ["f64"])
    for t in ("f32", "f64"):
        for kind in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
            probe("testp_%s_%s" % (kind, t), "testp.%s.%s %%p, %%a;\nselp.u32 %%o, 1, 0, %%p;" % (kind, t), [t], "u32")


def halves():
    for t in ("f16", "bf16"):
        ftz = ["", ".ftz"] if t == "f16" else [""]
        for w in (t, t + "x2"):
            for name in ("add", "sub", "mul"):
                for m in product(["", ".rn"], ftz, ["", ".sat"] if t == "f16" else [""]):
                    op(name + m + "." + w, [w] * 2, limit=600)
            for m in product(ftz, ["", ".sat", ".relu"] if t == "f16" else ["", ".relu"]):
                op("fma.rn" + m + "." + w, [w] * 3, limit=640)
            for m in ("", ".relu"):
                op("fma.rn.oob" + m + "." + w, [w] * 3, limit=640)
            for name in ("min", "max"):
                for m in product(ftz, ["", ".NaN"], ["", ".xorsign.abs"]):
                    op(name + m + "." + w, [w] * 2, limit=600)
            for name in ("abs", "neg"):
                for m in ftz:
                    op(name + m + "." + w, [w])
            if w == t: # those of pairs do the same twice
                op("tanh.approx." + w, [w])
                op("ex2.approx" + (".ftz" if t == "bf16" else "") + "." + w, [w])


COMPARE = ["eq", "ne", "lt", "le", "gt", "ge"]
UNORDERED = ["equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"]


def comparisons():
    for t in ("f32", "f64", "f16", "bf16", "s16", "u16", "s32", "u32", "s64", "u64", "b16", "b32", "b64"):
        names = COMPARE[:2] if t[0] == "b" and t != "bf16" else COMPARE + (UNORDERED if t in ("f32", "f64", "f16", "bf16") else
                                                                          ["lo", "ls", "hi", "hs"] if t[0] == "u" else [])
        for c in names:
            for m in ("", ".ftz") if t in ("f32", "f16") else ("",):
                both = "" if t in ("f16", "bf16") else "|%q"
                probe("setp_%s%s_%s" % (c, m[1:], t), "setp.%s%s.%s %%p%s, %%a, %%b;\nselp.u32 %%o, 1, 0, %%p;\n%s" % (
                    c, m, t, both, "@%q add.u32 %o, %o, 2;" if both else ""), [t, t], "u32", limit=800)
    for d in ("u32", "s32", "f32"):
        for t in ("f32", "f64", "s32", "u64", "s16"):
            for c in ("eq", "lt", "ge") + (("neu", "nan") if t[0] == "f" else ()):
                for m in ("", ".ftz") if t == "f32" else ("",):
                    op("set.%s%s.%s.%s" % (c, m, d, t), [t, t], d, limit=400)
    for t in ("f16", "bf16"):
        for c in ("eq", "lt", "geu", "nan"):
            for d in (t, "u32", "s32", "u16", "s16"):
                if d == t or d[1:] != "x":
                    op("set.%s.%s.%s" % (c, d, t), [t, t], d, limit=400)
            op("set.%s.%sx2.%sx2" % (c, t, t), [t + "x2"] * 2, limit=400)
            probe("setp_%s_%sx2" % (c, t), "setp.%s.%sx2 %%p|%%q, %%a, %%b;\nselp.u32 %%o, 1, 0, %%p;\n@%%q add.u32 %%o, %%o, 2;" % (c, t),
                  [t + "x2"] * 2, "u32", limit=400)
    for b in ("and", "or", "xor"):
        probe("setp_lt_%s_s32" % b, "setp.ne.u32 %%p1, %%c, 0;\nsetp.lt.%s.s32 %%p|%%q, %%a, %%b, !%%p1;\nselp.u32 %%o, 1, 0, %%p;\n@%%q add.u32 %%o, %%o, 2;" % b,
              ["s32", "s32", "u32"], "u32")
        probe("set_lt_%s_f32" % b, "setp.ne.u32 %%p1, %%c, 0;\nset.ltu.%s.ftz.f32.f32 %%o, %%a, %%b, %%p1;" % b, ["f32", "f32", "u32"], "f32")
    for t in ("b32", "u64", "f32", "f64", "b16", "s16"):
        op("slct.%s.s32" % t, [t, t, "s32"])
        op("slct.%s.f32" % t, [t, t, "f32"])
        op("slct.ftz.%s.f32" % t, [t, t, "f32"])


def conversions():
    ints = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"]
    reals = ["f16", "f32", "f64"]
    for d in ints:
        for s in reals + ["bf16"]:
            for m in product([".rni", ".rzi", ".rmi", ".rpi"], ["", ".ftz"] if s == "f32" else [""], ["", ".sat"]):
                op("cvt%s.%s.%s" % (m, d, s), [s], d)
        for s in ints:
            for m in ("", ".sat"):
                op("cvt%s.%s.%s" % (m, d, s), [s], d)
    for d in reals + ["bf16"]:
        for s in ints:
            for m in product(ROUND, ["", ".sat"] if d != "bf16" else [""]):
                op("cvt%s.%s.%s" % (m, d, s), [s], d)
    for d, s in itertools.product(reals, reals):
        size = {"f16": 2, "f32": 4, "f64": 8}
        modes = ROUND if size[d] < size[s] else [""] if size[d] > size[s] else ["", ".rni", ".rzi", ".rmi", ".rpi"]
        for m in product(modes, ["", ".ftz"] if "f32" in (d, s) else [""], ["", ".sat"]):
            op("cvt%s.%s.%s" % (m, d, s), [s], d)
    for m in product([".rn", ".rz"], ["", ".relu"]):
        for d in ("f16", "bf16"):
            if d == "bf16" or m not in ROUND:
                op("cvt%s.%s.f32" % (m, d), ["f32"], d)
            op("cvt%s.%sx2.f32" % (m, d), ["f32", "f32"], "b32", limit=640)
    for m in (".rna", ".rn", ".rz", ".rn.relu", ".rz.relu", ".rna.satfinite"):
        op("cvt%s.tf32.f32" % m, ["f32"], "b32")
    for s in ("f16", "f64"):
        for m in (".rn", ".rz", ".rm", ".rp"):
            op("cvt%s.bf16.%s" % (m, s), [s], "bf16")
    op("cvt.f32.bf16", ["bf16"], "f32")
    op("cvt.ftz.f32.bf16", ["bf16"], "f32")
    op("cvt.f64.bf16", ["bf16"], "f64")
    for m in (".rn", ".rz", ".rm", ".rp"):
        op("cvt%s.f16.bf16" % m, ["bf16"], "f16")
    for m in (".rni", ".rzi", ".rmi", ".rpi"):
        op("cvt%s.bf16.bf16" % m, ["bf16"], "bf16")
    for t in ("e4m3", "e5m2"):
        for r in ("", ".relu"):
            op("cvt.rn.satfinite%s.%sx2.f32" % (r, t), ["f32", "f32"], "b16", limit=700)
            op("cvt.rn.satfinite%s.%sx2.f16x2" % (r, t), ["f16x2"], "b16", [v | w << 16 for v, w in zip(ALL16, ALL16[7:] + ALL16)])
            op("cvt.rn%s.f16x2.%sx2" % (r, t), ["b16"], "b32", [(c | (255 - c) << 8,) for c in range(256)])
    for t in ("u8", "s8"):
        op("cvt.pack.sat.%s.s32.b32" % t, ["s32", "s32", "b32"], "b32", limit=600)
    for t in ("u16", "s16"):
        op("cvt.pack.sat.%s.s32" % t, ["s32", "s32"], "b32", limit=600)
    for t in ("u4", "s4", "u2", "s2"):
        op("cvt.pack.sat.%s.s32.b32" % t, ["s32", "s32", "b32"], "b32", limit=600)


def integers():
    for b in (16, 32, 64):
        for t in ("u%d" % b, "s%d" % b):
            for name in ("add", "sub", "mul.lo", "mul.hi", "min", "max"):
                op("%s.%s" % (name, t), [t, t], limit=400)
            for name in ("div", "rem"):
                op("%s.%s" % (name, t), [t, t], limit=600)
            for name in ("mad.lo", "mad.hi", "sad"):
                op("%s.%s" % (name, t), [t, t, t], limit=400)
            op("shr." + t, [t, "u32"], t, [(x, n) for x in table(t, 2) for n in SHIFTS])
            if b < 64:
                w = t[0] + str(2 * b)
                op("mul.wide." + t, [t, t], w)
                op("mad.wide." + t, [t, t, w], w, limit=500)
        for name in ("abs", "neg"):
            op("%s.s%d" % (name, b), ["s%d" % b])
        t = "b%d" % b
        for name in ("and", "or", "xor"):
            op("%s.%s" % (name, t), [t, t])
        op("not." + t, [t])
        op("cnot." + t, [t])
        op("shl." + t, [t, "u32"], t, [(x, n) for x in table(t, 2) for n in SHIFTS])
    for t in ("u16x2", "s16x2"):
        for name in ("add", "min", "max"):
            probe("%s_%s" % (name, t), "%s.%s %%o, %%a, %%b;" % (name, t), ["b32", "b32"], "b32")
    for name in ("min", "max"):
        for t in ("s16x2", "s32"):
            probe("%s_relu_%s" % (name, t), "%s.relu.%s %%o, %%a, %%b;" % (name, t), ["b32", "b32"], "b32", limit=600)
    for name in ("add", "sub"):
        op(name + ".sat.s32", ["s32"] * 2, limit=600)
    op("mad.hi.sat.s32", ["s32"] * 3, limit=600)
    for part in ("lo", "hi"):
        for t in ("u32", "s32"):
            op("mul24.%s.%s" % (part, t), [t, t], limit=600)
            op("mad24.%s.%s" % (part, t), [t, t, t], limit=600)
    op("mad24.hi.sat.s32", ["s32"] * 3, limit=600)
    for a, b in itertools.product(("u32", "s32"), ("u32", "s32")):
        d = "u32" if (a, b) == ("u32", "u32") else "s32"
        probe("dp4a_%s_%s" % (a, b), "dp4a.%s.%s %%o, %%a, %%b, %%c;" % (a, b), [a, b, d], d, limit=400)
        for part in ("lo", "hi"):
            probe("dp2a_%s_%s_%s" % (part, a, b), "dp2a.%s.%s.%s %%o, %%a, %%b, %%c;" % (part, a, b), [a, b, d], d, limit=400)
    for w in (32, 64):
        t = "u%d" % w
        chain = "add.cc.%s %%o, %%a, %%b;\naddc.cc.%s %%o, %%o, %%c;\naddc.%s %%o, %%o, 0;" % (t, t, t)
        probe("addc_" + t, chain, [t] * 3, t, limit=500)
        chain = "sub.cc.%s %%o, %%a, %%b;\nsubc.cc.%s %%o, %%o, %%c;\nsubc.%s %%o, %%o, 0;" % (t, t, t)
        probe("subc_" + t, chain, [t] * 3, t, limit=500)
        chain = "mad.lo.cc.%s %%o, %%a, %%b, %%c;\nmadc.hi.cc.%s %%o, %%a, %%b, %%o;\naddc.%s %%o, %%o, 0;" % (t, t, t)
        probe("madc_" + t, chain, [t] * 3, t, limit=500)
        chain = chain.replace(t, "s%d" % w)
        probe("madc_s%d" % w, chain, [t] * 3, t, limit=500)


def bits():
    places = [0, 1, 4, 5, 8, 16, 31, 32, 33, 48, 63, 64, 65, 127, 128, 255, 256, 257, 260, 0x80000000, 0xFFFFFFFF]
    for w in (32, 64):
        data = [0xDEADBEEFCAFEF00D & ((1 << w) - 1), 0x8000000000000000 >> (64 - w), 0x1234567876543210 & ((1 << w) - 1)]
        for t in ("u%d" % w, "s%d" % w):
            op("bfe." + t, [t, "u32", "u32"], t, [(x, p, n) for x in data[:2] for p in places for n in places])
            op("bfind." + t, [t], "u32")
            op("bfind.shiftamt." + t, [t], "u32")
        t = "b%d" % w
        op("bfi." + t, [t, t, "u32", "u32"], t, [(data[0], y, p, n) for y in (data[2], 0) for p in places for n in places])
        op("popc." + t, [t], "u32")
        op("clz." + t, [t], "u32")
        op("brev." + t, [t])
    for d, m in itertools.product("lr", ("clamp", "wrap")):
        op("shf.%s.%s.b32" % (d, m), ["b32"] * 3, None, [(x, y, n) for x in I32[::3] for y in I32[1::5] for n in SHIFTS])
    for m in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        op("prmt.b32" + m, ["b32"] * 3, None, [(x, y, c) for x in (0x83828180, 0x12345678) for y in (0x07868584, 0xDEADBEEF)
                                              for c in list(range(10)) + [0x3210, 0x7654, 0xFEDC, 0xA9B8, 0x4455, 0x12343210, 0xFFFFFFFF, 0x8888]])
    for n in (0, 1, 0x1B, 0x69, 0x80, 0x96, 0xCA, 0xE8, 0xFE, 0xFF):
        probe("lop3_%02x" % n, "lop3.b32 %%o, %%a, %%b, %%c, %d;" % n, ["b32"] * 3, "b32", limit=200)
    for m in ("clamp", "wrap"):
        op("bmsk.%s.b32" % m, ["b32", "b32"], "b32", [(x, y) for x in SHIFTS for y in SHIFTS])
        for t in ("u32", "s32"):
            op("szext.%s.%s" % (m, t), [t, "u32"], t, [(x, y) for x in I32 for y in SHIFTS])
    op("fns.b32", ["b32", "u32", "s32"], "u32",
       [(m, p, k & 0xFFFFFFFF) for m in (0, 0xFFFFFFFF, 0xAAAAAAAA, 0x80000001, 0xF0F0, 1) for p in (0, 1, 5, 15, 30, 31)
        for k in (0, 1, 2, 3, 5, 31, 32, 33, -1, -2, -3, -32, -33, 0x7FFFFFFF, -0x80000000)])


def video():
    types = ("u32", "s32")
    for name in ("vadd", "vsub", "vabsdiff", "vmin", "vmax"):
        for d, a, b in itertools.product(types, types, types):
            for sat in ("", ".sat"):
                f = "%s.%s.%s.%s%s" % (name, d, a, b, sat)
                op(f, ["b32", "b32"], "b32")
                probe((f + "_bytes").replace(".", "_"), "%s %%o, %%a.b1, %%b.h1;" % f, ["b32", "b32"], "b32")
                for n in (2, 4):
                    f = "%s%d.%s.%s.%s%s" % (name, n, d, a, b, sat)
                    probe(f.replace(".", "_"), "%s %%o, %%a, %%b, %%b;" % f, ["b32", "b32"], "b32")
            probe("%s_%s_%s_%s_add" % (name, d, a, b), "%s.%s.%s.%s.add %%o, %%a, %%b, %%c;" % (name, d, a, b), ["b32"] * 3, "b32", limit=400)
            probe("%s_%s_%s_%s_insert" % (name, d, a, b), "%s.%s.%s.%s.sat %%o.b2, %%a, %%b, %%c;" % (name, d, a, b), ["b32"] * 3, "b32", limit=400)
    for m in ("clamp", "wrap"):
        for a in types:
            for name in ("vshl", "vshr"):
                op("%s.%s.%s.u32.%s" % (name, a, a, m), ["b32", "b32"], "b32", [(x, n) for x in I32 for n in SHIFTS])
                op("%s.%s.%s.u32.sat.%s" % (name, a, a, m), ["b32", "b32"], "b32", [(x, n) for x in I32 for n in SHIFTS])
    for a, b in itertools.product(types, types):
        d = "s32" if "s32" in (a, b) else "u32"
        for m in ("", ".shr7", ".shr15", ".sat", ".sat.shr7"):
            op("vmad.%s.%s.%s%s" % (d, a, b, m), ["b32"] * 3, "b32", limit=400)
        for c in ("eq", "lt", "ge"):
            op("vset.%s.%s.%s" % (a, b, c), ["b32", "b32"], "b32")
            for n in (2, 4):
                f = "vset%d.%s.%s.%s" % (n, a, b, c)
                probe(f.replace(".", "_"), "%s %%o, %%a, %%b, %%b;" % f, ["b32", "b32"], "b32")
    probe("vmad_po", "vmad.u32.u32.u32.po %o, %a, %b, %c;", ["b32"] * 3, "b32")


def atomics():
    """An element of its own for each thread: what the memory has afterwards, and in the upper half what was returned."""
    def atomic(form, t, others=(), values=None, spaces=("global", "shared")):
        mem, size = memory(t), WIDTH[memory(t)]
        values = values or rows([t, t], 484)
        for space in spaces:
            for result in ("old", "new", "red"):
                if result == "red" and ("exch" in form or "cas" in form):
                    continue
                if space == "shared":
                    place = "mov.u64 %%l0, buffer;\nmad.wide.u32 %%l0, %%t, %d, %%l0;" % size
                    extra = ".shared .align 8 .b8 buffer[8192];"
                else:
                    place, extra = "ld.param.u64 %%l0, [po];\nmad.wide.u32 %%l0, %%t, %d, %%l0;" % size, ""
                args = "%b" + "".join(", " + o for o in others)
                store = "st.%s.%s [%%l0], %%a;\n" % (space, mem)
                if result == "red":
                    act = "red.%s.%s [%%l0], %s;\nld.%s.%s %%o, [%%l0];" % (space, form, args, space, mem)
                elif result == "old":
                    act = "atom.%s.%s %%o, [%%l0], %s;" % (space, form, args)
                else:
                    act = "atom.%s.%s %%o, [%%l0], %s;\nld.%s.%s %%o, [%%l0];" % (space, form, args, space, mem)
                probe("atom_%s_%s_%s" % (space, form.replace(".", "_"), result), place + "\n" + store + act, [t, t], t, values, extra=extra)
    for t in ("u32", "s32", "u64", "s64"):
        for name in ("add", "min", "max"):
            if name != "add" or t != "s64":
                atomic("%s.%s" % (name, t), t)
    for t in ("b32", "b64"):
        for name in ("and", "or", "xor", "exch"):
            atomic("%s.%s" % (name, t), t)
        atomic("cas." + t, t, ["77"])
    atomic("cas.b16", "b16", ["77"])
    atomic("inc.u32", "u32")
    atomic("dec.u32", "u32")
    atomic("add.f32", "f32", values=rows(["f32", "f32"], 784))
    atomic("add.f64", "f64", values=rows(["f64", "f64"], 576))
    for t in ("f16", "bf16", "f16x2", "bf16x2"):
        atomic("add.noftz." + t, t)


def addresses():
    extra = ".const .align 8 .b8 constant[64] = {1};\n.global .align 8 .b8 variable[64];\n.shared .align 8 .b8 shared[64];"
    where = {"const": "mov.u64 %l0, constant;\ncvta.const.u64 %l0, %l0;", "global": "mov.u64 %l0, variable;\ncvta.global.u64 %l0, %l0;",
             "shared": "mov.u64 %l0, shared;\ncvta.shared.u64 %l0, %l0;", "local": ".local .align 8 .b8 mine[8];\nmov.u64 %l0, mine;\ncvta.local.u64 %l0, %l0;",
             "null": "mov.u64 %l0, 0;", "end": "mov.u64 %l0, -1;", "small": "mov.u64 %l0, 4096;"}
    for name, place in where.items():
        for space in ("const", "global", "shared", "local", "shared::cta", "shared::cluster", "param::entry"):
            if name in ("small", "null", "end") and "param" in space:
                continue
            probe("isspacep_%s_%s" % (space.replace("::", "_"), name), "%s\nisspacep.%s %%p, %%l0;\nselp.u32 %%o, 1, 0, %%p;\nadd.u32 %%o, %%o, %%a;" % (place, space),
                  ["u32"], "u32", [0, 2], extra=extra)


def across():
    """Values of all 32 lanes of a warp."""
    lanes = [(x,) for x in (I32 + F32 + [5, 5, 5, 9, 9, 12345, 1, 0, 77, 78, 79, 80])][:64]
    for name in ("add", "min", "max"):
        for t in ("u32", "s32"):
            probe("redux_%s_%s" % (name, t), "redux.sync.%s.%s %%o, %%a, -1;" % (name, t), [t], t, lanes)
    for name in ("and", "or", "xor"):
        probe("redux_%s" % name, "redux.sync.%s.b32 %%o, %%a, -1;" % name, ["b32"], "b32", lanes)
    for mode in ("up", "down", "bfly", "idx"):
        for b in (0, 1, 5, 16, 31, 32, 33):
            for c in (0, 0x1F, 0x181F, 0x1800, 0x0C1F, 0x100F, 0x1C00):
                probe("shfl_%s_%d_%x" % (mode, b, c), "shfl.sync.%s.b32 %%o|%%p, %%a, %d, %d, -1;\n@%%p add.u32 %%o, %%o, 0x01010101;" % (mode, b, c), ["b32"], "b32", lanes)
    probe("match_any_b32", "match.any.sync.b32 %o, %a, -1;", ["b32"], "b32", [(k % 5,) for k in range(64)])
    probe("match_all_b32", "match.all.sync.b32 %o|%p, %a, -1;\n@%p add.u32 %o, %o, 7;", ["b32"], "b32", [(k // 32 * k,) for k in range(64)])
    for m in ("any", "all", "uni", "ballot"):
        end = "vote.sync.ballot.b32 %o, %p, -1;" if m == "ballot" else "vote.sync.%s.pred %%q, %%p, -1;\nselp.u32 %%o, 1, 0, %%q;" % m
        probe("vote_" + m, "setp.gt.s32 %p, %a, 5;\n" + end, ["s32"], "u32", lanes)


def main():
    for group in (floats, halves, comparisons, conversions, integers, bits, video, atomics, addresses, across):
        group()
    recorded = {}
    if len(sys.argv) > 2:
        with lzma.open(sys.argv[2], "rt") as f:
            recorded = {line.split()[0]: line.split()[1:] for line in f if not line.startswith("#")}
    os.makedirs(sys.argv[1], exist_ok=True)
    for old in os.listdir(sys.argv[1]):
        os.unlink(os.path.join(sys.argv[1], old))
    for name in PROBES:
        if recorded and (name in LACKING or name not in recorded):
            continue
        with open(os.path.join(sys.argv[1], name + ".ptx"), "w") as f:
            f.write(text_of(name, recorded))


if __name__ == "__main__":
    main()
