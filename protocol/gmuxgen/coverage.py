"""Writes docs/api-coverage.md from protocol/cuda.api and the sources of tests.

Which test program calls a function is read from its source: in tests/api names are what the header makes of them, in
tests/unit/client, where programs are made with the library's inside, they are symbols. What a file that programs share
calls (peer.c) is called by those that include its header.
"""

import pathlib
import re

from .cudaheader import names

INTRO = """\
# Driver API coverage

Generated from `protocol/cuda.api`. With a genuine driver and no daemon (pass-through) every function goes to that driver;
this page is about sessions: programs served by a gmux server.

"""
STATES = {"": "works", "gpu": "works on a GPU; refused on the software device", "refuses": "refuses always"}
SYMBOLS = "#define GMUX_CUDA_SYMBOLS"  # of a program: its names are symbols
MANY = 8  # programs; what more of them share is said to be all's


def callers(spec, folders):
    """Symbol -> names of the test programs whose sources call it."""
    header = {name: symbol for name, symbol, _ in names(spec)}
    symbols = {f.symbol for f in spec.functions}
    found = {}
    for folder in map(pathlib.Path, folders):
        texts = {p.stem: p.read_text(encoding="utf-8") for p in sorted(folder.glob("*.c"))}
        for stem, text in texts.items():
            programs = [stem.removeprefix("test_")]
            if (folder / f"{stem}.h").exists():
                programs = [s.removeprefix("test_") for s, t in texts.items() if s != stem and f'"{stem}.h"' in t]
                programs = programs if len(programs) <= MANY else ["all"]
            code = re.sub(r'"(?:[^"\\\n]|\\.)*"|/\*.*?\*/|//[^\n]*', "", text, flags=re.S)
            for word in set(re.findall(r"\bcu[A-Z]\w*", code)):
                symbol = word if folder.name == "client" or SYMBOLS in text else header.get(word, word)
                if symbol in symbols:
                    found.setdefault(symbol, set()).update(f"{folder.name}/{p}" for p in programs)
    return found


def page(spec, folders=()):
    works = [f for f in spec.functions if f.tier == "impl" and f.only != "refuses"]
    bases = spec.by_base()
    served = [b for b, v in bases.items() if any(f in works for f in v)]
    gpu = sum(f.only == "gpu" for f in works)
    tests = callers(spec, folders)
    named = [f for f in works if f.symbol in tests]
    o = [INTRO + f"{len(works)} of {len(spec.functions)} functions work ({len(served)} of {len(bases)} names; variants with a "
         f"per-thread default stream are not counted apart), {gpu} of them on a GPU only: clusters, tensor maps. The others "
         "are exported and answer `CUDA_ERROR_NOT_SUPPORTED`.", "",
         f"Of those that work, {len(named)} are called by a test program of `tests/api` (api/..) or `tests/unit/client` "
         "(client/..).", "", "| function | since CUDA | per-thread stream | in a session | called by |",
         "| --- | --- | --- | --- | --- |"]
    for base in sorted(bases):
        for f in bases[base]:
            version = f"{f.since // 1000}.{f.since % 1000 // 10}"
            twin = ", ".join(f"`_{t}`" for t in f.twins)
            state = STATES[f.only] if f.tier == "impl" else "`CUDA_ERROR_NOT_SUPPORTED`"
            o += [f"| `{f.symbol}` | {version} | {twin} | {state} | {', '.join(sorted(tests.get(f.symbol, ())))} |"]
    return "\n".join(o) + "\n"
