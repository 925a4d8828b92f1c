#!/usr/bin/env python3
"""Runs the cases of api-answers, each in a process of its own, and compares what they print with what NVIDIA's driver
printed (tests/expected/answers-*.txt). Prints TAP, one test for each case.

    compare.py PROGRAM RECORD [DIFFERENCES] [--daemon CONTROL]   compares
    compare.py PROGRAM --record FILE                             writes a record

Lines that begin with "~" are about the machine: their text up to the value has to be there. DIFFERENCES has the lines
that this device answers otherwise, each with the reason: `CASE | LINE | REASON`. One that is not met any more fails.
"""
import argparse
import concurrent.futures
import os
import subprocess
import sys
import tempfile

SECONDS = 90
ALONE = ["information"]  # what others have allocated, and are giving back, shows in it


def run(program, case):
    try:
        done = subprocess.run([program, case], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=SECONDS,
                              check=False)
        # A call's text is its source, which may begin a new line after a parenthesis.
        lines = done.stdout.decode(errors="replace").replace("( ", "(").splitlines()
        return lines + ([f"exit status {done.returncode}"] if done.returncode else [])
    except subprocess.TimeoutExpired as e:
        return (e.stdout or b"").decode(errors="replace").splitlines() + [f"not done after {SECONDS} seconds"]


def run_all(program, jobs):
    cases = subprocess.run([program], stdout=subprocess.PIPE, check=True).stdout.decode().split()
    first = {case: run(program, case) for case in ALONE}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return dict(zip(cases, pool.map(lambda case: first.get(case) or run(program, case), cases)))


def read_record(path):
    cases, lines = {}, []
    with open(path) as f:
        for line in f:
            if line.startswith("== "):
                lines = cases.setdefault(line[3:].strip(), [])
            elif not line.startswith("#") or lines:
                lines.append(line.rstrip("\n"))
    return cases


def read_differences(path):
    entries = {}
    with open(path) as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                case, answer, reason = (part.strip() for part in line.split(" | ", 2))
                assert reason
                entries.setdefault(case, []).append(answer)
    return entries


def machine_part(line):
    return line.rsplit(":", 1)[0] if line.startswith("~ ") else line


def compare(got, want, allowed):
    """The differences that nothing explains, as lines of text."""
    out, allowed = [], list(allowed)
    for i in range(max(len(got), len(want))):
        g = got[i] if i < len(got) else "(nothing)"
        w = want[i] if i < len(want) else "(nothing)"
        if machine_part(g) == machine_part(w):
            continue
        if g in allowed:
            allowed.remove(g)
        else:
            out += [f"the driver: {w}", f"here:       {g}"]
    return out + [f"not met any more: {a}" for a in allowed]


def report(results, record, differences):
    failed = 0
    print(f"1..{len(results)}")
    for number, (case, got) in enumerate(results.items(), 1):
        notes = compare(got, record.get(case, []), differences.get(case, []))
        failed += bool(notes)
        for note in notes:
            print("#", note)
        print("not ok" if notes else "ok", number, "-", case)
    return 1 if failed else 0


def with_daemon(control, work):
    with tempfile.TemporaryDirectory() as d:
        os.environ["CUDA_MPS_PIPE_DIRECTORY"] = d + "/pipe"
        os.environ["CUDA_MPS_LOG_DIRECTORY"] = d + "/log"
        os.mkdir(d + "/pipe")
        os.mkdir(d + "/log")
        subprocess.run([control, "-d"], check=True)
        try:
            return work()
        finally:
            subprocess.run([control], input=b"quit\n", timeout=20, check=True, stdout=subprocess.DEVNULL)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("record", nargs="?")
    p.add_argument("differences", nargs="?")
    p.add_argument("--daemon")
    p.add_argument("--record", dest="write")
    p.add_argument("--jobs", type=int, default=2)
    a = p.parse_args()

    def work():
        return run_all(a.program, a.jobs)

    results = with_daemon(a.daemon, work) if a.daemon else work()
    if a.write:
        with open(a.write, "w") as f:
            for case, lines in results.items():
                print("==", case, file=f)
                print("\n".join(lines), file=f)
        return 0
    return report(results, read_record(a.record), read_differences(a.differences) if a.differences else {})


if __name__ == "__main__":
    sys.exit(main())
