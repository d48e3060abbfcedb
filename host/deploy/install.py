#!/usr/bin/env python3
"""Installs the binary of `make build` for this machine: `make install PREFIX=/usr/local`.

    host/deploy/install.py PREFIX [--uninstall]

The program, its manual pages, completions and licences go below PREFIX, as in the tarball; with DESTDIR, below that.
A list of them in share/doc/toolcell is what `--uninstall` removes.
"""

import os
import sys
from pathlib import Path

import build
import crates
import project
import share
from archive import PROGRAM, Entry

LIST = f"{share.DOC}/INSTALLED"


def place(prefix):
    """Where files go: below DESTDIR, where that is set."""
    prefix = Path(prefix).expanduser().absolute()
    destination = os.environ.get("DESTDIR")
    return Path(destination).absolute() / prefix.relative_to("/") if destination else prefix


def install(folder, binary):
    epoch = build.source_date(project.ROOT)
    components = share.components(build.target_folder())
    found, own = crates.with_components(project.ROOT, build.host_target())
    documents = share.documents(crates.licences(found), crates.sbom(found, own, epoch))
    entries = [Entry(f"bin/{project.NAME}", binary.read_bytes(), PROGRAM), *share.manual(binary), *share.completions(binary), *documents, *share.placed(components)]
    entries.append(Entry(LIST, "".join(f"{entry.name}\n" for entry in [*entries, Entry(LIST, b"")]).encode("utf-8")))
    for entry in entries:
        file = folder / entry.name
        file.parent.mkdir(parents=True, exist_ok=True)
        # A program that runs keeps its own file.
        file.unlink(missing_ok=True)
        file.write_bytes(entry.content)
        file.chmod(entry.mode)
    print(f"installed: {folder / 'bin' / project.NAME}, and {len(entries) - 1} files below {folder / 'share'}")


def uninstall(folder):
    try:
        names = (folder / LIST).read_text("utf-8").splitlines()
    except OSError as error:
        raise SystemExit(f"install: nothing was installed there: {error}") from error
    for name in names:
        (folder / name).unlink(missing_ok=True)
    (folder / share.DOC).rmdir()
    print(f"removed: {len(names)} files below {folder}")


def main():
    words = [word for word in sys.argv[1:] if word != "--uninstall"]
    if len(words) != 1:
        raise SystemExit(__doc__.split("\n\n")[1].strip())
    if "--uninstall" in sys.argv:
        return uninstall(place(words[0]))
    binary = build.target_folder() / "release" / project.NAME
    if not binary.exists():
        raise SystemExit("install: there is no binary yet: make build")
    if project.DRILL in binary.read_bytes():
        raise SystemExit(f"install: {binary} is built for the drill, with guests that can do anything: make build")
    return install(place(words[0]), binary)


if __name__ == "__main__":
    main()
