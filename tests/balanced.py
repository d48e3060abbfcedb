#!/usr/bin/env python3
"""Runs end-to-end tests through a balancer: each host of a test is three replicas behind nginx, in turns, without affinity.

`balanced.py [--replicas N] [FILTER…]` runs the modules below, or those that the filters name. It then says how many tests went
through the balancer, which ones were about one process and why, and which ones failed. It ends with 1 if one failed, or if none
went through the balancer.
"""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# As `make test` has built them: with other settings they would be compiled anew.
QUICK = str(ROOT / ".ci" / "quick.toml")
CARGO = ["cargo", "--config", QUICK, "test", "--release", "--locked", "-p", "toolcell-tests", "--test", "e2e", "--"]
# Clients that start a server of their own, over stdio, are not among them.
FILTERS = ["http::", "asking::", "approval::", "resources::", "grants::state::", "over_http_in_every_mode", "sees_reloads_in_every_mode",
           "answers_what_tools_ask_in_every_mode"]
RESULT = re.compile(r"^test (\S+) \.\.\. (ok|FAILED|ignored)")


def notes_of(path):
    """The kinds of hosts of each test, with the reasons."""
    notes = collections.defaultdict(set)
    for line in path.read_text().splitlines():
        test, kind, why = line.split("\t")
        notes[test].add((kind, why))
    return notes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--threads", type=int, default=4, help="tests at a time; one starts several processes")
    parser.add_argument("filters", nargs="*", default=FILTERS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        notes = pathlib.Path(folder, "notes")
        notes.touch()
        environment = {**os.environ, "TEST_REPLICAS": str(options.replicas), "TEST_REPLICAS_NOTES": str(notes)}
        command = [*CARGO, f"--test-threads={options.threads}", *options.filters]
        with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as run:
            results = {}
            for line in run.stdout:
                print(line, end="", flush=True)
                if found := RESULT.match(line):
                    results[found[1]] = found[2]
        kinds = notes_of(notes)
    alone, counts = collections.defaultdict(list), collections.Counter()
    for test in results:
        said = kinds.get(test, set())
        if any(kind == "balanced" for kind, _ in said):
            counts["through the balancer"] += 1
        elif any(kind == "own" for kind, _ in said):
            counts["with replicas of their own"] += 1
        elif reasons := sorted(why for kind, why in said if kind == "alone"):
            counts["about one process"] += 1
            alone[reasons[0]].append(test)
        else:
            counts["without a server"] += 1
    failed = sorted(test for test, result in results.items() if result == "FAILED")
    print(f"{len(results)} tests, {len(failed)} failed: " + ", ".join(f"{count} {what}" for what, count in counts.most_common()))
    for why, tests in sorted(alone.items()):
        print(f"  one process, {why}: {len(tests)}")
        for test in tests:
            print(f"    {test}")
    for test in failed:
        print(f"failed: {test}")
    sys.exit(1 if run.returncode or failed or not counts["through the balancer"] else 0)


if __name__ == "__main__":
    main()
