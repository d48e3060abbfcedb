#!/usr/bin/env python3
"""The same job by 50 calls over HTTP and by one script: what a model would read, round trips, time. No model is asked.

    tests/code_mode.py [--toolcell FILE] [--manifest FILE] [--rounds 4]

Prints the table of host/docs/code.md. The job: in which month is each of 50 cities warmest? A model reads what a result
has in `content`, and writes the arguments.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "guest-examples"))
import conversation

CITIES = 50
SCRIPT = """const all = await Promise.all(input.map(city => tools.weather_normals({ city })));
return Object.fromEntries(all.map(({ city, months }) => [city, months.reduce((a, b) => b.high > a.high ? b : a).name]));"""


def warmest(normals):
    return max(normals["months"], key=lambda month: month["high"])["name"]


def called(server, tool, arguments):
    """A call, as a modern client makes it: its result, and the bytes that a model writes and reads."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": conversation.modern(name=tool, arguments=arguments)}
    server.connection.request("POST", "/mcp", json.dumps(message).encode(), server._headers(message))
    response = server.connection.getresponse()
    body = response.read()
    frames = [line[6:] for line in body.splitlines() if line.startswith(b"data: ")] or [body]
    result = json.loads(frames[-1])["result"]
    if result.get("isError"):
        raise SystemExit(f"{tool}: {result}")
    written = len(json.dumps(arguments, ensure_ascii=False).encode())
    read = sum(len(piece.get("text", "").encode()) for piece in result["content"])
    return result, written, read


def by_calls(server, cities):
    written = read = 0
    found = {}
    for city in cities:
        result, wrote, got = called(server, "weather_normals", {"city": city})
        written, read = written + wrote, read + got
        found[city] = warmest(result["structuredContent"])
    return found, len(cities), written, read


def by_script(server, cities):
    result, written, read = called(server, "run_code", {"code": SCRIPT, "input": cities})
    return result["structuredContent"]["result"], 1, written, read


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--toolcell", type=Path, default=ROOT / "target" / "release" / "toolcell")
    parser.add_argument("--manifest", type=Path, default=ROOT / "guest-examples" / "code.toml")
    parser.add_argument("--rounds", type=int, default=4)
    given = parser.parse_args()
    server = conversation.Server([str(given.toolcell), "serve", "--manifest", str(given.manifest)], 0)
    try:
        listed, _, _ = called(server, "weather_cities", {})
        cities = [city["city"] for city in listed["structuredContent"]["cities"]][:CITIES]
        print(f"| {len(cities)} cities | round trips | bytes a model writes | bytes it reads | time |\n|---|---|---|---|---|")
        answers, times = [], {}
        for name, way in (("a call for each", by_calls), ("one script", by_script)):
            way(server, cities)
            seconds = []
            for _ in range(given.rounds):
                began = time.perf_counter()
                answer, trips, written, read = way(server, cities)
                seconds.append(time.perf_counter() - began)
            answers.append(answer)
            times[name] = statistics.median(seconds)
            print(f"| {name} | {trips} | {written:,} | {read:,} | {times[name] * 1000:.1f} ms |")
        if answers[0] != answers[1]:
            raise SystemExit("the two do not agree")
        one, all_calls, script = times["a call for each"] / len(cities), times["a call for each"], times["one script"]
        print(f"\none call {one * 1000:.2f} ms, {len(cities)} of them {all_calls * 1000:.1f} ms, the script {script * 1000:.1f} ms")
    finally:
        server.stop()


if __name__ == "__main__":
    main()
