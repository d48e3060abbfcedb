#!/usr/bin/env python3
"""Has the clients of agents' frameworks, mcp-remote and the page of the Inspector talk with toolcell: `make clients-check`.

Usage: check.py [NAME...]    NAME is a client, or a client and its transport, such as fastmcp/http

Each client holds one conversation over stdio and one over HTTP, with a server and a folder of its own. A failure is shown
with all that the client and its server said. The last line counts conversations.
"""

from __future__ import annotations

import concurrent.futures
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PYTHON, OLDER, NODE = "python", "older", "node"

# Each client with what runs it, and its transports. mcp-remote is a bridge: its client starts it, and it speaks HTTP.
CLIENTS = {
    "inspector-page": (NODE, ["stdio", "http"]),
    "inspector-page-legacy": (NODE, ["stdio", "http"]),
    "inspector-views": (NODE, ["stdio", "http"]),
    "inspector-views-legacy": (NODE, ["stdio", "http"]),
    "fastmcp": (PYTHON, ["stdio", "http"]),
    "fastmcp-legacy": (PYTHON, ["stdio", "http"]),
    "openai-agents": (PYTHON, ["stdio", "http"]),
    "pydantic-ai": (PYTHON, ["stdio", "http"]),
    "langchain": (OLDER, ["stdio", "http"]),
    "mcp-use": (OLDER, ["stdio", "http"]),
    "ai-sdk": (NODE, ["stdio", "http"]),
    "mcp-remote": (PYTHON, ["http"]),
}
PROGRAMS = {
    "ai-sdk": ["ai_sdk.mjs"],
    "inspector-page": ["inspector_page.mjs", "--era", "modern"],
    "inspector-page-legacy": ["inspector_page.mjs", "--era", "legacy"],
    "inspector-views": ["inspector_views.mjs", "--era", "modern"],
    "inspector-views-legacy": ["inspector_views.mjs", "--era", "legacy"],
}

# Conversations at once: enough to use two cores.
AT_ONCE = 2
# Seconds for one conversation. Most take three; a browser takes ten.
TALK_S = 180

MANIFEST = """version = 1
[server]
name = "clients"
page_size = {page_size}
[audit]
file = "audit.jsonl"
[skills]
folder = "skills"
[apps."ui://chart/view"]
file = "view.html"
[components.weather]
source = "weather.wasm"
[components.chart]
source = "chart.wasm"
[components.chart.tools.chart]
app = "ui://chart/view"
[components.loops]
source = "loops.wasm"
[components.loops.limits]
fuel = 1_000_000_000_000_000
deadline = "10m"
[components.tool]
source = "tool.wasm"
"""
# mcp-use reads the first page of a list and no other.
PAGE_SIZE, ONE_PAGE = 5, 100

EXAMPLES, FIXTURES = ROOT / "guest-examples/components", ROOT / "tests/fixtures/components"
SOURCES = {
    "weather.wasm": EXAMPLES / "weather.wasm",
    "chart.wasm": EXAMPLES / "chart.wasm",
    "loops.wasm": FIXTURES / "loops.wasm",
    "tool.wasm": FIXTURES / "versioned_a.wasm",
    "next.wasm": FIXTURES / "versioned_c.wasm",
    "view.html": ROOT / "guest-examples/chart/view.html",
}
SKILL = """---
name: charts
description: How to read a chart.
---
Look at the axes first, and read references/colours.md.
"""


