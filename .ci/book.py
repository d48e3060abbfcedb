#!/usr/bin/env python3
"""Builds all pages as one HTML book with search: target/book/html/index.html.

    .ci/book.py

The contents are the links of host/docs/README.md, in its order; the examples stand below their own page. mdBook is
compiled once, into ${TOOLCELL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/toolcell}. A link to a file that is not a page is
plain text in the book. It ends with 1 where a page is missing in the book, or a link in it leads nowhere.
"""

import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pages import FENCE, ROOT, shown

CONTENTS = ROOT / "host" / "docs" / "README.md"
EXAMPLES = ROOT / "guest-examples" / "README.md"
VERSION = "0.5.4"
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
SETTINGS = """\
[book]
title = "toolcell"
language = "en"
src = "src"

[build]
build-dir = "html"
create-missing = false

[output.html]
default-theme = "light"
preferred-dark-theme = "navy"
no-section-label = true
smart-punctuation = false
additional-css = ["wide.css"]

[output.html.fold]
enable = true
"""


def mdbook():
    """The path of mdBook, which is compiled where it is not there yet."""
    cache = Path(os.environ.get("TOOLCELL_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "toolcell")
    folder = cache / f"mdbook-{VERSION}"
    if not (folder / "bin" / "mdbook").exists():
        print(f"book: compiling mdBook {VERSION} into {folder} (once)", file=sys.stderr)
        cache.mkdir(parents=True, exist_ok=True)
        environment = {name: value for name, value in os.environ.items() if name not in ("CARGO_TARGET_DIR", "RUSTFLAGS")}
        # Half of the time of an optimised build, and a book of this size is written in a second all the same.
        environment |= {"CARGO_PROFILE_DEV_DEBUG": "0"}
        with tempfile.TemporaryDirectory(prefix=f"mdbook-{VERSION}.", dir=cache) as unfinished:
            subprocess.run(
                ["cargo", "install", "--quiet", "--locked", "--debug", "--no-default-features", "--features", "search",
                 "--root", unfinished, "--target-dir", f"{unfinished}/target", "mdbook", "--version", f"={VERSION}"],
                env=environment, check=True,
            )
            shutil.rmtree(Path(unfinished, "target"))
            # Renamed when it is whole; where another build was faster, its folder stays.
            if not folder.exists():
                shutil.copytree(unfinished, f"{unfinished}-whole")
                os.rename(f"{unfinished}-whole", folder)
    return folder / "bin" / "mdbook"


def title(page):
    """The first heading, as text."""
    heading = re.search(r"^# +(.+)$", page.read_text("utf-8"), re.MULTILINE)
    return heading.group(1) if heading else page.stem


def pages_linked(page):
    """The pages that a page links to, in order, each once."""
    text = FENCE.sub("", page.read_text("utf-8"))
    found = dict.fromkeys((page.parent / link.partition("#")[0]).resolve() for _, _, link in LINK.findall(text) if ":" not in link)
    return [goal for goal in (goal / "README.md" if goal.is_dir() else goal for goal in found) if goal.suffix == ".md" and goal.exists()]


def contents():
    """The parts of the book: each a title and its pages, each page with those below it."""
    told = {ROOT / "README.md", CONTENTS}
    examples = {page for page in pages_linked(EXAMPLES) if page.parent.parent == EXAMPLES.parent and page.name == "README.md"}
    parts = []
    for part in re.split(r"^## ", CONTENTS.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        heading = part.partition("\n")[0]
        goals = [(CONTENTS.parent / link.partition("#")[0]).resolve() for _, _, link in LINK.findall(part)]
        fresh = [page for page in dict.fromkeys(goals) if page.suffix == ".md" and page not in told | examples]
        told.update(fresh)
        parts.append((heading, [(page, sorted(examples) if page == EXAMPLES else []) for page in fresh]))
    return parts


def staged(page):
    """A page's place in the book: a README is its folder's index."""
    relative = page.relative_to(ROOT)
    return relative.with_name("index.md") if relative.name == "README.md" else relative


def summary(parts):
    text = f"# Summary\n\n[toolcell](index.md)\n[All pages]({staged(CONTENTS)})\n"
    for heading, pages in parts:
        text += f"\n# {heading}\n\n"
        for page, below in pages:
            text += f"- [{title(page)}]({staged(page)})\n" + "".join(f"  - [{title(inner)}]({staged(inner)})\n" for inner in below)
    return text


def rewritten(page, book):
    """A page's text with links as the book needs them. Blocks of code stay as they are."""

    def link(match):
        picture, text, target = match.groups()
        if re.match(r"[a-z][a-z0-9+.-]*:", target) or target.startswith("#"):
            return match.group(0)
        path, _, fragment = target.partition("#")
        goal = (page.parent / path).resolve()
        goal = goal / "README.md" if (goal / "README.md").exists() else goal
        if picture:
            place = book / "src" / goal.relative_to(ROOT)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(goal, place)
            return match.group(0)
        if goal.suffix != ".md" or not (book / "src" / staged(goal)).exists():
            return text
        relative = os.path.relpath(staged(goal), staged(page).parent)
        return f"[{text}]({relative}{'#' + fragment if fragment else ''})"

    text, done, at = page.read_text("utf-8"), "", 0
    for block in FENCE.finditer(text):
        done += LINK.sub(link, text[at : block.start()]) + block.group(0)
        at = block.end()
    return done + LINK.sub(link, text[at:])


def broken(book, pages):
    """Pages that the book has not, and links in it that lead nowhere."""
    ids = {}
    for page in pages:
        place = (book / "html" / staged(page)).with_suffix(".html")
        if not place.exists():
            yield f"{shown(page)} is not in the book"
        else:
            ids[place] = set(re.findall(r'\bid="([^"]+)"', place.read_text("utf-8")))
    for place in ids:
        main = re.search(r"<main>(.*)</main>", place.read_text("utf-8"), re.DOTALL)
        for link in re.findall(r'<(?:a|img)\b[^>]*?(?:href|src)="([^"]+)"', main.group(1) if main else ""):
            if re.match(r"[a-z][a-z0-9+.-]*:", link):
                continue
            path, _, fragment = html.unescape(link).partition("#")
            goal = (place.parent / path).resolve() if path else place
            if not goal.exists() or fragment and goal in ids and fragment not in ids[goal]:
                yield f"{place.relative_to(book)}: a link leads nowhere: {link}"
    if not any((book / "html").glob("searchindex*")):
        yield "the book has no search"


def main():
    book = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "book"
    shutil.rmtree(book, ignore_errors=True)
    parts = contents()
    pages = [ROOT / "README.md", CONTENTS, *(page for _, listed in parts for outer, below in listed for page in [outer, *below])]
    for page in pages:
        place = book / "src" / staged(page)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    for page in pages:
        (book / "src" / staged(page)).write_text(rewritten(page, book), "utf-8")
    (book / "src" / "SUMMARY.md").write_text(summary(parts), "utf-8")
    (book / "book.toml").write_text(SETTINGS, "utf-8")
    # Tables of four columns need more than mdBook's 750 pixels.
    (book / "wide.css").write_text(":root { --content-max-width: 980px; }\n", "utf-8")
    said = subprocess.run([mdbook(), "build", book], capture_output=True, text=True, check=False)
    found = [*([said.stderr.strip()] if said.returncode or "WARN" in said.stderr else []), *broken(book, pages)]
    for problem in found:
        print(problem, file=sys.stderr)
    print(f"a book of {len(pages)} pages: {book / 'html' / 'index.html' if not found else f'{len(found)} problems'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
