"""A small client of OCI registries, for what a tool would not do: move a tag, attach a signature to the wrong image.

It speaks the distribution specification 1.1 without its Referrers API: referrers are listed under the tag that the
specification falls back to. Must not hold: anything of toolcell, cosign or wkg.
"""

from __future__ import annotations

import hashlib
import json
import ssl
import urllib.error
import urllib.request
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
EMPTY = "application/vnd.oci.empty.v1+json"
WASM, WASM_CONFIG = "application/wasm", "application/vnd.wasm.config.v0+json"
BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
SIGNED = "https://sigstore.dev/cosign/sign/v1"
"""The predicate type of a signature that says nothing but that it is one."""

ANSWER_S = 60
"""Seconds for one answer. Over loopback it takes milliseconds."""


def sha256(content: bytes) -> str:
    """The digest of these bytes as OCI writes it."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def component(marker: str, base: bytes = b"\0asm\x0d\0\x01\0") -> bytes:
    """A component of other bytes than `base`, which does the same: it has a section more, of at most 100 bytes."""
    name, text = b"check", marker.encode()
    body = bytes([len(name)]) + name + text
    if len(body) > 127:
        raise ValueError("the length of the section has one byte")
    return base + b"\0" + bytes([len(body)]) + body


@dataclass(frozen=True)
class Image:
    """One image in a registry."""

    repository: str
    tag: str
    digest: str
    layer: str
    size: int

    def descriptor(self) -> dict[str, Any]:
        return {"mediaType": MANIFEST, "digest": self.digest, "size": self.size}


class Remote:
    """A registry's host, with a user's name and password, or with the authority of its certificate."""

    def __init__(self, host: str, user: str | None = None, password: str | None = None, authority: Path | None = None) -> None:
        self.host, self.base = host, f"{'https' if authority else 'http'}://{host}"
        self.context = ssl.create_default_context(cafile=str(authority)) if authority else None
        self.headers = {}
        if user is not None:
            self.headers["Authorization"] = "Basic " + b64encode(f"{user}:{password}".encode()).decode()

    def ask(self, method: str, path: str, data: bytes | None = None, **headers: str) -> tuple[bytes, Any]:
        """The body and headers of an answer. Raises `HTTPError` for statuses from 400 on."""
        url = path if path.startswith("http") else self.base + path
        sent = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        request = urllib.request.Request(url, data, sent, method=method)
        with urllib.request.urlopen(request, timeout=ANSWER_S, context=self.context) as answer:
            return answer.read(), answer.headers

    def push_blob(self, repository: str, content: bytes) -> dict[str, Any]:
        """Uploads bytes. Returns their digest and size, as descriptors have them."""
        digest = sha256(content)
        _, headers = self.ask("POST", f"/v2/{repository}/blobs/uploads/", b"")
        place = headers["Location"]
        place += ("&" if "?" in place else "?") + f"digest={digest}"
        self.ask("PUT", place, content, Content_Type="application/octet-stream")
        return {"digest": digest, "size": len(content)}

    def push_manifest(self, repository: str, reference: str, manifest: dict[str, Any]) -> tuple[str, int]:
        """Uploads a manifest under a tag or its own digest. Returns its digest and size."""
        content = json.dumps(manifest).encode()
        self.ask("PUT", f"/v2/{repository}/manifests/{reference or sha256(content)}", content, Content_Type=manifest["mediaType"])
        return sha256(content), len(content)

    def push(self, repository: str, tag: str, content: bytes) -> Image:
        """Uploads a component as the working group for WebAssembly lays it out."""
        layer = self.push_blob(repository, content)
        config = {"created": "2026-01-01T00:00:00Z", "architecture": "wasm", "os": "wasip2", "layerDigests": [layer["digest"]]}
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {"mediaType": WASM_CONFIG, **self.push_blob(repository, json.dumps(config).encode())},
            "layers": [{"mediaType": WASM, **layer}],
        }
        digest, size = self.push_manifest(repository, tag, manifest)
        return Image(repository, tag, digest, layer["digest"], size)

    def read(self, repository: str, reference: str) -> dict[str, Any]:
        """A manifest or an index."""
        return json.loads(self.ask("GET", f"/v2/{repository}/manifests/{reference}", Accept=f"{MANIFEST}, {INDEX}")[0])

    def digest(self, repository: str, reference: str) -> str:
        """The digest that a tag stands for."""
        return self.ask("HEAD", f"/v2/{repository}/manifests/{reference}", Accept=f"{MANIFEST}, {INDEX}")[1]["Docker-Content-Digest"]

    def blob(self, repository: str, digest: str) -> bytes:
        return self.ask("GET", f"/v2/{repository}/blobs/{digest}")[0]

    def move_tag(self, image: Image, tag: str) -> None:
        """Puts a tag on an image of the same repository."""
        content = self.ask("GET", f"/v2/{image.repository}/manifests/{image.digest}", Accept=MANIFEST)[0]
        self.ask("PUT", f"/v2/{image.repository}/manifests/{tag}", content, Content_Type=MANIFEST)

    def referrers(self, image: Image) -> list[dict[str, Any]]:
        """Descriptors under the tag that stands in for the Referrers API."""
        try:
            return self.read(image.repository, image.digest.replace(":", "-"))["manifests"]
        except urllib.error.HTTPError as problem:
            if problem.code == 404:
                return []
            raise

    def attach(self, image: Image, bundle: bytes, predicate_type: str = SIGNED) -> str:
        """Attaches a sigstore bundle to an image, as cosign 3 does. Returns the digest of the referrer."""
        repository = image.repository
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": BUNDLE,
            "config": {"mediaType": EMPTY, **self.push_blob(repository, b"{}")},
            "layers": [{"mediaType": BUNDLE, **self.push_blob(repository, bundle)}],
            "subject": image.descriptor(),
            "annotations": {"dev.sigstore.bundle.content": "dsse-envelope", "dev.sigstore.bundle.predicateType": predicate_type},
        }
        digest, size = self.push_manifest(repository, "", manifest)
        described = {"mediaType": MANIFEST, "digest": digest, "size": size, "artifactType": BUNDLE}
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [*self.referrers(image), described]}
        self.push_manifest(repository, image.digest.replace(":", "-"), index)
        return digest

    def bundles(self, image: Image) -> list[bytes]:
        """The sigstore bundles of an image's referrers."""
        manifests = [self.read(image.repository, found["digest"]) for found in self.referrers(image)]
        bundled = [manifest for manifest in manifests if manifest.get("artifactType") == BUNDLE]
        return [self.blob(image.repository, manifest["layers"][0]["digest"]) for manifest in bundled]


def statement(image: Image, predicate_type: str = SIGNED, predicate: Any = None) -> dict[str, Any]:
    """An in-toto statement about an image."""
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": image.repository, "digest": {"sha256": image.digest.removeprefix("sha256:")}}],
        "predicateType": predicate_type,
        "predicate": predicate or {},
    }
