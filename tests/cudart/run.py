#!/usr/bin/env python3
"""Programs in CUDA C++ with gmux's own runtime library, on the software device: run.py [--cccl] BUILD [NAME...]

Each is compiled by gmux-cc, with headers and libraries of the build tree and nothing of NVIDIA's, and checks itself: it
passes when it exits with 0 and its last line is `passed`, or what LAST says. Prints TAP. Without gmux-cc in the build all is skipped.

--cccl: those with Thrust and CUB, whose sources are no part of this project: CCCL_ROOT is a checkout of NVIDIA/cccl, or a
folder with thrust, cub and cuda in it. Without it they are skipped.
"""

import os
import pathlib
import pty
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

# name: source, what its compilation needs beside, arguments
PROGRAMS = {
    "basics": ("basics.cu", [], []),
    "bare": ("bare.cu", [], []),
    "bare-17": ("bare.cu", ["-std=c++17", "-O0", "-cudart", "13"], []),
    "edge": ("edge.cu", [], []),
    "basics-13": ("basics.cu", ["-cudart", "13"], []),
    "basics-debug": ("basics.cu", ["-g", "-lineinfo", "-O0", "-std=c++14", "-arch=sm_70"], []),
    "basics-threads": ("basics.cu", ["--default-stream=per-thread", "-gencode", "arch=compute_90,code=sm_90"], []),
    "kinds": ("kinds.cu", [], []),
    "groups": ("groups.cu", ["-arch=sm_75"], []),
    "groups-17": ("groups.cu", ["-arch=sm_80", "-std=c++17", "-O0"], []),
    "pipeline": ("pipeline.cu", ["-arch=sm_80"], []),
    "pipeline-old": ("pipeline.cu", ["-arch=sm_75", "-std=c++17", "-O0", "-DNO_BARRIERS"], []),
    "matrices": ("matrices.cu", ["-arch=sm_75"], []),
    "matrices-newer": ("matrices.cu", ["-arch=sm_80", "-DNEWER", "-std=c++17"], []),
    "objects": ("objects.cu", [], []),
    "objects-13": ("objects.cu", ["-cudart", "13", "--default-stream=per-thread"], []),
    "graphs": ("graphs.cu", [], []),
    "graphs-13": ("graphs.cu", ["-cudart", "13"], []),
    "kinds-13": ("kinds.cu", ["-cudart", "13"], []),
    "managed": ("managed.cu", ["-O2", "-std=c++17"], []),
    "managed-13": ("managed.cu", ["-cudart", "13", "-O0", "-g", "-lineinfo"], []),
    "initial": ("initial.cu", ["-O3", "-std=c++17"], []),
    "initial-13": ("initial.cu", ["-cudart", "13", "-O0", "-std=c++17", "-rdc=true"], []),
    "maths": ("maths.cu", [], []),
    "relocatable": ("relocatable/main.cu", ["-rdc=true", HERE / "relocatable/other.cu"], []),
    **{name: ("../runtimes/ends.cu", ["-ldl"], [name]) for name in ("reset", "fork", "exit", "unload")},
    "newer": ("newer.cu", ["-Xlinker", "--export-dynamic"], []),
    "newer-13": ("newer.cu", ["-cudart", "13", "-Xlinker", "--export-dynamic"], []),
    "nvrtc": ("nvrtc.c", ["-lnvrtc", "-lcuda", "-ldl"], []),
    "nvrtc-13": ("nvrtc.c", ["-cudart", "13", "-lnvrtc", "-lcuda", "-ldl"], []),
    "nvjitlink": ("nvjitlink.c", ["-lnvJitLink", "-lcuda", "-ldl"], []),
    "nvjitlink-13": ("nvjitlink.c", ["-cudart", "13", "-lnvJitLink", "-lcuda", "-ldl"], []),
    "halves": ("halves.cu", [], []),
    "halves-17": ("halves.cu", ["-std=c++17", "-O0", "-arch=sm_90"], []),
    "host-only": ("host_only.cpp", ["-std=c++11"], []),
    "host-only-13": ("host_only.cpp", ["-cudart", "13", "-O0"], []),
    "old": ("old.c", ["-std=c++17", "-O2"], []),
    "samples": ("samples.cu", [], []),
    "samples-13": ("samples.cu", ["-cudart", "13", "-O0", "-std=c++17"], []),
    "tables": ("tables.cu", [], []),
    "tiny": ("tiny.cu", [], []),
    "tiny-17": ("tiny.cu", ["-std=c++17", "-O0", "-arch=sm_90", "-use_fast_math"], []),
    "waits": ("waits.cu", [], []),
    "intrinsics": ("intrinsics.cu", ["-arch=sm_90"], []),
    "intrinsics-80": ("intrinsics.cu", ["-arch=sm_80"], []),
    "occupancy": ("occupancy.cu", ["-std=c++17"], []),
    "batch": ("batch.cu", [], []),
    "batch-13": ("batch.cu", ["-cudart", "13"], []),
    "order": ("order.cu", ["-O2"], []),
    "order-threads": ("order_threads.cu", ["-O2", "-lcuda"], []),
    "random": ("random/main.cu", ["-std=c++17", "-cudart", "13", *sorted({*HERE.glob("random/*.cu")} - {HERE / "random/main.cu"})], []),
    "surfaces": ("surfaces.cu", ["-arch=sm_80"], []),
    "spellings": ("spellings.cu", [], []),
    "spellings-objects": ("spellings.cu", ["-rdc=true", "-O0", "-g", "-arch=sm_90", "-std=c++17"], []),
    "warp": ("warp.cu", ["-arch=sm_80"], []),
    "declared": ("declared.cu", [], []),
    "declared-apart": ("declared.cu", ["-rdc=true", "-std=c++17", "-O0", "-gencode", "arch=compute_75,code=sm_75", "-gencode", "arch=compute_80,code=sm_80"], []),
    "overloads": ("overloads.cu", [], []),
    "overloads-17": ("overloads.cu", ["-std=c++17", "-O0", "-arch=sm_90"], []),
    "vecadd": ("../../examples/vecadd/vecadd.cu", [], []),
    "numbers": ("numbers.cu", ["-std=c++17"], []),
    "entries": ("entries.cu", ["-Xlinker", "-z,now"], []),
    "entries-13": ("entries.cu", ["-cudart", "13", "-Xlinker", "-z,now"], []),
    "entries-threads": ("entries.cu", ["--default-stream=per-thread", "-Xlinker", "-z,now"], []),
    "hostile": ("hostile.c", [], []),
    "hostile-13": ("hostile.c", ["-cudart", "13"], []),
}

