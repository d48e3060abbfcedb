#!/usr/bin/env python3
"""Serves the example tools over HTTP, holds an MCP conversation with them, prints it, and checks every answer.

    guest-examples/conversation.py [--toolcell FILE] [--manifest FILE] [--port PORT] [--once | --stay]

A modern client (2026-07-28) and a legacy one (2025-11-25) talk to one server, one after the other. Then it prints the
tools, a command that calls one, which it tries itself, and what clients need in their configuration. On a terminal
it serves on until Ctrl-C, at port 8080; elsewhere it ends, and takes any free port. Ends with exit code 1 where an
answer is late or is not what it should be. Needs Python 3.9 and nothing else.
"""

import argparse
import base64
import http.client
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Components are compiled before, but for those of a machine that keeps nothing: some seconds each on one core.
START_SECONDS = 180
# Any answer. A call's own deadline is 30 seconds where the manifest does not say.
ANSWER_SECONDS = 40
# From the signal to the end of the process: calls that run have 10 of them.
END_SECONDS = 20

# The exit code of what somebody at a terminal interrupts, as shells have it.
INTERRUPTED = 130

# Where it serves on a terminal, so that a configuration that was copied holds the next time.
PORT = 8080

# The clients whose configuration is shown; `toolcell client-config --help` names all.
CLIENTS = ["claude", "vscode", "cursor", "codex"]

# How much is shown of what is long: columns, characters of a text, lines of a text.
WIDTH = 116
TEXT_CHARACTERS = 160
TEXT_LINES = 14

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "conversation", "version": "1.0.0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Wrong(Exception):
    """An answer that is not what it should be."""


def expect(holds, what):
    if not holds:
        raise Wrong(what)


# ---- what is shown ---------------------------------------------------------------------------------------------

COLOURS = sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def paint(text, code):
    return f"\033[{code}m{text}\033[0m" if COLOURS else text


