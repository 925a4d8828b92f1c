"""Two processes exchange tensors on the GPU: memory and events go over by handle, in both directions."""

import program


def other(inbox, outbox):
    """The second process: doubles what it gets in place, and sends tensors of its own."""
    import torch
    theirs = inbox.get(timeout=60)
    theirs.mul_(2)
    torch.cuda.synchronize()
    mine = [torch.full((1000 * (i + 1),), float(i), device="cuda") for i in range(4)]
    torch.cuda.synchronize()
    outbox.put("doubled")
    outbox.put(mine)
    inbox.get(timeout=60)  # ours live until the first process is done


def main():
    torch = program.start()
    mp = torch.multiprocessing.get_context("spawn")
    there, back = mp.Queue(), mp.Queue()
    child = mp.Process(target=other, args=(there, back), daemon=True)
    child.start()
    shared = torch.arange(4096, device="cuda", dtype=torch.float32)
    torch.cuda.synchronize()
    there.put(shared)
    word = back.get(timeout=60)
    theirs = back.get(timeout=60)
    torch.cuda.synchronize()
    results = {"word": word, "doubled": shared.double().sum().item(), "theirs": [x.double().sum().item() for x in theirs]}
    theirs[3].add_(1)
    results["changed"] = theirs[3].double().sum().item()
    del theirs
    there.put("done")
    child.join(60)
    results["status"] = child.exitcode
    program.report(results)


if __name__ == "__main__":
    main()
