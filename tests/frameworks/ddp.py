"""Data-parallel training over all GPUs, one process each, with NCCL; where NCCL does not come up, gloo, and that is a result."""

import datetime
import os
import socket
import sys

import program


def worker(rank, size, port, backend, results):
    import torch
    import torch.distributed as dist
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), NCCL_SOCKET_IFNAME="lo", GLOO_SOCKET_IFNAME="lo")
    torch.cuda.set_device(rank)
    torch.manual_seed(9)
    dist.init_process_group(backend, rank=rank, world_size=size, timeout=datetime.timedelta(seconds=60))
    total = torch.full((1 << 16,), rank + 1.0, device="cuda" if backend == "nccl" else "cpu")
    dist.all_reduce(total)
    model = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)).cuda()
    ddp = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    x = torch.randn(64, 128, generator=torch.Generator().manual_seed(rank)).cuda()
    y = torch.randint(0, 10, (64,), generator=torch.Generator().manual_seed(rank)).cuda()
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(ddp(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    dist.barrier(device_ids=[rank] if backend == "nccl" else None)
    if rank == 0:
        results.put({"sum": total[0].item(), "losses": losses[::5], "size": size})
    dist.destroy_process_group()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    torch = program.start()
    size = torch.cuda.device_count()
    found, why = {}, ""
    for backend in ("nccl", "gloo"):
        queue = torch.multiprocessing.get_context("spawn").SimpleQueue()
        try:
            torch.multiprocessing.spawn(worker, (size, free_port(), backend, queue), nprocs=size)
            found = dict(queue.get(), backend=backend)
            break
        except Exception as e:  # noqa: BLE001: whatever went wrong is the answer
            why = f"{backend}: {str(e).strip().splitlines()[-1][:300]}"
            print(why, file=sys.stderr, flush=True)
    if not found:
        raise SystemExit(why)
    program.report(found, tolerance=1e-5, note=why)


if __name__ == "__main__":
    main()