def printable(text):
    """What tools say must not act on a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else f"\\u{ord(c):04x}" for c in text)


def say(text=""):
    print(text, flush=True)


def heading(text):
    say("\n" + paint(f"── {text} " + "─" * max(0, WIDTH - 4 - len(text)), "1"))


def compact(value, depth, key=""):
    """One line of JSON; what lies deeper than `depth` is left out."""
    if isinstance(value, str):
        if key in ("data", "blob"):
            return f'"{value[:24]}…" ({len(value):,} characters of base64)'
        if value.startswith("data:"):
            return f'"{value[:24]}…" ({len(value):,} characters)'
        cut = value if len(value) <= TEXT_CHARACTERS else value[:TEXT_CHARACTERS]
        return json.dumps(cut, ensure_ascii=False) + ("" if cut == value else f"… ({len(value):,} characters)")
    if isinstance(value, dict) and value:
        if depth == 0:
            return "{…}"
        inner = (f'{json.dumps(k, ensure_ascii=False)}: {compact(v, depth - 1, k)}' for k, v in value.items())
        return "{" + ", ".join(inner) + "}"
    if isinstance(value, list) and value:
        return "[…]" if depth == 0 else "[" + ", ".join(compact(v, depth - 1) for v in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def has_block(value):
    """Whether a text of several lines is in it, which is shown line by line."""
    if isinstance(value, dict):
        return "\n" in str(value.get("text", "")) or any(map(has_block, value.values()))
    return isinstance(value, list) and any(map(has_block, value))


def block(text, margin):
    lines = text.splitlines()
    shown = [line[:WIDTH] for line in lines[:TEXT_LINES]]
    if len(lines) > TEXT_LINES:
        shown.append(f"… ({len(lines) - TEXT_LINES} more lines)")
    return "".join(f"\n{margin}| {line}" for line in shown)


def pretty(value, depth, indent=0, key=""):
    """JSON over several lines where one is too narrow; long texts as a block."""
    line, margin = compact(value, depth, key), "  " * (indent + 1)
    if isinstance(value, str) and key == "text" and "\n" in value:
        return block(value, margin)
    if depth == 0 or not isinstance(value, (dict, list)) or len(line) + 2 * indent <= WIDTH and not has_block(value):
        return line
    if isinstance(value, list):
        return "[\n" + ",\n".join(margin + pretty(v, depth - 1, indent + 1) for v in value) + "\n" + margin[2:] + "]"
    lines, open_line = [], False
    for name, member in value.items():
        shown = f"{json.dumps(name, ensure_ascii=False)}: {pretty(member, depth - 1, indent + 1, name)}"
        short = not isinstance(member, (dict, list)) and "\n" not in shown
        if short and open_line and len(lines[-1]) + len(shown) < WIDTH:
            lines[-1] += f", {shown}"
        else:
            lines.append(margin + shown)
        open_line = short
    return "{\n" + ",\n".join(lines) + "\n" + margin[2:] + "}"


# ---- the wire --------------------------------------------------------------------------------------------------


class Server:
    """A toolcell process that serves over HTTP, and the messages to and from it."""

    def __init__(self, command, port):
        self.process = subprocess.Popen(
            [*command, "--http", f"127.0.0.1:{port}"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self.notifications = []
        self.requests = 0
        self.session = None
        late = threading.Timer(START_SECONDS, self.process.kill)
        late.start()
        said = self._said_until_it_serves()
        late.cancel()
        if self.url is None:
            raise Wrong(f"the server ended with status {self.process.wait()} instead of serving\n{said}")
        self.connection = http.client.HTTPConnection(self.url.split("/")[2], timeout=ANSWER_SECONDS)
        # What it says from now on is for the person there; a pipe that nobody reads would stop it.
        threading.Thread(target=self._pass_on, daemon=True).start()

    def _said_until_it_serves(self):
        self.url, said = None, ""
        for line in self.process.stderr:
            said += line
            found = re.search(r"http://\S+", line)
            if found:
                self.url = found.group()
                break
        return said

    def _pass_on(self):
        for line in self.process.stderr:
            sys.stderr.write(line)

    def _headers(self, message):
        """What says again what the body says, in the modern era; the session in the legacy one."""
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        params = message.get("params", {})
        version = params.get("_meta", {}).get("io.modelcontextprotocol/protocolVersion")
        if version:
            headers.update({"MCP-Protocol-Version": version, "Mcp-Method": message["method"]})
            name = params.get("name") or params.get("uri")
            if message["method"] in ("tools/call", "resources/read", "prompts/get"):
                headers["Mcp-Name"] = name
        elif self.session:
            headers.update({"MCP-Protocol-Version": "2025-11-25", "Mcp-Session-Id": self.session})
        return headers

    def _send(self, message):
        shown = dict(message)
        params = shown.get("params", {})
        if "_meta" in params and self.requests > 1:
            # Shown whole once: it is the same in every modern request, but for a progress token.
            shown["params"] = {**params, "_meta": {k: v for k, v in params["_meta"].items() if k not in MODERN} or "…"}
        say(f"\n{paint('→', '1;36')} {printable(compact(shown, 9))}")
        try:
            self.connection.request("POST", "/mcp", json.dumps(message).encode(), self._headers(message))
            response = self.connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise Wrong(f"no answer: {error!r}; the server's status is {self.process.poll()}") from None
        self.session = response.getheader("Mcp-Session-Id") or self.session
        return response

    def _messages(self, response):
        """The messages of a response: one, or those of a stream of events."""
        if response.getheader("Content-Type") == "text/event-stream":
            lines = (line[len(b"data: ") :] for line in response if line.startswith(b"data: "))
        else:
            lines = [response.read()]
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError:
                raise Wrong(f"this is not JSON: {line[:200]!r}") from None
            expect(message.get("jsonrpc") == "2.0", f"this is not a JSON-RPC message: {line[:200]!r}")
            yield message

    def notify(self, method, params=None):
        response = self._send({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})})
        expect(response.status == 202, f"a notification is answered with status {response.status}")
        response.read()

    def exchange(self, method, params=None, depth=6):
        """Sends a request and returns the whole answer; notifications that come before it are kept and shown."""
        self.requests += 1
        request = {"jsonrpc": "2.0", "id": self.requests, "method": method}
        response = self._send({**request, "params": params} if params is not None else request)
        self.notifications, answer = [], None
        for message in self._messages(response):
            if "id" in message:
                answer = message
                continue
            self.notifications.append(message)
            say(f"{paint('←', '33')} {printable(compact(message, 4))}")
        expect(answer is not None, f"the response ends without an answer, with status {response.status}")
        failed = "error" in answer or answer.get("result", {}).get("isError")
        say(f"{paint('←', '1;31' if failed else '1;32')} {printable(pretty(answer, depth))}")
        expect(answer["id"] == request["id"], f"the answer is to request {answer['id']!r}")
        expect(("result" in answer) != ("error" in answer), "an answer is either a result or an error")
        return answer

    def request(self, method, params=None, depth=6):
        answer = self.exchange(method, params, depth)
        expect("result" in answer, f"{method} failed")
        return answer["result"]

    def leave(self):
        """Ends the legacy client's session."""
        self.connection.request("DELETE", "/mcp", headers={"Mcp-Session-Id": self.session})
        response = self.connection.getresponse()
        expect(response.status == 204, f"the end of a session is answered with status {response.status}")
        response.read()

    def stay(self):
        """Serves until somebody at the terminal has enough, or the process ends by itself."""
        try:
            say(f"\n{paint('✓', '1;32')} serving at {self.url} until Ctrl-C")
            self.process.wait()
        except KeyboardInterrupt:
            # The terminal has told the server as well.
            say()

    def end(self):
        """Tells it to end, unless the terminal has: it has to end then, and well."""
        self.connection.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            raise Wrong("the server goes on though it was told to end") from None
        expect(status == 0, f"the server ended with status {status}")

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


