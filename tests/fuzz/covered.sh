#!/usr/bin/env bash
# Wraps rustc and adds coverage to the crates that read inputs: our own, and those that parse for them. Coverage of the
# others, such as an engine's runtime, does not help a fuzzer and makes the build several times as long.
# Cargo does not see these flags: after a change here, remove target/fuzz.
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
*:toolcell_* | *:frames | *:lines | *:manifest | *:definitions | *:values | *:loads | *:messages | \
    *:loaders | *:doors | *:recordings | *:wasmparser | \
    *:serde_json | *:jsonschema | *:fancy_regex | *:toml | *:toml_parser | *:winnow | *:base64 | *:url | *:itoa | *:zmij)
    set -- "$@" -Cpasses=sancov-module
    for coverage in level=4 inline-8bit-counters pc-table trace-compares; do
        set -- "$@" "-Cllvm-args=-sanitizer-coverage-$coverage"
    done
    ;;
esac
exec "$rustc" "$@"
