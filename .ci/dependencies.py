#!/usr/bin/env python3
"""Writes host/docs/dependencies.md, every direct dependency and why it is there.

    .ci/dependencies.py            writes it
    .ci/dependencies.py --check    ends with 1 where it is not what the Cargo.toml files and the reasons say

The crates come from the Cargo.toml files of the clone, the reasons from host/docs/dependencies.toml. A crate without
a reason, and a reason without a crate, is an error either way.
"""

import os
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REASONS = ROOT / "host" / "docs" / "dependencies.toml"
PAGE = ROOT / "host" / "docs" / "dependencies.md"
SKIPPED = {"target", "node_modules", ".git", ".venv"}
GROUPS = ("The host", "Tests", "Guests")

HEAD = """\
# Dependencies

`.ci/dependencies.py` writes this page out of the Cargo.toml files and [the reasons](dependencies.toml). Each crate is
taken with the features that are used and no others, and its reason stands where it is named first. `Cargo.lock` is
checked in and every command of the Makefile is `--locked`.
"""


def packages():
    """Each folder with a Cargo.toml, and what it holds."""
    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        if "Cargo.toml" in files:
            yield Path(folder).relative_to(ROOT).as_posix(), tomllib.loads(Path(folder, "Cargo.toml").read_text("utf-8"))


def uses(manifest):
    """The crates that a Cargo.toml names: each with its own table, and whether only tests use it."""
    for table in [manifest, *manifest.get("target", {}).values()]:
        for kind in ("dependencies", "build-dependencies", "dev-dependencies"):
            for name, about in table.get(kind, {}).items():
                yield name, about, kind == "dev-dependencies"


def direct():
    """Every crate from a registry: in each group its versions and its users. Crates of the clone itself are left out."""
    manifests = dict(packages())
    workspaces = {path: manifest["workspace"] for path, manifest in manifests.items() if "workspace" in manifest}
    found = {}
    for path, manifest in manifests.items():
        owner = next((folder for folder in [path, *map(Path.as_posix, Path(path).parents)] if folder in workspaces), None)
        for name, about, is_for_tests in uses(manifest):
            if isinstance(about, dict) and about.get("workspace"):
                about = workspaces[owner]["dependencies"][name]
            about = about if isinstance(about, dict) else {"version": about}
            if "path" in about:
                continue
            group, user = place(path, is_for_tests)
            versions, users = found.setdefault(name, {}).setdefault(group, (set(), set()))
            versions.add(about["version"])
            users.add(user)
    return found


def place(path, is_for_tests):
    """The group of the page that a folder's crate is in, and the user that it is listed under there."""
    if path.startswith("guest-examples"):
        return "Guests", "`guest-examples`"
    if path.startswith("tests"):
        return "Tests", f"`{path}`"
    return ("Tests", f"tests of `{path}`") if is_for_tests else ("The host", f"`{path}`")


def page(found, reasons):
    """The whole page."""
    text, told = HEAD, set()
    for group in GROUPS:
        text += f"\n## {group}\n\n"
        for name in sorted(name for name, groups in found.items() if group in groups):
            versions, users = found[name][group]
            reason = "" if name in told else f": {reasons[name]}"
            text += f"- `{name}` {', '.join(sorted(versions))} ({', '.join(sorted(users))}){reason}\n"
            told.add(name)
    return text


def main():
    found, reasons = direct(), tomllib.loads(REASONS.read_text("utf-8"))
    problems = [f"{REASONS.name}: no reason for {name}, which {', '.join(sorted(user for _, users in found[name].values() for user in users))} uses" for name in sorted(found.keys() - reasons.keys())]
    problems += [f"{REASONS.name}: a reason for {name}, which nothing uses" for name in sorted(reasons.keys() - found.keys())]
    if not problems:
        if sys.argv[1:] != ["--check"]:
            PAGE.write_text(page(found, reasons), "utf-8")
        elif not PAGE.exists() or PAGE.read_text("utf-8") != page(found, reasons):
            problems.append(f"{PAGE.relative_to(ROOT)} is not what the Cargo.toml files say; .ci/dependencies.py writes it")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
