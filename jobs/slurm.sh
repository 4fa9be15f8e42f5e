# Shared by the batch scripts: starts mpibayes on the ranks of a Slurm job, stops it before the time limit, and requeues the job if the run
# was stopped or if a rank or a node was lost.
# shellcheck shell=bash
#
#   CONFIG     the run file (required)
#   OUTPUT     the folder for the results [default: runs/NAME for NAME.toml]
#   SET        values to replace, separated by spaces, without spaces within: SET="seed=2 method.rounds=20"
#   OPTIONS    further options of `run`, `resume` or `sweep`: OPTIONS="--max-silence 300s --log-host"
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

# The connection between mpirun and the daemon of a node ends after two minutes without a sign of life [default: 8 minutes]; mpirun then
# ends with exit code 205. This covers a node that is lost while mpirun has nothing to send to it. Otherwise, see kill_without_ranks.
export OMPI_MCA_oob_tcp_keepalive_time="${OMPI_MCA_oob_tcp_keepalive_time:-60}"
export OMPI_MCA_oob_tcp_keepalive_intvl="${OMPI_MCA_oob_tcp_keepalive_intvl:-10}"
export OMPI_MCA_oob_tcp_keepalive_probes="${OMPI_MCA_oob_tcp_keepalive_probes:-6}"

# If a rank dies, srun ends the others by SIGTERM instead of SIGKILL, so that they report what is saved.
export SLURM_KILL_BAD_EXIT="${SLURM_KILL_BAD_EXIT:-1}"

# Since Slurm 22.05, srun does not inherit --cpus-per-task from sbatch.
export SRUN_CPUS_PER_TASK="${SLURM_CPUS_PER_TASK:-1}"

# Options of `run`, `check` and `sweep` (`resume` has the settings of its run): one thread for each core of a rank, and the values of SET.
settings=(--set "cluster.threads=${SLURM_CPUS_PER_TASK:-1}")
# Without file names in place of wildcards.
set -f
for setting in ${SET:-}; do
    settings+=(--set "$setting")
done
set +f

# The time of the newest checkpoint or result in OUTPUT or in a folder below it, empty if there is none.
newest_checkpoint() {
    find "$OUTPUT" -maxdepth 2 \( -name 'checkpoint*.bin' -o -name result.h5 \) -printf '%T@\n' 2>/dev/null | sort -g | tail -n 1
}

# The job is requeued at most 3 times in a row without a newer checkpoint, where requeues by Slurm itself count. Every job soon writes a
# checkpoint, so there is a second bound: this script requeues it at most 10 times after faults. A fault is an exit code other than 75, or
# 75 with more than 10 minutes left: a run that stops because of the time limit stops later. A file in OUTPUT holds the number of requeues
# at which a newer checkpoint was last found, the number of requeues after faults, and the time of that checkpoint.
max_without_progress=3
max_after_faults=10
requeues=${SLURM_RESTART_COUNT:-0}
record=$OUTPUT/requeues${SLURM_ARRAY_TASK_ID:+-$SLURM_ARRAY_TASK_ID}
newest=$(newest_checkpoint)
count_at_progress=0 after_faults=0 time_at_progress=
[ "$requeues" -gt 0 ] || rm -f "$record"
[ ! -e "$record" ] || read -r count_at_progress after_faults time_at_progress <"$record"
# A file that was not written completely.
[[ $count_at_progress =~ ^[0-9]+$ ]] || count_at_progress=0
[[ $after_faults =~ ^[0-9]+$ ]] || after_faults=0

# Writes the record. Before there is a folder there is no checkpoint, and the first bound is enough.
write_record() {
    [ ! -d "$OUTPUT" ] || { echo "$count_at_progress $after_faults $time_at_progress" >"$record.new" && mv "$record.new" "$record"; }
}

# Ends the script instead of requeuing the job again.
give_up() { # give_up CODE REASON
    echo "mpibayes: this job was requeued $2: it is not requeued again. Remove the cause, which the messages above report, and submit it" \
        "again: it resumes" >&2
    exit "$1"
}
without_progress_in_a_row="$max_without_progress times in a row without a newer checkpoint in $OUTPUT"

