#!/usr/bin/env python3
"""Looks at the console's pages in a headless Chromium, with samples, with hostile texts and of a real server: `make console-check`.

Usage: check.py [NAME...]    NAME is plain, hostile or served; all three without one
       check.py pictures     draws the pictures of host/docs/console.md anew, with the samples of `plain`

The first two are pages of the example `pages`. The third is the binary with the examples: an operator follows the link,
looks at each view, and decides. Another signs in with a token, until it is revoked. A failure is shown with all that was said.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PICTURES = ROOT / "host" / "docs" / "pictures"
NAMES = ["plain", "hostile", "served"]
# Seconds for all pages in all windows: three minutes on a busy machine.
LOOK_S = 900
# Seconds until a program has said where it serves.
START_S = 120

# A tool of a component without a grant is denied a host, and another waits for a person.
MANIFEST = """version = 1

[server]
approve_in = ["console"]

[http]
tokens = "tokens.jsonl"

[console]
decide = true
operators = ["ann"]

[audit]
file = "audit.jsonl"

[components.text]
source = "text_diff.wasm"

[components.fetch]
source = "fetch_page.wasm"

[components.units]
source = "units.wasm"
approval = "always"
"""


class Served:
    """A program that says its address on one of its lines, and is ended with this."""

    def __init__(self, command: list[str], folder: Path, pattern: str) -> None:
        self.said: list[str] = []
        self.process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        self.found: re.Match[str] | None = None
        self.there = threading.Event()
        self.pattern = re.compile(pattern)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self) -> None:
        for line in self.process.stdout or ():
            self.said.append(line)
            self.found = self.found or self.pattern.search(line)
            if self.found:
                self.there.set()
        self.there.set()

    def address(self) -> str:
        """What the pattern found."""
        self.there.wait(START_S)
        if self.found is None:
            raise SystemExit(f"it did not say where it serves: {''.join(self.said)}")
        return self.found[1]

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()


def run(tools: list[str], url: str, *more: str) -> bool:
    node, frameworks, axe = tools
    command = [node, str(HERE / "pages.mjs"), "--url", url, "--frameworks", frameworks, "--axe", axe, *more]
    return subprocess.run(command, timeout=LOOK_S, check=False).returncode == 0


def samples(tools: list[str], name: str, *more: str) -> bool:
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    with Served([str(target / "release" / "examples" / "pages"), name], ROOT, r"(http://\S+)") as served:
        return run(tools, served.address().rstrip("/"), *more)


def session(link: str) -> str:
    """The cookie that a link gives."""

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            return None

    try:
        urllib.request.build_opener(Stay).open(link, timeout=START_S)
    except urllib.error.HTTPError as answer:
        if answer.code == 303:
            return answer.headers["Set-Cookie"].split(";")[0]
        raise
    raise SystemExit(f"{link} does not lead into the console")


def token(binary: str, folder: Path, name: str) -> str:
    """A new token of a caller."""
    made = subprocess.run(
        [binary, "token", "new", name], cwd=folder, capture_output=True, text=True, check=True, timeout=START_S,
    )
    return made.stdout.strip()


def served(tools: list[str]) -> bool:
    binary = os.environ.get("TOOLCELL_BIN") or str(ROOT / "target" / "release" / "toolcell")
    with tempfile.TemporaryDirectory(prefix="toolcell-console-") as folder:
        place = Path(folder)
        (place / "toolcell.toml").write_text(MANIFEST)
        for name in ("text_diff", "fetch_page", "units"):
            shutil.copy(ROOT / "guest-examples" / "components" / f"{name}.wasm", place)
        # The second is a caller, and no operator.
        tokens = ["--token", token(binary, place, "ann"), "--other-token", token(binary, place, "eve")]
        command = [binary, "serve", "--http", "127.0.0.1:0", "--console", "127.0.0.1:0"]
        with Served(command, place, r"console at (http://\S+)") as host:
            link = host.address()
            base = "/".join(link.split("/")[:3])
            good = run(tools, base, "--cookie", session(link), "--served", *tokens)
            if not good:
                print("".join(host.said), file=sys.stderr)
            return good


def main() -> int:
    wanted = sys.argv[1:] or NAMES
    draws = wanted == ["pictures"]
    unknown = [name for name in wanted if name not in NAMES]
    if unknown and not draws:
        print(f"check.py: no {unknown[0]!r}; there are {', '.join(NAMES)}, and pictures alone", file=sys.stderr)
        return 2
    said = subprocess.run([str(HERE.parent / "setup.sh"), "console"], capture_output=True, text=True, check=False)
    if said.returncode:
        print(said.stderr, file=sys.stderr)
        return 1
    tools = said.stdout.split("\n")[:3]
    if draws:
        return 0 if samples(tools, "plain", "--pictures", str(PICTURES)) else 1
    failed = []
    for name in wanted:
        print(f"console: {name}", flush=True)
        good = served(tools) if name == "served" else samples(tools, name)
        if not good:
            failed.append(name)
    print(json.dumps({"looked at": wanted, "failed": failed}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
