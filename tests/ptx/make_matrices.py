#!/usr/bin/env python3
"""Writes cases of matrix instructions into the directory given, with results computed here.

Matrices hold small numbers, so that all sums are exact in any order. Where an element lies in the registers of mma and
ldmatrix is written down here as the PTX ISA's tables have it ("Matrix Fragments for mma.m16n8k16 .." and so on); wmma
fragments are opaque, so that a case of theirs loads, multiplies and stores.
"""
import os
import random
import struct
import sys

FILES = {}
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1, "f64": 64,
        "f32": 32, "s32": 32}
rng = random.Random(7)


def minifloat(v, exponent, fraction):
    """Bits of a number that the format has exactly."""
    if v == 0:
        return 0
    sign, v, e = (1, -v, 0) if v < 0 else (0, v, 0)
    while v >= 2:
        v, e = v / 2, e + 1
    while v < 1:
        v, e = v * 2, e - 1
    f = (v - 1) * (1 << fraction)
    assert f == int(f)
    return sign << (exponent + fraction) | (e + (1 << (exponent - 1)) - 1) << fraction | int(f)


def encode(v, t):
    if t in ("f32", "tf32"):
        return struct.unpack("<I", struct.pack("<f", v))[0]
    if t == "f64":
        return struct.unpack("<Q", struct.pack("<d", v))[0]
    if t in ("f16", "bf16", "e4m3", "e5m2"):
        return minifloat(v, *{"f16": (5, 10), "bf16": (8, 7), "e4m3": (4, 3), "e5m2": (5, 2)}[t])
    return int(v) & ((1 << BITS[t]) - 1)


def number(t):
    if t in ("s8", "u8", "s4", "u4", "b1"):
        low, high = {"s8": (-128, 127), "u8": (0, 255), "s4": (-8, 7), "u4": (0, 15), "b1": (0, 1)}[t]
        return rng.choice([low, high, rng.randint(low, high)])
    if t == "s32":
        return rng.randint(-100000, 100000)
    return rng.choice([0, 1, -1, 2, -3, 0.5, -1.5, 4, 3]) if t in ("f16", "e4m3", "e5m2") else rng.randint(-12, 12) / 2


def matrix(rows, columns, t):
    return [[number(t) for _ in range(columns)] for _ in range(rows)]


def product(a, b, c, operation=None, saturate=False):
    out = []
    for r in range(len(a)):
        row = []
        for n in range(len(c[0])):
            if operation == "xor":
                v = c[r][n] + sum(x ^ b[k][n] for k, x in enumerate(a[r]))
            elif operation == "and":
                v = c[r][n] + sum(x & b[k][n] for k, x in enumerate(a[r]))
            else:
                v = c[r][n] + sum(x * b[k][n] for k, x in enumerate(a[r]))
            row.append(max(-2**31, min(2**31 - 1, v)) if saturate else v)
        out.append(row)
    return out


def numbers(head, values):
    text, line = [], head
    for v in values:
        w = hex(v)
        if len(line) + len(w) > 110:
            text.append(line)
            line = "//+"
        line += " " + w
    return text + [line]


def write(name, about, buffers, body, target, version, block=32):
    """buffers: (name, in or out, type, values); in the body %name is its address, %lane the thread."""
    text = ["// " + about, "// kernel: k", "// block: %d" % block]
    for b, way, t, values in buffers:
        text += numbers("// %s %s: %s" % (way, b, t), values)
    text += [".version %s" % version, ".target %s" % target, ".address_size 64",
             ".visible .entry k(%s)" % ", ".join(".param .u64 p" + b[0] for b in buffers), "{",
             "    .reg .pred %p<8>;", "    .reg .b16 %h<16>;", "    .reg .b32 %lane, %r<64>;", "    .reg .f32 %f<32>;",
             "    .reg .f64 %g<20>;", "    .reg .b64 %x, %l<8>, " + ", ".join("%" + b[0] for b in buffers) + ";",
             "    mov.u32 %lane, %tid.x;"]
    text += ["    ld.param.u64 %%%s, [p%s];" % (b[0], b[0]) for b in buffers]
    text += ["    " + line for line in body.strip().split("\n")] + ["    ret;", "}"]
    assert name not in FILES, name
    FILES[name] = "\n".join(text) + "\n"


