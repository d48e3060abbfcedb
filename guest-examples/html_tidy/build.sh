#!/bin/sh
# Builds html_tidy.wasm beside it, with the C compiler that requirements.txt pins, in the cache.
# Ends with 3 where the compiler or the library is not available.
set -eu

cd "$(dirname "$0")"
if ! folder=$(../packages.sh "$PWD/requirements.txt"); then
    echo "html_tidy: there is no C compiler for WASI. Get one with:  python3 -m pip install ziglang==0.16.0" >&2
    exit 3
fi
if ! make --silent library; then
    echo "html_tidy: the library's source is missing. Get it with:  npm pack node-libtidy@0.4.0" >&2
    exit 3
fi
PYTHONPATH=$folder exec make --silent
