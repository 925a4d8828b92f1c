#!/usr/bin/env python3
"""Programs whose kernels share a GPU, simulated or run: bench/precedence.py [--credit MS] [--slice MS] [--seconds S] [--gpu BUILD]

With --gpu the mixes run on the GPU of this machine: time-sliced, under NVIDIA's MPS, and under gmux.

The simulation is for the choice of the two bounds of src/device/cuda/precedence.h, and to see what a rule would do before it is
built. The model:
blocks of kernels start in the order in which the kernels became ready, those with precedence first; a kernel's blocks start when
the blocks of all kernels before it have started and there are threads free; kernels of a program run one after the other. What a
client has had is counted as the watch does it, at each completion and each millisecond.

Prints for each mix, without and with precedence: kernels of the programs with long kernels ("A"), then of each other program the
kernels in the time after the first second and their times, from one completion to the next.
"""
import argparse
import heapq
import itertools
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
from sharing import Failed, Program as Process, ways  # noqa: E402

THREADS = 132 * 2048  # that the GPU has room for
TICK = 1e-3
WARM_UP = 1.0

# name of the mix: (program, blocks, threads of a block, seconds of a block, kernels in flight or -kernels between two waits)
A26, B1, SMALL = ("A", 8448, 512, 1.6e-3, 2), ("B1", 528, 512, 1e-3, 1), ("small", 128, 64, 2e-3, 1)
A4 = ("A", 1056, 512, 2e-3, 2)
MIXES = {
    "kernels of 26 ms, of 1 ms": [A26, B1],
    "6 x 4 ms, 1 ms": [A4] * 6 + [B1],
    "6 x 4 ms, small of 2 ms": [A4] * 6 + [SMALL],
    "6 x 0.5 ms, small of 2 ms": [("A", 8448, 512, 31e-6, 2)] * 6 + [SMALL],
    "26 ms, 20 of 50 us between waits": [A26, ("B20", 528, 512, 50e-6, -20)],
    "2 x 26 ms, 5 ms, 1 ms": [A26] * 2 + [("B5", 1056, 512, 2.5e-3, 1), B1],
    "6 x 4 ms": [A4] * 6,
    "200 ms, 1 ms": [("A", 66000, 512, 1.6e-3, 2), B1],
}


class Program:
    def __init__(self, name, blocks, threads, block_s, in_flight):
        self.name, self.blocks, self.threads, self.block_s, self.in_flight = name, blocks, threads, block_s, in_flight
        self.needs = min(1.0, blocks * threads / THREADS)
        self.stream, self.had, self.since, self.ended, self.last, self.times = [], 0.0, 0.0, 0, 0.0, []


class Kernel:
    def __init__(self, program, precedes):
        self.program, self.precedes, self.left, self.running, self.ready = program, precedes, program.blocks, 0, 0.0


