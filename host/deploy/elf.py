"""The few things of a program's file that are checked: processor, symbol versions, libraries, sections.

Holds what binutils say, in the form of sets. Must not hold: what is right.
"""

import json
import re
import subprocess
import zlib
from pathlib import Path


def said(tool, *words):
    return subprocess.run([tool, *words], capture_output=True, text=True, check=True).stdout


def machine(content):
    """The number of the processor that a file of these bytes is for; None if it is not a program or library."""
    return int.from_bytes(content[18:20], "little") if content[:4] == b"\x7fELF" else None


def glibc(binary):
    """The newest version of the C library that a symbol needs, as a list of numbers."""
    versions = re.findall(r"GLIBC_(\d+(?:\.\d+)+)", said("objdump", "-T", binary))
    return max([int(part) for part in version.split(".")] for version in versions)


def needed(binary):
    """The libraries that it is linked with."""
    return set(re.findall(r"NEEDED\s+(\S+)", said("objdump", "-p", binary)))


def sections(binary):
    """Its sections, by name: where each begins in the file, and its length. Also for processors that binutils lack."""
    rows = re.findall(r"^\s*\d+ (\S+) +(\w+) +\w+ +\w+ +(\w+)", said("objdump", "-h", binary), re.MULTILINE)
    return {name: (int(start, 16), int(length, 16)) for name, length, start in rows}


def has_symbols(binary):
    """True where names of functions are still there."""
    return "no symbols" not in said("objdump", "-t", binary)


def audited(binary):
    """The crates that the binary itself says it was built of, as {(name, version)}, without those that only built it."""
    start, length = sections(binary)[".dep-v0"]
    listed = json.loads(zlib.decompress(Path(binary).read_bytes()[start : start + length]))
    return {(package["name"], package["version"]) for package in listed["packages"] if package.get("kind") != "build"}
