"""Talks to toolcell with the official Python SDK, in one mode per run.

Usage: client.py --toolcell BINARY --cases cases.json --mode legacy|auto|2026-07-28 [--reload FOLDER | --asking FOLDER]
                 [--at NAME=URL ...]

It starts a toolcell for each server that it talks with, except for those that --at names: they are served over HTTP
already. NAME is a name in cases.json, or reload, or asking.

With --reload it serves FOLDER/toolcell.toml instead, whose tool returns its version. It saves the versions of FOLDER/next
over the component: one with an equal list, and one with another list. With --asking it serves FOLDER/toolcell.toml, whose
tools ask, and answers as a person, a model and an editor would.

It prints a line for each claim that holds, and ends with a non-zero status at the first that does not. It knows nothing
of any tool: the calls and the expected results are in cases.json, which every client reads.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
import time
import warnings
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import mcp.client.session
import mcp.client.stdio
from mcp import Client, StdioServerParameters
from mcp.client.subscriptions import ListenNotSupportedError
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp_types import (
    CreateMessageResult,
    ElicitResult,
    ListRootsResult,
    Root,
    TextContent,
    Tool,
    ToolListChangedNotification,
)

NEGOTIATED = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}
"""The revision that each mode must negotiate: the newest that both sides know in that era."""

INVALID_PARAMS = -32602

REQUEST_SECONDS_MAX = 30.0
"""No call of the cases takes a second; a call that takes this long hangs."""

ASKED = [
    {"who": {"form": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}, "where": {}},
    {"poem": {"sampling": {"messages": [{"role": "user", "content": {"type": "text", "text": "A poem"}}], "maxTokens": 9}}},
]
"""The questions that the asking tool is given: two at once, then a third."""

mcp.client.session.DISCOVER_TIMEOUT_SECONDS = 60.0
"""A server whose components are compiled for the first time answers late on a busy machine. After ten seconds the SDK
would take it for one of the other era."""

mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT = 60.0
CLOSE_SECONDS_MAX = 30.0
"""The SDK sends SIGTERM a minute after it closed stdin. A server that ends sooner ended by itself, and had
no call left to wait for."""


def mismatches(pattern: Any, value: Any, path: str = "$") -> list[str]:
    """The places where `value` differs from `pattern`. Objects may hold more than the pattern names; lists may not."""
    if isinstance(pattern, dict) and len(pattern) == 1 and next(iter(pattern)).startswith("$"):
        operator, operand = next(iter(pattern.items()))
        return [] if holds(operator, operand, value) else [f"{path}: {value!r:.300} is not {operator} {operand!r}"]
    if isinstance(pattern, dict):
        if not isinstance(value, dict):
            return [f"{path}: {value!r:.300} is not an object"]
        missing = [f"{path}: no {key!r} among {sorted(value)}" for key in pattern if key not in value]
        return missing + [
            text for key in pattern if key in value for text in mismatches(pattern[key], value[key], f"{path}.{key}")
        ]
    if isinstance(pattern, list):
        if not isinstance(value, list) or len(value) != len(pattern):
            return [f"{path}: {value!r:.600} is not a list of {len(pattern)}"]
        return [
            text for at, (want, have) in enumerate(zip(pattern, value)) for text in mismatches(want, have, f"{path}[{at}]")
        ]
    same = type(pattern) is type(value) or {type(pattern), type(value)} == {int, float}
    return [] if same and pattern == value else [f"{path}: {value!r:.300} is not {pattern!r}"]


def holds(operator: str, operand: Any, value: Any) -> bool:
    """True if this operator of cases.json holds for `value`."""
    match operator:
        case "$contains":
            return isinstance(value, str) and operand in value
        case "$bytes":  # base64 of bytes that begin with these, in hexadecimal
            return isinstance(value, str) and base64.b64decode(value, validate=True).startswith(bytes.fromhex(operand))
        case "$atLeast":
            return isinstance(value, (int, float)) and value >= operand
    raise ValueError(f"cases.json: no operator {operator!r}")


class Failed(Exception):
    """A claim that does not hold."""


def check(holds_true: bool, claim: str, *details: object) -> None:
    """Prints the claim if it holds; otherwise ends the run with it."""
    if not holds_true:
        raise Failed("\n  ".join([f"FAILED {claim}", *map(str, details)]))
    print(f"ok     {claim}", flush=True)


def wire(read: Any) -> dict[str, Any]:
    """An object that the SDK has read, in its form on the wire."""
    return read.model_dump(by_alias=True, mode="json", exclude_none=True)


class Run:
    """One mode of the client against the servers of cases.json."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.toolcell: str = options.toolcell
        self.mode: str = options.mode
        self.folder: Path = options.cases.resolve().parent
        self.cases: dict[str, Any] = json.loads(options.cases.read_text())
        self.modern = NEGOTIATED[self.mode] == "2026-07-28"
        self.at: dict[str, str] = dict(place.split("=", 1) for place in options.at)

    def client(self, name: str, manifest: Path | None = None, **options: Any) -> Client:
        """A client of the server with this name: one that is served already, or a toolcell of its own."""
        target: str | StdioServerParameters | None = self.at.get(name)
        if target is None:
            server = self.cases.get(name, {})
            manifest = manifest or self.folder / server["manifest"]
            args = ["serve", "--manifest", str(manifest), *server.get("options", [])]
            target = StdioServerParameters(command=self.toolcell, args=args)
        return Client(target, mode=self.mode, read_timeout_seconds=REQUEST_SECONDS_MAX, **options)

    async def examples(self) -> None:
        """Every example tool is listed, answers, and refuses the calls that it must."""
        server = self.cases["examples"]
        client = self.client("examples")
        async with client:
            revision = client.protocol_version
            check(revision == NEGOTIATED[self.mode], f"mode {self.mode} negotiates {NEGOTIATED[self.mode]}", revision)
            capabilities = client.server_capabilities
            # A pinned client asks nothing before its first request, so it knows no capabilities.
            if self.mode != "2026-07-28":
                check(bool(capabilities.tools and capabilities.tools.list_changed), "the server announces list changes")
            await self.definitions(client, server)
            for case in server["calls"]:
                await self.call(client, case)
            await self.refusals(client, server)
            await self.resources(client, server)
            await self.subscription(client)
            if not self.modern:
                await client.send_ping()
                check(True, "ping is answered")
            closing = time.monotonic()
        self.closed(closing)

    async def pages(self, client: Client) -> list[list[Tool]]:
        """The tools, page by page."""
        pages, cursor = [], None
        while not pages or cursor is not None:
            page = await client.list_tools(cursor=cursor)
            pages, cursor = [*pages, page.tools], page.next_cursor
        return pages

    async def definitions(self, client: Client, server: dict[str, Any]) -> None:
        """The list names exactly the tools that the cases call."""
        tools = [tool for page in await self.pages(client) for tool in page]
        names, called = [tool.name for tool in tools], sorted({case["tool"] for case in server["calls"] + server["refusals"]})
        check(sorted(names) == called, "every listed tool is called by a case", sorted(names), called)
        check(all(tool.description for tool in tools), "every tool says what it does")
        wrong = mismatches(server["definitions"], {tool.name: wire(tool) for tool in tools})
        check(not wrong, "titles, hints, icons and schemas arrive", *wrong)

    async def paging(self, client: Client, server: dict[str, Any]) -> None:
        """A long list comes in pages of the manifest's size, with nothing lost or doubled between them."""
        pages = [[tool.name for tool in page] for page in await self.pages(client)]
        names, size = [name for page in pages for name in page], server["pageSize"]
        full = all(len(page) == size for page in pages[:-1]) and 0 < len(pages[-1]) <= size
        check(len(pages) > 1 and full, f"{len(names)} tools come in pages of {size}", pages)
        check(len(set(names)) == len(names), "no tool is on two pages", pages)
        check({case["tool"] for case in server["calls"]} <= set(names), "no tool is lost between pages", pages)

    async def call(self, client: Client, case: dict[str, Any]) -> None:
        """One call gives what its case expects. The SDK itself checks structured content against the output schema."""
        reports: list[float] = []

        async def report(progress: float, total: float | None, message: str | None) -> None:
            reports.append(progress)

        result = wire(await client.call_tool(case["tool"], case["arguments"], progress_callback=report))
        wrong = mismatches(case["result"], result)
        check(not wrong, f"{case['tool']}: {case['shows']}", *wrong)
        if case.get("progress"):
            rising = all(before < after for before, after in zip(reports, reports[1:]))
            check(bool(reports) and rising, f"{case['tool']}: progress arrives and rises", reports)

    async def refusals(self, client: Client, server: dict[str, Any]) -> None:
        """Bad arguments are a result the model can read; an unknown tool is an error of the protocol."""
        for case in server["refusals"]:
            result = wire(await client.call_tool(case["tool"], case["arguments"]))
            wrong = mismatches({"isError": True, **case["result"]}, result)
            check(not wrong, f"{case['tool']}: {case['shows']}", *wrong)
        try:
            answer = await client.call_tool("no_such_tool", {})
        except MCPError as error:
            expected = (INVALID_PARAMS, "Unknown tool: no_such_tool")
            got = (error.error.code, error.error.message)
            check(got == expected, "an unknown tool is error -32602", got)
        else:
            check(False, "an unknown tool is error -32602", answer)

    async def resources(self, client: Client, server: dict[str, Any]) -> None:
        """The manifest's resources are listed as templates, and can be read."""
        templates = [found.uri_template for found in (await client.list_resource_templates()).resource_templates]
        for case in server["resources"]:
            check(case["template"] in templates, "the template is listed", templates)
            read = wire(await client.read_resource(case["uri"]))
            wrong = mismatches(case["contents"], read["contents"])
            check(not wrong, case["shows"], *wrong)

    async def subscription(self, client: Client) -> None:
        """The server promises list changes to a modern client; a legacy one cannot ask for the promise."""
        try:
            async with client.listen(tools_list_changed=True) as subscription:
                honoured = subscription.honored.tools_list_changed
                check(self.modern and honoured is True, "listening for list changes is acknowledged", honoured)
        except ListenNotSupportedError:
            check(not self.modern, "list changes need no subscription in the legacy era")

    async def cancellation(self) -> None:
        """A cancelled call stops: the connection goes on, and nothing delays the server's end."""
        server, lines = self.cases["endless"], []  # type: dict[str, Any], list[Any]

        async def log(parameters: Any) -> None:
            lines.append(parameters.data)

        client = self.client("endless", logging_callback=log, log_level="debug" if self.modern else None)
        async with client:
            if not self.modern:
                await client.set_logging_level("debug")
            await self.paging(client, server)
            for case in server["calls"]:
                await self.give_up(client, case, server["meanwhile"])
            check(bool(lines), "the tool's log reaches the client", lines)
            await self.call(client, server["meanwhile"])
            closing = time.monotonic()
        self.closed(closing)

    async def give_up(self, client: Client, case: dict[str, Any], meanwhile: dict[str, Any]) -> None:
        """Calls, sees another call answered while this one runs, and cancels."""
        running, returned = anyio.Event(), []

        async def report(progress: float, total: float | None, message: str | None) -> None:
            running.set()

        async def endless() -> None:
            returned.append(await client.call_tool(case["tool"], case["arguments"], progress_callback=report))

        async with anyio.create_task_group() as group:
            group.start_soon(endless)
            if case.get("progress"):
                with anyio.fail_after(REQUEST_SECONDS_MAX):
                    await running.wait()
            await self.call(client, meanwhile)
            group.cancel_scope.cancel()
        check(not returned, f"{case['tool']}: {case['shows']}", *returned)

    async def reload(self, folder: Path) -> None:
        """A saved version answers. A changed list is announced once; new code with an equal list is not announced."""
        heard: list[Any] = []
        changed = anyio.Event()

        async def notified(message: Any) -> None:
            if isinstance(message, ToolListChangedNotification):
                heard.append(message)
                changed.set()

        client = self.client("reload", folder / "toolcell.toml", message_handler=notified)
        async with client, AsyncExitStack() as stack:
            subscription = None
            if self.modern:
                subscription = await stack.enter_async_context(client.listen(tools_list_changed=True))
            before = await self.pages(client)
            check(await version(client) == "a", "the first version answers")
            (folder / "next/same_list.wasm").rename(folder / "components/tool.wasm")
            with anyio.fail_after(REQUEST_SECONDS_MAX):
                while not await is_over(client, "a"):
                    pass
            check(await version(client) == "b", "other code answers")
            check(not heard and await self.pages(client) == before, "nobody hears of other code behind the same list", heard)
            (folder / "next/other_list.wasm").rename(folder / "components/tool.wasm")
            with anyio.fail_after(REQUEST_SECONDS_MAX):
                await (anext(subscription) if subscription else changed.wait())
            check(await version(client) == "c", "the first call after the notification meets the new code")
            names = [tool.name for page in await self.pages(client) for tool in page]
            check(names == ["version", "extra"], "the list is the new one", names, before)
            check(len(heard) == 1, "the other list is heard of once", heard)
            await stack.aclose()
            closing = time.monotonic()
        self.closed(closing)

    async def asking(self, folder: Path) -> None:
        """A tool asks the person, the model and the client; a call is confirmed or declined."""
        said: list[str] = []
        decision = "accept"

        async def person(context: Any, asked: Any) -> ElicitResult:
            said.append(asked.message)
            fields = wire(asked)["requestedSchema"]["properties"]
            return ElicitResult(action=decision, content={"name": "Ada"} if "name" in fields else {})

        async def model(context: Any, asked: Any) -> CreateMessageResult:
            prompt = asked.messages[0].content.text
            return CreateMessageResult(role="assistant", model="m", content=TextContent(type="text", text=f"{prompt}!"))

        async def folders(context: Any) -> ListRootsResult:
            return ListRootsResult(roots=[Root(uri="file:///work")])

        answering = {"elicitation_callback": person, "sampling_callback": model, "list_roots_callback": folders}
        async with self.client("asking", folder / "toolcell.toml", **answering) as client:
            result = wire(await client.call_tool("ask", {"rounds": ASKED}))
            text = result["content"][0]["text"]
            check(text.startswith('roots file:///work, accepted {"name":"Ada"}; message {'), "the tool has the answers", text)
            check("A poem!" in text, "the model is asked what the tool asks", text)
            check(said == ['The tool "ask" asks: Who?'], "the person learns who asks", said)
            result = wire(await client.call_tool("echo", {"text": "hello"}))
            check(result["content"][0]["text"] == "hello", "an approved call runs", result)
            check(said[-1].startswith('Allow the tool "echo"'), "the person is asked first", said)
            decision = "decline"
            result = wire(await client.call_tool("echo", {"text": "hello"}))
            wanted = {"isError": True, "content": [{"text": 'the person declined: "echo" was not run'}]}
            check(not mismatches(wanted, result), "a declined call does not", result)
            closing = time.monotonic()
        self.closed(closing)

    def closed(self, closing: float) -> None:
        """The server ended by itself, soon after its input did; over HTTP, the connection did."""
        seconds = time.monotonic() - closing
        check(seconds < CLOSE_SECONDS_MAX, "the client is soon done when it closes", f"{seconds:.2f} s")


