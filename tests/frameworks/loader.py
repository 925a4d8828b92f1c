"""A data loader with worker processes and pinned memory; copies that overlap with work."""

import program


class Numbers:
    def __len__(self):
        return 512

    def __getitem__(self, i):
        import torch
        return torch.full((64, 64), float(i % 17)), i


def main():
    torch = program.start()
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=32, num_workers=2, pin_memory=True)
    weight = torch.eye(64, device="cuda") * 2
    total, order, pinned = torch.zeros((), device="cuda", dtype=torch.float64), [], True
    for epoch in range(2):
        for batch, index in loader:
            pinned = pinned and batch.is_pinned()
            moved = batch.to("cuda", non_blocking=True)
            total += (moved @ weight).double().sum()
            order.append(int(index[0]))
    out = torch.empty(1 << 20, pin_memory=True)
    done = torch.cuda.Event()
    out.copy_(torch.arange(1 << 20, device="cuda", dtype=torch.float32), non_blocking=True)
    done.record()
    done.synchronize()
    program.report({"total": total.item(), "order": order, "pinned": pinned, "back": out.double().sum().item()})


if __name__ == "__main__":
    main()
