# Shared by the batch scripts: starts mpibayes on the ranks of a Slurm job, stops it before the time limit, and requeues the job if the run
# was stopped or if a rank or a node was lost.
# shellcheck shell=bash
#
#   CONFIG     the run file (required)
#   OUTPUT     the folder for the results [default: runs/NAME for NAME.toml]
#   SET        values to replace, separated by spaces: SET="seed=2 method.rounds=20"
#   OPTIONS    further options of `run`, `resume` or `sweep`: OPTIONS="--max-silence 300 --log-host"
#   LAUNCHER   the command that starts the ranks, such as "srun --mpi=pmix" if Slurm supports this MPI [default: mpirun --bind-to none]
#
# Nodes, ranks, threads and time are options of sbatch: --nodes, --ntasks, --cpus-per-task, --time.

source "$(dirname "${BASH_SOURCE[0]}")/env.sh" || exit 2
if [ -z "${SLURM_JOB_ID:-}" ]; then
    echo "This is a batch script for Slurm: submit it with sbatch --export=ALL,CONFIG=my.toml ${0##*/}, or bash jobs/submit.sh" >&2
    exit 2
fi
if [ -z "${CONFIG:-}" ]; then
    echo "CONFIG is not set: submit the job with sbatch --export=ALL,CONFIG=my.toml ..." >&2
    exit 2
fi
OUTPUT=${OUTPUT:-runs/$(basename "$CONFIG" .toml)}

# The ID of this job. SLURM_JOB_ID of the last task of an array is that of the array, which stands for all tasks.
job=$SLURM_JOB_ID
[ -z "${SLURM_ARRAY_TASK_ID:-}" ] || job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID

# By default, all jobs of a user on a node share one folder for Open MPI's session files. Jobs that start at the same moment, such as tasks
# of an array, race to create it and fail with "mkdir: File exists". Each job therefore gets a folder of its own. Open MPI creates it on
# the other nodes too, where it remains empty. (orte_local_tmpdir_base is no alternative: with it, MPI_Init fails on every rank.)
sessions=$(mktemp -d) || exit 2
export OMPI_MCA_orte_tmpdir_base="$sessions"
trap 'rm -rf "$sessions"' EXIT

# mpirun ends with exit code 205 if a node has been silent for two minutes [default: 8 minutes].
export OMPI_MCA_oob_tcp_keepalive_time="${OMPI_MCA_oob_tcp_keepalive_time:-60}"
export OMPI_MCA_oob_tcp_keepalive_intvl="${OMPI_MCA_oob_tcp_keepalive_intvl:-10}"
export OMPI_MCA_oob_tcp_keepalive_probes="${OMPI_MCA_oob_tcp_keepalive_probes:-6}"

# If a rank dies, srun ends the others by SIGTERM instead of SIGKILL, so that they report what is saved.
export SLURM_KILL_BAD_EXIT="${SLURM_KILL_BAD_EXIT:-1}"

# Since Slurm 22.05, srun does not inherit --cpus-per-task from sbatch.
export SRUN_CPUS_PER_TASK="${SLURM_CPUS_PER_TASK:-1}"

# Options of `run`, `check` and `sweep` (`resume` has the settings of its run): one thread for each core of a rank, and the values of SET.
settings=(--set "cluster.threads=${SLURM_CPUS_PER_TASK:-1}")
for setting in ${SET:-}; do
    settings+=(--set "$setting")
done

# The time of the newest checkpoint or result in OUTPUT or in a folder below it, empty if there is none.
newest_checkpoint() {
    find "$OUTPUT" -maxdepth 2 \( -name 'checkpoint*.bin' -o -name result.h5 \) -printf '%T@\n' 2>/dev/null | sort -g | tail -n 1
}

# How often the job was requeued, by this script or by Slurm, since the last checkpoint. A file in OUTPUT holds the number of requeues at
# which a newer checkpoint was last found, and the time of that checkpoint.
max_requeues=3
requeues=${SLURM_RESTART_COUNT:-0}
record=$OUTPUT/requeues${SLURM_ARRAY_TASK_ID:+-$SLURM_ARRAY_TASK_ID}
newest=$(newest_checkpoint)
since=0 known=
[ "$requeues" -gt 0 ] || rm -f "$record"
[ ! -e "$record" ] || read -r since known <"$record"
if [ "$newest" != "$known" ]; then
    since=$requeues
    # If the disk is full, all requeues count.
    echo "$since $newest" >"$record" || since=0
fi
in_vain=$((requeues - since))

