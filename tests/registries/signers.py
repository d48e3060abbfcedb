"""Those who sign images: cosign with keys, cosign and sigstore's own client without, and the roots to verify them by.

Nothing reaches a host outside: cosign knows no public service, and only a proxy that does not exist.
Must not hold: commands of toolcell.
"""

from __future__ import annotations

import base64
import json
import time
import urllib.request
from pathlib import Path
from typing import Any

from oci import ANSWER_S, Image, statement
from processes import Done, Server, attempt, run

IDENTITY = "https://github.com/acme/tools/.github/workflows/release.yml@refs/heads/main"
ISSUER = "https://token.actions.githubusercontent.com"
NOBODY = "http://127.0.0.1:9"
SPDX = {
    "spdxVersion": "SPDX-2.3",
    "dataLicense": "CC0-1.0",
    "SPDXID": "SPDXRef-DOCUMENT",
    "name": "tool",
    "documentNamespace": "https://example.com/tool",
    "creationInfo": {"created": "2026-01-01T00:00:00Z", "creators": ["Tool: check"]},
    "packages": [{"name": "tool", "SPDXID": "SPDXRef-tool", "downloadLocation": "NOASSERTION", "filesAnalyzed": False}],
}
PROVENANCE = {
    "buildDefinition": {
        "buildType": "https://example.com/build",
        "externalParameters": {"ref": "refs/heads/main"},
        "internalParameters": {},
        "resolvedDependencies": [],
    },
    "runDetails": {"builder": {"id": "https://example.com/builder"}, "metadata": {"invocationId": "1"}},
}
# The names that cosign has for kinds of predicates, and the file of each.
PREDICATES = {"spdxjson": "sbom.json", "slsaprovenance1": "provenance.json"}
# These have cosign sign without any service. It calls the first and the last deprecated, and has no other way for
# signatures under the old tag.
OFFLINE = ["--tlog-upload=false", "--use-signing-config=false"]
OLD = "--new-bundle-format=false"


class Key:
    """A key pair of P-256: PEM as toolcell takes it, and the form that cosign encrypts."""

    def __init__(self, folder: Path, name: str) -> None:
        self.private, self.public = folder / f"{name}.pem", folder / f"{name}.pub"
        self.encrypted = folder / f"{name}.key"


class Cosign:
    """cosign, with a home of its own, so that nobody's credentials are read."""

    def __init__(self, program: str, folder: Path) -> None:
        self.program, self.folder = program, folder
        self.environment = {
            "HOME": str(folder), "DOCKER_CONFIG": str(folder), "COSIGN_PASSWORD": "check", "TUF_ROOT": str(folder / "tuf"),
            "HTTPS_PROXY": NOBODY, "HTTP_PROXY": NOBODY, "NO_PROXY": "127.0.0.1",
        }  # fmt: skip
        (folder / "sbom.json").write_text(json.dumps(SPDX))
        (folder / "provenance.json").write_text(json.dumps(PROVENANCE))
        self.no_root = folder / "no_root.json"
        no = ["--no-default-fulcio", "--no-default-rekor", "--no-default-ctfe", "--no-default-tsa"]
        self.run("trusted-root", "create", *no, "--out", self.no_root)

    def run(self, *arguments: str | Path) -> bytes:
        return run([self.program, *arguments], folder=self.folder, **self.environment)

    def succeeds(self, *arguments: str | Path) -> Done:
        return attempt([self.program, *arguments], folder=self.folder, **self.environment)

    def own_key(self, name: str) -> Key:
        """A key pair that cosign makes, as most signers have it. It has no file in PEM for toolcell."""
        self.run("generate-key-pair", "--output-key-prefix", name)
        return Key(self.folder, name)

    def imported_key(self, name: str) -> Key:
        """A key pair that openssl makes, for toolcell and cosign both."""
        key = Key(self.folder, name)
        run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key.private])
        self.run("import-key-pair", "--key", key.private, "--output-key-prefix", name)
        return key

    def sign(self, host: str, image: Image, key: Key, old: bool = False) -> None:
        """Signs as a referrer with a bundle, or under the tag that ends in `.sig`."""
        self.run("sign", "--yes", "--key", key.encrypted, *OFFLINE, *([OLD] if old else []), named(host, image))

    def attest(self, host: str, image: Image, key: Key, kind: str) -> None:
        """Signs an SBOM or provenance for the image."""
        predicate = ["--type", kind, "--predicate", self.folder / PREDICATES[kind]]
        self.run("attest", "--yes", "--key", key.encrypted, *OFFLINE, *predicate, named(host, image))

    def sign_keyless(self, host: str, image: Image, services: Services) -> None:
        """Signs with a certificate for `IDENTITY`."""
        service = f"url={services.server.address},api-version=1,start-time=2024-01-01T00:00:00Z,operator=check"
        config = self.folder / "signing_config.json"
        no = ["--no-default-fulcio", "--no-default-oidc", "--no-default-rekor", "--no-default-tsa"]
        at = ["--fulcio", service, "--rekor", service, "--rekor-config", "ANY"]
        self.run("signing-config", "create", *no, *at, "--out", config)
        by = ["--signing-config", config, "--trusted-root", services.root, "--identity-token", token(IDENTITY, ISSUER)]
        self.run("sign", "--yes", *by, named(host, image))

    def verifies(self, host: str, image: Image, key: Key, kind: str | None = None, old: bool = False) -> Done:
        """cosign's verdict on a signature, or on a predicate of this kind."""
        by = ["--key", key.public, "--insecure-ignore-tlog", "--trusted-root", self.no_root]
        what = ["verify-attestation", "--type", kind] if kind else ["verify"]
        if old:
            by = ["--key", key.public, "--insecure-ignore-tlog", OLD]
        return self.succeeds(*what, *by, named(host, image))

    def verifies_keyless(self, host: str, image: Image, root: Path, identity: str = IDENTITY, issuer: str = ISSUER) -> Done:
        by = ["--trusted-root", root, "--certificate-identity", identity, "--certificate-oidc-issuer", issuer]
        return self.succeeds("verify", *by, named(host, image))


class Services:
    """sigstore's services, as their own mocks stand in for them. Each one is a trust root of its own."""

    def __init__(self, node: str, packages: str, folder: Path) -> None:
        folder.mkdir()
        program = Path(__file__).resolve().parent / "node/keyless.mjs"
        self.root = folder / "trusted_root.json"
        self.server = Server([node, str(program), str(folder)], folder / "log", r"(http://127\.0\.0\.1:\d+)\n", Path(packages))

    def end(self) -> None:
        self.server.end()

    def bundle(self, image: Image, identity: str = IDENTITY, issuer: str = ISSUER, witness: str = "rekor", **said: Any) -> bytes:
        """A bundle of a statement about the image, signed by sigstore's client for Node."""
        asked = {"identity": identity, "issuer": issuer, "witness": witness, "statement": statement(image, **said)}
        request = urllib.request.Request(f"{self.server.address}/sign", json.dumps(asked).encode())
        with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
            return answer.read()


def named(host: str, image: Image) -> str:
    return f"{host}/{image.repository}@{image.digest}"


def token(identity: str, issuer: str) -> str:
    """A token as an issuer gives it. The stand-in of Fulcio believes each."""
    now = int(time.time())
    claims = {"iss": issuer, "sub": identity, "aud": "sigstore", "iat": now, "exp": now + 3600}
    parts = [json.dumps(part).encode() for part in ({"alg": "RS256"}, claims, {})]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)
