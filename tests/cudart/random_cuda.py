#!/usr/bin/env python3
"""Random programs in CUDA C++, whose functions host and device compute alike: random_cuda.py BUILD [--count N] [--seed S]

Each program has a few functions with branches, loops, switches, local arrays, calls, pointers to functions and recursion, which
each thread of a kernel runs on numbers of its own and on an array in shared memory of which it has one column. Threads of a
warp part all the time. Between such phases threads come together: in shuffles and votes, of a whole warp or of some lanes, in
barriers that count, in shared memory; some end early. The host computes the same for each thread; the kernel is launched again
and again, first interpreted, then compiled. Nothing in a program is undefined or overflows: arithmetic is that of unsigned
numbers, and of floats where every step is rounded once. Prints TAP; a program that fails is kept in the folder that is named
then. Without gmux-cc in the build all is skipped. --compiler: another one instead, with its options, such as nvcc.
"""
import argparse
import os
import pathlib
import random
import subprocess
import sys
import tempfile

TYPES = {"int8_t": 8, "uint8_t": 8, "int16_t": 16, "uint16_t": 16, "int32_t": 32, "uint32_t": 32, "int64_t": 64, "uint64_t": 64}
TWO = ["sum2", "product", "both", "ratio", "root", "sumf", "bothf", "ratiof", "whole", "zeros", "perm", "funnel", "high", "wide", "paired"]
WORDS = 16  # of a thread's column

