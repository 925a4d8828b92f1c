#!/usr/bin/env python3
"""Writes table cases into the directory given: one instruction form each, over corner values, with results computed here.

Integers are Python's; floating point is exact rational arithmetic rounded once, so that nothing depends on the host's
floating point unit.
"""
import itertools
import math
import os
import struct
import sys
from fractions import Fraction

M16, M32, M64 = 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
SIZE = {"u8": 1, "s8": 1, "b8": 1, "u16": 2, "s16": 2, "b16": 2, "u32": 4, "s32": 4, "b32": 4, "u64": 8, "s64": 8,
        "b64": 8, "f16": 2, "bf16": 2, "f16x2": 4, "bf16x2": 4, "f32": 4, "f64": 8, "pred": 0}


def bits_of(t):
    return 8 * SIZE[t]


def mask(t):
    return (1 << bits_of(t)) - 1


def signed(v, t):
    v &= mask(t)
    return v - (1 << bits_of(t)) if v >> (bits_of(t) - 1) else v


def as_type(v, t):
    return signed(v, t) if t[0] == "s" else v & mask(t)


# --- floating point, exactly ---------------------------------------------------------------------------------------

class Format:
    def __init__(self, bits, exponent, fraction):
        self.bits, self.exponent, self.fraction = bits, exponent, fraction
        self.bias = (1 << (exponent - 1)) - 1
        self.sign = 1 << (bits - 1)
        self.inf = ((1 << exponent) - 1) << fraction
        self.nan = self.sign - 1


FORMATS = {"f16": Format(16, 5, 10), "bf16": Format(16, 8, 7), "f32": Format(32, 8, 23), "f64": Format(64, 11, 52),
           "tf32": Format(19, 8, 10)}


def is_nan(b, f):
    return (b & ~f.sign) > f.inf


def is_inf(b, f):
    return (b & ~f.sign) == f.inf


def is_neg(b, f):
    return bool(b & f.sign)


def value(b, f):
    """The finite number with these bits."""
    e, m = (b & f.inf) >> f.fraction, b & ((1 << f.fraction) - 1)
    if e:
        m |= 1 << f.fraction
    v = Fraction(m) * Fraction(2) ** (max(e, 1) - f.bias - f.fraction)
    return -v if is_neg(b, f) else v


def round_int(x, mode):
    """A nonnegative or negative Fraction to an integer."""
    low = x.numerator // x.denominator
    rest = x - low
    if rest == 0 or mode == "m":
        return low
    if mode == "p":
        return low + 1
    if mode == "z":
        return low if x > 0 else low + 1
    if rest != Fraction(1, 2):
        return low + (rest > Fraction(1, 2))
    if mode == "a":
        return low + 1 if x > 0 else low
    return low + (low & 1)


def encode(x, f, mode="n", negative_zero=False):
    """Bits of the Fraction rounded to the format."""
    if x == 0:
        return f.sign if negative_zero else 0
    neg, a = x < 0, abs(x)
    e = a.numerator.bit_length() - a.denominator.bit_length()
    if Fraction(2) ** e > a:
        e -= 1
    e = max(e, 1 - f.bias)
    unit = Fraction(2) ** (e - f.fraction)
    m = abs(round_int(x / unit, mode))
    if m >> (f.fraction + 1):
        m, e = m >> 1, e + 1
    b = m if m < (1 << f.fraction) else ((e + f.bias) << f.fraction) + m - (1 << f.fraction)
    if b >= f.inf:
        away = mode in ("n", "a") or (mode == "m" and neg) or (mode == "p" and not neg)
        b = f.inf if away else f.inf - 1
    return b | (f.sign if neg else 0)


def ftz(b, f):
    return b & f.sign if not b & f.inf else b


def f_add(a, b, f, mode="n"):
    if is_nan(a, f) or is_nan(b, f):
        return f.nan
    if is_inf(a, f) or is_inf(b, f):
        if is_inf(a, f) and is_inf(b, f) and a != b:
            return f.nan
        return a if is_inf(a, f) else b
    s = value(a, f) + value(b, f)
    both = is_neg(a, f) and is_neg(b, f)
    differ = is_neg(a, f) != is_neg(b, f)
    cancel = s == 0 and (both or ((differ or value(a, f) != 0) and mode == "m"))
    return encode(s, f, mode, cancel)


def f_neg(a, f):
    return a ^ f.sign


def f_mul(a, b, f, mode="n"):
    neg = is_neg(a, f) != is_neg(b, f)
    if is_nan(a, f) or is_nan(b, f):
        return f.nan
    if is_inf(a, f) or is_inf(b, f):
        other = b if is_inf(a, f) else a
        return f.nan if other & ~f.sign == 0 else f.inf | (f.sign if neg else 0)
    return encode(value(a, f) * value(b, f), f, mode, neg)


def f_fma(a, b, c, f, mode="n"):
    if any(is_nan(x, f) for x in (a, b, c)):
        return f.nan
    neg = is_neg(a, f) != is_neg(b, f)
    if is_inf(a, f) or is_inf(b, f):
        p = f_mul(a, b, f)
        return f.nan if is_nan(p, f) or (is_inf(c, f) and c != p) else p
    if is_inf(c, f):
        return c
    p, s = value(a, f) * value(b, f), 0
    s = p + value(c, f)
    if s == 0:
        if p == 0 and value(c, f) == 0 and neg == is_neg(c, f):
            return f.sign if neg else 0
        return f.sign if mode == "m" else 0
    return encode(s, f, mode)


def f_div(a, b, f, mode="n"):
    neg = f.sign if is_neg(a, f) != is_neg(b, f) else 0
    if is_nan(a, f) or is_nan(b, f):
        return f.nan
    if is_inf(a, f):
        return f.nan if is_inf(b, f) else f.inf | neg
    if is_inf(b, f):
        return neg
    if value(b, f) == 0:
        return f.nan if value(a, f) == 0 else f.inf | neg
    return encode(value(a, f) / value(b, f), f, mode, bool(neg))


def f_sqrt(a, f, mode="n"):
    if is_nan(a, f):
        return f.nan
    if a & ~f.sign == 0:
        return a
    if is_neg(a, f):
        return f.nan
    if is_inf(a, f):
        return a
    v = value(a, f)
    shift = 700
    n = (v.numerator << (2 * shift)) // v.denominator
    root = math.isqrt(n)
    exact = root * root == n and (v.numerator << (2 * shift)) % v.denominator == 0
    return encode(Fraction(2 * root + (not exact), 2 << shift), f, mode)


def f_minmax(a, b, f, want_max, nan=False):
    if is_nan(a, f) and is_nan(b, f) or (nan and (is_nan(a, f) or is_nan(b, f))):
        return f.nan
    if is_nan(a, f):
        return b
    if is_nan(b, f):
        return a
    key = lambda x: -(x & ~f.sign) - 1 if is_neg(x, f) else x
    return (max if want_max else min)(a, b, key=key)


def f_sat(b, f):
    one = f.bias << f.fraction
    if is_nan(b, f) or is_neg(b, f):
        return 0
    return min(b, one)


def f_cmp(op, a, b, f):
    nan = is_nan(a, f) or is_nan(b, f)
    if op == "num":
        return not nan
    if op == "nan":
        return nan
    if op.endswith("u") and len(op) == 3:
        return nan or f_cmp(op[:2], a, b, f)
    if nan:
        return False
    key = lambda x: (-1 if is_neg(x, f) else 1) * (Fraction(2) ** 5000 if is_inf(x, f) else abs(value(x, f)))
    x, y = key(a), key(b)
    return {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}[op]


def convert(b, to, frm, rnd=None, sat=False, flush=False):
    """cvt: bits of type `frm` to bits of type `to`; rnd: n z m p, or ni zi mi pi."""
    tf, ff = FORMATS.get(to), FORMATS.get(frm)
    if ff:
        if flush and frm == "f32":
            b = ftz(b, ff)
        if tf is None:
            if is_nan(b, ff):
                return 1 << (bits_of(to) - 1) if SIZE[to] == 8 or frm == "f64" else 0
            low = -(1 << (bits_of(to) - 1)) if to[0] == "s" else 0
            high = (1 << (bits_of(to) - 1)) - 1 if to[0] == "s" else mask(to)
            if is_inf(b, ff):
                return (low if is_neg(b, ff) else high) & mask(to)
            return max(low, min(high, round_int(value(b, ff), rnd[0]))) & mask(to)
        if is_nan(b, ff):
            r = tf.nan
        elif is_inf(b, ff):
            r = tf.inf | (tf.sign if is_neg(b, ff) else 0)
        elif rnd and rnd.endswith("i"):
            r = encode(Fraction(round_int(value(b, ff), rnd[0])), tf, "n", is_neg(b, ff))
        else:
            r = encode(value(b, ff), tf, rnd or "n", is_neg(b, ff))
    else:
        v = as_type(b, frm)
        if tf is None:
            if sat:
                low = -(1 << (bits_of(to) - 1)) if to[0] == "s" else 0
                high = (1 << (bits_of(to) - 1)) - 1 if to[0] == "s" else mask(to)
                v = max(low, min(high, v))
            return v & mask(to)
        r = encode(Fraction(v), tf, rnd or "n")
    if flush and to == "f32":
        r = ftz(r, tf)
    return f_sat(r, tf) if sat else r


# --- corner values ---------------------------------------------------------------------------------------------------

