"""The conversation that each client of agents' frameworks holds with toolcell, and the line that it prints for each claim.

Holds no client: `python_clients.py` beside it has these. It knows the folder that `check.py` makes: a tool with a structured
result, one that draws, tools that never end, and a component that is replaced while it is served.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

PATIENCE_S = 60.0
"""No step takes a second on an idle machine. One that takes this long hangs."""

LOOK_S = 0.02
"""Seconds between two reads of the audit, or of a list."""

CITY = {"city": "lisboa", "month": 7}
JULY = {"month": 7, "name": "July", "high": 28, "low": 18, "precipitation": 4}
CHART = {"kind": "line", "width": 400, "height": 200, "series": [{"name": "web", "values": [1, 2.5, None, 4]}]}
PNG_OF_400_BY_200 = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000190000000c8")
MISSPELT = {"city": "Amstelveen"}
ENDLESS = "nap_forever"


@dataclass
class Result:
    """The result of a call, as the client hands it to an agent."""

    text: str = ""
    structured: Any = None
    pictures: list[bytes] = field(default_factory=list)
    failed: bool = False


@dataclass(frozen=True)
class Target:
    """The way to a server: the URL of one that is served, or the command that starts one. And the folder it serves."""

    url: str | None
    command: str
    arguments: list[str]
    folder: Path


class Client(ABC):
    """One client, with the least code that an agent would need around it."""

    revision: str
    """The revision that it negotiates with toolcell."""

    hears = False
    """True if it tells the program around it that the list changed."""

    stops_calls = True
    """True if a call that the program gives up is cancelled at once. Otherwise it ends with the connection."""

    @abstractmethod
    def connected(self, target: Target, on_change: Callable[[], None]) -> AbstractAsyncContextManager[None]:
        """A connection to the server, for as long as the context lasts."""

    @abstractmethod
    async def names(self) -> list[str]:
        """The names of all tools, read anew."""

    @abstractmethod
    async def call(self, tool: str, arguments: dict[str, Any]) -> Result:
        """The result of one call."""


class Failed(Exception):
    """A claim that does not hold."""


def check(holds: bool, claim: str, *details: object) -> None:
    """Prints the claim if it holds; otherwise ends the run with it."""
    if not holds:
        raise Failed("\n  ".join([f"FAILED {claim}", *(f"{detail!r:.2000}" for detail in details)]))
    print(f"ok     {claim}", flush=True)


def records(folder: Path, event: str) -> list[dict[str, Any]]:
    """The audit's records of this event. The last line may be half written."""
    lines = (folder / "audit.jsonl").read_text().splitlines(keepends=True)
    read = [json.loads(line) for line in lines if line.endswith("\n")]
    return [record for record in read if record["event"] == event]


async def until(happened: Callable[[], Any], claim: str) -> Any:
    """The first value of `happened` that is one. Ends the run if there is none in time."""
    late = asyncio.get_running_loop().time() + PATIENCE_S
    while not (value := happened()):
        if asyncio.get_running_loop().time() > late:
            check(False, claim)
        await asyncio.sleep(LOOK_S)
    return value


async def converse(client: Client, target: Target) -> None:
    """Lists, calls, is refused, sees the list change, and gives a call up."""
    changed = asyncio.Event()
    given_up = None
    async with client.connected(target, changed.set):
        names = await client.names()
        missing = {"weather_normals", "chart", ENDLESS, "version", "linger"} - set(names)
        check(not missing and len(names) == len(set(names)), "all tools are listed once", missing, names)
        await results(client, target)
        await reload(client, target, changed)
        given_up = await give_up(client, target)
        if client.stops_calls:
            await ends_as_cancelled(target, given_up)
            after = await client.call("version", {})
            check(after.text == "c", "the connection goes on after a call that was given up", after)
    if not client.stops_calls:
        await ends_as_cancelled(target, given_up)


async def results(client: Client, target: Target) -> None:
    """A structured result, a picture and an error reach the agent, in the revision that was meant."""
    july = await client.call("weather_normals", CITY)
    good = not july.failed and july.structured["city"] == "Lisbon" and july.structured["months"] == [JULY]
    check(good, "a structured result arrives as it is", july)
    drawn = await client.call("chart", CHART)
    good = not drawn.failed and [picture[:24] for picture in drawn.pictures] == [PNG_OF_400_BY_200]
    check(good, "a picture arrives as its bytes", drawn)
    check("web: 3 values from 1 to 4" in drawn.text, "its text for the model arrives too", drawn)
    refused = await client.call("weather_normals", MISSPELT)
    good = refused.failed and "did you mean Amsterdam?" in refused.text
    check(good, "an error of a tool is an error that the model can read", refused)
    revisions = {record["revision"] for record in records(target.folder, "call.started")}
    check(revisions == {client.revision}, f"its revision is {client.revision}", revisions)


async def reload(client: Client, target: Target, changed: asyncio.Event) -> None:
    """Another version of a component is saved: its tools are in the list, and its code answers."""
    check((await client.call("version", {})).text == "a", "the first version answers")
    (target.folder / "next.wasm").rename(target.folder / "tool.wasm")
    if client.hears:
        await asyncio.wait_for(changed.wait(), PATIENCE_S)
        check(True, "the client says that the list changed")
    # A client that reads the second page of a list that has changed since is told to begin anew, and few do.
    await until(lambda: records(target.folder, "catalog.replaced"), "the component is replaced")
    late = asyncio.get_running_loop().time() + PATIENCE_S
    while "extra" not in (names := await client.names()):
        if client.hears or asyncio.get_running_loop().time() > late:
            check(False, "the list is the new one", names)
        await asyncio.sleep(LOOK_S)
    check("linger" not in names, "the list is the new one", names)
    check((await client.call("version", {})).text == "c", "the new code answers")


async def give_up(client: Client, target: Target) -> int:
    """Gives up a call that runs. Returns its number in the audit."""
    call = asyncio.create_task(client.call(ENDLESS, {}))

    def running() -> list[int]:
        if call.done():
            check(False, "an endless call runs", call.exception() or call.result())
        return [record["id"] for record in records(target.folder, "call.started") if record["tool"] == ENDLESS]

    number = (await until(running, "an endless call runs"))[0]
    call.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.wait_for(asyncio.shield(call), PATIENCE_S)
    check(call.cancelled(), "the program has its call back at once", call)
    return number


async def ends_as_cancelled(target: Target, number: int) -> None:
    """The audit says that this call was cancelled."""

    def ended() -> list[str]:
        return [record["outcome"] for record in records(target.folder, "call.finished") if record["id"] == number]

    outcome = await until(ended, "the call that was given up ends")
    check(outcome == ["cancelled"], "the call that was given up is cancelled", outcome)
