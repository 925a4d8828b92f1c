"""Writes the call printer (the table rt_api_trace) from protocol/cuda.api."""

import re

from .cudaspec import BUILTIN
from .dispatch import BANNER, symbols

SIGNED = {"int", "long", "long long", "short", "char", "signed"}
FLOATS = {"float", "double"}


class Printer:
    def __init__(self, spec):
        self.types = {t.name: t for t in spec.types if t.kind != "const"}
        self.enums = []  # those whose names are needed, in order of first use

    def resolve(self, kind):
        """The C type behind aliases, and the first name met on the way that says how to show it."""
        shown = kind
        while kind in self.types and self.types[kind].kind == "alias":
            kind = self.types[kind].text
            if kind in self.types:
                shown = kind
        return kind, shown

    def value(self, kind, label, expression):
        """The statement that shows a value of type `kind`; None if there is nothing to see."""
        kind = kind.strip()
        if kind == "const char *":
            return f'rt_trace_str(&line_, "{label}", {expression});'
        if kind.endswith("*"):
            return f'rt_trace_hex(&line_, "{label}", (uintptr_t){expression});'
        base, shown = self.resolve(kind)
        t = self.types.get(base)
        if t and t.kind in ("opaque", "callback"):
            return f'rt_trace_hex(&line_, "{label}", (uintptr_t){expression});'
        if t and t.kind == "enum":
            if t not in self.enums:
                self.enums.append(t)
            return f'rt_trace_enum(&line_, "{label}", {expression}, names_{t.name}, GM_ARRAY_LEN(names_{t.name}));'
        if t:
            return None
        if base in FLOATS:
            return f'rt_trace_float(&line_, "{label}", {expression});'
        if base in SIGNED:
            return f'rt_trace_int(&line_, "{label}", {expression});'
        # What is an address or a set of bits is easier to read in hexadecimal.
        if kind != base and not kind.startswith("cuuint") or re.search(r"flags\Z", label, re.I):
            return f'rt_trace_hex(&line_, "{label}", {expression});'
        assert all(word in BUILTIN for word in base.split()), base
        return f'rt_trace_uint(&line_, "{label}", {expression});'

    def argument(self, f, p):
        plain = self.value(p.type, p.name, p.name) or f'rt_trace_struct(&line_, "{p.name}");'
        if p.direction == "in":
            return [f"    {plain}"]
        pointed = p.type[:-1].strip()
        if pointed == "char" and p.count and not p.count.isdigit():
            counter = next(c for c in f.params if c.name == p.count)
            size = ("*" if counter.type.endswith("*") else "") + counter.name
            inner = f'rt_trace_text(&line_, "*{p.name}", {p.name}, (int64_t){size});'
        elif p.count or pointed in ("void", "const void"):
            inner = None
        else:
            inner = self.value(pointed, "*" + p.name, "*" + p.name)
        if not inner:
            return [f"    {plain}"]
        return [f"    if (result_ == CUDA_SUCCESS && {p.name})", f"        {inner}", "    else", f"        {plain}"]


def table(spec):
    printer = Printer(spec)
    functions = []
    for symbol, f, _ in symbols(spec):
        functions += [f"static CUresult trace_{symbol}({f.args})", "{", "    struct rt_trace_line line_;",
                      f'    rt_trace_begin(&line_, "{symbol}");', f"    CUresult result_ = UNDER->{symbol}({f.names});"]
        for p in f.params:
            functions += printer.argument(f, p)
        functions += ["    rt_trace_end(&line_, result_);", "    return result_;", "}", ""]
    o = [BANNER, '#include "client/gen/api.h"', '#include "client/entry/trace.h"', "",
         "#define UNDER atomic_load_explicit(&rt_trace_under, memory_order_acquire)", ""]
    for e in printer.enums:
        o += [f"static const struct rt_trace_name names_{e.name}[] = {{"]
        o += [f'    {{ {name}, "{name}" }},' for name, _, _ in e.values]
        o += ["};", ""]
    o += functions
    o += ["const struct rt_api rt_api_trace = {"]
    o += [f"    .{symbol} = trace_{symbol}," for symbol, _, _ in symbols(spec)]
    o += ["};", ""]
    return "\n".join(o)
