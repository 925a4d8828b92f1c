"""JAX: XLA's compiler and runtime, a training loop, loops and conditions on the device, linear algebra, all GPUs at once."""

import os

import program

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
try:
    import jax
    import jax.numpy as jnp
except ImportError as e:
    program.skip(f"no JAX: {e}")
if jax.default_backend() != "gpu":
    program.skip("JAX finds no GPU")

key = jax.random.PRNGKey(3)
r = {"devices": jax.device_count(), "kind": jax.devices()[0].device_kind}


def loss(p, x, y):
    h = jax.nn.relu(x @ p["a"])
    return jnp.mean((h @ p["b"] - y) ** 2)


@jax.jit
def step(p, x, y):
    v, g = jax.value_and_grad(loss)(p, x, y)
    return jax.tree.map(lambda w, d: w - 0.05 * d, p, g), v


@jax.jit
def collatz(n):
    def shorter(s):
        return jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1
    return jax.lax.while_loop(lambda s: s[0] != 1, shorter, (n, 0))[1]


k1, k2, k3 = jax.random.split(key, 3)
p = {"a": jax.random.normal(k1, (64, 128)) / 8, "b": jax.random.normal(k2, (128, 1)) / 11}
x = jax.random.normal(k3, (256, 64))
y = jnp.sin(x[:, :1])
losses = []
for _ in range(100):
    p, v = step(p, x, y)
    losses.append(float(v))
r["losses"] = losses[::20]
r["scan"] = float(jax.jit(lambda c: jax.lax.scan(lambda c, i: (c * 0.5 + i, c), c, jnp.arange(50.0))[0])(1.0))
r["while"] = int(collatz(27))
r["cond"] = float(jax.jit(lambda c: jax.lax.cond(c > 0, lambda c: c * 2, lambda c: c - 1, c))(3.0))
m = jax.random.normal(key, (200, 200))
r["svd"] = float(jnp.linalg.svd(m, compute_uv=False)[0])
r["fft"] = float(jnp.abs(jnp.fft.fft(m)).max())
r["sort"] = float(jnp.sort(m.ravel())[1000])
r["conv"] = float(jax.lax.conv(jnp.ones((1, 3, 32, 32)), jnp.ones((8, 3, 3, 3)), (1, 1), "SAME").sum())
q = jax.random.normal(key, (2, 64, 4, 32), jnp.bfloat16)
for how in ("xla", "cudnn"):
    r["attention " + how] = float(jax.nn.dot_product_attention(q, q, q, implementation=how).astype(jnp.float32).mean())
n = jax.device_count()
if n > 1:
    s = jax.pmap(lambda v: jax.lax.psum(v * v, "i"), axis_name="i")(jnp.arange(float(n)))
    r["psum"] = [float(v) for v in s]
program.report(r, tolerance=2e-3)
