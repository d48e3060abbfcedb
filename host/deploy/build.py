"""Builds the binary that every package holds: stripped, for old C libraries, the same on each machine.

    host/deploy/build.py TARGET      prints the path of the binary

Holds how cargo is called. Must not hold: packages.
"""

import os
import subprocess
import sys
from pathlib import Path

import tools

ROOT = Path(__file__).resolve().parent.parent.parent
# The C library of RHEL 8, Debian 10 and Ubuntu 18.10.
GLIBC = "2.28"


def cargo_home():
    """Where cargo keeps crates."""
    return Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")


def registry_sources(cargo_home):
    """The folders that cargo unpacks crates into."""
    folder = cargo_home / "registry" / "src"
    return sorted(folder.iterdir()) if folder.exists() else []


def rustflags(root, target_folder, cargo_home):
    """Flags that take this machine's paths out of the binary. Of two that fit a path, rustc takes the later one."""
    pairs = [(cargo_home, "cargo"), *((source, "crates") for source in registry_sources(cargo_home)), (root, "toolcell"), (target_folder, "built")]
    return [f"--remap-path-prefix={path}={name}" for path, name in pairs]


def environment(root, target_folder, epoch):
    """The variables of the build."""
    crates = cargo_home()
    zigbuild = tools.zigbuild()
    plain = tools.plain_environment()
    paths = {f"-ffile-prefix-map={source}=crates" for source in registry_sources(crates)}
    return plain | {
        "PATH": os.pathsep.join([str(zigbuild / "bin"), plain["PATH"]]),
        "CARGO_ZIGBUILD_ZIG_PATH": str(zigbuild / "ziglang" / "zig"),
        "CARGO_ZIGBUILD_CACHE_DIR": str(tools.CACHE / "zigbuild-wrappers"),
        "ZIG_GLOBAL_CACHE_DIR": str(tools.CACHE / "zig"),
        "CARGO_TARGET_DIR": str(target_folder),
        # Unlike RUSTFLAGS, this takes paths with spaces.
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(rustflags(root, target_folder, crates)),
        "CFLAGS": " ".join(sorted(paths)),
        "CARGO_PROFILE_RELEASE_DEBUG": "0",
        "CARGO_PROFILE_RELEASE_STRIP": "symbols",
        "SOURCE_DATE_EPOCH": str(epoch),
    }


def compiler(target, root):
    """The words before a command that builds for this target: another processor's needs a standard library got first."""
    return [] if target == host_target() else [root / "guest-examples" / "toolchain.sh", "--target", target]


def build(target, root, target_folder, epoch):
    """Builds the binary of a clone, and gives its path."""
    # The crates must be there before the flags can name their folders.
    subprocess.run(["cargo", "fetch", "--quiet", "--locked", "--target", target], cwd=root, env=tools.plain_environment(), check=True)
    subprocess.run(
        [*compiler(target, root), tools.auditable(), "auditable", "zigbuild", "--release", "--locked", "-p", "toolcell", "--target", f"{target}.{GLIBC}"],
        cwd=root, env=environment(root, target_folder, epoch), check=True,
    )
    return target_folder / target / "release" / "toolcell"


def host_target():
    """The target of this machine's compiler."""
    said = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    return next(line.removeprefix("host: ") for line in said.splitlines() if line.startswith("host: "))


def target_folder():
    """Where cargo builds."""
    return Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").absolute()


def source_date(root):
    """When the last commit was made, in seconds since 1970: the time of each file in the packages."""
    said = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=root, capture_output=True, text=True, check=False)
    return int(os.environ.get("SOURCE_DATE_EPOCH") or said.stdout.strip() or 0)


if __name__ == "__main__":
    wanted = sys.argv[1] if len(sys.argv) > 1 else host_target()
    print(build(wanted, ROOT, target_folder() / "dist", source_date(ROOT)))
