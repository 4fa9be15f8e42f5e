"""A deep ensemble beside runs on the same network: `python ensemble.py DATA.h5 RUN...` (`pip install numpy h5py`).

The ensemble has maximum a posteriori fits by Adam from independent starts, of the network that `mpibayes init --model network` writes (one
hidden layer of 50 units; for numbers, Gaussian noise whose precision is fitted). Its prediction is the mixture of the fits; that of a run is
the mixture of its draws. Printed are the log-likelihood of the test rows in nats per row, and the root mean square error in the dataset's
units or the accuracy. What either took is not compared: --members and --steps set the cost of the ensemble.
"""

import argparse

import h5py
import numpy as np

HIDDEN, PRIOR_PRECISION, GAMMA_SHAPE, GAMMA_RATE = 50, np.e, 1.0, 0.1
BATCH, RATE, DECAYS = 100, 3e-3, (0.9, 0.999)


def standardized(rows, others):
    mean, sd = rows.mean(0), rows.std(0)
    sd = np.where(sd == 0, 1, sd)
    return (rows - mean) / sd, (others - mean) / sd


def log_probabilities(outputs):
    """Of each class, by the outputs of the network."""
    shifted = outputs - outputs.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def fit(x, y, members, steps, rng):
    """The parameters of all members: two layers, and the logarithm of the precision of the noise, which classes do not have.

    Classes y are rows with a single 1, numbers have one column.
    """
    (rows, features), outputs = x.shape, y.shape[1]
    parameters = [
        rng.normal(size=(members, features, HIDDEN)) / np.sqrt(features),
        np.zeros((members, 1, HIDDEN)),
        rng.normal(size=(members, HIDDEN, outputs)) / np.sqrt(HIDDEN),
        np.zeros((members, 1, outputs)),
        np.zeros((members, 1, 1)),
    ]
    means, squares = ([np.zeros_like(values) for values in parameters] for _ in range(2))
    for step in range(steps):
        weights_1, biases_1, weights_2, biases_2, log_precision = parameters
        chosen = rng.choice(rows, min(BATCH, rows), replace=False)
        inputs, targets = x[chosen], y[chosen][None]
        scale, precision = rows / len(chosen), np.exp(log_precision)
        hidden = np.maximum(inputs @ weights_1 + biases_1, 0)
        predicted = hidden @ weights_2 + biases_2
        residual = (np.exp(log_probabilities(predicted)) if outputs > 1 else predicted) - targets
        by_output = scale * precision * residual
        by_hidden = (by_output @ weights_2.transpose(0, 2, 1)) * (hidden > 0)
        squared = (residual**2).sum(1, keepdims=True)
        gradients = [
            inputs.T @ by_hidden + PRIOR_PRECISION * weights_1,
            by_hidden.sum(1, keepdims=True) + PRIOR_PRECISION * biases_1,
            hidden.transpose(0, 2, 1) @ by_output + PRIOR_PRECISION * weights_2,
            by_output.sum(1, keepdims=True) + PRIOR_PRECISION * biases_2,
            0.5 * scale * (precision * squared - len(chosen)) - (GAMMA_SHAPE - GAMMA_RATE * precision) if outputs == 1 else 0,
        ]
        rate = RATE * (1 - step / steps)
        for values, gradient, mean, square in zip(parameters, gradients, means, squares):
            mean += (1 - DECAYS[0]) * (gradient - mean)
            square += (1 - DECAYS[1]) * (gradient**2 - square)
            corrected = mean / (1 - DECAYS[0] ** (step + 1)), square / (1 - DECAYS[1] ** (step + 1))
            values -= rate * corrected[0] / (np.sqrt(corrected[1]) + 1e-8)
    return parameters


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("runs", nargs="*")
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with h5py.File(arguments.data) as file:
        x, y, test_x, test_y = (file[name][:] for name in ["train/x", "train/y", "test/x", "test/y"])
    x, test_x = standardized(x.astype(float), test_x.astype(float))
    rng = np.random.default_rng(arguments.seed)
    is_classes = y.dtype.kind == "u"
    targets = np.eye(y.max() + 1)[y] if is_classes else ((y - y.mean()) / y.std())[:, None]
    weights_1, biases_1, weights_2, biases_2, log_precision = fit(x, targets, arguments.members, arguments.steps, rng)
    members = zip(weights_1, biases_1, weights_2, biases_2)
    outputs = np.stack([np.maximum(test_x @ first + bias, 0) @ second + last for first, bias, second, last in members])
    if is_classes:
        log_probability = log_probabilities(outputs)
        log_density = log_probability[:, np.arange(len(test_y)), test_y]
        name, quality = "accuracy", (np.exp(log_probability).mean(0).argmax(1) == test_y).mean()
    else:
        predicted = y.mean() + y.std() * outputs[:, :, 0]
        deviation = y.std() * np.exp(-0.5 * log_precision[:, :, 0])
        log_density = -0.5 * np.log(2 * np.pi) - np.log(deviation) - 0.5 * ((test_y - predicted) / deviation) ** 2
        name, quality = "rmse", np.sqrt(((predicted.mean(0) - test_y) ** 2).mean())
    mixture = np.logaddexp.reduce(log_density, axis=0) - np.log(arguments.members)
    print(f"{'deep ensemble':30} log-likelihood {mixture.mean():8.4f}  {name} {quality:.4f}")
    for run in arguments.runs:
        with h5py.File(f"{run}/result.h5") as file:
            predictions = file["test_predictions"]
            density, targets = predictions["density"][:], predictions["target"][:]
            if is_classes:
                quality = (predictions["probability"][:].argmax(1) == targets).mean()
            else:
                quality = np.sqrt(((predictions["mean"][:] - targets) ** 2).mean())
        print(f"{run:30} log-likelihood {np.log(density).mean():8.4f}  {name} {quality:.4f}")


if __name__ == "__main__":
    main()
