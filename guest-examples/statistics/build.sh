#!/bin/sh
# Builds statistics.wasm beside it and runs the package's own tests, where something changed. Ends with 3 where what
# requirements.txt pins are not available.
set -eu

cd "$(dirname "$0")"
[ -z "$(find . -path ./build -prune -o -type f ! -name '*.pyc' ! -name '*.md' ! -name '*.json' ! -name '*.toml' -newer statistics.wasm -print 2>/dev/null || echo missing)" ] && exit 0
if ! folder=$(../packages.sh "$PWD/requirements.txt"); then
    echo "statistics: componentize-py is missing. Get it with:  python3 -m pip install componentize-py==0.25.1" >&2
    exit 3
fi
componentize=$folder/bin/componentize-py
mkdir -p build
rm -rf build/bindings
PYTHONPATH=$folder "$componentize" --quiet -d wit -w statistics bindings build/bindings
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=build/bindings:. python3 -m unittest discover -s test >build/test.log 2>&1 || {
    cat build/test.log >&2
    exit 1
}
PYTHONPATH=$folder "$componentize" --quiet -d wit -w statistics componentize tool -o build/statistics.wasm
# Renamed into place: a host that watches the file never reads half of it.
mv build/statistics.wasm statistics.wasm
