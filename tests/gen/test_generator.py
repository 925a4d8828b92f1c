#!/usr/bin/env python3
"""Tests of protocol/generate.py:  test_generator.py SUITE [unittest options]

  golden    a small specification through every output, compared byte for byte with tests/gen/expected; broken
            specifications fail at the line they say (a comment `# expect LINE: REASON` in each)
  header    the generated headers compile alone, as C and C++, in every mode; names mean what they should
  parity    our header and the toolkit's say the same, symbol by symbol; skipped where there is no toolkit
  dispatch  a library made from the small specification does what expected/small_main.golden says
  exports   the library given in LIBCUDA exports exactly the symbols of the specification

`test_generator.py update` writes tests/gen/expected anew; look at the difference before committing it.
"""

import contextlib
import io
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
GENERATE = ROOT / "protocol" / "generate.py"
CONTROL_OUTPUTS = ["messages.h", "messages.c", "ask.h", "ask.c", "serve.h", "serve.c", "send.h", "send.c", "wire.dict", "samples.c"]
CUDA_OUTPUTS = ["cuda.h", "cudaTypedefs.h", "api.h", "exports.c", "tables.c", "loader.c", "procs.c", "errors.c", "trace.c",
                "libcuda.map", "parity.c", "wrong.c", "api-coverage.md"]
CC = shlex.split(os.environ.get("CC", "cc"))
CXX = shlex.split(os.environ.get("CXX", "c++"))


sys.dont_write_bytecode = True
sys.path.insert(0, str(GENERATE.parent))
import generate as generator  # noqa: E402  protocol/generate.py


def generate(what, spec, output):
    """What the command would do, without starting an interpreter for each of dozens of runs."""
    stderr = io.StringIO()
    with contextlib.redirect_stderr(stderr):
        folders = [str(HERE / "programs" / name) for name in ("api", "client")] if what == "api-coverage.md" else []
        status = generator.main(["generate.py", what, str(spec), str(output)] + folders)
    return subprocess.CompletedProcess(None, status, stderr=stderr.getvalue())


def outputs():
    for kind, names in (("control", CONTROL_OUTPUTS), ("cuda", CUDA_OUTPUTS)):
        for name in names:
            yield name, HERE / f"small.{kind}.api", HERE / "expected" / f"{name}.golden"


def toolkit():
    """The folder of a toolkit's headers, or None."""
    places = [os.environ.get(v) for v in ("CUDA_HOME", "CUDA_PATH")] + ["/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda"]
    places += sorted(map(str, pathlib.Path("/usr/local").glob("cuda-*")), reverse=True)
    for place in filter(None, places):
        folder = pathlib.Path(place) / "include"
        if re.search(r"^#define CUDA_VERSION 13000\b", read(folder / "cuda.h"), re.M):
            return folder
    return None


def read(path):
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def library_symbols(path):
    out = subprocess.run(["nm", "-D", "--defined-only", str(path)], check=True, capture_output=True, text=True).stdout
    return {line.split()[2] for line in out.splitlines()}


def spec_symbols():
    with tempfile.TemporaryDirectory() as tmp:
        script = pathlib.Path(tmp) / "map"
        generate("libcuda.map", ROOT / "protocol" / "cuda.api", script)
        return set(re.findall(r"^    (\w+);$", read(script), re.M))


def elsewhere():
    """The functions that are not in cuda.h."""
    path = ROOT / "protocol" / "cuda.api"
    return [f for f in generator.cudaspec.parse(path, read(path)).functions if f.elsewhere]


unittest.TestCase.maxDiff = None


