#!/bin/sh
# Builds the engine of scripts, and puts it beside the binary: target/release/toolcell-code.wasm.
#
#   host/code/build.sh
#
# Needs what the examples need, and a C compiler with the WASI C library: the package that
# guest-examples/html_tidy/requirements.txt pins, in the cache. Ends with 3 where that is not available.
#
# Environment: CARGO_TARGET_DIR (default: target of this repository), and that of guest-examples/toolchain.sh.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
target=${CARGO_TARGET_DIR:-$root/target}
case $target in /*) ;; *) target=$PWD/$target ;; esac
built=$target/code

if ! folder=$("$root/guest-examples/packages.sh" "$root/guest-examples/html_tidy/requirements.txt"); then
    echo "code: there is no C compiler for WASI. Get one with:  python3 -m pip install ziglang==0.16.0" >&2
    exit 3
fi
# The crate of the engine looks for a compiler in the folders of a WASI SDK. Past the C library's headers, the engine must
# not know that this is WASI: only then it watches its stack, and a script that recurses too deep gets an error to catch.
export WASI_SDK=$built/wasi-sdk
mkdir -p "$WASI_SDK/bin" "$WASI_SDK/share/wasi-sysroot"
for header in assert ctype errno fenv inttypes limits malloc math stdarg stdbool stddef stdint stdio stdlib string sys/time \
    time unistd; do
    echo "#include <$header.h>"
done >"$WASI_SDK/watch-stack.h"
echo "#undef __wasi__" >>"$WASI_SDK/watch-stack.h"
cat >"$WASI_SDK/bin/clang" <<SCRIPT
#!/bin/sh
# The folder of the C library comes in pieces if its path has spaces. None of them begins with a dash.
dropped=
for argument; do
    shift
    case \$argument in
    --sysroot=*) dropped=1 ;;
    --target=*) dropped= ;;
    -*) dropped= && set -- "\$@" "\$argument" ;;
    *) [ -n "\$dropped" ] || set -- "\$@" "\$argument" ;;
    esac
done
exec "$folder/ziglang/zig" cc -target wasm32-wasi -include "$WASI_SDK/watch-stack.h" "-ffile-prefix-map=$built=." "\$@"
SCRIPT
printf '#!/bin/sh\nexec "%s/ziglang/zig" ar "$@"\n' "$folder" >"$WASI_SDK/bin/ar"
chmod +x "$WASI_SDK/bin/clang" "$WASI_SDK/bin/ar"

# Paths of this machine stay out of the component.
crates=${CARGO_HOME:-$HOME/.cargo}
# The variable's parts end with a byte that no path has, since a path may have spaces.
separator=$(printf '\037')
CARGO_ENCODED_RUSTFLAGS="--remap-path-prefix=$crates=crates$separator--remap-path-prefix=$(cd "$root" && pwd)=toolcell"
export CARGO_ENCODED_RUSTFLAGS
cd "$here"
CARGO_TARGET_DIR=$built "$root/guest-examples/toolchain.sh" \
    cargo build --locked --release --target wasm32-wasip2

placed=$target/release/toolcell-code.wasm
mkdir -p "$target/release"
cmp -s "$built/wasm32-wasip2/release/toolcell_code.wasm" "$placed" && exit 0
cp "$built/wasm32-wasip2/release/toolcell_code.wasm" "$placed.new"
mv "$placed.new" "$placed"
printf 'built %-12s %7d bytes\n' toolcell-code "$(wc -c <"$placed")" >&2
