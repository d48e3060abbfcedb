"""The component's exports: the contract of wit/tools.wit. What the tool does is in `counting`."""

import json
from pathlib import Path

from componentize_py_types import Err
from wit_world.imports.types import CallResult, Failure_InvalidInput, Hints, Tool

import counting

# Read once, when the component is built: a call sees no files.
SCHEMAS = {name: (Path(__file__).parent / "schemas" / f"{name}.json").read_text("utf-8") for name in ("input", "output")}

DEFINITION = Tool(
    name="count_words",
    title="Count words",
    description="Counts the lines and words of a text, and finds its longest word.",
    input_schema_json=SCHEMAS["input"],
    output_schema_json=SCHEMAS["output"],
    hints=Hints(read_only=True, destructive=False, idempotent=True, open_world=False),
    icons=[],
    meta_json=None,
)


class Tools:
    """What the host calls; the name is the interface's."""

    def list_tools(self) -> list[Tool]:
        return [DEFINITION]

    def call_tool(self, name: str, arguments_json: str) -> CallResult:
        arguments = json.loads(arguments_json)
        try:
            lines, words, longest = counting.count(arguments["text"], arguments.get("min_length", 1))
        except ValueError as problem:
            raise Err(Failure_InvalidInput(str(problem))) from None
        answer = {"lines": lines, "words": words} | ({} if longest is None else {"longest": longest})
        return CallResult(content=[], structured_json=json.dumps(answer), is_error=False, meta_json=None)


# This runs once, when the component is built. Modules that Python loads where it needs them are there then.
Tools().call_tool("count_words", '{"text":"one two\\nthree"}')
