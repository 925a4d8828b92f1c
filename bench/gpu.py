#!/usr/bin/env python3
"""A GPU shared in four ways, side by side: bench/gpu.py BUILD [--rows a,b] [--budget SECONDS] [--out FILE] [--device D]

native   one program alone, on NVIDIA's driver
sliced   the same number of programs on NVIDIA's driver, which gives each the GPU in turn
mps      under NVIDIA's MPS, where there is one on this machine
gmux     under gmux

Every row alternates between the ways and quotes medians; the programs are the same files, driver API and PTX. Daemons
are private ones. Prints a table with the goals, and writes all samples as JSON. --device soft tries the script out.
"""

import argparse
import ctypes
import datetime
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
from sharing import Failed, Program, stage, ways  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
OTHER_USER = 12345
COLUMNS = ("native", "sliced", "mps", "gmux")


class Gpu:
    """Used memory of the first GPU in MiB, from NVIDIA's management library: needs no context."""

    def __init__(self, folder):
        self.nvml = None
        for name in ([f"{folder}/libnvidia-ml.so.1"] if folder else []) + ["libnvidia-ml.so.1"]:
            try:
                self.nvml = ctypes.CDLL(name)
                break
            except OSError:
                continue
        self.handle = ctypes.c_void_p()
        if self.nvml and (self.nvml.nvmlInit_v2() or
                          self.nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.handle))):
            self.nvml = None

    def used_mib(self):
        if not self.nvml:
            raise Failed("no NVML")
        sizes = (ctypes.c_ulonglong * 3)()
        if self.nvml.nvmlDeviceGetMemoryInfo(self.handle, sizes):
            raise Failed("NVML does not tell the memory")
        return sizes[2] / 2**20

    def settled_mib(self):
        """Memory of processes that ended goes away a little later: reads until two readings agree, at most 3 s."""
        last = self.used_mib()
        for _ in range(15):
            time.sleep(0.2)
            now = self.used_mib()
            if abs(now - last) < 1:
                return now
            last = now
        return last

    def name(self):
        text = ctypes.create_string_buffer(96)
        return text.value.decode() if self.nvml and not self.nvml.nvmlDeviceGetName(self.handle, text, 96) else "no GPU"

    def driver(self):
        text = ctypes.create_string_buffer(96)
        ok = self.nvml and not self.nvml.nvmlSystemGetDriverVersion(text, 96)
        return text.value.decode() if ok else ""


class Bench:
    def __init__(self, folder, tree, found, gpu, args, end):
        self.folder, self.tree, self.ways, self.gpu, self.args, self.end = folder, tree, found, gpu, args, end
        self.samples, self.reasons, self.logs, self.clients = {}, [], {}, {}

    def tool(self, name):
        return str(self.tree / ("examples" if name == "nbody" else "bench") / name)

    def way(self, column):
        return self.ways.get("native" if column == "sliced" else column)

    def left(self):
        return self.end - time.monotonic()

    def sample(self, row, column, call):
        """Takes one sample, `call(way)`, which gives a number or {row: number}. A column whose first sample
        fails is left out."""
        way, seen = self.way(column), self.samples.setdefault(row, {})
        if not way or isinstance(seen.get(column), str):
            return
        try:
            if self.left() < 5:
                raise Failed("no time left")
            value = call(way)
            for name, v in (value if isinstance(value, dict) else {row: value}).items():
                self.samples.setdefault(name, {}).setdefault(column, []).append(v)
        except (Failed, OSError, ValueError, IndexError) as e:
            why = str(e) or type(e).__name__
            seen.setdefault(column, why)
            self.reasons.append(f"{row}, {column}: {why}")

    def keep_logs(self, way):
        """Before its daemon ends: they are written out beside the table. How many clients the daemon's log names: a
        column whose programs went elsewhere shows."""
        self.logs[way.name] = way.logs()
        self.clients[way.name] = sum(t.count("NEW CLIENT") for t in self.logs[way.name].values())

    def limit(self, seconds):
        return max(1.0, min(seconds, self.left()))

    def rounds(self, row, count, *calls):
        """`calls`: (column, function of a way)."""
        for _ in range(min(count, self.args.rounds)):
            for column, call in calls:
                self.sample(row, column, call)


