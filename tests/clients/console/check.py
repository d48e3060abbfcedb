#!/usr/bin/env python3
"""Looks at the console's pages in a headless Chromium, with samples and of real servers, and decides there: `make console-check`.

Usage: check.py [NAME...]    NAME is plain, hostile, served, locked, signed or hostile-served; all without one
       check.py pictures     draws the pictures of host/docs/console.md anew, of a real server

The first two are pages of the example `pages`. The others are the binary with the manifest NAME.toml beside this file and
components of the examples and of the tests. A failure is shown with all that the server said.
"""

from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from functools import partial
from pathlib import Path

from signed import lay_signed

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PICTURES = ROOT / "host" / "docs" / "pictures"
COMPONENTS = [ROOT / "guest-examples" / "components", ROOT / "tests" / "fixtures" / "components"]
SAMPLES = ["plain", "hostile"]
# Each with the callers that have tokens. The first is an operator, the second none.
SERVERS = {
    "served": ["ann", "eve"],
    "locked": ["ann", "eve"],
    "signed": ["ann", "eve"],
    "hostile-served": ["ann", "eve"],
    "pictures": ["ann", "ci"],
}
NAMES = [*SAMPLES, "served", "locked", "signed", "hostile-served"]
# Those that serve what is pinned alone.
LOCKED = ["locked", "signed", "hostile-served", "pictures"]
# Seconds for all pages of one mode: three minutes on a busy machine.
LOOK_S = 900
# Seconds until a program has said where it serves.
START_S = 120
# What a manifest says in place of the address of the issuer, and of its host and port.
ISSUER, ISSUER_HOST = "ISSUER", "ISSUER_HOST"
# Of each program, with the secrets that manifests name.
ENVIRONMENT = {**os.environ, "OPEN_METEO_KEY": "not-a-key"}
# Pages of a site that answers late, and the seconds that two of them take.
ARCHIVE, QUICK_S, LATE_S = "/archive/", 0.3, 60


class Served:
    """A program that says its addresses on some of its lines, and is ended with this."""

    def __init__(self, command: list[str], folder: Path, *patterns: str) -> None:
        self.said: list[str] = []
        self.process = subprocess.Popen(
            command, cwd=folder, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        self.patterns = [re.compile(pattern) for pattern in patterns]
        self.found: dict[int, str] = {}
        self.there = threading.Event()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self) -> None:
        for line in self.process.stdout or ():
            self.said.append(line)
            for number, pattern in enumerate(self.patterns):
                if number not in self.found and (match := pattern.search(line)):
                    self.found[number] = match[1]
            if len(self.found) == len(self.patterns):
                self.there.set()
        self.there.set()

    def addresses(self) -> list[str]:
        """What the patterns found."""
        self.there.wait(START_S)
        if len(self.found) < len(self.patterns):
            raise SystemExit(f"it did not say where it serves: {''.join(self.said)}")
        return [self.found[number] for number in range(len(self.patterns))]

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()


