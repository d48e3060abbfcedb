#!/usr/bin/env bash
# Stands before rustc and asks for coverage where inputs are read: our crates, and those that parse for them. The others, an
# engine's runtime among them, are only in the way of a fuzzer, and take several times as long to build with it.
# Cargo does not know of these flags: after a change here, remove target/fuzz.
set -euo pipefail
rustc=$1
shift
name='' target=''
for ((at = 1; at < $#; at++)); do
    next=$((at + 1))
    case ${!at} in
    --crate-name) name=${!next} ;;
    --target) target=${!next} ;;
    esac
done
case $target:$name in
:*) ;;
*:toolcell_* | *:frames | *:lines | *:manifest | *:definitions | *:values | *:loads | *:wasmparser | \
    *:serde_json | *:jsonschema | *:fancy_regex | *:toml | *:toml_parser | *:winnow | *:base64 | *:url | *:itoa | *:zmij)
    set -- "$@" -Cpasses=sancov-module
    for coverage in level=4 inline-8bit-counters pc-table trace-compares; do
        set -- "$@" "-Cllvm-args=-sanitizer-coverage-$coverage"
    done
    ;;
esac
exec "$rustc" "$@"
