"""A small network on images of 28 x 28, trained on made-up digits: many small kernels, the program that MPS is for."""

import argparse
import time

import program

p = argparse.ArgumentParser()
p.add_argument("--steps", type=int, default=500)
p.add_argument("--batch", type=int, default=128)
p.add_argument("--quiet", action="store_true", help="losses only of the last step")
args = p.parse_args()

torch = program.start()
nn = torch.nn

made = torch.Generator().manual_seed(2)
images = torch.randn(64 * args.batch, 784, generator=made).cuda()
digits = torch.randint(0, 10, (64 * args.batch,), generator=made).cuda()
model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
loss_of = nn.CrossEntropyLoss()


def step(i):
    at = (i % 64) * args.batch
    optimizer.zero_grad(set_to_none=True)
    loss = loss_of(model(images[at:at + args.batch]), digits[at:at + args.batch])
    loss.backward()
    optimizer.step()
    return loss


for i in range(5):
    step(i)
torch.cuda.synchronize()
program.gate()
begin = time.monotonic()
losses = []
every = max(1, args.steps // 10)
for i in range(args.steps):
    loss = step(i)
    if not args.quiet and i % every == every - 1:
        losses.append(loss.item())
losses.append(loss.item())
end = time.monotonic()
program.report({"losses": losses, "weights": [float(w.double().sum()) for w in model.parameters()]},
               timings={"steps_per_s": args.steps / (end - begin)}, begin=begin, end=end)