HEAD = """#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cmath>
#define BOTH __host__ __device__
template <class T> BOTH inline T divide(T a, T b) { return b == 0 || b == (T)-1 ? a : a / b; }
template <class T> BOTH inline T rest(T a, T b) { return b == 0 || b == (T)-1 ? a : a %% b; }
template <class T> BOTH inline T less(T a, T b) { return a < b ? a : b; }
template <class T> BOTH inline T more(T a, T b) { return a > b ? a : b; }
BOTH inline uint32_t turn(uint32_t a, int n) { return a << n | a >> (32 - n); }
BOTH inline double number(uint64_t a) { return (double)(int64_t)((a >> 11) - (1ull << 52)) * 0x1p-20; }
BOTH inline uint64_t bits(double d) { uint64_t b; memcpy(&b, &d, 8); return b; }
BOTH inline uint64_t bits(float f) { uint32_t b; memcpy(&b, &f, 4); return b; }
BOTH inline float small(uint64_t a) { return (float)(int32_t)a; }
BOTH inline uint64_t wide(uint64_t a, uint64_t b, int n) { unsigned __int128 p = (unsigned __int128)a * b + ~b; return (uint64_t)(p >> n) ^ (uint64_t)((__int128)(p ^ a) >> (n + 9)); }
struct Pair { uint8_t a; uint64_t b; uint16_t c; };
BOTH __attribute__((noinline)) Pair swapped(Pair p, uint32_t by) { return Pair{(uint8_t)(p.c + by), p.b * 3 + p.a, (uint16_t)(p.b ^ by)}; }
BOTH inline uint64_t paired(uint64_t a, uint64_t b) { Pair p = swapped(Pair{(uint8_t)a, b, (uint16_t)(a >> 8)}, (uint32_t)b); return p.a + p.b * 5 + p.c; }
#ifdef __CUDA_ARCH__
BOTH inline uint64_t sum2(uint64_t a, uint64_t b) { return bits(__dadd_rn(number(a), number(b))); }
BOTH inline uint64_t product(uint64_t a, uint64_t b) { return bits(__dmul_rn(number(a), number(b))); }
BOTH inline uint64_t both(uint64_t a, uint64_t b) { return bits(__fma_rn(number(a), number(b), number(a ^ b))); }
BOTH inline uint64_t ratio(uint64_t a, uint64_t b) { return bits(__ddiv_rn(number(a), number(b | 1ull << 11))); }
BOTH inline uint64_t root(uint64_t a, uint64_t b) { return bits(__dsqrt_rn((double)(a ^ b))); }
BOTH inline uint64_t sumf(uint64_t a, uint64_t b) { return bits(__fadd_rn(small(a), small(b))); }
BOTH inline uint64_t bothf(uint64_t a, uint64_t b) { return bits(__fmaf_rn(small(a), small(b), small(a + b))); }
BOTH inline uint64_t ratiof(uint64_t a, uint64_t b) { return bits(__fdiv_rn(small(a), small(b | 1))); }
BOTH inline uint64_t whole(uint64_t a, uint64_t b) { return (uint64_t)__double2ll_rd(__dmul_rn(number(a), 0x1p-9)) ^ (uint32_t)__float2int_rn(__fmul_rn(small(b), 0.25f)); }
BOTH inline uint64_t zeros(uint64_t a, uint64_t b) { return __clzll(a) * 64 + __clz((uint32_t)b) + __ffs((uint32_t)a) * 4096 + __popcll(b); }
BOTH inline uint64_t perm(uint64_t a, uint64_t b) { return __byte_perm((uint32_t)a, (uint32_t)b, (uint32_t)(a >> 32) & 0x7777u) ^ (uint64_t)__brev((uint32_t)b) << 32; }
BOTH inline uint64_t funnel(uint64_t a, uint64_t b) { return __funnelshift_l((uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b) ^ (uint64_t)__funnelshift_rc((uint32_t)a, (uint32_t)b, (uint32_t)(b >> 58)) << 32; }
BOTH inline uint64_t high(uint64_t a, uint64_t b) { return __umul64hi(a, b) ^ (uint64_t)__mul64hi((int64_t)a, (int64_t)b) ^ __umulhi((uint32_t)a, (uint32_t)b) ^ (uint32_t)__mulhi((int32_t)a, (int32_t)b) ^ (uint32_t)__mul24((int32_t)a, (int32_t)b) ^ __usad((uint32_t)a, (uint32_t)b, 7u); }
#else
BOTH inline uint64_t sum2(uint64_t a, uint64_t b) { return bits(number(a) + number(b)); }
BOTH inline uint64_t product(uint64_t a, uint64_t b) { return bits(number(a) * number(b)); }
BOTH inline uint64_t both(uint64_t a, uint64_t b) { return bits(fma(number(a), number(b), number(a ^ b))); }
BOTH inline uint64_t ratio(uint64_t a, uint64_t b) { return bits(number(a) / number(b | 1ull << 11)); }
BOTH inline uint64_t root(uint64_t a, uint64_t b) { return bits(sqrt((double)(a ^ b))); }
BOTH inline uint64_t sumf(uint64_t a, uint64_t b) { return bits(small(a) + small(b)); }
BOTH inline uint64_t bothf(uint64_t a, uint64_t b) { return bits(fmaf(small(a), small(b), small(a + b))); }
BOTH inline uint64_t ratiof(uint64_t a, uint64_t b) { return bits(small(a) / small(b | 1)); }
BOTH inline uint64_t whole(uint64_t a, uint64_t b) { return (uint64_t)(int64_t)floor(number(a) * 0x1p-9) ^ (uint32_t)(int32_t)rintf(small(b) * 0.25f); }
BOTH inline uint64_t zeros(uint64_t a, uint64_t b) { uint32_t c = (uint32_t)b, d = (uint32_t)a; return (a ? __builtin_clzll(a) : 64) * 64 + (c ? __builtin_clz(c) : 32) + __builtin_ffs(d) * 4096 + __builtin_popcountll(b); }
BOTH inline uint64_t perm(uint64_t a, uint64_t b)
{
    uint64_t all = (uint32_t)a | b << 32, r = 0, turned = 0;
    for (int k = 0; k < 4; k++) {
        uint32_t s = a >> (32 + 4 * k) & 7, byte = all >> 8 * s & 255;
        r |= (uint64_t)byte << 8 * k;
    }
    for (int k = 0; k < 32; k++) turned |= (b >> k & 1) << (31 - k);
    return r ^ turned << 32;
}
BOTH inline uint64_t funnel(uint64_t a, uint64_t b)
{
    uint64_t two = (uint32_t)a | b << 32, n = b >> 58;
    return (uint32_t)(a << (b & 31) >> 32) ^ (uint64_t)(uint32_t)(two >> (n > 32 ? 32 : n)) << 32;
}
BOTH inline uint64_t high(uint64_t a, uint64_t b)
{
    uint32_t c = (uint32_t)a, d = (uint32_t)b;
    int32_t e = (int32_t)(c << 8) >> 8, f = (int32_t)(d << 8) >> 8;
    return (uint64_t)((unsigned __int128)a * b >> 64) ^ (uint64_t)((__int128)(int64_t)a * (int64_t)b >> 64) ^ (uint64_t)c * d >> 32
        ^ (uint32_t)((int64_t)(int32_t)c * (int32_t)d >> 32) ^ (uint32_t)((int64_t)e * f) ^ ((c > d ? c - d : d - c) + 7u);
}
#endif
BOTH inline uint32_t ones(uint32_t a) { uint32_t n = 0; for (; a; a &= a - 1) n++; return n; }
#define WORD(n) col[((n) & %d) * pitch]
#define FORMALS const uint64_t *in, uint32_t *col, int pitch, uint32_t id, uint64_t a, uint64_t b, int depth
typedef uint64_t (*Function)(FORMALS);
BOTH inline Function choice(Function f, Function g, bool first) { return first ? f : g; }
""" % (WORDS - 1)

