"""The store of components: what tampers with it is noticed, and it travels to machines without a registry."""

from __future__ import annotations

from pathlib import Path

from stage import Stage, conversation, source, trust
from toolcell import Toolcell, check


def filled(stage: Stage, rules: str = "", sign: bool = False) -> tuple[Toolcell, bytes, str, str]:
    """toolcell with one component: also its bytes, its layer's digest and its image's."""
    remote = stage.plain.remote()
    image = stage.push(remote)
    if sign:
        stage.cosign.sign(stage.plain.host, image, stage.key)
    toolcell = stage.toolcell_for(stage.plain, rules)
    toolcell.add(source(stage.plain.host, image)).works("add pulls the component")
    return toolcell, remote.blob(image.repository, image.layer), image.layer, image.digest


def hexadecimal(digest: str) -> str:
    return digest.removeprefix("sha256:")


def other_byte(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


TAMPERED = {
    "other-byte": other_byte,
    "half": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "longer": lambda content: content + b"\0\x02\x01x",
}


@conversation(each=[*TAMPERED, "gone", "link"])
def tampered(stage: Stage, how: str) -> None:
    """A component that is not what it was is named by `store verify`, and not called."""
    toolcell, content, layer, digest = filled(stage)
    toolcell.answers("a", "the tool answers before")
    file = toolcell.stored_as(content)
    file.parent.chmod(0o755)
    file.chmod(0o644)
    if how == "gone":
        file.unlink()
    elif how == "link":
        elsewhere = stage.scratch / f"elsewhere-{file.name}"
        elsewhere.write_bytes(other_byte(content))
        file.unlink()
        file.symlink_to(elsewhere)
    else:
        file.write_bytes(TAMPERED[how](content))
    said = toolcell.do("store verify").refuses("store verify finds it")
    named = said.out + said.error
    check(hexadecimal(layer)[:12] in named or hexadecimal(digest)[:12] in named, "store verify names its digest", said)
    with stage.plain.down():
        toolcell.call().refuses("a call of it is refused")
    toolcell.do("pull").works("pull brings it again")
    toolcell.do("store verify").works("the store is whole again")
    toolcell.answers("a", "the tool answers again")


@conversation()
def garbage(stage: Stage) -> None:
    """`store gc` removes what no component needs, and nothing else."""
    toolcell, content, _, digest = filled(stage)
    host, remote = stage.plain.host, stage.plain.remote()
    repository = toolcell.text().split(f"{host}/")[1].split(":")[0]
    kept = toolcell.stored()
    toolcell.do("store gc", "--yes").works("gc works while there is nothing to do")
    check(toolcell.stored() == kept, "it removes nothing that is needed", toolcell.stored())
    stage.push(remote, "c", repository)
    toolcell.do("update", "--yes").works("update follows the tag")
    toolcell.stored_as(content)
    toolcell.do("store gc", "--yes").works("gc works")
    check(all(path.read_bytes() != content for path in toolcell.stored()), "the old component is gone", toolcell.stored())
    check(digest not in toolcell.do("store ls").out, "and is not listed")
    toolcell.do("store verify").works("the store is whole")
    with stage.plain.down():
        toolcell.answers("c", "the new component answers")


@conversation(each=["unsigned", "signed"])
def export_and_import(stage: Stage, dressed: str) -> None:
    """An export takes a component, with what proves its signer, to a machine that reaches no registry."""
    signed = dressed == "signed"
    rules = trust(stage.plain.host, '{ key = "cosign.pub" }') if signed else ""
    toolcell, *_ = filled(stage, rules, signed)
    file = toolcell.folder / "export.tar"
    toolcell.do("store export", str(file)).works("export writes a file")
    away = stage.toolcell_for(stage.plain, rules)
    away.manifest.write_text(toolcell.text())
    with stage.plain.down():
        away.call().refuses("without the import the tool is not there")
        away.do("store import", str(file)).works("import reads it")
        away.do("store verify").works("the store is whole")
        away.do("pull").works("pull has nothing to do")
        away.answers("a", "the tool answers without a registry")


@conversation(each=["other-byte", "half", "no-archive"])
def bad_import(stage: Stage, how: str) -> None:
    """A file that was changed on its way is refused, and leaves the store as it was."""
    toolcell, content, *_ = filled(stage)
    file = toolcell.folder / "export.tar"
    toolcell.do("store export", str(file)).works("export writes a file")
    exported = file.read_bytes()
    at = exported.find(content)
    check(at >= 0, "the export has the component's own bytes")
    changed = exported[:at] + other_byte(content) + exported[at + len(content) :]
    file.write_bytes({"other-byte": changed, "half": exported[: at + len(content) // 2], "no-archive": b"no archive"}[how])
    away = stage.toolcell_for(stage.plain)
    away.manifest.write_text(toolcell.text())
    away.do("store import", str(file)).refuses("import refuses it")
    with stage.plain.down():
        away.call().refuses("none of it is called")


@conversation()
def import_without_signature(stage: Stage) -> None:
    """An unsigned image that was imported is not served where a rule asks for a signature."""
    toolcell, *_ = filled(stage)
    file = toolcell.folder / "export.tar"
    toolcell.do("store export", str(file)).works("export writes a file")
    away = stage.toolcell_for(stage.plain, trust(stage.plain.host, '{ key = "cosign.pub" }'))
    components = "[components" + toolcell.text().split("[components", 1)[1]
    away.manifest.write_text(f"{away.text()}\n{components}")
    with stage.plain.down():
        away.do("store import", str(file)).works("import takes it: nobody trusts what is in a store")
        away.call().refuses("the call refuses it", "has no signature that counts: nothing was found next to it")


@conversation()
def two_at_once(stage: Stage) -> None:
    """Two components with the same bytes are kept once, and stay while one of them needs them."""
    remote, host = stage.plain.remote(), stage.plain.host
    content = stage.bytes()
    images = [remote.push(stage.repository(), "1", content) for _ in range(2)]
    toolcell = stage.toolcell_for(stage.plain)
    toolcell.add(source(host, images[0]), "first").works("add pulls the first")
    toolcell.do("add", source(host, images[1]), "--name", "second", "--prefix", "second_", "--yes").works("and the second")
    copies = [path for path in toolcell.stored() if path.read_bytes() == content]
    check(len(copies) == 1, "the bytes are kept once", toolcell.stored())
    toolcell.run("remove", "second", "--yes", "-m", str(toolcell.manifest)).works("one is removed")
    toolcell.do("store gc", "--yes").works("gc works")
    check(Path(copies[0]).exists(), "the bytes stay")
    toolcell.answers("a", "the first answers")
