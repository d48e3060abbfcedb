"""The files that come with the program in every package of a system: manual pages, completions, licences, the SBOM."""

import os
import subprocess
import tempfile
from pathlib import Path

from archive import Entry
from project import NAME, ROOT

COMPLETIONS = {
    "bash": f"share/bash-completion/completions/{NAME}",
    "zsh": f"share/zsh/vendor-completions/_{NAME}",
    "fish": f"share/fish/vendor_completions.d/{NAME}.fish",
}
DOC = f"share/doc/{NAME}"
# The engine of scripts: where the program looks for it, from its own folder.
ENGINE = f"{NAME}-code.wasm"


def engine(target_folder):
    """The engine of scripts, built: the same bytes for every platform."""
    subprocess.run([ROOT / "host" / "code" / "build.sh"], env=os.environ | {"CARGO_TARGET_DIR": str(target_folder)}, check=True)
    return (target_folder / "release" / ENGINE).read_bytes()


def placed(engine):
    """The engine among the files of a system, as entries."""
    return [Entry(f"share/{NAME}/{ENGINE}", engine)]


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
