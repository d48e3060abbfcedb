"""Talks to toolcell with one of the clients that are written in Python, row by row.

Usage: python_clients.py NAME --folder FOLDER (--url URL --paged-url URL | --command PROGRAM...)

NAME is a row of CLIENTS. FOLDER is one that `matrix.py` has made, and FOLDER/paged is the one whose list has pages. In
PROGRAM and its arguments, FOLDER and URL stand for those of the server.

Each client here does what its documentation shows, and no more. The rows are in rows.py.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from rows import ADA, Absent, Client, Result, Target, run

# They would report their use to their makers, or look there for news.
os.environ |= {"MCP_USE_ANONYMIZED_TELEMETRY": "false", "OPENAI_AGENTS_DISABLE_TRACING": "1", "FASTMCP_CHECK_FOR_UPDATES": "off"}


def of_blocks(content: list[Any], structured: Any, failed: bool) -> Result:
    """A result out of the blocks of either major version of the Python SDK."""
    text = "\n".join(block.text for block in content if block.type == "text")
    return Result(text, structured, bool(failed))


def of_result(result: Any) -> Result:
    """A result of either major version of the Python SDK."""
    if hasattr(result, "is_error"):
        return of_blocks(result.content, result.structured_content, result.is_error)
    return of_blocks(result.content, result.structuredContent, result.isError)


def is_list_change(message: Any) -> bool:
    """True for the notification that the list of tools changed. The older SDK wraps it."""
    return type(getattr(message, "root", message)).__name__ == "ToolListChangedNotification"


def texts(contents: Any) -> str:
    """The texts of what was read of a resource, one after the other."""
    parts = contents if isinstance(contents, list) else [contents]
    return "\n".join(part if isinstance(part, str) else part.text for part in parts)


class Sdk1(Client):
    """The session of the Python SDK 1, over stdio or Streamable HTTP."""

    hears = True
    elicits = True
    stops_calls = False

    @asynccontextmanager
    async def streams(self, target: Target) -> AsyncIterator[Any]:
        from mcp import StdioServerParameters
        from mcp.client.sse import sse_client
        from mcp.client.stdio import stdio_client
        from mcp.client.streamable_http import streamablehttp_client

        if target.url and target.url.endswith("/sse"):
            transport: Any = sse_client(target.url)
        elif target.url:
            transport = streamablehttp_client(target.url)
        else:
            transport = stdio_client(StdioServerParameters(command=target.command, args=target.arguments, env=dict(os.environ)))
        async with transport as streams:
            yield streams

    @asynccontextmanager
    async def connected(self, target: Target) -> AsyncIterator[None]:
        from mcp import ClientSession
        from mcp.types import ElicitResult

        async def heard(message: Any) -> None:
            if is_list_change(message):
                self.events.changed.set()

        async def person(context: Any, asked: Any) -> ElicitResult:
            return ElicitResult(action="accept", content=ADA)

        try:
            async with self.streams(target) as (read, write, *_):
                async with ClientSession(read, write, message_handler=heard, elicitation_callback=person) as self.session:
                    await self.session.initialize()
                    yield
        except* anyio.BrokenResourceError:
            # This SDK fails if a server answers the last call while the connection is closed.
            pass

    async def names(self) -> list[str]:
        names: list[str] = []
        cursor = None
        while True:
            page = await self.session.list_tools(cursor)
            names += [tool.name for tool in page.tools]
            cursor = page.nextCursor
            if cursor is None:
                return names

    async def call(self, tool: str, arguments: dict[str, Any]) -> Result:
        return of_result(await self.session.call_tool(tool, arguments))

    async def with_progress(self, tool: str, arguments: dict[str, Any]) -> Result:
        async def heard(progress: float, total: float | None, message: str | None) -> None:
            self.events.progress.append(progress)

        return of_result(await self.session.call_tool(tool, arguments, progress_callback=heard))

    async def resource(self, uri: str) -> tuple[list[str], str]:
        listed = [str(found.uri) for found in (await self.session.list_resources()).resources]
        return listed, texts((await self.session.read_resource(uri)).contents)

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return (await self.session.get_prompt(name, arguments)).messages[0].content.text

    async def task(self, tool: str, arguments: dict[str, Any]) -> Result:
        from mcp.types import CallToolResult

        begun = await self.session.experimental.call_tool_as_task(tool, arguments, ttl=60_000)
        async for _ in self.session.experimental.poll_task(begun.task.taskId):
            pass
        return of_result(await self.session.experimental.get_task_result(begun.task.taskId, CallToolResult))


class Sdk2(Client):
    """The client of the Python SDK 2, in its own mode: it negotiates 2026-07-28."""

    mode = "auto"
    elicits = True

    @asynccontextmanager
    async def connected(self, target: Target) -> AsyncIterator[None]:
        from mcp import Client as SdkClient
        from mcp import StdioServerParameters
        from mcp.client.stdio import stdio_client
        from mcp.types import ElicitResult

        async def heard(message: Any) -> None:
            if is_list_change(message):
                self.events.changed.set()

        async def person(context: Any, asked: Any) -> ElicitResult:
            return ElicitResult(action="accept", content=ADA)

        server: Any = target.url or stdio_client(StdioServerParameters(command=target.command, args=target.arguments, env=dict(os.environ)))
        async with SdkClient(server, mode=self.mode, message_handler=heard, elicitation_callback=person, cache=None) as self.client:
            yield

    async def names(self) -> list[str]:
        names: list[str] = []
        cursor = None
        while True:
            page = await self.client.list_tools(cursor=cursor)
            names += [tool.name for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                return names

    async def call(self, tool: str, arguments: dict[str, Any]) -> Result:
        return of_result(await self.client.call_tool(tool, arguments))

    async def with_progress(self, tool: str, arguments: dict[str, Any]) -> Result:
        async def heard(progress: float, total: float | None, message: str | None) -> None:
            self.events.progress.append(progress)

        return of_result(await self.client.call_tool(tool, arguments, progress_callback=heard))

    async def resource(self, uri: str) -> tuple[list[str], str]:
        listed = [str(found.uri) for found in (await self.client.list_resources()).resources]
        return listed, texts((await self.client.read_resource(uri)).contents)

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return (await self.client.get_prompt(name, arguments)).messages[0].content.text


class Sdk2Legacy(Sdk2):
    """The client of the Python SDK 2 in the legacy era."""

    mode = "legacy"
    hears = True


class FastMcp(Client):
    """FastMCP's client. In its own mode it negotiates the modern era and never subscribes to changes."""

    mode = "auto"
    elicits = True

    @asynccontextmanager
    async def connected(self, target: Target) -> AsyncIterator[None]:
        from fastmcp import Client as FastClient
        from fastmcp.client.transports import StdioTransport

        async def heard(message: Any) -> None:
            if is_list_change(message):
                self.events.changed.set()

        async def person(message: str, response_type: Any, params: Any, context: Any) -> dict[str, str]:
            return ADA

        server = target.url or StdioTransport(target.command, target.arguments, env=dict(os.environ), keep_alive=False)
        async with FastClient(server, mode=self.mode, message_handler=heard, elicitation_handler=person) as self.client:
            yield

    async def names(self) -> list[str]:
        return [tool.name for tool in await self.client.list_tools()]

    async def call(self, tool: str, arguments: dict[str, Any]) -> Result:
        result = await self.client.call_tool(tool, arguments, raise_on_error=False)
        return of_blocks(result.content, result.structured_content, result.is_error)

    async def with_progress(self, tool: str, arguments: dict[str, Any]) -> Result:
        async def heard(progress: float, total: float | None, message: str | None) -> None:
            self.events.progress.append(progress)

        result = await self.client.call_tool(tool, arguments, raise_on_error=False, progress_handler=heard)
        return of_blocks(result.content, result.structured_content, result.is_error)

    async def resource(self, uri: str) -> tuple[list[str], str]:
        listed = [str(found.uri) for found in await self.client.list_resources()]
        return listed, texts(await self.client.read_resource(uri))

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return (await self.client.get_prompt(name, arguments)).messages[0].content.text


