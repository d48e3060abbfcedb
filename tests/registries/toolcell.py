"""toolcell, in a folder of its own with one manifest: its commands, and the claims that conversations make of them.

Must not hold: registries, signers.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

from processes import attempt

QUICK_S = 60
"""Seconds in which a command says that a registry is not there, or is bad. It waits for no time of its own that long."""


class Failed(Exception):
    """A claim that does not hold."""


def check(holds: object, claim: str, *details: object) -> None:
    """Ends the conversation with the claim if it does not hold."""
    if not holds:
        raise Failed("\n  ".join([claim, *(str(detail)[:4000] for detail in details)]))


class Said:
    """A command that ended."""

    def __init__(self, arguments: tuple[str, ...], code: int, out: str, error: str, took: float) -> None:
        self.arguments, self.code, self.out, self.error, self.took = arguments, code, out, error, took

    def __str__(self) -> str:
        return f"toolcell {' '.join(self.arguments)} ended with {self.code} after {self.took:.1f} s\n  {self.out}\n  {self.error}"

    def json(self) -> Any:
        """The only value on stdout."""
        try:
            return json.loads(self.out)
        except json.JSONDecodeError:
            raise Failed(f"stdout is JSON with --json\n  {self}") from None

    def works(self, claim: str) -> Said:
        check(self.code == 0, claim, self)
        return self

    def refuses(self, claim: str, *words: str) -> Said:
        """It ended with an error in words, in time, and says each of these."""
        check(self.code not in (0, 101) and self.code > 0, claim, self)
        check("panicked" not in self.error and (self.error + self.out).strip(), f"{claim}: with an error in words", self)
        check(self.took < QUICK_S, f"{claim}: within {QUICK_S} s", self)
        for word in words:
            check(word.lower() in (self.out + self.error).lower(), f"{claim}: it says \"{word}\"", self)
        return self


class Toolcell:
    """A folder with a manifest, the store of its components, and what it needs to reach a registry."""

    def __init__(self, program: str, folder: Path, text: str, files: dict[str, Path] | None = None, **environment: str) -> None:
        folder.mkdir(parents=True)
        self.program, self.folder, self.manifest = program, folder, folder / "toolcell.toml"
        self.manifest.write_text(f'version = 1\n[server]\nname = "registries"\nstore = "store"\n{text}\n')
        for name, source in (files or {}).items():
            shutil.copyfile(source, folder / name)
        # Nobody's credentials are read, and no component that another folder has compiled.
        home = folder / "home"
        home.mkdir()
        self.environment = {"HOME": str(home), "DOCKER_CONFIG": str(home), "XDG_CACHE_HOME": str(home / "cache"), **environment}

    def run(self, *arguments: str) -> Said:
        began = time.monotonic()
        done = attempt([self.program, *arguments], folder=self.folder, **self.environment)
        out, error = (stream.decode(errors="replace") for stream in (done.stdout, done.stderr))
        return Said(arguments, done.returncode, out, error, time.monotonic() - began)

    def do(self, command: str, *arguments: str) -> Said:
        """A command with the manifest and JSON."""
        return self.run(*command.split(), *arguments, "-m", str(self.manifest), "--json")

    def add(self, source: str, name: str = "tool") -> Said:
        return self.do("add", source, "--name", name, "--yes")

    def call(self, tool: str = "version") -> Said:
        return self.run("call", tool, "{}", "-m", str(self.manifest))

    def text(self) -> str:
        return self.manifest.read_text()

    def answers(self, version: str, claim: str) -> None:
        """The tool's component is this version of it."""
        said = self.call().works(claim)
        check(said.out.strip() == version, claim, said)

    def pins(self, source: str, digest: str, claim: str) -> None:
        """The manifest names exactly this image."""
        check(f'source = "{source}@{digest}"' in self.text(), claim, self.text())

    def refuses_to_add(self, source: str, claim: str, *words: str) -> Said:
        """`add` fails, and leaves the manifest as it was."""
        before = self.text()
        said = self.add(source).refuses(claim, *words)
        check(self.text() == before, f"{claim}: the manifest stays as it was", self.text())
        return said

    def stored(self) -> list[Path]:
        return sorted(path for path in (self.folder / "store").rglob("*") if path.is_file())

    def stored_as(self, content: bytes) -> Path:
        """The file of the store that has these bytes."""
        found = [path for path in self.stored() if path.read_bytes() == content]
        check(found, "the store has the component's own bytes in a file", self.stored())
        return found[0]


def program() -> str | None:
    """The toolcell to test, if there is one."""
    root = Path(__file__).resolve().parents[2]
    named = os.environ.get("TOOLCELL_BIN") or str(root / "target/release/toolcell")
    return named if os.access(named, os.X_OK) else None