TAIL = """
BOTH inline uint64_t sum(uint64_t r, const uint32_t *col, int pitch) { for (int k = 0; k < %(words)d; k++) r = r * 31 + WORD(k); return r; }
#define LANES(t) ((t) / 32 * 32 + 32 <= N ? 0xffffffffu : (1u << (N & 31)) - 1)
__global__ void kernel(const uint64_t *in, uint64_t *out, uint32_t x)
{
    __shared__ uint32_t all[%(words)d * N], sums[4];
    int t = threadIdx.y * %(x)d + threadIdx.x, id = blockIdx.x * N + t, pitch = N;
    uint32_t *col = all + t, m = LANES(t);
    for (int k = 0; k < %(words)d; k++) WORD(k) = k * x + id;
    uint64_t r = id * 0x9E3779B97ull + x;
%(device)s
    out[id] = sum(r, col, pitch);
}
struct Thread { uint64_t r; uint32_t words[%(words)d]; bool gone; };
#define EACH for (int t = 0; t < N; t++) if (!all[t].gone)
#define WARP for (int l = 0, w = t / 32 * 32; l < 32 && w + l < N; l++)
#define R(l) before[t / 32 * 32 + (l)]
void expected(const uint64_t *in, uint64_t *out, uint32_t block, uint32_t x)
{
    static Thread all[N];
    static uint64_t before[N];
    uint32_t sums[4], pitch = 1;
    for (int t = 0; t < N; t++) {
        uint32_t *col = all[t].words, id = block * N + t;
        all[t].r = id * 0x9E3779B97ull + x;
        all[t].gone = false;
        for (int k = 0; k < %(words)d; k++) WORD(k) = k * x + id;
    }
%(host)s
    EACH out[t] = sum(all[t].r, all[t].words, 1);
}
int main(int, char **argv)
{
    const int count = %(grid)d * N;
    static uint64_t numbers[64], got[count], want[count];
    uint64_t *in, *out, z = %(seed)dull + 1;
    for (uint64_t &n : numbers) n = (z = z * 6364136223846793005ull + 1442695040888963407ull) ^ z >> 33;
    cudaDeviceSetLimit(cudaLimitStackSize, 65536);
    cudaMalloc(&in, sizeof(numbers));
    cudaMalloc(&out, sizeof(got));
    cudaMemcpy(in, numbers, sizeof(numbers), cudaMemcpyHostToDevice);
    for (int turn = 0; turn < atoi(argv[1]); turn++) {
        uint32_t x = turn * 2654435761u;
        kernel<<<%(grid)d, dim3(%(x)d, %(y)d)>>>(in, out, x);
        cudaError_t e = cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost);
        if (e) { printf("turn %%d: %%s\\n", turn, cudaGetErrorString(e)); return 1; }
        for (int b = 0; b < %(grid)d; b++) expected(numbers, want + b * N, b, x);
        for (int i = 0; i < count; i++)
            if (got[i] != want[i]) { printf("turn %%d, thread %%d\\n", turn, i); return 1; }
    }
    printf("passed\\n");
}
"""

