"""The parts among themselves, without toolcell: a failure here says nothing of it."""

from __future__ import annotations

import json
import ssl
from urllib.error import HTTPError, URLError

from oci import BUNDLE, Remote, component, sha256
from processes import run
from registry import KINDS, PUBLIC, USER
from signers import IDENTITY, PREDICATES
from stage import Stage, conversation
from toolcell import check


def status(remote: Remote, repository: str, tag: str = "1") -> int:
    """The status that a client gets for a manifest; 0 if it does not believe the certificate."""
    try:
        remote.read(repository, tag)
        return 200
    except HTTPError as refused:
        return refused.code
    except URLError as problem:
        check(isinstance(problem.reason, ssl.SSLError), "the client names the certificate", problem)
        return 0


@conversation(parts=True, each=KINDS)
def registry(stage: Stage, kind: str) -> None:
    """Those who have access push and pull; others do not."""
    registry = stage.registries[kind]
    remote = registry.remote()
    image = stage.push(remote)
    check(remote.digest(image.repository, "1") == image.digest, "the tag stands for what was pushed")
    content = remote.blob(image.repository, image.layer)
    check(sha256(content) == image.layer, "the component comes back as it was")
    stranger = Remote(registry.host, authority=None)
    wrong = Remote(registry.host, USER, "wrong")
    if kind == "tls":
        stranger.base = wrong.base = f"https://{registry.host}"
    expected = {"plain": 200, "basic": 401, "tls": 0, "token": 401}[kind]
    check(status(stranger, image.repository) == expected, "a stranger gets what this kind gives strangers")
    check(status(wrong, image.repository) == expected, "so does a wrong password")
    with registry.down():
        try:
            remote.read(image.repository, "1")
            check(False, "the registry is down")
        except (URLError, ConnectionError):
            pass
    check(remote.digest(image.repository, "1") == image.digest, "it keeps everything over a new start")


@conversation(parts=True)
def token_of_a_stranger(stage: Stage) -> None:
    """The token server lets anybody pull what is public, and counts it."""
    registry = stage.registries["token"]
    image = stage.push(registry.remote(), repository=stage.repository(PUBLIC))
    realm = Remote(registry.realm.split("/")[2])
    for scope, expected in ((f"repository:{image.repository}:pull", 200), ("repository:acme/none:pull", 401)):
        token = json.loads(realm.ask("GET", f"{registry.realm}?service=check&scope={scope}")[0])["token"]
        plain = Remote(registry.host)
        plain.headers["Authorization"] = f"Bearer {token}"
        check(status(plain, image.repository) == expected, f"a token for {scope} is good for what it says")
    check((None, "repository:acme/none:pull") in stage.tokens.given, "the tokens are counted")


@conversation(parts=True)
def referrers(stage: Stage) -> None:
    """The server before the registry lists what cosign attached, with the type that each manifest says."""
    front = stage.front(stage.plain)
    image = stage.push(stage.plain.remote())
    stage.cosign.sign(front.host, image, stage.key)
    listed = json.loads(Remote(front.host).ask("GET", f"/v2/{image.repository}/referrers/{image.digest}")[0])["manifests"]
    check([found["artifactType"] for found in listed] == [BUNDLE], "the Referrers API lists the signature", listed)
    check(stage.cosign.verifies(front.host, image, stage.key).returncode == 0, "cosign finds it by that API")
    asked = [path for _, path, _ in front.asked if "/referrers/" in path]
    check(asked, "cosign asks the API")


