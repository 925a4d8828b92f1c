"""A convolutional network trained with cuDNN, deterministically."""

import argparse
import time

import program

p = argparse.ArgumentParser()
p.add_argument("--steps", type=int, default=60)
args = p.parse_args()

torch = program.start()
nn = torch.nn


def block(inputs, outputs):
    return [nn.Conv2d(inputs, outputs, 3, padding=1, stride=2), nn.BatchNorm2d(outputs), nn.ReLU()]


made = torch.Generator().manual_seed(3)
images = torch.randn(256, 3, 32, 32, generator=made).cuda()
kinds = torch.randint(0, 10, (256,), generator=made).cuda()
model = nn.Sequential(*block(3, 32), *block(32, 64), *block(64, 128), nn.Flatten(), nn.Linear(128 * 16, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
losses = []
begin = 0.0
for i in range(args.steps):
    if i == 5:
        torch.cuda.synchronize()
        begin = time.monotonic()
    at = (i % 4) * 64
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.cross_entropy(model(images[at:at + 64]), kinds[at:at + 64])
    loss.backward()
    optimizer.step()
    if i % 10 == 9:
        losses.append(loss.item())
torch.cuda.synchronize()
rate = (args.steps - 5) / (time.monotonic() - begin)
model.eval()
with torch.no_grad():
    out = model(images[:16]).double().sum().item()
program.report({"losses": losses, "out": out, "cudnn": torch.backends.cudnn.version()}, timings={"steps_per_s": rate})
