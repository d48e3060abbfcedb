"""Pushing: what toolcell uploads and signs is what others pull and verify."""

from __future__ import annotations

from oci import Image, Remote, WASM, sha256
from processes import run
from registry import KINDS, Registry
from signers import PREDICATES
from stage import Stage, conversation, source, trust
from toolcell import Toolcell, check

# The flag and file of each kind of predicate.
FLAGS = {"spdxjson": "--sbom", "slsaprovenance1": "--provenance"}


def pushed(stage: Stage, registry: Registry, *flags: str, rules: str = "") -> tuple[Toolcell, Image, bytes]:
    """A component that toolcell pushed, and the image it became."""
    toolcell, content, repository = stage.toolcell_for(registry, rules), stage.bytes(), stage.repository()
    (toolcell.folder / "own.wasm").write_bytes(content)
    said = toolcell.do("push", f"oci://{registry.host}/{repository}:1", "own.wasm", *flags).works("push works")
    said.json()
    remote = registry.remote()
    digest = remote.digest(repository, "1")
    check(digest in said.out, "push says the digest of the image", said)
    return toolcell, Image(repository, "1", digest, sha256(content), 0), content


def layers(remote: Remote, image: Image) -> list[tuple[str, str]]:
    return [(layer["mediaType"], layer["digest"]) for layer in remote.read(image.repository, image.digest)["layers"]]


@conversation(each=KINDS)
def push_and_add(stage: Stage, kind: str) -> None:
    """What was pushed has one layer, the file itself, and can be added."""
    registry = stage.registries[kind]
    toolcell, image, _ = pushed(stage, registry)
    check(layers(registry.remote(), image) == [(WASM, image.layer)], "its only layer is the file", layers(registry.remote(), image))
    toolcell.add(source(registry.host, image)).works("add pulls it")
    with registry.down():
        toolcell.answers("a", "the tool answers without the registry")


@conversation()
def annotations(stage: Stage) -> None:
    """Annotations are in the manifest of the image."""
    _, image, _ = pushed(stage, stage.plain, "--annotation", "org.example.team=tools", "--annotation", "a=b=c")
    found = stage.plain.remote().read(image.repository, image.digest).get("annotations", {})
    check(found.get("org.example.team") == "tools" and found.get("a") == "b=c", "both annotations are there", found)


@conversation()
def no_component(stage: Stage) -> None:
    """A file that is not a component is not pushed."""
    toolcell, repository = stage.toolcell_for(stage.plain), stage.repository()
    (toolcell.folder / "own.wasm").write_bytes(b"no component")
    toolcell.do("push", f"oci://{stage.plain.host}/{repository}:1", "own.wasm").refuses("a text is refused", "own.wasm")
    toolcell.do("push", f"oci://{stage.plain.host}/{repository}:1", "none.wasm").refuses("a file must be there", "none.wasm")


@conversation()
def push_without_the_right(stage: Stage) -> None:
    """A push without the right to it is refused with that reason."""
    toolcell = stage.toolcell_for(stage.basic, password="wrong secret")
    (toolcell.folder / "own.wasm").write_bytes(stage.bytes())
    said = toolcell.do("push", f"oci://{stage.basic.host}/{stage.repository()}:1", "own.wasm").refuses("push is refused", stage.basic.host)
    check("wrong secret" not in said.out + said.error, "the error has no password", said)


@conversation(each=["fallback-tag", "referrers-api"])
def signed_for_cosign(stage: Stage, how: str) -> None:
    """cosign verifies what toolcell signed, with the right key only."""
    cosign = stage.cosign
    if how == "fallback-tag":
        _, image, _ = pushed(stage, stage.plain, "--sign-key", "key.pem")
        host = stage.plain.host
    else:
        front = stage.front(stage.plain)
        host = front.host
        toolcell, content, repository = stage.toolcell(host), stage.bytes(), stage.repository()
        (toolcell.folder / "own.wasm").write_bytes(content)
        toolcell.do("push", f"oci://{host}/{repository}:1", "own.wasm", "--sign-key", "key.pem").works("push works")
        image = Image(repository, "1", Remote(host).digest(repository, "1"), sha256(content), 0)
    good = cosign.verifies(host, image, stage.key)
    check(good.returncode == 0, "cosign verifies it with the right key", good.stderr.decode())
    check(cosign.verifies(host, image, stage.other_key).returncode != 0, "and with no other")


