"""The rows of the matrix: one conversation each, on a connection of its own, and the line that it prints.

Holds no client: `python_clients.py` beside it has these, and `node/rows.mjs` has the same rows for clients on Node. A row
passes, fails with a cause, or is absent: the client has no way to do it.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PATIENCE_S = 25.0
"""No row takes two seconds on an idle machine. One that takes this long hangs."""

LOOK_S = 0.02
"""Seconds between two reads of the audit, or of a list."""

PAGED_TOOLS = 18
"""Tools of the server that lists them in pages of five."""

CAUSE_MAX = 300
"""Characters of a cause that are printed."""

CITY = {"city": "lisboa", "month": 7}
JULY = {"month": 7, "name": "July", "high": 28, "low": 18, "precipitation": 4}
CIRCLE = {"circle": {"center": {"x": 1, "y": 2}, "radius": 3}}
LABELS = [["a", 1], ["b", -2]]
DRAWING = {"shape": CIRCLE, "color": "red", "style": ["dashed"], "serial": 7, "icon": "AQI=", "labels": LABELS, "mark": "x"}
INSIDE_OUT = {"shape": {"circle": {"center": {"x": 1, "y": 2}, "radius": -3}}}
ENDLESS = "nap_forever"
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
ASKED = {"rounds": [{"who": {"form": FORM, "message": "Who?"}}]}
ADA = {"name": "Ada"}
SKILL = "skill://charts/SKILL.md"


class Absent(Exception):
    """The client has no way to do what the row asks."""


class Failed(Exception):
    """A claim that does not hold."""


@dataclass
class Result:
    """The result of a call, as the client hands it to an agent."""

    text: str = ""
    structured: Any = None
    failed: bool = False


@dataclass(frozen=True)
class Target:
    """The way to a server: its URL, or the command that starts it or a bridge to it. And the folder that is served."""

    url: str | None
    command: str
    arguments: list[str]
    folder: Path
    restarts: bool = False
    """True if the server at the URL can be started anew."""


@dataclass
class Events:
    """What the client told the program around it."""

    changed: asyncio.Event = field(default_factory=asyncio.Event)
    progress: list[float] = field(default_factory=list)


class Client(ABC):
    """One client, with the least code that an agent would need around it."""

    hears = False
    """True if it can tell the program around it that the list changed."""

    stops_calls = True
    """True if a call that the program gives up is cancelled at once. Otherwise it ends with the connection."""

    def __init__(self) -> None:
        self.events = Events()

    @abstractmethod
    def connected(self, target: Target) -> AbstractAsyncContextManager[None]:
        """A connection to the server, for as long as the context lasts."""

    @abstractmethod
    async def names(self) -> list[str]:
        """The names of all tools, read anew."""

    @abstractmethod
    async def call(self, tool: str, arguments: dict[str, Any]) -> Result:
        """The result of one call."""

    async def call_unlisted(self, tool: str) -> Result:
        """The result of a call of a tool that is not listed."""
        return await self.call(tool, {})

    async def with_progress(self, tool: str, arguments: dict[str, Any]) -> Result:
        """The result of a call whose progress is heard of."""
        raise Absent("tells nobody of progress")

    async def resource(self, uri: str) -> tuple[list[str], str]:
        """The addresses of all resources, and the text of one."""
        raise Absent("reads no resources")

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        """The first message of a prompt."""
        raise Absent("has no prompts")

    elicits = False
    """True if it can answer the questions of tools."""

    async def task(self, tool: str, arguments: dict[str, Any]) -> Result:
        """The result of a call that is made as a task."""
        raise Absent("has no tasks")


def check(holds: bool, claim: str, *details: object) -> None:
    """Ends the row with the claim if it does not hold."""
    if not holds:
        raise Failed(": ".join(["not so: " + claim, *(f"{detail!r:.200}" for detail in details)]))


def records(folder: Path, event: str) -> list[dict[str, Any]]:
    """The audit's records of this event, from each process. The last line of a file may be half written."""
    lines = [line for file in folder.glob("audit.jsonl*") for line in file.read_text().splitlines(keepends=True)]
    read = [json.loads(line) for line in lines if line.endswith("\n")]
    return [record for record in read if record["event"] == event]


