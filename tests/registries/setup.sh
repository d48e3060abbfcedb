#!/bin/sh
# Gets the real parts of the registries' check into the cache, and prints their paths.
#
#   setup.sh registry   prints the path of docker-registry, out of Debian's package
#   setup.sh cosign     prints the path of cosign, out of Debian's package
#   setup.sh keyless    prints the path of a Node, and on a second line a folder with sigstore's mocks
#   setup.sh wkg        prints the path of wkg, which cargo compiles once
#
# packages.txt, node/package-lock.json and the lines below pin each part by its version and digest. Debian's archive
# keeps one version of a package in a suite. Where it has gone on from the pinned one, the newer is taken, which Debian's
# key signs, and stderr says so. Nothing is installed. Each part is made under another name and moved into place when it
# is whole. The cache is ${TOOLCELL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/toolcell}/registries, outside the clone.
# Ends with 3 where a part is not available, and with 1 where it is another than the pinned one; stderr has then said why.
set -eu

WKG=0.16.1
WKG_SHA256=741d535730e0f9fd55cfb969e86bc43f6e1c8ac931975fa66c974a0cdefd9d04
KEYRINGS="/usr/share/keyrings/debian-archive-keyring.gpg /usr/share/keyrings/debian-archive-keyring.pgp"

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cache="${TOOLCELL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/toolcell}/registries"
unfinished=''
trap '[ -z "$unfinished" ] || rm -rf "$unfinished"' EXIT
trap 'exit 130' INT TERM HUP

say() { echo "registries: $*" >&2; }

cannot() {
    say "$1"
    echo "hint: $2" >&2
    exit 3
}

# Other bytes than the pinned ones are no missing part: nothing goes on.
changed() {
    say "$1 has other bytes than $2 says"
    echo "hint: do not go on before you know who changed it" >&2
    exit 1
}

digest() { { sha256sum "$1" 2>/dev/null || shasum -a 256 "$1"; } | cut -d ' ' -f 1; }

# begin KIND: makes a new folder beside the final one. apt downloads as a user of its own, who has to get in.
begin() {
    mkdir -p "$cache"
    unfinished=$(mktemp -d "$cache/.$1.XXXXXX")
    chmod 755 "$unfinished"
}

# finish TARGET: puts the new folder in place; if another run was faster, its folder stays
finish() {
    if [ -d "$1" ]; then rm -rf "$unfinished"; else mv "$unfinished" "$1"; fi
    unfinished=''
}

# The mirror this machine's apt is configured with: the one of its own release, else one that looks like Debian's.
debian_mirror() {
    release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release 2>/dev/null)
    apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        awk -v release="${release:--}" '
            $1 == release && $2 ~ /debian\/?$/ { own = $2; exit }
            !other && $2 ~ /\/debian\/?$/ { other = $2 }
            END { print (own ? own : other) }'
}

# apt with files of its own: it neither reads nor touches the package lists and state of the machine.
private_apt() {
    apt-get -q -o Dir::State::Lists="$unfinished/apt/lists" -o Dir::State::status="$unfinished/apt/status" \
        -o Dir::Cache="$unfinished/apt/cache" -o Dir::Etc::SourceList="$unfinished/apt/list.sources" \
        -o Dir::Etc::SourceParts=/dev/null -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null \
        -o Acquire::Languages=none -o APT::Get::AllowUnauthenticated=false "$@"
}

# download PACKAGE VERSION SUITE SHA256: puts the .deb into $unfinished/apt/packages
download() {
    keyring=
    for candidate in $KEYRINGS; do [ -r "$candidate" ] && keyring=$candidate && break; done
    [ -n "$keyring" ] || cannot "Debian's keyring is missing" "install debian-archive-keyring"
    mirror=$(debian_mirror)
    [ -n "$mirror" ] || cannot "no Debian mirror is configured in apt" "let apt reach a Debian archive"
    mkdir -p "$unfinished/apt/lists/partial" "$unfinished/apt/cache/archives/partial" "$unfinished/apt/packages"
    : >"$unfinished/apt/status"
    printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nTargets: Packages\nSigned-By: %s\n' \
        "$mirror" "$3" "$keyring" >"$unfinished/apt/list.sources"
    if [ "$(id -u)" = 0 ]; then chown _apt "$unfinished/apt/lists/partial" "$unfinished/apt/packages" 2>/dev/null || :; fi
    # apt-get update ends with 0 even where nothing was reachable; --error-on=any exists since apt 2.1.8.
    private_apt --error-on=any update >"$unfinished/apt/log" 2>&1 || return 1
    cd "$unfinished/apt/packages"
    if private_apt download "$1=$2" >>"$unfinished/apt/log" 2>&1; then
        [ "$(digest ./*.deb)" = "$4" ] || changed "$1 $2 of $3" packages.txt
    else
        private_apt download "$1" >>"$unfinished/apt/log" 2>&1 || return 1
        say "$3 no longer has $1 $2: taking $(echo ./*.deb) instead; pin it in packages.txt"
    fi
    cd "$here"
}

