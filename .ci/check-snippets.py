#!/usr/bin/env python3
"""Checks that the snippets of the Markdown files work, with the binary that `make build` makes:

- a block of TOML is a manifest, and `toolcell check` finds nothing wrong with it but components that are not built.
  A page may show a part of a manifest: `version`, a component, or a component's `source` is added where it is
  missing. A block with `[package]` or `[[expect]]` is another kind of file, and only has to be TOML.
- each `toolcell …` in a block of shell, or between backticks, is a command with these options: it is run with
  `--help` behind them.
- each `make …` there is a target of the Makefile, with variables that it knows. After `cd`, and in the folder of an
  example with a Makefile of its own, that other Makefile is meant.
- a block of console that calls tools of the examples is run, where they are built, and prints what the page shows:
  calls with `--manifest guest-examples/toolcell.toml`, and every `toolcell …` behind `<!-- run in guest-examples -->`,
  where numbers may be others and `…` stands for anything.

    .ci/check-snippets.py [PAGE…]
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from pages import FENCE, ROOT, pages, shown

BINARY = Path(os.environ.get("TOOLCELL_BIN", ROOT / "target" / "release" / "toolcell"))
BLOCK = re.compile(r"^(<!-- run in guest-examples -->\n)?```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`((?:toolcell|make) [^`\n]+)`")
# A file or folder that a manifest names and that this clone need not have, and what is not compiled for that.
NOT_THERE = {
    "components::source", "apps::file", "skills::folder", "http::certificate_file", "serve::unreadable", "components::not_compiled",
}
# What a page shows along with its own warning.
WARNED_OF = {"oauth::passthrough"}
# The shell's own words, which end one command and begin the next.
ENDS = {"&&", "||", ";", "|", "&", ">", ">>", "<", "<<<"}
EXAMPLES = "--manifest guest-examples/toolcell.toml"


def completed(text):
    """A part of a manifest as a whole one."""
    tables = tomllib.loads(text)
    for name, component in tables.get("components", {}).items():
        if "source" not in component:
            source, header = f'source = "{name}.wasm"\n', f"[components.{name}]\n"
            at = text.find(header)
            text = text.replace(header, header + source, 1) if at >= 0 else text.rstrip("\n") + f"\n\n{header}{source}"
    if not tables.get("components"):
        text += '\n[components.example]\nsource = "example.wasm"\n'
    return text if "version" in tables else "version = 1\n" + text


def wrong_manifest(text, folder):
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        yield f"not TOML: {error}"
        return
    if "package" in tables or "expect" in tables:
        return
    manifest = Path(folder, "toolcell.toml")
    manifest.write_text(completed(text), "utf-8")
    said = subprocess.run([BINARY, "check", manifest, "--json", "--no-code-cache"], capture_output=True, text=True, check=False)
    for problem in json.loads(said.stdout)["problems"]:
        if problem["code"] not in NOT_THERE | WARNED_OF:
            yield f"{problem['code']}: {problem['message']}"


def commands(text):
    """The commands of a text of shell, each as a list of words, and whether `cd` stands before it."""
    text = re.sub(r"\\\n", " ", text)
    for line in text.splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&<>")
        lexer.whitespace_split, lexer.commenters = True, "#"
        try:
            words = list(lexer)
        except ValueError:
            yield [line], False
            continue
        one, is_elsewhere = [], False
        for word in [*words, ";"]:
            if word not in ENDS:
                one.append(word)
                continue
            while one and re.match(r"[A-Z_]+=", one[0]):
                one.pop(0)
            if one:
                yield one, is_elsewhere
            is_elsewhere = is_elsewhere or one[:1] == ["cd"]
            one = []


def wrong_toolcell(words):
    # `a|b|c` stands for one of them, as in `--lang rust|c`; what follows `--` is another program's.
    words = [word.split("|")[0] for word in words[1:]]
    words = words[: words.index("--")] if "--" in words else words
    words = [word for word in words if word not in ("…", "[OPTIONS]")]
    said = subprocess.run([BINARY, *words, "--help"], capture_output=True, text=True, check=False)
    if said.returncode:
        yield f"toolcell {' '.join(words)}: {(said.stderr or said.stdout).strip().splitlines()[0]}"


def wrong_make(words, page, is_elsewhere):
    if is_elsewhere:
        return
    makefiles = [file for file in (page.parent / "Makefile", ROOT / "Makefile") if file.exists()]
    text = "".join(file.read_text("utf-8") for file in makefiles)
    for word in words[1:]:
        name, equals, _ = word.partition("=")
        if equals:
            if not re.search(rf"\b{re.escape(name)}\b", text):
                yield f"{' '.join(words)}: no such variable: {name}"
        elif not re.search(rf"^{re.escape(name)}:", text, re.MULTILINE):
            yield f"{' '.join(words)}: no such target: {name}"


def wrong_shell(text, page):
    for words, is_elsewhere in commands(text):
        if words[0] == "toolcell":
            yield from wrong_toolcell(words)
        elif words[0] == "make":
            yield from wrong_make(words, page, is_elsewhere)


def typed(text):
    """The commands of a block of console, each with what the page shows below it."""
    text = re.sub(r"\\\n", " ", text)
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, wanted = part.partition("\n")
        yield command, wanted


def wrong_output(text, folder, is_loose):
    """Runs the calls of a block in a folder of their own, one after the other."""
    if not (ROOT / "guest-examples" / "components" / "echo.wasm").exists():
        return
    for command, wanted in typed(text):
        words = next(commands(command))[0]
        if words[0] != "toolcell" or not is_loose and (words[1] != "call" or EXAMPLES not in command):
            continue
        place = Path(folder, "guest-examples") if is_loose else folder
        said = subprocess.run([BINARY, *words[1:]], cwd=place, capture_output=True, text=True, check=False)
        printed = said.stdout + said.stderr
        if not (loosely if is_loose else str.__eq__)(wanted.rstrip(), printed.rstrip()):
            yield f"{command}: prints\n{printed}"


def loosely(wanted, printed):
    """Whether that was printed, but for numbers, digests, empty lines and where the clone lies."""
    printed = printed.replace(str(BINARY), "/path/to/toolcell")
    printed = re.sub(r'/[^"\s]*/guest-examples\b', "/path/to", printed)

    def plain(text):
        # A least value is named only where a measured one is below it.
        text = re.sub(r", at least \S+", "", text)
        text = re.sub(r"sha256:[0-9a-f]+|\d[\d_.]*", "0", text)
        # What was measured has another unit on a slower machine.
        text = re.sub(r"\b0(ns|µs|ms|s|min)\b", "0s", text)
        return [re.sub(r" +", " ", line.rstrip()) for line in text.splitlines() if line.strip()]

    pattern = "\n".join(".*" if line.strip() == "…" else re.escape(line).replace("…", ".*") for line in plain(wanted))
    return re.fullmatch(pattern, "\n".join(plain(printed)), re.DOTALL) is not None


def examples(folder):
    """A copy of the examples that calls may write into."""
    wanted = folder / "guest-examples"
    shutil.copytree(ROOT / "guest-examples", wanted, ignore=shutil.ignore_patterns("target", "node_modules", "docs", "gallery", ".toolcell"))
    shutil.rmtree(wanted / "notes", ignore_errors=True)


def problems_of(page, folder):
    text = page.read_text("utf-8")
    for is_loose, language, block in BLOCK.findall(text):
        if language == "toml":
            yield from wrong_manifest(block, folder)
        elif language in ("sh", "bash"):
            yield from wrong_shell(block, page)
        elif language == "console":
            yield from wrong_shell("\n".join(command for command, _ in typed(block)), page)
            yield from wrong_output(block, folder, bool(is_loose))
    for command in INLINE.findall(FENCE.sub("", text)):
        yield from wrong_shell(command, page)


def main():
    if not BINARY.exists():
        print(f"there is no {BINARY.name} yet: make build", file=sys.stderr)
        return 1
    checked = [Path(name).resolve() for name in sys.argv[1:]] or list(pages())
    found = []
    with tempfile.TemporaryDirectory(prefix="toolcell-snippets-") as name:
        examples(Path(name))
        for page in checked:
            found += [f"{shown(page)}: {problem}" for problem in problems_of(page, name)]
    for problem in found:
        print(problem, file=sys.stderr)
    print(f"snippets of {len(checked)} Markdown files: {'ok' if not found else f'{len(found)} problems'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
