#!/bin/sh
# Moves names and line tables of a built binary into BINARY.debug beside it. Backtraces find them there by themselves.
#
#   host/cli/split-symbols.sh target/release/toolcell
#
# The binary is a third as large without. Nothing happens where that was done already, or where no objcopy is there:
# neither that of binutils, nor the one that comes with Rust.
set -eu

binary=$1
symbols=$binary.debug
if [ "$symbols" -nt "$binary" ]; then exit 0; fi

sysroot=$(rustc --print sysroot 2>/dev/null || :)
host=$(rustc -vV 2>/dev/null | sed -n 's/^host: //p')
own=$sysroot/lib/rustlib/$host/bin/rust-objcopy
copy() {
    if command -v objcopy >/dev/null 2>&1; then
        objcopy "$@"
    else
        LD_LIBRARY_PATH=$sysroot/lib "$own" "$@"
    fi
}
if ! copy --version >/dev/null 2>&1; then
    echo "note: $binary keeps its symbols, as there is no objcopy" >&2
    exit 0
fi

stripped=$binary.stripped
trap 'rm -f "$stripped"' EXIT
copy --only-keep-debug "$binary" "$symbols"
copy --strip-all --add-gnu-debuglink="$symbols" "$binary" "$stripped"
# Written into the file that is there: cargo has a second name for it, and puts that back where they differ.
cat "$stripped" >"$binary"
touch "$symbols"
