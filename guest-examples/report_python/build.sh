#!/bin/sh
# Builds report_python.wasm beside it and runs the package's own tests, where something changed. Ends with 3 where what
# requirements.txt pins are not available.
set -eu

cd "$(dirname "$0")"
[ -z "$(find . -path ./build -prune -o -type f ! -name '*.pyc' ! -name 'README.md' ! -name "calls.json" ! -name '*.toml' -newer report_python.wasm -print 2>/dev/null || echo missing)" ] && exit 0
if ! folder=$(../packages.sh "$PWD/requirements.txt"); then
    echo "report_python: componentize-py is missing. Get it with:  python3 -m pip install componentize-py==0.25.1" >&2
    exit 3
fi
componentize=$folder/bin/componentize-py
rm -rf build
# The world, with the contract and the packages of WASI it stands on. In a repository of your own, `toolcell new` puts
# the contract beside the tool.
mkdir -p build/wit/deps/toolcell
cp wit/report.wit build/wit/
cp ../../wit/*.wit build/wit/deps/toolcell/
PYTHONPATH=$folder "$componentize" --quiet -d build/wit -w report bindings build/bindings
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=build/bindings:. python3 -m unittest discover -s test >build/test.log 2>&1 || {
    cat build/test.log >&2
    exit 1
}
PYTHONPATH=$folder "$componentize" --quiet -d build/wit -w report componentize tool -o build/report_python.wasm
# Renamed into place: a host that watches the file never reads half of it.
mv build/report_python.wasm report_python.wasm
