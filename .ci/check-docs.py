#!/usr/bin/env python3
"""Checks the Markdown files against the clone:

- every relative link leads to a file, and its #fragment to a heading;
- every page is reached from the README in two clicks;
- every page stands in the index, host/docs/README.md; that of an example in guest-examples/README.md;
- every path to code that stands between backticks exists;
- no cell of a table is longer than people read on a phone;
- the pages' tables have each key of the manifest with its default;
- generated pages and pictures are up to date;
- every message on the page for troubleshooting is in the host's source.

`--self-test` tries the check of cells. Snippets are checked by check-snippets.py. Links to the web are not followed: the check needs no network.
"""

import json
import re
import subprocess
import sys

from pages import FENCE, ROOT, pages, shown

CLICKS_MAX = 2
INDEX = ROOT / "host" / "docs" / "README.md"
EXAMPLES = ROOT / "guest-examples" / "README.md"
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(<?([^)\s>]+)>?\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
CODE_PATH = re.compile(r"`((?:host|tests|wit|guest-examples|\.ci)/[\w./-]+?)/?`")
MESSAGE = re.compile(r"^### `(.+)`$", re.MULTILINE)
# What a cell shows: a link's text without its address, and no marks of code or emphasis.
CELL_MAX = 200
CELL = re.compile(r"(?<!\\)\|")
SHOWN_LINK = re.compile(r"\[([^\]]*)\]\([^)\s]*\)")
# Tables of the manifest whose keys stand in a page's table, each with its default.
DEFAULTS = {
    "Limits": "limits", "Load": "limits", "Server": "limits", "Http": "http", "Issuer": "oauth", "Component": "manifest",
}
# Keys that another page has, or that need no row.
ELSEWHERE = {
    ("Server", "name"): None,
    ("Server", "log"): None,
    ("Component", "approval"): "approvals",
    ("Component", "ungranted"): "approvals",
}
# Made by a build, so that a clone does not have them.
BUILT = re.compile(r"^(guest-examples|tests/fixtures)/components\b")


def anchors(page):
    """The fragments of a page's headings, as GitHub makes them: numbered from the second one of a name."""
    seen, found = {}, set()
    for heading in HEADING.findall(FENCE.sub("", page.read_text("utf-8"))):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        number = seen.get(slug, 0)
        seen[slug] = number + 1
        found.add(f"{slug}-{number}" if number else slug)
    return found


def links(page):
    """Each relative link of a page: as it is written, its file and its fragment."""
    for link in LINK.findall(CODE.sub("", FENCE.sub("", page.read_text("utf-8")))):
        if not re.match(r"[a-z][a-z0-9+.-]*:", link):
            path, _, fragment = link.partition("#")
            yield link, (page.parent / path).resolve() if path else page, fragment


def broken_links(page):
    for link, goal, fragment in links(page):
        if ROOT not in (goal, *goal.parents) or not goal.exists():
            yield f"{shown(page)}: no such file: {link}"
        elif fragment and goal.suffix == ".md" and fragment not in anchors(goal):
            yield f"{shown(page)}: no such heading: {link}"


def far_pages(all_pages):
    """Pages that take more clicks from the README. A link to a folder leads to its README, as on a web view of it."""
    reached = near = {ROOT / "README.md"}
    for _ in range(CLICKS_MAX):
        goals = {goal / "README.md" if goal.is_dir() else goal for page in near for _, goal, _ in links(page)}
        near = {goal for goal in goals if goal.suffix == ".md" and goal.exists()} - reached
        reached = reached | near
    for page in all_pages:
        if page not in reached:
            yield f"{shown(page)}: more than {CLICKS_MAX} clicks from README.md"


