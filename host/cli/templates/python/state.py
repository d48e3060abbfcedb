"""The component's exports: the functions of wit/tool.wit."""

import re

from componentize_py_types import Err
from wit_world.imports import atomics, store
from wit_world.imports.store import Error_AccessDenied, Error_Other


class Counters:
    """What the host calls; the name is the interface's."""

    def count(self, name: str) -> int:
        checked(name)
        try:
            with store.open("") as bucket:
                return atomics.increment(bucket, name, 1)
        except Err as problem:
            raise Err(f"it is not counted: {reason(problem.value)}") from None


def checked(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise Err(f"{name!r} is not a name: 1 to 64 letters, digits, - and _")


def reason(error: store.Error) -> str:
    if isinstance(error, Error_Other):
        return error.value
    return "toolcell.toml grants no state" if isinstance(error, Error_AccessDenied) else "there is no such store"


# This runs once, when the component is built: what a call imports is imported then.
checked("name")
