"""Registries that lie or never end: toolcell takes nothing from them, and says so in time."""

from __future__ import annotations

from front import ELSEWHERE
from oci import EMPTY, INDEX, MANIFEST, WASM, WASM_CONFIG, Image
from registry import PASSWORD, USER
from stage import Stage, conversation, source, trust
from toolcell import check

# Referrers in one list: more than any image has signatures.
REFERRERS = 20_000
# Entries of a list that toolcell knows of at all.
LISTED = 1_000


# How a registry answers, and the words of the refusal.
ANSWERS = {
    "other-blob": "whose digest is sha256:",
    "endless-blob": "sends more than the ",
    "endless-manifest": "has more than 4194304 bytes",
}


@conversation(each=list(ANSWERS))
def answers(stage: Stage, manner: str) -> None:
    """Other bytes than the digest says, and bytes without an end, are refused."""
    front = stage.front(stage.plain)
    image = stage.push(stage.plain.remote())
    toolcell = stage.toolcell(front.host)
    front.manner = manner
    toolcell.refuses_to_add(source(front.host, image), f"{manner} is refused", front.host, ANSWERS[manner])
    # A partial download under another name takes room, too: the largest component is some megabytes.
    check(sum(path.stat().st_size for path in toolcell.stored()) < 1 << 20, "none of it stays", toolcell.stored())
    front.manner = "good"
    toolcell.add(source(front.host, image)).works("the same registry is good again")
    toolcell.answers("a", "the tool answers")


@conversation()
def other_manifest_for_a_digest(stage: Stage) -> None:
    """A manifest that has not the pinned digest is refused."""
    front = stage.front(stage.plain)
    image = stage.push(stage.plain.remote())
    toolcell = stage.toolcell(front.host)
    front.manner = "other-manifest"
    toolcell.refuses_to_add(f"{source(front.host, image)}@{image.digest}", "other bytes for a digest are refused", f"bytes for {image.digest} whose digest is sha256:")


@conversation(each=["named", "unnamed"])
def blobs_elsewhere(stage: Stage, other: str) -> None:
    """Credentials do not follow to a host that the manifest names as private; one that it does not name is not asked."""
    front = stage.front(stage.basic)
    image = stage.push(stage.basic.remote())
    elsewhere = front.host.replace("127.0.0.1", "localhost")
    keys = f'private = true\nplain_http = true\nuser = "{USER}"\npassword = "env:CHECK"'
    if other == "named":
        keys += f'\n[registries."{elsewhere}"]\nprivate = true'
    toolcell = stage.toolcell(front.host, keys, CHECK=PASSWORD)
    front.manner = "elsewhere"
    front.asked.clear()
    if other == "named":
        toolcell.add(source(front.host, image)).works("a host that the manifest names is asked")
        toolcell.answers("a", "the tool answers")
    else:
        toolcell.refuses_to_add(source(front.host, image), "another one is refused", f"{elsewhere} is not asked", "is a loopback address")
    check(any("authorization" in headers for _, _, headers in front.asked), "the registry itself gets credentials", front.asked)
    followed = [headers for _, path, headers in front.asked if ELSEWHERE in path]
    check(bool(followed) == (other == "named"), "the other host is asked if it is named", front.asked)
    check(all("authorization" not in headers for headers in followed), "the other host gets none", followed)


def manifest(stage: Stage, change: dict[str, object]) -> Image:
    """An image whose manifest has other entries than a component's."""
    remote, repository = stage.plain.remote(), stage.repository()
    content = stage.bytes()
    layer, config = remote.push_blob(repository, content), remote.push_blob(repository, b"{}")
    image = {
        "schemaVersion": 2, "mediaType": MANIFEST, "config": {"mediaType": WASM_CONFIG, **config}, "layers": [{"mediaType": WASM, **layer}],
    }  # fmt: skip
    changed = {key: value(layer, config) if callable(value) else value for key, value in change.items()}
    digest, size = remote.push_manifest(repository, "1", {**image, **changed})
    return Image(repository, "1", digest, layer["digest"], size)


# Manifests that docker-registry takes but that do not describe a component, and the words of the refusal.
MANIFESTS = {
    "two-layers": ({"layers": lambda layer, config: [{"mediaType": WASM, **layer}] * 2}, "holds 2 components, and one is expected"),
    "no-wasm": ({"layers": lambda layer, config: [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", **layer}],
                 "config": lambda layer, config: {"mediaType": "application/vnd.oci.image.config.v1+json", **config}},
                'holds no component: its layers are \\"application/vnd.oci.image.layer.v1.tar+gzip\\"'),
    "no-layers": ({"layers": []}, "holds no component: its layers are none"),
    "size-is-wrong": ({"layers": lambda layer, config: [{"mediaType": WASM, **layer, "size": layer["size"] - 1}]}, "sends more than the "),
    "size-is-huge": ({"layers": lambda layer, config: [{"mediaType": WASM, **layer, "size": 1 << 50}]},
                     "has 1125899906842624 bytes, at most 134217728 are allowed"),
    "empty-layer": ({"layers": lambda layer, config: [{"mediaType": EMPTY, **config}]},
                    'holds no component: its layers are \\"application/vnd.oci.empty.v1+json\\"'),
}  # fmt: skip


@conversation(each=list(MANIFESTS))
def manifests(stage: Stage, name: str) -> None:
    """An image that is not a component is refused."""
    change, words = MANIFESTS[name]
    image = manifest(stage, change)
    stage.toolcell_for(stage.plain).refuses_to_add(source(stage.plain.host, image), f"{name} is refused", words)


@conversation()
def many_referrers(stage: Stage) -> None:
    """A list of many referrers, of which none is a signature, ends in a refusal in time that says what was not looked at."""
    remote, host = stage.plain.remote(), stage.plain.host
    image = stage.push(remote)
    listed = [{**image.descriptor(), "artifactType": f"application/x-{at}"} for at in range(REFERRERS)]
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": listed}
    remote.push_manifest(image.repository, image.digest.replace(":", "-"), index)
    toolcell = stage.toolcell_for(stage.plain, trust(host, '{ key = "cosign.pub" }'))
    unseen = f"listed as attached and not looked at, at the least: {REFERRERS - LISTED}"
    toolcell.refuses_to_add(source(host, image), "it is refused in time", "has no signature that counts", unseen)