class Serving:
    """A server over HTTP, until the end of the block. It must end well when it is told to."""

    def __init__(self, toolcell: str, folder: Path, environment: dict[str, str]) -> None:
        command = [toolcell, "serve", "--manifest", str(folder / "toolcell.toml"), "--http", "127.0.0.1:0", "--control", "off"]
        self.log = folder / "server.log"
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stderr=self.log.open("w"))

    def __enter__(self) -> str:
        late = time.monotonic() + TALK_S
        while self.process.poll() is None and time.monotonic() < late:
            if found := re.search(r"http://127\.0\.0\.1:\d+\S*", self.log.read_text()):
                return found[0]
            time.sleep(0.02)
        self.process.kill()
        raise RuntimeError(f"the server said no address\n{self.log.read_text()}")

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(TALK_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
        if self.process.returncode:
            raise RuntimeError(f"the server ended with {self.process.returncode}\n{self.log.read_text()}")


def command(name: str, installed: list[str]) -> list[str]:
    """The command line that starts the program of this client."""
    python, older, node, modules, frameworks = installed
    runs = CLIENTS[name][0]
    if runs == NODE:
        program, *era = PROGRAMS[name]
        return [node, str(HERE / "node" / program), *era, "--modules", modules, "--frameworks", frameworks]
    start = [python if runs == PYTHON else older, str(HERE / "python_clients.py"), name]
    if name == "mcp-remote":
        start += ["--remote", node, f"{frameworks}/node_modules/mcp-remote/dist/proxy.js"]
    return start


def lay_out(folder: Path, page_size: int) -> None:
    """Makes the folder that a server serves."""
    folder.mkdir()
    for copy, source in SOURCES.items():
        shutil.copyfile(source, folder / copy)
    (folder / "skills/charts/references").mkdir(parents=True)
    (folder / "skills/charts/SKILL.md").write_text(SKILL)
    (folder / "skills/charts/references/colours.md").write_text("Blue comes first.\n")
    (folder / "toolcell.toml").write_text(MANIFEST.format(page_size=page_size))


def warm_up(toolcell: str, home: Path) -> None:
    """Has the components compiled once. The AI SDK takes a server that is slow to start for one of an older revision."""
    with tempfile.TemporaryDirectory(prefix="toolcell-clients-") as scratch:
        folder = Path(scratch, "served")
        lay_out(folder, PAGE_SIZE)
        with Serving(toolcell, folder, {**os.environ, "HOME": str(home)}):
            pass


def talk(name: str, transport: str, toolcell: str, installed: list[str], home: Path) -> str | None:
    """Holds one conversation. Returns what was said if it failed."""
    with tempfile.TemporaryDirectory(prefix="toolcell-clients-") as scratch:
        folder = Path(scratch, "served")
        lay_out(folder, ONE_PAGE if name == "mcp-use" else PAGE_SIZE)
        run = [*command(name, installed), "--toolcell", toolcell, "--folder", str(folder)]
        environment = {**os.environ, "HOME": str(home), "MCP_REMOTE_CONFIG_DIR": str(home)}
        try:
            if transport == "stdio":
                done = converse(run, environment)
            else:
                with Serving(toolcell, folder, environment) as url:
                    done = converse([*run, "--url", url], environment)
        except (RuntimeError, subprocess.TimeoutExpired) as problem:
            return f"{problem}\n{getattr(problem, 'stdout', '') or ''}\n{getattr(problem, 'stderr', '') or ''}"
        if done.returncode or "ok " not in done.stdout:
            return f"the client ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return None


def converse(run: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs a client's program to its end."""
    return subprocess.run(run, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TALK_S)


def wanted(filters: list[str]) -> list[tuple[str, str]]:
    """The conversations that the filters name, or all."""
    pairs = [(name, transport) for name, (_, transports) in CLIENTS.items() for transport in transports]
    found = [pair for pair in pairs if not filters or pair[0] in filters or "/".join(pair) in filters]
    # No package has Chromium for other processors.
    if platform.machine() != "x86_64":
        print("left out on this processor: the Inspector's page, for which no package has a browser")
        found = [pair for pair in found if not pair[0].startswith("inspector-")]
    if not found:
        sys.exit(f"no client is {' or '.join(filters)}: there are {', '.join(CLIENTS)}")
    return found


def main() -> None:
    toolcell = os.environ.get("TOOLCELL_BIN") or str(ROOT / "target/release/toolcell")
    setup = subprocess.run([HERE.parent / "setup.sh", "frameworks"], stdout=subprocess.PIPE, text=True)
    if setup.returncode:
        sys.exit("the clients cannot be installed")
    installed = setup.stdout.splitlines()
    began, failures = time.monotonic(), 0
    # What clients keep in the home folder ends with this run. So does what toolcell has compiled.
    with tempfile.TemporaryDirectory(prefix="toolcell-clients-") as home, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        def timed(pair: tuple[str, str]) -> tuple[tuple[str, str], str | None, float]:
            started = time.monotonic()
            return pair, talk(*pair, toolcell, installed, Path(home)), time.monotonic() - started

        pairs = wanted(sys.argv[1:])
        warm_up(toolcell, Path(home))
        for (name, transport), problem, took in pool.map(timed, pairs):
            print(f"{'FAILED' if problem else 'ok    '} {name} over {transport} ({took:.1f} s)", flush=True)
            if problem:
                failures += 1
                print(problem, flush=True)
    print(f"{len(pairs)} conversations in {time.monotonic() - began:.0f} s")
    print(f"{len(pairs) - failures} passed, {failures} failed")
    sys.exit(1 if failures else 0)


main()
