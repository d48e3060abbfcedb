"""A component that two keys have signed, one after the other: the lock of a folder pins the first, and a manifest beside
names what the second has signed. Both are in the store. Must not hold: the browser.
"""

from __future__ import annotations

import hashlib
import http.server
import re
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

REPOSITORY = "acme/text"
# Key pairs as PEM: the host takes those of Ed25519 in PKCS #8.
KEYS = """
const { generateKeyPairSync } = require('node:crypto');
const { writeFileSync } = require('node:fs');
for (const name of ['ann', 'bob']) {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    writeFileSync(`${name}.key`, privateKey.export({ type: 'pkcs8', format: 'pem' }));
    writeFileSync(`${name}.pub`, publicKey.export({ type: 'spki', format: 'pem' }));
}
"""


class Registry(http.server.ThreadingHTTPServer):
    """A registry that keeps everything in memory: pushes and pulls, without referrers."""

    def __init__(self) -> None:
        self.kept: dict[str, tuple[str, bytes]] = {}
        super().__init__(("127.0.0.1", 0), Answer)
        self.name = f"127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class Answer(http.server.BaseHTTPRequestHandler):
    """One answer of the registry."""

    protocol_version = "HTTP/1.1"
    server: Registry

    def do_GET(self) -> None:
        kind, content = self.server.kept.get(self.path, ("", b""))
        found = self.path in self.server.kept or self.path == "/v2/"
        self.answer(200 if found else 404, kind or "application/octet-stream", content)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        self.body()
        self.answer(202, location=f"{self.path}one")

    def do_PUT(self) -> None:
        content = self.body()
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        folder = re.sub(r"(blobs|manifests)/.*", r"\1/", self.path)
        for path in {folder + digest, self.path.partition("?")[0]}:
            self.server.kept[path] = (self.headers.get("content-type", ""), content)
        self.answer(201, location=folder + digest)

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("content-length", 0)))

    def answer(self, status: int, kind: str = "text/plain", content: bytes = b"", location: str = "") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        if location:
            self.send_header("location", location)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def lay_signed(node: str, folder: Path, component: Path, command: Callable[..., str]) -> None:
    """Adds what ann has signed to the manifest of the folder, and writes other.toml, with what bob has signed."""
    subprocess.run([node, "-e", KEYS], cwd=folder, check=True)
    manifest = folder / "toolcell.toml"
    with Registry() as registry:
        manifest.write_text(manifest.read_text().replace("REGISTRY", registry.name))
        reference = f"oci://{registry.name}/{REPOSITORY}:1"
        command("push", reference, str(component), "--sign-key", "ann.key")
        command("add", reference, "--name", "text", "--yes")
        pinned = manifest.read_text()
        # Another annotation makes it another manifest of the same bytes.
        command("push", reference, str(component), "--sign-key", "bob.key", "--annotation", "n=2")
        _, moved = registry.kept[f"/v2/{REPOSITORY}/manifests/1"]
        other = re.sub(r"@sha256:[0-9a-f]{64}", f"@sha256:{hashlib.sha256(moved).hexdigest()}", pinned)
        manifest.write_text(other)
        command("pull")
    (folder / "other.toml").write_text(other)
    manifest.write_text(pinned)
