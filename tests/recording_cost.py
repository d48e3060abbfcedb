#!/usr/bin/env python3
"""What recording costs a call: the medians of calls over stdio, of hosts that record nothing, calls that fail, and all.

    tests/recording_cost.py [--toolcell FILE] [--calls 400] [--rounds 4]

Prints the table of host/docs/replaying.md. The hosts take turns, so that what else the machine does meets all of them.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMPONENTS = ROOT / "guest-examples" / "components"
RULES = ("never", "errors", "all")
CALLS = [
    ("echo", {"text": "hi"}),
    ("counter_add", {"name": "x"}),
    ("text_diff", {"before": "a\nb\n" * 20, "after": "a\nc\n" * 20}),
]
MANIFEST = """version = 1
[defaults.limits]
rate = "1_000_000/min"
[components.echo]
source = "echo.wasm"
record = "RULE"
[components.text_diff]
source = "text_diff.wasm"
record = "RULE"
[components.counter]
source = "counter.wasm"
record = "RULE"
[components.counter.keyvalue]
quota = "1MiB"
"""


class Host:
    """One host, whose manifest has this rule."""

    def __init__(self, toolcell, folder, rule):
        folder.mkdir()
        for name in ("echo", "counter", "text_diff"):
            shutil.copy(COMPONENTS / f"{name}.wasm", folder)
        manifest = folder / "toolcell.toml"
        manifest.write_text(MANIFEST.replace("RULE", rule), "utf-8")
        command = [toolcell, "serve", "--manifest", manifest]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.id = 0
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "recording-cost", "version": "1"}}
        self.ask("initialize", about)
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        self.id += 1
        self.send({"id": self.id, "method": method, "params": params})
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self.id:
                return answer["result"]

    def call(self, tool, arguments):
        """The seconds that a call takes."""
        began = time.perf_counter()
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        took = time.perf_counter() - began
        if result.get("isError"):
            raise SystemExit(f"{tool}: {result}")
        return took

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--toolcell", type=Path, default=ROOT / "target" / "release" / "toolcell")
    parser.add_argument("--calls", type=int, default=400, help="calls of a tool in a round")
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as base:
        hosts = {rule: Host(options.toolcell, Path(base, rule), rule) for rule in RULES}
        print("| tool | not recorded | `errors` | `all` |\n|---|---|---|---|")
        for tool, arguments in CALLS:
            times = {rule: [] for rule in RULES}
            for _ in range(options.rounds):
                for rule, host in hosts.items():
                    times[rule] += [host.call(tool, arguments) for _ in range(options.calls)]
            medians = [statistics.median(times[rule]) * 1e6 for rule in RULES]
            shown = [f"{median:,.0f} µs ({median / medians[0]:.2f} ×)" for median in medians]
            print(f"| `{tool}` | {' | '.join(shown)} |")
        for host in hosts.values():
            host.end()


if __name__ == "__main__":
    main()
