#!/usr/bin/env bash
# Submits one of the batch scripts of this folder, with variables in place of Slurm's options.
#
#   CONFIG=my.toml NODES=2 RANKS=8 THREADS=1 TIME=2:00:00 bash jobs/submit.sh run
#   CONFIG=sweep.toml TASKS=8 bash jobs/submit.sh sweep
#   CONFIG=jobs/scaling.toml NODES=2 RANKS=8 bash jobs/submit.sh scaling
#
# RANKS are those of the whole job, THREADS those of a rank, TASKS those of the array; what is not set is as the script says.
# OUTPUT, SET and LAUNCHER are as in jobs/slurm.sh. More options of sbatch, such as --partition, come after the name. Prints what
# it submits.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
script=$here/${1:-}.sbatch
if [ $# = 0 ] || [ ! -e "$script" ]; then
    awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "${BASH_SOURCE[0]}" >&2
    exit 2
fi
shift
if [ ! -e "${CONFIG:-}" ]; then
    echo "submit: CONFIG must name the run file; it is '${CONFIG:-}'" >&2
    exit 2
fi
options=()
[ -z "${NODES:-}" ] || options+=("--nodes=$NODES")
[ -z "${RANKS:-}" ] || options+=("--ntasks=$RANKS")
[ -z "${THREADS:-}" ] || options+=("--cpus-per-task=$THREADS")
[ -z "${TIME:-}" ] || options+=("--time=$TIME")
[ -z "${TASKS:-}" ] || options+=("--array=1-$TASKS")
export CONFIG MPIBAYES_HOME="${MPIBAYES_HOME:-${here%/jobs}}"
set -x
exec sbatch --export=ALL "${options[@]}" "$@" "$script"
