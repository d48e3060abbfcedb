"""The component's exports: the functions of wit/tool.wit."""

from componentize_py_types import Err
from wit_world.imports import atomics, store
from wit_world.imports.store import Error_AccessDenied, Error_Other


class Counters:
    """What the host calls; the name is the interface's."""

    def count(self, name: str) -> int:
        key = name.strip().lower()
        if not key:
            raise Err("the name is empty")
        try:
            with store.open("") as bucket:
                return atomics.increment(bucket, key, 1)
        except Err as problem:
            raise Err(f"it is not counted: {reason(problem.value)}") from None


def reason(error: store.Error) -> str:
    if isinstance(error, Error_Other):
        return error.value
    return "toolcell.toml grants no state" if isinstance(error, Error_AccessDenied) else "there is no such store"
