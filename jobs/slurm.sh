# What the batch scripts share: starting mpibayes on the ranks of a Slurm job, stopping it in time, going on later.
# shellcheck shell=bash
#
#   CONFIG     the run file (needed)
#   OUTPUT     the folder for what comes out; runs/NAME for NAME.toml without it
#   SET        values to replace, separated by spaces: SET="seed=2 method.rounds=20"
#   LAUNCHER   what starts the ranks: "mpirun --bind-to none" without it; "srun --mpi=pmix" where Slurm and MPI know each other
#
# Nodes, ranks, threads and time are Slurm's own: --nodes, --ntasks, --cpus-per-task, --time.

if [ -z "${SLURM_JOB_ID:-}" ]; then
    echo "This is a batch script for Slurm: sbatch --export=ALL,CONFIG=my.toml ${0##*/}, or bash jobs/submit.sh" >&2
    exit 2
fi
if [ -z "${CONFIG:-}" ]; then
    echo "CONFIG is not set: sbatch --export=ALL,CONFIG=my.toml ..." >&2
    exit 2
fi
OUTPUT=${OUTPUT:-runs/$(basename "$CONFIG" .toml)}

# Open MPI keeps its session files in one folder of a node for all jobs of a user. Jobs that start at the same moment, such as tasks of an
# array, would race to make it and end with "mkdir: File exists": mpirun gets a folder for each job.
if sessions=$(mktemp -d); then
    export OMPI_MCA_orte_local_tmpdir_base="$sessions"
    trap 'rm -rf "$sessions"' EXIT
fi

# Since Slurm 22.05 srun does not ask for the cores that sbatch was given.
export SRUN_CPUS_PER_TASK="${SLURM_CPUS_PER_TASK:-1}"

# What is typed after each mpibayes: a thread for each core of a rank, and what SET says.
settings=(--set "cluster.threads=${SLURM_CPUS_PER_TASK:-1}")
for setting in ${SET:-}; do
    settings+=(--set "$setting")
done

# Runs a command on the ranks of the job; options of the launcher may come first.
on_ranks() { # on_ranks COMMAND...
    local launcher
    read -r -a launcher <<<"${LAUNCHER:-mpirun --bind-to none}"
    # In place of a shell that would keep the signal to itself.
    exec "${launcher[@]}" "$@"
}

# The same, and hands SIGUSR1 on to it; ends with its exit code.
on_ranks_with_usr1() { # on_ranks_with_usr1 COMMAND...
    local code handed
    on_ranks "$@" &
    local job=$!
    # Slurm asks the script; mpirun and srun hand it on to the ranks.
    trap 'handed=yes; kill -USR1 "$job" 2>/dev/null' USR1
    while true; do
        handed=no
        code=0
        wait "$job" || code=$?
        # A wait that a signal has ended says nothing of the command.
        [ "$handed" = yes ] || break
    done
    trap - USR1
    return "$code"
}

# Ends the script with an exit code. A run that was saved ahead of the time limit goes on in the same job, which is put back into
# the queue.
finish() { # finish CODE
    if [ "$1" = 75 ]; then
        echo "saved; job $SLURM_JOB_ID goes back into the queue and goes on"
        # This ends the script.
        scontrol requeue "$SLURM_JOB_ID" && sleep 60
    fi
    exit "$1"
}
