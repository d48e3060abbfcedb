"""The component's exports: the contract, with prompts, completion and resources. What they say is in book.py."""

import json

from componentize_py_types import Err
from wit_world.exports.completion import Completions, Subject_Prompt, Typed
from wit_world.exports.prompts import Argument, Message, Prompt, PromptResult
from wit_world.exports.resources import Contents, Definition, Variable
from wit_world.imports.types import (
    CallResult,
    Content_EmbeddedResource,
    Content_Text,
    EmbeddedResource,
    Failure_InvalidInput,
    Given,
    Hints,
    ResourceBody_Text,
    Role,
    TextContent,
    Tool,
)

import book

MARKDOWN = "text/markdown"
INPUT = {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"], "additionalProperties": False}
RECIPE = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "uri": {"type": "string"}},
    "required": ["title", "uri"],
    "additionalProperties": False,
}
OUTPUT = {
    "type": "object",
    "properties": {"recipes": {"type": "array", "items": RECIPE}},
    "required": ["recipes"],
    "additionalProperties": False,
}


def text(said: str) -> Content_Text:
    return Content_Text(TextContent(text=said, annotations=None, meta_json=None))


class Tools:
    def list_tools(self) -> list[Tool]:
        return [
            Tool(
                name="cookbook_find",
                title="Find a recipe",
                description="Finds recipes by words of their titles. Gives addresses to read.",
                input_schema_json=json.dumps(INPUT),
                output_schema_json=json.dumps(OUTPUT),
                hints=Hints(read_only=True, destructive=None, idempotent=None, open_world=False),
                icons=[],
                meta_json=None,
            )
        ]

    def call_tool(self, name: str, arguments_json: str) -> CallResult:
        names = book.names(json.loads(arguments_json)["words"])
        found = [{"title": book.title(name), "uri": f"{book.SCHEME}{name}"} for name in names]
        said = "".join(f"{recipe['title']}: {recipe['uri']}\n" for recipe in found) or "There is no such recipe.\n"
        structured = json.dumps({"recipes": found})
        return CallResult(content=[text(said)], structured_json=structured, is_error=False, meta_json=None)


class Prompts:
    def list_prompts(self) -> list[Prompt]:
        recipe = Argument(name="recipe", title="Recipe", description="Its name.", required=True, values=[])
        people = Argument(name="people", title=None, description="For how many.", required=False, values=["1", "2", "4", "8"])
        return [
            Prompt(
                name="cook",
                title="Cook with me",
                description="Goes through a recipe step by step.",
                arguments=[recipe, people],
                icons=[],
                meta_json=None,
            )
        ]

    def get_prompt(self, name: str, arguments: list[Given]) -> PromptResult:
        given = {argument.name: argument.value for argument in arguments}
        uri = book.SCHEME + given["recipe"]
        recipe = book.read(uri)
        if recipe is None:
            raise Err(Failure_InvalidInput(f"there is no recipe {given['recipe']}"))
        request = f"Cook this with me, one step after the other, for {given.get('people', 'as many as it says')}."
        body = EmbeddedResource(
            uri=uri, mime_type=MARKDOWN, body=ResourceBody_Text(recipe), annotations=None, meta_json=None
        )
        messages = [Message(role=Role.USER, content=Content_EmbeddedResource(body)), Message(role=Role.USER, content=text(request))]
        return PromptResult(description=None, messages=messages, meta_json=None)


class Completion:
    def complete(self, typed: Typed) -> Completions:
        # The host knows the numbers of people itself. Names are those of the prompt and of the template.
        wanted = "recipe" if isinstance(typed.subject, Subject_Prompt) else "name"
        values = book.names(typed.value) if typed.argument == wanted else []
        return Completions(values=values, total=len(values), has_more=False)


class Resources:
    def list_resources(self) -> list[Definition]:
        def definition(uri: str, name: str, title: str, size: int | None, variables: list[Variable]) -> Definition:
            return Definition(
                uri=uri,
                name=name,
                title=title,
                description=None,
                mime_type=MARKDOWN,
                size=size,
                annotations=None,
                icons=[],
                meta_json=None,
                variables=variables,
            )

        index = definition(book.SCHEME, "index", "All recipes", len(book.index().encode()), [])
        return [index, definition(book.SCHEME + "{name}", "recipe", "A recipe", None, [])]

    def read_resource(self, uri: str) -> list[Contents]:
        found = book.read(uri)
        if found is None:
            raise Err(Failure_InvalidInput(f"there is no recipe at {uri}"))
        meta = json.dumps({"cookbook/lines": found.count("\n")})
        return [Contents(uri=None, mime_type=None, body=ResourceBody_Text(found), meta_json=meta)]


# This runs once, when the component is built. Modules that Python loads where it needs them are there then.
Tools().list_tools()
Tools().call_tool("cookbook_find", '{"words": "pancakes"}')
Prompts().list_prompts()
Prompts().get_prompt("cook", [Given(name="recipe", value="porridge")])
Resources().list_resources()
Resources().read_resource(book.SCHEME)
