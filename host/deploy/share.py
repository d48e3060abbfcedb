"""The files that come with the program in every package of a system: manual pages, completions, licences, the SBOM."""

import os
import subprocess
import tempfile
from pathlib import Path

import build
from archive import Entry
from project import NAME, ROOT

COMPLETIONS = {
    "bash": f"share/bash-completion/completions/{NAME}",
    "zsh": f"share/zsh/vendor-completions/_{NAME}",
    "fish": f"share/fish/vendor_completions.d/{NAME}.fish",
}
DOC = f"share/doc/{NAME}"
# What `[code]` and `toolcell add` look for beside the program, or in its folder of data.
ENGINE = f"{NAME}-code.wasm"
BRIDGE = f"{NAME}-bridge.wasm"


def components(target_folder):
    """The components that come with the program, as entries without a folder: the same for every platform."""
    return [Entry(ENGINE, engine(target_folder)), Entry(BRIDGE, bridge(target_folder))]


def engine(target_folder):
    """The engine of scripts, built."""
    subprocess.run([ROOT / "host" / "code" / "build.sh"], env=os.environ | {"CARGO_TARGET_DIR": str(target_folder)}, check=True)
    return (target_folder / "release" / ENGINE).read_bytes()


def bridge(target_folder):
    """The component of bridges, built without paths of this machine. By itself: the examples' own has other features of its crates."""
    folder = target_folder / "bridge"
    flags = "\x1f".join(build.rustflags(ROOT, folder, build.cargo_home()))
    examples = ROOT / "guest-examples"
    command = [examples / "toolchain.sh", "cargo", "build", "--locked", "--release", "--target", "wasm32-wasip2", "-p", "bridge"]
    variables = os.environ | {"CARGO_TARGET_DIR": str(folder), "CARGO_ENCODED_RUSTFLAGS": flags}
    subprocess.run(command, cwd=examples, env=variables, check=True)
    return (folder / "wasm32-wasip2" / "release" / "bridge.wasm").read_bytes()


def placed(components):
    """These components among the files of a system."""
    return [Entry(f"share/{NAME}/{component.name}", component.content) for component in components]


def manual(binary):
    """The manual pages, as entries."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([binary, "man", folder], check=True)
        return [Entry(f"share/man/man1/{page.name}", page.read_bytes()) for page in sorted(Path(folder).iterdir())]


def completions(binary):
    """The completion scripts, as entries."""
    return [
        Entry(name, subprocess.run([binary, "completions", shell], check=True, capture_output=True).stdout)
        for shell, name in COMPLETIONS.items()
    ]


def documents(licences, sbom):
    """Licences, SBOM and pages, as entries."""
    own = [Entry(f"{DOC}/{name}", (ROOT / name).read_bytes()) for name in ("README.md", "CHANGELOG.md", "LICENSE")]
    return [*own, Entry(f"{DOC}/THIRD-PARTY-LICENSES.txt", licences.encode("utf-8")), Entry(f"{DOC}/{NAME}.cdx.json", sbom)]