class FastMcpLegacy(FastMcp):
    """FastMCP's client in the legacy era."""

    mode = "legacy"
    hears = True


class OpenAiAgents(Client):
    """The servers of the OpenAI Agents SDK."""

    @asynccontextmanager
    async def connected(self, target: Target) -> AsyncIterator[None]:
        from agents.mcp import MCPServerStdio, MCPServerStreamableHttp

        if target.url:
            server: Any = MCPServerStreamableHttp({"url": target.url}, client_session_timeout_seconds=None)
        else:
            started = {"command": target.command, "args": target.arguments, "env": dict(os.environ)}
            server = MCPServerStdio(started, client_session_timeout_seconds=None)
        async with server as self.server:
            yield

    async def names(self) -> list[str]:
        return [tool.name for tool in await self.server.list_tools()]

    async def call(self, tool: str, arguments: dict[str, Any]) -> Result:
        return of_result(await self.server.call_tool(tool, arguments))

    async def resource(self, uri: str) -> tuple[list[str], str]:
        listed = [str(found.uri) for found in (await self.server.list_resources()).resources]
        return listed, texts((await self.server.read_resource(uri)).contents)

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return (await self.server.get_prompt(name, arguments)).messages[0].content.text


class PydanticAi(Client):
    """The toolset of Pydantic AI. A result is structured, or a list of texts and pictures."""

    elicits = True

    @asynccontextmanager
    async def connected(self, target: Target) -> AsyncIterator[None]:
        from fastmcp.client.transports import StdioTransport
        from pydantic_ai.mcp import MCPToolset

        async def person(message: str, response_type: Any, params: Any, context: Any) -> dict[str, str]:
            return ADA

        async def heard(progress: float, total: float | None, message: str | None) -> None:
            self.events.progress.append(progress)

        server = target.url or StdioTransport(target.command, target.arguments, env=dict(os.environ), keep_alive=False)
        # It keeps the list until it hears of a change, and it never listens.
        async with MCPToolset(server, cache_tools=False, elicitation_handler=person, progress_handler=heard) as self.toolset:
            yield

    async def names(self) -> list[str]:
        return [tool.name for tool in await self.toolset.list_tools()]

    async def call(self, tool: str, arguments: dict[str, Any]) -> Result:
        from pydantic_ai import ModelRetry

        try:
            value = await self.toolset.direct_call_tool(tool, arguments)
        except ModelRetry as error:
            return Result(text=str(error), failed=True)
        if isinstance(value, str):
            return Result(text=value)
        return Result(text="\n".join(part for part in value if isinstance(part, str)), structured=value)

    async def with_progress(self, tool: str, arguments: dict[str, Any]) -> Result:
        return await self.call(tool, arguments)

    async def resource(self, uri: str) -> tuple[list[str], str]:
        listed = [str(found.uri) for found in await self.toolset.list_resources()]
        return listed, texts(await self.toolset.read_resource(uri))

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        got = await self.toolset.get_prompt(name, arguments)
        content = got.messages[0].content
        return content if isinstance(content, str) else content.content


