"""Text to a table, cells to numbers. Knows nothing of components."""

import csv
import math
import re
from dataclasses import dataclass

# What may stand between cells; where several are in the header, the one that is there most often is taken.
DELIMITERS = ",;\t|"

# Digits, with "," or "_" between groups of three or none at all; a currency or a percent sign is not part of a number.
NUMBER = re.compile(r"[+-]?(\d+|\d{1,3}([,_]\d{3})+)?(\.\d+)?([eE][+-]?\d+)?", re.ASCII)


class NotATable(Exception):
    """The text is not a table; says where and why."""


@dataclass
class Table:
    """A header and rows, which all have as many cells as it."""

    names: list[str]
    rows: list[list[str]]


def table(text: str) -> Table:
    """Reads a table. Cells lose the spaces around them, and rows without anything in them are left out."""
    text = text.removeprefix("\ufeff")
    header = next((line for line in text.splitlines() if line.strip()), None)
    if header is None:
        raise NotATable("there is nothing in it")
    reader = csv.reader(text.splitlines(keepends=True), delimiter=_delimiter(header), strict=True, skipinitialspace=True)
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise NotATable(f"line {reader.line_num}: {error}") from None
    (_, names), *rows = [(line, row) for line, row in rows if any(row)]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise NotATable(f"two columns are called {repeated!r}")
    for line, row in rows:
        if len(row) != len(names):
            raise NotATable(f"line {line}: has {len(row)} cells, the header has {len(names)}")
    return Table(names, [row for _, row in rows])


def number(cell: str) -> float | None:
    """The number that a cell is; nothing where it is anything else, or too large to be told from infinity."""
    if not NUMBER.fullmatch(cell) or not any(character.isdigit() for character in cell):
        return None
    found = float(cell.replace(",", "").replace("_", ""))
    return found if math.isfinite(found) else None


def _delimiter(header: str) -> str:
    return max(DELIMITERS, key=header.count)
