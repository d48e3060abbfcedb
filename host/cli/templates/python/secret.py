"""The component's exports: the functions of wit/tool.wit."""

from componentize_py_types import Err
from wit_world.exports.account import User

import web

API = "https://api.github.com"


class Account:
    """What the host calls; the name is the interface's."""

    def who_am_i(self) -> User:
        try:
            # There is no token here: the host adds it, as toolcell.toml says.
            answer = web.get(f"{API}/user", {"Accept": "application/json", "User-Agent": "{{name}}"})
        except web.Failed as problem:
            raise Err(str(problem)) from None
        return user(answer)


def user(answer: web.Answer) -> User:
    if answer.status == 401:
        raise Err("the API refuses the token: is the variable TOKEN set where toolcell runs?")
    if answer.status != 200:
        raise Err(f"the API answers {answer.status}: {answer.text()[:200]}")
    try:
        found = answer.json()
        return User(str(found["login"]), found.get("name"))
    except (ValueError, KeyError, TypeError):
        raise Err("the API answers in another form") from None
