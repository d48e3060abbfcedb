#!/usr/bin/env bash
# Runs parts of the tests while four endless loops take the processors, and remembers which rounds are done.
#
#   tests/stress.sh [PART] [--rounds N]
#
# PART is one of those below; all without one. Each takes less than an hour on two cores, beside the loops.
#
#   e2e-1 … e2e-4   a quarter of the end-to-end tests each, by their modules; `e2e` is all four
#   balanced        the tests of `make test-balanced`
#   drill           the attacks of `make drill`
#   console         the conversation of `make console-check`
#
# Builds what they need first, without the loops. A round that passed on this commit is not run again: the same command
# goes on where it was interrupted. Logs and results are in target/stress/COMMIT. Ends with 1 where a round failed.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    sed -n '2,15s/^# \{0,1\}//p' tests/stress.sh >&2
    exit 2
}

parts=()
rounds=3
while [ $# -gt 0 ]; do
    case $1 in
    --rounds)
        [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || usage
        rounds=$2
        shift
        ;;
    e2e) parts+=(e2e-1 e2e-2 e2e-3 e2e-4) ;;
    e2e-[1-4] | balanced | drill | console) parts+=("$1") ;;
    *) usage ;;
    esac
    shift
done
[ ${#parts[@]} -gt 0 ] || parts=(e2e-1 e2e-2 e2e-3 e2e-4 balanced drill console)

target=$(realpath -m -- "${CARGO_TARGET_DIR:-target}")
# Changes that are not committed have rounds of their own.
state=$(git rev-parse --short HEAD)
changes=$(git diff HEAD | sha256sum | cut -c1-8)
[ -z "$(git status --porcelain)" ] || state=$state-$changes
kept=$target/stress/$state
mkdir -p "$kept"

loops=()
end_loops() {
    [ ${#loops[@]} -eq 0 ] || {
        kill "${loops[@]}" || :
        wait "${loops[@]}" || :
    } 2>/dev/null
    loops=()
}
trap end_loops EXIT
trap 'exit 130' INT TERM HUP

begin_loops() {
    for _ in 1 2 3 4; do
        (while :; do :; done) &
        loops+=($!)
    done
}

# The modules of the end-to-end tests, dealt out in turns to four quarters: prints those of the quarter $1.
modules() {
    sed -n 's/^mod \([a-z_]*\);$/\1/p' tests/e2e/main.rs | awk -v quarter="$1" 'NR % 4 == quarter % 4 { print $0 "::" }'
}

run() {
    local filters
    case $1 in
    e2e-*)
        mapfile -t filters < <(modules "${1#e2e-}")
        make test-e2e ARGS="${filters[*]}"
        ;;
    balanced) make test-balanced ;;
    drill) make drill ;;
    console) make console-check ;;
    esac
}

make build guests-all fixtures clients >"$kept/build.log" 2>&1 || {
    tail -n 40 "$kept/build.log" >&2
    exit 1
}

for part in "${parts[@]}"; do
    for ((round = 1; round <= rounds; round++)); do
        note=$kept/$part.$round
        if [ "$(cut -d ' ' -f 1 "$note" 2>/dev/null)" = passed ]; then continue; fi
        printf 'stress: %s, round %d of %d\n' "$part" "$round" "$rounds" >&2
        started=$SECONDS
        begin_loops
        if run "$part" >"$note.log" 2>&1; then result=passed; else result=failed; fi
        end_loops
        echo "$result $((SECONDS - started))" >"$note"
    done
done

status=0
printf '%-10s %5s  %-6s %7s\n' part round result seconds
for part in "${parts[@]}"; do
    for ((round = 1; round <= rounds; round++)); do
        read -r result seconds <"$kept/$part.$round"
        printf '%-10s %5d  %-6s %7d\n' "$part" "$round" "$result" "$seconds"
        if [ "$result" != passed ]; then
            status=1
            echo "           see $kept/$part.$round.log"
        fi
    done
done
exit $status
