#!/usr/bin/env python3
"""Calls between the folders of the client library go down, too: what scripts/lint.py checks of includes, this checks of
the symbols in its object files. Usage: check.py NM ARCHIVE

What has to go up goes by way of one table, rt_hooks (client/entry/hooks.h)."""

import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from lint import INSIDE  # noqa: E402

ORDER = INSIDE["client"]
UPWARD = {"rt_hooks"}


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


def main():
    found = list(symbols(*sys.argv[1:]))
    where = {symbol: (height, name) for height, name, symbol, defined in found if defined and symbol not in UPWARD}
    upward = [f"{name} needs {symbol} of {where[symbol][1]}" for height, name, symbol, defined in found
              if not defined and symbol in where and where[symbol][0] > height]
    heights = {height for height, *_ in found}
    if heights != set(range(len(ORDER) + 1)):
        upward.append(f"not all folders are there: {sorted(heights)} of {ORDER}")
    print(f"1..1\n{'not ok' if upward else 'ok'} 1 - calls between the client's folders go down")
    for line in upward:
        print(f"# {line}")
    return 1 if upward else 0


if __name__ == "__main__":
    sys.exit(main())
