"""A server before a docker-registry: it adds the Referrers API, tells what was asked, and can be a bad registry.

It passes every request on. Must not hold: signatures, commands of toolcell.
"""

from __future__ import annotations

import http.client
import json
import re
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.error import HTTPError

from oci import INDEX, Remote
from processes import Listening

NAME = r"/v2/(.+?)/"
REFERRERS = re.compile(NAME + r"referrers/(sha256:[0-9a-f]{64})")
BLOB, MANIFEST = re.compile(NAME + r"blobs/sha256:"), re.compile(NAME + r"manifests/")
# What the address of a blob ends with after it was sent to another host.
ELSEWHERE = "?elsewhere"
# The bytes of one answer that a broken registry never ends: more than any limit for a component.
ENDLESS_BYTES = 1 << 34
CHUNK = bytes(1 << 16)

MANNERS = ["good", "other-blob", "other-manifest", "endless-blob", "endless-manifest", "elsewhere"]
"""How it answers. `elsewhere` sends clients that ask for a blob to a host of another name."""


class Front:
    """The address of a registry with the Referrers API. `asked` has each request's method, path and headers."""

    def __init__(self, remote: Remote) -> None:
        self.remote, self.manner = remote, "good"
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        front = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                front.asked.append((self.command, self.path, {name.lower(): value for name, value in self.headers.items()}))
                try:
                    front.answer(self)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = answer

            def log_message(self, *_: object) -> None:
                pass

        self.server = Listening(Handler)
        self.host = f"127.0.0.1:{self.server.server_port}"

    def end(self) -> None:
        self.server.end()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answers as a test wants, or as the registry does."""
        reads = request.command == "GET"
        blob, manifest = reads and BLOB.match(request.path), reads and MANIFEST.match(request.path)
        if found := REFERRERS.match(request.path):
            send(request, 200, {"Content-Type": INDEX}, json.dumps(self.referrers(*found.groups())).encode())
        elif blob and self.manner == "elsewhere" and ELSEWHERE not in request.path:
            send(request, 307, {"Location": f"http://localhost:{self.server.server_port}{request.path}{ELSEWHERE}"}, b"")
        elif (blob and self.manner == "endless-blob") or (manifest and self.manner == "endless-manifest"):
            endless(request)
        else:
            self.pass_on(request, bool((blob and self.manner == "other-blob") or (manifest and self.manner == "other-manifest")))

    def pass_on(self, request: BaseHTTPRequestHandler, other: bool) -> None:
        """Asks the registry. `other` turns the last byte of the answer into another."""
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        connection = http.client.HTTPConnection(self.remote.host, timeout=60)
        kept = {name: value for name, value in request.headers.items() if name.lower() not in ("transfer-encoding", "connection")}
        if ELSEWHERE in request.path:
            kept.update(self.remote.headers)
        connection.request(request.command, request.path, body, kept)
        answer = connection.getresponse()
        content = answer.read()
        headers = {name: value for name, value in answer.getheaders() if name.lower() not in ("connection", "transfer-encoding", "date")}
        if other and content:
            content = content[:-1] + bytes([content[-1] ^ 1])
        if request.command == "PUT" and MANIFEST.match(request.path) and answer.status == 201:
            if subject := json.loads(body).get("subject"):
                headers["OCI-Subject"] = subject["digest"]
                self.list_under_tag(request.path.split("/manifests/")[0].removeprefix("/v2/"), subject, body, headers)
        connection.close()
        send(request, answer.status, headers, content)

    def list_under_tag(self, repository: str, subject: dict[str, Any], body: bytes, headers: dict[str, str]) -> None:
        """Remembers a referrer where `referrers` looks for it: clients do not, once they see the header."""
        manifest = json.loads(body)
        described = {"mediaType": manifest["mediaType"], "digest": headers["Docker-Content-Digest"], "size": len(body)}
        listed = [known for known in self.under_tag(repository, subject["digest"]) if known["digest"] != described["digest"]]
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [*listed, described]}
        self.remote.push_manifest(repository, subject["digest"].replace(":", "-"), index)

    def under_tag(self, repository: str, digest: str) -> list[dict[str, Any]]:
        try:
            return self.remote.read(repository, digest.replace(":", "-"))["manifests"]
        except HTTPError:
            return []

    def referrers(self, repository: str, digest: str) -> dict[str, Any]:
        """The list as the specification has it: what each manifest says of itself, not what its index says of it."""
        listed = []
        for known in self.under_tag(repository, digest):
            manifest = self.remote.read(repository, known["digest"])
            kind = manifest.get("artifactType") or manifest["config"]["mediaType"]
            listed.append({**known, "artifactType": kind, "annotations": manifest.get("annotations", {})})
        return {"schemaVersion": 2, "mediaType": INDEX, "manifests": listed}


def send(request: BaseHTTPRequestHandler, status: int, headers: dict[str, str], content: bytes) -> None:
    request.send_response(status)
    for name, value in headers.items():
        if name.lower() != "content-length" or request.command == "HEAD":
            request.send_header(name, value)
    if request.command != "HEAD":
        request.send_header("Content-Length", str(len(content)))
    request.end_headers()
    if request.command != "HEAD":
        request.wfile.write(content)


def endless(request: BaseHTTPRequestHandler) -> None:
    """Sends zeros until the other side has had enough."""
    request.send_response(200)
    request.send_header("Content-Type", "application/octet-stream")
    request.send_header("Transfer-Encoding", "chunked")
    request.end_headers()
    request.close_connection = True
    for _ in range(ENDLESS_BYTES // len(CHUNK)):
        request.wfile.write(b"%x\r\n%s\r\n" % (len(CHUNK), CHUNK))
