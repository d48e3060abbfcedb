#!/usr/bin/env python3
"""Has toolcell pull, verify and push components at real registries, with what real signers sign: `make registries-check`.

Usage: check.py [--parts-only] [--without wkg] [--list] [NAME...]    NAME is a group or a conversation: keys, parts/registry/tls

  --parts-only    only what the parts say among themselves: needs neither toolcell nor components
  --without wkg   neither gets nor compiles wkg, and leaves its conversations out
  --list          print the names of all conversations

docker-registry, cosign, sigstore's mocks and wkg are got once, as setup.sh says; a part that is not available ends the check with 1.
Everything runs on the loopback, at ports that the system chooses, and ends with this program. A failure is shown with all that
the programs said. The last line counts conversations.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from conversations import bad, keyless, keys, parts, push, registries, store, updates  # noqa: E402, F401
from processes import Broken  # noqa: E402
from stage import CONVERSATIONS, FIXTURES, OPTIONAL, Conversation, Stage  # noqa: E402
from toolcell import Failed, program  # noqa: E402


def chosen(names: list[str], parts_only: bool) -> list[Conversation]:
    """The conversations that begin with one of the names, or all: those of the parts come first."""
    found = [
        one for one in CONVERSATIONS
        if (one.parts or not parts_only) and (not names or any(one.name == name or one.name.startswith(f"{name}/") for name in names))
    ]  # fmt: skip
    if not found:
        sys.exit(f"no conversation is {' or '.join(names)}: --list prints them")
    return sorted(found, key=lambda one: not one.parts)


def held(one: Conversation, stage: Stage) -> str | None:
    """Holds one conversation. Returns what was said if it failed."""
    try:
        one.hold(stage)
    except Failed as failed:
        return str(failed)
    except Broken as broken:
        return f"a part is broken: {broken}"
    except Exception:
        return traceback.format_exc()
    return None


def arguments() -> argparse.Namespace:
    reader = argparse.ArgumentParser(usage=__doc__, add_help=False, allow_abbrev=False)
    reader.add_argument("--parts-only", action="store_true")
    reader.add_argument("--without", action="append", choices=OPTIONAL, default=[])
    reader.add_argument("--list", action="store_true")
    reader.add_argument("names", nargs="*", metavar="NAME")
    return reader.parse_args()


def main() -> None:
    asked = arguments()
    conversations = chosen(asked.names, asked.parts_only)
    if asked.list:
        print("\n".join(one.name for one in conversations))
        return
    toolcell = None if all(one.parts for one in conversations) else program()
    if toolcell is None and not all(one.parts for one in conversations):
        sys.exit("there is no toolcell: make build, or set TOOLCELL_BIN, or --parts-only")
    if toolcell and not FIXTURES.is_dir():
        sys.exit("the components of the tests are missing: make fixtures")
    # Whoever ends this program ends its processes, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    began, failures, left_out = time.monotonic(), 0, 0
    with tempfile.TemporaryDirectory(prefix="toolcell-registries-") as scratch:
        stage = Stage(toolcell, Path(scratch), asked.without)
        print(f"all parts are up after {time.monotonic() - began:.1f} s", flush=True)
        try:
            for one in conversations:
                if one.wkg and not stage.wkg:
                    left_out += 1
                    print(f"left out {one.name}: without wkg", flush=True)
                    continue
                started = time.monotonic()
                problem = held(one, stage)
                print(f"{'FAILED' if problem else 'ok    '} {one.name} ({time.monotonic() - started:.1f} s)", flush=True)
                if problem:
                    failures += 1
                    print(problem, flush=True)
        finally:
            stage.end()
    print(f"{len(conversations)} conversations in {time.monotonic() - began:.0f} s")
    print(f"{len(conversations) - failures - left_out} passed, {failures} failed" + (f", {left_out} skipped" if left_out else ""))
    sys.exit(1 if failures else 0)


main()
