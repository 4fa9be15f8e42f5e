# The environment to build and run mpibayes, with the program on the PATH. All scripts here source it; source it in your shell too.
# It does not change variables that are already set. It works in a checkout and in an installation.
# shellcheck shell=bash
#
#   MPIBAYES_NATIVE=1   build for this machine's processor (target-cpu=native). Somewhat faster, but the program may not start on
#                       an older processor, and its results may differ in the last bits from those of a portable build.
#   MPIBAYES_DATA       the folder into which `mpibayes data get` downloads data sets [default: datasets].

# Matrix products use one thread each, because agents already use all cores.
export OPENBLAS_NUM_THREADS="${OPENBLAS_NUM_THREADS:-1}"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"

# Puts the program on the PATH, before any other mpibayes. In zsh, the path of this file is $0.
mpibayes_home=$(cd "$(dirname "${BASH_SOURCE[0]:-$0}")/.." && pwd)
if [ -e "$mpibayes_home/Cargo.toml" ]; then
    mpibayes_bin=${CARGO_TARGET_DIR:-$mpibayes_home/target}/release
else
    # Installed, this file is PREFIX/share/mpibayes/jobs/env.sh.
    mpibayes_bin=${mpibayes_home%/*/*}/bin
fi
case "$PATH:" in
    "$mpibayes_bin:"*) ;;
    *) export PATH="$mpibayes_bin:$PATH" ;;
esac
unset mpibayes_home mpibayes_bin

# A batch job may lack the PATH entry that rustup adds for login shells.
if ! command -v cargo >/dev/null 2>&1 && [ -x "${CARGO_HOME:-$HOME/.cargo}/bin/cargo" ]; then
    export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
fi

if [ "${MPIBAYES_NATIVE:-0}" = 1 ]; then
    export RUSTFLAGS="${RUSTFLAGS:+$RUSTFLAGS }-C target-cpu=native"
fi

# Open MPI starts as root, the usual user in a container, only if both variables are set.
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi

# Open MPI also refuses to start more ranks than cores. Without a scheduler, which assigns slots itself, ranks may share cores.
if [ -z "${SLURM_JOB_ID:-}${PBS_JOBID:-}${LSB_JOBID:-}" ]; then
    export OMPI_MCA_rmaps_base_oversubscribe="${OMPI_MCA_rmaps_base_oversubscribe:-1}" # Open MPI 4
    export PRTE_MCA_rmaps_default_mapping_policy="${PRTE_MCA_rmaps_default_mapping_policy:-:oversubscribe}" # Open MPI 5
fi