def unlisted_pages(all_pages):
    """Pages that their index does not name: who looks for one looks there."""
    listed = {index: {goal for _, goal, _ in links(index)} for index in (INDEX, EXAMPLES)}
    for page in all_pages:
        folder = page.relative_to(ROOT).parts[:2]
        index = EXAMPLES if page != EXAMPLES and folder[0] == "guest-examples" and folder[1] != "docs" else INDEX
        if page not in (ROOT / "README.md", INDEX) and not listed[index] & {page, page.parent}:
            yield f"{shown(page)}: {shown(index)} does not name it"


def missing_paths(page):
    for written in CODE_PATH.findall(FENCE.sub("", page.read_text("utf-8"))):
        # A name in capitals stands for one that the reader chooses.
        path = re.sub(r"/[A-Z_]+(\.\w+)?(/.*)?$", "", written) if not (ROOT / written).exists() else written
        if not (ROOT / path).exists() and not (page.parent / path).exists() and not BUILT.match(path):
            yield f"{shown(page)}: no such path: {written}"


def cells(text):
    """The cells of a page's tables, as they are shown."""
    for line in FENCE.sub("", text).splitlines():
        if line.startswith("|"):
            for cell in CELL.split(line)[1:-1]:
                yield SHOWN_LINK.sub(r"\1", cell).replace("`", "").replace("**", "").strip()


def long_cells(page):
    for cell in cells(page.read_text("utf-8")):
        if len(cell) > CELL_MAX:
            yield f"{shown(page)}: a cell of {len(cell)} characters, at most {CELL_MAX} are allowed: {cell[:50]}…"


def wrong_defaults():
    tables = json.loads((ROOT / "host" / "policy" / "toolcell.schema.json").read_text("utf-8"))["$defs"]
    for table, usual in DEFAULTS.items():
        for key, value in tables[table]["properties"].items():
            page, default = ELSEWHERE.get((table, key), usual), value.get("default")
            if default is None or page is None:
                continue
            said = json.dumps(default) if isinstance(default, list) else str(default).lower() if isinstance(default, bool) else f"{default:_}" if isinstance(default, int) else f'"{default}"'
            path = ROOT / "host" / "docs" / f"{page}.md"
            if f"| `{key}` | `{said}` |" not in path.read_text("utf-8"):
                yield f"{shown(path)}: no table has a row `{key}` with default `{said}`"


def stale():
    """Pages and pictures that a script writes, each script's own word."""
    scripts = [ROOT / ".ci" / name for name in ("manifest-reference.py", "dependencies.py", "promises.py")]
    scripts += sorted((ROOT / "host" / "docs" / "pictures").glob("*.py"))
    for script in scripts:
        said = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
        if said.returncode:
            yield said.stderr.strip() or f"{shown(script)} failed"


def unknown_messages():
    """The page's headings are messages; the part that differs from one to the next is written as `…`."""
    page = ROOT / "host" / "docs" / "troubleshooting.md"
    source = " ".join(path.read_text("utf-8") for path in sorted((ROOT / "host").rglob("src/**/*.rs")))
    # A text that goes on in the next line of the source, and quotes within it, are as they are shown.
    source = re.sub(r"\\\n\s*", "", source).replace('\\"', '"')
    for message in MESSAGE.findall(page.read_text("utf-8")):
        for part in message.split("…"):
            if part.strip() and part not in source:
                yield f"{shown(page)}: no message of the host has {part!r} in it: {message}"


def self_test():
    """Tries what no page of the clone shows: a clone has no long cell."""
    table = "| a | b |\n|---|---|\n| `x` \\| y | [text](long/address.md) **z** |\n```\n| code |\n```\n"
    assert list(cells(table)) == ["a", "b", "---", "---", "x \\| y", "text z"]


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    checked = list(pages())
    found = [problem for page in checked for check in (broken_links, missing_paths, long_cells) for problem in check(page)]
    found += [*far_pages(checked), *unlisted_pages(checked), *wrong_defaults(), *stale(), *unknown_messages()]
    for problem in found:
        print(problem, file=sys.stderr)
    print(f"{len(checked)} Markdown files: {'ok' if not found else f'{len(found)} problems'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