class LangChain(Client):
    """The adapters of LangChain, with one session for all calls."""

    elicits = True
    stops_calls = False

    @asynccontextmanager
    async def connected(self, target: Target) -> AsyncIterator[None]:
        from langchain_mcp_adapters.callbacks import Callbacks
        from langchain_mcp_adapters.client import MultiServerMCPClient
        from mcp.types import ElicitResult

        async def person(context: Any, asked: Any, more: Any) -> ElicitResult:
            return ElicitResult(action="accept", content=ADA)

        async def heard(progress: float, total: float | None, message: str | None, context: Any) -> None:
            self.events.progress.append(progress)

        self.callbacks = Callbacks(on_progress=heard, on_elicitation=person)
        if target.url:
            server = {"transport": "streamable_http", "url": target.url}
        else:
            server = {"transport": "stdio", "command": target.command, "args": target.arguments, "env": dict(os.environ)}
        try:
            async with MultiServerMCPClient({"toolcell": server}, callbacks=self.callbacks).session("toolcell") as self.session:
                yield
        except* anyio.BrokenResourceError:
            # The older SDK fails if a server answers the last call while the connection is closed.
            pass

    async def names(self) -> list[str]:
        from langchain_mcp_adapters.tools import load_mcp_tools

        self.tools = {tool.name: tool for tool in await load_mcp_tools(self.session, callbacks=self.callbacks)}
        return list(self.tools)

    async def call(self, tool: str, arguments: dict[str, Any]) -> Result:
        call = {"type": "tool_call", "id": "1", "name": tool, "args": arguments}
        message = await self.tools[tool].ainvoke(call)
        blocks = message.content if isinstance(message.content, list) else [{"type": "text", "text": message.content}]
        text = "\n".join(block["text"] for block in blocks if block["type"] == "text")
        return Result(text, (message.artifact or {}).get("structured_content"), message.status == "error")

    async def call_unlisted(self, tool: str) -> Result:
        raise Absent("calls listed tools only")

    async def with_progress(self, tool: str, arguments: dict[str, Any]) -> Result:
        return await self.call(tool, arguments)

    async def resource(self, uri: str) -> tuple[list[str], str]:
        from langchain_mcp_adapters.resources import load_mcp_resources

        blobs = await load_mcp_resources(self.session)
        found = {str(blob.metadata["uri"]): blob for blob in blobs}
        return list(found), found[uri].as_string()

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        from langchain_mcp_adapters.prompts import load_mcp_prompt

        return (await load_mcp_prompt(self.session, name, arguments=arguments))[0].content


