#!/usr/bin/env bash
# Builds the fuzz targets and runs each for a time, one on each processor: `run.sh [--same] SECONDS_EACH [TARGET…]`. It needs stable Rust and a
# C++ compiler, but no nightly and no cargo-fuzz: it names the compiler's own coverage pass, and libFuzzer comes with its
# crate. Inputs that reach new code are kept in target/fuzz/corpus, where the next run goes on. Inputs that fail are kept in
# target/fuzz/artifacts. With --same every run begins with only the seeds and with fixed random numbers.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
same=
if [ "${1:-}" = --same ]; then
    same=1
    shift
fi
time_each_s=${1:?how many seconds for each target?}
shift
if [ $# -gt 0 ]; then targets=("$@"); else targets=(frames lines manifest definitions documents values loads messages loaders doors recordings); fi

# Time for one input. The slowest seed takes a few milliseconds, but machines may be busy.
input_time_max_s=10
# More memory than any target needs with its whole corpus.
memory_max_mib=1024
# More than any target allocates at once. A larger allocation has its size from an input.
allocation_max_mib=512

if ! command -v "${CXX:-c++}" >/dev/null; then
    echo 'fuzz: a C++ compiler is missing; get it with: apt-get install g++' >&2
    exit 1
fi

# A separate folder, also below a caller's own, since the flags below would otherwise rebuild everything.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}/fuzz
host=$(rustc -vV | sed -n 's/^host: //p')
# With an explicit target, cargo tells build scripts and macros apart. They get no coverage.
RUSTC_WRAPPER=$here/covered.sh cargo build --quiet --release --locked --manifest-path "$here/Cargo.toml" --target "$host" "${targets[@]/#/--bin=}"

dictionary() {
    case $1 in
    frames | lines) echo mcp ;;
    definitions) echo schema ;;
    documents) echo openapi ;;
    loaders | doors) echo messages ;;
    *) echo "$1" ;;
    esac
}

# A Rust program ignores SIGPIPE from its start; libFuzzer's own `main` does not.
trap '' PIPE

# Runs one target, and keeps how it ended in a file: several run at once.
run_one() {
    local target=$1 corpus=$CARGO_TARGET_DIR/corpus/$1 artifacts=$CARGO_TARGET_DIR/artifacts/$1 start=() status=0
    if [ "$same" ]; then
        corpus=$CARGO_TARGET_DIR/same/$target
        rm -rf "$corpus"
        start=(-seed=1)
    fi
    mkdir -p "$corpus" "$artifacts"
    "$CARGO_TARGET_DIR/$host/release/$target" "$corpus" "$here/seeds/$target" ${start[@]+"${start[@]}"} \
        "-max_total_time=$time_each_s" "-timeout=$input_time_max_s" "-rss_limit_mb=$memory_max_mib" -max_len=4096 \
        "-artifact_prefix=$artifacts/" "-dict=$here/dictionaries/$(dictionary "$target").dict" "-malloc_limit_mb=$allocation_max_mib" -print_final_stats=1 \
        >"$CARGO_TARGET_DIR/$target.log" 2>&1 &
    # Whoever ends this script ends what it runs: a job in the background does not hear Ctrl-C.
    trap "kill $! 2>/dev/null" TERM
    wait $! || status=$?
    echo "$status" >"$CARGO_TARGET_DIR/$target.status"
}

# As many at once as there are processors.
at_once=$(nproc)
trap 'kill $(jobs -pr) 2>/dev/null; exit 130' INT TERM
for target in "${targets[@]}"; do
    rm -f "$CARGO_TARGET_DIR/$target.status"
    while [ "$(jobs -pr | wc -l)" -ge "$at_once" ]; do wait -n; done
    run_one "$target" &
done
wait

failed=()
for target in "${targets[@]}"; do
    log=$CARGO_TARGET_DIR/$target.log
    if [ "$(cat "$CARGO_TARGET_DIR/$target.status")" = 0 ]; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        echo "fuzz: $target: $runs inputs in $time_each_s s, nothing found"
    else
        # The input itself: whoever reads this may not have the folder.
        input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
        if [ -f "$input" ]; then
            echo "fuzz: $target: the input, in base64:"
            base64 -w 900 "$input"
        fi
        grep -a -A 2 'panicked at' "$log" || tail -n 20 "$log"
        echo "fuzz: $target failed; the input is in $CARGO_TARGET_DIR/artifacts/$target, all that was said in $log"
        failed+=("$target")
    fi
done
[ ${#failed[@]} -eq 0 ]
