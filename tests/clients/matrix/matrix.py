#!/usr/bin/env python3
"""Has the clients that people use talk with toolcell, row by row, and writes the matrix: `make matrix`.

Usage: matrix.py [NAME...]    NAME is a client, or a client and its transport, such as fastmcp/http

Each client talks over stdio and over HTTP, with a server and a folder of its own. A cell passed, is absent (the client has no
way to do it), or failed with a cause. A failed cell fails the run, unless known.toml says why it fails; a known one that passes
is reported. A run of all clients writes host/docs/clients.md. The last line counts cells.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import platform
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PAGE = ROOT / "host/docs/clients.md"
PYTHON, OLDER, NODE = "python", "older", "node"
BOTH = ("stdio", "http")

ROWS = [
    "list", "call", "tuple result", "typed error", "protocol error", "progress", "cancel",
    "list_changed", "resources", "prompts", "elicitation", "tasks", "reconnect",
]


@dataclass(frozen=True)
class Client:
    """A column of the matrix."""

    title: str
    group: str
    runs: str
    program: tuple[str, ...]
    transports: tuple[str, ...] = BOTH
    claims: tuple[str, ...] = ()
    """Rows that one whole conversation shows, for a program that does not print them. The others are absent."""
    bridge: str = ""
    """The bridge between the client and toolcell."""


def python(name: str, title: str, runs: str = PYTHON, **more: object) -> Client:
    return Client(title, "Python", runs, ("python_clients.py", name), **more)


def node(title: str, *program: str, **more: object) -> Client:
    return Client(title, "JavaScript", NODE, program, **more)


def bridged(title: str, bridge: str, transports: tuple[str, ...] = ("http",), runs: str = OLDER, name: str = "python-1") -> Client:
    return Client(title, "Bridges", runs, ("python_clients.py", name), transports, bridge=bridge)


CLICKED = ("list", "call", "typed error", "cancel", "list_changed")
CLIENTS = {
    "typescript-1.17": node("TypeScript SDK 1.17.5", "typescript.mjs"),
    "typescript-1.25": node("TypeScript SDK 1.25.3", "typescript.mjs"),
    "typescript-1.32": node("TypeScript SDK 1.32.2", "typescript.mjs"),
    "typescript-2-legacy": node("TypeScript SDK 2.4.0, legacy", "typescript.mjs"),
    "typescript-2": node("TypeScript SDK 2.4.0", "typescript.mjs"),
    "ai-sdk": node("AI SDK 2.0.99", "ai_sdk.mjs"),
    "inspector-cli": node("Inspector 2.12.0, `--cli --strict`", "inspector_cli.mjs"),
    "inspector-page-legacy": node("Inspector 2.12.0, its page, legacy", "inspector_page.mjs", "--era", "legacy", claims=CLICKED),
    "inspector-page": node("Inspector 2.12.0, its page", "inspector_page.mjs", "--era", "modern", claims=CLICKED),
    "python-1": python("python-1", "Python SDK 1.30.0", OLDER),
    "python-2-legacy": python("python-2-legacy", "Python SDK 2.3.0, legacy"),
    "python-2": python("python-2", "Python SDK 2.3.0"),
    "fastmcp-legacy": python("fastmcp-legacy", "FastMCP 4.2.3, legacy"),
    "fastmcp": python("fastmcp", "FastMCP 4.2.3"),
    "langchain": python("langchain", "LangChain adapters 0.3.2", OLDER),
    "openai-agents": python("openai-agents", "openai-agents 0.24.0"),
    "pydantic-ai": python("pydantic-ai", "pydantic-ai 2.68.0"),
    "google-adk": python("google-adk", "google-adk 2.13.0", OLDER),
    "smolagents": python("smolagents", "smolagents 1.26.0", OLDER),
    "llama-index": python("llama-index", "llama-index-tools-mcp 0.6.0"),
    "mcp-use": python("mcp-use", "mcp-use 1.7.1", OLDER),
    "mcp-remote": bridged("mcp-remote 0.15.1", "mcp-remote", runs=PYTHON, name="fastmcp-legacy"),
    "supergateway-sse": bridged("supergateway 4.0.0, SSE", "supergateway --outputTransport sse"),
    "supergateway-stateless": bridged("supergateway 4.0.0, HTTP", "supergateway --outputTransport streamableHttp"),
    "supergateway-stateful": bridged("supergateway 4.0.0, HTTP, stateful", "supergateway --outputTransport streamableHttp --stateful"),
    "mcp-proxy": bridged("mcp-proxy 0.13.0, from HTTP", "mcp-proxy"),
    "mcp-proxy-stdio": bridged("mcp-proxy 0.13.0, to HTTP", "mcp-proxy-stdio"),
}
# They open views and skills, which have no row.
BESIDE = {
    "inspector-views": node("", "inspector_views.mjs", "--era", "modern", claims=("call",)),
    "inspector-views-legacy": node("", "inspector_views.mjs", "--era", "legacy", claims=("call",)),
}
NOT_TRIED = {
    "Go SDK": "needs a newer Go than Debian 12 has, and a module proxy",
    "rmcp": "not in this matrix: `tests/e2e/clients/rmcp.rs` has its conversation, with reloads, over both transports",
}

# Conversations at once: they wait more than they compute.
AT_ONCE = 3
# Seconds for all rows of one client, of which most take one.
TALK_S = 400
START_S = 60

HEAD = """version = 1
[server]
name = "clients"
page_size = {page_size}
[audit]
file = "audit.jsonl"
[skills]
folder = "skills"
"""
LOOPS = """[components.loops]
source = "loops.wasm"
[components.loops.limits]
fuel = 1_000_000_000_000_000
deadline = "10m"
[components.tool]
source = "tool.wasm"
[components.weather]
source = "weather.wasm"
"""
# What the pages of the list, and the clicks on the Inspector's page, are tried with.
PAGED = HEAD.format(page_size=5) + """[apps."ui://chart/view"]
file = "view.html"
[components.chart]
source = "chart.wasm"
[components.chart.tools.chart]
app = "ui://chart/view"
""" + LOOPS
WHOLE = HEAD.format(page_size=100) + LOOPS + """[components.units]
source = "units.wasm"
[components.drawings]
source = "drawings.wasm"
prefix = "draw_"
[components.good]
source = "good.wasm"
[components.asks]
source = "asks.wasm"
[components.tasks]
source = "tasks.wasm"
[components.tasks.tools.slow_compute]
task = "0ms"
[prompts.review]
description = "Looks for mistakes."
text = "Review this {language}: {code}"
[prompts.review.arguments.code]
required = true
[prompts.review.arguments.language]
values = ["Rust", "Ruby", "Python"]
"""
EXAMPLES, FIXTURES = ROOT / "guest-examples/components", ROOT / "tests/fixtures/components"
SOURCES = {
    "weather.wasm": EXAMPLES / "weather.wasm",
    "chart.wasm": EXAMPLES / "chart.wasm",
    "units.wasm": EXAMPLES / "units.wasm",
    "drawings.wasm": FIXTURES / "drawings.wasm",
    "good.wasm": FIXTURES / "good.wasm",
    "asks.wasm": FIXTURES / "asks.wasm",
    "tasks.wasm": FIXTURES / "tasks.wasm",
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


class Process:
    """A process until the end of the block, and what it says."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path) -> None:
        self.command, self.environment, self.log = command, environment, log

    def __enter__(self) -> Process:
        out = self.log.open("a")
        self.process = subprocess.Popen(self.command, env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(START_S)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def once(self, ready: object) -> str:
        """What `ready` returns once that is something."""
        late = time.monotonic() + START_S
        while self.process.poll() is None and time.monotonic() < late:
            if found := ready():
                return found
            time.sleep(0.02)
        raise RuntimeError(f"{self.command[0]} did not start\n{self.log.read_text()}")


class Serving:
    """A toolcell over HTTP, until the end of the block. The file `restart` in its folder has it started anew."""

    def __init__(self, toolcell: str, folder: Path, environment: dict[str, str], host: str = "127.0.0.1") -> None:
        self.host = host
        self.start = lambda address: Process(
            [toolcell, "serve", "--manifest", str(folder / "toolcell.toml"), "--http", address, "--control", "off"],
            environment, folder / "server.log",
        )
        self.folder, self.over = folder, threading.Event()

    def __enter__(self) -> str:
        self.process = self.start(f"{self.host}:0").__enter__()
        address = re.escape(f"http://{self.host}:") + r"\d+\S*"
        self.url = self.process.once(lambda: (found := re.search(address, self.process.log.read_text())) and found[0])
        self.watcher = threading.Thread(target=self.watch)
        self.watcher.start()
        return self.url

    def watch(self) -> None:
        """Starts the server anew, at its address, as often as the client asks for it."""
        while not self.over.wait(0.02):
            if (self.folder / "restart").exists():
                self.process.__exit__()
                address = self.url.split("/")[2]
                self.process = self.start(address).__enter__()
                self.process.once(lambda: answers(int(address.rpartition(":")[2]), self.host))
                (self.folder / "restart").unlink()

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.watcher.join()
        self.process.__exit__()


def answers(port: int, host: str = "127.0.0.1") -> bool:
    """True if something listens at the port of the loopback."""
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


def free_port() -> int:
    """A port of the loopback that nobody has now: the bridges take no free one by themselves."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class Run:
    """What one conversation needs: the binary, what is installed, its folder and environment."""

    toolcell: str
    installed: list[str]
    folder: Path
    environment: dict[str, str]

    def bridge(self, kind: str, folder: Path, stack: ExitStack) -> str:
        """Starts a bridge from HTTP to a toolcell over stdio. Returns its URL."""
        _, older, node_binary, _, frameworks = self.installed
        serve = [self.toolcell, "serve", "--manifest", str(folder / "toolcell.toml")]
        port = free_port()
        if kind == "mcp-proxy":
            command = [older, "-m", "mcp_proxy", "--port", str(port), "--pass-environment", "--", *serve]
            path = "/mcp"
        else:
            gateway = f"{frameworks}/node_modules/supergateway/dist/index.js"
            command = [node_binary, gateway, *kind.split()[1:], "--stdio", shlex.join(serve), "--port", str(port)]
            path = "/sse" if kind.endswith(" sse") else "/mcp"
        stack.enter_context(process := Process(command, self.environment, folder / "bridge.log"))
        process.once(lambda: answers(port))
        return f"http://127.0.0.1:{port}{path}"

    def printed(self, url: str) -> list[str]:
        """The arguments that `client-config` prints for mcp-remote and a server with tokens, with URL in place of its own.

        Their environment is that of the client from now on.
        """
        config = subprocess.run(
            [self.toolcell, "client-config", "claude-desktop", "--url", url, "--token"], check=True, capture_output=True, text=True
        )
        entry = json.loads(config.stdout)["mcpServers"]["toolcell"]
        if (entry["command"], entry["args"][:2]) != ("npx", ["-y", "mcp-remote"]):
            raise RuntimeError(f"client-config starts something else: {entry}")
        token = (self.folder / "token").read_text().strip()
        self.environment |= {variable: value.replace("YOUR_TOKEN", token) for variable, value in entry["env"].items()}
        return [argument.replace(url, "URL") for argument in entry["args"][2:]]

    def command(self, name: str, client: Client, transport: str, stack: ExitStack) -> list[str]:
        """The command line of the client, with all that it talks to running."""
        python_binary, older, node_binary, modules, frameworks = self.installed
        folder = self.folder / "paged" if client.claims else self.folder
        run = [{PYTHON: python_binary, OLDER: older, NODE: node_binary}[client.runs]]
        run += [str(HERE / ("node" if client.runs == NODE else "") / client.program[0]), *client.program[1:], "--folder", str(folder)]
        if client.runs == NODE:
            run += ["--toolcell", self.toolcell, "--modules", modules, "--frameworks", frameworks]
            run += [] if client.claims else ["--name", name]
        in_front = client.bridge and not client.bridge.startswith("mcp-remote") and client.bridge != "mcp-proxy-stdio"
        if transport == "http" and in_front:
            run += ["--url", self.bridge(client.bridge, self.folder, stack), "--paged-url", self.bridge(client.bridge, self.folder / "paged", stack)]
        elif transport == "http":
            # An address for which mcp-remote needs `--allow-http`.
            host = "127.0.0.2" if client.bridge == "mcp-remote" else "127.0.0.1"
            url = stack.enter_context(Serving(self.toolcell, folder, self.environment, host))
            run += ["--url", url]
            if not client.claims:
                run += ["--paged-url", stack.enter_context(Serving(self.toolcell, self.folder / "paged", self.environment, host)), "--restarts"]
        elif client.runs != NODE:
            run += ["--command", self.toolcell, "serve", "--manifest", "FOLDER/toolcell.toml"]
        if client.bridge == "mcp-remote":
            run += ["--command", node_binary, f"{frameworks}/node_modules/mcp-remote/dist/proxy.js", *self.printed(url)]
        if client.bridge == "mcp-proxy-stdio":
            run += ["--command", older, "-m", "mcp_proxy", "--transport", "streamablehttp", "URL"]
        return run


def lay_out(folder: Path, manifest: str) -> None:
    """Makes a folder that a server serves."""
    folder.mkdir()
    for copy, source in SOURCES.items():
        shutil.copyfile(source, folder / copy)
    (folder / "skills/charts/references").mkdir(parents=True)
    (folder / "skills/charts/SKILL.md").write_text(SKILL)
    (folder / "skills/charts/references/colours.md").write_text("Blue comes first.\n")
    (folder / "toolcell.toml").write_text(manifest)


def ask_for_tokens(folder: Path, toolcell: str, environment: dict[str, str]) -> None:
    """Has both servers of a folder let nobody in but the one whose token is in the file `token`."""
    for served in (folder, folder / "paged"):
        with (served / "toolcell.toml").open("a") as manifest:
            manifest.write('[http]\ntokens = "tokens.jsonl"\n')
    made = [toolcell, "token", "new", "ann", "--manifest", str(folder / "toolcell.toml")]
    (folder / "token").write_text(subprocess.run(made, env=environment, check=True, capture_output=True, text=True).stdout)
    shutil.copy2(folder / "tokens.jsonl", folder / "paged/tokens.jsonl")


Cells = dict[str, tuple[str, str]]
"""For each row its outcome and cause."""


def talk(name: str, client: Client, transport: str, toolcell: str, installed: list[str], home: Path) -> Cells:
    """Holds the conversations of one client over one transport."""
    with tempfile.TemporaryDirectory(prefix="toolcell-clients-") as scratch, ExitStack() as stack:
        folder = Path(scratch, "served")
        lay_out(folder, WHOLE)
        lay_out(folder / "paged", PAGED)
        environment = {**os.environ, "HOME": str(home), "MCP_REMOTE_CONFIG_DIR": str(home / name)}
        if client.bridge == "mcp-remote":
            ask_for_tokens(folder, toolcell, environment)
        try:
            command = Run(toolcell, installed, folder, environment).command(name, client, transport, stack)
            done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TALK_S)
        except (RuntimeError, subprocess.TimeoutExpired) as problem:
            return {row: ("failed", str(problem)[:300]) for row in ROWS}
    if client.claims:
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("FAILED")] or [done.stderr[-300:]]
        outcome = ("failed", said[0]) if done.returncode else ("passed", "")
        return {row: outcome if row in client.claims else ("absent", "not clicked on") for row in ROWS}
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"row"')]
    cells = {line["row"]: (line["outcome"], line["cause"]) for line in lines}
    ended = ("failed", f"the client ended with {done.returncode}: {done.stderr[-250:]}")
    return {row: cells.get(row, ended) for row in ROWS}


def known_failures() -> dict[tuple[str, str], str]:
    """For a client, or a client and its transport, and a row: why it fails."""
    read = tomllib.loads((HERE / "known.toml").read_text())
    return {(client, row): why for client, rows in read.items() for row, why in rows.items()}


def cell(outcomes: dict[str, tuple[str, str]]) -> tuple[str, str]:
    """What the page says of a row over all transports, and the note below the table."""
    failed = {transport: cause for transport, (outcome, cause) in outcomes.items() if outcome == "failed"}
    if failed:
        where = "" if len(failed) == len(outcomes) else f" over {next(iter(failed))}"
        return f"fails{where}", next(iter(failed.values()))
    absent = {transport: cause for transport, (outcome, cause) in outcomes.items() if outcome == "absent"}
    if absent and len(absent) < len(outcomes):
        return f"passed, not over {next(iter(absent))}", next(iter(absent.values()))
    return ("–", next(iter(absent.values()))) if absent else ("passed", "")


def write_page(results: dict[tuple[str, str], Cells], known: dict[tuple[str, str], str]) -> None:
    """Writes the matrix."""
    page = [
        "# Clients", "",
        "Clients that people use, and bridges between them and toolcell, each tried over stdio and HTTP.",
        "`make matrix` talks with all of them and writes this page; `make matrix ARGS=fastmcp` tries one.", "",
        "*passed*: over each transport that the client has. *–*: the client has no way to do it. *fails*: the", "cause is below the table, which leaves out rows that are the same for all clients.", "",
        "Rows: a list of four pages; a result that is structured, and a text; a result with tuples; the error", "of a typed function and of a tool; a tool that does not exist; progress; a call that is given up; the",
        "notification that the list changed, on a reload; resources; prompts; a tool that asks the person; a", "call that is a task; and a second connection, after the server was started anew.",
    ]
    for group in dict.fromkeys(client.group for client in CLIENTS.values()):
        page += ["", f"## {group}", ""]
        columns = [(name, client) for name, client in CLIENTS.items() if client.group == group and any(pair[0] == name for pair in results)]
        for start in range(0, len(columns), 6):
            part = columns[start:start + 6]
            page += ["| | " + " | ".join(client.title for _, client in part) + " |", "|---" * (len(part) + 1) + "|"]
            notes: dict[tuple[str, str], list[str]] = {}
            same = {"passed": [], "–": []}
            for row in ROWS:
                words = []
                for name, client in part:
                    word, note = cell({transport: results[name, transport][row] for transport in client.transports})
                    words.append(word)
                    reason = next((known[key, row] for key in (name, *(f"{name}/{way}" for way in client.transports)) if (key, row) in known), note)
                    if word.startswith("fails"):
                        notes.setdefault((row, " ".join(reason.split())), []).append(client.title)
                if len(set(words)) == 1 and words[0] in same:
                    same[words[0]].append(row)
                else:
                    page.append(f"| {row} | " + " | ".join(words) + " |")
            page.append("")
            for word, says in (("passed", "All passed"), ("–", "None has")):
                page += [f"{says}: {', '.join(same[word])}.", ""] if same[word] else []
            page += [f"- {row} ({'; '.join(titles)}): {reason}" for (row, reason), titles in notes.items()]
            page.append("")
    page += ["## Not tried", ""] + [f"- {title}: {why}." for title, why in NOT_TRIED.items()]
    PAGE.write_text(re.sub(r"\n{3,}", "\n\n", "\n".join(page)) + "\n")


def wanted(filters: list[str]) -> list[tuple[str, str]]:
    """The conversations that the filters name, or all."""
    pairs = [(name, transport) for name, client in (CLIENTS | BESIDE).items() for transport in client.transports]
    found = [pair for pair in pairs if not filters or pair[0] in filters or "/".join(pair) in filters]
    # No package has Chromium for other processors.
    if platform.machine() != "x86_64":
        print("left out on this processor: the Inspector's page, for which no package has a browser")
        found = [pair for pair in found if not (CLIENTS | BESIDE)[pair[0]].claims]
    if not found:
        sys.exit(f"no client is {' or '.join(filters)}: there are {', '.join(CLIENTS | BESIDE)}")
    return found


def report(name: str, transport: str, cells: Cells, known: dict[tuple[str, str], str]) -> tuple[int, int]:
    """Prints the cells of a conversation. Returns how many passed, and how many failed that nobody knows."""
    passed = failed = 0
    for row, (outcome, cause) in cells.items():
        why = known.get((name, row)) or known.get((f"{name}/{transport}", row))
        passed += outcome == "passed"
        if outcome == "failed":
            failed += why is None
            print(f"  {'known ' if why else 'FAILED'} {row}: {cause}", flush=True)
        elif why and outcome == "passed":
            print(f"  PASSED {row}, which known.toml says fails: {why}", flush=True)
    return passed, failed


def main() -> None:
    toolcell = os.environ.get("TOOLCELL_BIN") or str(ROOT / "target/release/toolcell")
    setup = subprocess.run([HERE.parent / "setup.sh", "matrix"], stdout=subprocess.PIPE, text=True)
    if setup.returncode:
        sys.exit("the clients cannot be installed")
    installed, known, pairs = setup.stdout.splitlines(), known_failures(), wanted(sys.argv[1:])
    began, passed, failed = time.monotonic(), 0, 0
    results: dict[tuple[str, str], Cells] = {}
    # What clients keep in the home folder ends with this run. So does what toolcell has compiled.
    with tempfile.TemporaryDirectory(prefix="toolcell-clients-") as home, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        warm_up(toolcell, Path(home))

        def timed(pair: tuple[str, str]) -> tuple[tuple[str, str], Cells, float]:
            started = time.monotonic()
            return pair, talk(pair[0], (CLIENTS | BESIDE)[pair[0]], pair[1], toolcell, installed, Path(home)), time.monotonic() - started

        for (name, transport), cells, took in pool.map(timed, pairs):
            results[name, transport] = cells
            counts = " ".join(f"{sum(outcome == word for outcome, _ in cells.values())} {word}" for word in ("passed", "absent", "failed"))
            print(f"{name} over {transport}: {counts} ({took:.1f} s)", flush=True)
            more, fewer = report(name, transport, cells, known)
            passed, failed = passed + more, failed + fewer
    print(f"{len(pairs)} conversations in {time.monotonic() - began:.0f} s")
    if not sys.argv[1:] and all((name, way) in results for name, client in CLIENTS.items() for way in client.transports):
        write_page(results, known)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


def warm_up(toolcell: str, home: Path) -> None:
    """Has the components compiled once. Some clients take a server that is slow to start for one of an older revision."""
    with tempfile.TemporaryDirectory(prefix="toolcell-clients-") as scratch:
        for name, manifest in (("whole", WHOLE), ("paged", PAGED)):
            lay_out(Path(scratch, name), manifest)
            with Serving(toolcell, Path(scratch, name), {**os.environ, "HOME": str(home)}):
                pass


main()
