"""JAX's gradient of ResNet-32 at batch 128, beside `cargo bench --bench convolution`.

    pip install jax
    python benches/peers/resnet.py

The network of the benchmark: three stages of five residual blocks with 16, 32 and 64 channels, shortcuts by padding, and either biases with
ReLU, or filter response normalization with swish. Compiled, on all cores that JAX takes. For one core:
`taskset -c 0 python benches/peers/resnet.py`.
"""

import statistics
import time

import jax
import jax.numpy as jnp

BATCH = 128
CLASSES = 10
BLOCKS = 5
WIDTHS = [16, 32, 64]


def units():
    """Inputs, outputs and stride of each convolution."""
    yield 3, WIDTHS[0], 1
    inputs = WIDTHS[0]
    for stage, width in enumerate(WIDTHS):
        for block in range(BLOCKS):
            yield inputs, width, 2 if stage > 0 and block == 0 else 1
            yield width, width, 1
            inputs = width


def initial(key):
    parameters = []
    for inputs, outputs, _ in units():
        key, own = jax.random.split(key)
        filters = jax.random.normal(own, (3, 3, inputs, outputs)) * jnp.sqrt(2 / (9 * inputs))
        parameters.append((filters, jnp.ones(outputs), jnp.zeros(outputs)))
    dense = jax.random.normal(key, (WIDTHS[-1], CLASSES)) / jnp.sqrt(WIDTHS[-1])
    return parameters, (dense, jnp.zeros(CLASSES))


def outputs(theta, images, normalized, activation):
    parameters, (dense, biases) = theta

    def unit(values, number, stride):
        filters, gains, offsets = parameters[number]
        sums = jax.lax.conv_general_dilated(
            values, filters, (stride, stride), ((1, 1), (1, 1)), dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        if normalized:
            square = jnp.mean(sums**2, axis=(1, 2), keepdims=True)
            sums = gains * sums * jax.lax.rsqrt(square + 1e-6)
        return sums + offsets

    values = activation(unit(images, 0, 1))
    number = 1
    for stage, width in enumerate(WIDTHS):
        for block in range(BLOCKS):
            stride = 2 if stage > 0 and block == 0 else 1
            sums = unit(activation(unit(values, number, stride)), number + 1, 1)
            shortcut = values[:, ::stride, ::stride, :]
            values = activation(sums + jnp.pad(shortcut, ((0, 0), (0, 0), (0, 0), (0, width - shortcut.shape[-1]))))
            number += 2
    return values.mean(axis=(1, 2)) @ dense + biases


def products():
    """Multiply-adds of an image."""
    side, total = 32, 0
    for inputs, channels, stride in units():
        side //= stride
        total += side * side * 9 * inputs * channels
    return total


def main():
    keys = jax.random.split(jax.random.key(1), 3)
    theta = initial(keys[0])
    images = jax.random.normal(keys[1], (BATCH, 32, 32, 3))
    classes = jax.random.randint(keys[2], (BATCH,), 0, CLASSES)
    flops = 6 * BATCH * products()
    for name, normalized, activation in [("none, relu", False, jax.nn.relu), ("filter response, swish", True, jax.nn.swish)]:

        def loss(theta):
            log_probabilities = jax.nn.log_softmax(outputs(theta, images, normalized, activation))
            return -jnp.sum(jnp.take_along_axis(log_probabilities, classes[:, None], axis=1))

        gradient = jax.jit(jax.grad(loss))
        jax.block_until_ready(gradient(theta))
        times = []
        for _ in range(10):
            since = time.perf_counter()
            jax.block_until_ready(gradient(theta))
            times.append(time.perf_counter() - since)
        median, least = statistics.median(times), min(times)
        print(
            f"JAX {jax.__version__}, {name}: {median * 1e3:.0f} ms a gradient (least {least * 1e3:.0f}), "
            f"{flops / median * 1e-9:.0f} GFLOP/s"
        )


if __name__ == "__main__":
    main()