@conversation(parts=True, each=["bundle", "tag"])
def cosign_with_keys(stage: Stage, form: str) -> None:
    """cosign verifies its own signatures and refuses others, in both forms."""
    old, host, cosign = form == "tag", stage.plain.host, stage.cosign
    image, unsigned = stage.push(stage.plain.remote()), stage.push(stage.plain.remote())
    cosign.sign(host, image, stage.key, old)
    tags = json.loads(stage.plain.remote().ask("GET", f"/v2/{image.repository}/tags/list")[0])["tags"]
    check((image.digest.replace(":", "-") + (".sig" if old else "")) in tags, "the signature is under its tag", tags)
    check(cosign.verifies(host, image, stage.key, old=old).returncode == 0, "the right key verifies")
    check(cosign.verifies(host, image, stage.other_key, old=old).returncode != 0, "another does not")
    check(cosign.verifies(host, unsigned, stage.key, old=old).returncode != 0, "nor does what nobody signed")


@conversation(parts=True, each=list(PREDICATES))
def cosign_attests(stage: Stage, kind: str) -> None:
    """cosign attaches what is known of an image, and verifies it."""
    host, cosign, image = stage.plain.host, stage.cosign, stage.push(stage.plain.remote())
    cosign.attest(host, image, stage.key, kind)
    check(cosign.verifies(host, image, stage.key, kind).returncode == 0, "the right key verifies")
    check(cosign.verifies(host, image, stage.other_key, kind).returncode != 0, "another does not")
    check(cosign.verifies(host, image, stage.key).returncode == 0, "to cosign an attestation alone is a signature")
    (other,) = set(PREDICATES) - {kind}
    check(cosign.verifies(host, image, stage.key, other).returncode != 0, "another kind of predicate is missing")


@conversation(parts=True, each=["sigstore-client", "cosign"])
def keyless(stage: Stage, signer: str) -> None:
    """A signature without a key holds for its identity, issuer and root, and for nothing else. cosign says so."""
    host, cosign, root = stage.plain.host, stage.cosign, stage.services.root
    remote = stage.plain.remote()
    image = stage.push(remote)
    if signer == "cosign":
        cosign.sign_keyless(host, image, stage.services)
    else:
        remote.attach(image, stage.services.bundle(image))
    good = cosign.verifies_keyless(host, image, root)
    check(good.returncode == 0, "the right identity and issuer verify", good.stderr.decode())
    check(cosign.verifies_keyless(host, image, root, identity=IDENTITY[:-1]).returncode != 0, "a beginning of it does not")
    check(cosign.verifies_keyless(host, image, root, issuer="https://example.com").returncode != 0, "nor does another issuer")
    check(cosign.verifies_keyless(host, image, stage.other_services.root).returncode != 0, "nor does another root")


@conversation(parts=True, wkg=True)
def wkg(stage: Stage) -> None:
    """wkg pushes a component and pulls the same bytes."""
    content, folder = stage.bytes(), stage.scratch / "wkg"
    folder.mkdir()
    (folder / "in.wasm").write_bytes(content)
    repository = stage.repository()
    at = ["--insecure", stage.plain.host, f"{stage.plain.host}/{repository}:1"]
    run([stage.wkg, "oci", "push", *at, folder / "in.wasm"], folder=folder, HOME=str(folder))
    (layer,) = stage.plain.remote().read(repository, "1")["layers"]
    check(layer["digest"] == sha256(content), "the layer is the component's own bytes", layer)
    run([stage.wkg, "oci", "pull", *at, "--output", folder / "out.wasm"], folder=folder, HOME=str(folder))
    check((folder / "out.wasm").read_bytes() == content, "the component comes back as it was")


@conversation(parts=True)
def other_bytes(stage: Stage) -> None:
    """The server before the registry gives other bytes on request."""
    front = stage.front(stage.plain)
    image = stage.push(stage.plain.remote())
    check(sha256(Remote(front.host).blob(image.repository, image.layer)) == image.layer, "it passes bytes on")
    front.manner = "other-blob"
    check(sha256(Remote(front.host).blob(image.repository, image.layer)) != image.layer, "it gives others")
    front.manner = "elsewhere"
    check(sha256(Remote(front.host).blob(image.repository, image.layer)) == image.layer, "it sends clients to another host")
    check(sha256(component("x")) != sha256(component("y")), "components differ by their marker")
