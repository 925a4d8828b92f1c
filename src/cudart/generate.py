#!/usr/bin/env python3
"""Writes from cudart.api: generate.py KIND API OUTPUT

KIND: functions.h (declarations for programs), declare.h (crt_ functions), entry.c (what the library exports, with -DCUDART_VERSION),
12.map, 13.map (version scripts), coverage.md.
"""

import pathlib
import re
import sys

NOTE = "written by src/cudart/generate.py from cudart.api"


class Function:
    def __init__(self, line):
        m = re.fullmatch(r"((?:\S+ )*?)(\w+)(?: \((.*)\))?", line)
        if not m:
            raise ValueError(line)
        words = m.group(1).split()
        self.name = m.group(2)
        self.major = next((int(w) for w in words if w in ("12", "13")), None)
        self.early = "early" in words
        self.quiet = "quiet" in words
        self.refused = "refused" in words
        self.twin = next((w for w in words if w in ("ptsz", "ptds")), None)
        self.result = words[words.index("returns") + 1].replace("~", " ") if "returns" in words else None
        self.parameters = []  # declaration, name, default
        for p in (m.group(3) or "void").split(", "):
            if p != "void":
                text, _, default = p.partition(" = ")
                self.parameters.append((text, re.search(r"(\w+)$", text).group(1), default))

    def guard(self, text):
        if not self.major:
            return text
        return f"#if CUDART_VERSION {'<' if self.major == 12 else '>='} 13000\n{text}#endif\n"

    def declare(self, prefix="", suffix="", more="", defaults=False):
        ps = [p + (f" GMUX_DEFAULT({d})" if defaults and d else "") for p, _, d in self.parameters]
        if more:
            ps.append(more)
        return f"{self.result or 'cudaError_t'} {prefix}{self.name}{suffix}({', '.join(ps) or 'void'})"

    def stream(self):
        """The parameter that says which stream."""
        return next((n for p, n, _ in self.parameters if re.match(r"cudaStream_t \w+$", p)), None)


def read(path):
    lines = pathlib.Path(path).read_text(encoding="utf-8").split("\n")
    return [Function(x) for x in lines if x and not x.startswith("#")]


def functions_h(functions):
    out = [f"/* Functions of the CUDA runtime API: {NOTE}. Part of cuda_runtime_api.h: */\n"]
    for f in functions:
        text = f.declare(defaults=True) + ";\n"
        if f.twin:
            text = f"#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM\n#define {f.name} {f.name}_{f.twin}\n#endif\n" + text
        if f.name.startswith("__") or f.refused:
            continue
        if f.name in ("cudaGetDeviceProperties_v2", "cudaStreamGetCaptureInfo_v2"):
            text = f"#define {f.name.removesuffix('_v2')} {f.name}\n" + text
        out.append(f.guard(text))
    return "".join(out)


def declare_h(functions):
    out = [f"/* {NOTE} */\n#ifndef GMUX_CUDART_DECLARE_H\n#define GMUX_CUDART_DECLARE_H\n"]
    for f in functions:
        if f.refused:
            text = ""
        elif f.result:
            text = '__attribute__((visibility("default"))) ' + f.declare() + ";\n"
        else:
            text = f.declare("crt_", "", "cudaStream_t own" if f.twin == "ptds" else "") + ";\n"
            if f.twin == "ptsz" and not f.stream():
                text += f.declare("crt_", "_ptsz") + ";\n"
        out.append(f.guard(text) if text else "")
    return "".join(out) + "#endif\n"


def entry(f, suffix, own):
    names = [n for _, n, _ in f.parameters]
    body = ""
    if suffix == "_ptsz" and f.stream():
        body += f"    if (!{f.stream()})\n        {f.stream()} = cudaStreamPerThread;\n"
    call = f"crt_{f.name}({', '.join(names + ([own] if own else []))})"
    if f.result:
        call = f"{f.name}({', '.join(names)})"
        return f"{f.declare('', suffix)}\n{{\n{body}    return {call};\n}}\n"
    if suffix == "_ptsz" and not f.stream():
        call = f"crt_{f.name}_ptsz({', '.join(names)})"
    enter = "" if f.early else "    cudaError_t r = crt_enter();\n    if (r)\n        return crt_done(r);\n"
    return f"{f.declare('', suffix)}\n{{\n{body}{enter}    return crt_done({call});\n}}\n"


def entry_c(functions):
    out = [f'/* {NOTE} */\n#include "cudart/cudart.h"\n#pragma GCC visibility push(default)\n']
    for f in functions:
        if f.refused:
            for name in [f.name] + ([f"{f.name}_{f.twin}"] if f.twin else []):
                head = f"cudaError_t {name}(void)"
                out.append(f.guard(f"{head};\n{head}\n{{\n    return crt_done(cudaErrorNotSupported);\n}}\n"))
            continue
        text = "" if f.result else f.declare() + ";\n" + entry(f, "", "NULL" if f.twin == "ptds" else None)
        if f.twin:
            text += f.declare("", "_" + f.twin) + ";\n"
            text += entry(f, "_" + f.twin, "cudaStreamPerThread" if f.twin == "ptds" else None)
        if text:
            out.append(f.guard(text))
    return "".join(out)


def version_map(functions, major):
    names = []
    for f in functions:
        if f.major in (None, major):
            names += [f.name] + ([f"{f.name}_{f.twin}"] if f.twin else [])
    return f"libcudart.so.{major} {{\n  global:\n" + "".join(f"    {n};\n" for n in sorted(names)) + "  local:\n    *;\n};\n"


def coverage(functions, tests):
    used = set()
    for folder in tests:
        for p in pathlib.Path(folder).glob("**/*.cu"):
            used |= set(re.findall(r"\bcuda\w+", p.read_text(encoding="utf-8")))
    out = [f"# Functions of the runtime API that our cudart has\n\n{NOTE}; *tested*: a program in tests/cudart calls it; *refused*: it answers cudaErrorNotSupported.\n",
           "\n| function | libraries | per-thread stream | tested |\n|---|---|---|---|\n"]
    for f in functions:
        if not f.name.startswith("__"):
            tested = f.name.removesuffix("_v2") in used
            out.append(f"| {f.name} | {f.major or '12, 13'} | {f.twin or ''} | {'refused' if f.refused else 'yes' if tested else ''} |\n")
    return "".join(out)


def main():
    kind, api, output, *rest = sys.argv[1:]
    functions = read(api)
    text = {"functions.h": lambda: functions_h(functions), "declare.h": lambda: declare_h(functions),
            "entry.c": lambda: entry_c(functions), "12.map": lambda: version_map(functions, 12),
            "13.map": lambda: version_map(functions, 13), "coverage.md": lambda: coverage(functions, rest)}[kind]()
    pathlib.Path(output).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
