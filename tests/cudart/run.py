#!/usr/bin/env python3
"""Programs in CUDA C++ with gmux's own runtime library, on the software device: run.py BUILD [NAME...]

Each is compiled by gmux-cc, with headers and libraries of the build tree and nothing of NVIDIA's, and checks itself: it
passes when it exits with 0 and its last line is `passed`, or what LAST says. Prints TAP. Without gmux-cc in the build all is skipped.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

# name: source, what its compilation needs beside, arguments
PROGRAMS = {
    "basics": ("basics.cu", [], []),
    "basics-13": ("basics.cu", ["-cudart", "13"], []),
    "basics-debug": ("basics.cu", ["-g", "-lineinfo", "-O0", "-std=c++14", "-arch=sm_70"], []),
    "basics-threads": ("basics.cu", ["--default-stream=per-thread", "-gencode", "arch=compute_90,code=sm_90"], []),
    "kinds": ("kinds.cu", [], []),
    "kinds-13": ("kinds.cu", ["-cudart", "13"], []),
    "maths": ("maths.cu", [], []),
    "vecadd": ("../../examples/vecadd/vecadd.cu", [], []),
    "numbers": ("numbers.cu", ["-std=c++17"], []),
    "hostile": ("hostile.c", [], []),
    "hostile-13": ("hostile.c", ["-cudart", "13", "-DCUDART_VERSION=13000"], []),
}

# name: what does not compile, and what is said then
REFUSED = {
    "managed": ("__device__ __managed__ int x;\n", "gmux-cc does not serve __managed__ variables"),
}

LAST = {"vecadd": "vecadd: 1000000 elements, all correct"}


def make_project(compiler, folder, env):
    """CMake's project with the toolchain file: what it says, and its program."""
    commands = [["cmake", "-S", HERE / "cmake", "-B", folder / "project", "-DCMAKE_BUILD_TYPE=Release",
                 f"-DCMAKE_TOOLCHAIN_FILE={(compiler.parent / 'gmux-cc.cmake').resolve()}"], ["cmake", "--build", folder / "project"]]
    for command in commands:
        made = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120, check=False)
        if made.returncode:
            break
    return made, folder / "project" / "square"


def refused(compiler, name, folder, env):
    """What went wrong where a compilation is to fail with a reason, or None."""
    text, reason = REFUSED[name]
    source = folder / (name + ".cu")
    source.write_text(text, encoding="utf-8")
    made = subprocess.run([compiler, "-c", "-o", folder / name, source], capture_output=True, text=True, env=env, timeout=120,
                          check=False)
    return None if made.returncode and reason in made.stderr else f"status {made.returncode}\n{made.stderr}"


def run_one(compiler, name, folder):
    """What went wrong, or None."""
    env = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH" and not k.startswith("CUDA")}
    env |= {"CUDA_MPS_PIPE_DIRECTORY": str(folder / "none"), "GMUX_DEVICE": "soft", "GMUX_CACHE_DIR": str(folder)}
    if name in REFUSED:
        return refused(compiler, name, folder, env)
    if name == "cmake":
        arguments = []
        made, program = make_project(compiler, folder, env)
    else:
        source, flags, arguments = PROGRAMS[name]
        program = folder / name
        made = subprocess.run([compiler, *flags, "-o", program, HERE / source], capture_output=True, text=True, env=env,
                              timeout=120, check=False)
    if made.returncode:
        return made.stdout + made.stderr
    ran = subprocess.run([program, *arguments], capture_output=True, text=True, env=env, timeout=120, check=False)
    if ran.returncode or ran.stdout.split("\n")[-2:] != [LAST.get(name, "passed"), ""]:
        return f"status {ran.returncode}\n{ran.stdout}{ran.stderr}"
    return None


def main():
    build = pathlib.Path(sys.argv[1])
    names = sys.argv[2:] or [*PROGRAMS, *REFUSED, "cmake"]
    compiler = build / "src/cudart/gmux-cc"
    if not compiler.exists():
        print("1..0 # SKIP no gmux-cc in this build: it wants clang-19, llvm-19 and libclc-19")
        return 0
    print(f"1..{len(names)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        failed = 0
        for n, name in enumerate(names, 1):
            if name == "cmake" and not shutil.which("cmake"):
                print(f"ok {n} {name} # SKIP no cmake")
                continue
            why = run_one(compiler, name, pathlib.Path(folder))
            failed += why is not None
            print(f"{'not ok' if why else 'ok'} {n} {name}", flush=True)
            for line in (why or "").rstrip().split("\n")[:30]:
                if line:
                    print(f"# {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
