"""A small transformer: attention in bf16 with fused kernels, training, and generation token by token with a cache."""

import program

torch = program.start(deterministic=False)
F = torch.nn.functional
gen = torch.Generator().manual_seed(11)


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(),
                                       torch.nn.Linear(4 * width, width))

    def forward(self, x, cache=None):
        b, t, w = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).chunk(3, -1))
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, w))
        return x + self.mlp(self.norm2(x)), (k, v)


class Model(torch.nn.Module):
    def __init__(self, words=512, width=256, heads=4, depth=4):
        super().__init__()
        self.embed = torch.nn.Embedding(words, width)
        self.blocks = torch.nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.head = torch.nn.Linear(width, words)

    def forward(self, tokens, caches=None):
        x, made = self.embed(tokens), []
        for i, block in enumerate(self.blocks):
            x, c = block(x, caches[i] if caches else None)
            made.append(c)
        return self.head(x), made


model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
text = torch.randint(0, 512, (16, 129), generator=gen).cuda()
losses = []
for _ in range(60):
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cuda", torch.bfloat16):
        logits, _ = model(text[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1).float(), text[:, 1:].flatten())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    losses.append(loss.item())
with torch.no_grad():
    tokens, caches = text[:1, :16], None
    for _ in range(64):
        logits, caches = model(tokens, caches)
        tokens = logits[:, -1:].argmax(-1)
program.report({"losses": losses[::10], "cached": caches[0][0].shape[2], "logit": logits.max().item()}, tolerance=2e-2)
