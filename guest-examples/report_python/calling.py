"""Calling other tools of the same host, whose manifest has to name them in `calls`. Copy this file into tools of yours."""

import json
from typing import Any

from componentize_py_types import Err, Ok
from wit_world.imports import calling
from wit_world.imports.calling import Called, NotCalled, NotCalled_Failed, Wanted
from wit_world.imports.types import Content_Text


class CallFailed(Exception):
    """A call without a result; the message says which tool, and its words or the host's."""


def call(tool: str, **arguments: Any) -> Any:
    """Calls a tool, and returns the JSON value that it gives. Raises `CallFailed`."""
    try:
        return _value(tool, calling.call(tool, json.dumps(arguments)))
    except Err as end:
        raise _failure(tool, end.value) from None


def call_all(tool: str, each: list[dict[str, Any]]) -> list[Any]:
    """Calls a tool with each of these arguments, some of them at once. One without a result is a `CallFailed` in its place."""
    ends = calling.call_all([Wanted(tool, json.dumps(arguments)) for arguments in each])
    return [_ended(tool, end) for end in ends]


def _ended(tool: str, end: Ok[Called] | Err[NotCalled]) -> Any:
    if isinstance(end, Err):
        return _failure(tool, end.value)
    try:
        return _value(tool, end.value)
    except CallFailed as failure:
        return failure


def _value(tool: str, called: Called) -> Any:
    if called.structured_json is None:
        raise CallFailed(f"{tool}: it gave no JSON value")
    return json.loads(called.structured_json)


def _failure(tool: str, why: NotCalled) -> CallFailed:
    if isinstance(why, NotCalled_Failed):
        return CallFailed(f"{tool}: {' '.join(said.value.text for said in why.value.content if isinstance(said, Content_Text))}")
    return CallFailed(f"{tool}: {why.value.text}")
