"""Registries on the loopback: docker-registry in four ways to get in, and the server that gives tokens for one of them.

Debian's docker-registry 2.8 has no Referrers API, so signatures are found by their tag. `front.py` adds that API.
Must not hold: signatures, commands of toolcell.
"""

from __future__ import annotations

import json
import time
from base64 import b64decode, urlsafe_b64encode
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Iterator
from urllib.parse import parse_qs, urlsplit

from oci import Remote
from processes import Listening, Server, run

USER, PASSWORD = "ann", "open sesame"
# docker-registry takes passwords as bcrypt only, which Python's own library does not write on every system.
HTPASSWD = "ann:$2b$04$abcdefghijklmnopqrstuu/LVz6MZlItEy42I2juLihZ66HnQx/cy\n"

KINDS = ["plain", "basic", "tls", "token"]
SERVICE, ISSUER = "check", "check-tokens"
TOKEN_S = 300
# Repositories that anybody may pull from, with a token all the same, as the large public registries have it.
PUBLIC = "public/"

CONFIGURATION = """version: 0.1
log: {{level: info, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: {storage}}}, delete: {{enabled: true}}}}
http: {{addr: "127.0.0.1:{port}", secret: check{tls}}}
{auth}"""


class Certificates:
    """A certificate authority, and a certificate of it for the loopback, made anew for each run.

    openssl is there wherever TLS is, and a certificate that is made never ends before the tests do. A file in the
    repository would need a private key there, which searches for leaked keys report.
    """

    def __init__(self, folder: Path) -> None:
        self.authority, self.certificate, self.key = folder / "ca.pem", folder / "server.pem", folder / "server.key"
        new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30"]
        authority_key = folder / "ca.key"
        run([*new, "-subj", "/CN=check's authority", "-keyout", authority_key, "-out", self.authority])
        names = ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"]
        use = ["-addext", "extendedKeyUsage=serverAuth"]
        by = ["-CA", self.authority, "-CAkey", authority_key]
        run([*new, *by, "-subj", "/CN=127.0.0.1", *names, *use, "-keyout", self.key, "-out", self.certificate])


class TokenServer:
    """Gives Bearer tokens, as the distribution's specification of them has it: signed with RS256 by openssl."""

    def __init__(self, folder: Path) -> None:
        self.key, self.certificate = folder / "token.key", folder / "token.pem"
        new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=check's tokens"]
        run([*new, "-keyout", self.key, "-out", self.certificate])
        self.chain = "".join(self.certificate.read_text().split("-----")[2].split())
        self.given: list[tuple[str | None, str]] = []
        """Each token that was given: the user, and the scope asked for."""
        tokens = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                tokens.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.server = Listening(Handler)
        self.realm = f"http://127.0.0.1:{self.server.server_port}/token"

    def end(self) -> None:
        self.server.end()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Gives a token for what the user may do, or 401 for a wrong password."""
        said = request.headers.get("Authorization", "")
        user = USER if said.startswith("Basic ") and b64decode(said[6:]).decode() == f"{USER}:{PASSWORD}" else None
        if said and user is None:
            request.send_error(401)
            return
        scopes = " ".join(parse_qs(urlsplit(request.path).query).get("scope", []))
        self.given.append((user, scopes))
        access = [self.access(scope, user) for scope in scopes.split()]
        token = self.signed([allowed for allowed in access if allowed])
        body = json.dumps({"token": token, "access_token": token, "expires_in": TOKEN_S}).encode()
        request.send_response(200)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def access(self, scope: str, user: str | None) -> dict[str, object] | None:
        """What a scope allows this user."""
        kind, name, actions = (scope.split(":") + ["", ""])[:3]
        asked = [action for action in actions.split(",") if user or (action == "pull" and name.startswith(PUBLIC))]
        return {"type": kind, "name": name, "actions": asked} if asked else None

    def signed(self, access: list[dict[str, object]]) -> str:
        now = int(time.time())
        times = {"nbf": now - 60, "iat": now, "exp": now + TOKEN_S}
        claims = {"iss": ISSUER, "sub": "", "aud": SERVICE, "jti": str(now), **times, "access": access}
        text = ".".join(encoded(json.dumps(part).encode()) for part in ({"typ": "JWT", "alg": "RS256", "x5c": [self.chain]}, claims))
        return f"{text}.{encoded(run(['openssl', 'dgst', '-sha256', '-sign', self.key], input=text.encode()))}"


def encoded(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()


class Registry:
    """One docker-registry. It keeps its address when it is started again."""

    def __init__(self, program: str, kind: str, folder: Path, certificates: Certificates, tokens: TokenServer) -> None:
        folder.mkdir()
        self.program, self.kind, self.folder, self.storage = program, kind, folder, folder / "storage"
        self.certificates, self.realm = certificates, tokens.realm
        (folder / "htpasswd").write_text(HTPASSWD)
        tokens_of = f'realm: "{tokens.realm}", service: {SERVICE}, issuer: {ISSUER}, rootcertbundle: {tokens.certificate}'
        self.auth = {
            "basic": f"auth: {{htpasswd: {{realm: check, path: {folder}/htpasswd}}}}\n",
            "token": f"auth: {{token: {{{tokens_of}}}}}\n",
        }.get(kind, "")
        self.port = 0
        self.start()

    def start(self) -> None:
        files = self.certificates
        tls = f", tls: {{certificate: {files.certificate}, key: {files.key}}}" if self.kind == "tls" else ""
        configuration = self.folder / "config.yml"
        configuration.write_text(CONFIGURATION.format(storage=self.storage, port=self.port, tls=tls, auth=self.auth))
        command = [self.program, "serve", str(configuration)]
        self.server = Server(command, self.folder / "log", r"listening on 127\.0\.0\.1:(\d+)", OTEL_TRACES_EXPORTER="none")
        self.port = int(self.server.address)
        self.host = f"127.0.0.1:{self.port}"

    def end(self) -> None:
        self.server.end()

    @contextmanager
    def down(self) -> Iterator[None]:
        """Ends the registry for as long as the block lasts."""
        self.end()
        try:
            yield
        finally:
            self.start()

    def remote(self) -> Remote:
        """A client that may do everything."""
        if self.kind == "tls":
            return Remote(self.host, authority=self.certificates.authority)
        if self.kind == "token":
            return BearerRemote(self.host, self.realm)
        return Remote(self.host, *((USER, PASSWORD) if self.kind == "basic" else ()))

    def keys(self) -> str:
        """The keys of the manifest with which toolcell reaches this registry."""
        lines = ["private = true"]
        lines += ['authorities = "ca.pem"'] if self.kind == "tls" else ["plain_http = true"]
        return "\n".join(lines)


class BearerRemote(Remote):
    """A client that gets a token for each repository it names."""

    def __init__(self, host: str, realm: str) -> None:
        super().__init__(host)
        self.realm = realm

    def ask(self, method: str, path: str, data: bytes | None = None, **headers: str):
        name = urlsplit(path).path.removeprefix("/v2/")
        for end in ("/blobs/", "/manifests/", "/tags/"):
            name = name.split(end)[0]
        user = Remote(urlsplit(self.realm).netloc, USER, PASSWORD)
        token = json.loads(user.ask("GET", f"{self.realm}?service={SERVICE}&scope=repository:{name}:pull,push")[0])["token"]
        return super().ask(method, path, data, Authorization=f"Bearer {token}", **headers)
