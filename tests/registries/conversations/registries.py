"""Getting in at each kind of registry, and calling what was pulled after the registry ended."""

from __future__ import annotations

import json
import shutil
from base64 import b64encode
from pathlib import Path

from processes import Broken, Server
from registry import KINDS, PASSWORD, PUBLIC, USER, Certificates
from stage import Stage, conversation, source
from toolcell import Failed, Toolcell, check

HELPER = """#!/bin/sh
# A credential helper as Docker has them: it gets a server on stdin, and answers with a name and password.
[ "$1" = get ] || exit 1
read -r server
echo "$server" >>"$CHECK_ASKED"
[ "$server" = "{host}" ] || {{ echo "credentials not found in native keychain"; exit 1; }}
echo '{{"ServerURL":"{host}","Username":"{user}","Secret":"{password}"}}'
"""


def docker(toolcell: Toolcell, text: object) -> None:
    """Writes Docker's file of credentials."""
    Path(toolcell.environment["DOCKER_CONFIG"], "config.json").write_text(json.dumps(text))


def says_no_password(toolcell: Toolcell, *texts: str) -> None:
    """The password is in nothing that toolcell printed or wrote."""
    files = [path.read_bytes() for path in toolcell.stored()] + [toolcell.manifest.read_bytes()]
    check(not any(PASSWORD in text for text in texts), "no output has the password", *texts)
    check(not any(PASSWORD.encode() in content for content in files), "no file has the password")


@conversation(each=KINDS)
def add_and_call_offline(stage: Stage, kind: str) -> None:
    """A component is added by its tag, pinned by its digest, and answers without its registry."""
    registry = stage.registries[kind]
    image = stage.push(registry.remote())
    toolcell = stage.toolcell_for(registry)
    said = toolcell.add(source(registry.host, image)).works("add pulls the component")
    said.json()
    toolcell.pins(source(registry.host, image), image.digest, "the manifest has the tag and the digest")
    says_no_password(toolcell, said.out, said.error)
    with registry.down():
        toolcell.answers("a", "the tool answers without the registry")
        listed = toolcell.do("store ls").works("the store lists without the registry")
        check(image.digest in listed.out or image.layer in listed.out, "the store lists the component by its digest", listed)
        toolcell.do("store verify").works("the store is whole")
        toolcell.do("pull").works("pull has nothing to do, so that it needs no registry")


@conversation()
def add_by_digest(stage: Stage) -> None:
    """A digest alone is enough; one that the registry does not have is an error."""
    image = stage.push(stage.plain.remote())
    toolcell = stage.toolcell_for(stage.plain)
    place = f"oci://{stage.plain.host}/{image.repository}"
    toolcell.refuses_to_add(f"{place}@sha256:{'0' * 64}", "a digest that is not there is refused", "sha256:0000")
    toolcell.refuses_to_add(f"{place}:2", "a tag that is not there is refused", image.repository)
    toolcell.add(f"{place}@{image.digest}").works("a digest is enough")
    check(image.digest in toolcell.text(), "the manifest has the digest", toolcell.text())
    toolcell.answers("a", "the tool answers")


@conversation()
def pull_on_another_machine(stage: Stage) -> None:
    """The manifest alone brings the same component to another machine."""
    image = stage.push(stage.plain.remote())
    first, second = stage.toolcell_for(stage.plain), stage.toolcell_for(stage.plain)
    first.add(source(stage.plain.host, image)).works("add pulls the component")
    second.manifest.write_text(first.text())
    second.do("pull").works("pull brings what the manifest names").json()
    with stage.plain.down():
        second.answers("a", "the tool answers without the registry")


@conversation(each=["basic", "token"])
def wrong_password(stage: Stage, kind: str) -> None:
    """A wrong password, or none, is said in words, and stays out of them."""
    registry = stage.registries[kind]
    image = stage.push(registry.remote())
    wrong = stage.toolcell_for(registry, password="wrong secret")
    said = wrong.refuses_to_add(source(registry.host, image), "a wrong password is refused", registry.host)
    check("wrong secret" not in said.out + said.error, "the error has no password", said)
    stage.toolcell(registry.host).refuses_to_add(source(registry.host, image), "no password is refused", registry.host)


@conversation(each=["basic", "token"])
def docker_credentials(stage: Stage, kind: str) -> None:
    """Credentials of `docker login` let toolcell in."""
    registry = stage.registries[kind]
    image, toolcell = stage.push(registry.remote()), stage.toolcell(registry.host)
    other = b64encode(b"bob:other").decode()
    own = b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    docker(toolcell, {"auths": {"registry.example.com": {"auth": other}, registry.host: {"auth": own}}})
    said = toolcell.add(source(registry.host, image)).works("the credentials of this registry let it in")
    says_no_password(toolcell, said.out, said.error)
    toolcell.answers("a", "the tool answers")


