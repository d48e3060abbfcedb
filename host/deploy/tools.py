"""The tools that packaging needs: each of one version, got once, kept in the cache.

Holds how they are got. Must not hold: what they are used for.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from debian_archive import debian_package

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("TOOLCELL_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "toolcell")
AUDITABLE_VERSION = "0.7.7"
# Variables that change what cargo builds. The recipe sets its own.
CARGO_VARIABLES = ("CARGO_TARGET", "CARGO_BUILD_TARGET", "CARGO_PROFILE", "CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "RUSTC_WRAPPER")


def plain_environment():
    """This process's variables, without those that change what cargo builds."""
    return {name: value for name, value in os.environ.items() if not name.startswith(CARGO_VARIABLES)}


def kept(name, make):
    """A folder of the cache, which `make` fills where it is not there yet. Only a whole one gets its name."""
    folder = CACHE / name
    if not folder.exists():
        print(f"dist: making {folder} (once)", file=sys.stderr)
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=CACHE) as unfinished:
            made = Path(unfinished, name)
            made.mkdir()
            make(made)
            # Where another run was faster, its folder stays.
            if not folder.exists():
                os.rename(made, folder)
    return folder


def digest(*files):
    """Twelve hexadecimal digits that name the contents of files."""
    return hashlib.sha256(b"".join(Path(file).read_bytes() for file in files)).hexdigest()[:12]


def wheels(name, locked):
    """A folder with the wheels that a file pins."""

    def make(folder):
        # Into a folder of its own instead of an environment: those hold their own path.
        with tempfile.TemporaryDirectory() as scratch:
            subprocess.run([sys.executable, "-m", "venv", scratch], check=True)
            pip = [Path(scratch, "bin", "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            pinned = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", locked]
            subprocess.run([*pip, *pinned, "--target", folder], check=True)

    return kept(f"{name}-{digest(locked)}", make)


def zigbuild():
    """The folder with cargo-zigbuild and, in `ziglang`, the linker it uses."""
    return wheels("zigbuild", HERE / "requirements.txt")


def uv():
    """The folder with uv, which tries the wheel."""
    return wheels("uv", HERE / "check-requirements.txt")


def auditable():
    """The path of cargo-auditable, which writes the list of crates into the binary."""

    def make(folder):
        environment = plain_environment() | {"CARGO_PROFILE_DEV_DEBUG": "0"}
        with tempfile.TemporaryDirectory() as target:
            subprocess.run(
                ["cargo", "install", "--quiet", "--locked", "--debug", "--root", folder, "--target-dir", target,
                 "cargo-auditable", "--version", f"={AUDITABLE_VERSION}"],
                env=environment, check=True,
            )

    return kept(f"cargo-auditable-{AUDITABLE_VERSION}", make) / "bin" / "cargo-auditable"


def mcpb():
    """The path of the official tool of .mcpb bundles."""

    def make(folder):
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copyfile(HERE / "node" / name, folder / name)
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], cwd=folder, check=True)

    return kept(f"mcpb-{digest(HERE / 'node' / 'package-lock.json')}", make) / "node_modules" / ".bin" / "mcpb"


def umoci():
    """The path of umoci, which looks into images: the machine's, or else that of Debian's package, not installed."""
    found = shutil.which("umoci")
    if found:
        return found

    def make(folder):
        name, content = debian_package("umoci", subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip())
        (folder / name).write_bytes(content)
        subprocess.run(["dpkg-deb", "-x", folder / name, folder], check=True)
        (folder / name).unlink()

    return kept("umoci", make) / "usr" / "bin" / "umoci"
