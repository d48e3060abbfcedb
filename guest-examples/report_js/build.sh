#!/bin/sh
# Builds report_js.wasm beside it and runs the package's own tests, where something changed. Ends with 3 where there is
# no Node, or the packages of package-lock.json are not available.
#
# The packages (the engine and what packs it) are installed into the cache, once for each
# package-lock.json. By hand it is `npm ci && npm run build`.
set -eu

cd "$(dirname "$0")"
mkdir -p build

if [ ! -d node_modules ]; then
    if ! folder=$(../packages.sh "$PWD/package-lock.json"); then
        echo "report_js: what package-lock.json pins is missing. Get it with:  npm ci" >&2
        exit 3
    fi
    # Another build may have been faster: a link to it, never one inside it.
    ln -sn "$folder/node_modules" node_modules 2>/dev/null || [ -d node_modules ]
fi
[ -z "$(find src schemas test wit build.mjs package.json package-lock.json -newer report_js.wasm 2>/dev/null || echo missing)" ] && exit 0
npm test --silent >build/test.log 2>&1 || {
    cat build/test.log >&2
    exit 1
}
exec npm run build --silent