# ---- the conversation ------------------------------------------------------------------------------------------


def modern(**params):
    return {**params, "_meta": {**MODERN, **params.get("_meta", {})}}


def call(server, tool, arguments, progress=False):
    """Calls a tool as a modern client does."""
    meta = {"_meta": {"progressToken": tool}} if progress else {}
    result = server.request("tools/call", modern(name=tool, arguments=arguments, **meta))
    expect(result.get("resultType") == "complete", "a modern result has a resultType")
    expect("io.modelcontextprotocol/serverInfo" in result["_meta"], "a modern result says who gave it")
    return result


def all_tools(server, params, depth):
    """Every page of the list, shown to that depth: schemas are long."""
    tools = []
    cursor = {}
    while True:
        result = server.request("tools/list", params(**cursor), depth)
        tools += result["tools"]
        if "nextCursor" not in result:
            return tools
        cursor = {"cursor": result["nextCursor"]}


def modern_client(server):
    heading("A modern client (2026-07-28) asks what the server is")
    found = server.request("server/discover", modern())
    expect("2026-07-28" in found["supportedVersions"], "2026-07-28 is served")
    expect("tools" in found["capabilities"], "the server has tools")

    heading("It lists the tools")
    tools = {tool["name"]: tool for tool in all_tools(server, modern, 4)}
    wanted = {
        "weather_normals", "json_query", "text_diff", "chart", "sonify", "notebook_search", "notebook_read", "echo",
        "units_convert", "file_search", "notes_write", "notes_read", "fetch_page", "library_index",
    }
    expect(wanted <= tools.keys(), f"missing: {', '.join(sorted(wanted - tools.keys()))}")

    heading("A structured result: what July is like in Lisbon")
    result = call(server, "weather_normals", {"city": "lisboa", "month": 7})
    expect(result["structuredContent"]["city"] == "Lisbon", "Lisbon is found by its Portuguese name")
    expect(json.loads(result["content"][0]["text"]) == result["structuredContent"], "the text says the same")
    expect("toolcell/usage" not in result["_meta"], "a model pays for no figures that it does not need")

    heading("A query over a document")
    shop = {"book": [{"title": "Emma", "price": 8}, {"title": "Ulysses", "price": 23}]}
    result = call(server, "json_query", {"path": "$.book[?@.price < 10].title", "document": shop})
    expect([match["value"] for match in result["structuredContent"]["matches"]] == ["Emma"], "one book is cheap")

    heading("Text for people and numbers for programs: what changed")
    before, after = "tea\nmilk\nsugar\n", "tea\noat milk\nsugar\n"
    result = call(server, "text_diff", {"before": before, "after": after})
    expect(result["structuredContent"]["added"] == 1, "one line was added")
    expect("+oat milk" in result["content"][0]["text"], "the diff shows it")

    heading("Functions over WIT values: an enum, an option, a record, and an error with a type")
    result = call(server, "units_convert", {"value": 26.2, "from": "mile", "to": "kilometre"})
    expect(result["structuredContent"] == {"value": 42.1648, "unit": "kilometre"}, "a marathon has 42 km")
    result = call(server, "units_convert", {"value": 1, "from": "mile", "to": "hour"})
    expect(result["isError"] is True, "a mile is not a time")
    problem = {"incompatible": {"from": "length", "to": "time"}}
    expect(result["structuredContent"] == {"error": problem}, "the error is a value, too")

    media(server)
    notes(server)
    library(server)
    grants(server)
    refusals(server)