def bench_launch(b):
    def once(way):
        r = way.run([b.tool("launch")], b.limit(30))
        return {"enqueue": float(r.words("enqueue")[1]) / 1e3, "launch_sync": float(r.words("launch_sync")[1]) / 1e3}
    b.rounds("enqueue", 5, *((c, once) for c in ("native", "mps", "gmux")))


def bench_graph(b):
    def once(way):
        return float(way.run([b.tool("graph")], b.limit(30)).words("graph_done")[1]) / 1e3
    b.rounds("graph", 3, *((c, once) for c in ("native", "mps", "gmux")))


def bench_start(b):
    def once(way):
        now = time.clock_gettime(time.CLOCK_MONOTONIC)
        return float(way.run([b.tool("first_kernel"), repr(now)], b.limit(30)).lines[-1])
    for c in ("native", "mps", "gmux"):  # fills the driver's code cache, starts the servers
        if b.way(c):
            b.way(c).run([b.tool("first_kernel"), "0"], b.limit(30), check=False)
    b.rounds("start", 5, *((c, once) for c in ("native", "mps", "gmux")))


def summed(b, argv, count, word):
    def once(way):
        return sum(float(r.words(word)[1]) for r in way.together(argv, count, b.limit(40)))
    return once


def bench_together(b, row, argv, count, word, rounds):
    b.rounds(row, rounds, ("native", summed(b, argv, 1, word)),
             *((c, summed(b, argv, count, word)) for c in ("sliced", "mps", "gmux")))


def bench_rate(b):
    bench_together(b, "launches_8", [b.tool("rate"), "1.5"], 8, "launches", 3)


def bench_spin(b):
    bench_together(b, "kernels_10", [b.tool("spin"), "-ms=1500"], 10, "kernels", 3)


def bench_nbody(b):
    bodies, iterations = ("65536", "400") if b.args.device == "cuda" else ("2048", "20")
    argv = [b.tool("nbody"), "-benchmark", f"-numbodies={bodies}", f"-iterations={iterations}"]
    bench_together(b, "nbody_3", argv, 3, "=", 2)


def bench_copy(b):
    def once(way):
        values = {}
        for kind in ("pinned", "pageable"):
            r = way.run([b.tool("copy")] + (["-pinned"] if kind == "pinned" else []), b.limit(40))
            values[f"{kind}_h2d"] = float(r.words("host_to_device")[1])
            values[f"{kind}_d2h"] = float(r.words("device_to_host")[1])
        return values
    b.rounds("pinned_h2d", 3, *((c, once) for c in ("native", "mps", "gmux")))


def open_idle(b, way, programs, count, deadline):
    """Starts `count` idle clients more; how many of them came up."""
    new = [Program([b.tool("idle_client")], way.env()) for _ in range(count)]
    programs += new
    return sum([p.wait_ready(deadline) for p in new])


def open_all(b, way, programs, count, deadline):
    if open_idle(b, way, programs, count, deadline) != count:
        said = [x for p in programs for x in p.errors if x.strip()][-1:]
        raise Failed("a client did not come up" + "".join(f": {x[:160]}" for x in said))


def close_idle(programs):
    """Ends them; what they wrote to standard error."""
    for p in programs:
        p.go()
    deadline = time.monotonic() + 10
    for p in programs:
        p.finish(deadline, check=False)
    return [x for p in programs for x in p.errors if x.strip()]


def bench_memory(b):
    def slope(count):
        def once(way):
            programs, deadline = [], time.monotonic() + b.limit(40)
            try:
                open_all(b, way, programs, 1, deadline)
                one = b.gpu.settled_mib()
                open_all(b, way, programs, count, deadline)
                return (b.gpu.settled_mib() - one) / count
            finally:
                close_idle(programs)
        return once
    b.rounds("idle_memory", 1, ("native", slope(4)), ("mps", slope(4)), ("gmux", slope(16)))


def bench_clients(b):
    """In groups, until one does not come up whole. A program that waits in a queue is not served: it has 20 s."""
    def most(limit):
        def once(way):
            programs, total = [], 0
            if b.left() <= 30:
                raise Failed("no time left")
            try:
                while total < limit and b.left() > 30:
                    group = min(50, limit - total)
                    came = open_idle(b, way, programs, group, time.monotonic() + min(20, b.left() - 15))
                    total += came
                    if came < group:
                        break
                return total
            finally:
                for p in programs:
                    if not p.ready.is_set():
                        p.kill()
                errors = close_idle(programs)
                if errors and total < limit:
                    b.reasons.append(f"clients, {way.name}: after {total}: {errors[-1][:160]}")
        return once
    b.rounds("clients", 1, ("mps", most(64)), ("gmux", most(b.args.clients)))