# from_debian PACKAGE: prints the path of the program of that name
from_debian() {
    command -v apt-get >/dev/null && command -v dpkg >/dev/null || cannot "there is no apt to get $1 by" "run this on Debian or Ubuntu"
    processor=$(dpkg --print-architecture)
    pinned=$(awk -v package="$1" -v processor="$processor" '$1 == package && $3 == processor { print $2, $4, $5 }' "$here/packages.txt")
    [ -n "$pinned" ] || cannot "packages.txt has no $1 for $processor" "add the line that Debian's archive has of it"
    # Unquoted on purpose: version, suite, digest.
    set -- "$1" $pinned
    target="$cache/$1-$2-$(echo "$4" | cut -c1-12)"
    if [ ! -d "$target" ]; then
        say "getting Debian's $1 $2 into $target (once)"
        begin "$1"
        if ! download "$1" "$2" "$3" "$4"; then
            sed -n 's/^[EW]: /registries:   &/p' "$unfinished/apt/log" >&2
            cannot "apt cannot download $1" "let apt reach a Debian archive that has the suite $3"
        fi
        dpkg -x "$unfinished"/apt/packages/*.deb "$unfinished"
        rm -rf "$unfinished/apt" "$unfinished/usr/share" "$unfinished/etc"
        "$unfinished/usr/bin/$1" --help >/dev/null 2>&1 || cannot "Debian's $1 does not run here" "it needs glibc 2.34 or newer"
        finish "$target"
    fi
    echo "$target/usr/bin/$1"
}

keyless() {
    node=$(command -v node) || cannot "there is no node" "install Node 20.17 or newer"
    target="$cache/keyless-$(digest "$here/node/package-lock.json" | cut -c1-12)"
    if [ ! -d "$target" ]; then
        command -v npm >/dev/null || cannot "there is no npm" "install Node 20.17 or newer, with npm"
        say "installing sigstore's mocks into $target (once)"
        begin keyless
        cp "$here/node/package.json" "$here/node/package-lock.json" "$here/node/.npmrc" "$unfinished/"
        (cd "$unfinished" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) >&2 ||
            cannot "npm could not install node/package-lock.json" "what it said is above; the registry must be reachable once"
        finish "$target"
    fi
    echo "$node"
    echo "$target"
}

# Without optimization it compiles in a third of the time, and it only copies a few files here.
wkg() {
    target="$cache/wkg-$WKG"
    if [ ! -d "$target" ]; then
        command -v cargo >/dev/null || cannot "there is no cargo" "install Rust: https://rustup.rs"
        say "compiling wkg $WKG into $target (once: some minutes, and 750 MB until it is done)"
        begin wkg
        CARGO_TARGET_DIR="$unfinished/target" CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 \
            cargo install --quiet --locked --debug --no-default-features --no-track --root "$unfinished" wkg --version "$WKG" >&2 ||
            cannot "cargo could not compile wkg" "what it said is above; the registry of crates must be reachable once"
        rm -rf "$unfinished/target"
        for crate in "${CARGO_HOME:-$HOME/.cargo}"/registry/cache/*/"wkg-$WKG.crate"; do
            [ -f "$crate" ] || cannot "cargo does not keep wkg-$WKG.crate" "its bytes cannot be compared with those of setup.sh"
            [ "$(digest "$crate")" = "$WKG_SHA256" ] || changed "$crate" setup.sh
        done
        finish "$target"
    fi
    echo "$target/bin/wkg"
}

case "${1:-}" in
registry) from_debian docker-registry ;;
cosign) from_debian cosign ;;
keyless) keyless ;;
wkg) wkg ;;
*) cannot "what is '${1:-}'?" "setup.sh registry|cosign|keyless|wkg" ;;
esac
