"""Writes wrong.c from protocol/cuda.api: each function that is served, called with arguments that are wrong in one of
several ways (tests/api/wrong.c)."""

from .dispatch import BANNER
from .trace import Printer


def argument(types, p):
    """The expression for a parameter, and whether it is a handle."""
    kind = p.type.strip()
    if kind.endswith("*"):
        return "wrong_pointer(what)", False
    if kind.startswith("CUdeviceptr"):
        return f"({kind})wrong_address(what)", False
    base, _ = types.resolve(kind)
    t = types.types.get(base)
    if t and t.kind == "opaque":
        return "wrong_handle(what)", True
    if t and t.kind == "callback":
        return f"what == 0 ? NULL : ({kind})(uintptr_t)wrong_callback", False
    if t and t.kind in ("struct", "union"):
        return f"({kind}) {{ 0 }}", False
    if base.endswith("*"):
        return "wrong_pointer(what)", False
    return f"({kind})wrong_number(what)", False


def source(spec):
    types = Printer(spec)
    calls, rows = [], []
    for f in spec.functions:
        if f.tier != "impl" or f.elsewhere or not f.params:
            continue
        values = [argument(types, p) for p in f.params]
        handles = "true" if any(handle for _, handle in values) else "false"
        calls.append(f"static CUresult call_{f.symbol}(void *f, unsigned what)\n{{\n"
                     f"    return ((CUresult(*)({f.args}))f)({', '.join(v for v, _ in values)});\n}}\n")
        rows.append(f'    {{ "{f.symbol}", call_{f.symbol}, {handles} }},\n')
    return (BANNER + '#include "wrong.h"\n\n' + "\n".join(calls) + "\nconst struct wrong_function wrong_functions[] = {\n"
            + "".join(rows) + f"}};\nconst size_t wrong_functions_count = {len(rows)};\n")
