#!/bin/sh
# Prints a folder with the packages of a list, and installs them there where it does not exist: compilers come as such
# packages. Nothing is installed anywhere else. The list is a requirements.txt of Python, or a package-lock.json of Node
# with its package.json and .npmrc beside it.
#
#   folder=$(guest-examples/packages.sh guest-examples/NAME/requirements.txt)
#   PYTHONPATH=$folder python3 -m MODULE
#
#   folder=$(guest-examples/packages.sh guest-examples/NAME/package-lock.json)
#   ln -s "$folder/node_modules" .
#
# The list pins every package by version and digest. The folder is in
# ${TOOLCELL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/toolcell}, and its name carries the digest of the list.
# Any number of these may run at once. Ends with 3 where the packages are not available; stderr has then said why.
set -eu

list=$1
example=$(basename "$(dirname "$list")")
cache=${TOOLCELL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/toolcell}/packages
digest=$({ sha256sum "$list" 2>/dev/null || shasum -a 256 "$list"; } | cut -c1-12)
folder=$cache/$example-$digest
unfinished=
trap '[ -z "$unfinished" ] || rm -rf "$unfinished"' EXIT
trap 'exit 130' INT TERM HUP

install_python() {
    if ! python3 -m pip --version >/dev/null 2>&1; then
        echo "packages: python3 has no pip (Debian: python3-pip)" >&2
        return 3
    fi
    begin || return
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps \
        --require-hashes --only-binary :all: --target "$unfinished" -r "$list"
}

install_node() {
    if ! command -v npm >/dev/null; then
        echo "packages: there is no Node 20 or newer with npm. Get it with:  apt-get install nodejs npm" >&2
        return 3
    fi
    begin || return
    beside=$(dirname "$list")
    cp "$list" "$beside/package.json" "$beside/.npmrc" "$unfinished" || return
    (cd "$unfinished" && npm ci --ignore-scripts --loglevel=error)
}

begin() {
    echo "packages: installing what $example is built with into $folder (once)" >&2
    mkdir -p "$cache"
    unfinished=$(mktemp -d "$folder.XXXXXX")
}

if [ ! -d "$folder" ]; then
    case $list in
        *package-lock.json) install_node ;;
        *) install_python ;;
    esac >&2 || exit 3
    # Renamed when it is whole; where another build was faster, its folder stays.
    mv -T "$unfinished" "$folder" 2>/dev/null || rm -rf "$unfinished"
    unfinished=
fi
printf '%s\n' "$folder"
