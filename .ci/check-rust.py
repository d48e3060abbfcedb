#!/usr/bin/env python3
"""Checks Rust files for what no other tool does: comments within 100 columns, one `let` for each name, and no tuple as a
parameter of a function.

`check-rust.py [FOLDER…]` lists what is wrong and ends with 1. With `--wrap` it refills paragraphs that have a longer line.
rustfmt wraps comments on nightly only, so this stands in for it. `let (a, b) = (x, y);` hides two statements in one. A
tuple as a parameter hides several in one, without names where the function is called; closures may take one. `--self-test` tries these rules on samples.
"""

import pathlib
import re
import sys
import textwrap

COLUMNS = 100
# Several statements in one: a pattern of a tuple that takes a tuple apart at once. One that ends in a method is another thing.
PACKED = re.compile(r"^[ \t]*let \([^()=;]*\)\s*(?::[^=;]*)?=\s*\(", re.M)
# What is no code: comments, strings and characters.
NO_CODE = re.compile(r"//[^\n]*|r(#*)\".*?\"\1|\"(?:\\.|[^\"\\])*\"|'(?:\\[^']*|[^'\\])'", re.S)
FUNCTION = re.compile(r"\bfn\s+(\w+)\s*")
# A parameter that is a pattern of a tuple, or whose type is a tuple: `(&Path, &Code)`, not `&(dyn Fn() + Send)`.
TUPLE = re.compile(r"(?:mut\s+)?(?:&\s*)?\(|(?:mut\s+)?\w+\s*:\s*(?:&\s*)?(?:'\w+\s+)?(?:mut\s+)?\((?!\s*(?:impl|dyn)\b)")
COMMENT = re.compile(r"^(\s*)(//[/!]?)(?: (.*))?$")
# Lines that are not running text: headings, lists, tables, quotes.
OWN_LINE = re.compile(r"^(#|[-*|>] |\|)")


def blocks(lines):
    """Runs of comment lines with one indent and one marker, as (first, last, indent, marker, texts)."""
    at = 0
    while at < len(lines):
        found = COMMENT.match(lines[at])
        if not found:
            at += 1
            continue
        first, key, texts = at, found.groups()[:2], []
        while at < len(lines) and (found := COMMENT.match(lines[at])) and found.groups()[:2] == key:
            texts.append(found.group(3) or "")
            at += 1
        yield first, at, *key, texts


def wrapped(indent, marker, texts):
    """The lines of a block, paragraphs with a long line refilled."""
    out, paragraph, fenced = [], [], False
    prefix = f"{indent}{marker} "

    def end():
        if paragraph and any(len(prefix + text) > COLUMNS for text in paragraph):
            width = COLUMNS - len(prefix)
            out.extend(textwrap.wrap(" ".join(paragraph), width, break_long_words=False, break_on_hyphens=False))
        else:
            out.extend(paragraph)
        paragraph.clear()

    for text in texts:
        fence = text.startswith("```")
        if fence or fenced or not text or text.startswith("    ") or OWN_LINE.match(text):
            end()
            out.append(text)
            fenced ^= fence
        else:
            paragraph.append(text)
    end()
    return [(prefix + text).rstrip() for text in out]


def wrap(path):
    lines = path.read_text().split("\n")
    out, done = [], 0
    for first, last, indent, marker, texts in blocks(lines):
        out += lines[done:first] + wrapped(indent, marker, texts)
        done = last
    text = "\n".join(out + lines[done:])
    if text != path.read_text():
        path.write_text(text)


def closing(text, at):
    """The place behind the parenthesis that closes the one at `at`. Strings and characters with a parenthesis are rare here."""
    depth = 0
    for place in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    return len(text)


def packed(text):
    """The lines on which a `let` takes apart a tuple that it has just put together."""
    for found in PACKED.finditer(text):
        if text[closing(text, found.end() - 1) :].lstrip().startswith(";"):
            yield text.count("\n", 0, found.start()) + 1


