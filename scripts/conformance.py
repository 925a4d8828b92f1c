#!/usr/bin/env python3
"""Reads docs/contract.txt: what MPS promises, and which test holds it.

    conformance.py page OUTPUT             the page for readers
    conformance.py check CONTROL [LIST]    TAP: each test named exists and speaks of its item, and every command of
                                           CONTROL (gmux-control) and every variable of MPS in src/ stands in the list
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
STATUSES = {
    "recorded": "As recorded from MPS 580 on an H200",
    "documented": "As NVIDIA's documentation says",
    "otherwise": "Otherwise",
    "refused": "Refused",
    "missing": "Not there",
}
KINDS = {"option": "Options", "command": "Commands", "variable": "Variables", "file": "Files", "state": "States of a server",
         "status": "Exit status", "error": "CUDA errors", "behaviour": "Behaviour"}
OWN_COMMANDS = {"version", "clients", "pending", "restart"}  # and limit_*, group..: gmux' own, that MPS has not


def entries(path=ROOT / "docs/contract.txt"):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [p.strip() for p in line.split("|")]
        if len(parts) != 4 or parts[0] not in KINDS or parts[2] not in STATUSES or not parts[3]:
            sys.exit(f"{path}:{number}: not KIND | NAME | STATUS | TESTS or WORDS")
        yield parts


def references(kind, status, text):
    """(file, part of a title): the whole text, or what stands in parentheses."""
    if status in ("recorded", "documented"):
        lists = [text]
    else:
        lists = re.findall(r"\(([a-z-]+: [^()]*)\)", text)
    for one in lists:
        for reference in one.split(";"):
            file, _, title = reference.strip().partition(": ")
            yield file, title


def bodies():
    """File -> [(title, text of the test)]."""
    found = {}
    for path in sorted((ROOT / "tests/e2e").glob("*.bats")):
        tests = re.split(r'^@test "', path.read_text(encoding="utf-8"), flags=re.M)[1:]
        found[path.stem] = [(t.partition('" {')[0], t) for t in tests]
    return found


def find(tests, file, title):
    return [t for t in tests.get(file, ()) if title in t[0]]


def speaks_of(name, found):
    words = re.findall(r"[A-Za-z0-9_.-]+", name)
    return any(any(w in text for w in words) for _, text in found)


def page():
    tests = bodies()
    o = ["# What MPS promises, and what gmux does", "",
         "Made from `docs/contract.txt` and the tests (`make docs`). A test is named by its file in `tests/e2e` and its title.", ""]
    for kind, heading in KINDS.items():
        o += [f"## {heading}", "", "| | gmux | shown by |", "|---|---|---|"]
        for k, name, status, text in entries():
            if k != kind:
                continue
            shown = [f"{file}: {t[0]}" for file, title in references(k, status, text) for t in find(tests, file, title)[:1]]
            words = re.sub(r" ?\([a-z-]+: [^()]*\)", "", text) if status in ("otherwise", "refused", "missing") else ""
            o.append(f"| `{name}` | {STATUSES[status]}{': ' if words else ''}{words} | {'; '.join(shown)} |")
        o.append("")
    return "\n".join(o)


def failures(control, path):
    tests = bodies()
    listed = {}
    for kind, name, status, text in entries(path):
        listed.setdefault(kind, set()).add(name)
        for file, title in references(kind, status, text):
            found = find(tests, file, title)
            if not found:
                yield f"{kind} {name}: no test {file}: {title}"
            elif kind not in ("behaviour", "status", "file", "state") and not name.startswith("wrong words") and \
                    not speaks_of(name, [t for f, part in references(kind, status, text) for t in find(tests, f, part)]):
                yield f"{kind} {name}: its tests do not speak of it"
    dump = subprocess.run([control, "--dump-commands"], check=True, capture_output=True, text=True).stdout
    commands = set(re.findall(r"^\*([a-z_]+)\*", dump, re.M))
    for name in sorted(commands - listed.get("command", set())):
        if name not in OWN_COMMANDS and not re.search("limit_|group", name):
            yield f"command {name} of gmux-control is not in the list"
    dump = subprocess.run([control, "--dump-modules"], check=True, capture_output=True, text=True).stdout
    for module, verb in re.findall(r"^\*([a-z-]+) ?([a-z]*)\*", dump, re.M):
        if not any(re.search(rf"\b{module}\b.*\b{verb}\b", name) for name in listed.get("command", set())):
            yield f"command {module} {verb} of protocol 3 is not in the list"
    sources = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "src").rglob("*.c"))
    for name in sorted(set(re.findall(r'"(CUDA_[A-Z_]+)"', sources)) - listed.get("variable", set())):
        if "ERROR" not in name and "SUCCESS" not in name:
            yield f"variable {name} is not in the list"


def main(argv):
    if argv[1:2] == ["page"] and len(argv) == 3:
        pathlib.Path(argv[2]).write_text(page(), encoding="utf-8")
        return 0
    if argv[1:2] == ["check"] and len(argv) in (3, 4):
        found = list(failures(argv[2], pathlib.Path(argv[3]) if len(argv) == 4 else ROOT / "docs/contract.txt"))
        print(f"1..1\n{'not ok' if found else 'ok'} 1 - the contract and the tests agree")
        print("".join(f"# {line}\n" for line in found), end="")
        return 1 if found else 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv))
