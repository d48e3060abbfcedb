"""Packages of Debian's archive, got by the machine's apt and not installed.

Must not hold: what they are for.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path


KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


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


def debian_packages(names, suite, folder):
    """Paths of the packages of a suite with all that they need, for this machine's processor, got into a new folder."""
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise Unreachable("there is no apt-get and dpkg-deb")
    for part in ("lists/partial", "archives/partial"):
        Path(folder, part).mkdir(parents=True)
    # As if nothing were installed. The machine's own lists and settings stay as they are.
    Path(folder, "status").touch()
    Path(folder, "suite.sources").write_text(
        f"Types: deb\nURIs: {mirror()}\nSuites: {suite}\nComponents: main\nTargets: Packages\nSigned-By: {KEYRING}\n", "ascii"
    )
    own = ["-qq", "-o", f"Dir::State::Lists={folder}/lists", "-o", f"Dir::State::status={folder}/status", "-o", f"Dir::Cache={folder}",
           "-o", f"Dir::Etc::SourceList={folder}/suite.sources", "-o", "Dir::Etc::SourceParts=/dev/null", "-o", "Dir::Etc::Preferences=/dev/null",
           "-o", "Dir::Etc::PreferencesParts=/dev/null", "-o", "Acquire::Languages=none", "-o", "APT::Sandbox::User=root", "-o", "APT::Install-Recommends=false"]
    for command in (["update"], ["--yes", "--download-only", "install", *names]):
        said = subprocess.run(["apt-get", *own, *command], capture_output=True, text=True, check=False)
        if said.returncode:
            raise Unreachable(f"apt-get {command[0]} of {suite} failed: {said.stderr.strip()}")
    return sorted(Path(folder, "archives").glob("*.deb"))


def mirror():
    """The address of Debian's archive in the machine's settings of apt."""
    said = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"], capture_output=True, text=True, check=False
    )
    found = [line for line in said.stdout.split() if line.rstrip("/").endswith("/debian")]
    if not found:
        raise Unreachable("no archive of Debian is named in the settings of apt")
    return found[0]
