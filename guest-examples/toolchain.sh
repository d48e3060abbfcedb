#!/bin/sh
# Runs a command with a Rust toolchain that can compile for wasm32-wasip2, and gets one where there is none.
#
#   guest-examples/toolchain.sh cargo build --release --target wasm32-wasip2
#   guest-examples/toolchain.sh --target TARGET COMMAND
#
# TARGET is another one than wasm32-wasip2: Linux on the processor that this machine does not have, as host/deploy
# packages it. With no command it only says on stdout which toolchain a build would use. The sources, in this order:
#
#   installed  the active rustc already has the target: the command runs as it is
#   rustup     `rustup target add TARGET`, given up after a minute
#   debian     Debian's rustc and its library for the target, downloaded through this machine's own apt configuration
#              (the mirror, proxy and keyring it already uses) and unpacked into a cache folder. Nothing is
#              installed. About 200 MB on disk for wasm32-wasip2 and 600 MB for Linux, some seconds, once.
#
# Environment:
#   TOOLCELL_GUEST_TOOLCHAIN  installed, rustup or debian: this source and no other. Default: the first that works.
#   TOOLCELL_CACHE            where the Debian toolchain is kept. Default: ${XDG_CACHE_HOME:-$HOME/.cache}/toolcell
#
# What takes more than a second is said on stderr. Signatures of packages are always checked.
set -eu

TARGET=wasm32-wasip2
if [ "${1:-}" = --target ] && [ $# -ge 2 ]; then
    TARGET=$2
    shift 2
fi
RUSTUP_SECONDS=60 # long enough for a 25 MB download, short enough to wait for where the server is out of reach
KEYRINGS="/usr/share/keyrings/debian-archive-keyring.gpg /usr/share/keyrings/debian-archive-keyring.pgp"
# rustc, its libraries for this machine and the target, and every shared library that rustc itself loads, so that it runs
# on an older Debian.
LOADED="libc6 libedit2 libffi8 libgcc-s1 libstdc++6 libz3-4 libzstd1 zlib1g libbsd0 libtinfo6 liblzma5 libmd0"
case $TARGET in
    wasm32-*) # the oldest that guests are built with
        DEBIAN_SUITE=trixie DEBIAN_RUST=1.85 FOREIGN=
        PACKAGES="libstd-rust-dev-wasm32 libllvm19 libxml2" ;;
    *) # The program needs a newer one than Debian's last release has. This suite moves on, and the number with it.
        DEBIAN_SUITE=forky DEBIAN_RUST=1.97
        case $TARGET in
            aarch64-unknown-linux-gnu) FOREIGN=arm64 ;;
            x86_64-unknown-linux-gnu) FOREIGN=amd64 ;;
            *) FOREIGN=unknown ;;
        esac
        PACKAGES="libstd-rust-dev:$FOREIGN libllvm22 libxml2-16" ;;
esac
PACKAGES="rustc libstd-rust-$DEBIAN_RUST libstd-rust-dev $PACKAGES $LOADED"

wanted=${TOOLCELL_GUEST_TOOLCHAIN:-}
scratch=

say() { printf '%s\n' "toolchain: $*" >&2; }

fail() {
    say "$*"
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

cleanup() { [ -z "$scratch" ] || rm -rf "$scratch"; }

target_is_installed() {
    libraries=$(rustc --print target-libdir --target "$TARGET" 2>/dev/null) && [ -d "$libraries" ]
}

add_with_rustup() {
    have rustup || return 1
    say "adding $TARGET with rustup"
    limit=
    if have timeout; then limit="timeout $RUSTUP_SECONDS"; fi
    $limit rustup target add "$TARGET" >/dev/null 2>&1 && target_is_installed
}

# The folder with rust-lld, wasm-ld and wasm-component-ld, which Debian does not ship and rustup's rustc does.
linker_folder() {
    host=$(rustc -vV | sed -n 's/^host: //p')
    folder=$(rustc --print sysroot)/lib/rustlib/$host/bin
    [ -x "$folder/wasm-component-ld" ] && [ -x "$folder/gcc-ld/wasm-ld" ] && printf '%s\n' "$folder"
}

debian_folder() {
    printf '%s/guest-rust-%s-%s-%s\n' "${TOOLCELL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/toolcell}" \
        "$DEBIAN_RUST" "$DEBIAN_SUITE" "$(dpkg --print-architecture)"
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
    apt-get -q -o Dir::State::Lists="$scratch/lists" -o Dir::State::status="$scratch/status" \
        -o Dir::Cache="$scratch/cache" -o Dir::Etc::SourceList="$scratch/toolchain.sources" \
        -o Dir::Etc::SourceParts=/dev/null -o Dir::Etc::Preferences=/dev/null \
        -o Dir::Etc::PreferencesParts=/dev/null -o Acquire::Languages=none \
        -o APT::Architectures::="$(dpkg --print-architecture)" ${FOREIGN:+-o APT::Architectures::="$FOREIGN"} \
        -o APT::Get::AllowUnauthenticated=false "$@"
}

download_debian_packages() {
    mkdir -p "$scratch/lists/partial" "$scratch/cache/archives/partial" "$scratch/packages"
    : >"$scratch/status"
    printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nTargets: Packages\nSigned-By: %s\n' \
        "$1" "$DEBIAN_SUITE" "$2" >"$scratch/toolchain.sources"
    if [ "$(id -u)" = 0 ]; then chown _apt "$scratch/lists/partial" "$scratch/packages" 2>/dev/null || :; fi
    # apt-get update ends with 0 even where nothing was reachable; --error-on=any exists since apt 2.1.8.
    private_apt --error-on=any update >"$scratch/log" 2>&1 || return 1
    # Unquoted on purpose: one word per package.
    (cd "$scratch/packages" && private_apt download $PACKAGES) >>"$scratch/log" 2>&1
}

# Debian's rustc needs Debian's own, newer C library, so it is started through that library's loader.
write_rustc_wrapper() {
    case $(dpkg --print-architecture) in
        amd64) loader=lib64/ld-linux-x86-64.so.2 ;;
        arm64) loader=lib/ld-linux-aarch64.so.1 ;;
        *) return 1 ;;
    esac
    triplet=$(basename "$(dirname "$(find "$1/root/usr/lib" -name 'libc.so.6' | head -n 1)")")
    # Debian 13's libc6 keeps the loader below /usr; /lib and /lib64 are links that dpkg -x does not make.
    [ -e "$1/root/$loader" ] || loader=usr/$loader
    [ -e "$1/root/$loader" ] || return 1
    cat >"$1/rustc" <<WRAPPER
