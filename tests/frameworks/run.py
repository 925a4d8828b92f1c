#!/usr/bin/env python3
"""PyTorch, CuPy and JAX programs natively and through gmux: run.py BUILD [NAME ...] [--out JSON]. Prints TAP and a table.

All programs run natively, some at a time, then through gmux under a daemon of its own, again some at a time, then some
alone: those that measure memory or time. A program passes when its results are those of the native run. Skipped where
there is no torch, no GPU or no genuine driver.
"""

import argparse
import concurrent.futures
import importlib.util
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "scripts"))
from sharing import Failed, Program, ways  # noqa: E402

# name: program with arguments, whether it runs alone
PROGRAMS = {
    "mlp": (["mlp.py"], False),
    "cnn": (["cnn.py"], False),
    "graphs": (["graphs.py"], False),
    "amp": (["amp.py"], False),
    "loader": (["loader.py"], False),
    "streams": (["streams.py"], False),
    "numerics": (["numerics.py"], False),
    "ipc": (["ipc.py"], False),
    "ddp": (["ddp.py"], False),
    "compiled": (["compiled.py"], False),
    "transformer": (["transformer.py"], False),
    "cupy": (["cupy_arrays.py"], False),
    "jax": (["jax_training.py"], False),
    "jax-graphs": (["jax_graphs.py"], False),
    "features": (["features.py"], True),
    "memory": (["memory.py"], True),
    "memory-expandable": (["memory.py", "--expandable"], True),
    "memory-async": (["memory.py", "--async"], True),
    "bystander": (["bystander.py"], True),
}
TIMED = {"mlp": ["mlp.py", "--steps", "2000", "--quiet"], "cnn": ["cnn.py", "--steps", "300"]}
ROUNDS = 3


def differences(native, other, tolerance, where=""):
    """The first place where two results differ, or None. Whole numbers and words are compared exactly."""
    if isinstance(native, dict) and isinstance(other, dict):
        pairs = [(k, native.get(k, "nothing"), other.get(k, "nothing")) for k in sorted({*native, *other})]
    elif isinstance(native, list) and isinstance(other, list) and len(native) == len(other):
        pairs = [(i, *p) for i, p in enumerate(zip(native, other))]
    elif isinstance(native, float) and isinstance(other, float):
        same = native == other or abs(native - other) <= tolerance * max(abs(native), abs(other))
        return None if same or (native != native and other != other) else f"{where}: {native!r} became {other!r}"
    else:
        return None if native == other else f"{where}: {native!r} became {other!r}"
    return next((d for k, a, b in pairs if (d := differences(a, b, tolerance, f"{where}.{k}".strip(".")))), None)


class Suite:
    def __init__(self, found, args, end):
        self.ways, self.args, self.end = found, args, end
        self.results = {"native": {}, "gmux": {}}

    def once(self, way, command, limit):
        """The program's line as a dictionary; a failure has "error". What it wrote to standard error goes along."""
        limit = min(limit, self.end - time.monotonic())
        if limit < 5:
            return {"error": "no time left"}
        argv = [sys.executable, str(HERE / command[0]), *command[1:]]
        env = way.env(PROGRAM_BEGIN=repr(time.monotonic()), GMUX_LOG=os.environ.get("GMUX_LOG", "api=warn"))
        p = Program(argv, env, cwd="/")
        p.go()
        try:
            r = p.finish(time.monotonic() + limit)
            answer = json.loads(r.lines[-1])
            answer["seconds"] = r.seconds
        except (Failed, ValueError, IndexError) as e:
            answer = {"error": str(e) or "it printed no result"}
        answer["stderr"] = p.errors[-80:]
        return answer

    def all(self, way, names, jobs):
        def go(name):
            return name, self.once(way, PROGRAMS[name][0], self.args.timeout)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            self.results[way.name].update(pool.map(go, names))

    def compare(self, names):
        beside = [n for n in names if not PROGRAMS[n][1]]
        alone = [n for n in names if PROGRAMS[n][1]]
        for way in self.ways:
            t0 = time.monotonic()
            self.all(way, beside, self.args.jobs)
            self.all(way, alone, 1)
            print(f"# {way.name}: {time.monotonic() - t0:.0f} s", flush=True)
        # One that takes the shared context down fails its neighbours: what failed has a second chance, alone.
        again = [n for n in beside if self.verdict(n)[0] == "not ok"]
        for n in again:
            first = self.verdict(n)[1]
            self.results["gmux"][n] = self.once(self.ways[1], PROGRAMS[n][0], self.args.timeout)
            self.results["gmux"][n]["beside"] = first

    def verdict(self, name):
        """("ok" | "not ok" | "skip", why)"""
        native, gmux = self.results["native"][name], self.results["gmux"][name]
        if "skip" in native:
            return "skip", native["skip"]
        if "error" in native:
            return "skip", "fails natively: " + native["error"]
        if "error" in gmux or "skip" in gmux:
            return "not ok", gmux.get("error") or gmux["skip"]
        wrong = differences(native["results"], gmux["results"], native["tolerance"])
        if wrong:
            return "not ok", wrong
        return "ok", "only alone; beside others: " + gmux["beside"] if gmux.get("beside") else ""

    def timed(self):
        """Throughput and start-up, each way alternating, nothing beside it."""
        runs = {}
        for name, command in TIMED.items():
            for _ in range(ROUNDS):
                for way in self.ways:
                    r = self.once(way, command, 60)
                    if "timings" in r:
                        runs.setdefault(name, {}).setdefault(way.name, []).append(r["timings"])
        return runs


