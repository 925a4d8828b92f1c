#!/usr/bin/env python3
"""Random programs in CUDA C++, whose functions host and device compute alike: random_cuda.py BUILD [--count N] [--seed S]

Each program has a few functions of integers with branches, loops, switches, local arrays, calls and recursion, which each
thread of a kernel runs on numbers of its own and on an array in shared memory of which it has one column. Threads of a warp
part all the time. The host computes the same for each thread; the kernel is launched again and again, first interpreted, then
compiled. Nothing in a program is undefined or overflows: arithmetic is that of unsigned numbers. Prints TAP; a program that
fails is kept in the folder that is named then. Without gmux-cc in the build all is skipped.
"""
import argparse
import os
import pathlib
import random
import subprocess
import sys
import tempfile

TYPES = {"int8_t": 8, "uint8_t": 8, "int16_t": 16, "uint16_t": 16, "int32_t": 32, "uint32_t": 32, "int64_t": 64, "uint64_t": 64}
WORDS = 16  # of a thread's column

HEAD = """#include <cstdint>
#include <cstdio>
#include <cstdlib>
#define BOTH __host__ __device__
template <class T> BOTH inline T divide(T a, T b) { return b == 0 || b == (T)-1 ? a : a / b; }
template <class T> BOTH inline T rest(T a, T b) { return b == 0 || b == (T)-1 ? a : a %% b; }
template <class T> BOTH inline T less(T a, T b) { return a < b ? a : b; }
template <class T> BOTH inline T more(T a, T b) { return a > b ? a : b; }
BOTH inline uint32_t turn(uint32_t a, int n) { return a << n | a >> (32 - n); }
BOTH inline uint32_t ones(uint32_t a) { uint32_t n = 0; for (; a; a &= a - 1) n++; return n; }
#define WORD(n) col[((n) & %d) * pitch]
#define FORMALS const uint64_t *in, uint32_t *col, int pitch, uint32_t id, uint64_t a, uint64_t b, int depth
""" % (WORDS - 1)

TAIL = """
BOTH inline uint64_t sum(uint64_t r, const uint32_t *col, int pitch) { for (int k = 0; k < %(words)d; k++) r = r * 31 + WORD(k); return r; }
__global__ void kernel(const uint64_t *in, uint64_t *out, uint32_t x)
{
    __shared__ uint32_t all[%(words)d * N];
    int lane = threadIdx.y * %(x)d + threadIdx.x, id = blockIdx.x * N + lane, pitch = N;
    uint32_t *col = all + lane;
    for (int k = 0; k < %(words)d; k++) WORD(k) = k * x + id;
    uint64_t r = f%(last)d(in, col, pitch, id, id * 0x9E3779B97ull + x, x * 7 + (id & 3), 3);
    __syncthreads();
    out[id] = sum(r ^ f%(some)d(in, col, pitch, id, r, x, 2), col, pitch);
}
uint64_t expected(const uint64_t *in, uint32_t id, uint32_t x)
{
    uint32_t col[%(words)d], pitch = 1;
    for (int k = 0; k < %(words)d; k++) WORD(k) = k * x + id;
    uint64_t r = f%(last)d(in, col, pitch, id, id * 0x9E3779B97ull + x, x * 7 + (id & 3), 3);
    return sum(r ^ f%(some)d(in, col, pitch, id, r, x, 2), col, pitch);
}
int main(int, char **argv)
{
    const int count = %(grid)d * N;
    static uint64_t numbers[64], got[count];
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
        for (int i = 0; i < count; i++)
            if (got[i] != expected(numbers, i, x)) { printf("turn %%d, thread %%d\\n", turn, i); return 1; }
    }
    printf("passed\\n");
}
"""


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
        op = rng.choice(["+", "-", "*", "&", "|", "^", "<<", ">>", "compare", "?", "~", "turn", "ones", "divide", "rest", "less", "more"])
        if op in "+-*&|^":
            return "(%s)((%s)(%s) %s (%s)(%s))" % (t, u, x, op, u, y)
        if op in ("<<", ">>"):
            return "(%s)((%s)(%s) %s (%s & %d))" % (t, u if op == "<<" else t, x, op, y, bits - 1)
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
            line = "uint64_t %s = f%d(in, col, pitch, id, %s, %s, depth);"
            args = rng.randrange(self.number), self.value(1), self.value(1)
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
    return "%s\n%s#define N %d\n%s" % (HEAD, "\n".join(functions), x * y, TAIL % {
        "words": WORDS, "x": x, "y": y, "grid": rng.choice([2, 3, 5]), "last": len(functions) - 1, "some": rng.randrange(len(functions)), "seed": seed})


def run(build, folder, seed):
    """What is wrong, or None."""
    source, target = folder / ("random%d.cu" % seed), folder / ("random%d" % seed)
    source.write_text(program(seed))
    options = [["-O2"], ["-O1"], ["-O3", "-arch=sm_80"], ["-O0"]][seed % 4]
    made = subprocess.run([build / "src/cudart/gmux-cc", "-w", *options, source, "-o", target], capture_output=True, text=True, timeout=300)
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
            wrong = run(build, folder, seed)
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
