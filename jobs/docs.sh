#!/usr/bin/env bash
# Builds the documentation: the book into target/book, the documentation of the library into target/doc.
#
#   bash jobs/docs.sh           # both
#   bash jobs/docs.sh book      # the book alone
#
# Installs mdbook into target/tools if it is not on the PATH. Ends with an error at the first warning.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source jobs/env.sh

target=${CARGO_TARGET_DIR:-target}
what=${1:-all}
case $what in
    all | book) ;;
    *) echo "docs: give nothing, or book" >&2 && exit 2 ;;
esac

export PATH="$PWD/$target/tools/bin:$PATH"
if ! command -v mdbook >/dev/null 2>&1; then
    echo "docs: installing mdbook into $target/tools"
    # Without optimization, which takes longer than the book.
    cargo install --debug mdbook --version 0.5.4 --locked --no-default-features --features search --root "$target/tools" --quiet
fi
messages=$(mdbook build docs 2>&1)
printf '%s\n' "$messages"
if grep -qiE 'warn|error' <<<"$messages"; then
    echo "docs: the book has warnings" >&2
    exit 1
fi
echo "docs: the book is in $target/book"
if [ "$what" = all ]; then
    RUSTDOCFLAGS="${RUSTDOCFLAGS:--Dwarnings}" cargo doc --release --locked --no-deps
fi