def bench_neighbours(b):
    """Of 4 idle clients, how many still have their memory and go on after another client's kernel wrote where it must
    not. The last row: NVIDIA's server needs a while after it."""
    def once(way):
        programs = []
        try:
            open_all(b, way, programs, 4, time.monotonic() + b.limit(30))
            if not way.run([b.tool("wild")], b.limit(20)).words("fault"):
                raise Failed("no fault")
            for p in programs:
                p.go()
            return sum(p.finish(time.monotonic() + 20, check=False).status == 0 for p in programs)
        finally:
            for p in programs:
                p.kill()
    b.rounds("neighbours", 1, ("sliced", once), ("mps", once), ("gmux", once))


def cpu_ns(pids):
    """Processor time of each thread in nanoseconds: in clock ticks, of 10 ms, what idle processes use does not show, or is one tick."""
    times = {}
    for pid in pids:
        for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
            try:
                times[task] = int((task / "schedstat").read_text().split()[0])
            except OSError:
                continue
    if not times:
        raise Failed("the kernel does not tell threads' nanoseconds")
    return times


def bench_idle_cpu(b):
    """Processor time of daemon, server and executor while 8 clients do nothing, in per cent of one core. For longer than any of
    their threads sleeps at a time (5 s)."""
    def once(way):
        programs = []
        try:
            open_all(b, way, programs, 8, time.monotonic() + b.limit(30))
            time.sleep(1)
            pids = way.pids()
            before, t0 = cpu_ns(pids), time.monotonic()
            time.sleep(6)
            after, t1 = cpu_ns(pids), time.monotonic()
            return 100e-9 * sum(ns - before.get(t, 0) for t, ns in after.items()) / (t1 - t0)
        finally:
            close_idle(programs)
    b.rounds("idle_cpu", 1, ("mps", once), ("gmux", once))


def bench_second_user(b):
    """A job of 2 s (small kernels; how many that are is measured alone) of another user, while the first user's
    program is busy for 5 s. From its start to its end; the native column has the job alone. In a row of its own the
    same under daemons with -M: one server, and so one context, for both users."""
    alone = b.samples.get("kernels_10", {}).get("native")
    base = statistics.median(alone) if isinstance(alone, list) else 16000 if b.args.device == "cuda" else 400
    job = [b.tool("spin"), f"-kernels={max(1, int(2 * base))}"]
    if os.getuid() != 0:
        b.reasons.append("second_user: needs root, to start a program as another user")
        return

    def once(way, busy=True):
        home = pathlib.Path(tempfile.mkdtemp(prefix="gmux-user."))
        os.chown(home, OTHER_USER, OTHER_USER)
        first = Program([b.tool("spin"), "-ms=5000"], way.env(EX_GATE="1")) if busy else None
        try:
            if busy:
                if not first.wait_ready(time.monotonic() + 20):
                    raise Failed("the first user's program did not start")
                first.go()
            return way.run(job, b.limit(25), user=OTHER_USER, HOME=str(home), CUDA_CACHE_PATH=str(home)).seconds
        finally:
            if busy:
                first.kill()
                first.finish(time.monotonic() + 5, check=False)
            for path in sorted(home.rglob("*"), reverse=True):
                path.rmdir() if path.is_dir() else path.unlink()
            home.rmdir()
    b.rounds("second_user", 1, ("native", lambda w: once(w, busy=False)), ("sliced", once), ("mps", once), ("gmux", once))

    def shared(way):
        one = way.variant(f"{way.name}-M", "-M")
        one.start(b.folder)
        try:
            return once(one)
        finally:
            b.keep_logs(one)
            one.stop()
    b.rounds("second_user_M", 1, ("mps", shared), ("gmux", shared))


BESIDE_MS = (5, 30, 200, 2000, 60000)  # the last one does not end while it matters


