#!/usr/bin/env python3
"""Writes guest-examples/docs/manifest.md, the reference of the manifest, out of its JSON Schema.

    .ci/manifest-reference.py            writes it
    .ci/manifest-reference.py --check    ends with 1 where it is not what the schema says

Must not hold: anything about a key that the schema does not say.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "host" / "policy" / "toolcell.schema.json"
PAGE = ROOT / "guest-examples" / "docs" / "manifest.md"

HEAD = """\
# The manifest, key by key

This page is written by `.ci/manifest-reference.py` out of [the manifest's JSON Schema](../../host/policy/toolcell.schema.json), which editors use as well.
[The manifest](../../host/docs/manifest.md) says what the keys are for. `NAME`, `TOOL` and the like stand for names that you choose. Keys that are not
here are errors.
"""


class Reference:
    def __init__(self, schema):
        self.definitions = schema["$defs"]
        # Where a definition was described first: a table that is there twice is described once.
        self.told = {}
        self.sections = []
        self.visit([], schema)

    def resolved(self, node):
        """A node with what its $ref leads to; the node's own words win."""
        name = node.get("$ref", "").removeprefix("#/$defs/")
        return (name, {**self.definitions[name], **node}) if name else (None, node)

    def visit(self, path, node):
        """Tells a table, then the tables in it."""
        name, node = self.resolved(node)
        if "properties" not in node:
            return
        if name:
            self.told[name] = path
        entries, inner = [], []
        for key, value in node["properties"].items():
            value_name, value = self.resolved(value)
            entries.append(self.entry(key, value, value_name, key in node.get("required", []), path))
            inner += self.tables(path + [key], value_name, value)
        self.sections.append(self.section(path, node, entries))
        for inner_path, inner_node in inner:
            if self.resolved(inner_node)[0] not in self.told:
                self.visit(inner_path, inner_node)

    def tables(self, path, name, node):
        """The tables that a key holds, each with its path."""
        if "properties" in node:
            yield path, {"$ref": f"#/$defs/{name}"} if name else node
        for choice in node.get("anyOf", []) + node.get("oneOf", []):
            choice_name, choice = self.resolved(choice)
            yield from self.tables(path, choice_name, choice)
        held = node.get("additionalProperties")
        if isinstance(held, dict):
            held_name, held = self.resolved(held)
            yield from self.tables(path + [wildcard(path[-1])], held_name, held)

    def section(self, path, node, entries):
        title = f"`[{'.'.join(path)}]`" if path else "At the top"
        words = one_line(node.get("description", ""))
        return f"## {title}\n\n{words}\n\n{''.join(entries)}"

    def entry(self, key, node, name, required, path):
        default = node.get("default")
        shown = ", required" if required else "" if default is None else f", default `{written(default)}`"
        words = one_line(node.get("description", ""))
        examples = ", ".join(f"`{written(example)}`" for example in node.get("examples", []))
        # A default shows the form of a value as well.
        if examples and default is None:
            words += f" Example: {examples}."
        if name in self.told and self.told[name] != path + [key]:
            words += f" As `[{'.'.join(self.told[name])}]`."
        return f"- `{key}` ({self.kind(node)}{shown}): {words}\n"

    def kind(self, node):
        """What a value is, in a word or two."""
        node = self.resolved(node)[1]
        if "enum" in node:
            return " or ".join(f"`{written(choice)}`" for choice in node["enum"])
        if "const" in node:
            return f"`{written(node['const'])}`"
        choices = node.get("anyOf") or node.get("oneOf")
        if choices:
            return " or ".join(dict.fromkeys(self.kind(choice) for choice in choices))
        kind = node.get("type", "anything")
        if kind == "integer":
            return f"{node['minimum']:_} to {node['maximum']:_}" if "minimum" in node and "maximum" in node else "whole number"
        if kind == "array":
            return f"list of {self.kind(node['items'])}s" if "items" in node else "list"
        return {"object": "table", "string": "text", "boolean": "boolean"}.get(kind, kind)


def wildcard(key):
    """What stands for a name that a person chooses."""
    return {"components": "NAME", "tools": "TOOL", "filesystem": '"/PATH"'}.get(key, key.upper())


def one_line(text):
    return " ".join(text.split())


def written(value):
    """A value as TOML has it."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {written(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(written(item) for item in value) + "]"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:_}"
    return json.dumps(value, ensure_ascii=False)


def page():
    """The whole page."""
    return HEAD + "\n" + "\n".join(Reference(json.loads(SCHEMA.read_text("utf-8"))).sections)


def main():
    if sys.argv[1:] == ["--check"]:
        if PAGE.exists() and PAGE.read_text("utf-8") == page():
            return 0
        print(f"{PAGE.relative_to(ROOT)} is not what the schema says; .ci/manifest-reference.py writes it", file=sys.stderr)
        return 1
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