class Issuer(http.server.ThreadingHTTPServer):
    """An issuer of tokens, and a site that answers late. The issuer's keys are in keys.json; `signing.mjs` makes them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ends = threading.Event()
        super().__init__(("127.0.0.1", 0), Published)
        self.name = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.ends.set()
        self.shutdown()
        self.server_close()


class Published(http.server.BaseHTTPRequestHandler):
    """One answer of the issuer."""

    server: Issuer

    def do_GET(self) -> None:
        if self.path.startswith(ARCHIVE):
            # Calls that wait for it run while pictures are taken.
            self.server.ends.wait(QUICK_S if self.path.endswith("quick") else LATE_S)
        keys = self.server.folder / "keys.json"
        answers = {
            "/.well-known/openid-configuration": {"issuer": self.server.name, "jwks_uri": f"{self.server.name}/keys"},
            f"{ARCHIVE}quick": {"title": "The archive", "years": [2019, 2020, 2021]},
            "/keys": json.loads(keys.read_text()) if keys.exists() else {"keys": []},
        }
        body = json.dumps(answers.get(self.path, {})).encode()
        self.send_response(200 if self.path in answers else 404)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def run(tools: list[str], mode: str, url: str, *more: str) -> bool:
    node, frameworks, axe = tools
    command = [node, str(HERE / "pages.mjs"), "--mode", mode, "--url", url, "--frameworks", frameworks, "--axe", axe, *more]
    return subprocess.run(command, timeout=LOOK_S, check=False).returncode == 0


def samples(tools: list[str], name: str) -> bool:
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    with Served([str(target / "release" / "examples" / "pages"), name], ROOT, r"(http://\S+)") as served:
        return run(tools, name, served.addresses()[0].rstrip("/"))


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


def command(binary: str, folder: Path, *words: str) -> str:
    """What a command of toolcell prints in the folder of a manifest."""
    made = subprocess.run([binary, *words], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=START_S)
    if made.returncode:
        raise SystemExit(f"toolcell {' '.join(words)}: {made.stderr}")
    return made.stdout.strip()


def component(file: str) -> Path:
    """Where a component was built."""
    built = next((kept / file for kept in COMPONENTS if (kept / file).exists()), None)
    if built is None:
        raise SystemExit(f"{file} is not built: make guests fixtures")
    return built


def lay(name: str, folder: Path, issuer: str) -> None:
    """Puts a manifest and its components into a folder."""
    manifest = (HERE / f"{name}.toml").read_text().replace(ISSUER_HOST, issuer.split("/")[-1]).replace(ISSUER, issuer)
    (folder / "toolcell.toml").write_text(manifest)
    for source in re.findall(r'^source = "(\w+\.wasm)"', manifest, re.MULTILINE):
        shutil.copy(component(source), folder)


def served(tools: list[str], name: str) -> bool:
    binary = os.environ.get("TOOLCELL_BIN") or str(ROOT / "target" / "release" / "toolcell")
    with tempfile.TemporaryDirectory(prefix="toolcell-console-") as place:
        folder = Path(place)
        with Issuer(folder) as issuer:
            lay(name, folder, issuer.name)
            if name == "signed":
                lay_signed(tools[0], folder, component("text_diff.wasm"), partial(command, binary, folder))
            tokens = [command(binary, folder, "token", "new", caller) for caller in SERVERS[name]]
            further = []
            if name in LOCKED:
                command(binary, folder, "lock")
                further = ["--locked"]
            serves = [binary, "serve", "--http", "127.0.0.1:0", "--console", "127.0.0.1:0", *further]
            with Served(serves, folder, r"console at (http://\S+)", r"at (http://\S+/mcp)") as host:
                link, mcp = host.addresses()
                base = "/".join(link.split("/")[:3])
                more = ["--cookie", session(link), "--mcp", mcp, "--folder", place, "--issuer", issuer.name]
                more += ["--token", tokens[0], "--other-token", tokens[1]]
                if name == "pictures":
                    more += ["--pictures", str(PICTURES)]
                good = run(tools, name, base, *more)
                if not good:
                    print("".join(host.said), file=sys.stderr)
                return good


def main() -> int:
    wanted = sys.argv[1:] or NAMES
    known = [*NAMES, "pictures"]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        print(f"check.py: no {unknown[0]!r}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    said = subprocess.run([str(HERE.parent / "setup.sh"), "console"], capture_output=True, text=True, check=False)
    if said.returncode:
        print(said.stderr, file=sys.stderr)
        return 1
    tools = said.stdout.split("\n")[:3]
    failed = []
    for name in wanted:
        print(f"console: {name}", flush=True)
        began = time.monotonic()
        good = samples(tools, name) if name in SAMPLES else served(tools, name)
        print(f"console: {name} took {time.monotonic() - began:.0f} s", flush=True)
        if not good:
            failed.append(name)
    print(json.dumps({"looked at": wanted, "failed": failed}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
