#!/usr/bin/env python3
"""Runs the official conformance suite against the binary: `make conformance`.

The suite comes from its package, pinned in tests/clients/node. It speaks HTTP with `toolcell serve --http`, which serves
the fixture `conformance`. For each revision it runs exactly the scenarios that the revision requires. A scenario that fails
must be listed in REVISION.yaml beside this file, with the reason. A listed scenario that passes counts as a failure too.

One tool of the suite must change the list of tools. No tool of this host can do that, so this program does it: whenever the
audit records a call of that tool, a thread saves the manifest with a further component or without it.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
REVISIONS = ["2025-11-25", "2026-07-28"]
# Seconds for one scenario, and for a whole revision.
SCENARIO_S, REVISION_S = 30, 600
MANIFEST = '''version = 1
[server]
name = "conformance"
[components.conformance]
source = "conformance.wasm"
[components.conformance.resources]
"test://static-text" = { tool = "read_resource" }
"test://static-binary" = { tool = "read_resource", mime_type = "image/png" }
"test://template/{id}/data" = { tool = "read_resource", mime_type = "application/json" }
'''
MORE = '''[components.more]
source = "conformance.wasm"
prefix = "more_"
'''
CHANGES = b'"tool":"test_trigger_tool_change"'
# Seconds between two reads of the audit. The suite listens for 0.8.
LOOK_S = 0.02


def suite():
    """The command line of Node and the suite's program."""
    setup = HERE.parent / "clients" / "setup.sh"
    node, modules = subprocess.check_output([setup, "node"], text=True).split("\n")[:2]
    return [node, f"{modules}/@modelcontextprotocol/conformance/dist/index.js"]


def serving(folder):
    """Starts a host in this folder. Returns its process and the URL that it prints."""
    binary = os.environ.get("TOOLCELL_BIN") or HERE.parent.parent / "target" / "release" / "toolcell"
    component = HERE.parent / "fixtures" / "components" / "conformance.wasm"
    (folder / "toolcell.toml").write_text(MANIFEST)
    (folder / "conformance.wasm").write_bytes(component.read_bytes())
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


def conforms(command, url, revision, folder):
    """Runs one revision's scenarios and prints its summary. True if no scenario failed that must pass."""
    options = ["server", "--url", url, "--requirements", revision, "--timeout", str(SCENARIO_S * 1000)]
    options += ["--expected-failures", HERE / f"{revision}.yaml", "-o", folder / revision]
    run = subprocess.run([*command, *options], capture_output=True, text=True, timeout=REVISION_S)
    start = run.stdout.find("=== SUMMARY ===")
    print(f"== {revision}\n{run.stdout[start:] if start >= 0 else run.stdout + run.stderr}", flush=True)
    if run.returncode:
        print(run.stderr, file=sys.stderr)
    return run.returncode == 0 and start >= 0


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
