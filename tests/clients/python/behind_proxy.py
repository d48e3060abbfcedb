"""Talks with the official Python SDK to two replicas of a toolcell, behind a proxy that asks them in turns.

Usage: behind_proxy.py --url URL --manifest ONE --manifest OTHER --mode auto|2026-07-28

The replicas serve the fixtures `good` and `asks`. This program changes their manifests to see the list change. It prints a
line for each claim that holds, and ends with a non-zero status at the first that does not.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import ElicitResult

FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}

SECONDS_MAX = 60.0
"""No step here takes a second, except on a machine under load."""


def check(holds_true: bool, claim: str, *details: object) -> None:
    """Prints the claim if it holds; otherwise ends the run with it."""
    if not holds_true:
        sys.exit("\n  ".join([f"FAILED {claim}", *map(str, details)]))
    print(f"ok     {claim}", flush=True)


async def calls(client: Client) -> None:
    """Tools answer repeatedly, progress arrives, and a cancelled call stops."""
    for number in range(10):
        answer = await client.call_tool("echo", {"text": f"hello {number}"})
        check(answer.content[0].text == f"hello {number}", f"call {number} is answered", answer)
    reports: list[float] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        reports.append(progress)

    answer = await client.call_tool("slow", {"steps": 3, "step_ms": 20}, progress_callback=report)
    check(answer.content[0].text == "3 steps done" and reports == [1, 2, 3], "progress arrives and rises", reports)
    with anyio.move_on_after(0.2) as given_up:
        await client.call_tool("slow", {"steps": 1000, "step_ms": 20})
    check(given_up.cancelled_caught, "a call is given up")


async def questions(client: Client) -> None:
    """A tool asks three times. The replica whose turn it is serves each round."""
    rounds = [{f"who{number}": {"form": FORM}} for number in range(3)]
    answer = await client.call_tool("ask", {"rounds": rounds})
    text = answer.content[0].text
    check(text.count('accepted {"name":"Ada"}') == 3, "the tool has the answers to three rounds", text)


async def changes(client: Client, manifests: list[Path]) -> None:
    """A subscription is notified of a changed list, and in the end every replica has it."""
    async with client.listen(tools_list_changed=True) as subscription:
        for manifest in manifests:
            manifest.write_text(manifest.read_text().replace("[components.good]", '[components.good]\nprefix = "new_"'))
        event = await anext(aiter(subscription))
        check(type(event).__name__ == "ToolsListChanged", "a subscription is notified of another list", event)
    listed = 0
    # After as many new lists in a row as there are replicas, each replica has been asked.
    while listed < len(manifests):
        names = [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools]
        listed = listed + 1 if "new_echo" in names else 0
    check(True, "every replica has the new list")


async def person(context: Any, asked: Any) -> ElicitResult:
    """Answers every form."""
    return ElicitResult(action="accept", content={"name": "Ada"})


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--manifest", required=True, type=Path, action="append")
    parser.add_argument("--mode", required=True, choices=["auto", "2026-07-28"])
    options = parser.parse_args()
    with anyio.fail_after(SECONDS_MAX):
        async with Client(options.url, mode=options.mode, elicitation_callback=person) as client:
            check(client.protocol_version == "2026-07-28", f"mode {options.mode} negotiates the newest revision")
            await calls(client)
            await questions(client)
            await changes(client, options.manifest)


warnings.simplefilter("ignore", MCPDeprecationWarning)
anyio.run(main)