def registers(prefix, first, count):
    return "{%s}" % ", ".join("%%%s%d" % (prefix, first + k) for k in range(count))


def load_registers(buffer, first, count, size=4, prefix="r", kind="b32"):
    return "\n".join(["mad.wide.u32 %%x, %%lane, %d, %%%s;" % (size * count, buffer)] +
                     ["ld.global.%s %%%s%d, [%%x+%d];" % (kind, prefix, first + k, size * k) for k in range(count)])


def store_registers(buffer, first, count, size=4, prefix="r", kind="b32"):
    return "\n".join(["mad.wide.u32 %%x, %%lane, %d, %%%s;" % (size * count, buffer)] +
                     ["st.global.%s [%%x+%d], %%%s%d;" % (kind, size * k, prefix, first + k) for k in range(count)])


def pack(elements, t):
    """Register values from elements in their order, the lowest bits first."""
    each = max(1, 32 // BITS[t])
    return [sum(encode(v, t) << (BITS[t] * k) for k, v in enumerate(elements[i:i + each]))
            for i in range(0, len(elements), each)]


# --- mma: fragments as the ISA's tables have them ---------------------------------------------------------------------

def fragment_a(m, k, t, lane):
    """(row, column) of the elements of A that a lane holds, in order."""
    g, i = lane >> 2, lane & 3
    each = 32 // BITS[t] if BITS[t] < 64 else 1
    count = m * k // 32
    if m == 8:
        return [(g, i * each + e) for e in range(count)]
    # 16 rows: registers alternate between the upper and the lower half; the second pair has the second half of K
    return [(g + 8 * ((e // each) & 1), i * each + e % each + 4 * each * (e // (2 * each))) for e in range(count)]


def fragment_b(k, t, lane):
    g, i = lane >> 2, lane & 3
    each = 32 // BITS[t] if BITS[t] < 64 else 1
    return [(i * each + e % each + 4 * each * (e // each), g) for e in range(k * 8 // 32)]


def fragment_c(m, lane):
    g, i = lane >> 2, lane & 3
    return [(g + 8 * (e >> 1), 2 * i + (e & 1)) for e in range(m // 4)]


def mma(m, k, d, a, b, c, target, version, extra="", operation=None, values=None):
    am, bm = matrix(m, k, a), matrix(k, 8, b)
    cm = matrix(m, 8, "s32" if c == "s32" else "f16" if c == "f16" else "f32")
    if values:
        values(am, bm, cm)
    dm = product(am, bm, cm, operation, "satfinite" in extra)
    name = "mma_m%dn8k%d_%s_%s_%s_%s%s" % (m, k, d, a, b, c, extra.replace(".", "_"))
    lanes = range(32)
    ra, rb, rc, rd = [], [], [], []
    for lane in lanes:
        ra += pack([am[r][x] for r, x in fragment_a(m, k, a, lane)], a)
        rb += pack([bm[r][x] for r, x in fragment_b(k, b, lane)], b)
        rc += pack([cm[r][x] for r, x in fragment_c(m, lane)], c)
        rd += pack([dm[r][x] for r, x in fragment_c(m, lane)], d)
    na, nb, nc, nd = len(ra) // 32, len(rb) // 32, len(rc) // 32, len(rd) // 32
    form = "mma.sync.aligned.m%dn8k%d.row.col%s.%s.%s.%s.%s" % (m, k, extra, d, a, b, c)
    if operation:
        form = "mma.sync.aligned.m%dn8k%d.row.col.%s.%s.%s.%s.%s.popc" % (m, k, d, a, b, c, operation)
        name += "_" + operation
    wide = "f64" in (a,)
    t = "u64" if wide else "u32"
    size, prefix, kind = (8, "g", "f64") if wide else (4, "r", "b32")
    operands = [registers(prefix, 0, nd), registers(prefix, nd, na), registers(prefix, nd + na, nb), registers(prefix, nd + na + nb, nc)]
    def source(buffer, first, count, which):
        if not wide and which in ("f32",):
            return load_registers(buffer, first, count, 4, "f", "f32")
        return load_registers(buffer, first, count, size, prefix, kind)
    if not wide and c == "f32":
        operands[3] = registers("f", nd + na + nb, nc)
    if not wide and d == "f32":
        operands[0] = registers("f", 0, nd)
    body = "\n".join([source("a", nd, na, a), source("b", nd + na, nb, b), source("c", nd + na + nb, nc, c),
                      "%s %s;" % (form, ", ".join(operands)),
                      store_registers("d", 0, nd, size, "f" if not wide and d == "f32" else prefix,
                                      "f32" if not wide and d == "f32" else kind)])
    write(name, form, [("a", "in", t, ra), ("b", "in", t, rb), ("c", "in", t, rc), ("d", "out", t, rd)], body, target, version)


def all_mma():
    for k in (8, 16):
        for d, c in (("f32", "f32"), ("f16", "f16")):
            mma(16, k, d, "f16", "f16", c, "sm_80", "7.0")
        mma(16, k, "f32", "bf16", "bf16", "f32", "sm_80", "7.0")
    for k in (4, 8):
        mma(16, k, "f32", "tf32", "tf32", "f32", "sm_80", "7.0")
    mma(8, 4, "f64", "f64", "f64", "f64", "sm_80", "7.0")
    for k in (4, 8, 16):
        mma(16, k, "f64", "f64", "f64", "f64", "sm_90", "7.8")
    for k in (16, 32):
        for a in ("s8", "u8"):
            for b in ("s8", "u8"):
                mma(16, k, "s32", a, b, "s32", "sm_80", "7.0")
    mma(8, 16, "s32", "s8", "u8", "s32", "sm_75", "7.0")
    for k in (32, 64):
        for a in ("s4", "u4"):
            for b in ("s4", "u4"):
                mma(16, k, "s32", a, b, "s32", "sm_80", "7.0")
    mma(8, 32, "s32", "u4", "s4", "s32", "sm_75", "7.0")
    for operation in ("xor", "and"):
        for m, k in ((8, 128), (16, 128), (16, 256)):
            mma(m, k, "s32", "b1", "b1", "s32", "sm_80", "7.1", operation=operation)
    for a in ("e4m3", "e5m2"):
        for b in ("e4m3", "e5m2"):
            mma(16, 32, "f32", a, b, "f32", "sm_89", "8.4")

    def ends(am, bm, cm):
        for row in cm:
            for n in range(len(row)):
                row[n] = rng.choice([2**31 - 1, -2**31, 2**31 - 70000, 70000 - 2**31])
    mma(16, 32, "s32", "s8", "s8", "s32", "sm_80", "7.0", extra=".satfinite", values=ends)
    mma(8, 16, "s32", "u8", "s8", "s32", "sm_75", "7.0", extra=".satfinite", values=ends)


# --- mma.sp -------------------------------------------------------------------------------------------------------------

def sparse_row(k, t):
    """A row of A, its stored elements, and four bits of metadata for each chunk of it."""
    row, stored, metadata = [], [], []
    for _ in range(0, k, {"tf32": 2, "s4": 8, "u4": 8}.get(t, 4)):
        first = rng.randrange(3)
        places = [first, rng.randrange(first + 1, 4)]
        if t == "tf32":  # 1 of 2; the ISA allows these two values
            at = rng.randrange(2)
            chunk, kept, places = [0, 0], [at], ([0, 1], [2, 3])[at]
        elif t in ("s4", "u4"):  # 4 of 8, in pairs
            chunk, kept = [0] * 8, [2 * place + e for place in places for e in range(2)]
        else:
            chunk, kept = [0] * 4, places
        for at in kept:
            chunk[at] = number(t)
        row += chunk
        stored += [chunk[at] for at in kept]
        metadata.append(places[0] | places[1] << 2)
    return row, stored, metadata


def metadata_register(rows, k, t, selector, lane):
    """What a lane has as metadata, by the ISA's figures for each shape and type; anything where it has none."""
    g, i = lane >> 2, lane & 3
    bits = [sum(m << (4 * n) for n, m in enumerate(row)) for row in rows]
    unit = 4 * len(rows[0])  # bits of a row
    if BITS[t] >= 16:
        chunks = unit // 16
        if i // chunks == selector:
            at = 16 * (i % chunks)
            return (bits[g] >> at & 0xffff) | (bits[g + 8] >> at & 0xffff) << 16
    elif i // (2 * (unit // 32)) == selector:
        return bits[g + 8 * (i & 1)] >> (32 * (i // 2) if unit == 64 else 0) & 0xffffffff
    return rng.getrandbits(32)


def sparse(k, d, a, b, c, selector, target, version, extra="", ordered=False):
    rows = [sparse_row(k, a) for _ in range(16)]
    am, stored, metadata = ([row[n] for row in rows] for n in range(3))
    bm, cm = matrix(k, 8, b), matrix(16, 8, "s32" if c == "s32" else "f16" if c == "f16" else "f32")
    dm = product(am, bm, cm, None, "satfinite" in extra)
    ra, rb, rc, rd, re = [], [], [], [], []
    for lane in range(32):
        ra += pack([stored[r][x] for r, x in fragment_a(16, k // 2, a, lane)], a)
        rb += pack([bm[r][x] for r, x in fragment_b(k, b, lane)], b)
        rc += pack([cm[r][x] for r, x in fragment_c(16, lane)], c)
        rd += pack([dm[r][x] for r, x in fragment_c(16, lane)], d)
        re.append(metadata_register(metadata, k, a, selector, lane))
    na, nb, nc, nd = (len(v) // 32 for v in (ra, rb, rc, rd))
    kinds = {"f32": ("f", "f32")}
    first = {"d": 0, "a": 4, "b": 8, "c": 12, "e": 16}
    def regs(x, count, t="b32"):
        return registers(kinds.get(t, ("r",))[0], first[x], count)
    form = "mma.sp%s.sync.aligned.m16n8k%d.row.col%s.%s.%s.%s.%s" % ("::ordered_metadata" if ordered else "", k, extra, d, a, b, c)
    body = "\n".join([load_registers(x, first[x], n, 4, *kinds.get(t, ("r", "b32")))
                      for x, n, t in (("a", na, "b32"), ("b", nb, "b32"), ("c", nc, c), ("e", 1, "b32"))] +
                     ["%s %s, %s, %s, %s, %%r16, 0x%x;" % (form, regs("d", nd, d), regs("a", na), regs("b", nb), regs("c", nc, c), selector),
                      store_registers("d", 0, nd, 4, *kinds.get(d, ("r", "b32")))])
    write("mma_sp%s_m16n8k%d_%s_%s_%s_%s_%d%s" % ("_ordered" if ordered else "", k, d, a, b, c, selector, extra.replace(".", "_")), form,
          [("a", "in", "u32", ra), ("b", "in", "u32", rb), ("c", "in", "u32", rc), ("e", "in", "u32", re), ("d", "out", "u32", rd)],
          body, target, version)


def all_sparse():
    for selector in range(4):
        sparse(16, "f32", "f16", "f16", "f32", selector, "sm_80", "7.1")
        sparse(8, "f32", "tf32", "tf32", "f32", selector, "sm_80", "7.1")
    for selector in range(2):
        for d in ("f16", "f32"):
            sparse(32, d, "f16", "f16", d, selector, "sm_80", "7.1")
        for k in (16, 32):
            sparse(k, "f32", "bf16", "bf16", "f32", selector, "sm_80", "7.1")
        sparse(16, "f32", "tf32", "tf32", "f32", selector, "sm_80", "7.1")
        sparse(32, "s32", "s8", "u8", "s32", selector, "sm_80", "7.1")
        sparse(64, "s32", "u4", "s4", "s32", selector, "sm_80", "7.1")
    for a in ("s8", "u8"):
        for b in ("s8", "u8"):
            sparse(64, "s32", a, b, "s32", 0, "sm_80", "7.1", ".satfinite" if a == "s8" else "")
    for a in ("s4", "u4"):
        for b in ("s4", "u4"):
            sparse(128, "s32", a, b, "s32", 0, "sm_80", "7.1", ".satfinite" if a == "u4" else "")
    for a in ("e4m3", "e5m2"):
        for b in ("e4m3", "e5m2"):
            sparse(64, "f32", a, b, "f32", 0, "sm_89", "8.4")
    sparse(16, "f16", "f16", "f16", "f16", 3, "sm_80", "8.5", ordered=True)
    sparse(64, "s32", "s8", "s8", "s32", 0, "sm_80", "8.5", ordered=True)


def quads(layout_a, layout_b, d, c):
    """m8n8k4 of f16: product p is that of lanes 4 p .. 4 p + 3 and 16 + 4 p .. 16 + 4 p + 3."""
    def half(t, r):
        return t if r < 16 else t + 4
    def fragment(which, layout, lane):
        t = lane & 3
        if which == "a":
            return [(half(t, lane), i) if layout == "row" else (half(i, lane), t) for i in range(4)]
        return [(t, half(i, lane)) if layout == "row" else (i, half(t, lane)) for i in range(4)]
    def accumulator(t, lane):
        if t == "f16":
            return [(half(lane & 3, lane), i) for i in range(8)]
        return [(half((lane & 1) + (i & 2), lane), (i & 4) + (lane & 2) + (i & 1)) for i in range(8)]
    products = []
    for _ in range(4):
        am, bm, cm = matrix(8, 4, "f16"), matrix(4, 8, "f16"), matrix(8, 8, "f16")
        products.append((am, bm, cm, product(am, bm, cm)))
    ra, rb, rc, rd = [], [], [], []
    for lane in range(32):
        am, bm, cm, dm = products[lane >> 2 & 3]
        ra += pack([am[r][x] for r, x in fragment("a", layout_a, lane)], "f16")
        rb += pack([bm[r][x] for r, x in fragment("b", layout_b, lane)], "f16")
        rc += pack([cm[r][x] for r, x in accumulator(c, lane)], c)
        rd += pack([dm[r][x] for r, x in accumulator(d, lane)], d)
    nc, nd = len(rc) // 32, len(rd) // 32
    def source(buffer, first, count, t):
        return load_registers(buffer, first, count, 4, *(("f", "f32") if t == "f32" else ("r", "b32")))
    operands = [registers("f" if d == "f32" else "r", 0, nd), registers("r", 8, 2), registers("r", 10, 2),
                registers("f" if c == "f32" else "r", 12, nc)]
    form = "mma.sync.aligned.m8n8k4.%s.%s.%s.f16.f16.%s" % (layout_a, layout_b, d, c)
    body = "\n".join([source("a", 8, 2, "f16"), source("b", 10, 2, "f16"), source("c", 12, nc, c),
                      "%s %s;" % (form, ", ".join(operands)),
                      store_registers("d", 0, nd, 4, *(("f", "f32") if d == "f32" else ("r", "b32")))])
    write("mma_m8n8k4_%s_%s_%s_%s" % (layout_a, layout_b, d, c), form,
          [("a", "in", "u32", ra), ("b", "in", "u32", rb), ("c", "in", "u32", rc), ("d", "out", "u32", rd)], body, "sm_70", "6.4")


def all_quads():
    for layout_a in ("row", "col"):
        for layout_b in ("row", "col"):
            for d, c in (("f32", "f32"), ("f16", "f16"), ("f32", "f16")):
                quads(layout_a, layout_b, d, c)


# --- ldmatrix, stmatrix, movmatrix -------------------------------------------------------------------------------------

def held(m, lane, trans):
    """What lane holds of the 8 x 8 matrix: a register."""
    r, c = lane >> 2, 2 * (lane & 3)
    low, high = (m[c][r], m[c + 1][r]) if trans else (m[r][c], m[r][c + 1])
    return low | high << 16


def moves():
    for count in (1, 2, 4):
        for trans in (False, True):
            # Rows lie at odd places: row r of matrix j at 16 * order[8 j + r].
            matrices = [[[rng.randrange(65536) for _ in range(8)] for _ in range(8)] for _ in range(count)]
            order = rng.sample(range(64), 8 * count)
            memory = [rng.randrange(65536) for _ in range(512)]
            for j in range(count):
                for r in range(8):
                    memory[8 * order[8 * j + r]:8 * order[8 * j + r] + 8] = matrices[j][r]
            where = [16 * order[i] if i < 8 * count else 0 for i in range(32)]
            want = [held(matrices[j], lane, trans) for lane in range(32) for j in range(count)]
            words = [memory[2 * i] | memory[2 * i + 1] << 16 for i in range(256)]
            fill = "\n".join([".shared .align 16 .b8 buf[1024];", "mov.u32 %r40, buf;", "mad.lo.u32 %r41, %lane, 4, %r40;",
                              "mad.wide.u32 %x, %lane, 4, %m;"] +
                             ["ld.global.u32 %%r42, [%%x+%d];\nst.shared.u32 [%%r41+%d], %%r42;" % (128 * i, 128 * i) for i in range(8)] +
                             ["bar.warp.sync -1;", "mad.wide.u32 %x, %lane, 4, %w;", "ld.global.u32 %r43, [%x];",
                              "add.u32 %r43, %r43, %r40;"])
            form = "ldmatrix.sync.aligned.m8n8.x%d%s.shared.b16" % (count, ".trans" if trans else "")
            # The first result is the register of the address.
            regs = "{%s}" % ", ".join(["%r43"] + ["%%r%d" % k for k in range(1, count)])
            body = "%s\n%s %s, [%%r43];\nmov.b32 %%r0, %%r43;\n%s" % (fill, form, regs, store_registers("d", 0, count))
            write("ldmatrix_x%d%s" % (count, "_trans" if trans else ""), form,
                  [("m", "in", "u32", words), ("w", "in", "u32", where), ("d", "out", "u32", want)], body, "sm_75", "7.0")
            if not trans:
                body = "%s\ncvt.u64.u32 %%l0, %%r43;\ncvta.shared.u64 %%l0, %%l0;\n%s %s, [%%l0];\n%s" % (
                    fill, form.replace(".shared", ""), registers("r", 0, count), store_registers("d", 0, count))
                write("ldmatrix_x%d_generic" % count, form + ", generic address",
                      [("m", "in", "u32", words), ("w", "in", "u32", where), ("d", "out", "u32", want)], body, "sm_75", "7.0")
            # stmatrix: from registers into a zeroed memory
            regs_in = [held(matrices[j], lane, trans) for lane in range(32) for j in range(count)]
            after = [0] * 512
            for j in range(count):
                for r in range(8):
                    after[8 * order[8 * j + r]:8 * order[8 * j + r] + 8] = matrices[j][r]
            words = [after[2 * i] | after[2 * i + 1] << 16 for i in range(256)]
            form = "stmatrix.sync.aligned.m8n8.x%d%s.shared.b16" % (count, ".trans" if trans else "")
            body = "\n".join([".shared .align 16 .b8 buf[1024];", "mov.u32 %r40, buf;", "mad.lo.u32 %r41, %lane, 4, %r40;"] +
                             ["st.shared.u32 [%%r41+%d], 0;" % (128 * i) for i in range(8)] + ["bar.warp.sync -1;"] +
                             [load_registers("v", 0, count), "mad.wide.u32 %x, %lane, 4, %w;", "ld.global.u32 %r43, [%x];",
                              "add.u32 %r43, %r43, %r40;", "%s [%%r43], %s;" % (form, registers("r", 0, count)), "bar.warp.sync -1;",
                              "mad.wide.u32 %x, %lane, 4, %d;"] +
                             ["ld.shared.u32 %%r42, [%%r41+%d];\nst.global.u32 [%%x+%d], %%r42;" % (128 * i, 128 * i) for i in range(8)])
            write("stmatrix_x%d%s" % (count, "_trans" if trans else ""), form,
                  [("v", "in", "u32", regs_in), ("w", "in", "u32", where), ("d", "out", "u32", words)], body, "sm_90", "8.0")
    m = [[rng.randrange(65536) for _ in range(8)] for _ in range(8)]
    write("movmatrix", "movmatrix.sync.aligned.m8n8.trans.b16",
          [("v", "in", "u32", [held(m, lane, False) for lane in range(32)]),
           ("d", "out", "u32", [held(m, lane, True) for lane in range(32)])],
          load_registers("v", 0, 1) + "\nmovmatrix.sync.aligned.m8n8.trans.b16 %r1, %r0;\n" + store_registers("d", 1, 1), "sm_75", "7.8")


# --- wmma --------------------------------------------------------------------------------------------------------------

def laid_out(m, t, layout, stride):
    """The words of a matrix in memory."""
    rows, columns = len(m), len(m[0])
    outer, inner = (rows, columns) if layout == "row" else (columns, rows)
    bits = 0
    for o in range(outer):
        for i in range(inner):
            v = encode(m[o][i] if layout == "row" else m[i][o], t)
            bits |= v << (BITS[t] * (o * stride + i))
    return bits, outer * stride * BITS[t]


def words_of(bits, count, size):
    return [bits >> (8 * size * i) & ((1 << (8 * size)) - 1) for i in range((count + 8 * size - 1) // (8 * size))]


def wmma(m, n, k, d, a, b, c, la, lb, lc, ld, space, target, version, operation="", sync="sync.aligned"):
    am, bm = matrix(m, k, a), matrix(k, n, b)
    cm = matrix(m, n, "s32" if c == "s32" else "f16" if c == "f16" else "f32")
    dm = product(am, bm, cm, {".xor.popc": "xor", ".and.popc": "and"}.get(operation))
    size = 8 if a == "f64" else 4
    wide = {"row": lambda r, x: x, "col": lambda r, x: r}
    pad = {1: 128, 4: 32, 8: 16, 16: 8, 32: 4, 64: 2}
    strides = {}
    buffers, loads = [], []
    for name, mat, t, layout in (("a", am, a, la), ("b", bm, b, lb), ("c", cm, c, lc)):
        stride = wide[layout](len(mat), len(mat[0])) + pad[BITS[t]]
        strides[name] = stride
        bits, count = laid_out(mat, t, layout, stride)
        buffers.append((name, "in", "u%d" % (8 * size), words_of(bits, count, size)))
    stride = wide[ld](m, n) + pad[BITS[d]]
    bits, count = laid_out(dm, d, ld, stride)
    # What lies between rows is not written.
    outer, inner = (m, n) if ld == "row" else (n, m)
    for o in range(outer):
        for e in range(stride - inner):
            bits |= (0xa5 * (0x0101010101010101 & ((1 << BITS[d]) - 1))) << (BITS[d] * (o * stride + inner + e))
    buffers.append(("d", "out", "u%d" % (8 * size), words_of(bits, count, size)))
    used = {"a": m * k * BITS[a] // 1024, "b": n * k * BITS[b] // 1024, "c": m * n * BITS[c] // 1024, "d": m * n * BITS[d] // 1024}
    if a == "f64":
        used = {"a": 1, "b": 1, "c": 2, "d": 2}
    for x, t in (("a", a), ("b", b)):
        used[x] = 8 if t == "f16" else max(1, used[x])
    at = {"a": 0, "b": 8, "c": 16, "d": 24}
    def regs(x, t):
        return registers("g" if t == "f64" else "f" if x in "cd" and t == "f32" else "r",
                         at[x] // (4 if t == "f64" else 1), used[x])
    body = []
    where = dict((x, "%%%s" % x) for x in "abcd")
    if space == "shared":
        body.append(".shared .align 32 .b8 buf[16384];")
        for q, (name, way, t, values) in enumerate(buffers[:3]):
            body.append("mov.u32 %%r%d, buf;\nadd.u32 %%r%d, %%r%d, %d;" % (40 + q, 40 + q, 40 + q, 4096 * q))
            # A loop, since the unrolled copy would be most of what is compiled.
            body.append("mov.u32 %%r50, %%lane;\ncopy_%s:\nsetp.lt.u32 %%p0, %%r50, %d;\nmad.wide.u32 %%x, %%r50, 4, %%%s;\n"
                        "mad.lo.u32 %%r51, %%r50, 4, %%r%d;\n@%%p0 ld.global.u32 %%r52, [%%x];\n@%%p0 st.shared.u32 [%%r51], %%r52;\n"
                        "add.u32 %%r50, %%r50, 32;\nsub.u32 %%r53, %%r50, %%lane;\nsetp.lt.u32 %%p1, %%r53, %d;\n@%%p1 bra copy_%s;" %
                        (name, len(values) * size // 4, name, 40 + q, len(values) * size // 4, name))
            where[name] = "%%r%d" % (40 + q)
        body.append("bar.warp.sync -1;")
    suffix = {"": "", "global": ".global", "shared": ".shared"}[space]
    shape = "m%dn%dk%d" % (m, n, k)
    for x, t, layout in (("a", a, la), ("b", b, lb), ("c", c, lc)):
        stride = "%d" % strides[x]
        if x == "b":
            body.append("mov.u32 %%r60, %d;" % strides[x])
            stride = "%r60"
        body.append("wmma.load.%s.%s.%s.%s%s.%s %s, [%s], %s;" % (x, sync, layout, shape, suffix, t, regs(x, t), where[x], stride))
    types = "%s.%s" % (d, c) if a == "f16" else "%s.%s.%s.%s" % (d, a, b, c)
    body.append("wmma.mma%s.%s.%s.%s.%s.%s%s %s, %s, %s, %s;" % (
        operation, sync, la, lb, shape, types, ".rn" if a == "f64" else "", regs("d", d), regs("a", a), regs("b", b), regs("c", c)))
    stride = wide[ld](m, n) + pad[BITS[d]]
    body.append("wmma.store.d.%s.%s.%s.%s.%s [%%d], %s, %d;" % (sync, ld, shape, "global", d, regs("d", d), stride))
    name = "wmma_%s_%s_%s_%s_%s_%s%s%s%s%s%s%s" % (shape, d, a, b, c, space or "generic", la[0], lb[0], lc[0], ld[0],
                                                   operation.replace(".", "_"), "" if "aligned" in sync else "_sync")
    write(name, "wmma %s %s, %s" % (shape, types, space or "generic"), buffers, "\n".join(body), target, version)


def all_wmma():
    layouts = ("row", "col")
    turn = 0
    for shape in ((16, 16, 16), (32, 8, 16), (8, 32, 16)):
        for la in layouts:
            for lb in layouts:
                turn += 1
                lc, ld, space = layouts[turn & 1], layouts[turn >> 1 & 1], ("global", "shared", "")[turn % 3]
                for d, c in (("f32", "f32"), ("f16", "f16"), ("f32", "f16"), ("f16", "f32")):
                    wmma(*shape, d, "f16", "f16", c, la, lb, lc, ld, space, "sm_75", "7.0")
                wmma(*shape, "f32", "bf16", "bf16", "f32", la, lb, lc, ld, space, "sm_80", "7.0")
                for a in ("s8", "u8"):
                    wmma(*shape, "s32", a, a, "s32", la, lb, lc, ld, space, "sm_75", "7.0")
    # before PTX 6.3
    wmma(16, 16, 16, "f32", "f16", "f16", "f16", "col", "row", "col", "row", "global", "sm_70", "6.0", sync="sync")
    for la in layouts:
        for lb in layouts:
            wmma(16, 16, 8, "f32", "tf32", "tf32", "f32", la, lb, la, lb, "shared", "sm_80", "7.0")
            wmma(8, 8, 4, "f64", "f64", "f64", "f64", la, lb, lb, la, "global", "sm_80", "7.0")
    wmma(8, 8, 32, "s32", "s4", "s4", "s32", "row", "col", "row", "col", "global", "sm_75", "7.0")
    wmma(8, 8, 32, "s32", "u4", "u4", "s32", "row", "col", "col", "row", "shared", "sm_75", "7.0")
    wmma(8, 8, 128, "s32", "b1", "b1", "s32", "row", "col", "row", "row", "global", "sm_75", "7.0", ".xor.popc")
    wmma(8, 8, 128, "s32", "b1", "b1", "s32", "row", "col", "row", "row", "global", "sm_80", "7.1", ".and.popc")


def main():
    for group in (all_mma, all_quads, moves, all_wmma, all_sparse):
        group()
    os.makedirs(sys.argv[1], exist_ok=True)
    for old in os.listdir(sys.argv[1]):
        os.unlink(os.path.join(sys.argv[1], old))
    for name, text in FILES.items():
        with open(os.path.join(sys.argv[1], name + ".ptx"), "w") as f:
            f.write(text)


if __name__ == "__main__":
    main()