def bench_begin(b):
    """Four short programs that begin at the same time, one second after one that runs kernels of 8 blocks of 128 threads back to
    back: seconds until the last one has ended."""
    small = ["-benchmark", "-numbodies=8192", "-iterations=5"] if b.args.device == "cuda" else ["-benchmark", "-numbodies=512",
                                                                                           "-iterations=2"]
    programs = [[b.tool(f"../examples/{p}")] for p in ("vecadd", "reduction", "matmul")] + [[b.tool("nbody"), *small]]

    def beside(ms):
        def once(way):
            long = Program([b.tool("spin"), f"-us={ms * 1000}", "-ms=60000", "-queued"], way.env(EX_GATE="1"))
            try:
                if not long.wait_ready(time.monotonic() + 20):
                    raise Failed("the program with long kernels did not start")
                long.go()
                time.sleep(1)
                short = [Program(argv, way.env()) for argv in programs]
                deadline = time.monotonic() + b.limit(30)
                return max(p.finish(deadline).seconds for p in short)
            finally:
                long.kill()
                long.finish(time.monotonic() + 5, check=False)
        return once

    def alone(way):
        short = [Program(argv, way.env()) for argv in programs]
        deadline = time.monotonic() + b.limit(30)
        return max(p.finish(deadline).seconds for p in short)
    b.rounds("begin_alone", 3, *((c, alone) for c in ("native", "mps", "gmux")))
    for ms in BESIDE_MS:
        b.rounds(f"begin_{ms}", 3, *((c, beside(ms)) for c in (("sliced",) if ms < 60000 else ()) + ("mps", "gmux")))


def bench_kept(b):
    """A program that runs small kernels all the while, and others that begin: its worst second, as a part of a second alone."""
    starts = [b.tool("../examples/vecadd"), b.tool("../examples/reduction"), b.tool("../examples/matmul")]

    def once(way):
        alone = float(way.run([b.tool("spin"), "-ms=2100"], b.limit(20)).words("kernels")[1])
        small = Program([b.tool("spin"), "-ms=5000"], way.env(EX_GATE="1"))
        try:
            if not small.wait_ready(time.monotonic() + 20):
                raise Failed("the program with small kernels did not start")
            small.go()
            begin = time.monotonic()
            for i in range(6):  # as often as every way can
                time.sleep(max(0, begin + 0.75 * i - time.monotonic()))
                for p in [Program([s], way.env()) for s in starts]:
                    p.finish(time.monotonic() + 20)
            return float(small.finish(time.monotonic() + 20).words("worst_second")[1]) / alone
        finally:
            small.kill()
    b.rounds("kept", 2, *((c, once) for c in ("sliced", "mps", "gmux")))


GPU_FULL = 2112  # blocks of 128 threads that an H100 or H200 has room for


def bench_fair(b):
    """Kernels of 1 ms that fill the GPU, one after the other, beside a program with kernels of 26 ms that do, too: how many of
    them a second, and of the others."""
    full = GPU_FULL if b.args.device == "cuda" else 8

    def once(way):
        long = Program([b.tool("spin"), "-us=6500", f"-blocks={4 * full}", "-ms=4000", "-queued"], way.env(EX_GATE="1"))
        short = Program([b.tool("spin"), "-us=1000", f"-blocks={full}", "-ms=3000"], way.env(EX_GATE="1"))
        try:
            if not all(p.wait_ready(time.monotonic() + 20) for p in (long, short)):
                raise Failed("a program did not start")
            long.go()
            short.go()
            deadline = time.monotonic() + 20
            return {f"fair_{name}": float(p.finish(deadline).words("kernels")[1]) for name, p in (("short", short), ("long", long))}
        finally:
            long.kill()
            short.kill()
    b.rounds("fair_short", 3, *((c, once) for c in ("sliced", "mps", "gmux")))


def bench_event(b):
    def once(way):
        r = way.run([b.tool("event")], b.limit(30))
        return {"late": float(r.words("late ")[1]), "late_timed": float(r.words("late_timed")[1]),
                "late_long": float(r.words("late_long")[1]),
                "elapsed": float(r.words("elapsed")[1]), "first_of_two": float(r.words("first")[1])}
    b.rounds("late", 3, *((c, once) for c in ("native", "mps", "gmux")))


def bench_torch(b):
    """PyTorch processes that train a small network; the seconds from the common start to the end of the last one."""
    argv = [sys.executable, str(ROOT / "tests/frameworks/mlp.py"), "--steps", str(b.args.torch_steps), "--quiet"]

    def once(count):
        def go(way):
            results = [json.loads(r.lines[-1]) for r in way.together(argv, count, b.limit(75), cwd="/")]
            if any(r.get("skip") for r in results):
                raise Failed(results[0]["skip"])
            return max(r["end"] for r in results) - min(r["begin"] for r in results)
        return go
    b.rounds("torch_1", 2, *((c, once(1)) for c in ("native", "gmux")))
    b.rounds("torch_10", 1, ("native", once(1)), *((c, once(10)) for c in ("sliced", "mps", "gmux")))


