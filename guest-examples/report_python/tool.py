"""The component's exports: the contract. What is written is in `report`, and how other tools are called in `calling`."""

import json
from pathlib import Path

from componentize_py_types import Err
from wit_world.imports.types import CallResult, Failure_Failed, Hints, Tool

import report
from calling import CallFailed


def schema(name: str) -> str:
    # Read once, when the component is built: a call sees no files.
    return (Path(__file__).parent / "schemas" / f"{name}.json").read_text("utf-8")


def definition(name: str, title: str, description: str) -> Tool:
    schemas = name.removeprefix("report_")
    return Tool(
        name=name,
        title=title,
        description=description,
        input_schema_json=schema(f"{schemas}.input"),
        output_schema_json=schema(f"{schemas}.output"),
        hints=Hints(read_only=True, destructive=None, idempotent=None, open_world=False),
        icons=[],
        meta_json=None,
    )


TOOLS = [
    definition(
        "report_trip",
        "Report on a trip",
        "Writes a few lines on the usual weather where somebody goes, beside what it is like at home, with drier cities "
        "that are about as warm.",
    ),
    definition(
        "report_cities", "Cities by warmth", "Puts cities in the order of how warm their days usually are in a month."
    ),
]


class Tools:
    """What the host calls; the name is the interface's."""

    def list_tools(self) -> list[Tool]:
        return TOOLS

    def call_tool(self, name: str, arguments_json: str) -> CallResult:
        arguments = json.loads(arguments_json)
        try:
            answer = report.trip(**_renamed(arguments)) if name == "report_trip" else report.cities(**arguments)
        except CallFailed as failure:
            raise Err(Failure_Failed(str(failure))) from None
        return CallResult(content=[], structured_json=json.dumps(answer), is_error=False, meta_json=None)


def _renamed(arguments: dict) -> dict:
    # `from` is a word of Python's own.
    return {"home": arguments["from"], "there": arguments["to"], "month": arguments["month"]}


# This runs once, when the component is built. Modules that Python loads where it needs them are there then.
Tools().list_tools()
json.dumps(report.sorted_by_warmth([CallFailed("no climate")]))
