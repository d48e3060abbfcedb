#!/usr/bin/env python3
"""Runs the official conformance suite against the binary: `make conformance`.

The suite comes from its package, pinned in tests/clients/node. It speaks HTTP with `toolcell serve --http`, which serves
the fixtures `conformance`, `prompts` and `tasks`. For each revision it runs every scenario that there is, whether the suite scores it or not:
extensions belong to the newest revision. What comes of each is compared with REVISION.yaml beside this file, in both
directions:

    server:     scenarios that fail, each with its reason
    empty:      scenarios that pass without having tried anything, each with its reason

Of the checks of a scenario the one named `wire-schema-valid` says nothing by itself: it holds for no message as well.

One tool of the suite must change the list of tools. No tool of this host can do that, so this program does it: whenever the
audit records a call of that tool, a thread saves the manifest with a further component or without it.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
# Seconds for one scenario, and for a whole revision.
SCENARIO_S, REVISION_S = 30, 600
MANIFEST = '''version = 1
[server]
name = "conformance"
[components.conformance]
source = "conformance.wasm"
[components.prompts]
source = "prompts.wasm"
[components.conformance.resources]
"test://static-text" = { tool = "read_resource" }
"test://static-binary" = { tool = "read_resource", mime_type = "image/png" }
"test://template/{id}/data" = { tool = "read_resource", mime_type = "application/json" }
"test://watched-resource" = { tool = "read_resource" }
[components.tasks]
source = "tasks.wasm"
task = "0ms"
[components.tasks.tools.greet]
task = "never"
[components.tasks.tools.slow_compute]
task = "200ms"
[components.tasks.tools.failing_job]
task = "always"
[components.tasks.tools.test_tool_with_task]
task = "200ms"
'''
MORE = '''[components.more]
source = "conformance.wasm"
prefix = "more_"
'''
CHANGES = b'"tool":"test_trigger_tool_change"'
# Seconds between two reads of the audit. The suite listens for 0.8.
LOOK_S = 0.02
EXTENSION = "extension"
SAYS_NOTHING = "wire-schema-valid"


def suite():
    """The command line of Node and the suite's program."""
    setup = HERE.parent / "clients" / "setup.sh"
    node, modules = subprocess.check_output([setup, "node"], text=True).split("\n")[:2]
    return [node, f"{modules}/@modelcontextprotocol/conformance/dist/index.js"]


def serving(folder):
    """Starts a host in this folder. Returns its process and the URL that it prints."""
    binary = os.environ.get("TOOLCELL_BIN") or HERE.parent.parent / "target" / "release" / "toolcell"
    components = HERE.parent / "fixtures" / "components"
    (folder / "toolcell.toml").write_text(MANIFEST)
    for name in ("conformance.wasm", "prompts.wasm", "tasks.wasm"):
        (folder / name).write_bytes((components / name).read_bytes())
    command = [binary, "serve", "--http", "127.0.0.1:0", "--audit", "audit.jsonl", "--control", "off", "--no-code-cache"]
    host = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    for line in host.stderr:
        found = re.search(r"(http://127\.0\.0\.1:\d+\S*)", line)
        if found:
            return host, found.group(1)
    sys.exit(f"the host ended with {host.wait()} and said no address")


def change_when_told(folder, ended):
    """Saves the manifest again for each call of the tool that must change the list."""
    seen, more = 0, False
    while not ended.wait(LOOK_S):
        records = (folder / "audit.jsonl").read_bytes().splitlines()
        calls = sum(b'"event":"call.started"' in record and CHANGES in record for record in records)
        if calls > seen:
            seen, more = calls, not more
            draft = folder / "toolcell.toml.new"
            draft.write_text(MANIFEST + (MORE if more else ""))
            draft.rename(folder / "toolcell.toml")


def scenarios(command, revision):
    """The names of all scenarios of this revision."""
    listed = subprocess.check_output([*command, "list", "--server"], text=True)
    wanted = {revision, EXTENSION} if revision == REVISIONS[-1] else {revision}
    rows = re.findall(r"^\s*- (\S+) \[([^\]]*)\]", listed, re.M)
    names = [name for name, revisions in rows if wanted & set(revisions.split(","))]
    if not names:
        sys.exit(f"the suite lists no scenario for {revision}:\n{listed}")
    return names


def ran(command, url, revision, name, folder):
    """Runs one scenario. Returns its checks."""
    options = ["server", "--url", url, "--scenario", name, "--spec-version", revision, "--force"]
    options += ["--timeout", str(SCENARIO_S * 1000), "-o", folder]
    run = subprocess.run([*command, *options], capture_output=True, text=True, timeout=2 * SCENARIO_S)
    found = list(folder.glob("*/checks.json"))
    if len(found) != 1:
        sys.exit(f"{name} of {revision} left no results:\n{run.stdout}{run.stderr}")
    return json.loads(found[0].read_text())


def outcome(checks):
    """`fails`, `empty` or `passes`, with the messages of what failed."""
    failed = [f"{check['id']}: {check.get('errorMessage', '')}" for check in checks if check["status"] == "FAILURE"]
    if failed:
        return "fails", failed
    did = [check for check in checks if check["status"] == "SUCCESS" and check["id"] != SAYS_NOTHING]
    return ("passes" if did else "empty"), [f"{check['id']}: {check['status']}" for check in checks if not did]


def expected(revision):
    """What REVISION.yaml says of scenarios: a name each, with `fails` or `empty`."""
    sections, meant, into = {"server": "fails", "empty": "empty"}, {}, None
    for line in (HERE / f"{revision}.yaml").read_text().splitlines():
        line = line.split("#", 1)[0].rstrip()
        if line.endswith(":") and line[:-1] in sections:
            into = sections[line[:-1]]
        elif into and line.startswith("  - "):
            meant[line[4:]] = into
        elif line and line not in ("server: []", "empty: []"):
            sys.exit(f"{revision}.yaml: {line!r} is not understood")
    return meant


def conforms(command, url, revision, folder):
    """Runs one revision's scenarios and prints what came of each. True if all came out as expected."""
    meant, names, wrong = expected(revision), scenarios(command, revision), []
    print(f"== {revision}: {len(names)} scenarios", flush=True)
    for name in names:
        into = folder / revision / name
        into.mkdir(parents=True)
        came, messages = outcome(ran(command, url, revision, name, into))
        hoped = meant.pop(name, "passes")
        if came != hoped:
            wrong.append(f"{name} {came}, expected: {hoped}")
        marks = {"passes": "✓", "empty": "∅", "fails": "✗"}
        print(f"{marks[came]} {name}" + ("" if came == hoped else f"   <== expected: {hoped}"), flush=True)
        if came != hoped or came == "empty":
            print("".join(f"    {message}\n" for message in messages), end="")
    wrong += [f"{name} is listed, and there is no such scenario" for name in meant]
    print("".join(f"{revision}: {text}\n" for text in wrong), end="", flush=True)
    return not wrong


def main():
    command = suite()
    with tempfile.TemporaryDirectory(prefix="toolcell-conformance-") as name:
        folder = pathlib.Path(name)
        host, url = serving(folder)
        ended = threading.Event()
        changing = threading.Thread(target=change_when_told, args=(folder, ended))
        changing.start()
        try:
            results = [conforms(command, url, revision, folder) for revision in sys.argv[1:] or REVISIONS]
        finally:
            ended.set()
            changing.join()
            host.terminate()
            host.stderr.read()
            ended = host.wait()
    if not all(results):
        sys.exit("the suite found what is not expected")
    if ended:
        sys.exit(f"the host ended with {ended}")


main()