# How threads come together: for the device, and for the host, where `before` has what each thread of the block had. The first
# ones are only for blocks whose threads are all still there.
TOGETHER = [
    ("r += __shfl_sync(m, r, ((t & 31) ^ %(k)d) < __popc(m) ? (t & 31) ^ %(k)d : t & 31);",
     "EACH { int n = (t & 31) ^ %(k)d; all[t].r += t / 32 * 32 + n < N ? R(n) : before[t]; }"),
    ("r ^= __shfl_up_sync(m, r, %(k)d, %(width)d) << 1;",
     "EACH { int n = (t & 31) - %(k)d; all[t].r ^= (n >= (t & 31) / %(width)d * %(width)d ? R(n) : before[t]) << 1; }"),
    ("r += (uint64_t)__ballot_sync(m, r >> 40 & 1) * 5 + __popc(__ballot_sync(m, r & 2));",
     "EACH { uint64_t b = 0, c = 0; WARP b |= (R(l) >> 40 & 1) << l, c += R(l) >> 1 & 1; all[t].r += b * 5 + c; }"),
    ("if (t & %(bit)d) r ^= __shfl_sync(m & %(set)s, r, (t & ~%(bit)d & 31 & __popc(m) - 1) | %(bit)d);",
     "EACH if (t & %(bit)d) { int n = N - t / 32 * 32; n = n > 32 ? 32 : n; all[t].r ^= R((t & ~%(bit)d & 31 & n - 1) | %(bit)d); }", "whole"),
    ("if (t & %(bit)d) r += __ballot_sync(m & %(set)s, r & 8); else r ^= __any_sync(m & ~%(set)s, (r & 24) == 0);",
     "EACH { uint64_t b = 0; bool any = false; WARP if ((l & %(bit)d) == (t & %(bit)d)) b |= (R(l) >> 3 & 1) << l, any |= (R(l) & 24) == 0; "
     "if (t & %(bit)d) all[t].r += b; else all[t].r ^= any; }"),
    ("r ^= __match_any_sync(m, (int)(r & 3)) * 3ull;",
     "EACH { uint64_t b = 0; WARP b |= (uint64_t)((R(l) & 3) == (before[t] & 3)) << l; all[t].r ^= b * 3; }"),
    ("__syncthreads(); { uint32_t v = all[(t + %(k)d) %% N + %(word)d * N]; __syncthreads(); r += v; }",
     "EACH all[t].r += all[(t + %(k)d) %% N].words[%(word)d];"),
    ("if (t < 4) sums[t] = 0; __syncthreads(); atomicAdd(&sums[r & 3], (uint32_t)(r >> 8)); __syncthreads(); r ^= sums[r >> 2 & 3]; __syncthreads();",
     "for (int k = 0; k < 4; k++) sums[k] = 0; EACH sums[before[t] & 3] += (uint32_t)(before[t] >> 8); EACH all[t].r ^= sums[before[t] >> 2 & 3];", "all"),
    ("r += __syncthreads_count(r >> 9 & 1);", "{ int n = 0; EACH n += before[t] >> 9 & 1; EACH all[t].r += n; }"),
    ("r ^= __syncthreads_or((r & 255) == 77) + 2 * __syncthreads_and(r & 255);",
     "{ bool some = false, every = true; EACH some |= (before[t] & 255) == 77, every &= (before[t] & 255) != 0; EACH all[t].r ^= some + 2 * every; }"),
]
LATER = 6  # from here on some threads may have ended