# name: what it is, unit, goal "must", goal "wants" (a function of the medians of the row, or none), measured by
ROWS = {
    "enqueue": ("enqueue one launch, p50", "us", lambda m: ("<=", 0.5), lambda m: ("<=", 0.2), bench_launch),
    "launch_sync": ("launch + sync, p50", "us", lambda m: ("<=", 9.5), lambda m: ("<=", 8.2), None),
    "graph": ("graph of 100 empty kernels until done, p50", "us", None, None, bench_graph),
    "launches_8": ("launches/s, 8 clients", "1/s", lambda m: (">=", 0.85e6), lambda m: (">=", 1.5e6), bench_rate),
    "kernels_10": ("small kernels/s, 10 clients", "1/s", lambda m: (">=", 150e3), lambda m: (">=", 169e3), bench_spin),
    "nbody_3": ("n-body, 3 clients, sum", "G/s", lambda m: (">=", 1585), lambda m: (">=", 1617), bench_nbody),
    "torch_10": ("10 PyTorch MLPs, 3,000 steps", "s", lambda m: ("<=", 3.9), lambda m: ("<=", 3.1), bench_torch),
    "torch_1": ("1 PyTorch MLP, 3,000 steps", "s", lambda m: ("<=", m["native"] / 0.95), lambda m: ("<=", m["native"]),
                None),
    "idle_memory": ("GPU memory per further idle client", "MiB", lambda m: ("<=", 20), lambda m: ("<=", 15),
                    bench_memory),
    "pinned_h2d": ("pinned copy to the device", "GB/s", lambda m: (">=", 53), lambda m: (">=", 55), bench_copy),
    "pinned_d2h": ("pinned copy from the device", "GB/s", lambda m: (">=", 53), lambda m: (">=", 55), None),
    "pageable_h2d": ("pageable copy to the device", "GB/s", lambda m: (">=", m["native"]), None, None),
    "pageable_d2h": ("pageable copy from the device", "GB/s", lambda m: (">=", m["native"]), None, None),
    "start": ("from exec to the end of the first kernel", "ms", lambda m: ("<=", m["native"] + 50),
              lambda m: ("<=", m["native"]), bench_start),
    "idle_cpu": ("daemons' CPU use, 8 clients idle", "% of a core", lambda m: ("<=", 0.1), None, bench_idle_cpu),
    "second_user": ("a second user's 2 s job", "s", lambda m: ("<=", 2.2), None, bench_second_user),
    "second_user_M": ("the same, one server for both users (-M)", "s", lambda m: ("<=", 2.2), None, None),
    "clients": ("clients at once", "", lambda m: (">=", 100), lambda m: (">=", 250), bench_clients),
    "late": ("event seen after the work before it, longer work behind, p50", "us", lambda m: ("<=", 30), None, bench_event),
    "late_timed": ("the same, with timing", "us", lambda m: ("<=", 30), None, None),
    "late_long": ("the same behind 40 ms", "us", lambda m: ("<=", 30), None, None),
    "elapsed": ("between events around 100 us", "us", lambda m: ("<=", m["native"] + 5), None, None),
    "first_of_two": ("first event of two behind 150 ms each", "ms", lambda m: ("<=", m["native"] + 1), None, None),
    "begin_alone": ("four programs begin, alone", "s", lambda m: ("<=", m["mps"]), None, bench_begin),
    "begin_5": ("the same beside kernels of 5 ms", "s", lambda m: ("<=", m["mps"]), None, None),
    "begin_30": ("of 30 ms", "s", lambda m: ("<=", m["mps"] + 0.3), None, None),
    "begin_200": ("of 200 ms", "s", lambda m: ("<=", m["mps"] + 0.5), None, None),
    "begin_2000": ("of 2 s", "s", lambda m: ("<=", m["mps"] + 1), None, None),
    "begin_60000": ("of one that does not end", "s", lambda m: ("<=", m["mps"] + 1), None, None),
    "kept": ("small kernels' worst second while others begin, of one alone", "", lambda m: (">=", 0.9), None, bench_kept),
    "fair_short": ("kernels of 1 ms/s beside kernels of 26 ms", "1/s", lambda m: (">=", 3 * m["mps"]), None, bench_fair),
    "fair_long": ("of those of 26 ms", "1/s", lambda m: (">=", 0.5 * m["mps"]), None, None),
    "neighbours": ("idle clients of 4 that survive a neighbour's fault", "", lambda m: (">=", 4), None, bench_neighbours),
}


