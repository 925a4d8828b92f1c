"""The caching allocator: growing, giving back, running out; with --expandable on virtual memory, with --async on pools."""

import os
import sys

kind = {"--expandable": "expandable_segments:True", "--async": "backend:cudaMallocAsync"}.get("".join(sys.argv[1:2]))
if kind:
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = kind

import program  # noqa: E402

MIB = 1 << 20
torch = program.start()
torch.cuda.empty_cache()  # a pool could serve the first of what follows from what start() left in it
free, total = torch.cuda.mem_get_info()
results = {"total": total, "free_below_total": 0 < free <= total, "backend": torch.cuda.get_allocator_backend()}

big = [torch.full((64 * MIB,), i, dtype=torch.uint8, device="cuda") for i in range(8)]
torch.cuda.synchronize()
results["taken"] = free - torch.cuda.mem_get_info()[0] >= 512 * MIB
results["sums"] = [int(x[:: MIB].long().sum()) for x in big]
results["peak"] = torch.cuda.max_memory_allocated() >= 512 * MIB
del big
torch.cuda.empty_cache()
torch.cuda.synchronize()
results["given_back"] = torch.cuda.mem_get_info()[0] >= free - 64 * MIB

sizes = [3, 100, 5000, 1 << 16, 3 * MIB, 20 * MIB, 33 * MIB]
kept = [torch.full((n,), n % 251, dtype=torch.uint8, device="cuda") for n in sizes * 6]
results["kept"] = [int(x.long().sum()) for x in kept]
for i in range(0, len(kept), 2):
    kept[i] = None
kept.append(torch.zeros(200 * MIB, dtype=torch.uint8, device="cuda"))
results["zeroes"] = int(kept[-1].max())
results["left"] = [int(x.long().sum()) for x in kept[1:-1:2]]


def runs_out(size):
    try:
        torch.empty(size, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        return "caught"
    return "no error"


if kind != "expandable_segments:True":  # which would take all of the GPU piece by piece before it gives up
    results["out_of_memory"] = runs_out(4 * total)
results["after"] = torch.ones(MIB, device="cuda").sum().item()
if kind != "backend:cudaMallocAsync":
    torch.cuda.set_per_process_memory_fraction(0.01)
    results["fraction"] = runs_out(total // 50)
program.report(results)
