"""CuPy: elementwise kernels, its own CUDA source, cuBLAS, cuFFT, cuSOLVER, cuRAND, cuSPARSE, streams, pools, graphs, all GPUs."""

import program

try:
    import cupy as cp
    import numpy as np
    from cupyx.scipy import sparse
except ImportError as e:
    program.skip(f"no CuPy: {e}")

r = {}
a = cp.arange(1 << 20, dtype=cp.float32).reshape(1024, 1024) / (1 << 20)
r["sum"] = float((cp.sin(a) ** 2 + cp.cos(a) ** 2).sum())
r["matmul"] = float((a @ a.T).mean())
r["fft"] = float(cp.abs(cp.fft.fft2(a)).max())
r["solve"] = float(cp.linalg.solve(a[:256, :256] + 9 * cp.eye(256, dtype=cp.float32), cp.ones(256, cp.float32)).sum())
r["svd"] = float(cp.linalg.svd(a[:128, :128], compute_uv=False)[0])
r["sort"] = [int(x) for x in cp.sort(cp.asarray([5, 3, 9, 1]))]
rng = cp.random.RandomState(7)
r["random"] = float(rng.standard_normal(1000).sum())
k = cp.RawKernel(r'''extern "C" __global__ void saxpy(float s, const float *x, float *y, int n)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] += s * x[i]; }''', "saxpy")
x, y = cp.ones(1000, cp.float32), cp.zeros(1000, cp.float32)
k((4,), (256,), (cp.float32(2.5), x, y, cp.int32(1000)))
r["raw"] = float(y.sum())
m = sparse.random(500, 500, density=0.01, format="csr", random_state=3, dtype=cp.float32)
r["sparse"] = float((m @ cp.ones(500, cp.float32)).sum())
streams = [cp.cuda.Stream(non_blocking=True) for _ in range(4)]
parts = []
for i, s in enumerate(streams):
    with s:
        parts.append((a * (i + 1)).sum())
for s in streams:
    s.synchronize()
r["streams"] = [float(p) for p in parts]
begin, end = cp.cuda.Event(), cp.cuda.Event()
begin.record()
a @ a
end.record()
end.synchronize()
r["time"] = cp.cuda.get_elapsed_time(begin, end) > 0
s = cp.cuda.Stream(non_blocking=True)
out = cp.zeros(1024, cp.float32)
with s:
    s.begin_capture()
    out += 1
    out *= 2
    graph = s.end_capture()
for _ in range(10):
    graph.launch(s)
s.synchronize()
r["graph"] = float(out[0])
with cp.cuda.using_allocator(cp.cuda.MemoryAsyncPool().malloc):
    r["async"] = float(cp.ones(100000).sum())
with cp.cuda.using_allocator(cp.cuda.MemoryPool(cp.cuda.malloc_managed).malloc):
    r["managed"] = float(cp.ones(100000).sum())
pinned = cp.cuda.alloc_pinned_memory(4000)
host = np.frombuffer(pinned, np.float32, 1000)
host[:] = 3
d = cp.empty(1000, cp.float32)
d.set(host)
r["pinned"] = float(d.sum())
r["devices"] = cp.cuda.runtime.getDeviceCount()
if r["devices"] > 1:
    corner = cp.ascontiguousarray(a[:256, :256])
    with cp.cuda.Device(1):
        b = cp.ones((256, 256), cp.float32)
        r["second"] = float((b @ b).sum())
        r["across"] = float((cp.asarray(corner) + b).sum())
program.report(r, tolerance=1e-4)
