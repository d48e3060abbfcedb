#!/bin/sh
# Builds markdown.wasm beside it and runs the package's own tests, where something changed. Ends with 3 where there is
# no Node or the packages of package-lock.json cannot be had.
#
# The packages (200 MB, most of it the engine and what packs it) are installed into the cache, once for each
# package-lock.json. By hand it is `npm ci && npm run build`.
set -eu

cd "$(dirname "$0")"
mkdir -p build

if ! command -v npm >/dev/null; then
    echo "markdown: there is no Node 20 or newer with npm. Get it with:  apt-get install nodejs npm" >&2
    exit 3
fi
if [ ! -d node_modules ]; then
    cache=${TOOLCELL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/toolcell}/packages
    digest=$({ sha256sum package-lock.json 2>/dev/null || shasum -a 256 package-lock.json; } | cut -c1-12)
    folder=$cache/markdown-$digest
    if [ ! -d "$folder" ]; then
        echo "markdown: installing what it is built with into $folder (once)" >&2
        mkdir -p "$cache"
        unfinished=$(mktemp -d "$folder.XXXXXX")
        trap 'rm -rf "$unfinished"' EXIT
        trap 'exit 130' INT TERM HUP
        cp package.json package-lock.json .npmrc "$unfinished"
        (cd "$unfinished" && npm ci --ignore-scripts --loglevel=error) >&2 || exit 3
        mv -T "$unfinished" "$folder" 2>/dev/null || :
    fi
    ln -s "$folder/node_modules" node_modules
fi
[ -z "$(find src test wit build.mjs package.json package-lock.json -newer markdown.wasm 2>/dev/null || echo missing)" ] && exit 0
npm test --silent >build/test.log 2>&1 || {
    cat build/test.log >&2
    exit 1
}
exec npm run build --silent