@conversation(each=list(PREDICATES))
def attested_for_cosign(stage: Stage, kind: str) -> None:
    """cosign verifies the SBOM and provenance that toolcell signed."""
    flags = ["--sign-key", "key.pem", FLAGS[kind], PREDICATES[kind]]
    _, image, _ = pushed(stage, stage.plain, *flags)
    host, cosign = stage.plain.host, stage.cosign
    good = cosign.verifies(host, image, stage.key, kind)
    check(good.returncode == 0, f"cosign verifies the {kind}", good.stderr.decode())
    check(cosign.verifies(host, image, stage.other_key, kind).returncode != 0, "with the right key only")
    check(cosign.verifies(host, image, stage.key).returncode == 0, "the signature itself is there too")


@conversation()
def signed_for_itself(stage: Stage) -> None:
    """toolcell takes what it signed with all that a rule can require."""
    flags = ["--sign-key", "key.pem", "--sbom", "sbom.json", "--provenance", "provenance.json"]
    rules = trust(stage.plain.host, '{ key = "cosign.pub" }', require=("signature", "provenance", "sbom"))
    toolcell, image, _ = pushed(stage, stage.plain, *flags, rules=rules)
    toolcell.add(source(stage.plain.host, image)).works("add takes it")
    toolcell.answers("a", "the tool answers")
    other = trust(stage.plain.host, '{ key = "other.pub" }')
    stage.toolcell_for(stage.plain, other).refuses_to_add(source(stage.plain.host, image), "a rule for another key does not", "sign")


@conversation()
def token_to_push(stage: Stage) -> None:
    """Pushing asks for tokens for this repository only."""
    stage.tokens.given.clear()
    _, image, _ = pushed(stage, stage.registries["token"])
    own = {scope for user, scope in stage.tokens.given if user and scope.startswith(f"repository:{image.repository}:")}
    check(own and len(own) == len({scope for _, scope in stage.tokens.given}), "no token is for anything else", stage.tokens.given)


@conversation(wkg=True)
def wkg_pulls_what_toolcell_pushed(stage: Stage) -> None:
    """wkg gets the same bytes."""
    toolcell, image, content = pushed(stage, stage.plain)
    at = ["--insecure", stage.plain.host, f"{stage.plain.host}/{image.repository}:1"]
    run([stage.wkg, "oci", "pull", *at, "--output", "pulled.wasm"], folder=toolcell.folder, HOME=str(toolcell.folder))
    check((toolcell.folder / "pulled.wasm").read_bytes() == content, "wkg pulls the same bytes")


@conversation(wkg=True)
def toolcell_adds_what_wkg_pushed(stage: Stage) -> None:
    """toolcell adds what wkg pushed, and it answers."""
    toolcell, content, repository = stage.toolcell_for(stage.plain), stage.bytes(), stage.repository()
    (toolcell.folder / "own.wasm").write_bytes(content)
    at = ["--insecure", stage.plain.host, f"{stage.plain.host}/{repository}:1"]
    run([stage.wkg, "oci", "push", *at, "own.wasm"], folder=toolcell.folder, HOME=str(toolcell.folder))
    toolcell.do("add", f"oci://{stage.plain.host}/{repository}:1", "--name", "tool", "--yes").works("add takes it")
    toolcell.stored_as(content)
    with stage.plain.down():
        toolcell.answers("a", "the tool answers without the registry")
