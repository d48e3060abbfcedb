#!/usr/bin/env python3
"""Refuses tracked files that break a fresh clone, or that name one machine:

- symbolic links, which lead nowhere on another machine;
- what a build makes: by its folder, by its name, or by its first bytes;
- absolute paths of somebody's home or of a build machine's folders.

It reads the index of git and the files it names, and takes a second. `--self-test` tries the rules on samples.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK_MODE, MODULE_MODE = "120000", "160000"
BUILT_FOLDERS = {"target", "node_modules", "__pycache__", ".venv", "venv", "dist", ".toolcell", ".cache"}
BUILT_NAMES = re.compile(r"\.(wasm|cwasm|o|a|so|dylib|dll|exe|rlib|rmeta|pyc|class|dwp|debug|deb|whl|tgz)$|^core$")
BUILT_STARTS = {
    b"\x7fELF": "a program or library of Linux",
    b"\0asm": "WebAssembly",
    b"!<arch>\n": "a static library or a package",
    b"\xcf\xfa\xed\xfe": "a program of macOS",
    b"MZ\x90\0": "a program of Windows",
}
# The parts are put together here, so that this file does not name what it looks for.
HOMES = "|".join(["home", "Users", "root", "work", "workspace", "workspaces", "builds", "github/workspace"])
MACHINE_PATH = re.compile(rf"(?<![\w.~)\]}}>/*-])/(?:{HOMES})/[\w.-]+")
WINDOWS_PATH = re.compile(r"\b[A-Za-z]:\\+Users\\+\w")
# What these hold is made by package clients, or is a text of a licence.
UNREAD = re.compile(r"(^|/)(Cargo\.lock|package-lock\.json|requirements\.txt|LICENSE)$")
# Paths that a guest sees inside its sandbox name no machine.
GUEST_PATHS = {"host/guest/src/wasi/files/tests/mounts.rs": {"/" + "work/deep"}}
# Inputs that the fuzzer begins with: some are components by their first bytes.
SEEDS = "tests/fuzz/seeds/"


def tracked():
    listed = subprocess.run(["git", "ls-files", "-s", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    for entry in listed.decode("utf-8", "surrogateescape").split("\0"):
        if entry:
            about, name = entry.split("\t", 1)
            yield about.split(" ")[0], name


def built(name, start):
    folder = next((part for part in Path(name).parts[:-1] if part in BUILT_FOLDERS), None)
    if folder:
        return f"a file in a folder of builds ({folder})"
    if BUILT_NAMES.search(Path(name).name):
        return "a name that builds give their files"
    if name.startswith(SEEDS):
        return None
    return next((what for magic, what in BUILT_STARTS.items() if start.startswith(magic)), None)


def machine_paths(name, text):
    for number, line in enumerate(text.splitlines(), 1):
        for found in [*MACHINE_PATH.findall(line), *WINDOWS_PATH.findall(line)]:
            if found not in GUEST_PATHS.get(name, ()):
                yield number, found


def problems_of(mode, name):
    if mode == LINK_MODE:
        yield f"{name}: a symbolic link; commit the file itself, or make the link when building"
        return
    if mode == MODULE_MODE:
        yield f"{name}: another repository; a clone does not bring it along"
        return
    try:
        content = (ROOT / name).read_bytes()
    except OSError as error:
        yield f"{name}: tracked, and cannot be read: {error.strerror}"
        return
    what = built(name, content)
    if what:
        yield f"{name}: built, not written: {what}; `git rm --cached` it and add it to .gitignore"
    elif not UNREAD.search(name) and b"\0" not in content:
        for number, path in machine_paths(name, content.decode("utf-8", "replace")):
            yield f"{name}:{number}: the path of a machine: {path}"


def self_test():
    home = "/" + "home/ann"
    for text, wrong in [
        (f"in {home}/x", True), (f'"{home}"', True), (f"file://{home}", False), ("C:" + "\\Users\\ann", True),
        ("/path/to/toolcell", False), ("https://example.com/" + "home/ann", False), ("$ROOT/" + "work/x", False),
        ("/var/lib/toolcell", False), ("tests/" + "work/x", False),
    ]:
        assert bool(list(machine_paths("x", text))) == wrong, text
    for name, start, wrong in [
        ("target/x", b"", True), ("a/target/x.rs", b"", True), ("target", b"", False), ("a.wasm", b"", True),
        ("a.bin", b"\x7fELF\x02", True), ("a.txt", b"\0asm\x01", True), (SEEDS + "x", b"\0asm\x01", False), ("host/cli/src/main.rs", b"//!", False),
    ]:
        assert bool(built(name, start)) == wrong, name


def main():
    self_test()
    if "--self-test" in sys.argv:
        return 0
    found = [problem for mode, name in tracked() for problem in problems_of(mode, name)]
    for problem in found:
        print(problem, file=sys.stderr)
    if found:
        print(f"check-tree: {len(found)} problems; a fresh clone must build anywhere", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
