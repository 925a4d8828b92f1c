"""A training step captured as a graph and replayed: the same losses as step by step."""

import time

import program

torch = program.start()
nn = torch.nn
STEPS = 100


def build():
    torch.manual_seed(4)
    model = nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 256)).cuda()
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


made = torch.Generator().manual_seed(5)
inputs = torch.randn(STEPS, 64, 256, generator=made).cuda()
targets = torch.randn(STEPS, 64, 256, generator=made).cuda()


def train(model, optimizer, x, y):
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


model, optimizer = build()
eager = [train(model, optimizer, inputs[i], targets[i]).detach() for i in range(STEPS)]
eager = [x.item() for x in eager]

model, optimizer = build()
x, y = inputs[0].clone(), targets[0].clone()
saved = [w.detach().clone() for w in model.parameters()]
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):  # libraries get their memory before the capture
    for _ in range(3):
        train(model, optimizer, x, y)
torch.cuda.current_stream().wait_stream(side)
with torch.no_grad():
    for w, old in zip(model.parameters(), saved):
        w.copy_(old)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    loss = train(model, optimizer, x, y)
replayed = []
torch.cuda.synchronize()
begin = time.monotonic()
for i in range(STEPS):
    x.copy_(inputs[i])
    y.copy_(targets[i])
    graph.replay()
    replayed.append(loss.clone())
torch.cuda.synchronize()
rate = STEPS / (time.monotonic() - begin)
replayed = [v.item() for v in replayed]

# A second graph in the first one's memory pool, and a graphed callable.
other = torch.cuda.CUDAGraph()
a = torch.full((1000,), 2.0, device="cuda")
with torch.cuda.graph(other, pool=graph.pool()):
    b = a * a + 1
a.fill_(3.0)
other.replay()
layer = torch.cuda.make_graphed_callables(nn.Linear(64, 64).cuda(), (torch.randn(8, 64, device="cuda", requires_grad=True),))
q = torch.ones(8, 64, device="cuda", requires_grad=True)
layer(q).sum().backward()
program.report({"eager": eager[::10], "replayed": replayed[::10], "equal": eager == replayed, "second": b.sum().item(),
                "callable": q.grad.double().sum().item()}, timings={"replays_per_s": rate})
