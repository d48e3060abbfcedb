#!/bin/sh
# Builds the examples that are not Rust: every folder here with a build.sh of its own.
#
#   guest-examples/languages.sh [--all] [NAME…]
#
# Without names it builds them all. Each build.sh gets its compiler itself (the one that is installed, else a pinned
# one into the cache), puts NAME.wasm next to it, and ends with 3 where no compiler is available, after saying which
# command gets one. Such an example is left out and named at the end; with --all, that ends with 1.
set -eu

cd "$(dirname "$0")"
all=
if [ "${1:-}" = --all ]; then
    all=yes
    shift
fi
if [ $# -eq 0 ]; then
    for build in */build.sh; do set -- "$@" "$(dirname "$build")"; done
fi

left_out=
for name; do
    status=0
    "./$name/build.sh" || status=$?
    case $status in
        0) printf 'built %-16s %9d bytes\n' "$name" "$(wc -c <"$name/$name.wasm")" >&2 ;;
        3) left_out="$left_out $name" ;;
        *)
            echo "error: $name does not build" >&2
            exit 1
            ;;
    esac
done
[ -n "$left_out" ] || exit 0
echo "left out, see above:$left_out" >&2
[ -z "$all" ]
