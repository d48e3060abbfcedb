#!/usr/bin/env python3
"""Writes host/docs/promises.md: what toolcell promises, and the test modules that hold it to that.

    .ci/promises.py                writes it
    .ci/promises.py --check        ends with 1 where the page is stale, or promises and tests do not fit
    .ci/promises.py --self-test    tries the check itself

`.ci/promises.txt` lists the promises by subject: `name: how it is kept.` A test module says in its head which of them it
holds, a line each: `//! Promise: name.` A promise that no module names is an error, and so is a name that is not listed.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / ".ci" / "promises.txt"
PAGE = ROOT / "host" / "docs" / "promises.md"
# In the head of a module, or within it, at the head of its `mod tests`.
LINE = re.compile(r"^\s*//! Promise: (.+)\.$", re.MULTILINE)

HEAD = """\
# Promises

What toolcell promises, and the tests that fail without it. [SECURITY.md](../../SECURITY.md) says what counts as an escape
and what is not promised. `.ci/promises.py` writes this page out of `.ci/promises.txt` and the heads of test modules. Run a
module of `tests/e2e` with `make test-e2e ARGS=NAME::`.
"""


def listed(text):
    """The promises by subject: [(subject, {name: how})]."""
    subjects = []
    for line in text.splitlines():
        if line.startswith("# "):
            subjects.append((line[2:], {}))
        elif line:
            name, _, how = line.partition(": ")
            subjects[-1][1][name] = how
    return subjects


def holders():
    """The test modules that name a promise: {name: [path from the root]}."""
    found = {}
    for folder in ("host", "tests"):
        for path in sorted((ROOT / folder).rglob("*.rs")):
            for name in LINE.findall(path.read_text("utf-8")):
                found.setdefault(name, []).append(path.relative_to(ROOT))
    return found


def problems(subjects, found):
    names = [name for _, promises in subjects for name in promises]
    for name in names:
        if name not in found:
            yield f"no test module holds the promise: {name}; say so in its head: //! Promise: {name}."
        if names.count(name) > 1:
            yield f"two promises have the name: {name}"
    for name, paths in found.items():
        if name not in names:
            yield f"{paths[0]}: {LIST.relative_to(ROOT)} does not list the promise: {name}"


def label(path):
    """The name of a module, as the command that runs it has it."""
    parts = list(path.with_suffix("").parts)
    if parts[-1] in ("mod", "main"):
        parts.pop()
    return "::".join(parts[2:]) if parts[:2] == ["tests", "e2e"] else "/".join(parts[1:] if parts[0] == "host" else parts)


def page(subjects, found):
    text = HEAD
    for subject, promises in subjects:
        text += f"\n## {subject}\n\n"
        for name, how in promises.items():
            tests = ", ".join(f"[`{label(path)}`](../../{path.as_posix()})" for path in found.get(name, []))
            text += f"- **{name[0].upper()}{name[1:]}**: {how} Tests: {tests}\n"
    return text


def self_test():
    subjects = listed("# Time\nwaiting ends: by a deadline.\ncomputing ends: by fuel.\n")
    held = {"waiting ends": [Path("tests/e2e/hostile.rs")], "computing ends": [Path("host/guest/src/run/mod.rs")]}
    assert not list(problems(subjects, held))
    assert "- **Waiting ends**: by a deadline. Tests: [`hostile`](../../tests/e2e/hostile.rs)\n" in page(subjects, held)
    assert label(Path("host/guest/src/run/mod.rs")) == "guest/src/run"
    assert [*problems(subjects, {"waiting ends": held["waiting ends"]})][0].startswith("no test module holds the promise: computing")
    assert "does not list the promise: x" in [*problems(subjects, {**held, "x": [Path("a.rs")]})][0]
    assert "two promises have the name" in " ".join(problems(subjects + subjects, held))
    assert LINE.findall("//! About.\n//!\n//! Promise: waiting ends.\n    //! Promise: x.\n// Promise: no.\n") == ["waiting ends", "x"]


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    subjects, found = listed(LIST.read_text("utf-8")), holders()
    wrong, text = list(problems(subjects, found)), page(subjects, found)
    if sys.argv[1:] == ["--check"]:
        if not PAGE.exists() or PAGE.read_text("utf-8") != text:
            wrong.append(f"{PAGE.relative_to(ROOT)} is stale; .ci/promises.py writes it")
    elif not wrong:
        PAGE.write_text(text, "utf-8")
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
