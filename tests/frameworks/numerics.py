"""The mathematical libraries: cuFFT, cuBLAS, cuSOLVER, cuSPARSE, cuRAND, and sorting and scanning kernels."""

import program

torch = program.start(deterministic=False)
made = torch.Generator().manual_seed(11)
results, failed = {}, {}


def part(name):
    """Each library by itself: one that fails does not hide the others."""
    def run(function):
        try:
            results[name] = function()
        except Exception as e:  # noqa: BLE001
            results[name] = failed[name] = f"{type(e).__name__}: {str(e).strip().splitlines()[0][:200]}"
    return run


def norm(x):
    return x.abs().double().sum().item()


a = torch.randn(256, 256, generator=made).cuda()
spd = a @ a.T / 256 + torch.eye(256, device="cuda")
part("fft")(lambda: norm(torch.fft.fft2(a)))
part("fft_odd")(lambda: norm(torch.fft.rfft(a[:, :251])))
part("fft_back")(lambda: bool(torch.allclose(torch.fft.irfft2(torch.fft.rfft2(a)), a, atol=1e-4)))
part("matmul")(lambda: norm(a @ a))
part("matmul_half")(lambda: norm((a.half() @ a.half()).float()))
part("bmm_double")(lambda: norm(torch.bmm(a.double().view(4, 64, 256), a.double().view(4, 256, 64))))
part("cholesky")(lambda: norm(torch.linalg.cholesky(spd)))
part("solve")(lambda: norm(torch.linalg.solve(spd, a)))
part("svd")(lambda: norm(torch.linalg.svdvals(a)))
part("eigh")(lambda: norm(torch.linalg.eigvalsh(spd)))
part("qr")(lambda: norm(torch.linalg.qr(a)[1]))
part("inverse")(lambda: norm(torch.linalg.inv(spd)))
part("sparse_mm")(lambda: norm(torch.sparse.mm(torch.where(a > 1, a, torch.zeros_like(a)).to_sparse_csr(), a)))
part("sparse_coo")(lambda: norm(torch.sparse.mm(torch.where(a > 1, a, torch.zeros_like(a)).to_sparse(), a)))


@part("random")
def _():
    torch.cuda.manual_seed(12)
    return [norm(torch.randn(10000, device="cuda")), norm(torch.rand(9999, device="cuda")),
            torch.randperm(5000, device="cuda")[:10].tolist()]


part("sort")(lambda: torch.sort(a.flatten()).values[::9999].tolist())
part("topk")(lambda: torch.topk(a.flatten(), 5).values.tolist())
part("cumsum")(lambda: torch.cumsum(torch.arange(100000, device="cuda"), 0)[::9999].tolist())
part("unique")(lambda: int(torch.unique((a * 10).int()).numel()))
part("where")(lambda: int(torch.nonzero(a > 2).numel()))
part("conv_transpose")(lambda: norm(torch.nn.functional.conv_transpose2d(a.view(1, 4, 128, 128), torch.ones(4, 2, 3, 3, device="cuda"))))
part("rnn")(lambda: norm(torch.nn.LSTM(256, 64, 2, batch_first=True).cuda()(a.view(8, 32, 256))[0]))
program.report(results, tolerance=1e-4, failed=failed)
