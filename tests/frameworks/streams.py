"""Side streams, priorities, events between them, and events that measure time."""

import program

torch = program.start()
a = torch.randn(512, 512, generator=torch.Generator().manual_seed(8)).cuda() / 23
results = {"priorities": [torch.cuda.Stream(priority=p).priority for p in (0, -1, -2, -5)]}

streams = [torch.cuda.Stream(priority=p) for p in (0, -1, 0, -1)]
begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
parts = []
torch.cuda.synchronize()
begin.record()
for s in streams:
    s.wait_event(begin)
    with torch.cuda.stream(s):
        b = a
        for _ in range(20):
            b = b @ a
        b.record_stream(torch.cuda.current_stream())
        parts.append(b.double().sum())
for s in streams:
    torch.cuda.current_stream().wait_stream(s)
end.record()
end.synchronize()
results["parts"] = [x.item() for x in parts]
results["time_passed"] = begin.elapsed_time(end) > 0

# A chain over two streams: each waits for the other's event a hundred times.
one, two = torch.cuda.Stream(), torch.cuda.Stream()
count = torch.zeros(1, device="cuda", dtype=torch.int64)
torch.cuda.synchronize()
for i in range(100):
    with torch.cuda.stream(one):
        count.mul_(3).add_(1).remainder_(1000003)
        first = one.record_event()
    two.wait_event(first)
    with torch.cuda.stream(two):
        count.mul_(5).add_(2).remainder_(1000003)
        second = two.record_event()
    one.wait_event(second)
torch.cuda.synchronize()
results["chain"] = count.item()
results["query"] = [one.query(), two.query(), second.query()]
torch.cuda._sleep(100000)
results["current"] = torch.cuda.current_stream() == torch.cuda.default_stream()
torch.cuda.synchronize()
program.report(results, timings={"elapsed_ms": begin.elapsed_time(end)})
