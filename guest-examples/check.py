#!/usr/bin/env python3
"""Makes the calls of calls.json with the tools of the toolcell.toml beside it, and compares what they answer.

    guest-examples/check.py [--toolcell FILE] [FOLDER…]

Without a folder: every one here whose component was built. A call has a tool, its arguments, and what the answer has to be:

    is_error     whether the call fails; it does not unless this says so
    text         the whole text of the first piece of content
    contains     texts that are in the text
    structured   members that the structured content has, with these values
    media        {"type": …, "begins": …}: a piece of content of that type whose bytes begin so, in base64

An example that needs a service has no calls.json. Its package.json has a script `check` in its place, which brings
the service along, on loopback.

Ends with 1 where an answer is another. Needs Python 3.9, and Node where an example has such a script.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A component of another language is compiled at its first call, which takes as long as this on one slow core.
CALL_SECONDS = 300
# A script of an example: the same once, and its tests.
SCRIPT_SECONDS = 1200


def call(toolcell, manifest, one):
    """The result as MCP has it."""
    command = [str(toolcell), "call", one["tool"], "-", "--json", "--manifest", str(manifest)]
    given = json.dumps(one["arguments"]).encode()
    run = subprocess.run(command, input=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=CALL_SECONDS, check=False)
    try:
        return json.loads(run.stdout)
    except ValueError:
        return {"isError": True, "content": [{"type": "text", "text": (run.stdout + run.stderr).decode(errors="replace")}]}


def media(piece):
    """The type and the base64 of a piece of content that has them."""
    held = piece.get("resource", piece)
    return held.get("mimeType"), held.get("data", held.get("blob", ""))


def differences(one, result):
    """What of the answer is not as it has to be, in words."""
    texts = [piece.get("text", piece.get("resource", {}).get("text", "")) for piece in result["content"]]
    text = texts[0] if texts else ""
    if bool(result.get("isError")) != one.get("is_error", False):
        yield f"the call {'failed' if result.get('isError') else 'did not fail'}: {text[:400]}"
    if "text" in one and text != one["text"]:
        yield f"the text is {text[:400]!r}"
    for part in one.get("contains", []):
        if part not in text:
            yield f"{part!r} is not in the text: {text[:400]!r}"
    structured = result.get("structuredContent", {})
    for name, value in one.get("structured", {}).items():
        if name not in structured or structured[name] != value:
            yield f"{name} is {structured.get(name)!r}, not {value!r}"
    if "media" in one:
        found = [media(piece) for piece in result["content"]]
        wanted = one["media"]
        if not any(kind == wanted["type"] and data.startswith(wanted["begins"]) for kind, data in found):
            yield f"no {wanted['type']} that begins with {wanted['begins']}: {[(kind, data[:24]) for kind, data in found]}"


def examples():
    """The examples in other languages that are built: each has NAME/NAME.wasm."""
    here = ROOT / "guest-examples"
    folders = sorted(path for path in here.iterdir() if (path / "calls.json").exists() or has_script(path))
    return [folder for folder in folders if (folder / f"{folder.name}.wasm").exists()]


def has_script(folder):
    """True if the package of this folder checks itself."""
    package = folder / "package.json"
    return package.exists() and "check" in json.loads(package.read_text(encoding="utf-8")).get("scripts", {})


def run_script(toolcell, folder):
    """The numbers of tests of the folder's own script that passed and failed. Prints those that failed."""
    command = ["npm", "run", "--silent", "check"]
    environment = {**os.environ, "TOOLCELL_BIN": str(toolcell)}
    try:
        run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SCRIPT_SECONDS, check=False)
    except FileNotFoundError:
        print(f"failed {folder.name}: there is no npm", flush=True)
        return 0, 1
    results = re.findall(r"^(not ok|ok) \d+ - (.*)$", run.stdout, re.MULTILINE)
    for result, name in results:
        print(f"{'failed' if result != 'ok' else 'ok':7}{folder.name}: {name}", flush=True)
    passed = sum(result == "ok" for result, _ in results)
    failed = len(results) - passed
    if run.returncode or not passed:
        print(run.stdout + run.stderr, flush=True)
        failed = max(failed, 1)
    return passed, failed


def read_calls(folder):
    return json.loads((folder / "calls.json").read_text(encoding="utf-8"))


def check(toolcell, manifest, calls):
    """How many calls were answered well, and how many were not."""
    passed = failed = 0
    for one in calls:
        wrong = list(differences(one, call(toolcell, manifest, one)))
        shown = json.dumps(one["arguments"], ensure_ascii=False)
        print(f"{'failed' if wrong else 'ok':7}{one['tool']} {shown[:90]}{'…' if len(shown) > 90 else ''}", flush=True)
        for problem in wrong:
            print(f"       {problem}", flush=True)
        passed, failed = passed + (not wrong), failed + bool(wrong)
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    built = os.environ.get("TOOLCELL_BIN") or ROOT / "target" / "release" / "toolcell"
    parser.add_argument("--toolcell", type=Path, default=Path(built), help="the binary")
    parser.add_argument("folders", type=Path, nargs="*", metavar="FOLDER", help="a folder with toolcell.toml and calls.json")
    given = parser.parse_args()
    if not given.toolcell.exists():
        print(f"error: there is no {given.toolcell}\n\nhint: `make build` builds it", file=sys.stderr)
        return 1
    passed = failed = 0
    for folder in given.folders or examples():
        if has_script(folder):
            well, badly = run_script(given.toolcell.absolute(), folder)
        else:
            well, badly = check(given.toolcell.absolute(), folder / "toolcell.toml", read_calls(folder))
        passed, failed = passed + well, failed + badly
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
