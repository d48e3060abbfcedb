#!/usr/bin/env python3
"""Writes projects with `toolcell new`, builds and tests them as their READMEs say, and tries what their tools answer.

    guest-examples/starts.py [--toolcell FILE] [--all] [--all-examples] [LANGUAGE[:EXAMPLE]…]

Without names: what the end-to-end tests do not try, quickly; with --all-examples every example in every language.
HTTP goes to a server here, in place of the API that an example names. Compilers come from where those of the examples
here come from. Where one is not available, the language is left out and named; with --all, that ends with 1.

Ends with 1 where a project does not build, fails its tests, or answers otherwise. Needs Python 3.9 and nothing else.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import check

HERE = Path(__file__).resolve().parent
NAME = "0-tool_box"  # a name that some languages' tools would refuse
AWKWARD = "it's a clone"  # a folder's name with all that a build must quote
# Rust is left to the end-to-end tests, which try every example in it, and words of the others.
QUICK = [
    ("typescript", "words"),
    *((language, "fetch") for language in ("python", "typescript", "js")),
]
COMPONENTS = ["rust", "python", "typescript", "js"]
# Those that QuickJS runs unless another engine is named.
ON_THE_OTHER = ["typescript-starlingmonkey", "js-starlingmonkey"]
LANGUAGES = {
    "words": [*COMPONENTS, *ON_THE_OTHER, "go", "c"],
    "fetch": COMPONENTS,
    "files": [*COMPONENTS, "go", "c"],
    "image": [*COMPONENTS, *ON_THE_OTHER, "go", "c"],
    "secret": COMPONENTS,
    "state": COMPONENTS,
    "ask": [*COMPONENTS, *ON_THE_OTHER],
}
APIS = ["https://jsonplaceholder.typicode.com", "https://api.github.com"]
TOKEN = "open sesame, if you please"
UNAVAILABLE = 3  # the exit code of packages.sh where a compiler is not available


class Api(BaseHTTPRequestHandler):
    """The answers of the two APIs."""

    def do_GET(self):
        if self.path == "/todos/1":
            status, answer = 200, {"userId": 1, "id": 1, "title": "delectus aut autem", "completed": False}
        elif self.path == "/user" and self.headers.get("Authorization") == f"Bearer {TOKEN}":
            status, answer = 200, {"login": "ada", "id": 1, "name": None}
        elif self.path == "/user":
            status, answer = 401, {"message": "Bad credentials"}
        else:
            status, answer = 404, {"message": "Not Found"}
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class LeftOut(Exception):
    """A compiler is not available."""


def calls(example, language):
    """The calls of check.py for an example."""
    program = language in ("go", "c")
    png = {"type": "image/png", "begins": "iVBORw0KGgo"}
    return {
        "words": [
            {"tool": "count_words", "arguments": {"text": "one two\nthree"}, "structured": {"lines": 2, "words": 3, "longest": "three"}},
            {"tool": "count_words", "arguments": {"text": "größe xxxxx", "min_length": 5}, "structured": {"words": 2, "longest": "größe"}},
        ],
        "fetch": [
            {"tool": "get_todo", "arguments": {"id": 1}, "structured": {"title": "delectus aut autem", "completed": False}},
            {"tool": "get_todo", "arguments": {"id": 2}, "is_error": True, "contains": ["the API answers 404: Not Found"]},
        ],
        "files": [
            {"tool": "read_note", "arguments": {"name": "tea"}, "is_error": True, "contains": ["tea"]},
            {"tool": "write_note", "arguments": {"name": "tea", "text": "größe\n"}, "contains": ["8"]},
            {"tool": "read_note", "arguments": {"name": "tea"}, **({"text": "größe\n"} if program else {"structured": {"result": "größe\n"}})},
            {"tool": "read_note", "arguments": {"name": "../tea"}, "is_error": True},
        ],
        "image": [
            {"tool": "draw_bars", "arguments": {"values": [10, 60, 30]}, "media": png},
            {"tool": "draw_bars", "arguments": {"values": [100] * 64}, "media": png},
            {"tool": "draw_bars", "arguments": {"values": [101]}, "is_error": True},
        ],
        "secret": [{"tool": "who_am_i", "arguments": {}, "structured": {"login": "ada"}}],
        "state": [
            {"tool": "count", "arguments": {"name": "tea"}, "structured": {"result": 1}},
            {"tool": "count", "arguments": {"name": "tea"}, "structured": {"result": 2}},
            {"tool": "count", "arguments": {"name": "milk"}, "structured": {"result": 1}},
            {"tool": "count", "arguments": {"name": "a/b"}, "is_error": True, "contains": ["is not a name"]},
        ],
        "ask": [{"tool": "book_table", "arguments": {"people": 2}, "is_error": True, "contains": ["asks nobody"]}],
    }[example]


def packages(listed):
    run = subprocess.run([HERE / "packages.sh", listed], stdout=subprocess.PIPE, check=False)
    if run.returncode == UNAVAILABLE:
        raise LeftOut
    run.check_returncode()
    return run.stdout.decode().strip()


def steps(language, project, toolcell):
    """The commands that build and test a project, and their environment."""
    environment = {**os.environ, "TOOLCELL": str(toolcell)}
    if language in ("typescript", "js", *ON_THE_OTHER):
        (project / "node_modules").symlink_to(Path(packages(project / "package-lock.json")) / "node_modules")
        return [["npm", "run", "build", "--silent"], ["npm", "test", "--silent"]], environment
    make = ["make", "--no-print-directory"]
    if language == "rust":
        # Crates that an earlier project had compiled are not compiled again.
        target = Path(os.environ.get("CARGO_TARGET_DIR") or HERE.parent / "target")
        environment["CARGO_TARGET_DIR"] = str(target.absolute() / "new" / AWKWARD / "starts")
        make = [HERE / "toolchain.sh", *make]
    elif language == "python":
        environment["PYTHONPATH"] = packages(HERE / "statistics" / "requirements.txt")
        make.append(f"COMPONENTIZE={environment['PYTHONPATH']}/bin/componentize-py")
    elif language == "c":
        environment["PYTHONPATH"] = packages(HERE / "html_tidy" / "requirements.txt")
        make.append("CC=python3 -m ziglang cc -target wasm32-wasi")
    elif language == "go":
        environment.update(GOTOOLCHAIN="local", GOFLAGS="-mod=mod")
        if subprocess.run(["sh", "-c", "command -v go"], stdout=subprocess.DEVNULL, check=False).returncode:
            subprocess.run([HERE / "template" / "build.sh"], check=True)  # makes its Go executable
            make.append(f"GO={packages(HERE / 'template' / 'requirements.txt')}/go/bin/go")
    return [make, [*make, "test"]], environment


def point_at(project, address):
    """Has the project ask the server here in place of its API."""
    for path in project.rglob("*"):
        if path.suffix in (".rs", ".py", ".ts", ".js", ".toml") and "node_modules" not in path.parts and not path.is_symlink():
            text = path.read_text("utf-8")
            for api in APIS:
                text = text.replace(api, f"http://{address}")
            if path.name == "toolcell.toml":
                text = text.replace("\nhttp = [", f'\nprivate = ["{address}"]\nhttp = [')
            path.write_text(text, "utf-8")


def plant(project):
    """Puts a bug into a project of JavaScript that counts words, and returns the error that a call then gets."""
    path = next(project.glob("src/counts.*"))
    lines = path.read_text("utf-8").split("\n")
    at = next(number for number, line in enumerate(lines) if line.startswith("export function count(")) + 1
    lines.insert(at, '  if (text === "a bug") throw new Error("my message");')
    path.write_text("\n".join(lines), "utf-8")
    return f"my message (src/{path.name}:{at + 1})"


def written(language, example, folder, toolcell):
    """The folder of a new project."""
    project = folder / f"{language}-{example}" / NAME
    name, _, engine = language.partition("-")
    new = [toolcell, "new", NAME, "--lang", name, "--example", example, "--path", project]
    if engine:
        new += ["--engine", engine]
    subprocess.run(new, check=True, stdout=subprocess.DEVNULL)
    return project


def build(language, example, project, toolcell):
    """Builds a project and runs its tests; its manifest."""
    commands, environment = steps(language, project, toolcell)
    for command in commands:
        run = subprocess.run(command, cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if run.returncode:
            print(run.stdout.decode(errors="replace"), file=sys.stderr)
            raise SystemExit(f"error: {language} {example}: {' '.join(map(str, command))} ends with {run.returncode}")
    return project / "toolcell.toml"


def advice(toolcell, manifest):
    """The warnings of `toolcell check` about the tools, and the parts that a definition lacks.

    A tool that answers in plain text has no schema of its result.
    """
    checked = json.loads(subprocess.run([toolcell, "check", manifest, "--json"], stdout=subprocess.PIPE, check=False).stdout)
    if not checked["ok"]:
        return [json.dumps(checked["problems"])]
    listed = json.loads(subprocess.run([toolcell, "list", "--json", "-m", manifest], stdout=subprocess.PIPE, check=True).stdout)
    found = [json.dumps(one) for one in checked["warnings"] if one["code"] != "no_output_schema"]
    for tool in listed["tools"]:
        definition = tool["definition"]
        lacking = [key for key in ("title", "description", "annotations") if not definition.get(key)]
        found.extend(f"{definition['name']} has no {key}" for key in lacking)
    return found


def asked(toolcell, manifest):
    """A call of book_table by a client whose person fills in the form; what is wrong with it."""
    serve = [toolcell, "serve", "-m", manifest, "--control", "off", "--log", "error"]
    with subprocess.Popen(serve, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        def send(**message):
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            server.stdin.flush()

        capabilities = {"elicitation": {}}
        about = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": {"name": "starts", "version": "1"}}
        send(id=1, method="initialize", params=about)
        questions = []
        for line in server.stdout:
            message = json.loads(line)
            if message.get("id") == 1 and "result" in message:
                send(method="notifications/initialized")
                send(id=2, method="tools/call", params={"name": "book_table", "arguments": {"people": 2}})
            elif message.get("method") == "elicitation/create":
                questions.append(message["params"]["message"])
                send(id=message["id"], result={"action": "accept", "content": {"day": "2026-01-31"}})
            elif message.get("id") == 2:
                text = message.get("result", message)
                server.stdin.close()
                break
        server.wait(timeout=60)
    if len(questions) != 1 or "A table for 2" not in questions[0]:
        return [f"asked: {questions}"]
    if "A table for 2 is booked on 2026-01-31." not in json.dumps(text):
        return [f"answered: {text}"]
    return []


def attempt(language, example, folder, toolcell, address):
    """The faults of a project, in words."""
    project = written(language, example, folder, toolcell)
    point_at(project, address)
    every = calls(example, language)
    if example == "words" and language.startswith(("js", "typescript")):
        every.append({"tool": "count_words", "arguments": {"text": "a bug"}, "is_error": True, "contains": [plant(project)]})
    manifest = build(language, example, project, toolcell)
    wrong = advice(toolcell, manifest)
    if example == "ask":
        wrong += asked(toolcell, manifest)
    for one in every:
        wrong += [f"{one['tool']} {one['arguments']}: {problem}" for problem in check.differences(one, check.call(toolcell, manifest, one))]
    if example == "secret":
        os.environ["TOKEN"] = "a token that nobody knows"
        refused = {"tool": "who_am_i", "arguments": {}, "is_error": True, "contains": ["refuses the token"]}
        wrong += check.differences(refused, check.call(toolcell, manifest, refused))
        os.environ["TOKEN"] = TOKEN
    return wrong


def chosen(names, everything):
    """Pairs of language and example."""
    every = [(language, example) for example in LANGUAGES for language in LANGUAGES[example]]
    if not names:
        return every if everything else QUICK
    found = [pair for pair in every if pair[0] in names or ":".join(pair) in names]
    return found or sys.exit(f"error: there is none of {' '.join(names)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    built = os.environ.get("TOOLCELL_BIN") or HERE.parent / "target" / "release" / "toolcell"
    parser.add_argument("--toolcell", type=Path, default=Path(built), help="the binary")
    parser.add_argument("--all", action="store_true", help="fail where a compiler is not available")
    parser.add_argument("--all-examples", action="store_true", help="every example")
    parser.add_argument("names", nargs="*", metavar="LANGUAGE[:EXAMPLE]")
    given = parser.parse_args()
    toolcell = given.toolcell.absolute()
    os.environ["TOKEN"] = TOKEN
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"127.0.0.1:{server.server_port}"
    failed, left_out = 0, set()
    with tempfile.TemporaryDirectory(prefix=AWKWARD) as folder:
        # The builds find it at a path that has to be quoted, as it has in a clone with such a name.
        linked = Path(folder) / "toolcell"
        linked.symlink_to(toolcell)
        for language, example in chosen(given.names, given.all_examples):
            started = time.monotonic()
            try:
                wrong = attempt(language, example, Path(folder), linked, address)
            except LeftOut:
                left_out.add(language)
                continue
            print(f"{'failed' if wrong else 'ok':7}{language} {example}, {time.monotonic() - started:.0f} s", flush=True)
            for problem in wrong:
                print(f"       {problem}", flush=True)
            failed += bool(wrong)
    if left_out:
        print(f"left out, see above: {' '.join(sorted(left_out))}", file=sys.stderr)
    return 1 if failed or (left_out and given.all) else 0


if __name__ == "__main__":
    sys.exit(main())