def media(server):
    heading("A picture, and how far it is meanwhile")
    highs = [15, 16, 19, 20, 22, 25, 28, 28, 26, 22, 18, 15]
    chart = {"kind": "line", "title": "Lisbon, daily high in °C", "series": [{"values": highs}]}
    result = call(server, "chart", chart, progress=True)
    image = piece(result, "image")
    expect(image["mimeType"] == "image/png", "the chart is a PNG picture")
    expect(base64.b64decode(image["data"]).startswith(b"\x89PNG\r\n\x1a\n"), "its bytes are one")
    steps = [note["params"]["progress"] for note in server.notifications if note["method"] == "notifications/progress"]
    expect(steps and steps == sorted(set(steps)), "progress was reported, and grows")

    heading("The same numbers as a sound")
    sound = piece(call(server, "sonify", {"values": highs, "seconds": 2}), "audio")
    expect(sound["mimeType"] == "audio/wav", "the sound is a WAV file")
    expect(base64.b64decode(sound["data"]).startswith(b"RIFF"), "its bytes are one")


def notes(server):
    heading("Links to resources")
    link = piece(call(server, "notebook_search", {"query": "disk full", "limit": 2}), "resource_link")
    expect("priority" in link["annotations"], "a link says how much it matters")

    heading("A resource in the answer, by the link from before")
    resource = piece(call(server, "notebook_read", {"note": link["uri"]}), "resource")["resource"]
    expect(resource["uri"] == link["uri"], "it is the note that was asked for")
    expect("text" in resource, "the note is text")

    heading("The same as a client does it: what the manifest says is read by a call of that tool")
    contents = server.request("resources/read", modern(uri=link["uri"]))["contents"]
    expect(contents[0] == resource, "it is the same note")


def library(server):
    heading("A folder is indexed, and the client hears how far it is")
    result = call(server, "library_index", {"again": True}, progress=True)
    expect(result["structuredContent"]["documents"] == 4, "each of the four documents has a card")
    told = [note["params"] for note in server.notifications if note["method"] == "notifications/progress"]
    told = [params["message"] for params in told if params["progressToken"] == "library_index"]
    expect(told and told[-1] == "4 of 4: tea.md", "the last document is the fourth")

    heading("A card: a resource that the component itself declares and reads")
    contents = server.request("resources/read", modern(uri="library:///tea.md"))["contents"]
    expect(contents[0]["text"].startswith("# Tea\n"), "its title is the document's")

    heading("A person types an argument of a prompt: the component knows the paths")
    typed = modern(ref={"type": "ref/prompt", "name": "study"}, argument={"name": "document", "value": "desc"})
    completion = server.request("completion/complete", typed)["completion"]
    expect(completion["values"] == ["howto/descale.md"], "one path holds what is typed")

    heading("The prompt: the card, the document, and a request")
    chosen = modern(name="study", arguments={"document": "howto/descale.md", "reader": "a child"})
    messages = server.request("prompts/get", chosen)["messages"]
    expect([message["content"]["type"] for message in messages] == ["resource", "text", "text"], "three messages")
    expect("to a child" in messages[2]["content"]["text"], "the request names the reader")


