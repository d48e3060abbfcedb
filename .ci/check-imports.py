#!/usr/bin/env python3
"""Refuses circles of imports that lead from one room of a crate into another and back.

A room is a folder of a crate's `src`, with the file of the same name where it has one; the other files there are one room
together. Files import one another by `use` and by paths that begin with `crate`, `super` or `self`; names that a module
only exports again lead to the file that has them. What is compiled for tests alone does not count, nor does `lib.rs`,
which only lists.

`check-imports.py` lists each circle with its files and ends with 1. `--self-test` tries the rules on samples. It takes a
second.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Circles that stand since before this check, by crate: the rooms in them. A list may lose rooms, and gets none. In
# `mcp` requests, revisions and answers name one another's types; in `policy` the rights are read, explained and edited by
# rooms that they name themselves.
HALL = "the loose files"
STANDING = {
    "mcp": {"asking", "connection", "revision", "task", "tool", HALL},
    "policy": {"canonical", "edit", "explain", "grants", "limits", "manifest", "program", "read", "rights", HALL},
}
TEST_ONLY = "#[cfg(test)]"
USE = re.compile(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
PATH = re.compile(r"\b(?:crate|super|self)(?:::\w+)+")


def without_tests(text):
    """The text without comments and without items that are compiled for tests alone."""
    text = re.sub(r"//[^\n]*", "", text)
    while (start := text.find(TEST_ONLY)) >= 0:
        end = re.compile(r"[;{]").search(text, start)
        depth, at = 0, end.start() if end else len(text)
        while at < len(text):
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
            if depth == 0:
                break
        text = text[:start] + text[at:]
    return text


def named(tree):
    """The paths that a `use` names, each written out, as pairs of path and name."""
    tree = tree.strip()
    brace = tree.find("{")
    if brace < 0:
        path, _, name = (part.strip() for part in tree.partition(" as "))
        return [(path, name or path.split("::")[-1])]
    parts, depth = [""], 0
    for sign in tree[brace + 1 : tree.rfind("}")]:
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return [pair for part in parts if part.strip() for pair in named(tree[:brace] + part.strip())]


class Crate:
    """The modules of a crate, each a tuple of names, and what they import."""

    def __init__(self, texts):
        """`texts` are the files by their paths below `src`."""
        self.texts = {module_of(path): without_tests(text) for path, text in texts.items()}
        self.folders = {module[0] for module in self.texts if len(module) > 1}
        self.exports = {
            module: {name: path for public, tree in USE.findall(text) if public for path, name in named(tree)}
            for module, text in self.texts.items()
        }
        self.imports = {module: self.imports_of(module) for module in self.texts if module}

    def imports_of(self, module):
        text = self.texts[module]
        paths = [path for _, tree in USE.findall(text) for path, _ in named(tree)] + PATH.findall(USE.sub("", text))
        found = {self.file_of(path, module, set()) for path in paths if PATH.match(path)}
        return found - {module, (), None}

    def file_of(self, path, module, seen):
        """The module that has what a path in a module names."""
        names = [name.strip() for name in path.split("::")]
        if names[0] == "crate":
            module, names = (), names[1:]
        while names and names[0] in ("self", "super"):
            module = module[:-1] if names.pop(0) == "super" else module
        for name in names:
            if module + (name,) in self.texts:
                module += (name,)
                continue
            again = self.exports.get(module, {}).get(name)
            if again is None or (module, name) in seen:
                return module
            first = again.split("::")[0]
            inside = again if first in ("crate", "super", "self") else f"self::{again}"
            is_own = first in ("crate", "super", "self") or module + (first,) in self.texts
            return self.file_of(inside, module, seen | {(module, name)}) if is_own else module
        return module

    def circles(self):
        """Sets of files that all lead to one another, and lie in several rooms."""
        below = {module: self.reached(module) for module in self.imports}
        circles = {frozenset(other for other in found if module in below.get(other, ())) for module, found in below.items()}
        return [circle for circle in circles if len(self.rooms(circle)) > 1]

    def rooms(self, circle):
        return {module[0] if module[0] in self.folders else HALL for module in circle}

    def reached(self, module):
        found, ahead = set(), [module]
        while ahead:
            for other in self.imports.get(ahead.pop(), ()):
                if other not in found:
                    found.add(other)
                    ahead.append(other)
        return found


def module_of(path):
    names = path.removesuffix(".rs").split("/")
    return tuple(names[:-1] if names[-1] in ("mod", "lib") else names)


def problems(name, crate):
    standing = STANDING.get(name, frozenset())
    circles = crate.circles()
    for circle in circles:
        rooms = crate.rooms(circle)
        if not rooms <= standing:
            files = ", ".join(sorted("/".join(module) for module in circle))
            yield f"host/{name}: a circle of imports over the rooms {', '.join(sorted(rooms))}: {files}"
    gone = standing - {room for circle in circles for room in crate.rooms(circle)}
    if gone:
        yield f"host/{name}: no circle has {', '.join(sorted(gone))} any more; take it out of STANDING"


def self_test():
    def circles(**texts):
        files = {name.replace("__", "/") + ".rs": text for name, text in texts.items()}
        found = Crate({"lib.rs": "", "a/mod.rs": "", "b/mod.rs": ""} | files).circles()
        return sorted(sorted("/".join(module) for module in circle) for circle in found)

    assert circles(a__x="use crate::b::B;", b__mod="use super::a::x::{A, Other};") == [["a/x", "b"]]
    assert circles(a__x="use crate::b::B;", b__mod="fn b() { crate::a::x::run() }") == [["a/x", "b"]]
    assert circles(d="use crate::b::y::B;", b__y="use crate::c::C;", c="use crate::{d::D, x};") == [["b/y", "c", "d"]]
    assert circles(a__x="use crate::b::B;", b__mod="// use crate::a::x;\n#[cfg(test)]\nmod tests { use crate::a::x; }") == []
    assert circles(c="use crate::d::D;", d="use crate::c::C;") == [], "one room"
    assert circles(a__mod="mod x;", a__x="use super::y;", a__y="use super::x;") == [], "one room"
    assert circles(a__x="use crate::b::B;", b__mod="use crate::a::y::Y;", a__y="") == [], "no circle of files"
    again = {"a__mod": "pub use x::{X as Y};", "a__x": "use crate::b::B;", "b__mod": "use crate::a::Y;"}
    assert circles(**again) == [["a/x", "b"]], "a name that is exported again"
    assert circles(a__x="use crate::B;", lib="pub use b::B;", b__mod="use crate::a::x::A;") == [["a/x", "b"]]


def main():
    self_test()
    if "--self-test" in sys.argv:
        return 0
    found = []
    for src in sorted(ROOT.glob("host/*/src")):
        files = [file for file in src.rglob("*.rs") if file.stem != "tests" and "tests" not in file.relative_to(src).parts]
        texts = {file.relative_to(src).as_posix(): file.read_text("utf-8") for file in files}
        found += problems(src.parent.name, Crate(texts))
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
