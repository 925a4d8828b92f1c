#!/usr/bin/env python3
"""Calls go down, too: what scripts/lint.py checks of includes, this checks of the symbols in object files.

    check.py NM ARCHIVE            between the folders of the client library
    check.py NM ARCHIVE... --files    between the files of archives, whatever their order: none are in a circle
    check.py NM ARCHIVE --list=HEADER    between the files of an archive: they are in the order of a header's list

Headers of the client that have a list of their folder's files "from the top down" have it right.

What has to go up goes by way of one table: rt_hooks (client/entry/hooks.h), ctl_hooks (control/daemon.h),
srv_hooks (server/hooks.h), cuda_hooks (device/cuda/hooks.h)."""

import graphlib
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from lint import INSIDE  # noqa: E402

ORDER = INSIDE["client"]
UPWARD = {"rt_hooks", "ctl_hooks", "srv_hooks", "cuda_hooks"}


def symbols(nm, archives):
    """(height of the object file, its name, the symbol, whether it is defined there)"""
    run = subprocess.run([nm, "-A", *archives], check=True, capture_output=True, text=True)
    for line in run.stdout.splitlines():
        name, found, rest = line.partition(".c.o:")
        if not found:  # said of an archive, not of a symbol
            continue
        where = name.replace(":", "/").split("/")  # ".../libclient-core.a:stream_event", or a thin archive's path
        folder = where[-1].removeprefix("meson-generated_.._").split("_")[0]
        name = where[-1] if len(archives) == 1 else "/".join(where[-2:])
        kind, symbol = rest.split()[-2:]
        if kind in "Uvw" or kind.isupper():  # else it is the file's own
            yield ORDER.index(folder) if folder in ORDER else len(ORDER), name, symbol, kind not in "Uvw"


def between_folders(found):
    where = {symbol: (height, name) for height, name, symbol, defined in found if defined and symbol not in UPWARD}
    upward = [f"{name} needs {symbol} of {where[symbol][1]}" for height, name, symbol, defined in found
              if not defined and symbol in where and where[symbol][0] > height]
    heights = {height for height, *_ in found}
    if heights != set(range(len(ORDER) + 1)):
        upward.append(f"not all folders are there: {sorted(heights)} of {ORDER}")
    return upward


def defined_in(found):
    return {symbol: name for _, name, symbol, defined in found if defined and symbol not in UPWARD}


def between_files(found):
    where = defined_in(found)
    needs = {name: set() for _, name, *_ in found}
    for _, name, symbol, defined in found:
        if not defined and where.get(symbol, name) != name:
            needs[name].add(where[symbol])
    if sum(map(len, needs.values())) < len(needs) / 2:
        return [f"{len(needs)} files that hardly call each other: not what was to be looked at"]
    try:
        graphlib.TopologicalSorter(needs).prepare()
    except graphlib.CycleError as e:
        return ["a circle: " + " <- ".join(e.args[1])]
    return []


def listed(header):
    """The names in a header's list of files; none: []"""
    found = re.search(r"[Ff]rom the top down.*?\n \*\n(.*?)\n \*(?:/|\n)", header.read_text(encoding="utf-8"), re.S)
    lines = found.group(1).split("\n") if found else []
    names = [re.split(r"  +", line.removeprefix(" *   "))[0] for line in lines]
    return [name for line in names for name in line.split(", ") if name]


def against_list(found, names, where):
    """Of files that should all be in one list."""
    rank = {name: i for i, name in enumerate(names)}
    files = {name for _, name, *_ in found}
    wrong = [f"{name} is missing in the list, or is no file" for name in sorted(files ^ set(rank))]
    return wrong + [f"{name} needs {symbol} of {where[symbol]}, which is listed above it"
                    for _, name, symbol, defined in found if not defined and name in rank
                    and rank.get(where.get(symbol), len(rank)) < rank[name]]


def against_lists(found):
    wrong = []
    for height, folder in enumerate(ORDER):
        for header in (ROOT / "src/client" / folder).glob("*.h"):
            names = [f"{folder}_{name}" for name in listed(header)]
            if names:
                wrong += against_list([f for f in found if f[0] == height], names, defined_in(found))
    return wrong


def main():
    nm, *archives = sys.argv[1:]
    options = [name for name in archives if name.startswith("--")]
    found = list(symbols(nm, [name for name in archives if name not in options]))
    if "--files" in options:
        wrong = between_files(found)
    elif options:
        wrong = against_list(found, listed(pathlib.Path(options[0].removeprefix("--list="))), defined_in(found))
    else:
        wrong = between_folders(found) + against_lists(found)
    print(f"1..1\n{'not ok' if wrong else 'ok'} 1 - calls go down")
    for line in wrong:
        print(f"# {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
