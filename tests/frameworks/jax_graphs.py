"""JAX: loops, conditions and choices that XLA hands over as graphs with conditional nodes, whose parameters change."""

import os

import program

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") + " --xla_gpu_graph_min_graph_size=1"
                           " --xla_gpu_enable_command_buffer=FUSION,CUBLAS,WHILE,CONDITIONAL")
try:
    import jax
    import jax.numpy as jnp
except ImportError as e:
    program.skip(f"no JAX: {e}")
if jax.default_backend() != "gpu":
    program.skip("JAX finds no GPU")


@jax.jit
def root(x, n):
    def better(s):
        return s[0] + 1, 0.5 * (s[1] + x / s[1])
    return jax.lax.while_loop(lambda s: s[0] < n, better, (0, x))[1]


@jax.jit
def choose(k, x):
    return jax.lax.switch(k, [lambda v: v * 2, lambda v: v @ v, jnp.tanh, lambda v: v - 1], x)


@jax.jit
def alternate(x, n):
    def turn(s):
        return s[0] + 1, jax.lax.cond(s[0] % 2 == 0, lambda v: v @ v / 32, jnp.sin, s[1])
    return jax.lax.while_loop(lambda s: s[0] < n, turn, (0, x))[1]


x = jnp.linspace(1.0, 9.0, 4096)
m = jnp.cos(jnp.arange(1024.0).reshape(32, 32))
r = {
    "roots": [float(root(x, n).sum()) for n in (1, 5, 9, 30)],
    "choices": [float(choose(k, m).sum()) for _ in range(3) for k in range(4)],
    "turns": [float(alternate(m, n).sum()) for n in (1, 4, 17)],
}
for _ in range(50):  # the same graphs, each time with other buffers
    x = root(x, 100) + 1
r["again"] = float(x.sum())
program.report(r, tolerance=1e-6)
