#!/usr/bin/env python3
"""Calls go down, too: what scripts/lint.py checks of includes, this checks of the symbols in object files.

    check.py NM ARCHIVE            between the folders of the client library
    check.py NM ARCHIVE --files [FOLDER]
                                   between the files of a folder, whatever their order: none are in a circle

What has to go up goes by way of one table: rt_hooks (client/entry/hooks.h), ctl_hooks (control/daemon.h),
srv_hooks (server/hooks.h)."""

import graphlib
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from lint import INSIDE  # noqa: E402

ORDER = INSIDE["client"]
UPWARD = {"rt_hooks", "ctl_hooks", "srv_hooks"}


def symbols(nm, archive):
    """(height of the object file, its name, the symbol, whether it is defined there)"""
    run = subprocess.run([nm, "-A", archive], check=True, capture_output=True, text=True)
    for line in run.stdout.splitlines():
        name, rest = line.split(".c.o:")
        name = name.replace(":", "/").split("/")[-1]  # ".../libclient-core.a:stream_event", or a thin archive's path
        folder = name.removeprefix("meson-generated_.._").split("_")[0]
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


def between_files(found):
    where = {symbol: name for _, name, symbol, defined in found if defined and symbol not in UPWARD}
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


def main():
    nm, archive, *files = sys.argv[1:]
    found = list(symbols(nm, archive))
    if files[1:]:
        found = [x for x in found if x[0] == ORDER.index(files[1])]
    wrong = between_files(found) if files else between_folders(found)
    print(f"1..1\n{'not ok' if wrong else 'ok'} 1 - calls go down")
    for line in wrong:
        print(f"# {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
