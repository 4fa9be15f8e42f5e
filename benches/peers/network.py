"""JAX's gradient of the network 784-800-800-10 at batch 100, beside `cargo bench --bench elastic`.

    pip install jax
    python benches/peers/network.py

Cross-entropy of softmax outputs with a Gaussian prior, as in mpibayes; compiled, on all cores that JAX takes. For one core:
`taskset -c 0 python benches/peers/network.py`.
"""

import statistics
import time

import jax
import jax.numpy as jnp

WIDTHS = [784, 800, 800, 10]
BATCH = 100
ROWS = 60_000


def potential(theta, x, y):
    """Minus the log posterior, from a minibatch."""
    values = x
    prior = 0.0
    for layer, (weights, biases) in enumerate(theta):
        values = values @ weights + biases
        if layer + 1 < len(theta):
            values = jax.nn.relu(values)
        prior += jnp.sum(weights**2) + jnp.sum(biases**2)
    log_probabilities = jax.nn.log_softmax(values)
    chosen = jnp.take_along_axis(log_probabilities, y[:, None], axis=1)
    return -ROWS / BATCH * jnp.sum(chosen) + 0.5e-5 * prior


def main():
    keys = jax.random.split(jax.random.key(1), len(WIDTHS) + 1)
    shapes = zip(keys, WIDTHS, WIDTHS[1:])
    theta = [(jax.random.normal(key, (a, b)) / jnp.sqrt(a + 1.0), jnp.zeros(b)) for key, a, b in shapes]
    x = jax.random.normal(keys[-2], (BATCH, WIDTHS[0]))
    y = jax.random.randint(keys[-1], (BATCH,), 0, WIDTHS[-1])
    gradient = jax.jit(jax.grad(potential))
    jax.block_until_ready(gradient(theta, x, y))
    times = []
    for _ in range(200):
        since = time.perf_counter()
        jax.block_until_ready(gradient(theta, x, y))
        times.append(time.perf_counter() - since)
    flops = 2 * BATCH * sum(a * b * (3 if layer else 2) for layer, (a, b) in enumerate(zip(WIDTHS, WIDTHS[1:])))
    median = statistics.median(times)
    print(f"JAX {jax.__version__}: {median * 1e3:.2f} ms a gradient, {flops / median * 1e-9:.0f} GFLOP/s of products")


if __name__ == "__main__":
    main()
