# What every script here sources, and your shell may: the environment that mpibayes is built and run in, with the built program on
# the PATH. Changes nothing that you have set yourself.
# shellcheck shell=bash
#
#   MPIBAYES_NATIVE=1   build for this machine's processor (target-cpu=native). Somewhat faster; the program may then not start on
#                       an older processor, and its numbers may differ in the last bits from those of a portable build.
#   MPIBAYES_DATA       a folder with data sets, into which `mpibayes data get` fetches; without it, `datasets`.

# Matrix products run on one thread each: mpibayes keeps the cores busy with agents.
export OPENBLAS_NUM_THREADS="${OPENBLAS_NUM_THREADS:-1}"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"

# The program, by its name; zsh calls this file $0.
mpibayes_checkout=$(cd "$(dirname "${BASH_SOURCE[0]:-$0}")/.." && pwd)
mpibayes_built=${CARGO_TARGET_DIR:-$mpibayes_checkout/target}/release
case ":$PATH:" in
    *":$mpibayes_built:"*) ;;
    *) export PATH="$mpibayes_built:$PATH" ;;
esac
unset mpibayes_checkout mpibayes_built

# A login shell knows where rustup puts cargo, a batch job may not.
if ! command -v cargo >/dev/null 2>&1 && [ -x "${CARGO_HOME:-$HOME/.cargo}/bin/cargo" ]; then
    export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
fi

if [ "${MPIBAYES_NATIVE:-0}" = 1 ]; then
    export RUSTFLAGS="${RUSTFLAGS:+$RUSTFLAGS }-C target-cpu=native"
fi

# Open MPI refuses to start as root, which is what one is in a container, unless it is told twice that this is meant.
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi

# It also refuses to start more ranks than cores. A scheduler hands out slots of its own; a machine without one may share its cores.
if [ -z "${SLURM_JOB_ID:-}${PBS_JOBID:-}${LSB_JOBID:-}" ]; then
    export OMPI_MCA_rmaps_base_oversubscribe="${OMPI_MCA_rmaps_base_oversubscribe:-1}" # Open MPI 4
    export PRTE_MCA_rmaps_default_mapping_policy="${PRTE_MCA_rmaps_default_mapping_policy:-:oversubscribe}" # Open MPI 5
fi
