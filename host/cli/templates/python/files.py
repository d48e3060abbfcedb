"""The component's exports: the functions of wit/tool.wit."""

import re
from pathlib import Path

from componentize_py_types import Err

FOLDER = Path("/notes")


class Notes:
    """What the host calls; the name is the interface's."""

    def read_note(self, name: str) -> str:
        try:
            return path(name).read_text("utf-8")
        except FileNotFoundError:
            raise Err(f"there is no note {name!r}") from None
        except OSError as problem:
            raise Err(f"{name!r} cannot be read: {problem.strerror}") from None

    def write_note(self, name: str, text: str) -> int:
        try:
            return path(name).write_bytes(text.encode())
        except OSError as problem:
            raise Err(f"{name!r} cannot be written: {problem.strerror}") from None


def path(name: str) -> Path:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise Err(f"{name!r} is not a name: 1 to 64 letters, digits, - and _")
    return FOLDER / f"{name}.txt"


# This runs once, when the component is built: what a call imports is imported then.
path("name")
"é".encode().decode("utf-8")
