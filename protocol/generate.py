#!/usr/bin/env python3
"""Generates C from protocol/*.api:  generate.py WHAT SPEC OUTPUT

WHAT names one output (messages.h, messages.c, ...); an error in the specification is printed as FILE:LINE: reason
and ends with status 1, leaving the output alone.
"""

import pathlib
import sys

from gmuxgen import cudaheader, cudaspec, messages, spec

OUTPUTS = {
    "messages.h": lambda path, text: messages.header(spec.parse(path, text)),
    "messages.c": lambda path, text: messages.source(spec.parse(path, text)),
    "cuda.h": lambda path, text: cudaheader.header(cudaspec.parse(path, text)),
}


def main(argv):
    if len(argv) != 4 or argv[1] not in OUTPUTS:
        print(f"usage: generate.py {{{','.join(OUTPUTS)}}} SPEC OUTPUT", file=sys.stderr)
        return 2
    _, what, source, output = argv
    try:
        text = OUTPUTS[what](source, pathlib.Path(source).read_text(encoding="utf-8"))
    except spec.SpecError as e:
        print(e, file=sys.stderr)
        return 1
    pathlib.Path(output).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