INTS = {
    8: [0, 1, 0x7F, 0x80, 0xFF, 0x55],
    16: [0, 1, 2, 7, 0x7FFF, 0x8000, 0xFFFF, 0xFFFE, 0x1234, 0xFF, 0x100, 0xAAAA],
    32: [0, 1, 2, 7, 31, 32, 33, 0xFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0xFFFFFFFE, 0x12345678,
         0xDEADBEEF, 0x00FFFFFF, 0xAAAAAAAA],
    64: [0, 1, 2, 7, 63, 64, 0xFFFFFFFF, 0x100000000, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0x8000000000000001,
         0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFE, 0x123456789ABCDEF0, 0xDEADBEEFCAFEF00D, 0xAAAAAAAAAAAAAAAA],
}
FLOATS = {
    "f32": [0, 0x80000000, 0x3F800000, 0xBF800000, 0x40490FDB, 0xC0490FDB, 0x7F800000, 0xFF800000, 0x7FC00000, 1,
            0x80000001, 0x007FFFFF, 0x00800000, 0x80800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x3EAAAAAB, 0x3F000000, 0x3FC00000,
            0xC0200000, 0x4B7FFFFF, 0x4F000000, 0xCF000000, 0x33800000, 0x5F000000],
    "f64": [0, 1 << 63, 0x3FF0000000000000, 0xBFF0000000000000, 0x400921FB54442D18, 0x7FF0000000000000,
            0xFFF0000000000000, 0x7FF8000000000000, 1, 0x800FFFFFFFFFFFFF, 0x0010000000000000, 0x7FEFFFFFFFFFFFFF,
            0xFFEFFFFFFFFFFFFF, 0x3FD5555555555555, 0x3FE0000000000000, 0xC004000000000000, 0x41DFFFFFFFC00000,
            0xC1E0000000200000, 0x43E0000000000000, 0x3CA0000000000000, 0x43F0000000000000, 0x41EFFFFFFFF00000],
    "f16": [0, 0x8000, 0x3C00, 0xBC00, 0x4248, 0x7C00, 0xFC00, 0x7E00, 1, 0x83FF, 0x0400, 0x7BFF, 0xFBFF, 0x3555, 0x3800,
            0xC100, 0x1400, 0x63FF],
    "bf16": [0, 0x8000, 0x3F80, 0xBF80, 0x4049, 0x7F80, 0xFF80, 0x7FC0, 1, 0x807F, 0x0080, 0x7F7F, 0xFF7F, 0x3EAB, 0x3F00,
             0xC020, 0x3B80, 0x4B7F],
}


def corners(t):
    if t in FLOATS:
        return FLOATS[t]
    if t in ("f16x2", "bf16x2"):
        v = FLOATS[t[:-2]]
        return [v[i] | v[(7 * i + 3) % len(v)] << 16 for i in range(len(v))]
    return INTS[bits_of(t)]


def tuples(types, limit=512):
    """All combinations, thinned out evenly if there are too many."""
    every = list(itertools.product(*[corners(t) for t in types]))
    if len(every) <= limit:
        return every
    step = len(every) / limit
    return [every[int(i * step)] for i in range(limit)]


# --- files -----------------------------------------------------------------------------------------------------------

FILES = {}


def show(v, t):
    if t in ("f32", "f64"):
        f = FORMATS[t]
        if is_nan(v, f):
            return "nan"
        return ("0f%08X" if t == "f32" else "0d%016X") % v
    if t in ("f16", "bf16", "f16x2", "bf16x2", "b8", "b16", "b32", "b64"):
        return hex(v)
    return str(as_type(v, t))


def lines(head, words):
    text, line = [], head
    for w in words:
        if len(line) + len(w) > 110:
            text.append(line)
            line = "//+"
        line += " " + w
    return text + [line]


def memory_type(t):
    return {"f16": "b16", "bf16": "b16", "f16x2": "b32", "bf16x2": "b32"}.get(t, t)


def register_type(t):
    t = memory_type(t)
    return {"b8": "b16", "u8": "u16", "s8": "s16"}.get(t, t)


def header_type(t):
    return {"f16x2": "b32", "bf16x2": "b32"}.get(t, t)