CCCL = {
    "thrust": ("cccl/thrust.cu", ["-std=c++17", "-cudart", "13", "-Wno-deprecated-declarations"], []),
    "cub": ("cccl/cub.cu", ["-std=c++17", "-cudart", "13"], []),
}

# name: what does not compile, options, and what is said then
REFUSED = {
    "managed-initial": ("__managed__ int x;\nthread_local int *p = &x;\n", [], "no initial value for a thread's variable: p"),
    "openmp-missing": ("int x;\n", ["-Xcompiler", "-fopenmp"], "apt-get install libomp-19-dev"),
}
# name: what compiles, options, and what is said of it, or that nothing is
WARNED = {
    "undefined": ("__device__ int f(int);\nint f(int x) { return x; }\n__global__ void k(int *p) { *p = f(4); }\n", [], "kernels call _Z1fi"),
    "defined-elsewhere": ("__device__ int f(int);\n__global__ void k(int *p) { *p = f(4); }\n", ["-rdc=true"], ""),
    "defined": ("__device__ int f(int);\n__device__ int f(int x) { return new int[x] != 0; }\n"
                "__global__ void k(int *p) { *p = f(4); }\n", [], ""),
}
# name: what compiles, what its PTX has, and what not
PTX = {
    "host-constants": ("""struct Ops { void (*f)(void); int n; };
extern const Ops ops;
extern const int numbers[3];
static void host() { }
const Ops ops = { host, 3 };
const int numbers[3] = { 1, 2, 3 };
__global__ void kernel(int *p) { *p = numbers[1]; }
int main() { ops.f(); }
""", "numbers[12] =", "ops["),
}
# name: a library's source, and that of a program which is named behind it
LIBRARY = {
    "library-first": ("int seven() { return 7; }\n",
                      "#include <cstdio>\nint seven();\nint main() { printf(seven() == 7 ? \"passed\\n\" : \"FAILED\\n\"); }\n"),
}
# What gmux-cc mends by what clang says, which has colours where it goes to a terminal.
TERMINAL = {"declared-terminal": "declared.cu"}
# a clang without OpenMP's library, which it prints the bare name of
NO_OPENMP = "#!/bin/sh\n[ \"$1\" = -print-file-name=libomp.so ] && exec echo libomp.so\nexec echo /\n"

