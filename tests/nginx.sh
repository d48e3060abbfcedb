#!/bin/sh
# Prints the path of an nginx: the machine's, or else that of the Debian package, which is unpacked
# into the cache and not installed.
#
# If neither is available, says why on stderr and ends with 3. The cache is
# ${TOOLCELL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/toolcell}/nginx.
set -eu

PATH=$PATH:/usr/sbin:/usr/local/sbin
if command -v nginx; then exit 0; fi

cache=${TOOLCELL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/toolcell}/nginx
unfinished=
trap '[ -z "$unfinished" ] || rm -rf "$unfinished"' EXIT
trap 'exit 1' INT TERM

# runs PATH: succeeds if the program exists and finds its libraries
runs() { [ -x "$1" ] && "$1" -v 2>/dev/null; }

cannot() {
    echo "nginx: $1" >&2
    echo "hint: install nginx, or let apt reach a Debian archive" >&2
    exit 3
}

nginx=$cache/usr/sbin/nginx
if ! runs "$nginx"; then
    command -v apt-get >/dev/null && command -v dpkg >/dev/null || cannot "there is none, and no apt to get it by"
    echo "nginx: getting Debian's package into $cache (once)" >&2
    mkdir -p "$(dirname "$cache")"
    unfinished=$(mktemp -d "$cache.XXXXXX")
    # A package list older than the archive names files that no longer exist. A list in this folder needs no root.
    mkdir -p "$unfinished/lists/partial" "$unfinished/cache/archives/partial"
    get() { (cd "$unfinished" && apt-get -qq "$@" >&2); }
    get download nginx || {
        set -- -o "Dir::State::Lists=$unfinished/lists" -o "Dir::Cache=$unfinished/cache"
        get "$@" update && get "$@" download nginx
    } || cannot "apt cannot download it"
    dpkg -x "$unfinished"/nginx_*.deb "$unfinished" || cannot "the package cannot be unpacked"
    rm -rf "$unfinished"/*.deb "$unfinished/lists" "$unfinished/cache"
    runs "$unfinished/usr/sbin/nginx" || cannot "Debian's nginx does not run here: $("$unfinished/usr/sbin/nginx" -v 2>&1 || true)"
    # If another run was faster, its folder stays.
    [ -d "$cache" ] || mv -T "$unfinished" "$cache" 2>/dev/null || rm -rf "$unfinished"
fi
echo "$nginx"
