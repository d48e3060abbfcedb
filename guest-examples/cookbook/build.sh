#!/bin/sh
# Builds cookbook.wasm beside it and runs the package's own tests, where something changed. Ends with 3 where what
# requirements.txt pins are not available.
set -eu

cd "$(dirname "$0")"
[ -z "$(find . -path ./build -prune -o -type f ! -name '*.pyc' ! -name 'README.md' ! -name '*.json' ! -name '*.toml' -newer cookbook.wasm -print 2>/dev/null || echo missing)" ] && exit 0
if ! folder=$(../packages.sh "$PWD/requirements.txt"); then
    echo "cookbook: componentize-py is missing. Get it with:  python3 -m pip install componentize-py==0.25.1" >&2
    exit 3
fi
componentize=$folder/bin/componentize-py
rm -rf build
# The world, with the contract and the packages of WASI it stands on. In a repository of your own, `toolcell new` puts
# the contract beside the tool.
mkdir -p build/wit/deps/toolcell
cp wit/cookbook.wit build/wit/
cp ../../wit/*.wit build/wit/deps/toolcell/
PYTHONPATH=$folder "$componentize" --quiet -d build/wit -w cookbook bindings build/bindings
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=build/bindings:. python3 -m unittest discover -s test >build/test.log 2>&1 || {
    cat build/test.log >&2
    exit 1
}
PYTHONPATH=$folder "$componentize" --quiet -d build/wit -w cookbook componentize tool -o build/cookbook.wasm
# Renamed into place: a host that watches the file never reads half of it.
mv build/cookbook.wasm cookbook.wasm