def together(rng, whole, gone):
    """What a phase ends with: text for the device, for the host."""
    while True:
        at = rng.randrange(LATER if gone else 0, len(TOGETHER))
        device, host, *limits = TOGETHER[at]
        if limits and ((limits[0] == "whole" and not whole) or (limits[0] == "all" and gone)):
            continue
        bit = rng.choice([1, 2, 4, 8, 16])
        some = sum(1 << n for n in range(32) if n & bit)
        values = {"k": rng.randint(1, 31), "width": rng.choice([4, 8, 16, 32]), "bit": bit, "set": "0x%xu" % some, "word": rng.randrange(WORDS)}
        values["k"] %= values["width"] if "up_sync" in device else 32
        return device % values, host % values


def phases(rng, functions, whole):
    """The kernel's phases, for the device and for the host."""
    device, host, gone = [], [], False
    for number in range(rng.randint(2, 4)):
        call = "f%d(in, %%s, pitch, %%s, %%s, x * 7 + (%%s & 3) + %d, 3)" % (functions - 1 if number == 0 else rng.randrange(functions), number)
        device.append("    r ^= %s;" % (call % ("col", "id", "r", "id")))
        host.append("    EACH { uint32_t id = block * N + t; all[t].r ^= %s; }" % (call % ("all[t].words", "id", "all[t].r", "id")))
        if number and rng.random() < 0.3:
            gone = True
            device.append("    if ((r & 7) == 5) { out[id] = r; return; }")
            host.append("    EACH if ((all[t].r & 7) == 5) { out[t] = all[t].r; all[t].gone = true; }")
        here, there = together(rng, whole, gone)
        device.append("    " + here)
        host.append("    for (int t = 0; t < N; t++) before[t] = all[t].r;\n    " + there)
    return "\n".join(device), "\n".join(host)