def refused(lines):
    """Functions that gmux said it does not support."""
    return sorted({f for x in lines if "not supported" in x for f in re.findall(r"\bcu[A-Z]\w+", x)})


def median(runs, way, key):
    values = [t[key] for t in runs.get(way, [])]
    return statistics.median(values) if values else None


def print_timed(runs):
    for name, both in runs.items():
        for key, text in (("steps_per_s", "steps/s"), ("start_s", "s from exec to the first kernel, without the import")):
            n, g = median(both, "native", key), median(both, "gmux", key)
            if n and g:
                print(f"# {name:6} native {n:.4g}  gmux {g:.4g}  ratio {g / n:.3f}  {text}")


def have_gpu(way):
    r = subprocess.run([sys.executable, "-c", "import torch; print(torch.cuda.is_available())"], env=way.env(),
                       capture_output=True, text=True, timeout=120, check=False)
    return "True" in r.stdout


def print_verdicts(suite, names, logs):
    """How many failed."""
    print(f"1..{len(names)}")
    failed = 0
    came = sum(t.count("NEW CLIENT") for t in logs.values())
    if came < len(names):  # they ran, but on the driver itself
        print(f"Bail out! {came} programs came to gmux, of {len(names)}")
        failed = 1
    for i, name in enumerate(names, 1):
        word, why = suite.verdict(name)
        failed += word == "not ok"
        n, g = (suite.results[w][name].get("seconds") for w in ("native", "gmux"))
        if word == "skip":
            print(f"ok {i} - {name} # SKIP {why}")
        else:
            print(f"{word} {i} - {name}")
            if n and g:
                print(f"# native {n:.1f} s, gmux {g:.1f} s")
            if why:
                print(f"# {why}")
        asked = refused(suite.results["gmux"][name]["stderr"])
        if asked:
            print(f"# asked for {', '.join(asked)}")
        if word == "not ok":
            for line in suite.results["gmux"][name]["stderr"][-12:]:
                print(f"#   {line[:200]}")
    sys.stdout.flush()
    return failed


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("build")
    p.add_argument("names", nargs="*")
    p.add_argument("--jobs", type=int, default=5, help="programs at once")
    p.add_argument("--timeout", type=float, default=90, help="seconds for one program")
    p.add_argument("--budget", type=float, default=420, help="seconds for everything")
    p.add_argument("--no-timed", action="store_true", help="compare results only")
    p.add_argument("--out", help="a JSON file for all that was seen")
    args = p.parse_args()
    names = args.names or list(PROGRAMS)
    if any(n not in PROGRAMS for n in names):
        p.error("programs: " + ", ".join(PROGRAMS))
    end = time.monotonic() + args.budget
    if not importlib.util.find_spec("torch"):
        print("1..0 # SKIP no torch")
        return 0
    found, missing = ways(args.build)
    if "native" not in found or not have_gpu(found["native"]):
        print(f"1..0 # SKIP {'; '.join(missing) or 'no GPU'}")
        return 0
    with tempfile.TemporaryDirectory(prefix="gmux-torch.") as folder:
        os.chmod(folder, 0o755)
        suite = Suite([found["native"], found["gmux"]], args, end)
        found["gmux"].start(folder)
        try:
            suite.compare(names)
            failed = print_verdicts(suite, names, found["gmux"].logs())
            runs = {} if args.no_timed else suite.timed()
            logs = found["gmux"].logs()
        finally:
            found["gmux"].stop()
    print_timed(runs)
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps({"results": suite.results, "timed": runs, "logs": {
            k: v[-100000:] for k, v in logs.items()}}, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