async def until(happened: Callable[[], Any], claim: str) -> Any:
    """The first value of `happened` that is one."""
    late = asyncio.get_running_loop().time() + PATIENCE_S * 0.8
    while not (value := happened()):
        check(asyncio.get_running_loop().time() < late, claim)
        await asyncio.sleep(LOOK_S)
    return value


async def list_row(client: Client, target: Target, paged: Target) -> None:
    async with client.connected(paged):
        names = await client.names()
        check(len(names) == PAGED_TOOLS == len(set(names)), f"{PAGED_TOOLS} tools in pages of five are listed once", len(names))


async def call_row(client: Client, target: Target, paged: Target) -> None:
    async with client.connected(target):
        await client.names()
        july = await client.call("weather_normals", CITY)
        value = july.structured if july.structured is not None else json.loads(july.text)
        check(not july.failed and value["months"] == [JULY], "a structured result arrives", july)
        said = await client.call("echo", {"text": "héllo"})
        check("héllo" in said.text, "a text arrives", said)


async def tuple_row(client: Client, target: Target, paged: Target) -> None:
    async with client.connected(target):
        await client.names()
        same = await client.call("draw_same", {"drawing": DRAWING})
        value = same.structured if same.structured is not None else json.loads(same.text)
        check(not same.failed and value["labels"] == LABELS, "tuples arrive as they were sent", same)


async def typed_error_row(client: Client, target: Target, paged: Target) -> None:
    async with client.connected(target):
        await client.names()
        result = await client.call("draw_area", INSIDE_OUT)
        check(result.failed and "negative-radius" in result.text, "the error of a function is one that a model can read", result)
        result = await client.call("weather_normals", {"city": "Amstelveen"})
        check(result.failed and "did you mean Amsterdam?" in result.text, "the error of a tool is one that a model can read", result)


async def protocol_error_row(client: Client, target: Target, paged: Target) -> None:
    async with client.connected(target):
        await client.names()
        try:
            result = await client.call_unlisted("no_such_tool")
        except (Absent, Failed):
            raise
        except Exception as error:
            said = str(root_of(error))
            check("Unknown tool: no_such_tool" in said, "the error says that there is no such tool", said)
        else:
            check(result.failed and "no_such_tool" in result.text, "a call of no tool is an error", result)
        check("again" in (await client.call("echo", {"text": "again"})).text, "the connection goes on")


async def progress_row(client: Client, target: Target, paged: Target) -> None:
    async with client.connected(target):
        await client.names()
        result = await client.with_progress("slow", {"steps": 5, "step_ms": 100})
        check("5 steps done" in result.text and len(client.events.progress) >= 2, "progress arrives", result, client.events.progress)
        check(client.events.progress == sorted(client.events.progress), "progress grows", client.events.progress)


async def cancel_row(client: Client, target: Target, paged: Target) -> None:
    def mine(event: str) -> list[dict[str, Any]]:
        return [record for record in records(target.folder, event) if record["tool"] == ENDLESS]

    before = len(mine("call.started")) if list(target.folder.glob("audit.jsonl*")) else 0
    async with client.connected(target):
        await client.names()
        call = asyncio.create_task(client.call(ENDLESS, {}))
        await until(lambda: call.done() or len(mine("call.started")) > before, "an endless call runs")
        if call.done() and isinstance(absent := call.exception(), Absent):
            raise absent
        check(not call.done(), "an endless call runs", call.done() and (call.exception() or call.result()))
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call
        if client.stops_calls:
            await until(lambda: len(mine("call.finished")) > before, "the call ends when it is given up")
            check("still" in (await client.call("echo", {"text": "still"})).text, "the connection goes on")
    await until(lambda: len(mine("call.finished")) > before, "the call ends with the connection")
    outcome = mine("call.finished")[-1]["outcome"]
    check(outcome == "cancelled", "the call is cancelled", outcome)
    if not client.stops_calls:
        raise Absent("says nothing: the call ends with the connection")


