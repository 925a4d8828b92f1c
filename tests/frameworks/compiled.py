"""torch.compile: kernels made by Triton, against the same function step by step."""

import importlib.util
import os
import shutil
import tempfile

import program

if not importlib.util.find_spec("triton"):
    program.skip("no triton")
if not (os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")):
    program.skip("no C compiler, which triton needs")


def main():
    cache = tempfile.mkdtemp(prefix="gmux-torch.")
    os.environ.update(TORCHINDUCTOR_CACHE_DIR=f"{cache}/inductor", TRITON_CACHE_DIR=f"{cache}/triton",
                      TORCHINDUCTOR_COMPILE_THREADS="1")
    try:
        torch = program.start(deterministic=False)

        def f(x, w):
            y = torch.nn.functional.gelu(x @ w)
            return torch.softmax(y * 2 + x.sin(), dim=-1).sum(dim=0)

        made = torch.Generator().manual_seed(10)
        x, w = torch.randn(256, 256, generator=made).cuda(), torch.randn(256, 256, generator=made).cuda() / 16
        plain = f(x, w)
        fast = torch.compile(f)(x, w)
        graphed = torch.compile(f, mode="reduce-overhead")
        for _ in range(4):
            last = graphed(x, w).clone()
        program.report({"plain": plain.double().sum().item(), "compiled": fast.double().sum().item(),
                        "graphed": last.double().sum().item(), "close": bool(torch.allclose(plain, fast, rtol=1e-4)),
                        "close_graphed": bool(torch.allclose(plain, last, rtol=1e-4))}, tolerance=1e-6)
    finally:
        shutil.rmtree(cache, ignore_errors=True)


if __name__ == "__main__":
    main()
