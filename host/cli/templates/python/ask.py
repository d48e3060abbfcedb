"""The component's exports: the contract of wit/tools.wit."""

import json
from pathlib import Path

from componentize_py_types import Err
from wit_world.imports import asking
from wit_world.imports.asking import Answer, Answer_Accepted, Form, Inquiry, Question_Form, Refusal_Unsupported
from wit_world.imports.types import CallResult, Content_Text, Failure_Failed, Hints, TextContent, Tool

# Read once, when the component is built: a call sees no files.
INPUT = (Path(__file__).parent / "schemas" / "input.json").read_text("utf-8")

DAY = {
    "type": "object",
    "properties": {"day": {"type": "string", "title": "Day", "format": "date"}},
    "required": ["day"],
}


class Tools:
    """What the host calls; the name is the interface's."""

    def list_tools(self) -> list[Tool]:
        return [
            Tool(
                name="book_table",
                title="Book a table",
                description="Books a table in the canteen, for a day that the person is asked for.",
                input_schema_json=INPUT,
                output_schema_json=None,
                hints=Hints(read_only=False, destructive=False, idempotent=False, open_world=False),
                icons=[],
                meta_json=None,
            )
        ]

    def call_tool(self, name: str, arguments_json: str) -> CallResult:
        people = json.loads(arguments_json)["people"]
        form = Form(message=f"A table for {people}: on which day?", schema_json=json.dumps(DAY))
        try:
            # With some clients the call ends here, and begins anew once there is an answer: ask first, then change things.
            answer = asking.ask([Inquiry(key="day", question=Question_Form(form))])[0]
        except Err as refused:
            raise Err(Failure_Failed(reason(refused.value))) from None
        text = TextContent(text=booked(people, answer), annotations=None, meta_json=None)
        return CallResult(content=[Content_Text(text)], structured_json=None, is_error=False, meta_json=None)


def booked(people: int, answer: Answer) -> str:
    if isinstance(answer, Answer_Accepted):
        return f"A table for {people} is booked on {json.loads(answer.value)['day']}."
    return "Nothing is booked: the person chose no day."


def reason(refusal: asking.Refusal) -> str:
    return "this client asks nobody" if isinstance(refusal, Refusal_Unsupported) else "nobody answered"


# This runs once, when the component is built. Modules that Python loads where it needs them are there then.
booked(2, Answer_Accepted('{"day":"2026-01-31"}'))
json.dumps(DAY)