async def list_changed_row(client: Client, target: Target, paged: Target) -> None:
    async with client.connected(target):
        await client.names()
        check("a" in (await client.call("version", {})).text, "the first version answers")
        (target.folder / "next.wasm").rename(target.folder / "tool.wasm")
        try:
            if client.hears:
                await asyncio.wait_for(client.events.changed.wait(), PATIENCE_S * 0.6)
            await until(lambda: records(target.folder, "catalog.replaced"), "the component is replaced")
            late = asyncio.get_running_loop().time() + PATIENCE_S * 0.3
            while "extra" not in (names := await client.names()):
                check(not client.hears and asyncio.get_running_loop().time() < late, "the list that is read again is the new one", names)
                await asyncio.sleep(LOOK_S)
            check("c" in (await client.call("version", {})).text, "the new code answers")
        except TimeoutError as error:
            raise Failed("not so: it hears of the changed list") from error
    if not client.hears:
        raise Absent("does not listen: the list is new when it is read again")


async def resources_row(client: Client, target: Target, paged: Target) -> None:
    async with client.connected(target):
        listed, text = await client.resource(SKILL)
        check(SKILL in listed, "the resource is listed", listed)
        check("Look at the axes first" in text, "its text arrives", text)


async def prompts_row(client: Client, target: Target, paged: Target) -> None:
    async with client.connected(target):
        text = await client.prompt("review", {"code": "x = 1", "language": "Python"})
        check(text == "Review this Python: x = 1", "the prompt arrives filled in", text)


async def elicitation_row(client: Client, target: Target, paged: Target) -> None:
    if not client.elicits:
        raise Absent("answers no questions of tools")
    async with client.connected(target):
        await client.names()
        result = await client.call("ask", ASKED)
        check('accepted {"name":"Ada"}' in result.text, "the tool has the answer", result)


async def tasks_row(client: Client, target: Target, paged: Target) -> None:
    async with client.connected(target):
        result = await client.task("slow_compute", {"seconds": 0.2, "label": "it"})
        check("computed it" in result.text, "the task has its result", result)


async def reconnect_row(client: Client, target: Target, paged: Target) -> None:
    async with client.connected(target):
        await client.names()
        check("one" in (await client.call("echo", {"text": "one"})).text, "the first connection answers")
    if target.restarts:
        restart = target.folder / "restart"
        restart.touch()
        await until(lambda: not restart.exists(), "the server is started anew")
    async with client.connected(target):
        await client.names()
        check("two" in (await client.call("echo", {"text": "two"})).text, "the second connection answers")


ROWS: dict[str, Callable[[Client, Target, Target], Awaitable[None]]] = {
    "list": list_row,
    "call": call_row,
    "tuple result": tuple_row,
    "typed error": typed_error_row,
    "protocol error": protocol_error_row,
    "progress": progress_row,
    "resources": resources_row,
    "prompts": prompts_row,
    "elicitation": elicitation_row,
    "tasks": tasks_row,
    "reconnect": reconnect_row,
    "cancel": cancel_row,
    "list_changed": list_changed_row,
}


def tell(row: str, outcome: str, cause: str = "") -> None:
    """Prints the line of a row."""
    print(json.dumps({"row": row, "outcome": outcome, "cause": cause[:CAUSE_MAX]}), flush=True)


def root_of(error: BaseException) -> BaseException:
    """The exception that task groups wrapped, several times over. A claim that failed comes first."""
    while isinstance(error, BaseExceptionGroup):
        error = next((inner for inner in error.exceptions if isinstance(root_of(inner), (Failed, Absent))), error.exceptions[0])
    return error


async def run(kind: type[Client], target: Target, paged: Target) -> None:
    """Each row in turn, with a client of its own. The first connection is not counted: it loads the client's library."""
    with suppress(Exception):
        async with kind().connected(target):
            pass
    for name, row in ROWS.items():
        try:
            await asyncio.wait_for(row(kind(), target, paged), PATIENCE_S)
            tell(name, "passed")
        except BaseException as raised:
            error = root_of(raised)
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            if isinstance(error, Absent):
                tell(name, "absent", str(error))
            elif isinstance(error, TimeoutError):
                tell(name, "failed", f"hangs: not done in {PATIENCE_S:.0f} s")
            else:
                tell(name, "failed", f"{type(error).__name__}: {error}" if not isinstance(error, Failed) else str(error))
