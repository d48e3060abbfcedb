"""The pages of the clone: every Markdown file that people read. Must not hold: what is checked of them."""

import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Folders of builds, and templates of projects, whose pages have slots.
SKIPPED = {"target", "node_modules", ".git", ".venv", "templates"}
# Markdown that examples read and serve: no pages of the project.
DATA = {
    ROOT / "guest-examples" / "file_search" / "sample",
    ROOT / "guest-examples" / "notebook" / "notes",
    ROOT / "guest-examples" / "notes",
}
# A block of code, with its fences.
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


def pages():
    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(name for name in folders if name not in SKIPPED and Path(folder, name) not in DATA)
        yield from (Path(folder, name) for name in sorted(files) if name.endswith(".md"))


def shown(page):
    """A page's path as people write it."""
    return page.relative_to(ROOT)
