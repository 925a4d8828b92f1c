#!/usr/bin/env python3
"""The checker's truth: run.py BUILD

mistakes.cu has kernels with one mistake each, and says at the line that has it what is to be found, and by whom: nothing
more may be found, and nothing less. right.cu has kernels without a mistake. Both are compiled by gmux-cc, with line
information and without, and run by gmux-check. Prints TAP. Without gmux-cc in the build all is skipped.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FINDING = re.compile(r"^========= (Invalid|Uninitialized|Race|Barrier)")
SUMMARY = re.compile(r"^========= ERROR SUMMARY: (?:at least )?(\d+) error")


class Runner:
    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA", "GMUX", "LD_LIBRARY"))}
        self.env |= {"CUDA_MPS_PIPE_DIRECTORY": str(folder / "none"), "GMUX_CACHE_DIR": str(folder)}

    def compile(self, name, *flags):
        program = self.folder / (name + "".join(flags))
        if program.exists():
            return program
        made = subprocess.run([self.build / "src/cudart/gmux-cc", *flags, "-o", program, HERE / f"{name}.cu"],
                              capture_output=True, text=True, env=self.env, timeout=120, check=False)
        if made.returncode:
            raise AssertionError(made.stdout + made.stderr)
        return program

    def check(self, *command, options=(), env=None):
        """Exit status, report and output."""
        log = self.folder / "log"
        log.unlink(missing_ok=True)
        ran = subprocess.run([self.build / "src/cli/gmux-check", "--log", log, *options, *command], text=True,
                             capture_output=True, env=self.env | (env or {}), timeout=120, check=False)
        return ran.returncode, log.read_text() if log.exists() else "", ran.stdout + ran.stderr


def findings(report):
    """Each finding's lines, as one text."""
    found, now = [], None
    for line in report.splitlines():
        if FINDING.match(line):
            now = [line]
            found.append(now)
        elif line.strip() == "=========" or SUMMARY.match(line):
            now = None
        elif now is not None:
            now.append(line)
    return ["\n".join(f) for f in found]


def expected(mark):
    """(line of mistakes.cu, what, who) of all comments that begin so; `-` behind the mark: it is the line before."""
    wanted = []
    for number, line in enumerate((HERE / "mistakes.cu").read_text().splitlines(), 1):
        m = re.search(rf"//{re.escape(mark)}(-?) ([^,]*)(?:, (.*))?$", line)
        if m and number > 3:
            wanted.append((number - len(m[1]), m[2], m[3] or ""))
    return wanted


def fits(want, found, lines):
    number, what, who = want
    place = rf"mistakes\.cu:{number}\b|near \S*mistakes\.cu:{number - 1}\b"
    return found.startswith(f"========= {what}") and who in found and (
        not lines or re.search(place, found) is not None)


def compare(report, wanted, lines=True):
    found = findings(report)
    missing = [w for w in wanted if not any(fits(w, f, lines) for f in found)]
    surplus = [f for f in found if not any(fits(w, f, lines) for w in wanted)]
    assert not missing, f"not found: {missing}\n{report}"
    assert not surplus, "\n".join(["not expected:", *surplus])
    total = SUMMARY.search(report.splitlines()[-1])
    assert total and int(total[1]) == len(found), report[-300:]


def mistakes(r):
    status, report, output = r.check(r.compile("mistakes", "-lineinfo"))
    assert status == 1, f"status {status}\n{output}"
    compare(report, expected("!"))
    kernels = {m for m in re.findall(r"    (?:and Write access |and Read access )?at (\w+) in", report)}
    assert len(expected("!")) >= 40, "fewer than 40 mistakes"
    assert len(kernels) >= 40, f"{len(kernels)} kernels"


def mistakes_without_lines(r):
    status, report, output = r.check(r.compile("mistakes"), options=["--error-exitcode=77"])
    assert status == 77, f"status {status}\n{output}"
    compare(report, expected("!"), lines=False)
    assert "mistakes.cu" not in report.split("\n", 1)[1] and "PTX line" in report, report[:500]


def barrier_that_ends_the_session(r):
    status, report, output = r.check(r.compile("mistakes", "-lineinfo"), "ends")
    assert status == 1, f"status {status}\n{output}"
    compare(report, expected("?"))


def right(r):
    for flags in ["-lineinfo"], ["-O1"]:
        status, report, output = r.check(r.compile("right", *flags))
        assert not findings(report), report
        assert status == 0 and "passed" in output, f"status {status}\n{output}"
        assert "ERROR SUMMARY: 0 errors (0 times)" in report, report
    kernels = re.findall(r"^__global__", (HERE / "right.cu").read_text(), re.M)
    assert len(kernels) >= 40, f"{len(kernels)} kernels"


def only_what_is_asked_for(r):
    program = r.compile("mistakes", "-lineinfo")
    for check, word in ("memory", "Invalid"), ("race", "Race"), ("uninit", "Uninitialized"):
        status, report, output = r.check(program, *([] if check == "memory" else ["no-bounds"]), options=["-c", check])
        others = [f for f in findings(report) if not f.startswith((f"========= {word}", "========= Barrier"))]
        assert status == 1 and findings(report) and not others, f"{status} {others[:3]} {report[-300:]} {output}"


def what_cannot_be(r):
    program = r.compile("right", "-lineinfo")
    for options, env, words in (
            (["--checks=memory,leaks"], {}, "memory,leaks: checks are memory, race and uninit"),
            (["--error-exitcode=0"], {}, "no exit status from 1 to 255"),
            (["--what"], {}, "--what is unknown")):
        status, _, output = r.check(program, options=options, env=env)
        assert status == 125 and words in output and output.count("\n") == 1, f"{status} {output}"
    for env, words in (
            ({"GMUX_CHECK": "memory,leaks"}, '"leaks" is none of memory, race, uninit'),
            ({"GMUX_CHECK": "memory", "GMUX_REQUIRE": "1"}, "GMUX_REQUIRE asks for the daemon"),
            ({"GMUX_CHECK": "memory", "GMUX_DEVICE": "null"}, "this device has no checker")):
        env |= {"LD_LIBRARY_PATH": str(r.build / "src/client")}
        ran = subprocess.run([program], env=r.env | env, capture_output=True, text=True, timeout=60, check=False)
        assert ran.returncode and words in ran.stderr, f"{ran.returncode} {ran.stdout} {ran.stderr}"


def status_of_the_program(r):
    assert r.check("/nowhere/at/all")[0] == 127
    assert r.check("sh", "-c", "exit 9")[0] == 9
    assert r.check("sh", "-c", "kill -9 $$")[0] == 128 + 9
    status, _, output = r.check("true")
    assert status == 2 and "nothing was checked" in output, output


CASES = [mistakes, mistakes_without_lines, barrier_that_ends_the_session, right, only_what_is_asked_for, what_cannot_be,
         status_of_the_program]


def main():
    build = pathlib.Path(sys.argv[1])
    if not (build / "src/cudart/gmux-cc").exists():
        print("1..0 # SKIP no gmux-cc in this build: it wants clang-19, llvm-19 and libclc-19")
        return 0
    print(f"1..{len(CASES)}", flush=True)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        r = Runner(build, pathlib.Path(folder))
        for n, case in enumerate(CASES, 1):
            try:
                case(r)
                print(f"ok {n} {case.__name__}", flush=True)
            except AssertionError as e:
                failed += 1
                print(f"not ok {n} {case.__name__}", flush=True)
                for line in str(e).splitlines()[:60]:
                    print(f"# {line}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
