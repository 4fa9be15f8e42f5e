#!/usr/bin/env bash
# Installs what is missing to build and run mpibayes. Prints nothing if nothing is missing.
#
#   bash jobs/setup.sh                   prerequisites of building and running
#   bash jobs/setup.sh --tests           also those of the tests: the tools of HDF5 and netCDF, and Python with venv
#   bash jobs/setup.sh --fashion-mnist   also the data set of the quickstart (a Debian package, 30 MB)
#   bash jobs/setup.sh --check           install nothing, only print what is missing
#
# On Debian and Ubuntu, as root or with sudo, missing packages are installed with apt-get. Elsewhere the script prints what to load
# or install, and ends with exit code 1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source jobs/env.sh

fashion=no
tests=no
install=yes
for argument in "$@"; do
    case "$argument" in
        --fashion-mnist) fashion=yes ;;
        --tests) tests=yes ;;
        --check) install=no ;;
        -h | --help)
            awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "${BASH_SOURCE[0]}"
            exit 0
            ;;
        *)
            echo "setup: unknown argument $argument; see --help" >&2
            exit 2
            ;;
    esac
done

say() { printf 'setup: %s\n' "$*" >&2; }
has() { command -v "$1" >/dev/null 2>&1; }

# Looks for programs and libraries instead of packages, because clusters provide them as modules.
packages=()
wanted=()
need() { # need PACKAGE[,PACKAGE] DESCRIPTION
    local package
    for package in ${1//,/ }; do packages+=("$package"); done
    wanted+=("$2")
}

# Whether a program links against a library and, unless HEADER is empty, compiles with its header.
links() { # links HEADER LIBRARY [FLAG...]
    local header=$1 library=$2
    shift 2
    echo "${header:+#include <$header>}
int main(void) { return 0; }" | cc -x c - -o /dev/null "$@" "-l$library" >/dev/null 2>&1
}

look() {
    packages=()
    wanted=()
    has cc || need gcc "a C compiler (cc)"
    has pkg-config || need pkg-config "pkg-config"
    has mpirun || need openmpi-bin "MPI's launcher mpirun, for the quickstart and the tests (with srun alone: cargo build --release)"
    has mpicc && mpicc --version >/dev/null 2>&1 || need libopenmpi-dev "MPI's compiler wrapper and headers (mpicc)"
    if has cc; then
        local hdf5=() openblas=()
        if [ -n "${HDF5_DIR:-}" ]; then
            hdf5=("-I$HDF5_DIR/include" "-L$HDF5_DIR/lib")
        elif has pkg-config && pkg-config --exists hdf5; then
            read -r -a hdf5 <<<"$(pkg-config --cflags --libs-only-L hdf5)"
        elif has pkg-config && pkg-config --exists hdf5-serial; then
            read -r -a hdf5 <<<"$(pkg-config --cflags --libs-only-L hdf5-serial)"
        fi
        if has pkg-config && pkg-config --exists openblas; then
            read -r -a openblas <<<"$(pkg-config --libs-only-L openblas)"
        fi
        links hdf5.h hdf5 ${hdf5[@]+"${hdf5[@]}"} || need libhdf5-dev "the HDF5 library and headers (1.10 or newer; HDF5_DIR names its folder)"
        links "" openblas ${openblas[@]+"${openblas[@]}"} || need libopenblas-dev "the OpenBLAS library"
    else
        need libhdf5-dev,libopenblas-dev "the HDF5 and OpenBLAS libraries with headers"
    fi
    finds_libclang || need libclang-dev "libclang with clang's headers, to parse the headers of MPI (LIBCLANG_PATH names its folder)"
    if [ "$tests" = yes ]; then
        has h5dump || need hdf5-tools "the HDF5 tools (h5dump), for the tests"
        has ncdump || need netcdf-bin "the netCDF tools (ncdump), for the tests"
        python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 ||
            need python3-venv "Python 3.11 or newer with venv (python3), for the tests"
    fi
    if [ "$fashion" = yes ] && [ ! -e /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz ]; then
        need dataset-fashion-mnist "the data set Fashion-MNIST"
    fi
}

# Looks for libclang where the build does, and for clang's own headers, a separate package on Debian: without them it cannot parse C.
finds_libclang() {
    local place found library=no
    local places=(${LIBCLANG_PATH:+"$LIBCLANG_PATH"} /usr/lib/llvm-*/lib /usr/lib/*-linux-gnu
        /usr/lib64/llvm*/lib* /usr/lib64 /usr/lib /usr/local/lib /usr/local/opt/llvm*/lib
        /Library/Developer/CommandLineTools/usr/lib /Applications/Xcode.app/Contents/Developer/Toolchains/XcodeDefault.xctoolchain/usr/lib)
    if has llvm-config; then places+=("$(llvm-config --libdir)"); fi
    for place in "${places[@]}"; do
        for found in "$place"/libclang.so* "$place"/libclang-[0-9]*.so* "$place"/libclang.dylib; do
            [ -e "$found" ] && library=yes
        done
    done
    [ "$library" = yes ] || return 1
    for place in "${places[@]}"; do
        for found in "$place"/clang/*/include/stddef.h; do
            [ -e "$found" ] && return 0
        done
    done
    has clang && [ -e "$(clang -print-resource-dir)/include/stddef.h" ]
}

look
if [ "${#packages[@]}" -gt 0 ] && [ "$install" = yes ] && has apt-get; then
    as_root=()
    if [ "$(id -u)" != 0 ]; then
        if has sudo && sudo -n true 2>/dev/null; then as_root=(sudo -n); else as_root=(no); fi
    fi
    if [ "${as_root[0]:-}" != no ]; then
        say "installing ${packages[*]}"
        log=$(mktemp)
        trap 'rm -f "$log"' EXIT
        if ! { ${as_root[@]+"${as_root[@]}"} apt-get update -q &&
            ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive \
                apt-get install -q -y --no-install-recommends "${packages[@]}"; } >"$log" 2>&1; then
            tail -n 20 "$log" >&2
            say "apt-get failed: see its output above"
        fi
        look
    fi
fi

failed=no
if [ "${#packages[@]}" -gt 0 ]; then
    failed=yes
    say "missing:"
    printf '  - %s\n' "${wanted[@]}" >&2
    if has apt-get; then
        say "install them with"
        printf '  sudo apt-get install %s\n' "${packages[*]}" >&2
    fi
    if type module >/dev/null 2>&1 || [ -n "${MODULESHOME:-}${LMOD_CMD:-}" ]; then
        say "or load your cluster's modules; their names vary, and this lists them:"
        printf '  module avail openmpi hdf5 openblas llvm\n' >&2
        say "load MPI and HDF5 that were built with the loaded compiler, and load the same modules in batch jobs"
    elif ! has apt-get; then
        say "install them with your system's package manager, for instance"
        printf '  Fedora, RHEL:  dnf install gcc pkgconf openmpi-devel hdf5-devel hdf5 netcdf openblas-devel clang-devel\n' >&2
        printf '  Arch:          pacman -S gcc pkgconf openmpi hdf5 netcdf openblas clang\n' >&2
        printf '  macOS:         brew install pkgconf open-mpi hdf5 netcdf openblas llvm\n' >&2
    fi
fi

oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if ! has cargo; then
    failed=yes
    say "missing: cargo, Rust's build tool, $oldest or newer; install it, without root:"
    printf "  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y\n  . \"\$HOME/.cargo/env\"\n" >&2
else
    version=$(rustc --version | sed 's/^rustc \([0-9.]*\).*/\1/')
    if [ "$(printf '%s\n%s\n' "$oldest" "$version" | sort -V | head -n 1)" != "$oldest" ]; then
        failed=yes
        say "Rust $version is too old: $oldest or newer is needed (rustup update stable)"
    fi
fi
[ "$failed" = no ]