class Function:
    def __init__(self, rng, number):
        self.rng, self.number, self.names, self.arrays = rng, number, [("a", "uint64_t"), ("b", "uint64_t")], []
        self.made, self.loops, self.nested, self.left = 0, 0, 0, rng.randint(8, 26)

    def name(self, letter):
        self.made += 1
        return "%s%d" % (letter, self.made)

    def value(self, depth=0):
        """An expression without side effects."""
        rng = self.rng
        if depth > 2 or rng.random() < 0.25:
            kind = rng.random()
            if kind < 0.55:
                return rng.choice(self.names)[0]
            if kind < 0.65:
                t = rng.choice(list(TYPES))
                some = rng.choice([0, 1, 2, 7, 31, 32, 127, 128, 255, 32768, 65535, 0x80000000, rng.getrandbits(64)])
                return "(%s)%dull" % (t, some)
            if kind < 0.75 and self.arrays:
                a, _, n = rng.choice(self.arrays)
                return "%s[%s & %d]" % (a, self.value(depth + 1), n - 1)
            if kind < 0.85:
                return "(%s)in[%s & 63]" % (rng.choice(list(TYPES)), self.value(depth + 1))
            return "id" if kind < 0.92 else "WORD(%s)" % self.value(depth + 1)
        t = rng.choice(list(TYPES))
        bits = TYPES[t]
        u = "uint%d_t" % max(32, bits)
        x, y = self.value(depth + 1), self.value(depth + 1)
        op = rng.choice(["+", "-", "*", "&", "|", "^", "<<", ">>", "compare", "?", "~", "turn", "ones", "divide", "rest", "less", "more", *TWO])
        if op in "+-*&|^":
            return "(%s)((%s)(%s) %s (%s)(%s))" % (t, u, x, op, u, y)
        if op in ("<<", ">>"):
            return "(%s)((%s)(%s) %s (%s & %d))" % (t, u if op == "<<" else t, x, op, y, bits - 1)
        if op in TWO:
            return "%s((uint64_t)(%s), (uint64_t)(%s)%s)" % (op, x, y, ", %d" % rng.randint(1, 100) if op == "wide" else "")
        if op == "compare":
            return "((%s)(%s) %s (%s)(%s))" % (t, x, rng.choice(["<", ">", "<=", ">=", "==", "!="]), t, y)
        if op == "?":
            return "(%s & 1 ? (%s)(%s) : (%s)(%s))" % (self.value(depth + 1), t, x, t, y)
        if op == "~":
            return "(%s)~(%s)(%s)" % (t, t, x)
        if op == "turn":
            return "turn((uint32_t)(%s), %d)" % (x, rng.randint(1, 31))
        return "ones((uint32_t)(%s))" % x if op == "ones" else "%s<%s>((%s)(%s), (%s)(%s))" % (op, t, t, x, t, y)

    def change(self, place, t):
        u = "uint%d_t" % max(32, TYPES[t])
        return "%s = (%s)((%s)%s %s (%s)(%s));" % (place, t, u, place, self.rng.choice("+-*^|"), u, self.value())

    def condition(self):
        return "(%s) %s" % (self.value(), self.rng.choice(["& 1", "& 4", "> 5", "!= 0", "< 100"]))

    def statement(self, pad):
        rng, more = self.rng, pad + "    "
        self.left -= 1
        kind = rng.random() * (0.4 if self.left <= 0 or len(pad) > 20 else 1)
        if self.number and self.nested < 2 and rng.random() < 0.12:
            line = "uint64_t %s = %s(in, col, pitch, id, %s, %s, depth);"
            which = "f%d" % rng.randrange(self.number)
            if self.number > 1 and rng.random() < 0.3:
                some = [rng.randrange(self.number) for _ in range(2)]
                which = "choice(f%d, f%d, (%s) & 1)" % (*some, self.value(1))
            args = which, self.value(1), self.value(1)
            v = self.name("v")
            self.names.append((v, "uint64_t"))
            return [pad + line % (v, *args)]
        if kind < 0.22:
            v, t = rng.choice([n for n in self.names if n[0][0] != "i"])
            return [pad + self.change(v, t)]
        if kind < 0.3 and self.arrays:
            a, t, n = rng.choice(self.arrays)
            return [pad + "{ int at = %s & %d; %s }" % (self.value(1), n - 1, self.change(a + "[at]", t))]
        if kind < 0.4:
            return [pad + "{ int at = %s & %d; %s }" % (self.value(1), WORDS - 1, self.change("WORD(at)", "uint32_t"))]
        if kind < 0.6:
            lines = [pad + "if (%s) {" % self.condition(), *self.block(more)]
            if rng.random() < 0.5:
                lines += [pad + "} else {", *self.block(more)]
            return [*lines, pad + "}"]
        if kind < 0.78 and self.nested < 3 and self.loops < 4:
            return self.loop(pad, more)
        if kind < 0.88:
            n = rng.choice([3, 5, 8, 12])
            lines = [pad + "switch ((uint32_t)(%s) %% %d) {" % (self.value(), n + 1)]
            for case in range(n):
                lines += [pad + "case %d: {" % case, *self.block(more, 1), pad + "} " + ("break;" if rng.random() < 0.75 else "")]
            return [*lines, pad + "}"]
        if kind < 0.9:
            return [pad + "if (%s) return %s;" % (self.condition(), self.value())]
        t = rng.choice(list(TYPES))
        line = pad + "%s %%s = (%s)(%s);" % (t, t, self.value())
        v = self.name("v")
        self.names.append((v, t))
        return [line % v]

    def loop(self, pad, more):
        rng, i = self.rng, self.name("i")
        self.nested, self.loops = self.nested + 1, self.loops + 1
        bound = rng.choice(["%d" % rng.randint(1, 6), "(%s & 7)" % self.value(1)])
        ends = rng.choice(["", "", " && (%s & 3) != %d" % (self.value(1), rng.randint(0, 3))])
        before = list(self.names)
        self.names.append((i, "int32_t"))
        lines = [pad + "for (int32_t %s = 0, end = (int32_t)%s; %s < end%s; %s++) {" % (i, bound, i, ends, i), *self.block(more)]
        if rng.random() < 0.4:
            lines += [more + "if (%s) %s;" % (self.condition(), rng.choice(["break", "continue"])), *self.block(more, 1)]
        self.names = before
        self.nested -= 1
        return [*lines, pad + "}"]

    def block(self, pad, count=None):
        before = list(self.names)
        lines = [line for _ in range(count or self.rng.randint(1, 4)) for line in self.statement(pad)]
        self.names = before
        return lines

    def text(self):
        rng, lines = self.rng, []
        lines.append("BOTH %suint64_t f%d(FORMALS)\n{" % ("__attribute__((noinline)) " if rng.random() < 0.4 else "", self.number))
        for _ in range(rng.randint(0, 2)):
            r, t, n = self.name("r"), rng.choice(list(TYPES)), rng.choice([4, 8, 16])
            lines.append("    %s %s[%d];\n    for (int k = 0; k < %d; k++) %s[k] = (%s)(a * %d + k);" % (t, r, n, n, r, t, rng.randint(1, 99)))
            self.arrays.append((r, t, n))
        if rng.random() < 0.3:
            lines.append("    if (depth > 0 && (a & %d)) b ^= f%d(in, col, pitch, id, a >> 1, b + a, depth - 1);" % (rng.choice([1, 3]), self.number))
        for _ in range(rng.randint(4, 9)):
            lines += self.statement("    ")
        parts = ["(uint64_t)%s" % v for v, _ in self.names] + ["(uint64_t)%s[%d] * %d" % (r, rng.randrange(n), rng.randint(3, 999)) for r, _, n in self.arrays]
        return "\n".join([*lines, "    return %s;\n}\n" % " ^ ".join(parts)])


