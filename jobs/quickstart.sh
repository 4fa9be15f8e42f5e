#!/usr/bin/env bash
# From a fresh checkout to a Bayesian neural network on Fashion-MNIST. Four agents with different classes train it on two ranks. Then
# compares it with other methods on the same data and steps: SVGD on all data, DSVGD without a cavity, FedAvg.
#
#   bash jobs/quickstart.sh
#
# The last line is `quickstart: accuracy A, ECE E, results in DIR`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source jobs/env.sh

heading() { printf '\n== %s\n' "$*"; }

# The folder that holds the four files of Fashion-MNIST.
find_fashion() {
    local place
    for place in ${MPIBAYES_DATA:+"$MPIBAYES_DATA/fashion-mnist"} datasets/fashion-mnist /usr/share/datasets/fashion-mnist; do
        if [ -e "$place/train-images-idx3-ubyte.gz" ] && [ -e "$place/t10k-labels-idx1-ubyte.gz" ]; then
            printf '%s\n' "$place"
            return 0
        fi
    done
    return 1
}

heading "prerequisites"
bash jobs/setup.sh
if ! find_fashion >/dev/null && ! bash jobs/setup.sh --fashion-mnist; then
    echo "quickstart: Fashion-MNIST is missing: put its four files into datasets/fashion-mnist (docs/src/data.md names the source)" >&2
    exit 1
fi
fashion=$(find_fashion)
echo "complete; Fashion-MNIST is in $fashion"

heading "build (some minutes the first time)"
cargo build --release --locked

heading "import"
# Principal axes: models see the images rotated, so that columns are uncorrelated.
data=datasets/fashion-mnist-principal.h5
if [ -e "$data" ]; then
    echo "$data exists already"
else
    mpibayes import images "$fashion/train-images-idx3-ubyte.gz" --labels "$fashion/train-labels-idx1-ubyte.gz" \
        --test-images "$fashion/t10k-images-idx3-ubyte.gz" --test-labels "$fashion/t10k-labels-idx1-ubyte.gz" \
        --scaling principal -o "$data"
fi

heading "run"
# A finished run of an earlier quickstart keeps its folder; a stopped one is resumed.
results=runs/quickstart
number=2
while [ -e "$results/result.h5" ] && [ ! -e "$results/checkpoint.bin" ] && [ ! -e "$results/checkpoint.previous.bin" ]; do
    results=runs/quickstart-$number
    number=$((number + 1))
done
mpirun -n 2 mpibayes run jobs/quickstart.toml --output "$results"

heading "comparison with other methods"
# Each has a folder beside the first run, and the same number of steps. Finished runs are kept.
optimizer='optimizer = { adagrad = { step = 1e-3, decay = 0.9, fudge = 1e-6 } }'
run_method() { # run_method NAME METHOD-KEYS
    mpirun -n 2 mpibayes run jobs/quickstart.toml --set "method={ $2, rounds = 24, batch = 100, $optimizer }" --output "$results-$1"
}
run_method all-data-svgd 'name = "svgd", particles = 10, steps = 100'
run_method no-cavity 'name = "dsvgd", particles = 10, local_steps = 100, cavity = "kde", kde = "none"'
run_method fedavg 'name = "fedavg", local_steps = 100, schedule = "round_robin"'

heading "results"
mpibayes summary "$results"
mpibayes compare "$results" "$results-all-data-svgd" "$results-no-cavity" "$results-fedavg"

heading "next steps"
cat <<END
  your shell      source jobs/env.sh, in the folder $PWD
  the results     $results/result.h5: HDF5 and netCDF-4, for h5dump, ncdump -h, xarray, ArviZ
  the summary     mpibayes summary $results
  other settings  mpirun -n 2 mpibayes run jobs/quickstart.toml --set seed=2 --output runs/second
  your own data   mpibayes import my.csv --test-fraction 0.2 -o datasets/my.h5   (docs/src/tutorial-regression.md)
  all commands    mpibayes --help

END
accuracy=$(mpibayes summary "$results" --get accuracy)
ece=$(mpibayes summary "$results" --get ece)
echo "quickstart: accuracy $accuracy, ECE $ece, results in $results"
