"""Facts that every package states: names, versions, and what each kind of package calls a platform."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
NAME = "toolcell"
TITLE = "toolcell: MCP tools in WebAssembly sandboxes"
# At most 100 characters, by the MCP registry.
SUMMARY = "An MCP host that runs tools nobody has to trust, each call in a WebAssembly sandbox of its own"
LICENCE = "Apache-2.0"
# The registry takes an entry only of those who own this name. Nothing is published yet, and nobody is claimed to be.
REGISTRY_NAME = "com.example/toolcell"
MAINTAINER = "The toolcell authors <toolcell@example.com>"


# Only the program of the drill offers this interface to guests: they can do anything there, and no package holds it.
DRILL = b"toolcell:drill/native"


class Platform(NamedTuple):
    """A target of Rust, as packages call it."""

    target: str
    debian: str
    wheel: str
    node: str
    oci: str
    # The folder of libraries in Debian, and the program that loads them.
    multiarch: str
    loader: str
    # What ELF calls the processor.
    machine: int


PLATFORMS = {
    platform.target: platform
    for platform in (
        Platform("x86_64-unknown-linux-gnu", "amd64", "manylinux_2_28_x86_64", "x64", "amd64", "x86_64-linux-gnu", "lib64/ld-linux-x86-64.so.2", 62),
        Platform("aarch64-unknown-linux-gnu", "arm64", "manylinux_2_28_aarch64", "arm64", "arm64", "aarch64-linux-gnu", "lib/ld-linux-aarch64.so.1", 183),
    )
}


def version():
    """The version of the workspace."""
    text = (ROOT / "Cargo.toml").read_text("utf-8")
    return re.search(r'^\[workspace\.package\]\nversion = "([^"]+)"$', text, re.MULTILINE).group(1)
