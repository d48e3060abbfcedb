#!/usr/bin/env python3
"""Adds OpenAPI documents with `toolcell add`, and calls each of their tools against a server that answers with the documents' own
examples.

    tests/bridges.py [--toolcell FILE] [--bridge FILE] [--all] [--only WORD] [--calls N] [--json] DOCUMENT…

The server knows the paths of the document alone. It says what is wrong with a request: another path or method, a parameter in the
query that is required and missing, a body of another media type. A tool is called with the arguments that its schema requires, and
with all of them. A line for each document: operations, tools, seconds, bytes, calls, and how calls ended. With --json what is left out and
what failed comes as JSON. Documents in YAML need PyYAML.
"""

import argparse
import collections
import http.server
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
METHODS = ("get", "put", "post", "delete", "head", "patch")
# Objects inside each other in an example that is made of a schema.
LEVELS_MAX = 5
# A value for each format that servers check.
FORMATS = {
    "date": "2026-01-02", "date-time": "2026-01-02T03:04:05Z", "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "uri": "https://example.com/", "url": "https://example.com/", "email": "ada@example.com", "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1", "hostname": "example.com", "time": "03:04:05Z", "byte": "aGk=", "duration": "P1D",
}


def read(path):
    text = path.read_text()
    if text.lstrip().startswith("{"):
        return json.loads(text)
    import yaml

    # Dates stay texts, as in JSON.
    class Loader(yaml.SafeLoader):
        pass

    Loader.yaml_implicit_resolvers = {
        first: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"] for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return yaml.load(text, Loader)


class Document:
    """A document, and what its references lead to."""

    def __init__(self, root):
        self.root = root

    def followed(self, value):
        for _ in range(16):
            reference = value.get("$ref") if isinstance(value, dict) else None
            if not isinstance(reference, str) or not reference.startswith("#/"):
                return value
            value = self.root
            for segment in reference[2:].split("/"):
                segment = urllib.parse.unquote(segment).replace("~1", "/").replace("~0", "~")
                value = value[int(segment)] if isinstance(value, list) else value.get(segment, {})
        return value

    def operations(self):
        for path, item in self.root.get("paths", {}).items():
            item = self.followed(item)
            for method in METHODS:
                if isinstance(item.get(method), dict):
                    yield path, method, item, item[method]

    def example(self, schema, level=0):
        """A value that the schema allows, as far as one can be made of it."""
        schema = self.followed(schema) if isinstance(schema, dict) else {}
        if not isinstance(schema, dict):
            return {}
        for key in ("example", "default", "const"):
            if key in schema:
                return schema[key]
        for key in ("examples", "enum"):
            if isinstance(schema.get(key), list) and schema[key]:
                return schema[key][0]
        for key in ("oneOf", "anyOf"):
            if schema.get(key) and not schema.keys() & {"properties", "type"}:
                return self.example(schema[key][0], level + 1)
        parts = [self.followed(part) for part in schema.get("allOf", [])]
        # A part that only describes says nothing of the value.
        parts = [part for part in parts if part.keys() & {"type", "properties", "allOf", "oneOf", "anyOf", "example", "enum"}]
        kind = schema.get("type")
        kind = kind[0] if isinstance(kind, list) and kind else kind
        if kind == "object" or "properties" in schema or parts:
            if level >= LEVELS_MAX:
                return {}
            made = {}
            for part in parts:
                value = self.example(part, level + 1)
                if not isinstance(value, dict):
                    return value
                made.update(value)
            properties = schema.get("properties", {})
            made.update({name: self.example(part, level + 1) for name, part in properties.items() if isinstance(part, dict)})
            return made
        if kind == "array":
            return [self.example(schema.get("items", {}), level + 1)] if level < LEVELS_MAX else []
        return scalar(kind, schema)


def scalar(kind, schema):
    if kind in ("integer", "number"):
        least = schema.get("minimum", schema.get("exclusiveMinimum"))
        least = least + 1 if isinstance(least, (int, float)) and not isinstance(least, bool) else 1
        most = schema.get("maximum")
        return min(least, most) if isinstance(most, (int, float)) and not isinstance(most, bool) else least
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    text = FORMATS.get(schema.get("format"), "text")
    return (text + "x" * max(0, schema.get("minLength", 0) - len(text)))[: schema.get("maxLength", 10_000)]


def arguments(schema, whole, level=0):
    """Arguments for a tool, of its own schema: those that it requires, or all."""
    if "const" in schema or schema.get("enum"):
        return schema.get("const", (schema.get("enum") or [None])[0])
    if "default" in schema:
        return schema["default"]
    if schema.get("anyOf"):
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        made = arguments(schema["anyOf"][0], whole, level)
        return arguments(rest, whole, level) | made if isinstance(made, dict) and "properties" in rest else made
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object" or "properties" in schema:
        properties = schema.get("properties", {})
        if "base64" in properties and not schema.get("required"):
            return {"text": "a file"}
        required = schema.get("required", [])
        names = list(properties) if whole and level < LEVELS_MAX else [name for name in required if name in properties]
        made = {name: arguments(properties[name], whole, level + 1) for name in names}
        return made | {name: "text" for name in required if name not in properties}
    if kind == "array":
        count = schema.get("minItems", 1 if whole else 0)
        return [arguments(schema.get("items", {}), whole, level + 1) for _ in range(min(count, 3))]
    if schema.get("pattern"):
        return matching(schema["pattern"]) or scalar(kind, schema)
    return scalar(kind, schema)


def matching(pattern):
    """One of a few texts that fits a pattern."""
    for text in ("text", "a", "1", "12", "2026-01-02", "a-b", "AA", "abc123", "https://example.com/", "/a", "123e4567-e89b-12d3-a456-426614174000",
                 "a@example.com", "1.0", "#ffffff", "+15551234567", "a/b", "0x1", "a:b", "1s", "US"):
        try:
            if re.search(pattern, text):
                return text
        except re.error:
            return None
    return None


class Mock(http.server.ThreadingHTTPServer):
    """Answers as the document says, below this path."""

    daemon_threads = True

    def __init__(self, document, base):
        super().__init__(("127.0.0.1", 0), Handler)
        self.document = document
        self.faults = []
        self.routes = []
        for written, method, item, operation in document.operations():
            path, _, query = written.split("#")[0].partition("?")
            pattern = re.sub(r"\\\{[^/]*?\\\}", "[^/]+", re.escape(path))
            fixed = {part for part in query.split("&") if part and "{" not in part}
            self.routes.append((method.upper(), re.compile(re.escape(base) + pattern), fixed, item, operation))
        # A path without parameters wins, as everywhere, and one with more of a query.
        self.routes.sort(key=lambda route: (route[1].pattern.count("[^/]+"), -len(route[2])))
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def answered(self, method, target, headers, body):
        path, _, query = target.partition("?")
        for known, pattern, fixed, item, operation in self.routes:
            if known == method and pattern.fullmatch(path) and fixed <= set(query.split("&")):
                self.check(item, operation, query, headers, body, f"{method} {target}")
                return self.answer(operation)
        self.faults.append(f"{method} {target}: the document has no such operation")
        return 404, "text/plain", b"no such operation"

    def check(self, item, operation, query, headers, body, shown):
        given = urllib.parse.parse_qs(query, keep_blank_values=True)
        written = [self.document.followed(one) for one in item.get("parameters", []) + operation.get("parameters", [])]
        for one in written:
            is_simple = self.document.followed(one.get("schema", {})).get("type") not in ("object", "array", None)
            if one.get("in") == "query" and one.get("required") and is_simple and one["name"] not in given:
                self.faults.append(f"{shown}: {one['name']} is missing")
        content = self.document.followed(operation.get("requestBody", {})).get("content", {})
        media = headers.get("content-type", "").split(";")[0]
        wanted = [name.split(";")[0].strip().lower() for name in content]
        if body and media not in wanted and not any("*" in name for name in wanted):
            self.faults.append(f"{shown}: a body of {media!r}, and not of {wanted}")
        if body and media.endswith("json"):
            json.loads(body)

    def answer(self, operation):
        responses = operation.get("responses", {})
        # Some documents name the failures alone.
        status = next((status for status in responses if str(status).startswith("2")), "default")
        response = self.document.followed(responses.get(status, {}))
        number = int(status) if str(status).isdigit() else 200
        content = response.get("content", {})
        media = next((name for name in content if "json" in name), next(iter(content), None))
        if media is None or number == 204:
            return number, None, b""
        written = content[media]
        examples = [self.document.followed(one) for one in (written.get("examples") or {}).values()]
        if "example" in written:
            value = written["example"]
        elif examples and "value" in examples[0]:
            value = examples[0]["value"]
        else:
            value = self.document.example(written.get("schema", {}))
        media = "application/octet-stream" if "*" in media else media
        if "json" in media:
            return number, media, json.dumps(value, default=str).encode()
        return number, media, value.encode() if isinstance(value, str) else json.dumps(value, default=str).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_one(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        status, media, answer = self.server.answered(self.command, self.path, self.headers, body)
        self.send_response(status)
        if media:
            self.send_header("content-type", media)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_PATCH = handle_one

    def log_message(self, *_):
        pass


class Host:
    """`toolcell serve` over stdio, as a legacy client talks to it."""

    def __init__(self, toolcell, folder):
        self.process = subprocess.Popen([toolcell, "serve"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.number = 0
        client = {"name": "bridges", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == self.number:
                return message
        raise SystemExit("the host has ended")

    def tools(self):
        tools, cursor = [], None
        while True:
            page = self.ask("tools/list", {"cursor": cursor} if cursor else {})["result"]
            tools += page["tools"]
            cursor = page.get("nextCursor")
            if cursor is None:
                return tools

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def outcome(message):
    """How a call ended, in a few words, and everything that it says."""
    if "error" in message:
        return "error", message["error"]["message"]
    result = message["result"]
    text = " ".join(piece.get("text", "") for piece in result["content"])
    if not result.get("isError"):
        return "ok", text
    return ("status" if text.startswith("HTTP ") else "failed"), text


def run(path, given):
    document = Document(read(path))
    base = "/base"
    mock = Mock(document, base)
    folder = Path(tempfile.mkdtemp(prefix="bridges."))
    server = f"http://127.0.0.1:{mock.server_port}{base}"
    command = [given.toolcell, "add", str(path.resolve()), "--openapi", "--name", "api", "--server", server, "--yes", "--json", "--deprecated"]
    command += ["--all"] if given.all else []
    command += [word for only in given.only for word in ("--only", only)]
    command += ["--bridge", given.bridge] if given.bridge else []
    start = time.monotonic()
    added = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    seconds = time.monotonic() - start
    report = {"document": path.name, "bytes": path.stat().st_size, "operations": sum(1 for _ in document.operations()), "seconds": round(seconds, 2)}
    if added.returncode:
        said = json.loads(added.stdout) if added.stdout.startswith("{") else {"problem": added.stderr}
        return report | {"refused": said.get("problem", ""), "hint": said.get("hint")}
    said = json.loads(added.stdout)
    report |= {"tools": len(said["tools"]), "component": said["size_bytes"]}
    report |= {"left_out": said["document"]["left_out"], "notes": said["document"]["notes"]}
    manifest = folder / "toolcell.toml"
    text = manifest.read_text().replace('approval = "destructive"\n', "")
    # No server wants keys here.
    manifest.write_text(re.sub(r"\n\[components\.api\.secrets\]\n(?:[^\[\n].*\n)*", "\n", text))
    locked = subprocess.run([given.toolcell, "lock"], cwd=folder, capture_output=True, text=True)
    if locked.returncode:
        return report | {"refused": locked.stderr}
    host = Host(given.toolcell, folder)
    ends, failed = collections.Counter(), []
    for tool in host.tools()[: given.calls]:
        for whole in (False, True):
            before = len(mock.faults)
            with_arguments = arguments(tool["inputSchema"], whole)
            end, text = outcome(host.ask("tools/call", {"name": tool["name"], "arguments": with_arguments}))
            end = "wrong request" if len(mock.faults) > before else end
            ends[end] += 1
            if end != "ok":
                failed.append({"tool": tool["name"], "end": end, "text": text[:300], "faults": mock.faults[before:], "arguments": with_arguments})
    host.end()
    mock.shutdown()
    return report | {"calls": dict(ends), "failed": failed}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--toolcell", default=str(ROOT / "target/release/toolcell"))
    parser.add_argument("--bridge", help="the bridge's component, where it is not beside the program")
    parser.add_argument("--all", action="store_true", help="more than 100 operations")
    parser.add_argument("--only", action="append", default=[], help="a tag or an operation")
    parser.add_argument("--calls", type=int, default=1_000, help="tools to call at most")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("documents", nargs="+", type=Path, metavar="DOCUMENT")
    given = parser.parse_args()
    for path in given.documents:
        report = run(path, given)
        if given.json:
            print(json.dumps(report))
        else:
            counts = {key: len(value) if isinstance(value, list) else value for key, value in report.items()}
            print("  ".join(f"{key} {value}" for key, value in counts.items()))
        sys.stdout.flush()


main()
