#!/usr/bin/env bash
# Reproduces rows of a paper's figures and writes the results, with a verdict for each, to jobs/papers/PAPER/RESULTS.md. The run files
# beside that report hold the settings of the rows.
#
#   bash jobs/papers/reproduce.sh all                     # all rows of all papers without results, or whose results are stale
#   bash jobs/papers/reproduce.sh dsgld                   # those of one paper
#   bash jobs/papers/reproduce.sh dsgld fig2a fig2b       # only these rows
#   bash jobs/papers/reproduce.sh dsgld --quick           # fewer seeds and rounds, with separate results
#   bash jobs/papers/reproduce.sh dsgld --again           # all rows, including those with results
#   bash jobs/papers/reproduce.sh all --confirm           # after a change of code: which results would come out the same
#   bash jobs/papers/reproduce.sh dsvgd                   # another paper; data sets in $MPIBAYES_DATA
#   bash jobs/papers/reproduce.sh ec-sghmc                # the third paper
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source jobs/env.sh
cargo build --release --locked --quiet --example reproduce
reproduce="${CARGO_TARGET_DIR:-target}/release/examples/reproduce"
if [ "${1:-}" != all ]; then
    exec "$reproduce" "$@"
fi
shift
code=0
for paper in dsgld dsvgd ec-sghmc; do
    "$reproduce" "$paper" "$@" || code=1
done
exit "$code"
