"""The component's exports: the functions of wit/tool.wit. What they do is in `counting`."""

from componentize_py_types import Err
from wit_world.exports.text import Counts

import counting


class Text:
    """What the host calls; the name is the interface's."""

    def count_words(self, text: str, min_length: int | None) -> Counts:
        try:
            return Counts(*counting.count(text, 1 if min_length is None else min_length))
        except ValueError as problem:
            raise Err(str(problem)) from None


# This runs once, when the component is built. Modules that Python loads where it needs them are there then; a call could
# not load them, as it sees no files.
Text().count_words("one two\nthree", None)
