#!/bin/sh
# Builds the binary for `make dev-test`: our own crates with few optimisations and incrementally, all others as in the release.
# It goes to FOLDER/dev-test/toolcell, and the release's own binary stays where it is.
#
#   .ci/dev-build.sh FOLDER
set -eu
target=$1
mkdir -p "$target/dev-test" "$target/release"
binary=$target/release/toolcell
[ ! -e "$binary" ] || mv "$binary" "$target/dev-test/release"
trap '[ ! -e "$target/dev-test/release" ] || mv "$target/dev-test/release" "$binary"' EXIT
CARGO_INCREMENTAL=1 ${CARGO:-cargo} --config .ci/quick.toml build --release --locked -p toolcell
# A file of its own: cargo's is a link to what it builds the next time.
cp "$binary" "$target/dev-test/new"
mv "$target/dev-test/new" "$target/dev-test/toolcell"
# The engine of scripts is looked for beside the binary.
ln -sf ../release/toolcell-code.wasm "$target/dev-test/toolcell-code.wasm"
rm "$binary"
