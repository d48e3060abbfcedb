#!/bin/sh
# Builds the peers' tools for the benchmark, into components/ beside this script.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}/peers
cd "$here"
mkdir -p components

# The examples' toolchain has both targets if it is Debian's. Another toolchain may have only its own target.
build() {
    [ -d "$(rustc --print target-libdir --target "$2" 2>/dev/null)" ] || export TOOLCELL_GUEST_TOOLCHAIN=debian
    CARGO_TARGET_DIR=$target "$root/guest-examples/toolchain.sh" cargo build --quiet --locked --release --target "$2" -p "peer-$1-echo"
    cp "$target/$2/release/peer_$(echo "$1" | tr - _)_echo.wasm" "components/$(echo "$1" | tr - _).wasm"
}
# ACT's own WIT is not part of this repository; README.md says where it comes from.
if [ -d act/wit ]; then build act wasm32-wasip2; else echo 'act/wit is missing, so the tool for ACT is not built' >&2; fi
build wassette wasm32-wasip2
build hyper-mcp wasm32-unknown-unknown
