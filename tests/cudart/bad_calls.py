#!/usr/bin/env python3
"""Every function of the runtime API with arguments that no program should pass: bad_calls.py BUILD [--rounds N] [--seed N]

bad_calls.cu draws each argument from a list for its type, which this script takes from src/cudart/cudart.api: null, wild, freed and destroyed
handles, sizes beyond everything, enumerators that are none. None may crash, hang, or succeed where a handle is bad or the place for a result
is missing. Prints TAP, a line for each major version.
"""

import argparse
import os
import pathlib
import re
import select
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "src/cudart"))
import generate  # noqa: E402  pylint: disable=wrong-import-position

# they end the state that the others need, or are the compilers' (hostile.c)
LEFT_OUT = re.compile(r"__cuda|cudaDeviceReset|cudaThreadExit")
# results that the documentation lets a program leave out
OPTIONAL = {"flags", "desc", "extent", "driverStatus", "free", "total", "id_out", "graph_out", "dependencies_out", "edgeData_out", "numDependencies_out",
            "leastPriority", "greatestPriority", "from", "to", "nodes", "pRootNodes", "edgeData", "pDependencies", "pDependentNodes"}
HANDLES = {"cuda" + x for x in ("Stream_t", "Event_t", "Graph_t", "GraphExec_t", "GraphNode_t", "Array_t", "Array_const_t", "MipmappedArray_t", "UserObject_t",
                                "MipmappedArray_const_t", "MemPool_t", "Function_t", "Kernel_t", "TextureObject_t", "SurfaceObject_t")}
HANG = 30  # seconds without a further call


def is_result(kind):
    """A parameter in which the call leaves something."""
    return kind.endswith("*") and not re.fullmatch(r"const [^*]+\*|void \*", kind)


def value(kind, name, function):
    """An expression of bad_calls.cu that draws an argument."""
    wild = "false" if "Memcpy" in function or name == "code" else "true"  # what a copy reads or writes on the host is the program's to know
    if kind in HANDLES:
        return f"({kind})(uintptr_t)draw_handle()"
    if re.fullmatch(r"enum \w+", kind) or kind in ("int", "unsigned int"):
        return f"({kind})draw_int()"
    if re.match("func|symbol|entry", name) and kind == "const void *":
        return "draw_symbol()"
    if kind == "void *" and name == "value":
        return "(void *)draw_out()"
    if kind == "void **" and name == "args":
        return "draw_arguments()"
    fixed = {"dim3": "draw_dim()", "size_t": "draw_size()", "unsigned long long": "draw_size()", "const char *": "draw_text()",
             "void *": f"draw_pointer({wild})", "const void *": f"(const void *)draw_pointer({wild})", "cudaError_t": "(cudaError_t)draw_int()",
             "cudaStreamCallback_t": "draw_callback()", "cudaHostFn_t": "draw_function()"}
    if kind in fixed:
        return fixed[kind]
    if re.fullmatch(r"const [^*]+\*", kind):
        return f"draw_in<{kind[6:-1].strip()}>()"
    return f"({kind})draw_out()" if kind.endswith("*") else f"draw_struct<{kind}>()"


def functions(major):
    api = generate.read(ROOT / "src/cudart/cudart.api")
    return [f for f in api if f.major in (None, major) and not f.refused and not LEFT_OUT.match(f.name)]


def calls_h(called):
    """A function for each of them, that draws its arguments and says whether its success is wrong; and their table."""
    out = []
    for n, f in enumerate(called):
        parameters = [(p[: -len(name)].strip(), name) for p, name, _ in f.parameters]
        lines = ["    dead = nothing = false;\n"] + [f"    auto a{i} = {value(*p, f.name)};\n" for i, p in enumerate(parameters)]
        lines += [f'    show("{name}", a{i});\n' for i, (_, name) in enumerate(parameters)]
        call = f"{f.name}({', '.join(f'a{i}' for i in range(len(parameters)))})"
        wrong = ["(dead && !nothing)"] + [f"!a{i}" for i, (kind, name) in enumerate(parameters) if name not in OPTIONAL and is_result(kind)]
        lines.append(f"    (void){call};\n    return false;\n" if f.result else f"    return {call} == cudaSuccess && ({' || '.join(wrong)});\n")
        out.append(f"static bool call_{n}()\n{{\n{''.join(lines)}}}\n")
    out.append("static const struct { const char *name; bool (*call)(); } calls[] = {\n")
    return "".join(out + [f'    {{ "{f.name}", call_{n} }},\n' for n, f in enumerate(called)]) + "};\n"


def watch(program, descriptor):
    """Reads the numbers of its calls until it ends: the last one, and whether it hung."""
    left, last = b"", None
    while select.select([descriptor], [], [], HANG)[0]:
        data = os.read(descriptor, 4096)
        if not data:
            return last, False
        left += data
        whole = len(left) // 4 * 4
        last = int.from_bytes(left[whole - 4: whole], "little") if whole else last
        left = left[whole:]
    program.kill()
    return last, True


def run(program, called, rounds, seed, env):
    """Makes all calls, going on behind each that crashed; yields what went wrong."""
    first, end = 0, len(called) * rounds
    while first < end:
        r, w = os.pipe()
        with subprocess.Popen([program, str(first), str(rounds), str(seed), str(w)], env=env, pass_fds=[w], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True) as p:
            os.close(w)
            last, hung = watch(p, r)
            os.close(r)
            yield from p.communicate()[0].splitlines()
        if p.returncode in (0, 1):
            return
        last = first if last is None else last
        yield f"{called[last % len(called)].name} {'hangs' if hung else f'ends with {p.returncode}'} ({last})"
        first = last + 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=4)
    args = parser.parse_args()
    compiler = args.build.resolve() / "src/cudart/gmux-cc"
    if not compiler.exists():
        print("1..0 # SKIP gmux-cc was not built")
        return 0
    failed = False
    print("1..2", flush=True)
    # A kernel may still be compiled, for the next program, when one ends; that makes files in the folder.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name)
        env = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH" and not k.startswith("CUDA")}
        env |= {"CUDA_MPS_PIPE_DIRECTORY": str(folder / "none"), "GMUX_DEVICE": "soft", "GMUX_CACHE_DIR": name}
        for n, major in enumerate((12, 13), 1):
            called, program = functions(major), folder / f"bad_calls{major}"
            (folder / "calls.h").write_text(calls_h(called), encoding="utf-8")
            subprocess.run([compiler, "-cudart", str(major), "-std=c++17", "-I", folder, "-o", program, HERE / "bad_calls.cu"], check=True, timeout=300)
            wrong = list(run(program, called, args.rounds, args.seed, env))
            print("\n".join([f"{'not ok' if wrong else 'ok'} {n} {len(called)} functions of CUDA {major}"] + ["# " + line for line in wrong]), flush=True)
            failed = failed or bool(wrong)
    return failed


if __name__ == "__main__":
    sys.exit(main())
