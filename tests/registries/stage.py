"""All parts of the check, started once for every conversation, and the list of conversations.

Must not hold: what is claimed of toolcell or of a part.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Callable
from urllib.parse import urlsplit

from front import Front
from oci import Image, Remote, component
from registry import KINDS, PASSWORD, USER, Certificates, Registry, TokenServer
from signers import Cosign, Services
from toolcell import Toolcell

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FIXTURES = ROOT / "tests/fixtures/components"
PARTS = ["registry", "cosign", "keyless", "wkg"]
# Parts that a run may do without if it says so: no other conversation needs them.
OPTIONAL = ["wkg"]
# setup.sh ends so where a part is not available.
MISSING = 3


@dataclass(frozen=True)
class Conversation:
    """One function with a name. `parts` needs no toolcell: it shows that the parts do their work."""

    name: str
    hold: Callable[[Stage], None]
    parts: bool
    wkg: bool


CONVERSATIONS: list[Conversation] = []


Hold = Callable[..., None]


def conversation(parts: bool = False, wkg: bool = False, each: list[str] | None = None) -> Callable[[Hold], Hold]:
    """Puts a function on the list, once for each value of `each`."""

    def listed(hold: Hold) -> Hold:
        group = hold.__module__.rpartition(".")[2]
        name = f"{group}/{hold.__name__.replace('_', '-')}"
        for value in each or [None]:
            told = hold if value is None else lambda stage, value=value: hold(stage, value)
            CONVERSATIONS.append(Conversation(name if value is None else f"{name}/{value}", told, parts, wkg))
        return hold

    return listed


def installed(part: str) -> list[str] | None:
    """What setup.sh prints of a part, or nothing if it is not available."""
    began = time.monotonic()
    setup = subprocess.run([HERE / "setup.sh", part], stdout=subprocess.PIPE, text=True)
    if setup.returncode not in (0, MISSING):
        sys.exit(f"setup.sh {part} ended with {setup.returncode}")
    print(f"part {part}: {'there' if setup.returncode == 0 else 'MISSING'} ({time.monotonic() - began:.1f} s)", flush=True)
    return setup.stdout.splitlines() if setup.returncode == 0 else None


class Stage:
    """Every part, running, until `end`."""

    def __init__(self, program: str | None, scratch: Path, without: list[str]) -> None:
        self.program, self.scratch = program, scratch
        self.numbers = itertools.count(1)
        found = {part: installed(part) for part in PARTS if part not in without}
        if missing := [part for part, said in found.items() if said is None]:
            optional = "".join(f"; --without {part} leaves its conversations out" for part in missing if part in OPTIONAL)
            sys.exit(f"the check needs {' and '.join(missing)}{optional}")
        self.wkg = found["wkg"][0] if "wkg" in found else None
        self.ends = ExitStack()
        try:
            self.start(found)
        except BaseException:
            self.ends.close()
            raise

    def start(self, found: dict[str, list[str] | None]) -> None:
        self.certificates = Certificates(self.scratch)
        self.tokens = TokenServer(self.scratch)
        self.ends.callback(self.tokens.end)
        self.registries = {}
        for kind in KINDS:
            self.registries[kind] = Registry(found["registry"][0], kind, self.scratch / kind, self.certificates, self.tokens)
            self.ends.callback(self.registries[kind].end)
        self.plain, self.basic = self.registries["plain"], self.registries["basic"]
        home = self.scratch / "cosign"
        home.mkdir()
        self.cosign = Cosign(found["cosign"][0], home)
        self.key, self.other_key = self.cosign.imported_key("cosign"), self.cosign.own_key("other")
        self.services = Services(*found["keyless"], self.scratch / "sigstore")
        self.ends.callback(self.services.end)
        self.other_services = Services(*found["keyless"], self.scratch / "other-sigstore")
        self.ends.callback(self.other_services.end)

    def end(self) -> None:
        self.ends.close()

    def front(self, registry: Registry) -> Front:
        """A server before a registry, until the end of the run."""
        front = Front(registry.remote())
        self.ends.callback(front.end)
        return front

    def repository(self, prefix: str = "acme/") -> str:
        """A repository that no other conversation knows."""
        return f"{prefix}tool{next(self.numbers)}"

    def bytes(self, version: str = "a") -> bytes:
        """A component whose tool `version` answers this version; each time other bytes."""
        fixture = FIXTURES / f"versioned_{version}.wasm"
        marker = f"{next(self.numbers)}"
        return component(marker, fixture.read_bytes()) if self.program else component(marker)

    def push(self, remote: Remote, version: str = "a", repository: str | None = None, tag: str = "1") -> Image:
        return remote.push(repository or self.repository(), tag, self.bytes(version))

    def toolcell(self, host: str, keys: str = "private = true\nplain_http = true", trust: str = "", **environment: str) -> Toolcell:
        """toolcell in a folder of its own, with what every conversation may name in its manifest."""
        files = {
            "ca.pem": self.certificates.authority, "cosign.pub": self.key.public, "other.pub": self.other_key.public,
            "trusted_root.json": self.services.root, "other_root.json": self.other_services.root, "key.pem": self.key.private,
            "sbom.json": self.cosign.folder / "sbom.json", "provenance.json": self.cosign.folder / "provenance.json",
        }  # fmt: skip
        # The server of tokens is another host, at a private address as well.
        realm = urlsplit(self.tokens.realm).netloc
        text = f'[registries."{host}"]\n{keys}\n[registries."{realm}"]\nprivate = true\n{trust}'
        return Toolcell(self.program or "", self.scratch / f"toolcell{next(self.numbers)}", text, files, **environment)

    def toolcell_for(self, registry: Registry, trust: str = "", user: str = USER, password: str = PASSWORD) -> Toolcell:
        """The same with a name and password in the manifest, where the registry asks for these."""
        keys = registry.keys()
        if registry.kind in ("basic", "token"):
            keys += f'\nuser = "{user}"\npassword = "env:CHECK_PASSWORD"'
        return self.toolcell(registry.host, keys, trust, CHECK_PASSWORD=password)


def source(host: str, image: Image) -> str:
    """An image as `toolcell add` takes it."""
    return f"oci://{host}/{image.repository}:{image.tag}"


def trust(host: str, *signers: str, require: tuple[str, ...] = ("signature",), prefix: str = "acme/", root: str = "") -> str:
    """The section of the manifest that says who has to have signed."""
    required = ", ".join(f'"{what}"' for what in require)
    lines = [f'[trust."{host}/{prefix}"]', f"signed_by = [{', '.join(signers)}]", f"require = [{required}]"]
    return "\n".join([*lines, *([f'root = "{root}"'] if root else [])])
