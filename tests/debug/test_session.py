#!/usr/bin/env python3
"""scripts/session.py reads sessions by offsets of its own: it has to know the layout that the library was built with.

Usage: test_session.py LIBCUDA. The null device takes all records and computes nothing; a host function that waits keeps a
stream where it is.
"""

import ctypes
import os
import pathlib
import re
import subprocess
import sys
import threading

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/session.py"
FILLS = 5


def ok(result):
    assert result == 0, f"error {result}"


def session(*options):
    run = subprocess.run([sys.executable, SCRIPT, str(os.getpid()), *options], capture_output=True, text=True, timeout=20)
    assert run.returncode == 0, run.stderr
    return run.stdout


def streams(text):
    """(accepted, completed) of each stream"""
    found = re.findall(r"^  stream \d+, device 0: accepted (\d+), completed (\d+)", text, re.M)
    return [tuple(map(int, counts)) for counts in found]


def main(library):
    cuda = ctypes.CDLL(library)
    context, address, stream = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p()
    ok(cuda.cuInit(0))
    ok(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
    ok(cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4096)))
    ok(cuda.cuStreamCreate(ctypes.byref(stream), 1))
    for _ in range(FILLS):
        ok(cuda.cuMemsetD8Async(address, 0, ctypes.c_size_t(4096), stream))
    ok(cuda.cuStreamSynchronize(stream))
    text = session("-r")
    assert re.match(r"session at 0x[0-9a-f]+: error 0, generation \d+ of the executor, share 100 %\n"
                    r"  ring: 0 of 1048576 bytes wait \(taken (\d+), written \1\)", text), text
    assert (FILLS, FILLS) in streams(text), text

    release = threading.Event()
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: release.wait(20))
    ok(cuda.cuLaunchHostFunc(stream, function, None))
    ok(cuda.cuMemsetD8Async(address, 0, ctypes.c_size_t(4096), stream))
    text = session()
    release.set()
    ok(cuda.cuCtxSynchronize())
    assert (FILLS, FILLS) not in streams(session()), "the host function has run"
    assert not any(done > FILLS for _, done in streams(text)), text
    print("1..1\nok 1 - a session is shown as it is")


if __name__ == "__main__":
    main(sys.argv[1])