def grants(server):
    heading("Files: a search over the one folder that the tool may read")
    result = call(server, "file_search", {"pattern": "kettle", "path": "howto", "context": 1})
    expect([match["line"] for match in result["structuredContent"]["matches"]] == [1, 3], "two lines match")

    heading("A note in the one folder that the tools may write")
    text = "Oat milk, citric acid.\n"
    call(server, "notes_write", {"note": "shopping", "text": text})
    result = call(server, "notes_read", {"note": "shopping"})
    expect(result["content"] == [{"type": "text", "text": text}], "the note was kept")

    # Nothing here leaves this machine: the page that is asked for is one that no rule allows.
    heading("A web page that no rule of the manifest allows")
    result = call(server, "fetch_page", {"url": "http://169.254.169.254/latest/meta-data/"})
    expect(result["isError"] is True, "a denied request is an error of the call")
    told = "".join(content["text"] for content in result["content"])
    expect('no rule of tool "fetch_page" allows it' in told, "the model learns why")


def piece(result, kind):
    """The first piece of content of a kind."""
    found = [content for content in result["content"] if content["type"] == kind]
    expect(found, f"the result has {kind} content")
    return found[0]


def refusals(server):
    heading("Arguments that do not fit the schema: the model learns what is wrong")
    result = call(server, "weather_normals", {"city": "Oslo", "month": 13, "year": 2020})
    expect(result["isError"] is True, "wrong arguments are an error of the call")
    expect("/month" in result["content"][0]["text"], "the error names the place")

    heading("Arguments that the tool itself refuses")
    result = call(server, "weather_normals", {"city": "Amstelveen"})
    expect(result["isError"] is True, "an unknown city is an error of the call")
    expect("Amsterdam" in result["content"][0]["text"], "it comes with a suggestion")

    heading("A tool that does not exist: a protocol error")
    answer = server.exchange("tools/call", modern(name="wether", arguments={}))
    expect(answer.get("error", {}).get("code") == -32602, "an unknown tool is error -32602")


def legacy_client(server):
    heading("A legacy client (2025-11-25) talks to the same server, in a session")
    result = server.request("initialize", {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "conversation", "version": "1.0.0"},
    })
    expect(result["protocolVersion"] == "2025-11-25", "the revision is served")
    server.notify("notifications/initialized")

    heading("It lists the tools and calls one")
    tools = all_tools(server, dict, 3)
    expect(any(tool["name"] == "echo" for tool in tools), "echo is listed")
    result = server.request("tools/call", {"name": "echo", "arguments": {"text": "Grüße ☕"}})
    expect(result["content"] == [{"type": "text", "text": "Grüße ☕"}], "the text comes back")
    expect("resultType" not in result, "a legacy result has no resultType")

    heading("And asks whether the server is there")
    expect(server.request("ping") == {}, "the answer to ping is empty")
    server.leave()


# ---- what a person does next -----------------------------------------------------------------------------------


def tools_listed(toolcell, manifest):
    heading("The tools")
    listed = subprocess.run([toolcell, "list", "--manifest", manifest], stdout=subprocess.PIPE, text=True, check=False)
    expect(listed.returncode == 0 and "weather_normals" in listed.stdout, "toolcell list shows them")
    say(listed.stdout.rstrip())


SCRIPT = """const { cities } = await tools.weather_find({ month: 7, min_high: 25, max_high: 30 });
const all = await Promise.all(cities.slice(0, 5).map(({ city }) => tools.weather_normals({ city })));
return all.map(({ city, months }) => `${city}: ${months[6].high} °C`);"""