# Runs a command on the ranks of the job.
LAUNCHER=${LAUNCHER:-mpirun --bind-to none}
on_ranks() { # on_ranks COMMAND...
    local launcher
    read -r -a launcher <<<"$LAUNCHER"
    # exec, because a shell in between would not forward signals.
    exec "${launcher[@]}" "$@"
}

# Uses up the numbers of the steps that earlier starts of this job had, at most this many each. The steps of a requeued job are numbered from 0
# again, and Slurm (22.05, with PMIx) cannot start one on a node that has lost power during a step of the same number, of which it keeps files.
skip_earlier_steps() { # skip_earlier_steps STEPS_OF_A_START
    [[ $LAUNCHER == *srun* ]] || return 0
    local step
    for ((step = 0; step < $1 * requeues; step++)); do
        timeout --kill-after=10 60 srun --mpi=none --nodes=1 --ntasks=1 true >/dev/null 2>&1 && continue
        echo "mpibayes: note: srun could not start a step" >&2
        return 0
    done
}

# Prints libraries, cores and the place of each rank. A dead node must not delay the run, and a failure does not matter.
print_environment() {
    # In a subshell, because on_ranks replaces its shell.
    (LAUNCHER="timeout --kill-after=10 120 $LAUNCHER" on_ranks mpibayes env) || true
}

# The seconds until the limit of the job, empty if it is unknown or unlimited.
time_left() {
    local left
    left=$(squeue --noheader --jobs="$job" --format=%L 2>/dev/null)
    if [[ $left =~ ^(([0-9]+)-)?(([0-9]+):)?([0-9]+):([0-9]+)$ ]]; then
        # 10#, because a number with a leading zero would be octal.
        local days=10#${BASH_REMATCH[2]:-0} hours=10#${BASH_REMATCH[4]:-0} minutes=10#${BASH_REMATCH[5]} seconds=10#${BASH_REMATCH[6]}
        echo $((((days * 24 + hours) * 60 + minutes) * 60 + seconds))
    elif [ "$left" != UNLIMITED ] && [ -n "${SLURM_JOB_END_TIME:-}" ]; then
        left=$((SLURM_JOB_END_TIME - $(date +%s)))
        echo $((left > 0 ? left : 0))
    fi
}

# Kills a launcher whose last rank on this node ended a minute ago. If a node is lost, the other ranks end, and mpirun tells the daemon of
# that node so. TCP repeats this message for about 15 minutes, and meanwhile sends no keepalive probes. The ranks of srun are not in the
# session of this script, so this does nothing; srun waits only for KillWait.
kill_without_ranks() { # kill_without_ranks LAUNCHER_PID
    local last_seen=
    # -p: the program, whatever else on the PATH has its name.
    while command -p sleep 5 >/dev/null 2>&1; do
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
    local code forwarded left launcher options watcher=
    read -r -a options <<<"${OPTIONS:-}"
    # A limit in OPTIONS takes precedence.
    case " ${OPTIONS:-} " in
        *" --max-time"[\ =]*) left= ;;
        *) left=$(time_left) ;;
    esac
    # The ranks remove this file when they start. If the disk is full, it is not there.
    local waiting=$OUTPUT/waiting-$job
    mkdir -p "$OUTPUT" && : >"$waiting"
    # In bash before 4.4, an empty array is an unset variable.
    # shellcheck disable=SC2016
    on_ranks bash -c '[ ! -e "$0" ] || rm -f "$0"; exec "$@"' "$waiting" \
        "$@" ${left:+--max-time "${left}s"} ${options[@]+"${options[@]}"} &
    launcher=$!
    if [ "$has_pgrep" = yes ]; then
        kill_without_ranks "$launcher" &
        watcher=$!
    fi
    # Slurm signals the script; mpirun and srun forward the signal to the ranks.
    trap 'forwarded=yes; kill -USR1 "$launcher" 2>/dev/null' USR1
    while true; do
        forwarded=no
        code=0
        wait "$launcher" || code=$?
        # If a signal interrupted the wait, its exit code is not that of the command.
        [ "$forwarded" = yes ] || break
    done
    trap 'finish 75' USR1
    [ -z "$watcher" ] || { kill "$watcher" 2>/dev/null && wait "$watcher" 2>/dev/null; }
    # SIGUSR1 kills a launcher that is about to start or to end (128 + 10). The run is not started, saved or finished: another job finds out.
    [ "$code" != 138 ] || code=75
    # mpirun also ends with 1 if it cannot start its daemon on a node. In the first job this is rather an error in its options. srun may end
    # with 0 if no node could start a rank.
    if [ -e "$waiting" ]; then
        rm -f "$waiting"
        case $code:$requeues:$LAUNCHER in
            0:*srun* | 1:[1-9]*) code=205 ;;
        esac
    fi
    return "$code"
}