class Gpu:
    def __init__(self, programs, credit, margin):
        self.programs, self.credit, self.margin = programs, credit, margin
        self.now, self.free, self.ready = 0.0, THREADS, []
        self.mean, self.crowded_at, self.ended_at = 0.0, -1.0, 0.0
        self.events, self.order = [], itertools.count()

    def at(self, time, call, *args):
        heapq.heappush(self.events, (time, next(self.order), call, args))

    def run(self, seconds):
        for i, p in enumerate(self.programs):
            for _ in range(abs(p.in_flight)):
                self.at(1e-4 * i, self.launch, p)
        self.at(TICK, self.tick)
        while self.events and self.now < seconds:
            self.now = self.events[0][0]
            while self.events and self.events[0][0] <= self.now + 1e-9:
                _, _, call, args = heapq.heappop(self.events)
                call(*args)
            self.start()

    def launch(self, p):
        crowded = self.margin is not None and 0 <= self.crowded_at and self.now - self.crowded_at < 0.1
        kernel = Kernel(p, crowded and p.had < self.mean - self.margin)
        p.stream.append(kernel)
        if len(p.stream) == 1:
            p.since = self.now
            self.is_ready(kernel, self.now)

    def is_ready(self, kernel, when):
        kernel.ready = when
        self.ready.append(kernel)

    def start(self):
        self.ready.sort(key=lambda k: (not k.precedes, k.ready))
        while self.ready:
            kernel = self.ready[0]
            n = min(kernel.left, self.free // kernel.program.threads)
            if n:
                self.free -= n * kernel.program.threads
                kernel.left -= n
                kernel.running += n
                self.at(self.now + kernel.program.block_s, self.blocks_end, kernel, n)
            if kernel.left:
                break
            self.ready.pop(0)

    def blocks_end(self, kernel, n):
        self.free += n * kernel.program.threads
        kernel.running -= n
        if not kernel.left and not kernel.running:
            self.kernel_ends(kernel.program)

    def kernel_ends(self, p):
        p.stream.pop(0)
        self.add(p, max(0.0, self.now - max(self.ended_at, p.since)) * p.needs)
        self.ended_at = p.since = self.now
        if p.stream:
            self.is_ready(p.stream[0], self.now + 1e-6)
        p.ended += 1
        if p.in_flight > 0 or p.ended % -p.in_flight == 0:
            if self.now > WARM_UP:
                p.times.append(self.now - p.last)
            p.last = self.now
            for _ in range(max(1, -p.in_flight)):
                self.at(self.now + 1e-5, self.launch, p)

    def add(self, p, seconds):
        p.had = min(max(p.had, self.mean - self.credit) + seconds, self.mean + self.credit)

    def tick(self):
        busy = [p for p in self.programs if p.stream]
        for p in busy:
            self.add(p, 0.0)
        if busy:
            self.mean += sum(p.had - self.mean for p in busy) / len(busy)
        if len(busy) > 1 and sum(p.needs for p in busy) >= 1:
            self.crowded_at = self.now
        self.at(self.now + TICK, self.tick)


def print_simulated(args):
    for name, mix in MIXES.items():
        for rule, margin in (("without", None), ("with", args.slice / 1e3)):
            gpu = Gpu([Program(*p) for p in mix], args.credit / 1e3, margin)
            gpu.run(args.seconds)
            waits = []
            for p in gpu.programs:
                t = sorted(p.times)
                waits.append((p.name, len(t), *((1e3 * t[len(t) // 2], 1e3 * t[len(t) * 99 // 100]) if t else (0, 0))))
            print_mix(f"{name}, {rule}", waits)


def print_mix(name, waits):
    """`waits`: of each program its name, how many, their median and 99th percentile in ms."""
    long = [w for w in waits if w[0] == "A"]
    print(f"{name}: A {sum(w[1] for w in long)}; one of them",
          "; ".join(f"{w[0]} {w[1]}, p50 {w[2]:.1f}, p99 {w[3]:.1f} ms" for w in [long[0], *(w for w in waits if w[0] != "A")]), flush=True)


def run_mix(way, spin, mix, seconds):
    processes = []
    try:
        for _, blocks, threads, block_s, in_flight in mix:
            how = {1: [], 2: ["-queued"]}.get(in_flight, [f"-batch={-in_flight}"])
            processes.append(Process([spin, f"-us={round(1e6 * block_s)}", f"-blocks={blocks}", f"-threads={threads}",
                                      f"-ms={round(1e3 * seconds)}", *how], way.env(EX_GATE="1")))
        if not all(p.wait_ready(time.monotonic() + 30) for p in processes):
            raise Failed("a program did not start")
        for p in processes:
            p.go()
        ended = [p.finish(time.monotonic() + seconds + 20).words("waits") for p in processes]
        return [(program[0], int(w[1]), float(w[2]), float(w[3])) for program, w in zip(mix, ended)]
    finally:
        for p in processes:
            p.kill()


def print_measured(args):
    with tempfile.TemporaryDirectory(prefix="gmux-mixes.") as where:
        spin = str(pathlib.Path(args.gpu).resolve() / "bench/spin")
        found, missing = ways(args.gpu, args.device)
        for line in missing:
            print(f"# {line}")
        try:
            for way in found.values():
                way.start(where)
            for name, mix in MIXES.items():
                for way in found.values():
                    try:
                        print_mix(f"{name}, {'time-sliced' if way.name == 'native' else way.name}", run_mix(way, spin, mix, args.seconds))
                    except Failed as e:
                        print(f"{name}, {way.name}: {e}", flush=True)
        finally:
            for way in found.values():
                way.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--credit", type=float, default=50, help="CUDA_CREDIT_NS, in ms")
    parser.add_argument("--slice", type=float, default=12.5, help="CUDA_SLICE_NS, in ms")
    parser.add_argument("--seconds", type=float, default=3.5)
    parser.add_argument("--gpu", metavar="BUILD", help="a build directory")
    parser.add_argument("--device", default="cuda", help="soft tries the script out")
    args = parser.parse_args()
    (print_measured if args.gpu else print_simulated)(args)


if __name__ == "__main__":
    main()
