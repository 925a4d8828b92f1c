"""Uses of PyTorch that the other programs do not have, one after the other; what one comes to is its result, an error, too."""

import importlib.util
import os
import pathlib
import tempfile

import program

torch = program.start(deterministic=False)
GPU = "cuda"
KERNELS = """
import triton
import triton.language as tl


@triton.jit
def product(A, B, C, M: tl.constexpr, K: tl.constexpr):
    a = tl.make_tensor_descriptor(A, [M, K], [K, 1], [64, 64])
    b = tl.make_tensor_descriptor(B, [K, M], [M, 1], [64, 64])
    c = tl.make_tensor_descriptor(C, [M, M], [M, 1], [64, 64])
    i, j = tl.program_id(0), tl.program_id(1)
    total = tl.zeros((64, 64), dtype=tl.float32)
    for k in range(0, K, 64):
        total += tl.dot(a.load([i * 64, k]), b.load([k, j * 64]))
    c.store([i * 64, j * 64], total.to(tl.float16))
"""


def randn(*shape, **more):
    return torch.randn(*shape, device=GPU, **more)


def model(n=256):
    return torch.nn.Sequential(torch.nn.Linear(n, n), torch.nn.ReLU(), torch.nn.Linear(n, n)).cuda()


def attention():
    q = randn(2, 8, 256, 64, dtype=torch.float16, requires_grad=True)
    sums = {}
    for backend in torch.nn.attention.SDPBackend.__members__.values():
        with torch.nn.attention.sdpa_kernel(backend):
            try:
                out = torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
                out.sum().backward()
                sums[str(backend)] = round(out.float().sum().item(), 1)
            except RuntimeError:
                sums[str(backend)] = "not here"
    return sums


def linear_algebra():
    a = randn(128, 128, dtype=torch.float64)
    s = a @ a.T + torch.eye(128, device=GPU, dtype=torch.float64)
    found = (torch.linalg.cholesky(s), torch.linalg.eigvalsh(s), torch.linalg.svdvals(a), torch.linalg.solve(s, a),
             torch.linalg.qr(a)[1].abs(), torch.linalg.inv(s), torch.linalg.lstsq(a, a).solution)
    return [x.sum().item() for x in found]


def transforms_and_sparse():
    identity = torch.eye(500, device=GPU).to_sparse_csr()
    return [torch.fft.rfft(randn(64, 1000)).abs().sum().item(), (identity @ randn(500, 20)).sum().item(),
            torch.fft.ifft2(randn(32, 33)).abs().sum().item()]


def two_of_four():
    w = torch.tensor([0, 0, 1, 1], device=GPU, dtype=torch.float16).tile(128, 32)
    x = torch.rand(128, 128, device=GPU, dtype=torch.float16)
    return (torch.sparse.to_sparse_semi_structured(w) @ x).float().sum().item()


def eight_bits():
    a, b = (randn(64, 64).to(torch.float8_e4m3fn) for _ in range(2))
    one = torch.ones((), device=GPU)
    integers = torch.randint(-100, 100, (64, 64), dtype=torch.int8, device=GPU)
    product = torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    return [product.float().sum().item(), torch._int_mm(integers, integers).sum().item()]


def recurrent():
    net = torch.nn.LSTM(32, 64, 2, bidirectional=True, batch_first=True).cuda()
    out, _ = net(randn(8, 20, 32))
    out.sum().backward()
    return [out.sum().item(), net.weight_ih_l0.grad.sum().item()]


def chosen_convolutions():
    torch.backends.cudnn.benchmark = True
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3), torch.nn.BatchNorm2d(32), torch.nn.ConvTranspose2d(32, 8, 4, 2))
    out = net.cuda().to(memory_format=torch.channels_last)(randn(4, 3, 64, 64))
    out.sum().backward()
    return round(out.abs().sum().item(), -2)


def compiled_at_run_time():
    text = "template <typename T> T f(T x, T y) { return x * y + 1; }"
    a = torch.arange(100.0, device=GPU)
    return torch.cuda.jiterator._create_jit_fn(text)(a, a).sum().item()


