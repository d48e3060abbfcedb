#!/bin/sh
# Builds every example and puts the components into guest-examples/components/NAME.wasm. A component that did not
# change is left untouched, so that a running host does not reload it.
#
#   guest-examples/build.sh [more arguments for cargo build]
#
# `-p mail` builds that one, which takes as long as all the others together and is left out otherwise. By itself: in
# one build with it, the others would have their crates with other features, and be other components.
#
# Environment: CARGO_TARGET_DIR (default: target/guests of this repository), and that of toolchain.sh.
set -eu

examples=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$examples/../target/guests}
case $target in /*) ;; *) target=$PWD/$target ;; esac
cd "$examples"

CARGO_TARGET_DIR=$target ./toolchain.sh cargo build --locked --release --target wasm32-wasip2 "$@"

mkdir -p components
for manifest in */Cargo.toml; do
    grep -q '"cdylib"' "$manifest" || continue
    name=$(dirname "$manifest")
    built=$target/wasm32-wasip2/release/$name.wasm
    placed=components/$name.wasm
    [ -e "$built" ] || continue # `mail` is built where it is asked for
    cmp -s "$built" "$placed" && continue
    # Renamed into place: a host that watches the file never reads half of it.
    cp "$built" "$placed.new"
    mv "$placed.new" "$placed"
    printf 'built %-12s %7d bytes\n' "$name" "$(wc -c <"$placed")" >&2
done