class Golden(unittest.TestCase):
    def test_outputs_are_as_expected(self):
        for name, spec, expected in outputs():
            with self.subTest(name), tempfile.TemporaryDirectory() as tmp:
                output = pathlib.Path(tmp) / name
                run = generate(name, spec, output)
                self.assertEqual((run.returncode, run.stderr), (0, ""))
                self.assertEqual(read(output), read(expected))

    def test_every_output_is_compared(self):
        usage = subprocess.run([sys.executable, str(GENERATE), "nothing"], capture_output=True, text=True)
        self.assertEqual(usage.returncode, 2)
        known = set(re.search(r"\{(.*)\}", usage.stderr)[1].split(","))
        self.assertEqual(known, set(CONTROL_OUTPUTS + CUDA_OUTPUTS))

    def test_broken_specifications_fail_at_their_line(self):
        broken = sorted((HERE / "broken").glob("*.api"))
        self.assertGreater(len(broken), 16)
        for spec in broken:
            with self.subTest(spec.name), tempfile.TemporaryDirectory() as tmp:
                output = pathlib.Path(tmp) / "output"
                output.write_text("untouched")
                line, reason = re.search(r"^# expect (\d+): (.*)$", read(spec), re.M).groups()
                run = generate("cuda.h" if ".cuda." in spec.name else "messages.h", spec, output)
                self.assertEqual(run.stderr, f"{spec}:{line}: {reason}\n")
                self.assertEqual(run.returncode, 1)
                self.assertEqual(read(output), "untouched")


class Compile(unittest.TestCase):
    """Helpers for tests that run a compiler."""

    def setUp(self):
        self.tmp = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) if hasattr(self, "enterContext") \
            else self.make_tmp()

    def make_tmp(self):
        tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, tmp)
        return pathlib.Path(tmp)

    def headers(self):
        folder = self.tmp / "include"
        folder.mkdir()
        for name in ("cuda.h", "cudaTypedefs.h"):
            self.assertEqual(generate(name, ROOT / "protocol" / "cuda.api", folder / name).returncode, 0)
        shutil.copy(ROOT / "include" / "cudaProfiler.h", folder)
        return folder

    def compile(self, command, text, suffix):
        source = self.tmp / ("source" + suffix)
        source.write_text(text)
        run = subprocess.run(command + [str(source)], capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""), command)


