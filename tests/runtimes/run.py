#!/usr/bin/env python3
"""Programs of NVIDIA's runtime library, of several versions, natively and through gmux: run.py BUILD [NAME ...]

Each program checks its own results and writes down what each call said. They are built with each toolkit that there is
(--nvcc '11.8=COMMAND', any number of times; else the nvcc on PATH), once with the shared and once with the static
runtime; or taken, ready built, from --programs FOLDER, which --keep FOLDER of another run has made. All run natively,
then through gmux under a daemon of its own. One passes when status and lines are the native run's. Prints TAP; --table
FILE has the same as a table. Skipped where there is no compiler and no programs, or no GPU.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "scripts"))
from sharing import Failed, Program, ways  # noqa: E402

# name: source, arguments, what its compilation needs beside
PROGRAMS = {
    "vector": ("vector", [], []),
    "threads": ("threads", [], ["-default-stream", "per-thread", "-lpthread"]),
    "reduction": ("reduction", [], []),
    "symbols": ("symbols", [], []),
    "managed": ("managed", [], []),
    "coherence": ("coherence", [], ["-lpthread"]),
    "graphs": ("graphs", [], []),
    "pools": ("pools", [], []),
    "attributes": ("attributes", [], []),
    "ipc": ("ipc", [], []),
    "textures": ("textures", [], []),
    "errors": ("errors", [], []),
    "fault": ("errors", ["fault"], []),
    "driver": ("driver", [], ["-lcuda"]),
    "driver-first": ("driver", ["first"], ["-lcuda"]),
    "sort": ("sort", [], []),
    "reset": ("ends", ["reset"], ["-ldl"]),
    "exit": ("ends", ["exit"], ["-ldl"]),
    "fork": ("ends", ["fork"], ["-ldl"]),
    "unload": ("ends", ["unload"], ["-ldl"]),
    "mixed": ("mixed", [], ["-ldl"]),
}
LIBRARIES = {"mixed": "second"}  # that programs load
ALONE = ("fault",)  # others that run at that moment see it
KINDS = ("shared", "static")
NOT_SHARED = "runs on the driver itself"  # what the client library says of a program that it cannot serve


def default_compiler():
    """{label: command} of the nvcc on PATH or in its usual place."""
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if not nvcc:
        return {}
    text = subprocess.run([nvcc, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
    m = re.search(r"release (\d+\.\d+)", text)
    return {m.group(1): [nvcc, "-arch=native"]} if m else {}


def runtime_library(command):
    """The shared runtime that programs of this compiler load, or None: it travels with them."""
    dry = subprocess.run([*command, "-dryrun", "-cudart", "shared", str(HERE / "vector.cu")], capture_output=True,
                         text=True, timeout=60, check=False).stderr
    for place in re.findall(r'"?-L\s*"?([^"\s]+)', dry) + ["/usr/local/cuda/lib64"]:
        found = [p for p in pathlib.Path(place).glob("libcudart.so.*") if not p.is_symlink()]
        if found:
            return found[0]
    return None


def build_one(source, flags, command, kind, folder, driver):
    """What the compiler said if it failed, else None."""
    link = ["-L", str(driver), "-Xlinker", "-rpath=$ORIGIN"] if "-lcuda" in flags else ["-Xlinker", "-rpath=$ORIGIN"]
    library = source in LIBRARIES.values()
    argv = [*command, "-O2", "-cudart", kind, *link, *flags, *(["-shared", "-Xcompiler", "-fPIC"] if library else []),
            "-o", str(folder / (f"{source}.so" if library else source)), str(HERE / f"{source}.cu")]
    r = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    lines = [x for x in (r.stdout + r.stderr).splitlines() if "error" in x]
    return None if r.returncode == 0 else (lines or ["the compiler failed"])[0].strip()[:160]


def build(compilers, names, target, driver, jobs):
    """Fills target/LABEL-KIND/; a program that does not compile has its reason there, as NAME.why."""
    todo = []
    for label, command in compilers.items():
        library = runtime_library(command)
        for kind in KINDS:
            folder = target / f"{label}-{kind}"
            folder.mkdir(parents=True, exist_ok=True)
            if kind == "shared" and library:
                name = re.match(r"libcudart\.so\.\d+(\.0)?", library.name).group(0)
                soname = subprocess.run(["objdump", "-p", str(library)], capture_output=True, text=True, check=False)
                m = re.search(r"SONAME\s+(\S+)", soname.stdout)
                shutil.copy2(library, folder / (m.group(1) if m else name))
            done = set()
            sources = [(PROGRAMS[n][0], PROGRAMS[n][2]) for n in names]
            for source, flags in sources + [(LIBRARIES[n], []) for n in names if n in LIBRARIES]:
                if source not in done and not (folder / source).exists():
                    todo.append((source, flags, command, kind, folder))
                done.add(source)

    def go(job):
        why = build_one(*job, driver)
        said = job[4] / f"{job[0]}.why"
        if why:
            said.write_text(why + "\n")
        else:
            said.unlink(missing_ok=True)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(go, todo))


class Run:
    """What one program did, one way."""

    def __init__(self, lines, status, errors, seconds, why=None):
        self.lines, self.status, self.errors, self.seconds, self.why = lines, status, errors, seconds, why


def once(way, program, arguments, limit, extra):
    p = Program([str(program), *arguments], way.env(**extra), cwd="/")
    p.go()
    try:
        r = p.finish(time.monotonic() + limit, check=False)
        why = f"not done after {limit:.0f} s" if r.status == 124 else None
        return Run(r.lines, r.status, p.errors[-200:], r.seconds, why)
    except Failed as e:
        return Run(p.lines, -1, p.errors[-200:], 0, str(e))


def differences(native, gmux):
    """Lines that are not the same, "native | gmux", and the status."""
    if gmux.why:
        return [gmux.why]
    out = []
    for i in range(max(len(native.lines), len(gmux.lines))):
        a, b = (r.lines[i] if i < len(r.lines) else "(nothing)" for r in (native, gmux))
        if a != b:
            out.append(f"{a} | {b}")
    if native.status != gmux.status:
        out.append(f"status {native.status} | {gmux.status}")
    return out


class Suite:
    def __init__(self, programs, names, args):
        self.args = args
        self.tests = {}  # (toolkit and kind, name): path, or None and why
        for folder in sorted(p for p in programs.iterdir() if p.is_dir()):
            for name in names:
                path = folder / PROGRAMS[name][0]
                why = path.with_name(path.name + ".why")
                if path.exists():
                    self.tests[folder.name, name] = (path, None)
                else:
                    self.tests[folder.name, name] = (None, why.read_text().strip() if why.exists() else "not built")
        self.runs = {"native": {}, "gmux": {}}

    def all(self, way, tests, extra):
        there = [t for t in tests if self.tests[t][0]]
        for alone in (False, True):
            some = [t for t in there if (t[1] in ALONE) == alone]
            with concurrent.futures.ThreadPoolExecutor(1 if alone else self.args.jobs) as pool:
                runs = pool.map(lambda t: once(way, self.tests[t][0], PROGRAMS[t[1]][1], self.args.timeout, extra), some)
                self.runs[way.name].update(zip(some, runs))

    def verdict(self, test):
        """("ok" | "not ok" | "skip", lines that say why)"""
        path, why = self.tests[test]
        if not path:
            return "skip", [f"not compiled: {why}"]
        native, gmux = (self.runs[w][test] for w in ("native", "gmux"))
        if native.why:
            return "skip", ["natively " + native.why]
        wrong = differences(native, gmux)
        return ("not ok", wrong) if wrong else ("ok", [])

    def word(self, test):
        """The verdict in a table."""
        word, why = self.verdict(test)
        if word != "ok":
            return "–" if word == "skip" else "**no**"
        alone = any(NOT_SHARED in x for x in self.runs["gmux"][test].errors)
        return ("fails natively, too" if self.runs["native"][test].status else "as natively") + (", not shared" if alone else "")

    def table(self):
        kinds = sorted({k for k, _ in self.tests}, key=lambda k: [int(x) for x in re.findall(r"\d+", k)])
        names = list(dict.fromkeys(n for _, n in self.tests))
        rows = ["| program | " + " | ".join(kinds) + " |", "|---|" + "---|" * len(kinds)]
        rows += ["| " + n + " | " + " | ".join(self.word((k, n)) for k in kinds) + " |" for n in names]
        return rows


def have_gpu(way):
    """The driver has a device: asked in a process of its own."""
    code = "import ctypes; c = ctypes.CDLL('libcuda.so.1'); n = ctypes.c_int(0); c.cuInit(0); c.cuDeviceGetCount(ctypes.byref(n)); print(n.value)"
    r = subprocess.run([sys.executable, "-c", code], env=way.env(), capture_output=True, text=True, timeout=60, check=False)
    return r.stdout.strip() not in ("", "0")


def parse():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("build")
    p.add_argument("names", nargs="*")
    p.add_argument("--nvcc", action="append", default=[], metavar="LABEL=COMMAND", help="a compiler; its version is the label")
    p.add_argument("--programs", help="programs that were built before")
    p.add_argument("--keep", help="build here, and leave them")
    p.add_argument("--jobs", type=int, default=6, help="programs at once")
    p.add_argument("--timeout", type=float, default=60, help="seconds for one program")
    p.add_argument("--table", help="a file for the table")
    p.add_argument("--details", help="a file for all that differed, and what standard error had")
    args = p.parse_args()
    args.names = args.names or list(PROGRAMS)
    if any(n not in PROGRAMS for n in args.names):
        p.error("programs: " + ", ".join(PROGRAMS))
    return args


def report(suite):
    print(f"1..{len(suite.tests)}")
    failed = 0
    for i, test in enumerate(suite.tests, 1):
        word, why = suite.verdict(test)
        failed += word == "not ok"
        text = f"{i} - {test[0]} {test[1]}"
        print(f"ok {text} # SKIP {why[0]}" if word == "skip" else f"{word} {text}")
        for line in why[:12] if word == "not ok" else []:
            print(f"# {line[:200]}")
    return failed


def details(suite, path, logs):
    with open(path, "w") as f:
        for test in suite.tests:
            word, why = suite.verdict(test)
            print(f"==== {word} {test[0]} {test[1]}", file=f)
            for line in why:
                print(line, file=f)
            for way in ("native", "gmux"):
                run = suite.runs[way].get(test)
                if run and (word == "not ok" or run.status or run.errors):
                    print(f"-- {way}: status {run.status}, {run.seconds:.2f} s", *run.lines[-400:], *run.errors, sep="\n", file=f)
        for name, text in logs.items():
            print(f"==== {name}", text[-20000:], sep="\n", file=f)


def main():
    args = parse()
    compilers = {x.split("=", 1)[0]: shlex.split(x.split("=", 1)[1]) for x in args.nvcc}
    if not compilers and not args.programs:
        compilers = default_compiler()
    if not compilers and not args.programs:
        print("1..0 # SKIP no nvcc here, and no programs that were built before")
        return 0
    found, missing = ways(args.build)
    gpu = "native" in found and have_gpu(found["native"])
    if not gpu and not args.keep:
        print(f"1..0 # SKIP {'; '.join(missing) or 'no GPU'}")
        return 0
    with tempfile.TemporaryDirectory(prefix="gmux-runtimes.") as folder:
        os.chmod(folder, 0o755)
        programs = pathlib.Path(args.programs or args.keep or folder + "/programs").resolve()
        if compilers:
            t0 = time.monotonic()
            build(compilers, args.names, programs, pathlib.Path(args.build).resolve() / "src/client", os.cpu_count())
            print(f"# built in {time.monotonic() - t0:.0f} s", flush=True)
        if not gpu:
            print("1..0 # SKIP built only: no GPU")
            return 0
        suite = Suite(programs, args.names, args)
        extra = {"GMUX_LOG": os.environ.get("GMUX_LOG", "api=warn")}
        suite.all(found["native"], suite.tests, extra)
        found["gmux"].start(folder)
        try:
            suite.all(found["gmux"], suite.tests, extra)
            logs = found["gmux"].logs()
        finally:
            found["gmux"].stop()
        failed = report(suite)
        if "NEW CLIENT" not in "".join(logs.values()):  # they ran, but on the driver itself
            print("Bail out! no program came to gmux")
            failed = 1
        if args.table:
            pathlib.Path(args.table).write_text("\n".join(suite.table()) + "\n")
        if args.details:
            details(suite, args.details, logs)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
