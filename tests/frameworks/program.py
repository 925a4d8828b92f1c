"""What these programs share: a fixed start for those that use PyTorch, a gate, and one line of JSON at the end.

A program calls start(), or skip() where it cannot run, before anything else, works, and calls report(). `results` are compared between a native run and
one through gmux: exactly, or within the relative `tolerance` that the program names; floats travel as Python prints them,
which is exact. `timings` are shown, never compared.
"""

import json
import os
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS computes the same every time


class Run:
    timings = {}


def begun():
    """When this process was started, on the clock of time.monotonic(): the caller's word, or what the kernel knows."""
    given = os.environ.get("PROGRAM_BEGIN")
    if given:
        return float(given)
    with open("/proc/self/stat") as f:
        ticks = int(f.read().rsplit(")", 1)[1].split()[19])
    return ticks / os.sysconf("SC_CLK_TCK")


def skip(reason):
    print(json.dumps({"skip": reason}), flush=True)
    sys.exit(0)


def start(deterministic=True, seed=1):
    """Imports torch, runs a first kernel, notes how long that took without the import; returns torch."""
    t0 = time.monotonic()
    try:
        import torch
    except ImportError as e:
        skip(f"no torch: {e}")
    t1 = time.monotonic()
    if not torch.cuda.is_available():
        skip("no GPU")
    one = torch.ones(1, device="cuda") + 1
    torch.cuda.synchronize()
    t2 = time.monotonic()
    if one.item() != 2:
        raise SystemExit("the first kernel computed nothing")
    Run.timings = {"import_s": t1 - t0, "start_s": t2 - begun() - (t1 - t0)}
    torch.manual_seed(seed)
    torch.backends.cudnn.benchmark = False
    if deterministic:
        torch.use_deterministic_algorithms(True)
    return torch


def gate():
    """With EX_GATE: says "ready" and waits for a line, so that several programs begin together."""
    if os.environ.get("EX_GATE"):
        print("ready", flush=True)
        sys.stdin.readline()


def report(results, tolerance=0.0, timings=None, **more):
    print(json.dumps({"results": results, "tolerance": tolerance, "timings": {**Run.timings, **(timings or {})}, **more}),
          flush=True)
