"""A tag that moves: what was added stays, until `update` pins another image."""

from __future__ import annotations

from stage import Stage, conversation, source, trust
from toolcell import check


@conversation()
def tag_moved(stage: Stage) -> None:
    """The pin holds after the tag moved. `outdated` says so, and `update` follows."""
    remote, host = stage.plain.remote(), stage.plain.host
    old = stage.push(remote, "a")
    toolcell = stage.toolcell_for(stage.plain)
    toolcell.add(source(host, old)).works("add pulls the component")
    same = toolcell.do("outdated").works("outdated works while there is nothing new")
    new = stage.push(remote, "c", old.repository)
    toolcell.do("pull").works("pull works")
    toolcell.pins(source(host, old), old.digest, "pull keeps the pin")
    toolcell.answers("a", "the old component answers")
    told = toolcell.do("outdated")
    told.json()
    check(new.digest in told.out and new.digest not in same.out, "outdated names the new digest", told)
    toolcell.pins(source(host, old), old.digest, "outdated changes nothing")
    said = toolcell.do("update", "tool", "--yes").works("update follows the tag")
    said.json()
    check(old.digest in said.out and new.digest in said.out, "update shows both digests", said)
    toolcell.pins(source(host, old), new.digest, "update pins the new digest")
    with stage.plain.down():
        toolcell.answers("c", "the new component answers without the registry")


@conversation()
def update_without_change(stage: Stage) -> None:
    """Without a new image `update` changes no byte of the manifest."""
    image = stage.push(stage.plain.remote())
    toolcell = stage.toolcell_for(stage.plain)
    toolcell.add(source(stage.plain.host, image)).works("add pulls the component")
    before = toolcell.text()
    toolcell.do("update", "--yes").works("update has nothing to do")
    check(toolcell.text() == before, "the manifest stays as it was", toolcell.text())
    toolcell.do("update", "nobody", "--yes").refuses("a name that is not there is refused", "nobody")


@conversation()
def only_one_is_updated(stage: Stage) -> None:
    """`update NAME` leaves the others alone."""
    remote, host = stage.plain.remote(), stage.plain.host
    first, second = stage.push(remote), stage.push(remote)
    toolcell = stage.toolcell_for(stage.plain)
    toolcell.add(source(host, first), "first").works("add pulls the first")
    prefixed = toolcell.do("add", source(host, second), "--name", "second", "--prefix", "second_", "--yes")
    prefixed.works("add pulls the second")
    stage.push(remote, "c", first.repository)
    new = stage.push(remote, "c", second.repository)
    toolcell.do("update", "second", "--yes").works("update follows one tag")
    toolcell.pins(source(host, first), first.digest, "the first stays")
    toolcell.pins(source(host, second), new.digest, "the second is new")


@conversation()
def signer_changes(stage: Stage) -> None:
    """Another signer, though trusted, needs a word. An image that nobody signed needs more than that."""
    remote, host, cosign = stage.plain.remote(), stage.plain.host, stage.cosign
    rules = trust(host, '{ key = "cosign.pub" }', '{ key = "other.pub" }')
    old = stage.push(remote, "a")
    cosign.sign(host, old, stage.key)
    toolcell = stage.toolcell_for(stage.plain, rules)
    toolcell.add(source(host, old)).works("add pulls what the first signed")
    new = stage.push(remote, "c", old.repository)
    toolcell.do("update", "--yes").refuses("update refuses what nobody signed", "sign")
    toolcell.do("update", "--yes", "--allow-signer-change").refuses("whatever is allowed", "sign")
    cosign.sign(host, new, stage.other_key)
    toolcell.do("update", "--yes").refuses("update refuses another signer", "allow-signer-change")
    toolcell.pins(source(host, old), old.digest, "the pin holds")
    toolcell.answers("a", "the old component answers")
    toolcell.do("update", "--yes", "--allow-signer-change").works("update follows on request")
    toolcell.pins(source(host, old), new.digest, "the new image is pinned")
    toolcell.answers("c", "the new component answers")
