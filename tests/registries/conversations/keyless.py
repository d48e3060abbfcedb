"""Signatures without keys: which identity, issuer and root a rule lets in, and which changes to a bundle it notices."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from signers import IDENTITY, ISSUER
from stage import Stage, conversation, source, trust

WORKFLOWS = IDENTITY.split("release.yml")[0]
OTHER = "https://example.com/other"
UNNAMED = f"its certificate names {IDENTITY} (issuer {ISSUER}), which signed_by does not allow"
ANOTHER = "has no signature that counts: it is about sha256:"
NO_ENTRY = "it has no entry of a transparency log, which a certificate needs"
PROMISE = "invalid inclusion promise: SET verification failed: Verification error: ECDSA_P256_SHA256 signature invalid"
SIGNED_OTHERWISE = "log entry does not match the bundle: DSSE payload hash mismatch: computed "


@dataclass(frozen=True)
class Rule:
    """A signer as the manifest names it, the root it is verified by, and the verdict on `IDENTITY` of `ISSUER`."""

    taken: bool
    identity: str = IDENTITY
    issuer: str = ISSUER
    root: str = "trusted_root.json"


RULES = {
    "exact": Rule(True),
    "any-workflow": Rule(True, f"{WORKFLOWS}*"),
    "any-branch": Rule(True, IDENTITY.replace("main", "*")),
    "beginning-without-star": Rule(False, IDENTITY[:-1]),
    "longer-than-it-is": Rule(False, f"{IDENTITY}2"),
    "other-repository": Rule(False, f"{WORKFLOWS.replace('acme/', 'acmes/')}*"),
    "upper-case": Rule(False, IDENTITY.replace("acme", "Acme")),
    "star-in-other-case": Rule(False, f"{WORKFLOWS.replace('acme', 'Acme')}*"),
    "end-of-it": Rule(False, IDENTITY.removeprefix("https://")),
    "other-issuer": Rule(False, issuer="https://accounts.example.com"),
    "issuer-with-slash": Rule(False, issuer=f"{ISSUER}/"),
    "issuer-in-upper-case": Rule(False, issuer=ISSUER.upper()),
    "beginning-of-issuer": Rule(False, issuer=ISSUER[:-4]),
    "other-root": Rule(False, root="other_root.json"),
}


def signer(identity: str = IDENTITY, issuer: str = ISSUER) -> str:
    return f'{{ issuer = "{issuer}", identity = "{identity}" }}'


@conversation(each=list(RULES))
def rule(stage: Stage, name: str) -> None:
    """The same image under each rule. sigstore's own client signed it."""
    rule, host, remote = RULES[name], stage.plain.host, stage.plain.remote()
    image = stage.push(remote)
    remote.attach(image, stage.services.bundle(image))
    toolcell = stage.toolcell_for(stage.plain, trust(host, signer(rule.identity, rule.issuer), root=rule.root))
    if rule.taken:
        toolcell.add(source(host, image)).works(f"{name} is taken")
        with stage.plain.down():
            toolcell.answers("a", "the tool answers without the registry")
    else:
        words = "No log key valid at integrated time" if name == "other-root" else UNNAMED
        toolcell.refuses_to_add(source(host, image), f"{name} is refused", words)


@conversation(each=["cosign", "rekor-and-timestamp"])
def signed_by(stage: Stage, who: str) -> None:
    """A signature of cosign is taken, and one with a timestamp besides its entry in the log."""
    host, remote = stage.plain.host, stage.plain.remote()
    image = stage.push(remote)
    if who == "cosign":
        stage.cosign.sign_keyless(host, image, stage.services)
    else:
        remote.attach(image, stage.services.bundle(image, witness="both"))
    toolcell = stage.toolcell_for(stage.plain, trust(host, signer(), root="trusted_root.json"))
    toolcell.add(source(host, image)).works("it is taken")
    toolcell.answers("a", "the tool answers")


def entry(bundle: dict[str, Any]) -> dict[str, Any]:
    return bundle["verificationMaterial"]["tlogEntries"][0]


