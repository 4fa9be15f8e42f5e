#!/usr/bin/env bash
# Runs every check of the repository: scripts, format, lints, documentation, tests.
#
#   bash jobs/test.sh               with the mpicc and the mpirun on the PATH
#   bash jobs/test.sh --mpi mpich   the tests alone with a second MPI library, whose programs Debian names mpicc.mpich and mpirun.mpich;
#                                   they are built in a folder of their own (target/mpich)
#
# Once everything is installed, runs all checks even if one fails, prints a summary, and ends with exit code 1 if any failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mpi=
case "${1:-}" in
    "") ;;
    --mpi)
        mpi=${2:?"name an MPI library, such as mpich"}
        for program in "mpicc.$mpi" "mpirun.$mpi"; do
            command -v "$program" >/dev/null || { echo "test: there is no $program: on Debian, install $mpi and lib$mpi-dev" >&2; exit 2; }
        done
        export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/$mpi
        # Scripts instead of links: these launchers find their helpers by their own name.
        mkdir -p "$CARGO_TARGET_DIR/bin"
        for name in mpicc mpirun mpiexec; do
            program=$(command -v "$name.$mpi") || continue
            printf '#!/bin/sh\nexec "%s" "$@"\n' "$program" >"$CARGO_TARGET_DIR/bin/$name"
            chmod +x "$CARGO_TARGET_DIR/bin/$name"
        done
        CARGO_TARGET_DIR=$(cd "$CARGO_TARGET_DIR" && pwd)
        export MPICC=$CARGO_TARGET_DIR/bin/mpicc PATH=$CARGO_TARGET_DIR/bin:$PATH
        ;;
    *)
        echo "test: unknown argument $1; the first lines of this script say what it takes" >&2
        exit 2
        ;;
esac
source jobs/env.sh
# An OpenBLAS that does not know the processor takes kernels for SSE3. The program then starts itself again with this; test binaries do not.
if [ -z "${OPENBLAS_CORETYPE:-}" ] && grep -qw avx512bw /proc/cpuinfo 2>/dev/null; then
    export OPENBLAS_CORETYPE=SkylakeX
fi
# Many tests wait for launchers half of their time.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$(($(nproc) + 1))}

results=()
failed=0
check() { # check NAME COMMAND...
    local name=$1 from=$SECONDS outcome=passed
    shift
    printf '\n== %s: %s\n' "$name" "$*"
    "$@" || { outcome=FAILED && failed=1; }
    results+=("$(printf '%-14s  %s  %4d s' "$name" "$outcome" $((SECONDS - from)))")
}

scripts() {
    local script
    for script in jobs/*.sh jobs/papers/*.sh jobs/*.sbatch .ci/run; do
        bash -n "$script" || return 1
    done
    # This linter is optional.
    if command -v shellcheck >/dev/null 2>&1; then
        shellcheck --severity=warning --exclude=SC1091 jobs/*.sh jobs/papers/*.sh jobs/*.sbatch .ci/run || return 1
    fi
}

# The Python packages that tests/it/interop.rs reads result files with, installed again if their list changes.
interop() {
    if ! cmp -s tests/it/interop/requirements.txt "$venv/requirements.txt"; then
        python3 -m venv --clear "$venv" &&
            "$venv/bin/pip" install --quiet --disable-pip-version-check -r tests/it/interop/requirements.txt &&
            cp tests/it/interop/requirements.txt "$venv/"
    fi
}

printf '== set-up\n'
bash jobs/setup.sh --tests
export RUSTDOCFLAGS="${RUSTDOCFLAGS:--Dwarnings}"

mkdir -p "${CARGO_TARGET_DIR:-target}"
venv=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)/interop-venv
# Set even if the installation failed, so that the test fails instead of being skipped.
export MPIBAYES_PYTHON="$venv/bin/python"
# Installed while the lints run, because it mostly waits for downloads.
interop_log=$venv.log
interop >"$interop_log" 2>&1 &
interop_job=$!
trap 'kill "$interop_job" 2>/dev/null || true' EXIT
interop_is_installed() {
    wait "$interop_job" || { cat "$interop_log" && return 1; }
}

if [ -z "$mpi" ]; then
    check scripts scripts
    check format cargo fmt --check
    check lints cargo clippy --release --locked --all-targets -- -D warnings
    check documentation cargo doc --release --locked --no-deps
    check book bash jobs/docs.sh book
fi
check python interop_is_installed
check tests cargo test --release --locked --no-fail-fast

printf '\n== summary\n'
printf '  %s\n' "${results[@]}"
if [ "$failed" = 0 ]; then
    echo "test: all passed"
else
    echo "test: some checks failed: see the summary"
fi
exit "$failed"