class Header(Compile):
    WARN = ["-Wall", "-Wextra", "-Wundef", "-Wshadow", "-Wredundant-decls", "-Werror", "-fsyntax-only"]
    MODES = [[], ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"], ["-DGMUX_CUDA_SYMBOLS"]]
    INCLUDES = "#include <cuda.h>\n#include <cudaTypedefs.h>\n#include <cudaProfiler.h>\n"

    def test_compiles_as_c(self):
        include = self.headers()
        for mode in self.MODES:
            for std in ("c99", "gnu17"):
                pedantic = ["-Wpedantic"] if std == "gnu17" else []
                self.compile(CC + [f"-std={std}", f"-I{include}"] + pedantic + self.WARN + mode, self.INCLUDES, ".c")

    def test_compiles_as_cxx(self):
        if not shutil.which(CXX[0]):
            self.skipTest("no C++ compiler")
        include = self.headers()
        for mode in self.MODES:
            self.compile(CXX + ["-std=c++11", f"-I{include}"] + self.WARN + mode, self.INCLUDES, ".cpp")

    def test_names_mean_the_right_variant(self):
        include = self.headers()
        text = "#include <cuda.h>\nint main(void)\n{\n    CUdeviceptr p;\n    return cuMemAlloc(&p, 4) + cuMemcpyHtoD(p, &p, 4)" \
               " + cuStreamSynchronize(0) + cuCtxSynchronize() + cuMemsetD8Async(p, 0, 1, 0);\n}\n"
        wanted = {(): "cuCtxSynchronize cuMemAlloc_v2 cuMemcpyHtoD_v2 cuMemsetD8Async cuStreamSynchronize",
                  ("-DCUDA_API_PER_THREAD_DEFAULT_STREAM",):
                      "cuCtxSynchronize cuMemAlloc_v2 cuMemcpyHtoD_v2_ptds cuMemsetD8Async_ptsz cuStreamSynchronize_ptsz",
                  ("-DGMUX_CUDA_SYMBOLS", "-Wno-incompatible-pointer-types"):
                      "cuCtxSynchronize cuMemAlloc cuMemcpyHtoD cuMemsetD8Async cuStreamSynchronize"}
        for mode, symbols in wanted.items():
            obj = self.tmp / "object.o"
            self.compile(CC + [f"-I{include}", "-w", "-c", "-o", str(obj)] + list(mode), text, ".c")
            out = subprocess.run(["nm", "-u", str(obj)], check=True, capture_output=True, text=True).stdout
            self.assertEqual(" ".join(sorted(re.findall(r"\bcu\w+", out))), symbols)

    def test_layouts_are_what_the_generator_computes(self):
        self.compile(CC + ["-std=gnu17", f"-I{self.headers()}", "-fsyntax-only"], parity(), ".c")


def parity():
    with tempfile.TemporaryDirectory() as tmp:
        output = pathlib.Path(tmp) / "parity.c"
        generate("parity.c", ROOT / "protocol" / "cuda.api", output)
        return read(output)


# As much of others' headers as those of the toolkit that need them look at.
OTHERS = {
    "GL/gl.h": "typedef unsigned int GLuint;\ntypedef unsigned int GLenum;\n",
    "EGL/egl.h": "typedef int EGLint;\n",
    "EGL/eglext.h": "typedef void *EGLImageKHR;\ntypedef void *EGLStreamKHR;\ntypedef void *EGLSyncKHR;\n",
    "vdpau/vdpau.h": "#include <stdint.h>\ntypedef uint32_t VdpDevice, VdpVideoSurface, VdpOutputSurface, VdpFuncId;\n"
                     "typedef enum { VDP_STATUS_OK } VdpStatus;\n"
                     "typedef VdpStatus VdpGetProcAddress(VdpDevice device, VdpFuncId id, void **pfn);\n",
}


class Parity(Compile):
    def others(self):
        folder = self.tmp / "others"
        for name, text in OTHERS.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        return folder

    def compare_elsewhere(self, text):
        command = CC + ["-std=gnu17", "-DGMUX_PARITY_ELSEWHERE", f"-I{self.others()}", f"-I{self.toolkit}", "-fsyntax-only"]
        self.compile(command, text, ".c")

    def setUp(self):
        super().setUp()
        self.toolkit = toolkit()
        if not self.toolkit:
            self.skipTest("no toolkit headers of CUDA 13.0 (looked at CUDA_HOME, CUDA_PATH, /usr/local/cuda*, /opt/cuda)")

    def test_types_values_and_prototypes_are_equal(self):
        self.compile(CC + ["-std=gnu17", f"-I{self.toolkit}", "-fsyntax-only"], parity(), ".c")

    def test_what_other_headers_declare_is_equal(self):
        text = parity()
        self.compare_elsewhere(text)
        for old, new in (("cuGLGetDevices_v2(unsigned int *", "cuGLGetDevices_v2(int *"),
                         ("offsetof(CUeglFrame_v1, cuFormat) == 56", "offsetof(CUeglFrame_v1, cuFormat) == 60"),
                         ("CUvdpGetProcAddress)(uint32_t device", "CUvdpGetProcAddress)(int device")):
            self.assertIn(old, text)
            with self.assertRaises(AssertionError):
                self.compare_elsewhere(text.replace(old, new))

    def test_a_difference_would_be_seen(self):
        text = parity()
        for old, new in (("CUresult cuInit(unsigned int Flags)", "CUresult cuInit(int Flags)"),
                         ("(long long)CUDA_ERROR_UNKNOWN == 999", "(long long)CUDA_ERROR_UNKNOWN == 998"),
                         ("offsetof(CUlaunchConfig, hStream) == 32", "offsetof(CUlaunchConfig, hStream) == 40")):
            self.assertIn(old, text)
            with self.assertRaises(AssertionError):
                self.compile(CC + ["-std=gnu17", f"-I{self.toolkit}", "-fsyntax-only"], text.replace(old, new), ".c")

    def test_variants_and_versions_are_equal(self):
        """The toolkit's pointer types say since when each variant exists."""
        def versions(folder):
            command = CC + ["-E", "-P", "-D__CUDA_API_VERSION_INTERNAL", f"-I{folder}", str(folder / "cudaTypedefs.h")]
            out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            return set(re.findall(r"\bPFN_cu\w+?_v\d+(?:_pts[z]|_ptds)?\b", out))
        ours = {v for v in versions(self.headers()) if not v.startswith("PFN_cuProfiler")}
        self.assertEqual(ours, {v for v in versions(self.toolkit) if not v.startswith("PFN_cuProfiler")})

    def test_variants_of_what_other_headers_declare_are_equal(self):
        theirs = set()
        for name in ("GL", "EGL", "VDPAU"):
            header = self.toolkit / f"cuda{name}Typedefs.h"
            command = CC + ["-E", "-P", "-D__CUDA_API_VERSION_INTERNAL", f"-I{self.others()}", f"-I{self.toolkit}",
                            "-include", "vdpau/vdpau.h", str(header)]
            out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            theirs |= set(re.findall(r"\bPFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\)\(", out))
        ours = {(f.base, str(f.since), "") for f in elsewhere()}
        ours |= {(f.base, str(since), f"_{twin}") for f in elsewhere() for twin, since in f.twins.items()}
        self.assertEqual(ours, theirs)

    def test_symbols_are_those_of_the_link_stub(self):
        stub = self.toolkit.parent / "lib64" / "stubs" / "libcuda.so"
        if not stub.is_file():
            self.skipTest("the toolkit has no link stub")
        ours = spec_symbols() - {"gmux_client_library"} - {s for f in elsewhere() for s in f.symbols}
        self.assertEqual(ours, library_symbols(stub))


class Dispatch(Compile):
    def run_small(self, **environment):
        gen = self.tmp / "client" / "gen"
        gen.mkdir(parents=True)
        sources = ["exports.c", "tables.c", "loader.c", "procs.c", "errors.c", "trace.c"]
        for name in sources + ["api.h", "libcuda.map"]:
            self.assertEqual(generate(name, HERE / "small.cuda.api", gen / name).stderr, "")
        self.assertEqual(generate("cuda.h", HERE / "small.cuda.api", self.tmp / "cuda.h").stderr, "")
        program = self.tmp / "small"
        files = [gen / name for name in sources] + [HERE / "small_main.c"]
        files += [ROOT / "src" / name for name in ("client/entry/dispatch.c", "client/entry/procaddr.c", "client/entry/trace.c", "base/log.c")]
        # The generated folder first: its client/gen/api.h hides the real one.
        command = CC + ["-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror",
                        f"-I{self.tmp}", f"-I{ROOT / 'src'}", "-o", str(program), "-pthread"] + [str(f) for f in files]
        run = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        clean = {k: v for k, v in os.environ.items() if not k.startswith("GMUX_")}
        return subprocess.run([str(program)], capture_output=True, text=True, env=clean | environment)

    def test_calls_reach_what_they_should(self):
        run = self.run_small()
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(run.stdout, read(HERE / "expected" / "small_main.golden"))

    def test_missing_functions_are_named_once(self):
        run = self.run_small(GMUX_LOG="api=warn")
        said = re.findall(r"(\w+) is not supported", run.stderr)
        self.assertEqual(said, ["cuMemAlloc", "cuStreamSet", "cuStreamSet_v2", "cuMemAlloc_v2"])

    def test_calls_are_printed(self):
        run = self.run_small(GMUX_TRACE="api")
        self.assertEqual(run.stdout, read(HERE / "expected" / "small_main.golden"))
        lines = re.sub(r"<[0-9.]+us>", "<TIME>", re.sub(r"^gmux \d+ ", "gmux TID ", run.stderr, flags=re.M))
        lines = re.sub(r"0x[57][0-9a-f]{11}\b", "0xHOST", lines)
        self.assertEqual(lines, read(HERE / "expected" / "small_main.trace.golden"))


class Exports(unittest.TestCase):
    def test_symbols_are_those_of_the_specification(self):
        self.assertEqual(library_symbols(os.environ["LIBCUDA"]), spec_symbols())


def update():
    for name, spec, expected in outputs():
        run = generate(name, spec, expected)
        if run.returncode:
            sys.exit(run.stderr)


def main():
    suites = {"golden": Golden, "header": Header, "parity": Parity, "dispatch": Dispatch, "exports": Exports}
    if sys.argv[1:] == ["update"]:
        return update()
    if len(sys.argv) < 2 or sys.argv[1] not in suites:
        sys.exit(__doc__)
    tests = unittest.defaultTestLoader.loadTestsFromTestCase(suites[sys.argv[1]])
    result = unittest.TextTestRunner(verbosity=2).run(tests)
    if not result.wasSuccessful():
        return 1
    if result.skipped and len(result.skipped) == result.testsRun:
        print("skipped:", result.skipped[0][1])
        return 77  # meson shows the test as skipped
    return 0


if __name__ == "__main__":
    sys.exit(main())
