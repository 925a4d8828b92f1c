#!/usr/bin/env python3
"""Generates C from protocol/*.api:  generate.py WHAT SPEC OUTPUT [FOLDER..]

WHAT names one output (messages.h, messages.c, ...); folders have the sources of tests, for api-coverage.md; an error in the specification is printed as FILE:LINE: reason
and ends with status 1, leaving the output alone.
"""

import pathlib
import sys

from gmuxgen import (coverage, cudaheader, cudaspec, dictionary, dispatch, messages, parity, requests, samples, serve,
                     spec, trace, typedefs, wrong)

# What -> (reader of the specification, writer)
OUTPUTS = {
    "messages.h": (spec.parse, messages.header),
    "messages.c": (spec.parse, messages.source),
    "ask.h": (spec.parse, requests.header),
    "ask.c": (spec.parse, requests.source),
    "serve.h": (spec.parse, serve.header),
    "serve.c": (spec.parse, serve.source),
    "send.h": (spec.parse, serve.send_header),
    "send.c": (spec.parse, serve.send_source),
    "cuda.h": (cudaspec.parse, cudaheader.header),
    "api.h": (cudaspec.parse, dispatch.api_header),
    "exports.c": (cudaspec.parse, dispatch.exports),
    "tables.c": (cudaspec.parse, dispatch.tables),
    "loader.c": (cudaspec.parse, dispatch.loader),
    "procs.c": (cudaspec.parse, dispatch.proc_table),
    "errors.c": (cudaspec.parse, dispatch.errors),
    "trace.c": (cudaspec.parse, trace.table),
    "libcuda.map": (cudaspec.parse, dispatch.version_script),
    "cudaTypedefs.h": (cudaspec.parse, typedefs.header),
    "parity.c": (cudaspec.parse, parity.source),
    "api-coverage.md": (cudaspec.parse, coverage.page),
    "wire.dict": (spec.parse, dictionary.entries),
    "samples.c": (spec.parse, samples.source),
    "wrong.c": (cudaspec.parse, wrong.source),
}


def main(argv):
    if len(argv) < 4 or argv[1] not in OUTPUTS or (len(argv) > 4 and argv[1] != "api-coverage.md"):
        print(f"usage: generate.py {{{','.join(OUTPUTS)}}} SPEC OUTPUT [FOLDER..]", file=sys.stderr)
        return 2
    _, what, source, output, *folders = argv
    try:
        read, write = OUTPUTS[what]
        text = write(read(source, pathlib.Path(source).read_text(encoding="utf-8")), *([folders] if folders else []))
    except spec.SpecError as e:
        print(e, file=sys.stderr)
        return 1
    pathlib.Path(output).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
