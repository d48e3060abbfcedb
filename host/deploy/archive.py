"""Archives whose bytes depend on nothing but names, modes, contents and one time: tar, gzip, ar and zip.

Holds their forms. Must not hold: which files.
"""

import gzip
import io
import tarfile
import zipfile
from typing import NamedTuple

FILE, PROGRAM, PRIVATE = 0o644, 0o755, 0o640


class Entry(NamedTuple):
    """A file, or a folder where there is no content."""

    name: str
    content: bytes | None
    mode: int = FILE
    owner: int = 0


def with_folders(entries):
    """The entries with the folders that hold them, sorted."""
    found = {entry.name: entry for entry in entries}
    for name in list(found):
        parts = name.split("/")
        for end in range(1, len(parts)):
            found.setdefault("/".join(parts[:end]), Entry("/".join(parts[:end]), None, PROGRAM))
    return [found[name] for name in sorted(found)]


def tar(entries, epoch, prefix=""):
    """A tar archive. Owners have numbers and no names."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for entry in with_folders(entries):
            about = tarfile.TarInfo(prefix + entry.name)
            about.mode, about.mtime, about.uid, about.gid = entry.mode, epoch, entry.owner, entry.owner
            if entry.content is None:
                about.type = tarfile.DIRTYPE
                archive.addfile(about)
            else:
                about.size = len(entry.content)
                archive.addfile(about, io.BytesIO(entry.content))
    return out.getvalue()


def gz(content):
    """Compressed, without a name and a time. Level 9 takes three times as long for a hundredth of the size."""
    return gzip.compress(content, 6, mtime=0)


def ar(members, epoch):
    """The form of a .deb: a list of (name, content)."""
    out = b"!<arch>\n"
    for name, content in members:
        out += f"{name:<16}{epoch:<12}{0:<6}{0:<6}{0o100644:<8o}{len(content):<10}`\n".encode("ascii")
        out += content + b"\n" * (len(content) % 2)
    return out


def zipped(entries):
    """A zip archive. Its files have the first day that zip knows, since readers take other days for local time."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for entry in entries:
            about = zipfile.ZipInfo(entry.name, (1980, 1, 1, 0, 0, 0))
            about.external_attr, about.create_system, about.compress_type = (0o100000 | entry.mode) << 16, 3, zipfile.ZIP_DEFLATED
            archive.writestr(about, entry.content)
    return out.getvalue()