#!/bin/sh
root=\$(dirname "\$0")/root
exec "\$root/$loader" --library-path "\$root/usr/lib/$triplet" "\$root/usr/bin/rustc" --sysroot "\$root/usr" "\$@"
WRAPPER
    chmod +x "$1/rustc"
}

get_debian() {
    folder=$(debian_folder)
    [ -x "$folder/rustc" ] && return 0
    have apt-get && have dpkg || return 1
    keyring=
    for candidate in $KEYRINGS; do [ -r "$candidate" ] && keyring=$candidate && break; done
    [ -n "$keyring" ] || { say "Debian's keyring is missing (package debian-archive-keyring)"; return 1; }
    mirror=$(debian_mirror)
    [ -n "$mirror" ] || { say "no Debian mirror is configured in apt"; return 1; }
    say "downloading Debian's rustc $DEBIAN_RUST for $TARGET (90 to 140 MB, once)"
    scratch=$(mktemp -d)
    chmod 755 "$scratch" # apt downloads as a user of its own
    trap cleanup EXIT
    trap 'exit 130' INT TERM HUP
    if ! download_debian_packages "$mirror" "$keyring"; then
        sed -n 's/^[EW]: /toolchain:   &/p' "$scratch/log" >&2
        return 1
    fi
    say "unpacking it into $folder"
    mkdir -p "$(dirname "$folder")"
    # Made complete beside its place and renamed: another build that looks meanwhile sees all of it or nothing.
    fresh=$(mktemp -d "$folder.XXXXXX")
    for package in "$scratch"/packages/*.deb; do dpkg -x "$package" "$fresh/root"; done
    rm -rf "$fresh/root/usr/share/doc" "$fresh/root/usr/share/locale"
    if ! write_rustc_wrapper "$fresh" || ! "$fresh/rustc" -V >/dev/null; then
        rm -rf "$fresh"
        say "Debian's rustc does not run on this machine"
        return 1
    fi
    mv -T "$fresh" "$folder" 2>/dev/null || rm -rf "$fresh" # another build was first
    cleanup
    scratch=
    [ -x "$folder/rustc" ]
}

use_debian() {
    if [ -z "$FOREIGN" ]; then
        linkers=$(linker_folder) || { say "this rustc comes without wasm-component-ld, which Debian lacks too"; return 1; }
        PATH=$linkers:$linkers/gcc-ld:$PATH
    fi
    [ "$FOREIGN" != unknown ] || { say "no package of Debian is known for $TARGET"; return 1; }
    get_debian || return 1
    RUSTC=$(debian_folder)/rustc
    export RUSTC PATH
}

choose() {
    case $wanted in
        installed) target_is_installed && source=installed ;;
        rustup) add_with_rustup && source=rustup ;;
        debian) use_debian && source=debian ;;
        '')
            if target_is_installed; then
                source=installed
            elif have dpkg && [ -x "$(debian_folder)/rustc" ] && use_debian; then
                source=debian
            elif add_with_rustup; then
                source=rustup
            elif use_debian; then
                source=debian
            else
                return 1
            fi
            ;;
        *) fail "TOOLCELL_GUEST_TOOLCHAIN is \"$wanted\"; it can be installed, rustup or debian" ;;
    esac
}

have cargo && have rustc || fail "cargo and rustc are missing; https://rustup.rs installs them"
choose || fail "no Rust toolchain for $TARGET. Get one with:  rustup target add $TARGET
hint: \`rustup toolchain list\` shows the active toolchain; one without rustup can use its system's package of the target"

if [ $# -eq 0 ]; then
    printf '%s: %s\n' "$source" "$("${RUSTC:-rustc}" -V)"
else
    exec "$@"
fi
