"""Talks to toolcell with one of the clients of agents' frameworks that are written in Python.

Usage: python_clients.py NAME --toolcell BINARY --folder FOLDER [--url URL] [--remote PROGRAM...]

NAME is a row of CLIENTS. Without --url the client starts `toolcell serve` itself. FOLDER is one that `check.py` has made.
--remote is the command of mcp-remote: the client starts that, and it leads to the URL.

Each client here does what its documentation shows, and no more. The conversation is in conversation.py.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from conversation import Client, Failed, Result, Target, converse

# They would report their use to their makers, or look there for news.
os.environ |= {"MCP_USE_ANONYMIZED_TELEMETRY": "false", "OPENAI_AGENTS_DISABLE_TRACING": "1", "FASTMCP_CHECK_FOR_UPDATES": "off"}

LEGACY, MODERN = "2025-11-25", "2026-07-28"


def of_blocks(content: list[Any], structured: Any, failed: bool) -> Result:
    """A result out of the blocks of either major version of the Python SDK."""
    text = "\n".join(block.text for block in content if block.type == "text")
    pictures = [base64.b64decode(block.data) for block in content if block.type == "image"]
    return Result(text, structured, pictures, failed)


def is_list_change(message: Any) -> bool:
    """True for the notification that the list of tools changed. The older SDK wraps it."""
    return type(getattr(message, "root", message)).__name__ == "ToolListChangedNotification"


class FastMcp(Client):
    """FastMCP's client. In its own mode it negotiates the modern era and never subscribes to changes."""

    revision = MODERN
    mode = "auto"

    @asynccontextmanager
    async def connected(self, target: Target, on_change: Callable[[], None]) -> AsyncIterator[None]:
        from fastmcp import Client as FastClient
        from fastmcp.client.transports import StdioTransport

        async def heard(message: Any) -> None:
            if is_list_change(message):
                on_change()

        server = target.url or StdioTransport(target.command, target.arguments, keep_alive=False)
        async with FastClient(server, mode=self.mode, message_handler=heard) as self.client:
            yield

    async def names(self) -> list[str]:
        return [tool.name for tool in await self.client.list_tools()]

    async def call(self, tool: str, arguments: dict[str, Any]) -> Result:
        result = await self.client.call_tool(tool, arguments, raise_on_error=False)
        return of_blocks(result.content, result.structured_content, result.is_error)


class FastMcpLegacy(FastMcp):
    """FastMCP's client in the legacy era."""

    revision = LEGACY
    mode = "legacy"
    hears = True


class OpenAiAgents(Client):
    """The servers of the OpenAI Agents SDK."""

    revision = MODERN

    @asynccontextmanager
    async def connected(self, target: Target, on_change: Callable[[], None]) -> AsyncIterator[None]:
        from agents.mcp import MCPServerStdio, MCPServerStreamableHttp

        if target.url:
            server: Any = MCPServerStreamableHttp({"url": target.url}, client_session_timeout_seconds=None)
        else:
            started = {"command": target.command, "args": target.arguments}
            server = MCPServerStdio(started, client_session_timeout_seconds=None)
        async with server as self.server:
            yield

    async def names(self) -> list[str]:
        return [tool.name for tool in await self.server.list_tools()]

    async def call(self, tool: str, arguments: dict[str, Any]) -> Result:
        result = await self.server.call_tool(tool, arguments)
        return of_blocks(result.content, result.structured_content, bool(result.is_error))


class PydanticAi(Client):
    """The toolset of Pydantic AI. A result is structured, or a list of texts and pictures."""

    revision = MODERN

    @asynccontextmanager
    async def connected(self, target: Target, on_change: Callable[[], None]) -> AsyncIterator[None]:
        from fastmcp.client.transports import StdioTransport
        from pydantic_ai.mcp import MCPToolset

        server = target.url or StdioTransport(target.command, target.arguments, keep_alive=False)
        # It keeps the list until it hears of a change, and it never listens.
        async with MCPToolset(server, cache_tools=False) as self.toolset:
            yield

    async def names(self) -> list[str]:
        return [tool.name for tool in await self.toolset.list_tools()]

    async def call(self, tool: str, arguments: dict[str, Any]) -> Result:
        from pydantic_ai import ModelRetry

        try:
            value = await self.toolset.direct_call_tool(tool, arguments)
        except ModelRetry as error:
            return Result(text=str(error), failed=True)
        parts = value if isinstance(value, list) else [value]
        text = "\n".join(part for part in parts if isinstance(part, str))
        return Result(text, value, [part.data for part in parts if hasattr(part, "data")])