@conversation(each=["credHelpers", "credsStore"])
def credential_helper(stage: Stage, key: str) -> None:
    """A helper program of Docker's is asked for this registry."""
    registry = stage.basic
    image = stage.push(registry.remote())
    programs = stage.scratch / f"helper-{key}"
    programs.mkdir()
    helper, asked = programs / "docker-credential-check", programs / "asked"
    helper.write_text(HELPER.format(host=registry.host, user=USER, password=PASSWORD))
    helper.chmod(0o755)
    path = f"{programs}:/usr/local/bin:/usr/bin:/bin"
    toolcell = stage.toolcell(registry.host, PATH=path, CHECK_ASKED=str(asked))
    docker(toolcell, {"credHelpers": {registry.host: "check"}} if key == "credHelpers" else {"credsStore": "check"})
    said = toolcell.add(source(registry.host, image)).works("the helper's credentials let it in")
    check(set(asked.read_text().splitlines()) == {registry.host}, "it is asked for this registry only", asked.read_text())
    says_no_password(toolcell, said.out, said.error)
    docker(toolcell, {"credHelpers": {registry.host: "../check"}})
    toolcell.refuses_to_add(source(registry.host, image), "a helper's name is not a path")


@conversation()
def token_scopes(stage: Stage) -> None:
    """Pulling asks for tokens to pull with and nothing more, and for what is public without a name."""
    registry = stage.registries["token"]
    image = stage.push(registry.remote())
    public = stage.push(registry.remote(), repository=stage.repository(PUBLIC))
    stage.tokens.given.clear()
    stage.toolcell(registry.host).add(source(registry.host, public)).works("anybody pulls what is public")
    check(stage.tokens.given and all(user is None for user, _ in stage.tokens.given), "without a name", stage.tokens.given)
    stage.tokens.given.clear()
    stage.toolcell_for(registry).add(source(registry.host, image)).works("a name and password pull the rest")
    scopes = {scope for _, scope in stage.tokens.given}
    check(scopes == {f"repository:{image.repository}:pull"}, "tokens are for pulling from this repository", scopes)


@conversation()
def certificate_of_nobody(stage: Stage) -> None:
    """A registry with a certificate of an authority that is not trusted gets no request."""
    registry = stage.registries["tls"]
    image = stage.push(registry.remote())
    folder = stage.scratch / "nobody"
    folder.mkdir()
    other = stage.toolcell(registry.host, 'private = true\nauthorities = "ca.pem"')
    shutil.copyfile(Certificates(folder).authority, other.folder / "ca.pem")
    other.refuses_to_add(source(registry.host, image), "it is not believed", "certificate")
    plain = stage.toolcell(registry.host, "private = true\nplain_http = true")
    plain.refuses_to_add(source(registry.host, image), "it is not asked without TLS either", registry.host)


@conversation()
def private_address(stage: Stage) -> None:
    """A registry at a private address has to be named in the manifest."""
    image = stage.push(stage.plain.remote())
    closed = stage.toolcell(stage.plain.host, "plain_http = true")
    closed.refuses_to_add(source(stage.plain.host, image), "a private address is refused", "private")
    unnamed = stage.toolcell("registry.example.com")
    unnamed.refuses_to_add(source(stage.plain.host, image), "so is one that the manifest does not name", stage.plain.host)


@conversation()
def registry_down(stage: Stage) -> None:
    """Without its registry, what is in the store answers, and what is not is an error in time."""
    image = stage.push(stage.plain.remote())
    toolcell, empty = stage.toolcell_for(stage.plain), stage.toolcell_for(stage.plain)
    toolcell.add(source(stage.plain.host, image)).works("add pulls the component")
    empty.manifest.write_text(toolcell.text())
    with stage.plain.down():
        stage.toolcell_for(stage.plain).refuses_to_add(source(stage.plain.host, image), "add says so", stage.plain.host)
        empty.do("pull").refuses("pull says so", stage.plain.host)
        empty.call().refuses("a call of what is not in the store says so")
        toolcell.do("outdated").refuses("outdated says so", stage.plain.host)
        toolcell.do("update", "--yes").refuses("update says so", stage.plain.host)
        toolcell.answers("a", "what is in the store answers")
    empty.do("pull").works("pull works once the registry is there")
    empty.answers("a", "the tool answers")


@conversation()
def serve_without_registry(stage: Stage) -> None:
    """A server starts from its store alone."""
    image = stage.push(stage.plain.remote())
    toolcell = stage.toolcell_for(stage.plain)
    toolcell.add(source(stage.plain.host, image)).works("add pulls the component")
    command = [toolcell.program, "serve", "-m", str(toolcell.manifest), "--http", "127.0.0.1:0", "--control", "off"]
    with stage.plain.down():
        try:
            server = Server(command, toolcell.folder / "log", r"(http://127\.0\.0\.1:\d+)", toolcell.folder, **toolcell.environment)
        except Broken as broken:
            raise Failed(f"the server starts: {broken}") from None
        server.end()
    check(server.process.returncode == 0, "it ends well", (toolcell.folder / "log").read_text())