def flipped(text: str) -> str:
    """Base64 of the same bytes but one, in their middle."""
    content = bytearray(b64decode(text))
    content[len(content) // 2] ^= 1
    return b64encode(content).decode()


def change(place: Callable[[dict[str, Any]], dict[str, Any]], key: str) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def changes(bundle: dict[str, Any], _: dict[str, Any]) -> None:
        place(bundle)[key] = flipped(place(bundle)[key])

    return changes


def one_second_later(bundle: dict[str, Any], _: dict[str, Any]) -> None:
    entry(bundle)["integratedTime"] = str(int(entry(bundle)["integratedTime"]) + 1)


def a_year_later(bundle: dict[str, Any], _: dict[str, Any]) -> None:
    entry(bundle)["integratedTime"] = str(int(entry(bundle)["integratedTime"]) + 366 * 86400)


def entry_of_another(bundle: dict[str, Any], other: dict[str, Any]) -> None:
    bundle["verificationMaterial"]["tlogEntries"] = other["verificationMaterial"]["tlogEntries"]


def certificate_of_another(bundle: dict[str, Any], other: dict[str, Any]) -> None:
    bundle["verificationMaterial"]["certificate"] = other["verificationMaterial"]["certificate"]


def statement_of_another(bundle: dict[str, Any], other: dict[str, Any]) -> None:
    bundle["dsseEnvelope"]["payload"] = other["dsseEnvelope"]["payload"]


def no_entry(bundle: dict[str, Any], _: dict[str, Any]) -> None:
    del bundle["verificationMaterial"]["tlogEntries"]


def two_of_one_entry(bundle: dict[str, Any], other: dict[str, Any]) -> None:
    """The first entry is good for another signature, so a verifier that takes any entry is fooled."""
    bundle["verificationMaterial"]["tlogEntries"] = [entry(other)] * 2


# Each changes a good bundle, and is refused in these words. The second argument of a change is a good bundle for another
# image, by another identity.
CHANGES = {
    "signature": (change(lambda bundle: bundle["dsseEnvelope"]["signatures"][0], "sig"), "DSSE signature verification failed"),
    "statement": (change(lambda bundle: bundle["dsseEnvelope"], "payload"), ANOTHER),
    "certificate": (
        change(lambda bundle: bundle["verificationMaterial"]["certificate"], "rawBytes"),
        "certificate chain validation failed: InvalidSignatureForPublicKey",
    ),
    "body-of-entry": (change(entry, "canonicalizedBody"), PROMISE),
    "promise-of-log": (change(lambda bundle: entry(bundle)["inclusionPromise"], "signedEntryTimestamp"), PROMISE),
    "root-of-proof": (
        change(lambda bundle: entry(bundle)["inclusionProof"], "rootHash"),
        "inclusion proof root hash does not match checkpoint root hash",
    ),
    "time-of-entry": (one_second_later, PROMISE),
    "year-of-entry": (a_year_later, PROMISE),
    "entry-of-another": (entry_of_another, SIGNED_OTHERWISE),
    "certificate-of-another": (certificate_of_another, f"its certificate names {OTHER} (issuer {ISSUER}), which signed_by does not allow"),
    "statement-of-another": (statement_of_another, ANOTHER),
    "no-entry": (no_entry, NO_ENTRY),
    "two-of-one-entry": (two_of_one_entry, SIGNED_OTHERWISE),
}


@conversation(each=list(CHANGES))
def changed(stage: Stage, name: str) -> None:
    """A bundle in which anything was changed is refused."""
    host, remote = stage.plain.host, stage.plain.remote()
    image, unrelated = stage.push(remote), stage.push(remote)
    bundle = json.loads(stage.services.bundle(image))
    other = json.loads(stage.services.bundle(unrelated, identity=OTHER))
    changes, words = CHANGES[name]
    changes(bundle, other)
    remote.attach(image, json.dumps(bundle).encode())
    toolcell = stage.toolcell_for(stage.plain, trust(host, signer(f"{WORKFLOWS}*"), root="trusted_root.json"))
    toolcell.refuses_to_add(source(host, image), f"a bundle with a changed {name} is refused", words)


REFUSED = {"other-digest": ANOTHER, "no-witness": NO_ENTRY, "key-rule": UNNAMED}


@conversation(each=list(REFUSED))
def refused(stage: Stage, why: str) -> None:
    """A good signature of another image, one without any proof of its time, and one under a rule that names a key."""
    host, remote = stage.plain.host, stage.plain.remote()
    image, other = stage.push(remote), stage.push(remote)
    signed = other if why == "other-digest" else image
    remote.attach(image, stage.services.bundle(signed, witness="none" if why == "no-witness" else "rekor"))
    rules = trust(host, '{ key = "cosign.pub" }' if why == "key-rule" else signer(), root="trusted_root.json")
    stage.toolcell_for(stage.plain, rules).refuses_to_add(source(host, image), f"{why} is refused", REFUSED[why])


@conversation()
def provenance_without_keys(stage: Stage) -> None:
    """Provenance counts if the identity that the rule names signed it."""
    host, remote = stage.plain.host, stage.plain.remote()
    kind = "https://slsa.dev/provenance/v1"
    predicate = json.loads((stage.cosign.folder / "provenance.json").read_text())
    rules = trust(host, signer(), require=("signature", "provenance"), root="trusted_root.json")
    for identity, taken in ((IDENTITY, True), (OTHER, False)):
        image = stage.push(remote)
        remote.attach(image, stage.services.bundle(image))
        remote.attach(image, stage.services.bundle(image, identity=identity, predicate_type=kind, predicate=predicate), kind)
        toolcell = stage.toolcell_for(stage.plain, rules)
        if taken:
            toolcell.add(source(host, image)).works("provenance of the right identity is taken")
        else:
            words = f"has no provenance that counts: its certificate names {OTHER}"
            toolcell.refuses_to_add(source(host, image), "provenance of another is not", words)
