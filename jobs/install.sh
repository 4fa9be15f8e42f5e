#!/usr/bin/env bash
# Builds mpibayes and installs it for all users of a machine or cluster, with a modulefile and batch scripts that need no checkout.
#
#   bash jobs/install.sh --prefix DIR               build, and install into DIR
#   bash jobs/install.sh --prefix DIR --no-build    install what is built
#   bash jobs/install.sh --prefix DIR --uninstall   remove what was installed into DIR
#
#   --modules "A B"   modules that mpibayes needs, such as MPI and HDF5: the modulefile loads them
#
# The folders in DIR, which must be at the same path on all nodes:
#
#   bin                                  mpibayes, and mpibayes-submit, which submits the batch scripts
#   share/mpibayes/jobs                  the batch scripts for Slurm, and env.sh for shells without modules
#   share/modulefiles/mpibayes/VERSION   the modulefile, for Environment Modules and Lmod
#   share/man/man1                       the manual pages
#   share/bash-completion/completions, share/zsh/site-functions, share/fish/vendor_completions.d
#   share/doc/mpibayes                   licenses, citation, and the book if it is built
#
# An installation over an older one removes the files that are no longer needed. Files are replaced by renaming, so that running programs
# keep theirs. On NFS only those on the same node do: install each version into a folder of its own there.
set -euo pipefail

fail() { # fail CODE MESSAGE
    printf 'install: %s\n' "$2" >&2
    exit "$1"
}

prefix=
modules=
action=build
while [ $# -gt 0 ]; do
    case "$1" in
        --prefix | --modules)
            [ $# -gt 1 ] || fail 2 "$1 needs a value; see --help"
            declare "${1#--}=$2"
            shift
            ;;
        --no-build) action=install ;;
        --uninstall) action=uninstall ;;
        -h | --help)
            awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "${BASH_SOURCE[0]}"
            exit 0
            ;;
        *) fail 2 "unknown argument $1; see --help" ;;
    esac
    shift
done
[ -n "$prefix" ] || fail 2 "--prefix DIR is missing; see --help"
# These characters would need quoting in a modulefile, in bash or in the PATH.
[[ ! $prefix$modules =~ [^[:alnum:]/._+@,=%\ -] && $prefix != *\ * ]] ||
    fail 2 "'${prefix}${modules:+ $modules}' has a blank or special character: prefix and modules may have letters, digits and / . _ + @ , = % -"
