"""Talks over HTTP, with the official Python SDK in one mode, to a toolcell that is served already.

Usage: over_http.py --url URL --manifest toolcell.toml --mode legacy|auto|2026-07-28

The server has the fixture `good`, by a manifest that this program changes to see the list change. Prints one line
for each thing it found true and ends with a non-zero status at the first that is not.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

NEGOTIATED = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}
"""The revision that each mode must end up with: the newest that both sides know in that era."""

SECONDS_MAX = 60.0
"""Nothing here takes a second; machines under load do."""


def check(holds_true: bool, claim: str, *details: object) -> None:
    """Says the claim, or ends the run with it."""
    if not holds_true:
        sys.exit("\n  ".join([f"FAILED {claim}", *map(str, details)]))
    print(f"ok     {claim}", flush=True)


def change(manifest: Path) -> None:
    """Gives the tools other names."""
    manifest.write_text(manifest.read_text().replace("[components.good]", '[components.good]\nprefix = "new_"'))


async def calls(client: Client) -> None:
    """Tools are listed and answer; progress arrives; a call that is given up stops."""
    names = [tool.name for tool in (await client.list_tools()).tools]
    check("echo" in names, "the tools are listed", names)
    answer = await client.call_tool("echo", {"text": "hello"})
    check(answer.content[0].text == "hello", "a tool answers", answer)
    reports: list[float] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        reports.append(progress)

    answer = await client.call_tool("slow", {"steps": 3, "step_ms": 20}, progress_callback=report)
    check(answer.content[0].text == "3 steps done" and reports == [1, 2, 3], "progress arrives and rises", reports)
    try:
        await client.call_tool("no_such_tool", {})
        check(False, "an unknown tool is error -32602")
    except MCPError as error:
        check(error.error.code == -32602, "an unknown tool is error -32602", error)
    with anyio.move_on_after(0.2) as given_up:
        await client.call_tool("slow", {"steps": 1000, "step_ms": 20})
    check(given_up.cancelled_caught, "a call is given up")
    answer = await client.call_tool("echo", {"text": "next"})
    check(answer.content[0].text == "next", "the next call is answered", answer)


async def changes(client: Client, options: argparse.Namespace, told: anyio.Event) -> None:
    """The client hears of another list."""
    if NEGOTIATED[options.mode] == "2026-07-28":
        async with client.listen(tools_list_changed=True) as subscription:
            change(options.manifest)
            event = await anext(aiter(subscription))
            check(type(event).__name__ == "ToolsListChanged", "a subscription is told of another list", event)
    else:
        change(options.manifest)
        await told.wait()
        check(True, "the session's stream is told of another list")
    names = [tool.name for tool in (await client.list_tools()).tools]
    check("new_echo" in names, "the new list is there", names)


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--manifest", required=True, type=Path)
    parser.add_argument("--mode", required=True, choices=sorted(NEGOTIATED))
    options = parser.parse_args()
    told = anyio.Event()

    async def heard(message: Any) -> None:
        if "ToolListChanged" in repr(message):
            told.set()

    with anyio.fail_after(SECONDS_MAX):
        async with Client(options.url, mode=options.mode, message_handler=heard) as client:
            revision = client.protocol_version
            check(revision == NEGOTIATED[options.mode], f"mode {options.mode} negotiates {revision}")
            await calls(client)
            await changes(client, options, told)


warnings.simplefilter("ignore", MCPDeprecationWarning)
anyio.run(main)
