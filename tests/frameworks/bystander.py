"""A program is idle while another one's assertion fails on the GPU: what it has there is as it was, and works.

Under NVIDIA's MPS every client dies with the one that fails. Libraries have variables in their modules (tables of cuRAND, cuBLAS's
constants), and all of them are used here before and after.
"""

import subprocess
import sys

import program

FAILS = """
import torch
torch.arange(10, device="cuda")[torch.tensor([100], device="cuda")]
torch.cuda.synchronize()
"""

torch = program.start(deterministic=False)
a = torch.randn(256, 256, generator=torch.Generator().manual_seed(3)).cuda()
half = a.half().view(1, 4, 128, 128)
positive = a @ a.T + 300 * torch.eye(256, device="cuda")
convolution, recurrent = torch.nn.Conv2d(1, 8, 3).cuda(), torch.nn.LSTM(256, 64).cuda()
compiled = torch.compile(lambda x: (torch.sin(x) * x).sum(dim=0), dynamic=False)
graph = torch.cuda.CUDAGraph()
doubled = (a * 2).sum()
torch.cuda.synchronize()
with torch.cuda.graph(graph):
    doubled = (a * 2).sum()


def replay():
    graph.replay()
    return doubled


def random():
    torch.cuda.manual_seed(7)
    return torch.rand(1000, device="cuda")


USES = {
    "product": lambda: a @ a,
    "convolution": lambda: convolution(a.view(1, 1, 256, 256)),
    "attention": lambda: torch.nn.functional.scaled_dot_product_attention(half, half, half),
    "recurrent": lambda: recurrent(a.view(8, 32, 256))[0],
    "random": random,
    "sort": lambda: a.flatten().sort()[0],
    "fourier": lambda: torch.fft.rfft(a).abs(),
    "cholesky": lambda: torch.linalg.cholesky(positive),
    "singular": lambda: torch.linalg.svdvals(a),
    "compiled": lambda: compiled(a),
    "graph": replay,
    "memory": lambda: a,
}


def use_all():
    return {name: use().double().abs().sum().item() for name, use in USES.items()}


before = use_all()
torch.cuda.synchronize()
culprit = subprocess.run([sys.executable, "-c", FAILS], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                         timeout=80, check=False)
after = use_all()
program.report({"culprit": culprit.returncode, "assertion": "device-side assert" in culprit.stderr, "before": before,
                "after": after}, tolerance=1e-4)