class McpUse(Client):
    """The client of mcp-use."""

    hears = True
    elicits = True
    stops_calls = False

    @asynccontextmanager
    async def connected(self, target: Target) -> AsyncIterator[None]:
        from mcp.types import ElicitResult
        from mcp_use import MCPClient

        async def heard(message: Any) -> None:
            if is_list_change(message):
                self.events.changed.set()

        async def person(context: Any, asked: Any) -> ElicitResult:
            return ElicitResult(action="accept", content=ADA)

        started = {"command": target.command, "args": target.arguments, "env": dict(os.environ)}
        server = {"url": target.url} if target.url else started
        client = MCPClient({"mcpServers": {"toolcell": server}}, message_handler=heard, elicitation_callback=person)
        self.session = await client.create_session("toolcell")
        try:
            yield
        finally:
            await client.close_all_sessions()

    async def names(self) -> list[str]:
        return [tool.name for tool in await self.session.list_tools()]

    async def call(self, tool: str, arguments: dict[str, Any]) -> Result:
        return of_result(await self.session.call_tool(tool, arguments))

    async def resource(self, uri: str) -> tuple[list[str], str]:
        listed = [str(found.uri) for found in await self.session.list_resources()]
        return listed, texts((await self.session.read_resource(uri)).contents)

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return (await self.session.get_prompt(name, arguments)).messages[0].content.text


class LlamaIndex(Client):
    """The client of LlamaIndex. It connects for each request."""

    @asynccontextmanager
    async def connected(self, target: Target) -> AsyncIterator[None]:
        from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

        self.client = BasicMCPClient(target.url or target.command, args=target.arguments, env=dict(os.environ))
        self.spec = McpToolSpec(client=self.client)
        yield

    async def names(self) -> list[str]:
        return [tool.metadata.name for tool in await self.spec.to_tool_list_async()]

    async def call(self, tool: str, arguments: dict[str, Any]) -> Result:
        return of_result(await self.client.call_tool(tool, arguments))

    async def with_progress(self, tool: str, arguments: dict[str, Any]) -> Result:
        async def heard(progress: float, total: float | None, message: str | None) -> None:
            self.events.progress.append(progress)

        return of_result(await self.client.call_tool(tool, arguments, progress_callback=heard))

    async def resource(self, uri: str) -> tuple[list[str], str]:
        listed = [str(found.uri) for found in (await self.client.list_resources()).resources]
        return listed, texts((await self.client.read_resource(uri)).contents)

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return (await self.client.get_prompt(name, arguments))[0].content


