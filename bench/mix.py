#!/usr/bin/env python3
"""Programs of your own, several at a time, in each way that there is: bench/mix.py BUILD LIST [--jobs 12] [--limit 60] [--ways mps,gmux] [--each] [--logs DIR].

LIST has a command in each line, its first word a path from LIST's folder; "#" begins a comment. For each way the sum of their wall
times, the time until all had ended and how many failed; then the programs whose time or output differs from the first way's.
Lines with a number that has a point, or with a word for time, are not compared. In DIR, which must be there: the daemons' logs and what
the programs printed, which then run with GMUX_LOG=info.
"""
import argparse
import concurrent.futures
import pathlib
import re
import shlex
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
from sharing import ways  # noqa: E402

VARIES = re.compile(r"\d\.\d|time|second|\d ?[mun]?s\b|[GM]B/s", re.IGNORECASE)


def commands(path):
    for line in path.read_text().splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield [str((path.parent / words[0]).resolve()), *words[1:]]


def run_all(way, programs, jobs, limit, **env):
    def one(argv):
        with tempfile.TemporaryDirectory() as cwd:
            return way.run(argv, limit, check=False, cwd=cwd, **env)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, programs))


def write_outputs(path, programs, results):
    with open(path, "w") as f:
        for argv, r in zip(programs, results):
            print(f"=== {shlex.join(argv)}: status {r.status} after {r.seconds:.2f} s", *r.lines, *(f"stderr: {x}" for x in r.errors), sep="\n", file=f)


def shown(result):
    return sorted(line for line in result.lines if not VARIES.search(line))


def differing(a, b):
    """The first line that only one of them has."""
    only = [f"-{line}" for line in a if line not in b][:1] + [f"+{line}" for line in b if line not in a][:1]
    return " ".join(only) or "how often a line comes"


def compare(names, first, other):
    """Programs that differ, and how; those that the first way did not end well are left out."""
    for name, a, b in zip(names, *(way["results"] for way in (first, other))):
        if a.status:
            continue
        told = [f"status {b.status}"] if b.status else []
        if b.seconds > 2 * a.seconds + 1:
            told.append(f"over twice the time + 1 s: {a.seconds:.2f} -> {b.seconds:.2f} s")
        lines = shown(a), shown(b)
        if lines[0] != lines[1]:
            told.append("another output: " + differing(*lines))
        if told:
            print(f"{other['name']}: {name}: {', '.join(told)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("list", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=12)
    parser.add_argument("--limit", type=float, default=60, help="seconds for a program")
    parser.add_argument("--ways", default="mps,gmux")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--logs", type=pathlib.Path)
    args = parser.parse_args()
    programs = list(commands(args.list))
    found, missing = ways(args.build, args.device)
    for line in missing:
        print(f"# {line}")
    done = []
    with tempfile.TemporaryDirectory(prefix="gmux-mix.") as where:
        for turn, name in enumerate(args.ways.split(",")):
            if name not in found:
                continue
            way = found[name]
            way.start(f"{where}/{turn}")
            begun = time.monotonic()
            try:
                results = run_all(way, programs, args.jobs, args.limit, **({"GMUX_LOG": "info"} if args.logs else {}))
            finally:
                wall = time.monotonic() - begun
                for log, text in way.logs().items() if args.logs else ():
                    (args.logs / f"{turn}-{name}-{log}").write_text(text)
                way.stop()
            done.append({"name": name, "results": results})
            if args.logs:
                write_outputs(args.logs / f"{turn}-{name}-outputs", programs, results)
            print(f"{name}: sum {sum(r.seconds for r in results):.1f} s, all after {wall:.1f} s, {sum(bool(r.status) for r in results)} of {len(results)} failed",
                  flush=True)
    names = [pathlib.Path(p[0]).name for p in programs]
    for other in done[1:]:
        compare(names, done[0], other)
    if args.each:
        for name, *results in zip(names, *(way["results"] for way in done)):
            print(f"{name:24}", *(f"{r.seconds:7.2f}" + (f" ({r.status})" if r.status else "") for r in results))
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
