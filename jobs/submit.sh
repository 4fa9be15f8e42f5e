#!/usr/bin/env bash
# Submits a batch script of this folder, with variables instead of Slurm's options.
#
#   CONFIG=my.toml NODES=2 RANKS=8 THREADS=1 TIME=2:00:00 bash jobs/submit.sh run
#   CONFIG=sweep.toml TASKS=8 bash jobs/submit.sh sweep
#   CONFIG=jobs/scaling.toml NODES=2 RANKS=8 bash jobs/submit.sh scaling
#
# RANKS is the number of ranks of the job, THREADS that of threads per rank, TASKS that of tasks of the array.
# The script gives the defaults.
# jobs/slurm.sh describes OUTPUT, SET, OPTIONS and LAUNCHER, jobs/run.sbatch STRICT and RESUME, jobs/scaling.sbatch REPEATS and WEAK. Further options of sbatch, such as
# --partition, follow the name of the script.
# Prints the command that it runs.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
script=$here/${1:-}.sbatch
if [ $# = 0 ] || [ ! -e "$script" ]; then
    awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "${BASH_SOURCE[0]}" >&2
    exit 2
fi
shift
if [ ! -e "${CONFIG:-}" ]; then
    echo "submit: there is no file '${CONFIG:-}': set CONFIG to the run file" >&2
    exit 2
fi
options=()
[ -z "${NODES:-}" ] || options+=("--nodes=$NODES")
[ -z "${RANKS:-}" ] || options+=("--ntasks=$RANKS")
[ -z "${THREADS:-}" ] || options+=("--cpus-per-task=$THREADS")
[ -z "${TIME:-}" ] || options+=("--time=$TIME")
[ -z "${TASKS:-}" ] || options+=("--array=1-$TASKS")
# The helpers of the submitted script are beside it, whatever a loaded module has set.
export CONFIG MPIBAYES_HOME="${here%/jobs}"
set -x
exec sbatch --export=ALL ${options[@]+"${options[@]}"} "$@" "$script"