class GoogleAdk(Client):
    """The toolset of Google's Agent Development Kit: its tools, run as an agent runs them."""

    elicits = True
    stops_calls = False

    @asynccontextmanager
    async def connected(self, target: Target) -> AsyncIterator[None]:
        from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams, StreamableHTTPConnectionParams
        from mcp import StdioServerParameters
        from mcp.types import ElicitResult

        async def person(context: Any, asked: Any) -> ElicitResult:
            return ElicitResult(action="accept", content=ADA)

        async def heard(progress: float, total: float | None, message: str | None) -> None:
            self.events.progress.append(progress)

        if target.url:
            way: Any = StreamableHTTPConnectionParams(url=target.url)
        else:
            server = StdioServerParameters(command=target.command, args=target.arguments, env=dict(os.environ))
            way = StdioConnectionParams(server_params=server, timeout=20)
        self.toolset = McpToolset(connection_params=way, progress_callback=heard, elicitation_callback=person)
        try:
            yield
        finally:
            await self.toolset.close()

    async def names(self) -> list[str]:
        self.tools = {tool.name: tool for tool in await self.toolset.get_tools()}
        for tool in self.tools.values():
            tool._get_declaration()
        return list(self.tools)

    async def call(self, tool: str, arguments: dict[str, Any]) -> Result:
        if tool not in self.tools:
            raise Absent("calls listed tools only")
        result = await self.tools[tool]._run_async_impl(args=arguments, tool_context=Caller(), credential=None)
        if "content" not in result:
            return Result(text=json.dumps(result), failed="error" in result)
        text = "\n".join(block["text"] for block in result["content"] if block["type"] == "text")
        return Result(text, result.get("structuredContent"), bool(result.get("isError")))

    async def with_progress(self, tool: str, arguments: dict[str, Any]) -> Result:
        return await self.call(tool, arguments)

    async def resource(self, uri: str) -> tuple[list[str], str]:
        names = await self.toolset.list_resources()
        about = {(await self.toolset.get_resource_info(name))["uri"]: name for name in names}
        return [str(found) for found in about], texts(await self.toolset.read_resource({str(u): n for u, n in about.items()}[uri]))


class Caller:
    """What a tool of Google's ADK looks at of the agent that runs it: nothing here has a value."""

    def __getattr__(self, name: str) -> Any:
        return None


class Smolagents(Client):
    """The tools of smolagents, by mcpadapt. They are functions that wait."""

    stops_calls = False

    @asynccontextmanager
    async def connected(self, target: Target) -> AsyncIterator[None]:
        from mcp import StdioServerParameters
        from smolagents import MCPClient

        server: Any = {"url": target.url, "transport": "streamable-http"}
        if not target.url:
            server = StdioServerParameters(command=target.command, args=target.arguments, env=dict(os.environ))
        self.client = await asyncio.to_thread(MCPClient, server, structured_output=True)
        try:
            yield
        finally:
            await asyncio.to_thread(self.client.disconnect)

    async def names(self) -> list[str]:
        self.tools = {tool.name: tool for tool in self.client.get_tools()}
        return list(self.tools)

    async def call(self, tool: str, arguments: dict[str, Any]) -> Result:
        if tool not in self.tools:
            raise Absent("calls listed tools only")
        if tool == "nap_forever":
            raise Absent("its calls cannot be given up")
        if tool == "version":
            raise Absent("reads the list once")
        value = await asyncio.to_thread(self.tools[tool].forward, **arguments)
        text = value if isinstance(value, str) else json.dumps(value)
        # It tells an agent what the result says, and not that it is an error.
        failed = "negative-radius" in text or "did you mean" in text
        return Result(text, value if isinstance(value, dict) else None, failed)


CLIENTS: dict[str, type[Client]] = {
    "python-1": Sdk1,
    "python-2": Sdk2,
    "python-2-legacy": Sdk2Legacy,
    "fastmcp": FastMcp,
    "fastmcp-legacy": FastMcpLegacy,
    "openai-agents": OpenAiAgents,
    "pydantic-ai": PydanticAi,
    "llama-index": LlamaIndex,
    "langchain": LangChain,
    "google-adk": GoogleAdk,
    "smolagents": Smolagents,
    "mcp-use": McpUse,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=CLIENTS)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--url")
    parser.add_argument("--paged-url")
    parser.add_argument("--restarts", action="store_true")
    parser.add_argument("--command", nargs=argparse.REMAINDER, default=[])
    options = parser.parse_args()

    def target(folder: Path, url: str | None) -> Target:
        program = [part.replace("FOLDER", str(folder)).replace("URL", url or "") for part in options.command]
        return Target(None if program else url, program[0] if program else "", program[1:], folder, options.restarts)

    asyncio.run(run(CLIENTS[options.name], target(options.folder, options.url), target(options.folder / "paged", options.paged_url)))
    # Threads of clients that hang must not keep this program.
    os._exit(0)


main()
