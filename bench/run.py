#!/usr/bin/env python3
"""The project's measurements: bench/run.py BUILD [NAME ...]. Prints a table and writes BUILD/bench.json.

Every ratio comes from one run in which the variants alternate; medians are quoted, with the spread of the rounds.
A row: {bench, device, unit, columns: {name: value}}. "must" and "wants" are the goals that docs/measurements.md has.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

import operate

BODIES = "16384"
ROUNDS = 5


class Bench:
    def __init__(self, build):
        self.build = pathlib.Path(build).resolve()
        self.rows = []
        self.control = str(self.build / "src/control/gmux-control")

    def example(self, name):
        return str(self.build / "examples" / name)

    def tool(self, name):
        return str(self.build / "bench" / name)

    def env(self, **extra):
        e = dict(os.environ, LD_LIBRARY_PATH=str(self.build / "src/client"), CUDA_MPS_PIPE_DIRECTORY="/nonexistent")
        for key in ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "GMUX_DEVICE", "GMUX_LOG"):
            e.pop(key, None)
        e.update(extra)
        return e

    @contextlib.contextmanager
    def daemon(self, **extra):
        """A control daemon in private directories; yields the environment of its clients, which run under it or not at all."""
        with tempfile.TemporaryDirectory(prefix="gmux-bench.") as d:
            e = self.env(CUDA_MPS_PIPE_DIRECTORY=d, CUDA_MPS_LOG_DIRECTORY=d, GMUX_REQUIRE="1", **extra)
            subprocess.run([self.control, "-d"], env=e, check=True)
            try:
                yield e
            finally:
                subprocess.run([self.control, "quit", "-t", "1"], env=e, check=False, stdout=subprocess.DEVNULL)

    def row(self, bench, device, unit, **columns):
        self.rows.append({"bench": bench, "device": device, "unit": unit,
                          "columns": {k: round(v, 4) for k, v in columns.items()}})
        cells = "  ".join(f"{k} {v:.4g}" for k, v in columns.items())
        print(f"{bench:24} {device:5} {unit:18} {cells}", flush=True)


def output(args, env, **kw):
    return subprocess.run(args, env=env, check=True, capture_output=True, text=True, **kw).stdout


def nbody_rate(text):
    return float(re.search(r"= ([0-9.]+) billion interactions", text).group(1))


def nbody_args(b, iterations):
    return [b.example("nbody"), "-benchmark", f"-numbodies={BODIES}", f"-iterations={iterations}"]


def spread(values):
    return max(values) / min(values) - 1


def bench_nbody(b):
    """One client on the software device against the best C loop, all cores, alternating."""
    ours, loops = [], {}
    output(nbody_args(b, 5), b.env())  # fills the code cache
    for _ in range(ROUNDS):
        ours.append(nbody_rate(output(nbody_args(b, 30), b.env())))
        for line in output([b.tool("nbody_cpu"), BODIES, "6"], b.env()).splitlines():
            name, rate = line.split()
            loops.setdefault(name, []).append(float(rate))
    best = max(loops, key=lambda k: statistics.median(loops[k]))
    c = statistics.median(loops[best])
    g = statistics.median(ours)
    b.row("nbody", "soft", "G interactions/s", gmux=g, best_c=c, ratio=g / c, spread=spread(ours), must=0.85, wants=0.97)


def run_together(b, env, count, iterations):
    """Rates of `count` clients over the time in which all of them run: each prints its own rate, all start at once."""
    procs = [subprocess.Popen(nbody_args(b, iterations), env=env, stdout=subprocess.PIPE, text=True)
             for _ in range(count)]
    rates = [nbody_rate(p.communicate()[0]) for p in procs]
    if any(p.returncode for p in procs):
        raise RuntimeError("a client failed")
    return rates


def bench_three(b, limit):
    alone, sums, each = [], [], []
    with b.daemon() as e:
        limited = dict(e, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=str(limit)) if limit else e
        for _ in range(ROUNDS):
            alone += run_together(b, e, 1, 30)
            rates = run_together(b, limited, 3, 30)
            sums.append(sum(rates))
            each.append(rates)
    a = statistics.median(alone)
    if limit:
        shares = [r / a for rates in each for r in rates]
        b.row(f"three_at_{limit}", "soft", "of one alone", median=statistics.median(shares), least=min(shares),
              most=max(shares), sum=statistics.median(sums) / a, must_least=0.315, must_most=0.345)
    else:
        deviations = [abs(r / (sum(rates) / 3) - 1) for rates in each for r in rates]
        b.row("three_unlimited", "soft", "of one alone", sum=statistics.median(sums) / a,
              deviation=statistics.median(deviations), worst_deviation=max(deviations), must_sum=0.97,
              must_deviation=0.05)


def bench_launch(b):
    """Client and executor on different cores where there are two; the null device computes nothing."""
    results = {}
    for _ in range(ROUNDS):
        for line in output([b.tool("launch")], b.env(GMUX_DEVICE="null")).splitlines():
            name, p50, p99, cycles = line.split()
            results.setdefault(name, []).append((float(p50), float(p99), float(cycles)))
    goals = {"enqueue": (500, 200), "launch_sync": (5000, 2000)}
    for name, runs in results.items():
        b.row(name, "null", "ns", p50=statistics.median(r[0] for r in runs), p99=statistics.median(r[1] for r in runs),
              cycles=statistics.median(r[2] for r in runs), must=goals[name][0], wants=goals[name][1])


def first_kernel(b, env):
    return float(output([b.tool("first_kernel"), repr(time.clock_gettime(time.CLOCK_MONOTONIC))], env))


def bench_first_kernel(b):
    cold, warm, served = [], [], []
    with tempfile.TemporaryDirectory(prefix="gmux-cache.") as cache, b.daemon(GMUX_CACHE_DIR=cache) as daemon:
        first_kernel(b, daemon)
        for i in range(2 * ROUNDS):
            empty = pathlib.Path(cache) / f"cold{i}"
            empty.mkdir(mode=0o700)
            cold.append(first_kernel(b, b.env(GMUX_CACHE_DIR=str(empty))))
            warm.append(first_kernel(b, b.env(GMUX_CACHE_DIR=cache)))
            served.append(first_kernel(b, daemon))
    b.row("first_kernel", "soft", "ms", cold=statistics.median(cold), warm=statistics.median(warm),
          served=statistics.median(served), must_cold=250, must_warm=60, must_served=25)


def bench_copy(b):
    runs = {}
    for _ in range(3):
        for line in output([b.tool("copy")], b.env()).splitlines():
            name, ours, plain = line.split()
            runs.setdefault(name, []).append((float(ours), float(plain)))
    for name, r in runs.items():
        g, m = statistics.median(x[0] for x in r), statistics.median(x[1] for x in r)
        b.row(f"copy_{name}", "soft", "GB/s", gmux=g, memcpy=m, ratio=g / m, must=0.8, wants=1.0)


def private_kib(pid):
    """What a process would give back: private pages and its share of shared ones."""
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(x) for x in re.findall(r"^(?:Private_Clean|Private_Dirty|Shared_Dirty): +(\d+) kB", text, re.M))


def descendants(pid):
    found = [pid]
    for p in found:
        for task in pathlib.Path(f"/proc/{p}/task").glob("*/children"):
            found += [int(c) for c in task.read_text().split()]
    return found


def bench_idle_client(b):
    """Resident memory that one more idle client costs in server and executor: the slope over eight clients."""
    def resident(e):
        server = int(output([b.control, "get_server_list"], e).split()[0])
        return sum(private_kib(p) for p in descendants(server))

    with b.daemon() as e:
        clients, sizes = [], []
        try:
            for _ in range(9):
                p = subprocess.Popen([b.tool("idle_client")], env=e, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     text=True)
                clients.append(p)
                p.stdout.readline()
                sizes.append(resident(e))
        finally:
            for p in clients:
                p.communicate("\n")
    b.row("idle_client", "soft", "MiB", each=(sizes[-1] - sizes[0]) / (len(sizes) - 1) / 1024, must=2.0, wants=0.5)


def bench_kernels(b):
    """Kernels as programs have them, compiled, against loops in C: one thread, alternating."""
    text = output([b.tool("kernel_set")], b.env())
    for name, n, ours, best in re.findall(r"^(\w+) +n=(\d+) +gmux +([0-9.]+) us, C +([0-9.]+) us", text, re.M):
        b.row(f"kernel {name} {n}", "soft", "us", gmux=float(ours), c=float(best), ratio=float(best) / float(ours))


BENCHES = {
    "kernels": bench_kernels,
    "nbody": bench_nbody,
    "three_unlimited": lambda b: bench_three(b, 0),
    "three_limited": lambda b: bench_three(b, 33),
    "launch": bench_launch,
    "first_kernel": bench_first_kernel,
    "copy": bench_copy,
    "idle_client": bench_idle_client,
    **operate.BENCHES,
}


def cpu_model():
    m = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return m.group(1) if m else platform.processor()


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("build")
    p.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHES) + "; default: all")
    args = p.parse_args()
    if any(n not in BENCHES for n in args.names):
        p.error("names: " + ", ".join(BENCHES))
    b = Bench(args.build)
    if not os.access(b.control, os.X_OK):
        p.error(f"{args.build} is no build tree")
    machine = f"{cpu_model()}, {os.cpu_count()} cores"
    date = datetime.date.today().isoformat()
    print(f"{machine}, {date}")
    for name in args.names or BENCHES:
        BENCHES[name](b)
    target = b.build / "bench.json"
    target.write_text(json.dumps({"machine": machine, "date": date, "rows": b.rows}, indent=1) + "\n")
    print(f"written to {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
