"""The few things of a program's file that are checked: symbol versions, libraries, sections.

Holds what binutils say, in the form of sets. Must not hold: what is right.
"""

import json
import re
import subprocess
import tempfile
import zlib
from pathlib import Path


def said(tool, *words):
    return subprocess.run([tool, *words], capture_output=True, text=True, check=True).stdout


def glibc(binary):
    """The newest version of the C library that a symbol needs, as a list of numbers."""
    versions = re.findall(r"GLIBC_(\d+(?:\.\d+)+)", said("objdump", "-T", binary))
    return max([int(part) for part in version.split(".")] for version in versions)


def needed(binary):
    """The libraries that it is linked with."""
    return set(re.findall(r"NEEDED\s+(\S+)", said("objdump", "-p", binary)))


def sections(binary):
    """The names of its sections."""
    return set(re.findall(r"^\s*\d+ (\S+)", said("objdump", "-h", binary), re.MULTILINE))


def has_symbols(binary):
    """True where names of functions are still there."""
    return "no symbols" not in said("objdump", "-t", binary)


def audited(binary):
    """The crates that the binary itself says it was built of, as {(name, version)}, without those that only built it."""
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder, "part")
        subprocess.run(["objcopy", "-O", "binary", "--only-section=.dep-v0", "--set-section-flags", ".dep-v0=alloc", binary, part], check=True)
        listed = json.loads(zlib.decompress(part.read_bytes()))
    return {(package["name"], package["version"]) for package in listed["packages"] if package.get("kind") != "build"}