def script(toolcell):
    """A program of the model's in place of six calls, where the engine for it was built."""
    heading("A script: six calls, and one answer")
    if not (toolcell.parent / "toolcell-code.wasm").exists():
        say("(the engine of scripts is not built; `make code` builds it, and this step then runs one)")
        return
    say(SCRIPT)
    command = [toolcell, "call", "run_code", json.dumps({"code": SCRIPT}), "--manifest", ROOT / "guest-examples" / "code.toml"]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    expect(ran.returncode == 0 and ran.stdout.count("°C") == 5, f"a script answers with five cities: {ran.stdout}")
    say(f"\n{printable(ran.stdout.rstrip())}")


def command_line(server):
    """A call as one types it in a shell, and that it works."""
    params = {
        "name": "weather_normals",
        "arguments": {"city": "lisboa", "month": 7},
        "_meta": {key: MODERN[key] for key in MODERN if not key.endswith("clientInfo")},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in server._headers(message).items()]
    command = " \\\n  ".join([f"curl -s {server.url}", *headers, f"-d {shlex.quote(json.dumps(message))}"])
    heading("A call, typed into a shell")
    say(command)
    if shutil.which("curl") is None:
        say("\n(there is no curl here)")
        return
    answer = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, timeout=ANSWER_SECONDS, check=False).stdout
    say()
    say(printable(answer.decode()))
    expect(json.loads(answer)["result"]["structuredContent"]["city"] == "Lisbon", "the command calls the tool")


def configuration(toolcell, url):
    heading("What clients need in their configuration")
    for client in CLIENTS:
        command = [toolcell, "client-config", client, "--url", url, "--name", "toolcell-examples"]
        shown = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        expect(shown.returncode == 0, f"toolcell client-config {client} ended with status {shown.returncode}")
        say(f"\n{paint(f'toolcell client-config {client} --url {url}', '1')}\n{shown.stdout.rstrip()}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    built = os.environ.get("TOOLCELL_BIN") or ROOT / "target" / "release" / "toolcell"
    parser.add_argument("--toolcell", type=Path, default=Path(built), help="the binary")
    parser.add_argument("--manifest", type=Path, default=ROOT / "guest-examples" / "toolcell.toml", help="the manifest")
    parser.add_argument("--port", type=int, help="where to serve; 0 for any free one")
    until = parser.add_mutually_exclusive_group()
    until.add_argument("--once", action="store_true", help="end after the conversation, on a terminal too")
    until.add_argument("--stay", action="store_true", help="serve on, even without a terminal")
    given = parser.parse_args()
    given.stay |= not given.once and sys.stdin.isatty() and sys.stdout.isatty()
    if given.port is None:
        given.port = PORT if given.stay else 0
    given.toolcell, given.manifest = given.toolcell.absolute(), given.manifest.absolute()
    return given


def converse(server, given):
    started = time.monotonic()
    modern_client(server)
    legacy_client(server)
    seconds = time.monotonic() - started
    say(f"\n{paint('✓', '1;32')} {server.requests} requests in {seconds * 1000:.0f} ms, each answered as it should be, "
        "each call in a sandbox of its own")
    tools_listed(given.toolcell, given.manifest)
    script(given.toolcell)
    command_line(server)
    configuration(given.toolcell, server.url)
    if given.stay:
        server.stay()
    server.end()


def main():
    given = arguments()
    if not given.toolcell.exists():
        print(f"error: there is no {given.toolcell}\n\nhint: `make run` builds it", file=sys.stderr)
        return 1
    server = None
    try:
        # Beforehand, as it says on a terminal how far it is; where something is wrong it says that as well.
        compiling = [given.toolcell, "compile", "--manifest", given.manifest]
        if subprocess.run(compiling, stdout=subprocess.DEVNULL, check=False).returncode != 0:
            return 1
        server = Server([str(given.toolcell), "serve", "--manifest", str(given.manifest)], given.port)
        converse(server, given)
    except (Wrong, KeyError, IndexError, TypeError, ValueError) as wrong:
        what = wrong if isinstance(wrong, Wrong) else f"the answer has another shape: {wrong!r}"
        say(f"\n{paint('✗', '1;31')} not as it should be: {printable(str(what))}")
        if server is None and given.port:
            print("hint: `make run PORT=0` serves at any port that is free", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        say()
        return INTERRUPTED
    finally:
        if server is not None:
            server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