case "$prefix" in /*) ;; *) prefix=$PWD/$prefix ;; esac
manifest=share/mpibayes/manifest

# Removes files of the prefix, and the folders that become empty.
remove() { # remove PATH...
    local file
    for file in "$@"; do
        rm -f "$prefix/$file"
        if [ -d "$prefix/${file%/*}" ]; then
            (cd "$prefix" && rmdir -p --ignore-fail-on-non-empty "${file%/*}")
        fi
    done
}

if [ "$action" = uninstall ]; then
    [ -e "$prefix/$manifest" ] || fail 1 "nothing is installed in $prefix: there is no $manifest"
    mapfile -t installed <"$prefix/$manifest"
    remove "${installed[@]}"
    echo "install: mpibayes was removed from $prefix"
    exit 0
fi

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source jobs/env.sh
[ "$action" = install ] || cargo build --release --locked
target=${CARGO_TARGET_DIR:-target}
program=$target/release/mpibayes
[ -x "$program" ] || fail 1 "nothing is built: there is no $program; leave out --no-build"
version=$("$program" --version) || fail 1 "$program does not start: load the modules of the build"
version=${version##* }

# All files are for all users. The new tree is complete before the first file is moved from there, within one file system.
umask 022
mkdir -p "$prefix" 2>/dev/null || fail 1 "cannot create the folder $prefix"
prefix=$(cd "$prefix" && pwd)
work=$(mktemp -d "$prefix/.mpibayes-XXXXXX" 2>/dev/null) || fail 1 "cannot write into the folder $prefix"
trap 'rm -rf "$work"' EXIT
new=$work/new

put() { # put MODE FOLDER FILE...
    local mode=$1 folder=$2
    shift 2
    mkdir -p "$new/$folder"
    install -m "$mode" -t "$new/$folder" "$@"
}
put 755 bin "$program"
put 644 share/doc/mpibayes LICENSE-MIT LICENSE-APACHE CITATION.cff
# A font is part of the program.
install -m 644 src/plots/font/LICENSE "$new/share/doc/mpibayes/LICENSE-font"
if [ -e "$target/book/index.html" ]; then
    cp -R "$target/book" "$new/share/doc/mpibayes/book"
    chmod -R u=rwX,go=rX "$new/share/doc/mpibayes/book"
fi
mkdir -p "$new"/share/{man/man1,bash-completion/completions,zsh/site-functions,fish/vendor_completions.d}
"$program" man --output "$new/share/man/man1"
"$program" completions bash >"$new/share/bash-completion/completions/mpibayes"
"$program" completions zsh >"$new/share/zsh/site-functions/_mpibayes"
"$program" completions fish >"$new/share/fish/vendor_completions.d/mpibayes.fish"

# In these copies, paths lead to the installation instead of a checkout.
home=$prefix/share/mpibayes
put 644 share/mpibayes/jobs jobs/{run,sweep,scaling}.sbatch jobs/{submit,slurm,env}.sh jobs/scaling.toml
sed -i -E -e "s#\\$\{MPIBAYES_HOME:-\.\}#\${MPIBAYES_HOME:-$home}#" \
    -e "s#submit from the checkout, or set MPIBAYES_HOME to it#unset MPIBAYES_HOME, or set it to $home#" \
    -e 's/^# In a checkout, submit it from there or set MPIBAYES_HOME to it\./# Submit it from your own folder./' \
    -e 's#bash jobs/submit\.sh#mpibayes-submit#' \
    -e "/^#   |(lists|describes) /s#\bjobs/(run|sweep|scaling|slurm)\.#$home/jobs/\1.#g" "$new"/share/mpibayes/jobs/*
cat >"$new/bin/mpibayes-submit" <<END
#!/usr/bin/env bash
# Submits a batch script of mpibayes to Slurm. Without arguments, it prints its help.
exec bash $home/jobs/submit.sh "\$@"
END
chmod 755 "$new/bin/mpibayes-submit"

mkdir -p "$new/share/modulefiles/mpibayes"
{
    cat <<END
#%Module1.0
# The environment to run mpibayes $version, for Environment Modules and Lmod. Link or copy this file into any folder of modulefiles.
proc ModulesHelp { } {
    puts stderr "mpibayes $version: Bayesian inference on data that is spread over a cluster."
    puts stderr ""
    puts stderr "  mpirun -n 8 mpibayes run my.toml                  start a run in an allocation"
    puts stderr "  CONFIG=my.toml RANKS=8 mpibayes-submit run        submit it to Slurm"
    puts stderr "  sbatch --ntasks=8 --export=ALL,CONFIG=my.toml \\\$MPIBAYES_HOME/jobs/run.sbatch"
    puts stderr "  man mpibayes, man mpibayes-run, ...               the manual pages"
    puts stderr ""
    puts stderr "OpenBLAS and OpenMP use one thread while this module is loaded, because mpibayes uses all cores itself."
}
module-whatis "Bayesian inference on data that is spread over a cluster (version $version)"
conflict mpibayes
END
    for module in $modules; do
        printf 'if { ![is-loaded %s] } {\n    module load %s\n}\n' "$module" "$module"
    done
    cat <<END
prepend-path PATH $prefix/bin
prepend-path MANPATH $prefix/share/man
# The empty entry stands for the manual pages of the system.
append-path MANPATH ""
# bash and fish look for completions there. A value replaces the default of this variable, so that is appended too.
if { ![info exists ::env(XDG_DATA_DIRS)] } {
    append-path XDG_DATA_DIRS /usr/local/share:/usr/share
}
append-path XDG_DATA_DIRS $prefix/share
setenv MPIBAYES_HOME $home
setenv OPENBLAS_NUM_THREADS 1
setenv OMP_NUM_THREADS 1
END
} >"$new/share/modulefiles/mpibayes/$version"

folders=$(cd "$new" && find . -mindepth 1 -type d -printf '%P\n')
for folder in $folders; do
    if ! mkdir -p "$prefix/$folder" 2>/dev/null || [ ! -w "$prefix/$folder" ]; then
        fail 1 "cannot write into the folder $prefix/$folder"
    fi
done
(cd "$new" && find . -type f -printf '%P\n' && echo "$manifest") | LC_ALL=C sort >"$work/files"
mapfile -t files <"$work/files"
stale=()
if [ -e "$prefix/$manifest" ]; then
    mapfile -t stale < <(LC_ALL=C comm -13 "$work/files" "$prefix/$manifest")
fi
# Until all files are moved, the manifest lists those of both installations: if this script is stopped, the next call can remove them.
printf '%s\n' "${files[@]}" ${stale[@]+"${stale[@]}"} | LC_ALL=C sort >"$work/all"
mv -fT "$work/all" "$prefix/$manifest"
for file in "${files[@]}"; do
    # An unchanged file stays, also for the programs that have opened it.
    if [ "$file" != "$manifest" ] && { ! cmp -s "$new/$file" "$prefix/$file" ||
        [ "$(stat -c %a "$new/$file")" != "$(stat -c %a "$prefix/$file")" ]; }; then
        mv -fT "$new/$file" "$prefix/$file"
    fi
done
remove ${stale[@]+"${stale[@]}"}
mv -fT "$work/files" "$prefix/$manifest"

echo "install: mpibayes $version is in $prefix"
echo "install: for users with modules: module use $prefix/share/modulefiles && module load mpibayes"
echo "install: for others: put $prefix/bin on the PATH"
if [ -z "$modules" ] && [ -n "${LOADEDMODULES:-}" ]; then
    echo "install: these modules are loaded: ${LOADEDMODULES//:/ }; name those that mpibayes needs with --modules"
fi
folder=$prefix
while [ -n "$folder" ]; do
    case $(stat -L -c %A "$folder") in
        *[xt]) ;;
        *) echo "install: not all users can enter $folder: permit it with chmod o+x $folder" ;;
    esac
    folder=${folder%/*}
done