# Ends the script with an exit code. Requeues the job if its run was stopped (75) or a rank or node was lost: 137 after SIGKILL, 205 from
# mpirun if it has lost a node (and from this script if no rank could start), 143 from srun if a rank was killed, 253 from srun after the
# memory was full. Other codes are errors that would occur again, or Ctrl-C. When Slurm itself ends the job, because it is canceled or has
# lost a node, SIGTERM ends this script, and Slurm decides.
finish() { # finish CODE
    # Without a trap, Slurm's signal before the time limit would end the script.
    trap : USR1
    case $1 in
        75 | 137 | 143 | 205 | 253) ;;
        *)
            rm -f "$record"
            exit "$1"
            ;;
    esac
    if [ "$without_progress" -ge "$max_without_progress" ] && [ "$(newest_checkpoint)" = "$newest" ]; then
        give_up "$1" "$without_progress_in_a_row"
    fi
    local left
    left=$(time_left)
    if [ "$1" != 75 ] || [ -z "$left" ] || [ "$left" -gt 600 ]; then
        [ "$after_faults" -lt "$max_after_faults" ] ||
            give_up "$1" "$max_after_faults times after faults (a lost rank or node, or a run that stopped long before the time limit)"
        after_faults=$((after_faults + 1))
        write_record
    fi
    # A network that is down for a while also separates this script from Slurm.
    local attempt shown
    for attempt in {1..6}; do
        [ "$attempt" = 1 ] || sleep 30
        shown=$(scontrol show job "$job") || continue
        shown=" ${shown//$'\n'/ } "
        [[ $shown == *" JobState="* ]] || continue
        # The job was canceled, or Slurm has requeued it.
        [[ $shown == *" JobState=RUNNING "* && $shown == *" Restarts=$requeues "* ]] || exit "$1"
        if [[ $shown == *" Requeue=0 "* ]]; then
            echo "mpibayes: not finished (exit code $1), and the job was submitted with --no-requeue: submit it again, and it resumes" >&2
            exit "$1"
        fi
        echo "not finished (exit code $1): requeuing job $job, which then resumes"
        # Requeuing ends this script.
        if scontrol requeue "$job"; then
            sleep 60
            exit "$1"
        fi
    done
    echo "mpibayes: the job could not be requeued: submit it again, and it resumes" >&2
    exit "$1"
}

# Before the ranks run there is nothing to save.
trap 'finish 75' USR1

if [ "$newest" != "$time_at_progress" ]; then
    count_at_progress=$requeues time_at_progress=$newest
    # If the disk is full, all requeues count.
    write_record || count_at_progress=0
fi
without_progress=$((requeues - count_at_progress))
[ "$without_progress" -le "$max_without_progress" ] || give_up 75 "$without_progress_in_a_row"

# Watching the ranks is not essential.
has_pgrep=no
! command -v pgrep >/dev/null || has_pgrep=yes

# By default, all jobs of a user on a node share one folder for Open MPI's session files. Jobs that start at the same moment, such as tasks
# of an array, race to create it and fail with "mkdir: File exists". Each job therefore gets a folder of its own. Open MPI creates it on
# the other nodes too, where it remains empty. (orte_local_tmpdir_base is no alternative: with it, MPI_Init fails on every rank.) If the
# disk of this node is full, another node may have space.
sessions=$(mktemp -d) || finish 75
export OMPI_MCA_orte_tmpdir_base="$sessions"
trap 'rm -rf "$sessions"' EXIT