# name: target of CMake's project
PROJECT = {"cmake": "square", "cmake-relocatable": "apart"}

NOTHING = "malloc {0}, memset {0}, launch {0}, copy {0}, symbol {0}, free {0}: -1 -1"
# what NVIDIA's runtimes of 12.4 and 13.0 answer in handlers of exit
LAST = {"vecadd": "vecadd: 1000000 elements, all correct", "exit": "in a destructor: " + NOTHING.format(4)}
# and in a child of a program that had begun
WITHIN = {"fork": "the same after a reset: " + NOTHING.format(3), "exit": "in a handler, after a reset: " + NOTHING.format(4)}


def cccl_includes():
    """Options that name CCCL's headers, or None."""
    root = pathlib.Path(os.environ.get("CCCL_ROOT") or "none")
    for folders in ([root], [root / name for name in ("thrust", "cub", "libcudacxx/include")]):
        if all(any((f / h).exists() for f in folders) for h in ("thrust/version.h", "cub/cub.cuh", "cuda/std/array")):
            return [word for f in folders for word in ("-isystem", f)]
    return None


def make_project(compiler, folder, env, target):
    """CMake's project with the toolchain file: what it says, and its program `target`."""
    commands = [["cmake", "-S", HERE / "cmake", "-B", folder / "project", "-DCMAKE_BUILD_TYPE=Release",
                 f"-DCMAKE_TOOLCHAIN_FILE={(compiler.parent / 'gmux-cc.cmake').resolve()}"], ["cmake", "--build", folder / "project", "--target", target]]
    for command in commands:
        made = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120, check=False)
        if made.returncode:
            break
    return made, folder / "project" / target


def refused(compiler, name, folder, env):
    """What went wrong where a compilation is to fail with a reason, or None."""
    text, options, reason = REFUSED[name]
    source = folder / (name + ".cu")
    source.write_text(text, encoding="utf-8")
    if name == "openmp-missing":
        clang = folder / "clang"
        clang.write_text(NO_OPENMP, encoding="utf-8")
        clang.chmod(0o755)
        env = env | {"GMUX_CLANG": str(clang)}
    made = subprocess.run([compiler, *options, "-c", "-o", folder / name, source], capture_output=True, text=True, env=env,
                          timeout=120, check=False)
    return None if made.returncode and reason in made.stderr else f"status {made.returncode}\n{made.stderr}"


def warned(compiler, name, folder, env):
    """What is wrong with what is said of a source that compiles, or None."""
    text, options, reason = WARNED[name]
    source = folder / (name + ".cu")
    source.write_text(text, encoding="utf-8")
    made = subprocess.run([compiler, *options, "-c", "-o", folder / name, source], capture_output=True, text=True, env=env, timeout=120, check=False)
    right = made.returncode == 0 and (reason in made.stderr if reason else not made.stderr)
    return None if right else f"status {made.returncode}\n{made.stderr}"


def ptx(compiler, name, folder, env):
    """What is wrong with a source's PTX, or None."""
    text, has, has_not = PTX[name]
    source, output = folder / (name + ".cu"), folder / (name + ".ptx")
    source.write_text(text, encoding="utf-8")
    made = subprocess.run([compiler, "-ptx", "-o", output, source], capture_output=True, text=True, env=env, timeout=120, check=False)
    if made.returncode:
        return made.stderr
    text = output.read_text(encoding="utf-8")
    return None if has in text and has_not not in text else text


