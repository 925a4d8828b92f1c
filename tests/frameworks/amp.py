"""Mixed precision: autocast with bfloat16, and with float16 and a gradient scaler."""

import program

torch = program.start()
nn = torch.nn
made = torch.Generator().manual_seed(6)
x = torch.randn(512, 1024, generator=made).cuda()
y = torch.randn(512, 1024, generator=made).cuda()
results = {}
for name, kind in (("bf16", torch.bfloat16), ("fp16", torch.float16)):
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(1024, 2048), nn.GELU(), nn.LayerNorm(2048), nn.Linear(2048, 1024)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cuda", enabled=kind is torch.float16)
    losses = []
    for i in range(40):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=kind):
            loss = nn.functional.mse_loss(model(x), y.to(kind))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if i % 10 == 9:
            losses.append(loss.item())
    results[name] = losses
    results[name + "_scale"] = scaler.get_scale()
q = torch.randn(2, 8, 256, 64, generator=made).cuda().to(torch.bfloat16)
with torch.no_grad():
    results["attention"] = nn.functional.scaled_dot_product_attention(q, q, q).double().sum().item()
program.report(results)