# Ends the script instead of requeuing the job again.
give_up() { # give_up CODE
    echo "mpibayes: this job was requeued $max_requeues times in a row without a newer checkpoint in $OUTPUT: it is not requeued again." \
        "Remove the cause, which the messages above report, and submit it again: it resumes" >&2
    exit "$1"
}
[ "$in_vain" -le "$max_requeues" ] || give_up 75

# Until the ranks run there is nothing to save.
trap 'finish 75' USR1

# Runs a command on the ranks of the job.
LAUNCHER=${LAUNCHER:-mpirun --bind-to none}
on_ranks() { # on_ranks COMMAND...
    local launcher
    read -r -a launcher <<<"$LAUNCHER"
    # exec, because a shell in between would not forward signals.
    exec "${launcher[@]}" "$@"
}

# The time until the limit of the job, empty if it is unknown or unlimited.
time_left() {
    local left
    left=$(squeue --noheader --jobs="$job" --format=%L 2>/dev/null)
    if [[ $left =~ ^[0-9][0-9:-]*$ ]]; then
        echo "$left"
    elif [ -n "${SLURM_JOB_END_TIME:-}" ]; then
        left=$((SLURM_JOB_END_TIME - $(date +%s)))
        echo "$((left > 0 ? left : 0))s"
    fi
}

# Kills a launcher whose last rank on this node ended a minute ago: mpirun waits about 15 minutes for the daemon of a lost node. The ranks
# of srun are not in the session of this script, so this does nothing; srun waits only for KillWait.
kill_without_ranks() { # kill_without_ranks LAUNCHER_PID
    local last_seen=
    while sleep 5 >/dev/null 2>&1; do
        if pgrep --session 0 --exact mpibayes >/dev/null; then
            last_seen=$SECONDS
        elif [ -n "$last_seen" ] && [ $((SECONDS - last_seen)) -ge 60 ]; then
            echo "mpibayes: the ranks have ended, but the launcher waits, probably for a lost node: killing it" >&2
            kill -KILL "$1"
            return
        fi
    done
}

# Runs `run`, `resume` or `sweep` on the ranks of the job, which stop before its time limit and on SIGUSR1. Returns the exit code.
until_time_limit() { # until_time_limit COMMAND...
    local code forwarded left launcher options watcher
    read -r -a options <<<"${OPTIONS:-}"
    left=$(time_left)
    # A rank on this node writes into this file when it starts.
    local started=$sessions/started
    : >"$started"
    # shellcheck disable=SC2016
    on_ranks bash -c '[ ! -e "$0" ] || echo started >"$0"; exec "$@"' "$started" "$@" "${options[@]}" ${left:+--max-time "$left"} &
    launcher=$!
    kill_without_ranks "$launcher" &
    watcher=$!
    # Slurm signals the script; mpirun and srun forward the signal to the ranks.
    trap 'forwarded=yes; kill -USR1 "$launcher" 2>/dev/null' USR1
    while true; do
        forwarded=no
        code=0
        wait "$launcher" || code=$?
        # If a signal interrupted the wait, its exit code is not that of the command.
        [ "$forwarded" = yes ] || break
    done
    trap - USR1
    kill "$watcher" 2>/dev/null && wait "$watcher" 2>/dev/null
    # mpirun also ends with 1 if it cannot start its daemon on a node. In the first job this is rather an error in its options.
    if [ "$code" = 1 ] && [ "$requeues" -gt 0 ] && [ ! -s "$started" ]; then code=205; fi
    return "$code"
}

# Ends the script with an exit code. Requeues the job if its run was stopped (75) or a rank or node was lost: 137 after SIGKILL, 205 from
# mpirun if it has lost a node, 143 from srun. Other codes are errors that would occur again. When Slurm itself ends the job,
# because it is canceled or has lost a node, SIGTERM ends this script, and Slurm decides.
finish() { # finish CODE
    if [ "$1" != 75 ] && [ "$1" -lt 128 ]; then
        rm -f "$record"
        exit "$1"
    fi
    if [ "$in_vain" -ge "$max_requeues" ] && [ "$(newest_checkpoint)" = "$newest" ]; then
        give_up "$1"
    fi
    echo "not finished (exit code $1): requeuing job $job, which then resumes"
    # A network that is down for a while also separates this script from Slurm.
    local attempt
    for attempt in {1..6}; do
        [ "$attempt" = 1 ] || sleep 30
        # Requeuing ends this script.
        if scontrol requeue "$job"; then
            sleep 60
            exit "$1"
        fi
    done
    echo "mpibayes: the job could not be requeued: submit it again, and it resumes" >&2
    exit "$1"
}
