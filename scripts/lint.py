#!/usr/bin/env python3
"""Checks what a compiler does not: layering of includes, file length, formatting, stray words. Exits 1 on findings."""

import pathlib
import re
import shutil
import subprocess
import sys

# A folder of src/ may include itself and what stands to its left.
LAYERS = [["base"], ["wire"], ["transport"], ["fatbin"], ["device"], ["jit"], ["executor", "server", "control", "client"], ["cli", "cudart"]]
ALLOWED = {}
below = set()
for group in LAYERS:
    for folder in group:
        ALLOWED[folder] = below | {folder}
    below |= set(group)

# So may a folder in one of these. Files that lie beside such folders are above them all; what is generated is below.
# What includes do not show, tests/layers/check.py sees in the object files.
INSIDE = {"client": ["entry", "session", "stream", "memory", "module", "graph"]}

LINES_MAX = 620
FUNCTION_MAX = 80
COLUMNS_MAX = 100
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
# Words that belong on a desk, not in a product.
STRAY = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")

# A comment is a sentence of its own, not the continuation of the line above.
CHAIN = re.compile(r"/\* \.\. |(?<!\.)\.\. \*/|[a-z,] \.\. [a-z]")

# It names what it is about, and who does what: these words leave that to the line above, or to nobody.
VAGUE = re.compile(r"/\* (?:The same|Of|Who|Lock held)\b|\b[Ww]hoever\b|\b[Aa]s above\b")

# A header that is a table or a part of one source file says so in its first lines.
UNGUARDED = re.compile(r"included\s+(?:\*\s+)?several times|Part of [a-z_]+\.c:")


FORMATTER = "clang-format-14"  # another version formats differently


def tracked(*patterns):
    # The tree may be somebody else's, as in a container.
    command = ["git", "-c", "safe.directory=*", "ls-files", "--", *patterns]
    out = subprocess.run(command, check=True, capture_output=True, text=True)
    return [pathlib.Path(p) for p in out.stdout.split("\n") if p and pathlib.Path(p).exists()]


def height(parts):
    """How high a file stands in its folder of src/, given what comes after src/."""
    order = INSIDE.get(parts[0], [])
    if len(parts) == 2 or not order:
        return len(order)
    return order.index(parts[1]) if parts[1] in order else -1


def check_layers(path, text):
    folder = path.parts[1]
    for m in INCLUDE.finditer(text):
        target = m.group(1).split("/")[0]
        line = text.count("\n", 0, m.start()) + 1
        if target in ALLOWED and target not in ALLOWED.get(folder, ()):
            yield line, f"{folder} may not include {m.group(1)}"
        if target == folder and height(m.group(1).split("/")) > height(path.parts[1:]):
            yield line, f"{path.parent} may not include {m.group(1)}"
        if "/" not in m.group(1) and (pathlib.Path("src") / folder / m.group(1)).exists():
            yield line, f'write "{folder}/{m.group(1)}", not "{m.group(1)}"'


def check_functions(text):
    """Bodies stand between two braces at the beginning of a line."""
    begin = 0
    for n, line in enumerate(text.split("\n"), 1):
        if line == "{":
            begin = n
        elif line == "}" and begin:
            if n - begin - 1 > FUNCTION_MAX:
                yield begin, f"a function of {n - begin - 1} lines, more than {FUNCTION_MAX}"
            begin = 0


def check_promises():
    """SECURITY.md names the tests that hold what it promises: they are there."""
    path = pathlib.Path("SECURITY.md")
    for n, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        for name in re.findall(r"\b(?:tests|fuzz|src|docs)/[\w./-]*\w", line):
            if not pathlib.Path(name).exists():
                yield f"{path}:{n}: there is no {name}"


def check_tests():
    """A test fails by a command that fails, but not by one behind "!", unless a function ends with it."""
    for path in tracked("*.bats", "*.bash"):
        for m in re.finditer(r"^ +! .*(?=\n(.*))", path.read_text(encoding="utf-8"), re.M):
            if "||" not in m.group() and m.group(1) != "}":
                yield f"{path}:{m.string.count(chr(10), 0, m.start()) + 1}: cannot fail: write not, of tests/e2e/helper.bash"


def main():
    findings = list(check_promises()) + list(check_tests())
    sources = tracked("*.c", "*.h")
    for path in sources:
        text = path.read_text(encoding="utf-8")
        lines = text.count("\n")
        if path.parts[0] == "src":
            findings += [f"{path}:{n}: {why}" for n, why in check_layers(path, text)]
            findings += [f"{path}:{n}: {why}" for n, why in check_functions(text)]
            if path.suffix == ".c" and not text.startswith("/*"):
                findings.append(f"{path}:1: does not say what it is")
            if lines > LINES_MAX:
                findings.append(f"{path}:{lines}: longer than {LINES_MAX} lines")
        for n, line in enumerate(text.split("\n"), 1):
            if len(line) > COLUMNS_MAX:
                findings.append(f"{path}:{n}: more than {COLUMNS_MAX} columns")
        findings += [f"{path}:{text.count(chr(10), 0, m.start()) + 1}: a comment that goes on from another one"
                     for m in CHAIN.finditer(text)]
        findings += [f"{path}:{text.count(chr(10), 0, m.start()) + 1}: a comment that does not say what it is about: {m[0]}"
                     for m in VAGUE.finditer(text)]
        for m in STRAY.finditer(text):
            findings.append(f"{path}:{text.count(chr(10), 0, m.start()) + 1}: {m.group(1)}")
    for path in tracked("*.h"):
        text = path.read_text(encoding="utf-8")
        if path.parts[0] in ("src", "include") and "#ifndef GMUX_" not in text and not UNGUARDED.search(text[:1500]):
            findings.append(f"{path}:1: no GMUX_ include guard")
    if shutil.which(FORMATTER):
        run = subprocess.run([FORMATTER, "--dry-run", "--Werror", *map(str, sources)],
                             capture_output=True, text=True)
        unformatted = {x.split(":")[0] for x in run.stderr.splitlines() if "error:" in x}
        findings += [f"{path}:1: not as clang-format has it (make format)" for path in sorted(unformatted)]
    else:
        print(f"lint: no {FORMATTER} here, formatting not checked", file=sys.stderr)
    for f in findings:
        print(f)
    print(f"lint: {len(sources)} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