def make_with_library(compiler, name, folder, env):
    """Makes a program of a static library that stands before its source: what was said, and the program."""
    for text, source in zip(LIBRARY[name], ("aside.cu", "program.cu")):
        (folder / source).write_text(text, encoding="utf-8")
    for command in ([compiler, "-c", "-o", folder / "aside.o", folder / "aside.cu"], ["ar", "rc", folder / "libaside.a", folder / "aside.o"],
                    [compiler, "-L", folder, "-laside", "-o", folder / name, folder / "program.cu"]):
        made = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120, check=False)
        if made.returncode:
            break
    return made, folder / name


def make_at_terminal(compiler, name, folder, env):
    """Makes a program, with a terminal in the place of standard error: what was said, and the program."""
    ours, theirs = pty.openpty()
    made = subprocess.Popen([compiler, "-o", folder / name, HERE / TERMINAL[name]], stdout=subprocess.PIPE, stderr=theirs, text=True, env=env)
    os.close(theirs)
    said = b""
    try:
        while more := os.read(ours, 4096):
            said += more
    except OSError:  # everybody else has closed it
        pass
    os.close(ours)
    out, _ = made.communicate(timeout=120)
    return subprocess.CompletedProcess(made.args, made.returncode, out, said.decode(errors="replace")), folder / name


def run_one(compiler, name, folder, includes=()):
    """What went wrong, or None."""
    env = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH" and not k.startswith("CUDA")}
    env |= {"CUDA_MPS_PIPE_DIRECTORY": str(folder / "none"), "GMUX_DEVICE": "soft", "GMUX_CACHE_DIR": str(folder)}
    if name in REFUSED:
        return refused(compiler, name, folder, env)
    if name in WARNED:
        return warned(compiler, name, folder, env)
    if name in PTX:
        return ptx(compiler, name, folder, env)
    arguments = []
    if name in LIBRARY:
        made, program = make_with_library(compiler, name, folder, env)
    elif name in TERMINAL:
        made, program = make_at_terminal(compiler, name, folder, env)
    elif name in PROJECT:
        made, program = make_project(compiler, folder, env, PROJECT[name])
    else:
        source, flags, arguments = (PROGRAMS | CCCL)[name]
        program = folder / name
        made = subprocess.run([compiler, *flags, *includes, "-o", program, HERE / source], capture_output=True, text=True, env=env,
                              timeout=600 if includes else 120, check=False)
    if made.returncode:
        return made.stdout + made.stderr
    ran = subprocess.run([program, *arguments], capture_output=True, text=True, env=env, timeout=120, check=False)
    lines = ran.stdout.split("\n")
    if ran.returncode or lines[-2:] != [LAST.get(name, "passed"), ""] or WITHIN.get(name, lines[0]) not in lines:
        return f"status {ran.returncode}\n{ran.stdout}{ran.stderr}"
    return None


def main():
    words = sys.argv[1:]
    cccl = "--cccl" in words and words.remove("--cccl") is None
    build = pathlib.Path(words[0])
    names = words[1:] or ([*CCCL] if cccl else [*PROGRAMS, *REFUSED, *WARNED, *PTX, *LIBRARY, *TERMINAL, *PROJECT])
    includes = cccl_includes() if cccl else []
    compiler = build / "src/cudart/gmux-cc"
    if not compiler.exists():
        print("1..0 # SKIP no gmux-cc in this build: it wants clang-19, llvm-19 and libclc-19")
        return 0
    if includes is None:
        print("1..0 # SKIP no Thrust and CUB: -Dcccl= or CCCL_ROOT is to name a checkout of NVIDIA/cccl")
        return 0
    print(f"1..{len(names)}", flush=True)
    # A kernel may still be compiled, for the next program, when one ends; that makes files in the folder.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        failed = 0
        for n, name in enumerate(names, 1):
            if name in PROJECT and not shutil.which("cmake"):
                print(f"ok {n} {name} # SKIP no cmake")
                continue
            why = run_one(compiler, name, pathlib.Path(folder), includes)
            failed += why is not None
            print(f"{'not ok' if why else 'ok'} {n} {name}", flush=True)
            for line in (why or "").rstrip().split("\n")[:30]:
                if line:
                    print(f"# {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
