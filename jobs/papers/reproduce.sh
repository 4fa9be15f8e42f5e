#!/usr/bin/env bash
# Runs rows of a paper's figures and writes what came out, with a verdict for each, to jobs/papers/PAPER/RESULTS.md.
#
#   bash jobs/papers/reproduce.sh dsgld                   # all rows that are not done yet
#   bash jobs/papers/reproduce.sh dsgld fig2a fig2b       # these
#   bash jobs/papers/reproduce.sh dsgld --quick           # fewer seeds and rounds, kept apart from the others
#   bash jobs/papers/reproduce.sh dsgld --again           # those that are done, too
#   bash jobs/papers/reproduce.sh dsvgd                   # another paper; data sets in $MPIBAYES_DATA
#   bash jobs/papers/reproduce.sh ec-sghmc                # and the third
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source jobs/env.sh
cargo build --release --locked --quiet --example reproduce
exec "${CARGO_TARGET_DIR:-target}/release/examples/reproduce" "$@"
