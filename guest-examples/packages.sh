#!/bin/sh
# Prints a folder with the Python packages of a requirements file, and installs them there where it does not exist:
# compilers come as such packages. Nothing is installed anywhere else.
#
#   folder=$(guest-examples/packages.sh guest-examples/NAME/requirements.txt)
#   PYTHONPATH=$folder python3 -m MODULE
#
# The file pins every package by version and SHA-256 digest. The folder is in
# ${TOOLCELL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/toolcell}, and its name carries the digest of the file.
# Ends with 3 where the packages cannot be had; pip has then said why on stderr.
set -eu

requirements=$1
cache=${TOOLCELL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/toolcell}/packages
digest=$({ sha256sum "$requirements" 2>/dev/null || shasum -a 256 "$requirements"; } | cut -c1-12)
folder=$cache/$(basename "$(dirname "$requirements")")-$digest
unfinished=
trap '[ -z "$unfinished" ] || rm -rf "$unfinished"' EXIT
trap 'exit 130' INT TERM HUP

if [ ! -d "$folder" ]; then
    if ! python3 -m pip --version >/dev/null 2>&1; then
        echo "packages: python3 has no pip (Debian: python3-pip)" >&2
        exit 3
    fi
    echo "packages: installing what $(basename "$(dirname "$requirements")") is built with into $folder (once)" >&2
    mkdir -p "$cache"
    unfinished=$(mktemp -d "$folder.XXXXXX")
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps \
        --require-hashes --only-binary :all: --target "$unfinished" -r "$requirements" >&2 || exit 3
    # Renamed when it is whole; where another build was faster, its folder stays.
    mv -T "$unfinished" "$folder" 2>/dev/null || rm -rf "$unfinished"
    unfinished=
fi
printf '%s\n' "$folder"
