"""Packages of Debian's archive, got by the machine's apt and not installed.

Must not hold: what they are for.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path


class Unreachable(Exception):
    """There is no apt here that can get a package."""


def debian_package(name, architecture):
    """Debian's package of this name as (file name, bytes). Nothing is installed."""
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise Unreachable("there is no apt-get and dpkg-deb")
    with tempfile.TemporaryDirectory() as folder:
        for part in ("lists/partial", "cache/archives/partial"):
            Path(folder, part).mkdir(parents=True)
        # A list of its own: that of the machine may be older than the archive, or of other architectures.
        own = ["-qq", "-o", f"Dir::State::Lists={folder}/lists", "-o", f"Dir::Cache={folder}/cache", "-o", "APT::Sandbox::User=root",
               "-o", f"APT::Architecture={architecture}", "-o", f"APT::Architectures={architecture}"]
        for command in (["update"], ["download", name]):
            said = subprocess.run(["apt-get", *own, *command], cwd=folder, capture_output=True, text=True, check=False)
            if said.returncode:
                raise Unreachable(f"apt-get {command[0]} failed: {said.stderr.strip()}")
        found = next(Path(folder).glob("*.deb"))
        return found.name, found.read_bytes()
