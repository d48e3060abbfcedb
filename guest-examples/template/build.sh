#!/bin/sh
# Builds template.wasm beside it and runs the package's own tests.
#
# The Go that is installed is taken where it knows GOOS=wasip1 (1.21 or newer), else the one that requirements.txt
# pins, in the cache. Ends with 3 where neither is available.
set -eu

cd "$(dirname "$0")"

knows_wasip1() { "$1" tool dist list 2>/dev/null | grep -qx wasip1/wasm; }

go=$(command -v go || :)
if [ -z "$go" ] || ! knows_wasip1 "$go"; then
    if ! folder=$(../packages.sh "$PWD/requirements.txt"); then
        echo "template: there is no Go 1.21 or newer. Get one with:  apt-get install golang-go   (Debian 13, Ubuntu 24.04)" >&2
        exit 3
    fi
    go=$folder/go/bin/go
    chmod +x "$folder"/go/bin/* "$folder"/go/pkg/tool/*/* 2>/dev/null || :
    export GOROOT="$folder/go"
fi
# Nothing is downloaded: the program needs the standard library alone.
export GOTOOLCHAIN=local GOFLAGS=-mod=mod GOPROXY=off GOTELEMETRY=off

"$go" vet ./...
"$go" test ./... >&2
GOOS=wasip1 GOARCH=wasm "$go" build -trimpath -ldflags=-s\ -w -o template.wasm.new .
cmp -s template.wasm.new template.wasm && rm template.wasm.new || mv template.wasm.new template.wasm