async def is_over(client: Client, old: str) -> bool:
    """True if nine answers in a row are of another version. Replicas take new code a moment after one another."""
    return all([await version(client) != old for _ in range(9)])


async def version(client: Client) -> str:
    """The version that answers."""
    answer = wire(await client.call_tool("version", {}))
    if answer.get("isError"):
        raise Failed(f"FAILED the version is said\n  {answer}")
    return answer["content"][0]["text"]


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--toolcell", required=True)
    parser.add_argument("--cases", required=True, type=Path)
    parser.add_argument("--mode", required=True, choices=sorted(NEGOTIATED))
    parser.add_argument("--reload", type=Path)
    parser.add_argument("--asking", type=Path)
    parser.add_argument("--at", action="append", default=[], metavar="NAME=URL")
    options = parser.parse_args()
    run = Run(options)
    if options.reload:
        await run.reload(options.reload)
        return
    if options.asking:
        await run.asking(options.asking)
        return
    await run.examples()
    await run.cancellation()


# Ping and log levels are deprecated in the SDK because the newest revision has none; legacy peers have them.
warnings.simplefilter("ignore", MCPDeprecationWarning)
try:
    anyio.run(main)
except* Failed as failures:
    # The SDK's task groups wrap an exception raised inside them, several times over.
    group: BaseException = failures
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    sys.exit(str(group))
