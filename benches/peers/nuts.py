"""Effective draws per second of mpibayes beside NUTS of NumPyro, for the same logistic regression.

    pip install numpyro arviz h5py
    python benches/peers/nuts.py --rows 15000 --features 10
    python benches/peers/nuts.py --rows 581012 --features 54 --draws 100     # the shape of covertype

The posterior is that of weights with the prior N(0, 1) and an intercept. Both programs use the same rows and two cores. Seconds are those
from the start of a program to its end, with tuning and warm-up; for NumPyro without the compilation and the reading of the rows, for
mpibayes with both. The effective sample size is the least over parameters, of bulk and tails, by ArviZ.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time

import numpy as np


def dataset(rows, features, folder):
    """Features with correlations, and classes from known weights."""
    random = np.random.default_rng(1)
    x = random.standard_normal((rows, features))
    x[:, 1:] = 0.7 * x[:, 1:] + 0.7 * x[:, :-1]
    weights = random.standard_normal(features) / np.sqrt(features)
    y = (random.random(rows) < 1.0 / (1.0 + np.exp(-x @ weights))).astype(np.int32)
    np.save(f"{folder}/x.npy", x)
    np.save(f"{folder}/y.npy", y)
    return x, y


def mpibayes(program, method, folder, agents, seed):
    """Least effective sample size, and seconds."""
    data = f"{folder}/data.h5"
    if not os.path.exists(data):
        arrays = [program, "import", "arrays", f"{folder}/x.npy", "--targets", f"{folder}/y.npy", "--scaling", "none", "-o", data]
        subprocess.run(arrays, check=True, capture_output=True)
    run = f"{folder}/{method}.toml"
    with open(run, "w") as file:
        file.write(f'seed = {seed}\nagents = {agents}\n[data]\nfile = "{data}"\n[model]\nname = "logistic"\nprior = {{ normal = 1.0 }}\nintercept_scale = 1.0\n')
        file.write(f'[method]\nname = "{method}"\n')
    since = time.perf_counter()
    subprocess.run([program, "run", run, "--output", f"{folder}/{method}"], check=True, capture_output=True)
    seconds = time.perf_counter() - since
    summary = subprocess.run([program, "summary", f"{folder}/{method}", "--json", "--all"], check=True, capture_output=True)
    summary = json.loads(summary.stdout)
    estimates = summary["draws"][0]["estimates"]
    least = min(min(parameter["ess_bulk"], parameter["ess_tail"]) for parameter in estimates)
    return least, seconds, summary["judgment"]["text"].split(":")[0]


def numpyro_nuts(x, y, warmup, draws):
    """Least effective sample size, and seconds without compilation."""
    import arviz
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    x = jnp.asarray(np.hstack([x, np.ones((len(x), 1))]), dtype=jnp.float32)
    y = jnp.asarray(y)

    def model():
        weights = numpyro.sample("weights", dist.Normal(jnp.zeros(x.shape[1]), 1.0))
        numpyro.sample("y", dist.Bernoulli(logits=x @ weights), obs=y)

    sampler = MCMC(NUTS(model, dense_mass=True), num_warmup=warmup, num_samples=draws, progress_bar=False)
    # Compiles, and runs for as long as the run that counts.
    sampler.run(jax.random.key(1), extra_fields=("num_steps",))
    since = time.perf_counter()
    sampler.run(jax.random.key(2), extra_fields=("num_steps",))
    jax.block_until_ready(sampler.get_samples())
    seconds = time.perf_counter() - since
    values = np.asarray(sampler.get_samples()["weights"])[None]
    least = min(float(arviz.ess(values[:, :, j], method=method)) for j in range(values.shape[2]) for method in ("bulk", "tail"))
    steps = int(np.sum(np.asarray(sampler.get_extra_fields()["num_steps"])))
    return least, seconds, f"{steps / draws:.1f} steps a draw"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=15_000)
    parser.add_argument("--features", type=int, default=10)
    parser.add_argument("--draws", type=int, default=1000, help="draws of NUTS, after half as many for warm-up")
    parser.add_argument("--methods", nargs="+", default=["sghmc", "dsgld", "hmc"])
    parser.add_argument("--program", default="mpibayes")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        x, y = dataset(arguments.rows, arguments.features, folder)
        results = {}
        for method in arguments.methods:
            results[method] = mpibayes(arguments.program, method, folder, 4, 1)
        results["NUTS of NumPyro"] = numpyro_nuts(x, y, arguments.draws // 2, arguments.draws)
    reference = results["NUTS of NumPyro"]
    print(f"{arguments.rows} rows, {arguments.features} features")
    for name, result in results.items():
        least, seconds, remark = result
        ratio = (least / seconds) / (reference[0] / reference[1])
        print(f"  {name:16} ESS {least:7.0f} in {seconds:7.1f} s: {least / seconds:8.1f} a second, {ratio:6.1f} times NUTS; {remark}")


if __name__ == "__main__":
    main()