def parameters(text, at):
    """The parameters in the parenthesis at a place of a text without strings."""
    parts, depth = [""], 0
    for place in range(at, len(text)):
        sign = text[place]
        if sign in ")]}" or (sign == ">" and text[place - 1] not in "-="):
            depth -= 1
            if depth == 0:
                break
        if sign == "," and depth == 1:
            parts.append("")
        elif depth:
            parts[-1] += sign
        depth += sign in "([{<"
    return [part.strip() for part in parts]


def tuples(text):
    """The lines on which a function begins that has a tuple as a parameter, with its name."""
    code = NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    for found in FUNCTION.finditer(code):
        at = found.end()
        depth = 0
        # Behind its generics, which may name functions: `<F: Fn(&str) -> bool>`.
        while at < len(code) and (depth or code[at] == "<"):
            depth += (code[at] == "<") - (code[at] == ">" and code[at - 1] not in "-=")
            at += 1
        if at < len(code) and code[at] == "(" and any(TUPLE.match(part) for part in parameters(code, at)):
            yield code.count("\n", 0, found.start()) + 1, found.group(1)


def self_test():
    for text, wrong in [
        ("fn f((a, b): (u8, u8)) {}", True), ("fn f(&self, at: (u8, u8), b: u8) {}", True), ("fn f([a, b]: [u8; 2]) {}", False),
        ("fn f(\n    a: u8,\n    pair: &mut (u8, u8),\n) {}", True), ("fn f(&(a, b): &(u8, u8)) {}", True), ("fn f<F: Fn((u8, u8))>(a: (u8,), f: F) {}", True),
        ("fn f<F: Fn((u8, u8)) -> bool>(f: F) {}", False), ("fn f(f: &(dyn Fn(u8) + Send)) {}", False), ("fn f(a: Vec<(u8, u8)>, b: &[(u8, u8)]) {}", False),
        ("fn f(a: u8) -> (u8, u8) { g(|(a, b)| a) }", False), ("// fn f((a, b): (u8, u8)) {}", False), ('let s = "fn f((a, b): T)";', False),
        ("fn f(a: HashMap<u8, (u8, u8)>, b: [u8; 2]) {}", False), ("fn f(Pair { a, b }: Pair, Wrap(c): Wrap) {}", False), ("fn f(a: char) { g('(', (1, 2)) }", False),
    ]:
        assert bool(list(tuples(text))) == wrong, text
    for text, wrong in [
        ("let (a, b) = (1, 2);", True), ("let (a, b): (u8, u8) = (1, 2);", True), ("let (a, b) = f(1, 2);", False), ("let (a, b) = (c, d).max();", False),
    ]:
        assert bool(list(packed(text))) == wrong, text


def problems(path):
    text = path.read_text()
    for number, name in tuples(text):
        yield f"{path}:{number}: `{name}` has a tuple as a parameter; write a parameter for each, or a struct with names"
    for number in packed(text):
        yield f"{path}:{number}: one `let` for several names; write a `let` for each"
    lines = text.split("\n")
    for first, last, _, _, texts in blocks(lines):
        fenced = False
        for at in range(first, last):
            fenced ^= texts[at - first].startswith("```")
            own_line = fenced or "://" in lines[at] or OWN_LINE.match(texts[at - first])
            if len(lines[at]) > COLUMNS and not own_line:
                yield f"{path}:{at + 1}: a comment of {len(lines[at])} columns; {COLUMNS} are allowed"


def main():
    self_test()
    arguments = sys.argv[1:]
    if "--self-test" in arguments:
        return
    fix = "--wrap" in arguments
    folders = [folder for folder in arguments if folder != "--wrap"] or ["host", "tests"]
    files = [file for folder in folders for file in sorted(pathlib.Path(folder).rglob("*.rs")) if "target" not in file.parts]
    if fix:
        for file in files:
            wrap(file)
    found = [problem for file in files for problem in problems(file)]
    print("\n".join(found) if found else f"{len(files)} files: as they should be")
    sys.exit(1 if found else 0)


main()