def descriptors():
    """Tensor maps that a kernel makes for itself."""
    import triton
    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device=GPU))
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "kernels.py"
        file.write_text(KERNELS)
        spec = importlib.util.spec_from_file_location("kernels", file)
        kernels = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(kernels)
        a = randn(256, 256, dtype=torch.float16)
        c = torch.empty_like(a)
        kernels.product[(4, 4)](a, a, c, 256, 256)
        return (c - a @ a).abs().max().item() < 0.5


def memory():
    before, total = torch.cuda.mem_get_info()
    x = torch.empty(1 << 30, dtype=torch.uint8, device=GPU)
    after, _ = torch.cuda.mem_get_info()
    try:
        torch.empty(4 * total, dtype=torch.uint8, device=GPU)
        too_much = "fits"
    except torch.OutOfMemoryError:
        too_much = "out of memory"
    torch.cuda.memory._record_memory_history()
    pieces = len(torch.cuda.memory._snapshot()["segments"]) > 0
    torch.cuda.memory._record_memory_history(enabled=None)
    return [total, 0 < after <= before - x.numel(), too_much, pieces]


def properties():
    p = torch.cuda.get_device_properties(0)
    return [p.name, p.major, p.minor, p.total_memory, p.multi_processor_count, str(p.uuid), p.L2_cache_size]


def host_memory():
    runtime = torch.cuda.cudart()
    plain, shared = torch.randn(1 << 20), torch.zeros(1 << 20).share_memory_()
    shared += 3
    results = []
    for t in (plain, shared):
        results.append(int(runtime.cudaHostRegister(t.data_ptr(), t.numel() * 4, 0)))
        copy = t.to(GPU, non_blocking=True)
        torch.cuda.synchronize()
        results.append(bool((copy.cpu() == t).all()))
        results.append(int(runtime.cudaHostUnregister(t.data_ptr())))
    return results


def traced():
    frozen = torch.jit.freeze(torch.jit.trace(model().eval(), randn(64, 256)))
    with torch.no_grad():
        return [frozen(torch.ones(64, 256, device=GPU)).sum().item() for _ in range(3)]


def capturable():
    net, x = model(), randn(64, 256)
    optimizers = (torch.optim.Adam(net.parameters(), foreach=True, capturable=True),
                  torch.optim.AdamW(net.parameters(), fused=True))
    for step in range(20):
        loss = net(x).pow(2).mean()
        optimizers[step % 2].zero_grad()
        loss.backward()
        optimizers[step % 2].step()
    return loss.item()


def uneven():
    nested = torch.nested.nested_tensor([randn(3, 8), randn(5, 8)])
    bags = torch.nn.functional.embedding_bag(torch.arange(20, device=GPU), randn(50, 8), torch.tensor([0, 5], device=GPU))
    return [nested.to_padded_tensor(0).sum().item(), bags.sum().item()]


def green_context():
    green = torch.cuda.green_contexts.GreenContext.create(32, 0)
    green.set_context()
    total = (torch.ones(1000, device=GPU) * 2).sum().item()
    torch.cuda.synchronize()
    green.pop_context()
    return total


def between_processes():
    event = torch.cuda.Event(interprocess=True)
    event.record()
    event.synchronize()
    return len(event.ipc_handle())


def collective():
    import torch.distributed as dist
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("nccl", store=dist.FileStore(f"{folder}/store", 1), rank=0, world_size=1,
                                device_id=torch.device("cuda:0"))
        x = torch.ones(1000, device=GPU)
        dist.all_reduce(x)
        dist.destroy_process_group()
        return x.sum().item()


USES = (properties, memory, attention, linear_algebra, transforms_and_sparse, two_of_four, eight_bits, recurrent,
        chosen_convolutions, compiled_at_run_time, descriptors, host_memory, traced, capturable, uneven, green_context,
        between_processes, collective)

results = {}
for use in USES:
    torch.manual_seed(2)
    try:
        results[use.__name__] = use()
        torch.cuda.synchronize()
    except Exception as e:  # whatever it is, it has to be the same natively
        results[use.__name__] = f"{type(e).__name__}: {str(e).splitlines()[0][:200] if str(e) else ''}"
program.report(results, tolerance=1e-3)
