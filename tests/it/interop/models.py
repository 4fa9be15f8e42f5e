"""Reads regressions with ArviZ: names of columns and groups, cross-validation, posterior predictive checks.

    python models.py COMPARISON.json NAME...

COMPARISON.json is what `mpibayes compare --json` printed; the names must be among those of the parameters.
"""

import json
import sys

import arviz as az
import matplotlib
import numpy as np

matplotlib.use("Agg")

with open(sys.argv[1], encoding="utf-8") as text:
    comparison = json.load(text)

runs = {run["run"]: az.from_netcdf(run["file"]) for run in comparison["runs"]}
for name, run in runs.items():
    found = set(az.summary(run, kind="stats").index)
    missing = set(sys.argv[2:]) - found
    assert not missing or name != comparison["predictive_scores"][0]["run"], f"{name}: no {missing} in {sorted(found)}"
    # ArviZ uses divergences as an index in its trace plots.
    assert run.sample_stats["diverging"].dtype == bool, run.sample_stats["diverging"]
    axes = az.plot_ppc(run, num_pp_samples=20)
    axes.figure.savefig(f"{name}.png")

table = az.compare(runs, ic="loo")
for expected in comparison["predictive_scores"]:
    own = az.loo(runs[expected["run"]], pointwise=True)
    for found, wanted in [(own.elpd_loo, expected["elpd"]["value"]), (own.se, expected["elpd"]["standard_error"])]:
        assert np.isclose(found, wanted, rtol=1e-6), f"{expected['run']}: {found}, not {wanted}"
    unreliable = int((own.pareto_k.values > own.good_k).sum())
    assert unreliable == expected["unreliable_rows"], f"{expected['run']}: {unreliable}, not {expected['unreliable_rows']}"
    difference = expected["difference"] or {"value": 0.0, "standard_error": 0.0}
    row = table.loc[expected["run"]]
    assert np.isclose(-row["elpd_diff"], difference["value"], rtol=1e-6), f"{row}, not {difference}"
    assert np.isclose(row["dse"], difference["standard_error"], rtol=1e-6), f"{row}, not {difference}"
print(table.to_string())
