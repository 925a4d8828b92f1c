#!/usr/bin/env python3
"""Compares what kernels see through textures with what a GPU answered.

compare.py SAMPLES EXPECTED           one TAP line per group
compare.py --make FILE SOFT EXPECTED  EXPECTED from two files that `samples` wrote, on a GPU and on the software device

A line of EXPECTED is a group, its number of samples and their CRC-32; "~" stands before groups in which the software device
does not have all bits, and whose samples therefore are only counted (equal ones of all, when the file was made).
"""
import subprocess
import sys
import tempfile
import zlib

SAMPLES = 250
# What depends on which thread comes first, or on handles of another kind than the instruction asks for.
LEFT_OUT = ("sust-1d-clamp", "sust-2d-clamp", "sust-3d-clamp", "sust-a1d-clamp", "sust-a2d-clamp", "sustp-1d-clamp",
            "sustp-2d-clamp", "sustp-3d-clamp", "sustp-a1d-clamp", "sustp-a2d-clamp", "sured-1d-clamp", "sured-2d-clamp",
            "sured-3d-clamp", "level-whole", "questions")


def read(path):
    groups = {}
    lines = iter(open(path, encoding="ascii"))
    for line in lines:
        name, kernel, count, result = line.split()
        rows = [next(lines) for _ in range(int(count))] if result == "0" else []
        if name.startswith(LEFT_OUT) or (name.startswith("suld") and not name.endswith("-surface")):
            continue
        if rows:
            groups.setdefault(name, (kernel, rows[:SAMPLES]))
    return groups


def digest(rows):
    return "%08x" % zlib.crc32("".join(rows).encode("ascii"))


def make(gpu, soft, out):
    want, got = read(gpu), read(soft)
    with open(out, "w", encoding="ascii") as f:
        for name, (_, rows) in want.items():
            mine = got.get(name, ("", []))[1]
            equal = sum(a == b for a, b in zip(rows, mine))
            if equal == len(rows):
                f.write("%s %d %s\n" % (name, len(rows), digest(rows)))
            else:
                f.write("~%s %d of %d\n" % (name, equal, len(rows)))


def main():
    if sys.argv[1] == "--make":
        make(*sys.argv[2:5])
        return 0
    with tempfile.NamedTemporaryFile() as f:
        done = subprocess.run([sys.argv[1], str(SAMPLES), f.name], stdout=subprocess.PIPE, check=False)
        got = read(f.name) if done.returncode == 0 else {}
    wanted = [line.split() for line in open(sys.argv[2], encoding="ascii") if not line.startswith(("#", "~"))]
    print("1..%d" % len(wanted))
    failed = 0
    for number, (name, count, crc) in enumerate(wanted, 1):
        rows = got.get(name, ("", []))[1]
        right = len(rows) == int(count) and digest(rows) == crc
        failed += not right
        print("%s %d - %s" % ("ok" if right else "not ok", number, name))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
