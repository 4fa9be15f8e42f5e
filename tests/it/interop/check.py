"""Opens result files with xarray, ArviZ, netCDF and HDF5, and compares every value with what mpibayes wrote or computed.

    python check.py EXPECTED.json

EXPECTED.json: {"files": [{"path", "groups": {group: {variable: {"dims", "dtype", "values"}}}, "attributes": {group: {name: value}},
"estimates": {group: {variable: [{"index", "mean", "r_hat", ...}]}}}]}. Values are flat, row-major; null stands for NaN.
"""

import json
import logging
import subprocess
import sys
import warnings

import arviz as az
import numpy as np
import xarray as xr

warnings.simplefilter("ignore")
# ArviZ logs every NaN.
logging.disable(logging.CRITICAL)

# Groups that a run on data adds at its end.
ARRAYS = {"preprocessing", "recalibration", "scores", "test_convergence", "test_predictions", "tuning", "vocabulary"}
ENGINES = ["h5netcdf", "netcdf4"]
# Sums in another order differ in the last digits.
TOLERANCE = 1e-6


def numbers(values):
    return np.array([np.nan if value is None else value for value in values])


def same_dataset(found, expected, where):
    """Compares variables with their dimensions, types and values, and dimensions with their coordinates."""
    assert set(found.data_vars) == set(expected), f"{where}: {sorted(found.data_vars)}, not {sorted(expected)}"
    for name, wanted in expected.items():
        variable = found[name]
        assert list(variable.dims) == wanted["dims"], f"{where}/{name}: {variable.dims}, not {wanted['dims']}"
        assert str(variable.dtype) == wanted["dtype"], f"{where}/{name}: {variable.dtype}, not {wanted['dtype']}"
        np.testing.assert_array_equal(variable.values.ravel(), numbers(wanted["values"]), err_msg=f"{where}/{name}")
        for dimension, length in zip(variable.dims, variable.shape):
            np.testing.assert_array_equal(found[dimension].values, np.arange(length), err_msg=f"{where}/{dimension}")


def close(found, expected, where):
    # JSON has neither NaN nor infinity.
    expected = np.nan if expected is None else expected
    assert (np.isnan(found) and np.isnan(expected)) or abs(found - expected) <= TOLERANCE * abs(expected), f"{where}: {found}, {expected}"


def diagnose(dataset, expected, where):
    """Compares every diagnostic of every parameter with ArviZ's functions and with its summary."""
    # mpibayes computes in double precision, whereas ArviZ averages float32 in float32.
    dataset = dataset.astype("float64")
    measures = {
        "r_hat": az.rhat(dataset, method="rank"),
        "ess_bulk": az.ess(dataset, method="bulk"),
        "ess_tail": az.ess(dataset, method="tail"),
        "mcse_mean": az.mcse(dataset, method="mean"),
        "mcse_sd": az.mcse(dataset, method="sd"),
        "mean": dataset.mean(("chain", "draw"), skipna=False),
        "sd": dataset.std(("chain", "draw"), ddof=1, skipna=False),
        "q5": dataset.quantile(0.05, ("chain", "draw"), skipna=False),
        "q95": dataset.quantile(0.95, ("chain", "draw"), skipna=False),
    }
    table = az.summary(dataset, kind="diagnostics", round_to="none")
    compared = 0
    for name, parameters in expected.items():
        for parameter in parameters:
            index = tuple(parameter["index"])
            label = name + (f"[{', '.join(map(str, index))}]" if index else "")
            for measure in measures.keys() & parameter.keys():
                close(float(measures[measure][name].values[index]), parameter[measure], f"{where}/{label}: {measure}")
                compared += 1
            # Particles have no diagnostics.
            if "r_hat" not in parameter:
                continue
            # For an odd number of draws, `summary` folds at another median than `rhat`; everything else is equal.
            for measure in ["ess_bulk", "ess_tail", "mcse_mean", "mcse_sd"] + ["r_hat"] * (dataset.sizes["draw"] % 2 == 0):
                close(float(table.loc[label, measure]), parameter[measure], f"{where}/{label}: {measure} of the summary")
                compared += 1
    return compared


def arrays(path, groups):
    """Compares the groups that are neither draws nor tables between readers."""
    for group in groups:
        seen = []
        for engine in ENGINES:
            with xr.open_dataset(path, group=group, engine=engine) as dataset:
                seen.append(dataset.load())
        assert seen[0].identical(seen[1]) or all(seen[0][name].equals(seen[1][name]) for name in seen[0].variables), f"{path}: {group}"
        if "probability" in seen[0]:
            total = seen[0]["probability"].sum("class").values
            assert np.allclose(total, 1.0), f"{path}: {group}: probabilities add up to {total}"
            classes = seen[0]["classes"].values
            own = seen[0]["probability"].values[range(len(total)), seen[0]["target"].values.astype(int)]
            assert len(classes) > 1 and np.allclose(own, seen[0]["density"].values), f"{path}: {group}"


def check(file):
    path = file["path"]
    for group, expected in file["groups"].items():
        for engine in ENGINES:
            with xr.open_dataset(path, group=group, engine=engine) as dataset:
                same_dataset(dataset.load(), expected, f"{path}, {engine}, {group}")
                for name, value in file["attributes"].get(group, {}).items():
                    assert dataset.attrs[name] == value, f"{path}, {engine}, {group}: {name} = {dataset.attrs[name]!r}, not {value!r}"
    for engine in ENGINES:
        with xr.open_datatree(path, engine=engine) as tree:
            more = set(tree.children) - set(file["groups"])
            assert set(file["groups"]) <= set(tree.children) and more <= ARRAYS, f"{path}: {sorted(tree.children)}"
            arrays(path, more)
            for group, expected in file["groups"].items():
                same_dataset(tree[group].to_dataset().load(), expected, f"{path}, tree, {group}")
            for name, value in file["attributes"][""].items():
                assert tree.attrs[name] == value, f"{path}, {engine}: {name} = {tree.attrs[name]!r}, not {value!r}"
    inference = az.from_netcdf(path)
    assert set(inference.groups()) == set(file["groups"]) | more, f"{path}: {inference.groups()}"
    for group, expected in file["groups"].items():
        same_dataset(inference[group].load(), expected, f"{path}, arviz, {group}")
    compared = sum(diagnose(inference[group], expected, f"{path}, {group}") for group, expected in file["estimates"].items())
    header = subprocess.run(["ncdump", "-h", path], capture_output=True, text=True, check=True).stdout
    for group in file["groups"]:
        assert f"group: {group} {{" in header, f"ncdump -h {path}: no {group}"
    assert "phony" not in header, header
    subprocess.run(["h5dump", "-H", path], capture_output=True, check=True)
    variables = sum(len(group) for group in file["groups"].values())
    print(f"{path}: {len(file['groups'])} groups, {variables} variables, {compared} estimates")


with open(sys.argv[1], encoding="utf-8") as text:
    for file in json.load(text)["files"]:
        check(file)