class LangChain(Client):
    """The adapters of LangChain, with one session for all calls."""

    revision = LEGACY
    stops_calls = False

    @asynccontextmanager
    async def connected(self, target: Target, on_change: Callable[[], None]) -> AsyncIterator[None]:
        from langchain_mcp_adapters.client import MultiServerMCPClient

        if target.url:
            server = {"transport": "streamable_http", "url": target.url}
        else:
            server = {"transport": "stdio", "command": target.command, "args": target.arguments}
        try:
            async with MultiServerMCPClient({"toolcell": server}).session("toolcell") as self.session:
                yield
        except* anyio.BrokenResourceError:
            # The older SDK fails if a server answers the last call while the connection is closed.
            pass

    async def names(self) -> list[str]:
        from langchain_mcp_adapters.tools import load_mcp_tools

        self.tools = {tool.name: tool for tool in await load_mcp_tools(self.session)}
        return list(self.tools)

    async def call(self, tool: str, arguments: dict[str, Any]) -> Result:
        call = {"type": "tool_call", "id": "1", "name": tool, "args": arguments}
        message = await self.tools[tool].ainvoke(call)
        blocks = message.content if isinstance(message.content, list) else [{"type": "text", "text": message.content}]
        text = "\n".join(block["text"] for block in blocks if block["type"] == "text")
        pictures = [base64.b64decode(block["base64"]) for block in blocks if block["type"] == "image"]
        structured = (message.artifact or {}).get("structured_content")
        return Result(text, structured, pictures, message.status == "error")


class McpUse(Client):
    """The client of mcp-use."""

    revision = LEGACY
    hears = True
    stops_calls = False

    @asynccontextmanager
    async def connected(self, target: Target, on_change: Callable[[], None]) -> AsyncIterator[None]:
        from mcp_use import MCPClient

        async def heard(message: Any) -> None:
            if is_list_change(message):
                on_change()

        server = {"url": target.url} if target.url else {"command": target.command, "args": target.arguments}
        client = MCPClient({"mcpServers": {"toolcell": server}}, message_handler=heard)
        self.session = await client.create_session("toolcell")
        try:
            yield
        finally:
            await client.close_all_sessions()

    async def names(self) -> list[str]:
        return [tool.name for tool in await self.session.list_tools()]

    async def call(self, tool: str, arguments: dict[str, Any]) -> Result:
        result = await self.session.call_tool(tool, arguments)
        return of_blocks(result.content, result.structuredContent, result.isError)


CLIENTS: dict[str, type[Client]] = {
    "fastmcp": FastMcp,
    "fastmcp-legacy": FastMcpLegacy,
    "openai-agents": OpenAiAgents,
    "pydantic-ai": PydanticAi,
    "langchain": LangChain,
    "mcp-use": McpUse,
    # mcp-remote is no client by itself. FastMCP's starts it, in the era that it speaks.
    "mcp-remote": FastMcpLegacy,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=CLIENTS)
    parser.add_argument("--toolcell", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--url")
    parser.add_argument("--remote", nargs="+")
    options = parser.parse_args()
    arguments = ["serve", "--manifest", str(options.folder / "toolcell.toml")]
    target = Target(options.url, options.toolcell, arguments, options.folder)
    if options.remote:
        target = Target(None, options.remote[0], [*options.remote[1:], options.url, "--allow-http"], options.folder)
    try:
        asyncio.run(converse(CLIENTS[options.name](), target))
    except Failed as failure:
        sys.exit(str(failure))
    except BaseExceptionGroup as failures:
        # Task groups wrap an exception that was raised inside them, several times over.
        inner: BaseException = failures
        while isinstance(inner, BaseExceptionGroup):
            inner = inner.exceptions[0]
        if isinstance(inner, Failed):
            sys.exit(str(inner))
        raise


main()
