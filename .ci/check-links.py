#!/usr/bin/env python3
"""Checks that every relative link in every Markdown file leads to a file, and its #fragment to a heading.

Links to the web are not followed: the check needs no network.
"""

import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = {"target", "node_modules", ".git", ".venv"}
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(<?([^)\s>]+)>?\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)


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


def problems(page):
    for link in LINK.findall(CODE.sub("", FENCE.sub("", page.read_text("utf-8")))):
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            continue
        path, _, fragment = link.partition("#")
        goal = (page.parent / path).resolve() if path else page
        if ROOT not in (goal, *goal.parents) or not goal.exists():
            yield f"{page.relative_to(ROOT)}: no such file: {link}"
        elif fragment and goal.suffix == ".md" and fragment not in anchors(goal):
            yield f"{page.relative_to(ROOT)}: no such heading: {link}"


def main():
    checked = list(pages())
    found = [problem for page in checked for problem in problems(page)]
    for problem in found:
        print(problem, file=sys.stderr)
    print(f"links of {len(checked)} Markdown files: {'ok' if not found else f'{len(found)} broken'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