def program(seed):
    rng = random.Random(seed)
    functions = [Function(rng, k).text() for k in range(rng.randint(2, 5))]
    x, y = rng.choice([(32, 1), (33, 1), (64, 1), (96, 1), (48, 2), (20, 3), (16, 4)])
    device, host = phases(rng, len(functions), x * y % 32 == 0)
    return "%s\n%s#define N %d\n%s" % (HEAD, "\n".join(functions), x * y, TAIL % {
        "words": WORDS, "x": x, "y": y, "grid": rng.choice([2, 3, 5]), "device": device, "host": host, "seed": seed})


def run(build, folder, seed, compiler):
    """What is wrong, or None."""
    source, target = folder / ("random%d.cu" % seed), folder / ("random%d" % seed)
    source.write_text(program(seed))
    options = [["-O2"], ["-O1"], ["-O3", "-arch=sm_80"], ["-O0"]][seed % 4]
    command = compiler.split() if compiler else [build / "src/cudart/gmux-cc", *options, "-ffp-contract=off"]
    made = subprocess.run([*command, "-w", source, "-o", target], capture_output=True, text=True, timeout=300)
    if made.returncode:
        return made.stderr.strip()[:300]
    env = {k: v for k, v in os.environ.items() if not k.startswith("CUDA_")}
    env.update(CUDA_MPS_PIPE_DIRECTORY=str(folder / "none"), GMUX_CACHE_DIR="", GMUX_DEVICE="soft")
    done = subprocess.run([target, "40"], capture_output=True, text=True, timeout=300, env=env)
    return None if done.returncode == 0 and done.stdout == "passed\n" else (done.stdout or "exit status %d" % done.returncode).strip()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--compiler")
    args = parser.parse_args()
    build = args.build.resolve()
    if not (build / "src/cudart/gmux-cc").exists():
        print("1..0 # SKIP gmux-cc was not built")
        return 0
    print("1..%d" % args.count)
    failed = 0
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gmux-random."))
    for n, seed in enumerate(range(args.seed, args.seed + args.count), 1):
        try:
            wrong = run(build, folder, seed, args.compiler)
        except subprocess.TimeoutExpired:
            wrong = "timed out"
        print("%sok %d - seed %d%s" % ("not " if wrong else "", n, seed, "\n# %s, %s" % (wrong.replace("\n", "\n# "), folder) if wrong else ""), flush=True)
        failed += bool(wrong)
        for left in [] if wrong else folder.glob("random%d*" % seed):
            left.unlink()
    if not failed:
        folder.rmdir()
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