def goal(function, medians):
    """("met" or "missed", text) of a goal; where there is no number to compare, nothing."""
    try:
        sign, bound = function(medians)
    except (KeyError, TypeError):
        return "", ""
    met = "gmux" in medians and (medians["gmux"] <= bound if sign == "<=" else medians["gmux"] >= bound)
    return ("met" if met else "missed") if "gmux" in medians else "", f"{sign} {number(bound)}"


def number(v):
    return f"{v:,.0f}" if abs(v) >= 1000 else f"{v:.3g}"


def table(b):
    rows, lines = [], ["| | unit | " + " | ".join(COLUMNS) + " | must | wants | |", "|" + "---|" * 9]
    for name, (title, unit, must, wants, _) in ROWS.items():
        seen = b.samples.get(name, {})
        medians = {c: statistics.median(v) for c, v in seen.items() if isinstance(v, list)}
        failed = isinstance(seen.get("gmux"), str)
        verdict, must_text = goal(must, medians)
        reached, wants_text = goal(wants, medians) if wants else ("", "")
        cells = [number(medians[c]) if c in medians else "failed" if c in seen else "–" for c in COLUMNS]
        if seen:
            lines.append(f"| {title} | {unit} | " + " | ".join(cells) +
                         f" | {must_text} | {wants_text} | {'failed' if failed else 'wants' if reached == 'met' else verdict} |")
        rows.append({"row": name, "title": title, "unit": unit, "medians": medians, "samples": seen, "must": must_text,
                     "wants": wants_text, "verdict": verdict})
    return rows, lines


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("build")
    p.add_argument("--rows", help="these rows only, with commas; a row stands for all that its program measures")
    p.add_argument("--budget", type=float, default=355, help="seconds for everything")
    p.add_argument("--out", help="the JSON file; default BUILD/gpu.json")
    p.add_argument("--device", default="cuda")
    p.add_argument("--clients", type=int, default=300, help="where the count of clients at once stops")
    p.add_argument("--torch-steps", type=int, default=3000)
    p.add_argument("--rounds", type=int, default=99, help="of each row at most; a quick look")
    args = p.parse_args()
    begin = time.monotonic()
    chosen = args.rows.split(",") if args.rows else list(ROWS)
    if any(r not in ROWS for r in chosen):
        p.error("rows: " + ", ".join(ROWS))
    with tempfile.TemporaryDirectory(prefix="gmux-gpu.") as folder:
        os.chmod(folder, 0o755)
        tree = stage(args.build, pathlib.Path(folder) / "build")
        found, missing = ways(tree, args.device)
        gpu = Gpu(found["native"].library if "native" in found else None)
        machine = f"{gpu.name()}, driver {gpu.driver()}, {os.cpu_count()} cores"
        print(machine, *missing, sep="\n", flush=True)
        b = Bench(folder, tree, found, gpu, args, begin + args.budget)
        try:
            for way in list(found.values()):
                try:
                    way.start(folder)
                except Failed as e:
                    b.reasons.append(f"{way.name}: {e}")
                    del found[way.name]
            for name, row in ROWS.items():
                if name in chosen and row[4]:
                    t0 = time.monotonic()
                    row[4](b)
                    print(f"# {name}: {time.monotonic() - t0:.1f} s", flush=True)
        finally:
            for way in found.values():
                if way.control:
                    b.keep_logs(way)
                way.stop()
    rows, lines = table(b)
    out = pathlib.Path(args.out or pathlib.Path(args.build) / "gpu.json")
    out.write_text(json.dumps({"machine": machine, "date": datetime.date.today().isoformat(), "missing": missing,
                               "rows": rows, "failures": b.reasons, "clients_connected": b.clients,
                               "seconds": round(time.monotonic() - begin, 1)}, indent=1) + "\n")
    for name, files in b.logs.items():
        for file, text in files.items():
            out.with_suffix(f".{name}-{file}").write_text(text[-200000:])
    print(*lines, sep="\n")
    for reason in b.reasons:
        print("failed:", reason)
    print(f"clients that the daemons saw: {b.clients}; {time.monotonic() - begin:.0f} s; written to {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
