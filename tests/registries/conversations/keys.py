"""Signatures with keys: which images `add` takes under a rule that names keys.

Each case dresses an image and says if it is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from oci import Image
from stage import Stage, conversation, source, trust
from toolcell import check

SIGNATURE, SBOM, PROVENANCE = "signature", "sbom", "provenance"
OTHER_KEYS = "it is not signed by any of the keys in signed_by (1)"
NOTHING = "has no signature that counts: nothing was found next to it"
ANOTHER = "has no signature that counts: it is about sha256:"
KEY, OTHER_KEY = '{ key = "cosign.pub" }', '{ key = "other.pub" }'


@dataclass(frozen=True)
class Case:
    """How an image is dressed, what the rule requires, and the words of the refusal; without one it is taken."""

    dress: Callable[[Stage, Image], None]
    require: tuple[str, ...] = (SIGNATURE,)
    refusal: str | None = None
    signers: tuple[str, ...] = (KEY,)


def sign(stage: Stage, image: Image, old: bool = False, other: bool = False) -> None:
    stage.cosign.sign(stage.plain.host, image, stage.other_key if other else stage.key, old)


def attest(stage: Stage, image: Image, kind: str, other: bool = False) -> None:
    stage.cosign.attest(stage.plain.host, image, stage.other_key if other else stage.key, kind)


def sign_both(stage: Stage, image: Image) -> None:
    sign(stage, image, other=True)
    sign(stage, image)


def attach_of_another(stage: Stage, image: Image) -> None:
    """The signature is good, of the right key, and about another image of the same repository."""
    remote = stage.plain.remote()
    other = stage.push(remote, repository=image.repository, tag="other")
    sign(stage, other)
    for bundle in remote.bundles(other):
        remote.attach(image, bundle)


def tag_of_another(stage: Stage, image: Image) -> None:
    """The same under the old tag."""
    remote = stage.plain.remote()
    other = stage.push(remote, repository=image.repository, tag="other")
    sign(stage, other, old=True)
    tags = [one.digest.replace(":", "-") + ".sig" for one in (other, image)]
    remote.push_manifest(image.repository, tags[1], remote.read(image.repository, tags[0]))


def attach_changed(change: Callable[[bytes], bytes]) -> Callable[[Stage, Image], None]:
    """Attaches a good signature that was changed, and removes the good one from the list."""

    def dress(stage: Stage, image: Image) -> None:
        remote = stage.plain.remote()
        sign(stage, image)
        (bundle,) = remote.bundles(image)
        index = remote.read(image.repository, image.digest.replace(":", "-"))
        remote.push_manifest(image.repository, image.digest.replace(":", "-"), {**index, "manifests": []})
        remote.attach(image, change(bundle))

    return dress


def with_sbom(stage: Stage, image: Image, other: bool = False) -> None:
    sign(stage, image)
    attest(stage, image, "spdxjson", other)


def with_provenance(stage: Stage, image: Image) -> None:
    sign(stage, image)
    attest(stage, image, "slsaprovenance1")


def with_all(stage: Stage, image: Image) -> None:
    with_sbom(stage, image)
    attest(stage, image, "slsaprovenance1")


ALL = (SIGNATURE, PROVENANCE, SBOM)
CASES = {
    "right-key": Case(sign),
    "right-key-old-tag": Case(lambda stage, image: sign(stage, image, old=True)),
    "one-of-two-signatures": Case(sign_both),
    "one-of-two-keys": Case(lambda stage, image: sign(stage, image, other=True), signers=(KEY, OTHER_KEY)),
    "other-key": Case(lambda stage, image: sign(stage, image, other=True), refusal=OTHER_KEYS),
    "other-key-old-tag": Case(lambda stage, image: sign(stage, image, old=True, other=True), refusal=OTHER_KEYS),
    "unsigned": Case(lambda stage, image: None, refusal=NOTHING),
    "of-another-digest": Case(attach_of_another, refusal=ANOTHER),
    "of-another-digest-old-tag": Case(tag_of_another, refusal=ANOTHER),
    "no-bundle-at-all": Case(attach_changed(lambda bundle: b"{}"), refusal="it is not a Sigstore bundle: JSON error: missing field `verificationMaterial`"),
    "no-json-at-all": Case(attach_changed(lambda bundle: b"[" * 100_000), refusal="its JSON is nested deeper than 64"),
    "half-a-bundle": Case(attach_changed(lambda bundle: bundle[: len(bundle) // 2]), refusal="it is not a Sigstore bundle: JSON error: EOF while parsing a string"),
    "sbom-there": Case(with_sbom, require=(SIGNATURE, SBOM)),
    "sbom-missing": Case(sign, require=(SIGNATURE, SBOM), refusal="has no SBOM that counts: only a signature by key"),
    "sbom-of-another-key": Case(lambda stage, image: with_sbom(stage, image, other=True), require=(SIGNATURE, SBOM), refusal=f"has no SBOM that counts: {OTHER_KEYS}"),
    "provenance-there": Case(with_provenance, require=(SIGNATURE, PROVENANCE)),
    "provenance-missing": Case(with_sbom, require=(SIGNATURE, PROVENANCE), refusal="has no provenance that counts: only a signature by key"),
    "all-there": Case(with_all, require=ALL),
}


@conversation(each=list(CASES))
def add(stage: Stage, name: str) -> None:
    """`add` takes an image that fulfils the rule and refuses any other, and says of what is missing."""
    case, host = CASES[name], stage.plain.host
    image = stage.push(stage.plain.remote())
    case.dress(stage, image)
    toolcell = stage.toolcell_for(stage.plain, trust(host, *case.signers, require=case.require))
    if case.refusal:
        toolcell.refuses_to_add(source(host, image), f"{name} is refused", case.refusal)
        check(not toolcell.stored() or "tool" not in toolcell.text(), "none of it is served")
        return
    toolcell.add(source(host, image)).works(f"{name} is taken")
    toolcell.pins(source(host, image), image.digest, "the manifest has its digest")
    with stage.plain.down():
        toolcell.answers("a", "the tool answers without the registry")


@conversation(each=["signed", "unsigned"])
def referrers_api(stage: Stage, dressed: str) -> None:
    """Signatures are found at a registry that lists referrers itself, too."""
    front = stage.front(stage.plain)
    image = stage.push(stage.plain.remote())
    if dressed == "signed":
        stage.cosign.sign(front.host, image, stage.key)
    toolcell = stage.toolcell(front.host, trust=trust(front.host, KEY))
    front.asked.clear()
    if dressed == "signed":
        toolcell.add(source(front.host, image)).works("a signed image is taken")
    else:
        toolcell.refuses_to_add(source(front.host, image), "an unsigned one is not", NOTHING)
    check(any("/referrers/" in path for _, path, _ in front.asked), "the Referrers API is asked", front.asked)


@conversation()
def rule_for_a_prefix(stage: Stage) -> None:
    """A rule holds for repositories below its prefix and no others; the longest prefix decides."""
    host, remote = stage.plain.host, stage.plain.remote()
    inside, beside, deeper = (stage.push(remote, repository=stage.repository(prefix)) for prefix in ("acme/", "acmes/", "acme/deep/"))
    stage.cosign.sign(host, deeper, stage.other_key)
    rules = trust(host, KEY) + "\n" + trust(host, OTHER_KEY, prefix="acme/deep/")
    stage.toolcell_for(stage.plain, rules).refuses_to_add(source(host, inside), "below the prefix a signature is needed", NOTHING)
    stage.toolcell_for(stage.plain, rules).add(source(host, beside)).works("a longer name is another folder")
    stage.toolcell_for(stage.plain, rules).add(source(host, deeper)).works("the longest prefix decides")


@conversation()
def rule_is_made_later(stage: Stage) -> None:
    """A rule that comes after the component holds for it too: what was never verified is not served."""
    host = stage.plain.host
    image = stage.push(stage.plain.remote())
    toolcell = stage.toolcell_for(stage.plain)
    toolcell.add(source(host, image)).works("without a rule the image is taken")
    toolcell.answers("a", "and answers")
    toolcell.manifest.write_text(toolcell.text() + "\n" + trust(host, KEY) + "\n")
    toolcell.do("pull").refuses("pull refuses it under the rule", NOTHING)
    toolcell.call().refuses("a call of it is refused", NOTHING)