def emit(name, about, ins, outs, body, results, values, tol=None, target="sm_75", version="7.0", registers=None, skip=None,
         estimate=False):
    """One case: `values` tuples of inputs, one thread each; `results` tuples of outputs."""
    n = len(values)
    assert n <= 1024, name
    reg = registers or {}
    grid = next((d for d in (2, 3, 5, 7) if n % d == 0), 1)
    text = ["// " + about, "// kernel: k", "// grid: %d" % grid, "// block: %d" % (n // grid)]
    letters = "abcdefg"
    for k, t in enumerate(ins):
        text += lines("// in %s: %s" % (letters[k], header_type(t)), [show(v[k], t) for v in values])
    for k, t in enumerate(outs):
        text += lines("// out %s: %s" % ("opqr"[k], header_type(t)), ["_" if r[k] is None else show(r[k], t) for r in results])
    if tol:
        text.append("// tol: %s" % tol)
    if skip:
        text.append("// only: soft " + skip)
    if estimate:
        text.append("// estimate: compiled code begins with the CPU's")
    names = [letters[k] for k in range(len(ins))] + ["opqr"[k] for k in range(len(outs))]
    text += [".version %s" % version, ".target %s" % target, ".address_size 64",
             ".visible .entry k(%s)" % ", ".join(".param .u64 p%s" % x for x in names), "{",
             "    .reg .pred %p<4>;", "    .reg .b16 %h<8>;", "    .reg .b32 %t, %r<8>;", "    .reg .b64 %x, %l<8>;",
             "    .reg .f32 %f<4>;", "    .reg .f64 %g<4>;"]
    for x, t in zip(names, list(ins) + list(outs)):
        text.append("    .reg .%s %%%s;" % (reg.get(x, register_type(t)), x))
    text += ["    mov.u32 %t, %ctaid.x;", "    mov.u32 %r0, %ntid.x;", "    mov.u32 %r1, %tid.x;", "    mad.lo.s32 %t, %t, %r0, %r1;"]
    for x, t in zip(names, list(ins)):
        text += ["    ld.param.u64 %%x, [p%s];" % x, "    mad.wide.u32 %%x, %%t, %d, %%x;" % SIZE[t],
                 "    ld.global.%s %%%s, [%%x];" % (memory_type(t), x)]
    text += ["    " + line for line in body.split("\n")]
    for x, t in zip(names[len(ins):], outs):
        text += ["    ld.param.u64 %%x, [p%s];" % x, "    mad.wide.u32 %%x, %%t, %d, %%x;" % SIZE[t],
                 "    st.global.%s [%%x], %%%s;" % (memory_type(t), x)]
    text += ["    ret;", "}"]
    assert name not in FILES, name
    FILES[name] = "\n".join(text) + "\n"


def op(name, form, ins, out, function, limit=512, values=None, **kw):
    """d = form(a, b ..): `form` with %o, %a ..; `function` on bits."""
    values = values or tuples(ins, limit)
    body = form if "%" in form else "%s %%o, %s;" % (form, ", ".join("%" + "abcdefg"[k] for k in range(len(ins))))
    results = []
    for v in values:
        r = function(*v)
        results.append((None if r is None else r & mask(out),))
    emit(name, form.replace("\n", " "), ins, [out], body, results, values, **kw)


def integers():
    for t in ("u16", "u32", "u64"):
        b = bits_of(t)
        s = "s%d" % b
        op("add_%s" % t, "add.%s" % t, [t, t], t, lambda x, y: x + y)
        op("sub_%s" % s, "sub.%s" % s, [s, s], s, lambda x, y: x - y)
        op("mul_lo_%s" % t, "mul.lo.%s" % t, [t, t], t, lambda x, y: x * y)
        op("mul_hi_%s" % t, "mul.hi.%s" % t, [t, t], t, lambda x, y: x * y >> b)
        op("mul_hi_%s" % s, "mul.hi.%s" % s, [s, s], s, lambda x, y: signed(x, s) * signed(y, s) >> b)
        op("mad_lo_%s" % s, "mad.lo.%s" % s, [s, s, s], s, lambda x, y, z: x * y + z)
        op("mad_hi_%s" % t, "mad.hi.%s" % t, [t, t, t], t, lambda x, y, z: (x * y >> b) + z)
        op("mad_hi_%s" % s, "mad.hi.%s" % s, [s, s, s], s, lambda x, y, z: (signed(x, s) * signed(y, s) >> b) + z)
        op("min_%s" % t, "min.%s" % t, [t, t], t, min)
        op("max_%s" % s, "max.%s" % s, [s, s], s, lambda x, y: max(signed(x, s), signed(y, s)))
        op("min_%s" % s, "min.%s" % s, [s, s], s, lambda x, y: min(signed(x, s), signed(y, s)))
        op("max_%s" % t, "max.%s" % t, [t, t], t, max)
        op("sad_%s" % s, "sad.%s" % s, [s, s, s], s, lambda x, y, z: z + abs(signed(x, s) - signed(y, s)))
        op("sad_%s" % t, "sad.%s" % t, [t, t, t], t, lambda x, y, z: z + abs(x - y))
        op("abs_%s" % s, "abs.%s" % s, [s], s, lambda x: abs(signed(x, s)))
        op("neg_%s" % s, "neg.%s" % s, [s], s, lambda x: -x)
        # Division by zero: PTX leaves it open.
        op("div_%s" % t, "div.%s" % t, [t, t], t, lambda x, y: x // y if y else None)
        op("rem_%s" % t, "rem.%s" % t, [t, t], t, lambda x, y: x % y if y else None)
        def quotient(x, y):
            x, y = signed(x, s), signed(y, s)
            return None if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        op("div_%s" % s, "div.%s" % s, [s, s], s, quotient)
        op("rem_%s" % s, "rem.%s" % s, [s, s], s, lambda x, y: None if quotient(x, y) is None else
           signed(x, s) - quotient(x, y) * signed(y, s))
        bt = "b%d" % b
        op("and_%s" % bt, "and.%s" % bt, [bt, bt], bt, lambda x, y: x & y)
        op("or_%s" % bt, "or.%s" % bt, [bt, bt], bt, lambda x, y: x | y)
        op("xor_%s" % bt, "xor.%s" % bt, [bt, bt], bt, lambda x, y: x ^ y)
        op("not_%s" % bt, "not.%s" % bt, [bt], bt, lambda x: ~x)
        op("cnot_%s" % bt, "cnot.%s" % bt, [bt], bt, lambda x: int(x == 0))
        op("shl_%s" % bt, "shl.%s" % bt, [bt, "u32"], bt, lambda x, y: x << min(y, b))
        op("shr_%s" % t, "shr.%s" % t, [t, "u32"], t, lambda x, y: x >> min(y, b))
        op("shr_%s" % s, "shr.%s" % s, [s, "u32"], s, lambda x, y: signed(x, s) >> min(y, b))
    for t, w in (("u16", "u32"), ("s16", "s32"), ("u32", "u64"), ("s32", "s64")):
        op("mul_wide_%s" % t, "mul.wide.%s" % t, [t, t], w, lambda x, y: as_type(x, t) * as_type(y, t))
        op("mad_wide_%s" % t, "mad.wide.%s" % t, [t, t, w], w, lambda x, y, z: as_type(x, t) * as_type(y, t) + z)
    clamp = lambda v: max(-(1 << 31), min((1 << 31) - 1, v))
    s32 = lambda v: signed(v, "s32")
    op("add_sat_s32", "add.sat.s32", ["s32", "s32"], "s32", lambda x, y: clamp(s32(x) + s32(y)))
    op("sub_sat_s32", "sub.sat.s32", ["s32", "s32"], "s32", lambda x, y: clamp(s32(x) - s32(y)))
    op("mad_hi_sat_s32", "mad.hi.sat.s32", ["s32"] * 3, "s32", lambda x, y, z: clamp((s32(x) * s32(y) >> 32) + s32(z)))
    u24 = lambda v: v & 0xFFFFFF
    s24 = lambda v: (v & 0xFFFFFF) - ((v & 0x800000) << 1)
    op("mul24_lo_u32", "mul24.lo.u32", ["u32", "u32"], "u32", lambda x, y: u24(x) * u24(y))
    op("mul24_hi_u32", "mul24.hi.u32", ["u32", "u32"], "u32", lambda x, y: u24(x) * u24(y) >> 16)
    op("mul24_lo_s32", "mul24.lo.s32", ["s32", "s32"], "s32", lambda x, y: s24(x) * s24(y))
    op("mul24_hi_s32", "mul24.hi.s32", ["s32", "s32"], "s32", lambda x, y: s24(x) * s24(y) >> 16)
    op("mad24_lo_u32", "mad24.lo.u32", ["u32"] * 3, "u32", lambda x, y, z: u24(x) * u24(y) + z)
    op("mad24_hi_s32", "mad24.hi.s32", ["s32"] * 3, "s32", lambda x, y, z: (s24(x) * s24(y) >> 16) + z)

    def dot(x, y, n, xs, ys, bits_x, bits_y, first):
        total = 0
        for k in range(n):
            p = x >> (bits_x * k) & ((1 << bits_x) - 1)
            q = y >> (bits_y * (k + first)) & ((1 << bits_y) - 1)
            total += (p - (p >> (bits_x - 1) << bits_x) * xs) * (q - (q >> (bits_y - 1) << bits_y) * ys)
        return total
    op("dp4a_u32_s32", "dp4a.u32.s32", ["u32", "s32", "s32"], "s32", lambda x, y, z: dot(x, y, 4, 0, 1, 8, 8, 0) + z)
    op("dp4a_s32_s32", "dp4a.s32.s32", ["s32", "s32", "s32"], "s32", lambda x, y, z: dot(x, y, 4, 1, 1, 8, 8, 0) + z)
    op("dp2a_hi_s32_u32", "dp2a.hi.s32.u32", ["s32", "u32", "s32"], "s32", lambda x, y, z: dot(x, y, 2, 1, 0, 16, 8, 2) + z)
    op("dp2a_lo_u32_u32", "dp2a.lo.u32.u32", ["u32", "u32", "u32"], "u32", lambda x, y, z: dot(x, y, 2, 0, 0, 16, 8, 0) + z)

    # 64- and 96-bit arithmetic through the carry flag.
    op("add_cc", "mov.b64 {%r0, %r1}, %a;\nmov.b64 {%r2, %r3}, %b;\nadd.cc.u32 %r4, %r0, %r2;\naddc.u32 %r5, %r1, %r3;\n"
       "mov.b64 %o, {%r4, %r5};", ["u64", "u64"], "u64", lambda x, y: x + y)
    op("sub_cc", "mov.b64 {%r0, %r1}, %a;\nmov.b64 {%r2, %r3}, %b;\nsub.cc.u32 %r4, %r0, %r2;\nsubc.u32 %r5, %r1, %r3;\n"
       "mov.b64 %o, {%r4, %r5};", ["u64", "u64"], "u64", lambda x, y: x - y)
    op("mad_cc", "mov.b64 {%r0, %r1}, %a;\nmov.b64 {%r2, %r3}, %b;\nmul.lo.u32 %r4, %r0, %r2;\nmul.hi.u32 %r5, %r0, %r2;\n"
       "mad.lo.cc.u32 %r5, %r0, %r3, %r5;\naddc.u32 %r6, 0, 0;\nmad.lo.cc.u32 %r5, %r1, %r2, %r5;\naddc.u32 %r6, %r6, 0;\n"
       "mad.hi.cc.u32 %r6, %r0, %r3, %r6;\naddc.u32 %r7, 0, 0;\nmad.hi.cc.u32 %r6, %r1, %r2, %r6;\naddc.u32 %r7, %r7, 0;\n"
       "mad.lo.cc.u32 %r6, %r1, %r3, %r6;\nmadc.hi.u32 %r7, %r1, %r3, %r7;\nmov.b64 %o, {%r6, %r7};", ["u64", "u64"], "u64",
       lambda x, y: x * y >> 64)
    op("addc_chain", "mov.b64 {%r0, %r1}, %a;\nmov.b64 {%r2, %r3}, %b;\nadd.cc.u32 %r4, %r0, %r2;\naddc.cc.u32 %r5, %r1, %r3;\n"
       "addc.u32 %o, 0, 0;", ["u64", "u64"], "u32", lambda x, y: x + y >> 64)
    op("subc_chain", "mov.b64 {%r0, %r1}, %a;\nmov.b64 {%r2, %r3}, %b;\nsub.cc.u32 %r4, %r0, %r2;\nsubc.cc.u32 %r5, %r1, %r3;\n"
       "subc.u32 %o, 0, 0;", ["u64", "u64"], "u32", lambda x, y: -(x < y))


def bit_operations():
    for b in (32, 64):
        bt, ut, st = "b%d" % b, "u%d" % b, "s%d" % b
        op("popc_%s" % bt, "popc.%s" % bt, [bt], "u32", lambda x: bin(x).count("1"))
        op("clz_%s" % bt, "clz.%s" % bt, [bt], "u32", lambda x: b - x.bit_length())
        op("brev_%s" % bt, "brev.%s" % bt, [bt], bt, lambda x: int(bin(x)[2:].zfill(b)[::-1], 2))
        def find(x, s, amount):
            if s and x >> (b - 1):
                x ^= mask(bt)
            if x == 0:
                return M32
            return b - x.bit_length() if amount else x.bit_length() - 1
        op("bfind_%s" % ut, "bfind.%s" % ut, [ut], "u32", lambda x: find(x, 0, 0))
        op("bfind_%s" % st, "bfind.%s" % st, [st], "u32", lambda x: find(x, 1, 0))
        op("bfind_shiftamt_%s" % st, "bfind.shiftamt.%s" % st, [st], "u32", lambda x: find(x, 1, 1))
        places = [0, 1, 5, 8, b - 1, b, b + 3, 255]
        data = [(x, p, n) for x in corners(ut)[::2] for p in places for n in places]
        def extract(x, p, n, s):
            sign = 0
            if s and n:
                sign = x >> min(p + n - 1, b - 1) & 1
            r = 0
            for k in range(b):
                r |= (x >> (p + k) & 1 if k < n and p + k < b else sign) << k
            return r
        op("bfe_%s" % ut, "bfe.%s" % ut, [ut, "u32", "u32"], ut, lambda x, p, n: extract(x, p, n, 0), values=data)
        op("bfe_%s" % st, "bfe.%s" % st, [st, "u32", "u32"], st, lambda x, p, n: extract(x, p, n, 1), values=data)
        def insert(x, y, p, n):
            for k in range(n):
                if p + k < b:
                    y = y & ~(1 << (p + k)) | (x >> k & 1) << (p + k)
            return y
        op("bfi_%s" % bt, "bfi.%s" % bt, [bt, bt, "u32", "u32"], bt, insert,
           values=[(x, y, p, n) for x, y in ((mask(bt), 0), (0, mask(bt)), (0x12345678, 0xDEADBEEF)) for p in places for n in places])
    pairs = [(x, y, n) for x in (0x12345678, 0x80000001) for y in (0xDEADBEEF, 0, M32) for n in (0, 1, 8, 31, 32, 33, 63, M32)]
    both = lambda x, y: y << 32 | x
    op("shf_l_clamp", "shf.l.clamp.b32", ["b32"] * 3, "b32", lambda x, y, n: both(x, y) << min(n, 32) >> 32, values=pairs)
    op("shf_l_wrap", "shf.l.wrap.b32", ["b32"] * 3, "b32", lambda x, y, n: both(x, y) << (n & 31) >> 32, values=pairs)
    op("shf_r_clamp", "shf.r.clamp.b32", ["b32"] * 3, "b32", lambda x, y, n: both(x, y) >> min(n, 32), values=pairs)
    op("shf_r_wrap", "shf.r.wrap.b32", ["b32"] * 3, "b32", lambda x, y, n: both(x, y) >> (n & 31), values=pairs)
    for table in (0x80, 0xFE, 0x96, 0xCA, 0x1B):
        op("lop3_%02x" % table, "lop3.b32 %%o, %%a, %%b, %%c, 0x%02X;" % table, ["b32"] * 3, "b32",
           lambda x, y, z: sum((table >> ((x >> k & 1) * 4 + (y >> k & 1) * 2 + (z >> k & 1)) & 1) << k for k in range(32)),
           limit=128)
    def permute(x, y, c, mode):
        v = [(both(x, y) >> (8 * k)) & 255 for k in range(8)]
        n = c & 3
        if mode == "":
            r = [v[c >> (4 * k) & 7] if not c >> (4 * k + 3) & 1 else (255 if v[c >> (4 * k) & 7] & 128 else 0) for k in range(4)]
        else:
            index = {".f4e": lambda k: n + k, ".b4e": lambda k: (n - k) % 8, ".rc8": lambda k: n, ".ecl": lambda k: max(k, n),
                     ".ecr": lambda k: min(k, n), ".rc16": lambda k: (n & 1) * 2 + (k & 1)}[mode]
            r = [v[index(k)] for k in range(4)]
        return sum(x << (8 * k) for k, x in enumerate(r))
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        op("prmt" + mode.replace(".", "_"), "prmt.b32%s" % mode, ["b32"] * 3, "b32", lambda x, y, c: permute(x, y, c, mode),
           values=[(x, y, c) for x, y in ((0x83828180, 0x07868584), (0x12345678, 0xDEADBEEF)) for c in
                   (0x3210, 0x7654, 0xFEDC, 0x0123, 0x4455, 0xA9B8, 0, 1, 2, 3)])
    def mask_of(x, y, clamp):
        first = x & 31
        total = first + (y & 31)
        m0 = 0 if clamp and x >= 32 else M32 << first & M32
        over = total >= 32 or (clamp and (x >= 32 or y >= 32))
        return m0 & ~(0 if over else M32 << total & M32)
    few = [(x, y) for x in (0, 1, 5, 31, 32, 40) for y in (0, 1, 8, 27, 31, 32, 35, 100)]
    op("bmsk_clamp", "bmsk.clamp.b32", ["u32", "u32"], "b32", lambda x, y: mask_of(x, y, True), values=few, version="7.6")
    op("bmsk_wrap", "bmsk.wrap.b32", ["u32", "u32"], "b32", lambda x, y: mask_of(x, y, False), values=few, version="7.6")
    def extend(x, y, s, clamp):
        n = y & 31
        if clamp and y >= 32:
            return x
        low = x & ((1 << n) - 1)
        return low | (M32 << n if s and n and x >> (n - 1) & 1 else 0)
    data = [(x, y) for x in (0x12345678, 0xDEADBEEF, M32, 0x80) for y in (0, 1, 8, 16, 31, 32, 33, 100)]
    op("szext_clamp_s32", "szext.clamp.s32", ["s32", "u32"], "s32", lambda x, y: extend(x, y, 1, 1), values=data, version="7.6")
    op("szext_wrap_u32", "szext.wrap.u32", ["u32", "u32"], "u32", lambda x, y: extend(x, y, 0, 0), values=data, version="7.6")
    def nth(m, base, offset):
        offset = signed(offset, "s32")
        if offset == 0:
            return base if m >> base & 1 else M32
        step, left, at = (1 if offset > 0 else -1), abs(offset) - 1, base
        while 0 <= at < 32:
            if m >> at & 1:
                if left == 0:
                    return at
                left -= 1
            at += step
        return M32
    op("fns", "fns.b32", ["b32", "u32", "s32"], "u32", nth,
       values=[(m, p, k & M32) for m in (0xAAAAAAAA, 0x80000001, 0xF0F0) for p in (0, 5, 31) for k in (0, 1, 2, 5, -1, -3, 40)])
    op("mov_pack_unpack", "mov.b64 {%r0, %r1}, %a;\nmov.b64 %o, {%r1, %r0};", ["b64"], "b64", lambda x: x >> 32 | x << 32)
    op("mov_pack_16", "mov.b32 {%h0, %h1}, %a;\nmov.b32 %o, {%h1, %h0};", ["b32"], "b32", lambda x: x >> 16 | x << 16)
    op("mov_pack_64_16", "mov.b64 {%h0, %h1, %h2, %h3}, %a;\nmov.b64 %o, {%h3, %h2, %h1, %h0};", ["b64"], "b64",
       lambda x: sum((x >> (16 * k) & M16) << (48 - 16 * k) for k in range(4)))


def floats():
    modes = {"rn": "n", "rz": "z", "rm": "m", "rp": "p"}
    for t in ("f32", "f64"):
        f = FORMATS[t]
        for r, m in modes.items():
            op("add_%s_%s" % (r, t), "add.%s.%s" % (r, t), [t, t], t, lambda x, y: f_add(x, y, f, m), limit=640)
            op("mul_%s_%s" % (r, t), "mul.%s.%s" % (r, t), [t, t], t, lambda x, y: f_mul(x, y, f, m), limit=640)
            op("fma_%s_%s" % (r, t), "fma.%s.%s" % (r, t), [t, t, t], t, lambda x, y, z: f_fma(x, y, z, f, m), limit=999)
            op("div_%s_%s" % (r, t), "div.%s.%s" % (r, t), [t, t], t, lambda x, y: f_div(x, y, f, m), limit=640)
            op("rcp_%s_%s" % (r, t), "rcp.%s.%s" % (r, t), [t], t, lambda x: f_div(f.bias << f.fraction, x, f, m))
            op("sqrt_%s_%s" % (r, t), "sqrt.%s.%s" % (r, t), [t], t, lambda x: f_sqrt(x, f, m))
        op("sub_%s" % t, "sub.%s" % t, [t, t], t, lambda x, y: f_add(x, f_neg(y, f) if not is_nan(y, f) else y, f), limit=640)
        op("min_%s" % t, "min.%s" % t, [t, t], t, lambda x, y: f_minmax(x, y, f, False), limit=640)
        op("max_%s" % t, "max.%s" % t, [t, t], t, lambda x, y: f_minmax(x, y, f, True), limit=640)
        op("neg_%s" % t, "neg.%s" % t, [t], t, lambda x: f.nan if is_nan(x, f) else f_neg(x, f))
        op("abs_%s" % t, "abs.%s" % t, [t], t, lambda x: x & ~f.sign)
        op("copysign_%s" % t, "copysign.%s" % t, [t, t], t, lambda x, y: (x & f.sign) | (y & ~f.sign), limit=640,
           values=[v for v in tuples([t, t], 640) if not is_nan(v[1], f)])
        op("mad_%s" % t, "mad.rn.%s" % t, [t, t, t], t, lambda x, y, z: f_fma(x, y, z, f))
        for kind in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
            def test(x):
                sub = x & f.inf == 0 and x & ~f.sign != 0
                return int({"finite": not is_nan(x, f) and not is_inf(x, f), "infinite": is_inf(x, f), "number": not is_nan(x, f),
                            "notanumber": is_nan(x, f), "subnormal": sub,
                            "normal": not is_nan(x, f) and not is_inf(x, f) and not sub}[kind])
            # Whether zero is normal is not said clearly enough.
            data = [(x,) for x in corners(t) if kind != "normal" or x & ~f.sign]
            op("testp_%s_%s" % (kind, t), "testp.%s.%s %%p0, %%a;\nselp.u32 %%o, 1, 0, %%p0;" % (kind, t), [t], "u32", test, values=data)
    f = FORMATS["f32"]
    z = lambda b: ftz(b, f)
    op("add_ftz_f32", "add.ftz.f32", ["f32", "f32"], "f32", lambda x, y: z(f_add(z(x), z(y), f)), limit=640)
    op("mul_ftz_f32", "mul.ftz.f32", ["f32", "f32"], "f32", lambda x, y: z(f_mul(z(x), z(y), f)), limit=640)
    op("fma_ftz_f32", "fma.rn.ftz.f32", ["f32"] * 3, "f32", lambda x, y, w: z(f_fma(z(x), z(y), z(w), f)), limit=999)
    op("min_ftz_f32", "min.ftz.f32", ["f32", "f32"], "f32", lambda x, y: f_minmax(z(x), z(y), f, False), limit=640)
    op("add_sat_f32", "add.sat.f32", ["f32", "f32"], "f32", lambda x, y: f_sat(f_add(x, y, f), f), limit=640)
    op("mul_ftz_sat_f32", "mul.ftz.sat.f32", ["f32", "f32"], "f32", lambda x, y: f_sat(z(f_mul(z(x), z(y), f)), f), limit=640)
    op("fma_sat_f32", "fma.rn.sat.f32", ["f32"] * 3, "f32", lambda x, y, w: f_sat(f_fma(x, y, w, f), f), limit=640)
    op("abs_ftz_f32", "abs.ftz.f32", ["f32"], "f32", lambda x: z(x) & ~f.sign)
    op("sqrt_ftz_f32", "sqrt.rn.ftz.f32", ["f32"], "f32", lambda x: f_sqrt(z(x), f))
    op("min_nan_f32", "min.NaN.f32", ["f32", "f32"], "f32", lambda x, y: f_minmax(x, y, f, False, True), limit=640,
       target="sm_80", version="7.0")
    op("max_nan_f32", "max.NaN.f32", ["f32", "f32"], "f32", lambda x, y: f_minmax(x, y, f, True, True), limit=640,
       target="sm_80", version="7.0")
    def xorsign(x, y):
        if is_nan(x, f) or is_nan(y, f):
            return None
        return f_minmax(x & ~f.sign, y & ~f.sign, f, False) | ((x ^ y) & f.sign)
    op("min_xorsign_abs_f32", "min.xorsign.abs.f32", ["f32", "f32"], "f32", xorsign, limit=640, target="sm_86", version="7.2")


def approximations():
    nums = [0.0, 0.1, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 3.14159, 7.0, 10.0, 100.0, 0.001, 1e-5, 12345.678]
    signed_nums = nums + [-x for x in nums if x]
    bits = lambda v: struct.unpack("<I", struct.pack("<f", v))[0]
    flt = lambda b: struct.unpack("<f", struct.pack("<I", b))[0]
    table = [
        ("ex2_approx", "ex2.approx.f32", [x for x in signed_nums if abs(x) <= 100], lambda x: 2.0 ** x, "1e-6"),
        ("lg2_approx", "lg2.approx.f32", [x for x in nums if x > 0 and x not in (0.75, 1.0)], math.log2, "2e-6"),
        ("rsqrt_approx", "rsqrt.approx.f32", [x for x in nums if x > 0], lambda x: x ** -0.5, "3e-7"),
        ("sqrt_approx", "sqrt.approx.f32", nums, math.sqrt, "3e-7"),
        ("rcp_approx", "rcp.approx.f32", [x for x in signed_nums if x], lambda x: 1 / x, "3e-7"),
        ("sin_approx", "sin.approx.f32", [x for x in signed_nums if x == 0 or 1e-4 < abs(x) < 3], math.sin, "5e-5"),
        ("cos_approx", "cos.approx.f32", [x for x in signed_nums if abs(x) < 3], math.cos, "5e-5"),
        ("tanh_approx", "tanh.approx.f32", signed_nums, math.tanh, "2e-3"),
    ]
    for name, form, inputs, function, tol in table:
        values = [(bits(x),) for x in inputs]
        op(name + "_f32", form, ["f32"], "f32", lambda b: bits(function(flt(b))), values=values, tol=tol, estimate=name.startswith("rsqrt"))
    # Big arguments: the hardware keeps the fraction of x / 2 pi that f32 has, rounded towards zero.
    def turn(x):
        y = x * flt(0x3E22F983)
        y = v64(d64(y) & ~0x1FFFFFFF)
        return 2 * math.pi * (y - round(y))
    v64 = lambda b: struct.unpack("<d", struct.pack("<Q", b))[0]
    d64 = lambda v: struct.unpack("<Q", struct.pack("<d", v))[0]
    big = [(bits(x),) for x in (5.0, -8.0, 40.0, 1000.0, 1e4, -12345.678, 1e6, 2.0 ** 53, 2.0 ** 60, -1e20, 3e38, flt(0x7F7FFFFF))]
    op("sin_approx_big", "sin.approx.f32", ["f32"], "f32", lambda b: bits(math.sin(turn(flt(b)))), values=big, tol="5e-5")
    op("cos_approx_big", "cos.approx.f32", ["f32"], "f32", lambda b: bits(math.cos(turn(flt(b)))), values=big, tol="5e-5")
    special = [(0,), (0x80000000,), (0x7F800000,), (0xFF800000,), (0x7FC00000,), (0xBF800000,)]
    f = FORMATS["f32"]
    pick = lambda results: (lambda b: results[[s[0] for s in special].index(b)])
    nan, inf, ninf = f.nan, f.inf, f.inf | f.sign
    op("rsqrt_special", "rsqrt.approx.f32", ["f32"], "f32", pick([inf, ninf, 0, nan, nan, nan]), values=special)
    op("rcp_special", "rcp.approx.f32", ["f32"], "f32", pick([inf, ninf, 0, 0x80000000, nan, 0xBF800000]), values=special)
    op("ex2_special", "ex2.approx.f32", ["f32"], "f32", pick([0x3F800000, 0x3F800000, inf, 0, nan, 0x3F000000]), values=special)
    op("lg2_special", "lg2.approx.f32", ["f32"], "f32", pick([ninf, ninf, inf, nan, nan, nan]), values=special)
    op("div_approx_f32", "div.approx.f32", ["f32", "f32"], "f32", lambda x, y: bits(flt(x) / flt(y)), tol="3e-7",
       values=[(bits(x), bits(y)) for x in signed_nums[:20] for y in signed_nums if y])
    op("div_full_f32", "div.full.f32", ["f32", "f32"], "f32", lambda x, y: bits(flt(x) / flt(y)), tol="3e-7",
       values=[(bits(x), bits(y)) for x in signed_nums[:20] for y in signed_nums if y])
    op("rcp_approx_f64", "rcp.approx.ftz.f64", ["f64"], "f64", lambda b: d64(1 / v64(b)), tol="1e-5",
       values=[(d64(x),) for x in signed_nums if x])
    op("rsqrt_approx_f64", "rsqrt.approx.f64", ["f64"], "f64", lambda b: d64(v64(b) ** -0.5), tol="1e-5",
       values=[(d64(x),) for x in nums if x])


def halves():
    for t, target, version in (("f16", "sm_80", "7.0"), ("bf16", "sm_90", "7.8")):
        f = FORMATS[t]
        new = dict(target=target, version=version)
        add = lambda x, y: f_add(x, y, f)
        two = {"add": add, "mul": lambda x, y: f_mul(x, y, f),
               "sub": lambda x, y: f_add(x, y if is_nan(y, f) else f_neg(y, f), f)}
        for name, fn in two.items():
            op("%s_%s" % (name, t), "%s.rn.%s" % (name, t), [t, t], t, fn, limit=640, **new)
            op("%s_%sx2" % (name, t), "%s.rn.%sx2" % (name, t), [t + "x2"] * 2, t + "x2",
               lambda x, y: fn(x & M16, y & M16) | fn(x >> 16, y >> 16) << 16, limit=640, **new)
        op("fma_%s" % t, "fma.rn.%s" % t, [t] * 3, t, lambda x, y, z: f_fma(x, y, z, f), limit=1000, **new)
        op("fma_relu_%s" % t, "fma.rn.relu.%s" % t, [t] * 3, t,
           lambda x, y, z: (lambda r: 0 if is_neg(r, f) and not is_nan(r, f) else r)(f_fma(x, y, z, f)), limit=640, **new)
        op("min_%s" % t, "min.%s" % t, [t, t], t, lambda x, y: f_minmax(x, y, f, False), limit=640, **new)
        op("max_nan_%s" % t, "max.NaN.%s" % t, [t, t], t, lambda x, y: f_minmax(x, y, f, True, True), limit=640, **new)
        op("neg_%s" % t, "neg.%s" % t, [t], t, lambda x: f_neg(x, f), values=[(x,) for x in corners(t) if not is_nan(x, f)], **new)
        op("abs_%s" % t, "abs.%s" % t, [t], t, lambda x: x & ~f.sign, values=[(x,) for x in corners(t) if not is_nan(x, f)], **new)
        op("setp_lt_%s" % t, "setp.lt.%s %%p0, %%a, %%b;\nselp.u32 %%o, 1, 0, %%p0;" % t, [t, t], "u32",
           lambda x, y: int(f_cmp("lt", x, y, f)), limit=640, **new)
        op("setp_neu_%s" % t, "setp.neu.%s %%p0, %%a, %%b;\nselp.u32 %%o, 1, 0, %%p0;" % t, [t, t], "u32",
           lambda x, y: int(f_cmp("neu", x, y, f)) if not f_cmp("eq", x, y, f) else 0, limit=640, **new)
    f = FORMATS["f16"]
    op("add_sat_f16", "add.rn.sat.f16", ["f16", "f16"], "f16", lambda x, y: f_sat(f_add(x, y, f), f), limit=640)
    z = lambda b: ftz(b, f)
    op("mul_ftz_f16", "mul.rn.ftz.f16", ["f16", "f16"], "f16", lambda x, y: z(f_mul(z(x), z(y), f)), limit=640)


def comparisons():
    def table(name, form, types, outcome, **kw):
        op(name, form, types, "u32", outcome, limit=324, **kw)
    for t in ("u16", "s16", "u32", "s32", "u64", "s64"):
        for c in ("eq", "ne", "lt", "le", "gt", "ge"):
            key = lambda x, y: {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}[c]
            if t in ("u16", "s16") and c in ("eq", "le", "gt"):
                continue
            table("setp_%s_%s" % (c, t), "setp.%s.%s %%p0, %%a, %%b;\nselp.u32 %%o, 1, 0, %%p0;" % (c, t), [t, t],
                  lambda x, y: int(key(as_type(x, t), as_type(y, t))))
    for t in ("f32", "f64"):
        f = FORMATS[t]
        for c in ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"):
            def outcome(x, y):
                nan = is_nan(x, f) or is_nan(y, f)
                if len(c) == 3 and c.endswith("u"):
                    return int(nan or f_cmp(c[:2], x, y, f))
                return int(f_cmp(c, x, y, f))
            table("setp_%s_%s" % (c, t), "setp.%s.%s %%p0, %%a, %%b;\nselp.u32 %%o, 1, 0, %%p0;" % (c, t), [t, t], outcome)
    f = FORMATS["f32"]
    z = lambda b: ftz(b, f)
    table("setp_eq_ftz_f32", "setp.eq.ftz.f32 %p0, %a, %b;\nselp.u32 %o, 1, 0, %p0;", ["f32", "f32"],
          lambda x, y: int(f_cmp("eq", z(x), z(y), f)))
    table("setp_lo_u32", "setp.lo.u32 %p0, %a, %b;\nselp.u32 %o, 1, 0, %p0;", ["u32", "u32"], lambda x, y: int(x < y))
    table("setp_hs_u64", "setp.hs.u64 %p0, %a, %b;\nselp.u32 %o, 1, 0, %p0;", ["u64", "u64"], lambda x, y: int(x >= y))
    for b, fn in (("and", lambda x, y: x & y), ("or", lambda x, y: x | y), ("xor", lambda x, y: x ^ y)):
        table("setp_bool_%s" % b, "setp.ne.u32 %%p2, %%c, 0;\nsetp.lt.%s.s32 %%p0|%%p1, %%a, %%b, !%%p2;\nselp.u32 %%r0, 1, 0, %%p0;\n"
              "selp.u32 %%o, 2, 0, %%p1;\nadd.u32 %%o, %%o, %%r0;" % b, ["s32", "s32", "u32"],
              lambda x, y, c: (lambda lt, n: fn(lt, n) + 2 * fn(1 - lt, n))(int(signed(x, "s32") < signed(y, "s32")), int(c == 0)))
    op("set_u32_s32", "set.lt.u32.s32", ["s32", "s32"], "u32", lambda x, y: M32 if signed(x, "s32") < signed(y, "s32") else 0)
    op("set_f32_u32", "set.ge.f32.u32", ["u32", "u32"], "f32", lambda x, y: 0x3F800000 if x >= y else 0)
    op("set_s32_f32", "set.gtu.s32.f32", ["f32", "f32"], "s32", lambda x, y: M32 if f_cmp("gtu", x, y, f) else 0, limit=640)
    op("set_and_u32_f64", "setp.ne.u32 %p0, %c, 0;\nset.le.and.u32.f64 %o, %a, %b, %p0;", ["f64", "f64", "u32"], "u32",
       lambda x, y, c: M32 if c and f_cmp("le", x, y, FORMATS["f64"]) else 0)
    for t in ("b16", "b32", "b64", "f32", "f64"):
        op("selp_%s" % t, "setp.gt.s32 %%p0, %%c, 5;\nselp.%s %%o, %%a, %%b, %%p0;" % t, [t, t, "s32"], t,
           lambda x, y, c: x if signed(c, "s32") > 5 else y)
        op("slct_s32_%s" % t, "slct.%s.s32" % t, [t, t, "s32"], t, lambda x, y, c: x if signed(c, "s32") >= 0 else y)
    op("slct_f32_u32", "slct.u32.f32", ["u32", "u32", "f32"], "u32", lambda x, y, c: x if f_cmp("ge", c, 0, f) else y)
    op("selp_not", "setp.gt.s32 %p0, %b, 5;\nnot.pred %p1, %p0;\nselp.b32 %o, %a, 77, %p1;", ["b32", "s32"], "b32",
       lambda x, c: 77 if signed(c, "s32") > 5 else x)
    op("pred_logic", "setp.ne.u32 %p0, %a, 1;\nsetp.lt.u32 %p1, %b, 32;\nnot.pred %p2, %p1;\nand.pred %p2, %p0, %p2;\nor.pred %p3, %p0, %p1;\n"
       "xor.pred %p0, %p0, %p1;\nmov.pred %p1, %p2;\nselp.u32 %o, 1, 0, %p1;\n@%p3 add.u32 %o, %o, 2;\n@!%p0 add.u32 %o, %o, 4;",
       ["u32", "u32"], "u32", lambda x, y: (lambda p, q: (p and not q) + 2 * (p or q) + 4 * (p == q))(x != 1, y < 32))


def conversions():
    ints = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
    for to in ints:
        for frm in ints:
            if to == frm:
                continue
            op("cvt_%s_%s" % (to, frm), "cvt.%s.%s" % (to, frm), [frm], to, lambda x: convert(x, to, frm))
            if signed(mask(frm) >> (to[0] == "u"), frm) is not None and SIZE[to] <= SIZE[frm]:
                op("cvt_sat_%s_%s" % (to, frm), "cvt.sat.%s.%s" % (to, frm), [frm], to, lambda x: convert(x, to, frm, sat=True))
    for frm in ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"):
        data = [(x,) for x in sorted(set(corners(frm) + ([0x01000001, 0x01000003, 0x7FFFFFBF, 0xFFFFFF7F, 0xFFFFFF80] if SIZE[frm] >= 4 else [])
                + ([0x0020000000000001, 0x7FFFFFFFFFFFFDFF, 0xFFFFFFFFFFFFFBFF, 0x0020000000000003, 0x0000010000010001] if SIZE[frm] == 8 else [])))]
        for to in ("f16", "f32", "f64"):
            for r in "nzmp":
                if r != "n" and SIZE[frm] < 4:
                    continue
                op("cvt_r%s_%s_%s" % (r, to, frm), "cvt.r%s.%s.%s" % (r, to, frm), [frm], to, lambda x: convert(x, to, frm, r), values=data)
            op("cvt_rn_sat_%s_%s" % (to, frm), "cvt.rn.sat.%s.%s" % (to, frm), [frm], to,
               lambda x: convert(x, to, frm, "n", sat=True), values=data)
    extra = {"f32": [0x3F000001, 0x3EFFFFFF, 0x40200000, 0x40600000, 0xBF000000, 0xBFC00000, 0x4EFFFFFF, 0x4F7FFFFF, 0x4F800000, 0x437F8000,
                     0xC3008000, 0x5EFFFFFF, 0x5F7FFFFF, 0xDF000000],
             "f64": [0x3FE0000000000001, 0x3FDFFFFFFFFFFFFF, 0x4004000000000000, 0x400C000000000000, 0xBFE0000000000000, 0x41DFFFFFFFE00000,
                     0x41EFFFFFFFE00000, 0x43DFFFFFFFFFFFFF, 0xC3E0000000000000, 0x406FF00000000000],
             "f16": [0x3801, 0x4100, 0x4300, 0xB800, 0x5BF8]}
    for frm in ("f16", "f32", "f64"):
        data = [(x,) for x in corners(frm) + extra[frm]]
        for to in ints:
            for r in "nzmp":
                if r in "mp" and (SIZE[to] < 4 or frm == "f16"):
                    continue
                op("cvt_r%si_%s_%s" % (r, to, frm), "cvt.r%si.%s.%s" % (r, to, frm), [frm], to,
                   # NaN to 64 bits, or from f64: PTX says 0, the hardware gives the sign bit alone.
                   lambda x: None if is_nan(x, FORMATS[frm]) and (SIZE[to] == 8 or frm == "f64") else
                   convert(x, to, frm, r + "i"), values=data)
    for frm, to in (("f64", "f32"), ("f32", "f16"), ("f64", "f16")):
        data = [(x,) for x in corners(frm) + extra[frm]]
        if (frm, to) == ("f64", "f32"):
            data += [(x,) for x in (0x3690000000000000, 0x3690000000000001, 0x47EFFFFFE0000000, 0x47EFFFFFF0000000, 0x3FF0000010000000,
                                    0x3FF0000030000000, 0x380FFFFFFFFFFFFF)]
        for r in "nzmp":
            # Which NaN a 16-bit result is, is compared as bits, and not the same from f64.
            op("cvt_r%s_%s_%s" % (r, to, frm), "cvt.r%s.%s.%s" % (r, to, frm), [frm], to,
               lambda x: None if (frm, to) == ("f64", "f16") and is_nan(x, FORMATS[frm]) else convert(x, to, frm, r), values=data)
    for frm, to in (("f32", "f64"), ("f16", "f32"), ("f16", "f64")):
        op("cvt_%s_%s" % (to, frm), "cvt.%s.%s" % (to, frm), [frm], to, lambda x: convert(x, to, frm))
    for t in ("f32", "f64", "f16"):
        data = [(x,) for x in corners(t) + extra[t]]
        for r in "nzmp":
            op("cvt_r%si_%s_%s" % (r, t, t), "cvt.r%si.%s.%s" % (r, t, t), [t], t, lambda x: convert(x, t, t, r + "i"), values=data)
    op("cvt_sat_f32_f32", "cvt.sat.f32.f32", ["f32"], "f32", lambda x: convert(x, "f32", "f32", sat=True))
    op("cvt_ftz_f32_f32", "cvt.ftz.f32.f32", ["f32"], "f32", lambda x: convert(x, "f32", "f32", flush=True))
    op("cvt_rzi_ftz_s32_f32", "cvt.rpi.ftz.s32.f32", ["f32"], "s32", lambda x: convert(x, "s32", "f32", "pi", flush=True))
    op("cvt_rn_sat_f16_f32", "cvt.rn.sat.f16.f32", ["f32"], "f16", lambda x: convert(x, "f16", "f32", "n", sat=True))
    op("cvt_rn_bf16_f32", "cvt.rn.bf16.f32", ["f32"], "bf16", lambda x: convert(x, "bf16", "f32", "n"), target="sm_80", version="7.0")
    op("cvt_rz_bf16_f32", "cvt.rz.bf16.f32", ["f32"], "bf16", lambda x: convert(x, "bf16", "f32", "z"), target="sm_80", version="7.0")
    op("cvt_f32_bf16", "cvt.f32.bf16", ["bf16"], "f32", lambda x: convert(x, "f32", "bf16"), target="sm_90", version="7.8")
    for t in ("f16", "bf16"):
        op("cvt_rn_%sx2_f32" % t, "cvt.rn.%sx2.f32 %%o, %%a, %%b;" % t, ["f32", "f32"], t + "x2",
           lambda x, y: convert(x, t, "f32", "n") << 16 | convert(y, t, "f32", "n"), limit=640, target="sm_80", version="7.0")
        op("cvt_rn_relu_%s_f32" % t, "cvt.rn.relu.%s.f32" % t, ["f32"], t,
           lambda x: (lambda r: 0 if is_neg(r, FORMATS[t]) and not is_nan(r, FORMATS[t]) else r)(convert(x, t, "f32", "n")),
           target="sm_80", version="7.0")
    # Registers wider than the type.
    op("cvt_wide_source", "cvt.s32.s8 %o, %a;", ["u32"], "s32", lambda x: signed(x, "s8"))
    op("cvt_wide_destination", "cvt.s8.s32 %r0, %a;\nmov.b32 %o, %r0;", ["s32"], "s32", lambda x: signed(x, "s8"))
    op("cvt_wide_unsigned", "cvt.u16.u32 %r0, %a;\nmov.b32 %o, %r0;", ["u32"], "u32", lambda x: x & M16)


def atomics():
    """Each thread on an element of its own: what was there, and what is there then; in global and shared memory."""
    def table(name, form, t, function, values=None, target="sm_75", version="7.0"):
        values = values or tuples([t, t], 200)
        size, operand = SIZE[t], "%b"
        memory, results = memory_type(t), [(function(x, y) & mask(t), x) for x, y in values]
        for space in ("global", "shared"):
            where = "ld.param.u64 %%l0, [po];\nmad.wide.u32 %%l0, %%t, %d, %%l0;" % size
            if space == "shared":
                where = ".shared .align 8 .b8 buf[%d];\nmov.u64 %%l0, buf;\nmad.wide.u32 %%l0, %%t, %d, %%l0;" % (size * len(values), size)
            body = "%s\nst.%s.%s [%%l0], %%a;\n%s;\nld.%s.%s %%o, [%%l0];" % (
                where, space, memory, "atom.%s.%s %%p, [%%l0], %s" % (space, form, operand), space, memory)
            emit("atom_%s_%s" % (space, name), "atom.%s.%s" % (space, form), [t, t], [t, t], body, results, values,
                 target=target, version=version)
        body = "ld.param.u64 %%l0, [po];\nmad.wide.u32 %%l0, %%t, %d, %%l0;\nst.global.%s [%%l0], %%a;\ncvta.global.u64 %%l1, %%l0;\n" % (
            size, memory)
        if not form.startswith(("exch", "cas")):
            emit("red_" + name, "red." + form, [t, t], [t], body + "red.%s [%%l1], %%b;\nld.global.%s %%o, [%%l0];" % (form, memory),
                 [r[:1] for r in results], values, target=target, version=version)

    for b in (32, 64):
        u, s, bt = "u%d" % b, "s%d" % b, "b%d" % b
        table("add_" + u, "add." + u, u, lambda x, y: x + y)
        table("min_" + u, "min." + u, u, min)
        table("max_" + s, "max." + s, s, lambda x, y: max(signed(x, s), signed(y, s)))
        table("and_" + bt, "and." + bt, bt, lambda x, y: x & y)
        table("or_" + bt, "or." + bt, bt, lambda x, y: x | y)
        table("xor_" + bt, "xor." + bt, bt, lambda x, y: x ^ y)
        table("exch_" + bt, "exch." + bt, bt, lambda x, y: y)
        values = tuples([bt, bt], 100)
        emit("atom_cas_" + bt, "atom.cas", [bt, bt], [bt, bt],
             "ld.param.u64 %%l0, [po];\nmad.wide.u32 %%l0, %%t, %d, %%l0;\nst.global.%s [%%l0], %%a;\natom.global.cas.%s %%p, [%%l0], %%b, 77;\n"
             "ld.global.%s %%o, [%%l0];" % (SIZE[bt], bt, bt, bt), [(77 if x == y else x, x) for x, y in values], values)
    table("inc_u32", "inc.u32", "u32", lambda x, y: 0 if x >= y else x + 1)
    table("dec_u32", "dec.u32", "u32", lambda x, y: y if x == 0 or x > y else x - 1)
    for t in ("f32", "f64"):
        f = FORMATS[t]
        # Subnormals and NaNs: what hardware does differs by space.
        good = [x for x in corners(t) if not is_nan(x, f) and (x & f.inf or not x & ~f.sign) and not is_inf(x, f)]
        values = [(x, y) for x in good for y in good if not 0 < abs(value(f_add(x, y, f), f) if not is_inf(f_add(x, y, f), f) else 1)
                  < Fraction(2) ** (1 - f.bias)][:300]
        table("add_" + t, "add." + t, t, lambda x, y: f_add(x, y, f), values)


def byte_value(code, t):
    """The number that 8 bits mean, as the OCP formats have it; None: no number."""
    exponent, fraction = {"e4m3": (4, 3), "e5m2": (5, 2)}[t]
    bias, e, m = (1 << (exponent - 1)) - 1, code >> fraction & ((1 << exponent) - 1), code & ((1 << fraction) - 1)
    if t == "e4m3" and e == 15 and m == 7 or t == "e5m2" and e == 31:
        return None
    v = Fraction(m, 1 << fraction) + (1 if e else 0)
    return v * Fraction(2) ** ((e or 1) - bias) * (-1 if code & 0x80 else 1)


def to_byte(b, f, t, relu=False):
    """Nearest of all codes; of two, the even one. What is too large becomes the largest."""
    if is_nan(b, f):
        return 0x7F
    sign = 0x80 if is_neg(b, f) else 0
    if sign and relu:
        return 0
    codes = [c for c in range(128) if byte_value(c, t) is not None]
    if is_inf(b, f):
        return sign | codes[-1]
    v = abs(value(b, f))
    return sign | min(codes, key=lambda c: (abs(byte_value(c, t) - v), c & 1))


def narrow_formats():
    f32, f16 = FORMATS["f32"], FORMATS["f16"]
    data = [(x,) for x in corners("f32") + [0x3F801000, 0x3F801001, 0x3F803000, 0xBF801000, 0x7F7FF000, 0x00001000, 0x3F800FFF]]
    for r in ("rna", "rn", "rz"):
        def tf32(x):
            if is_nan(x, f32):
                return x & 0xFFFFE000 if r == "rna" else 0x7FFFE000
            if r == "rna" and not is_inf(x, f32):
                return (x + 0x1000) & 0xFFFFE000
            return convert(x, "tf32", "f32", r[1]) << 13
        op("cvt_%s_tf32_f32" % r, "cvt.%s.tf32.f32" % r, ["f32"], "b32", tf32, values=data,
           target="sm_80" if r == "rna" else "sm_90", version="7.8")
    floats = corners("f32") + [encode(x, f32) for x in (
        Fraction(1, 512), Fraction(1, 1024), Fraction(3, 1024), Fraction(-1, 1025), Fraction(17, 16), Fraction(19, 16), Fraction(27, 16), Fraction(447),
        Fraction(464), Fraction(465), Fraction(-500), Fraction(57344), Fraction(61440), Fraction(61441), Fraction(-70000),
        Fraction(1, 1 << 16), Fraction(1, 1 << 17), Fraction(3, 1 << 17), Fraction(9, 8), Fraction(11, 8), Fraction(-5, 4))]
    halves = corners("f16") + [encode(x, f16) for x in (Fraction(17, 16), Fraction(448), Fraction(464), Fraction(-480), Fraction(1, 1024),
                                                       Fraction(9, 8), Fraction(61440), Fraction(1, 1 << 17))]
    pairs = [(x, floats[(5 * i + 2) % len(floats)]) for i, x in enumerate(floats)]
    packed = [(x | halves[(5 * i + 2) % len(halves)] << 16,) for i, x in enumerate(halves)]
    new = dict(target="sm_89", version="8.1")
    for t in ("e4m3", "e5m2"):
        for relu in (False, True):
            form = ".relu" if relu else ""
            op("cvt_%sx2_f32%s" % (t, form.replace(".", "_")), "cvt.rn.satfinite%s.%sx2.f32 %%o, %%a, %%b;" % (form, t), ["f32", "f32"], "b16",
               lambda x, y: to_byte(x, f32, t, relu) << 8 | to_byte(y, f32, t, relu), values=pairs, **new)
            op("cvt_%sx2_f16x2%s" % (t, form.replace(".", "_")), "cvt.rn.satfinite%s.%sx2.f16x2 %%o, %%a;" % (form, t), ["f16x2"], "b16",
               lambda x: to_byte(x >> 16, f16, t, relu) << 8 | to_byte(x & M16, f16, t, relu), values=packed, **new)
            def back(code):
                v = byte_value(code, t)
                if v is None:
                    return (f16.inf | (code & 0x80) << 8 if not relu or code < 128 else 0) if t == "e5m2" and code & 3 == 0 else f16.nan
                return 0 if relu and code & 0x80 else encode(v, f16, "n", bool(code & 0x80))
            op("cvt_f16x2_%sx2%s" % (t, form.replace(".", "_")), "cvt.rn%s.f16x2.%sx2 %%o, %%a;" % (form, t), ["b16"], "f16x2",
               lambda x: back(x >> 8) << 16 | back(x & 255), values=[(c | (255 - c) << 8,) for c in range(256)], **new)


def packed():
    for t, target, version in (("f16", "sm_75", "6.5"), ("bf16", "sm_90", "7.8")):
        f, new = FORMATS[t], dict(target=target, version=version)
        one = f.bias << f.fraction
        for c in ("lt", "neu", "nan"):
            hit = lambda x, y: int(f_cmp(c, x, y, f)) if c != "neu" else int(not f_cmp("eq", x, y, f))
            op("setp_%s_%sx2" % (c, t), "setp.%s.%sx2 %%p0|%%p1, %%a, %%b;\nselp.u32 %%r0, 1, 0, %%p0;\nselp.u32 %%o, 2, 0, %%p1;\n"
               "add.u32 %%o, %%o, %%r0;" % (c, t), [t + "x2"] * 2, "u32",
               lambda x, y: hit(x & M16, y & M16) + 2 * hit(x >> 16, y >> 16), **new)
            op("set_%s_%sx2" % (c, t), "set.%s.%sx2.%sx2" % (c, t, t), [t + "x2"] * 2, t + "x2",
               lambda x, y: one * hit(x & M16, y & M16) + (one * hit(x >> 16, y >> 16) << 16), **new)
            for d in ("u32", "s32"):
                op("set_%s_%s_%sx2" % (c, d, t), "set.%s.%s.%sx2" % (c, d, t), [t + "x2"] * 2, d,
                   lambda x, y: M16 * hit(x & M16, y & M16) + (M16 * hit(x >> 16, y >> 16) << 16), **new)
        op("setp_and_%sx2" % t, "setp.ne.u32 %%p0, %%c, 0;\nsetp.gt.and.%sx2 %%p0|%%p1, %%a, %%b, %%p0;\nselp.u32 %%r0, 1, 0, %%p0;\n"
           "selp.u32 %%o, 2, 0, %%p1;\nadd.u32 %%o, %%o, %%r0;" % t, [t + "x2", t + "x2", "u32"], "u32",
           lambda x, y, c: (int(f_cmp("gt", x & M16, y & M16, f)) + 2 * int(f_cmp("gt", x >> 16, y >> 16, f))) if c else 0, **new)
        # Approximations: to what 16 bits have.
        small = [(x,) for x in corners(t) if not is_nan(x, f) and not is_inf(x, f) and Fraction(1, 64) <= abs(value(x, f)) <= 8]
        real = lambda x: float(value(x, f))
        bits = lambda v: struct.unpack("<I", struct.pack("<f", v))[0]
        approx = dict(target="sm_90", version="7.8", tol="0.002" if t == "f16" else "0.016")
        ex2 = "ex2.approx.ftz.bf16" if t == "bf16" else "ex2.approx.f16"
        op("ex2_%s" % t, "%s %%h0, %%a;\ncvt.f32.%s %%o, %%h0;" % (ex2, t), [t], "f32", lambda x: bits(2.0 ** real(x)), values=small, **approx)
        op("tanh_%s" % t, "tanh.approx.%s %%h0, %%a;\ncvt.f32.%s %%o, %%h0;" % (t, t), [t], "f32", lambda x: bits(math.tanh(real(x))),
           values=small, **approx)
        pairs = [(x[0] | small[(i + 1) % len(small)][0] << 16,) for i, x in enumerate(small)]
        op("tanh_%sx2" % t, "tanh.approx.%sx2 %%r0, %%a;\nmov.b32 {%%h0, %%h1}, %%r0;\ncvt.f32.%s %%o, %%h1;" % (t, t), [t + "x2"], "f32",
           lambda x: bits(math.tanh(real(x >> 16))), values=pairs, **approx)
        op("ex2_%sx2" % t, "%sx2 %%r0, %%a;\nmov.b32 {%%h0, %%h1}, %%r0;\ncvt.f32.%s %%o, %%h0;" % (ex2, t), [t + "x2"], "f32",
           lambda x: bits(2.0 ** real(x & M16)), values=pairs, **approx)
    lut = lambda x, y, z: (x & y | ~x & z) & M32
    for b, fn in (("and", lambda p, q: p and q), ("or", lambda p, q: p or q)):
        op("lop3_%s" % b, "setp.gt.s32 %%p1, %%c, 0;\nlop3.%s.b32 %%o|%%p0, %%a, %%b, %%c, 0xca, %%p1;\n@%%p0 xor.b32 %%o, %%o, 1;" % b, ["b32"] * 3,
           "b32", lambda x, y, z: lut(x, y, z) ^ int(fn(lut(x, y, z) != 0, signed(z, "s32") > 0)), target="sm_75", version="8.2")
    op("lop3_sink", "setp.gt.s32 %p1, %c, 0;\nlop3.or.b32 _|%p0, %a, %b, %c, 0xca, !%p1;\nselp.u32 %o, 1, 0, %p0;", ["b32"] * 3,
       "u32", lambda x, y, z: int(lut(x, y, z) != 0 or signed(z, "s32") <= 0), target="sm_75", version="8.2")


def video():
    functions = {"vadd": lambda x, y: x + y, "vsub": lambda x, y: x - y, "vabsdiff": lambda x, y: abs(x - y), "vmin": min, "vmax": max}
    def part(v, k, bits, t):
        return signed(v >> (k * bits), {8: "s8", 16: "s16", 32: "s32"}[bits]) if t == "s32" else v >> (k * bits) & ((1 << bits) - 1)
    def clamp(v, bits, t):
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if t == "s32" else (0, (1 << bits) - 1)
        return max(low, min(high, v))
    for name, fn in functions.items():
        for d, a, b in (("u32", "u32", "u32"), ("s32", "s32", "s32"), ("s32", "u32", "s32"), ("u32", "s32", "u32")):
            for sat in (False, True):
                form = ".%s.%s.%s%s" % (d, a, b, ".sat" if sat else "")
                tail = "_" + form[1:].replace(".", "_")
                for count in (4, 2):
                    bits = 32 // count
                    def element(x, y, k):
                        r = fn(part(x, k, bits, a), part(y, k, bits, b))
                        return clamp(r, bits, d) if sat else r
                    op("%s%d%s" % (name, count, tail), "%s%d%s %%o, %%a, %%b, %%b;" % (name, count, form), ["b32", "b32"], "b32",
                       lambda x, y: sum((element(x, y, k) & ((1 << bits) - 1)) << (k * bits) for k in range(count)), limit=200)
                    if not sat:
                        op("%s%d_add%s" % (name, count, tail), "%s%d%s.add %%o, %%a, %%b, %%c;" % (name, count, form), ["b32"] * 3, "b32",
                           lambda x, y, z: z + sum(element(x, y, k) for k in range(count)), limit=200)
                # Above the largest u32 the hardware keeps the low bits.
                whole = lambda x, y: (lambda r: clamp(r, 32, d) if sat and (d == "s32" or r < 0) else r)(fn(part(x, 0, 32, a), part(y, 0, 32, b)))
                op("%s%s" % (name, tail), "%s%s %%o, %%a, %%b;" % (name, form), ["b32", "b32"], "b32", whole, limit=200)
        # A difference of 2^31 and more is no negative number for the second operation.
        keep = (lambda r: r) if name == "vabsdiff" else (lambda r: signed(r, "s32"))
        op("%s_second" % name, "%s.s32.s32.s32.max %%o, %%a, %%b, %%c;" % name, ["b32"] * 3, "b32",
           lambda x, y, z: max(keep(fn(signed(x, "s32"), signed(y, "s32"))), signed(z, "s32")), limit=300)


def half_atomics():
    for t, target in (("f16", "sm_75"), ("bf16", "sm_90")):
        f, version = FORMATS[t], "7.8"
        add = lambda x, y: f_add(x, y, f)
        for form, unit, fn in (("add.noftz." + t, t, add),
                               ("add.noftz.%sx2" % t, t + "x2", lambda x, y: add(x & M16, y & M16) | add(x >> 16, y >> 16) << 16)):
            size, memory = SIZE[unit], memory_type(unit)
            # Aligned to the size; the neighbours of a 16-bit one stay as they are.
            values = tuples([unit, unit], 200)
            for space in ("global", "shared"):
                where = "ld.param.u64 %%l0, [po];\nmad.wide.u32 %%l0, %%t, %d, %%l0;" % size
                if space == "shared":
                    where = ".shared .align 8 .b8 buf[%d];\nmov.u64 %%l0, buf;\nmad.wide.u32 %%l0, %%t, %d, %%l0;" % (size * len(values), size)
                body = "%s\nst.%s.%s [%%l0], %%a;\natom.%s.%s %%p, [%%l0], %%b;\nld.%s.%s %%o, [%%l0];" % (
                    where, space, memory, space, form, space, memory)
                emit("atom_%s_%s" % (space, form.replace(".", "_")), "atom.%s.%s" % (space, form), [unit, unit], [unit, unit], body,
                     [(fn(x, y), x) for x, y in values], values, target=target, version=version)
            body = "ld.param.u64 %%l0, [po];\nmad.wide.u32 %%l0, %%t, %d, %%l0;\nst.global.%s [%%l0], %%a;\ncvta.global.u64 %%l1, %%l0;\n" \
                   "red.%s [%%l1], %%b;\nld.global.%s %%o, [%%l0];" % (size, memory, form, memory)
            emit("red_" + form.replace(".", "_"), "red." + form, [unit, unit], [unit], body, [(fn(x, y),) for x, y in values], values,
                 target=target, version=version)
    values = tuples(["b16", "b16"], 144)
    for space in ("global", "shared"):
        where = "ld.param.u64 %l0, [po];\nmad.wide.u32 %l0, %t, 2, %l0;"
        if space == "shared":
            where = ".shared .align 8 .b8 buf[%d];\nmov.u64 %%l0, buf;\nmad.wide.u32 %%l0, %%t, 2, %%l0;" % (2 * len(values))
        emit("atom_%s_cas_b16" % space, "atom.cas.b16", ["b16", "b16"], ["b16", "b16"],
             "%s\nst.%s.b16 [%%l0], %%a;\natom.%s.cas.b16 %%p, [%%l0], %%b, 77;\nld.%s.b16 %%o, [%%l0];" % (where, space, space, space),
             [(77 if x == y else x, x) for x, y in values], values, target="sm_75", version="7.0")


COMPARE = {"lt": lambda x, y: x < y, "le": lambda x, y: x <= y, "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y,
           "eq": lambda x, y: x == y, "ne": lambda x, y: x != y}

# What a block of two and a half warps has in i = threadIdx * stride + b, compared with c in all places where compilers
# compare: if and else, conditions that are combined, loops, early returns.
BRANCHES = """.version 7.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 pb, .param .u64 pc, .param .u64 po, .param .u64 pq)
{
    .reg .pred %%p<8>;
    .reg .b32 %%t, %%r<8>;
    .reg .b%(bits)d %%i, %%b, %%c, %%j;
    .reg .b64 %%l<8>;
    mov.u32 %%t, %%tid.x;
    mov.u32 %%r1, %%ctaid.x;
    ld.param.u64 %%l1, [pb];
    mad.wide.u32 %%l1, %%r1, %(size)d, %%l1;
    ld.global.%(type)s %%b, [%%l1];
    ld.param.u64 %%l2, [pc];
    mad.wide.u32 %%l2, %%r1, %(size)d, %%l2;
    ld.global.%(type)s %%c, [%%l2];
    mad.lo.s32 %%r2, %%r1, 80, %%t;
    ld.param.u64 %%l3, [po];
    mad.wide.u32 %%l3, %%r2, 4, %%l3;
    ld.param.u64 %%l4, [pq];
    mad.wide.u32 %%l4, %%r2, 4, %%l4;
    cvt.u%(bits)d.u32 %%i, %%t;
    mad.lo.%(type)s %%i, %%i, %(stride)d, %%b;
    setp.%(cmp)s.%(type)s %%p1, %%i, %%c;
    mov.u32 %%r3, 1;
    @%%p1 bra YES;
    mov.u32 %%r3, 2;
YES:
    setp.gt.u32 %%p2, %%t, 40;
    setp.%(cmp)s.%(type)s %%p1, %%i, %%c;
    and.pred %%p3, %%p1, %%p2;
    not.pred %%p4, %%p3;
    @%%p4 bra ONE;
    add.s32 %%r3, %%r3, 4;
ONE:
    setp.gt.u32 %%p2, %%t, 40;
    setp.%(cmp)s.or.%(type)s %%p5, %%c, %%i, %%p2;
    @!%%p5 bra LOOPS;
    add.s32 %%r3, %%r3, 8;
LOOPS:
    mov.u%(bits)d %%j, %%i;
LOOP:
    setp.%(cmp)s.and.%(type)s %%p6, %%j, %%c, 1;
    @!%%p6 bra LEFT;
    add.s32 %%r3, %%r3, 16;
    add.s%(bits)d %%j, %%j, 21;
    setp.lt.u32 %%p7, %%r3, 80;
    @%%p7 bra LOOP;
LEFT:
    st.global.u32 [%%l3], %%r3;
    setp.%(cmp)s.%(type)s %%p1, %%i, %%c;
    @%%p1 bra END;
    st.global.u32 [%%l4], %%r3;
    setp.%(cmp)s.%(type)s %%p1, %%c, %%i;
    @%%p1 ret;
    st.global.u32 [%%l4], %%t;
END:
    ret;
}
"""


def branches():
    for t, cmp, stride in itertools.product(("u32", "s32", "u64", "s64"), COMPARE, (1, -3, 4)):
        holds, top = COMPARE[cmp], 1 << (bits_of(t) - 1)
        pairs = [(b, c) for b in (0, 7, -1, -40, -320, top - 33, top - 200) for c in (0, 20, 32, 64, 230, -1, top - 1)]
        out, left = [], []
        for b, c in pairs:
            for tid in range(80):
                i, limit = as_type(tid * stride + b, t), as_type(c, t)
                r = 1 if holds(i, limit) else 2
                r += 4 if holds(i, limit) and tid > 40 else 0
                r += 8 if holds(limit, i) or tid > 40 else 0
                j = i
                while holds(j, limit):
                    r, j = r + 16, as_type(j + 21, t)
                    if r >= 80:
                        break
                out.append(str(r))
                left.append("7" if holds(i, limit) else str(r) if holds(limit, i) else str(tid))
        text = ["// comparisons of thread numbers times %d, %s.%s" % (stride, cmp, t), "// kernel: k",
                "// grid: %d" % len(pairs), "// block: 80"]
        text += lines("// in b: " + t, [show(b & mask(t), t) for b, c in pairs])
        text += lines("// in c: " + t, [show(c & mask(t), t) for b, c in pairs])
        text += lines("// out o: u32", out)
        text += lines("// inout q: u32 fill %d 7 ->" % len(left), left)
        text.append(BRANCHES % {"bits": bits_of(t), "size": SIZE[t], "type": t, "cmp": cmp, "stride": stride})
        FILES["branches_%s_%s_%d" % (cmp, t, stride)] = "\n".join(text)


def long_blocks():
    """A block of more instructions than the compiler keeps in one piece; each writes a register of its own."""
    count, pick = 1600, 12345
    steps = []
    for n in range(2, count):
        pick = (pick * 1103515245 + 12345) & M32
        steps.append((n, ("add.u32", "sub.u32", "xor.b32", "mul.lo.u32")[pick >> 16 & 3], n - 1 - (pick >> 18 & 1),
                      (pick >> 20) % n))
    code = "\n".join(["{", ".reg .b32 %%v<%d>;" % count, "mov.b32 %v0, %a;", "mov.b32 %v1, %b;"] +
                     ["%s %%v%d, %%v%d, %%v%d;" % (f, n, x, y) for n, f, x, y in steps] +
                     ["mov.b32 %%o, %%v%d;" % (count - 1), "mov.b32 %%p, %%v%d;" % (count // 2), "}"])
    apply = {"add.u32": lambda x, y: x + y, "sub.u32": lambda x, y: x - y, "xor.b32": lambda x, y: x ^ y,
             "mul.lo.u32": lambda x, y: x * y}
    values, results = [(k * 0x9E3779B9 & M32, k * k + 1) for k in range(96)], []
    for a, b in values:
        v = [a, b]
        for n, f, x, y in steps:
            v.append(apply[f](v[x], v[y]) & M32)
        results.append((v[-1], v[count // 2]))
    emit("long_block", "%d instructions without a branch" % count, ["u32", "u32"], ["u32", "u32"],
         code, results, values)


def main():
    for group in (integers, bit_operations, floats, approximations, halves, comparisons, conversions, atomics,
                  narrow_formats, packed, video, half_atomics, branches, long_blocks):
        group()
    os.makedirs(sys.argv[1], exist_ok=True)
    for old in os.listdir(sys.argv[1]):
        os.unlink(os.path.join(sys.argv[1], old))
    for name, text in FILES.items():
        with open(os.path.join(sys.argv[1], name + ".ptx"), "w") as f:
            f.write(text)


if __name__ == "__main__":
    main()
