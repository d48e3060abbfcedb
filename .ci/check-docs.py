#!/usr/bin/env python3
"""Checks what the Markdown files say against what is there:

- every relative link leads to a file, and its #fragment to a heading;
- every test that SECURITY.md names exists;
- the README's tables have each number of the manifest with its default;
- the manifest's reference is what the manifest's schema says;
- every message on the page for troubleshooting is in the host's source.

Links to the web are not followed: the check needs no network.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = {"target", "node_modules", ".git", ".venv"}
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(<?([^)\s>]+)>?\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
TEST = re.compile(r"`((?:[a-z0-9_]+::)+)([a-z0-9_]+)`")
MESSAGE = re.compile(r"^### `(.+)`$", re.MULTILINE)
UNIT_TEST = re.compile(r"`([a-z0-9_]+)` in `([\w/.-]+\.rs)`")


def pages():
    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        yield from (Path(folder, name) for name in sorted(files) if name.endswith(".md"))


def anchors(page):
    """The fragments of a page's headings, as GitHub makes them: numbered from the second one of a name."""
    seen, found = {}, set()
    for heading in HEADING.findall(FENCE.sub("", page.read_text("utf-8"))):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        number = seen.get(slug, 0)
        seen[slug] = number + 1
        found.add(f"{slug}-{number}" if number else slug)
    return found


def broken_links(page):
    for link in LINK.findall(CODE.sub("", FENCE.sub("", page.read_text("utf-8")))):
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            continue
        path, _, fragment = link.partition("#")
        goal = (page.parent / path).resolve() if path else page
        if ROOT not in (goal, *goal.parents) or not goal.exists():
            yield f"{page.relative_to(ROOT)}: no such file: {link}"
        elif fragment and goal.suffix == ".md" and fragment not in anchors(goal):
            yield f"{page.relative_to(ROOT)}: no such heading: {link}"


def missing_tests():
    for module, test in TEST.findall((ROOT / "SECURITY.md").read_text("utf-8")):
        source = ROOT / "tests" / "e2e" / f"{'/'.join(module.split('::')[:-1])}.rs"
        if source.with_suffix("").joinpath(f"{test}.rs").exists():
            continue  # all tests of a module
        if not source.exists() or f"fn {test}(" not in source.read_text("utf-8"):
            yield f"SECURITY.md: no such test: {module}{test}"
    for test, path in UNIT_TEST.findall((ROOT / "SECURITY.md").read_text("utf-8")):
        source = ROOT / path
        if not source.exists() or f"fn {test}(" not in source.read_text("utf-8"):
            yield f"SECURITY.md: no such test: {test} in {path}"


def wrong_defaults():
    schema = json.loads((ROOT / "host" / "policy" / "toolcell.schema.json").read_text("utf-8"))
    readme = (ROOT / "README.md").read_text("utf-8")
    keys = (item for table in ("Limits", "Load", "Component", "Server") for item in schema["$defs"][table]["properties"].items())
    for key, value in keys:
        default = value.get("default")
        if default is None or key == "name":
            continue
        shown = str(default).lower() if isinstance(default, bool) else f"{default:_}" if isinstance(default, int) else f'"{default}"'
        if f"| `{key}` | `{shown}` |" not in readme:
            yield f"README.md: no table has a row `{key}` with default `{shown}`"


def stale_reference():
    said = subprocess.run([ROOT / ".ci" / "manifest-reference.py", "--check"], capture_output=True, text=True, check=False)
    if said.returncode:
        yield said.stderr.strip()


def unknown_messages():
    """The page's headings are messages; what differs from one to the next is written as `…`."""
    page = ROOT / "guest-examples" / "docs" / "troubleshooting.md"
    source = " ".join(path.read_text("utf-8") for path in sorted((ROOT / "host").rglob("src/**/*.rs")))
    # A text that goes on in the next line of the source, and quotes within it, are as they are shown.
    source = re.sub(r"\\\n\s*", "", source).replace('\\"', '"')
    for message in MESSAGE.findall(page.read_text("utf-8")):
        for part in message.split("…"):
            if part.strip() and part not in source:
                yield f"{page.relative_to(ROOT)}: no message of the host has {part!r} in it: {message}"


def main():
    checked = list(pages())
    found = [problem for page in checked for problem in broken_links(page)]
    found += [*missing_tests(), *wrong_defaults(), *stale_reference(), *unknown_messages()]
    for problem in found:
        print(problem, file=sys.stderr)
    print(f"{len(checked)} Markdown files: {'ok' if not found else f'{len(found)} problems'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
