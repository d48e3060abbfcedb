"""The component's exports: the functions of wit/tool.wit."""

from componentize_py_types import Err
from wit_world.exports.todos import Todo

import web

API = "https://jsonplaceholder.typicode.com"


class Todos:
    """What the host calls; the name is the interface's."""

    def get_todo(self, id: int) -> Todo:
        try:
            answer = web.get(f"{API}/todos/{id}", {"Accept": "application/json"})
        except web.Failed as problem:
            raise Err(str(problem)) from None
        return todo(answer)


def todo(answer: web.Answer) -> Todo:
    if answer.status != 200:
        raise Err(f"the API answers {answer.status}: {reason(answer)}")
    try:
        found = answer.json()
        return Todo(str(found["title"]), bool(found["completed"]))
    except (ValueError, KeyError, TypeError):
        raise Err("the API answers in another form") from None


def reason(answer: web.Answer) -> str:
    """What an error says: its message, if it is JSON with one, else the beginning of its text."""
    try:
        return str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        return answer.text()[:200]
