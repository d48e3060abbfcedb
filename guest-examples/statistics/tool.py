"""The component's exports: the functions of wit/statistics.wit. Reading is in `reading`, arithmetic in `arithmetic`.
"""

from componentize_py_types import Err
from wit_world.exports import tables
from wit_world.exports.tables import Cell, Column, Group, Measure, Missing, Relation, Summary

import arithmetic
import reading


class Tables:
    """What the host calls; the name is the interface's."""

    def summarize(self, table: str) -> Summary:
        read = _read(table)
        return Summary(len(read.rows), [self._column(read, name) for name in read.names])

    def group_by(self, table: str, key: str, value: str, measure: Measure) -> list[Group]:
        read = _read(table)
        keys, numbers = _cells(read, key), _numbers(read, value)
        groups: dict[str, list[float | None]] = {}
        for name, number in zip(keys, numbers):
            groups.setdefault(name, []).append(number)
        measured = [
            Group(name, len(found), arithmetic.measure(measure.name, [n for n in found if n is not None]))
            for name, found in groups.items()
        ]
        # Groups without a value come last, equal ones in the order of the table.
        return sorted(measured, key=lambda group: (group.value is None, -(group.value or 0.0)))

    def relate(self, table: str, x: str, y: str) -> Relation:
        read = _read(table)
        rows = zip(_numbers(read, x), _numbers(read, y))
        pairs = [(a, b) for a, b in rows if a is not None and b is not None]
        if len(pairs) < 2:
            raise Err(tables.Problem_TooFew(f"{len(pairs)} rows have a number in both columns; 2 are needed"))
        return Relation(len(pairs), *arithmetic.relation(pairs))

    def _column(self, read: reading.Table, name: str) -> Column:
        cells = [cell for cell in _cells(read, name) if cell]
        numbers = [reading.number(cell) for cell in cells]
        if not cells:
            content = tables.Content_Empty()
        elif None in numbers:
            frequent = [tables.Occurrence(*each) for each in arithmetic.frequent(cells)]
            content = tables.Content_Texts(tables.Texts(len(cells), len(set(cells)), frequent))
        else:
            content = tables.Content_Numbers(tables.Numbers(**arithmetic.spread(numbers)))
        return Column(name, len(read.rows) - len(cells), content)


def _read(text: str) -> reading.Table:
    try:
        return reading.table(text)
    except reading.NotATable as reason:
        raise Err(tables.Problem_NotATable(str(reason))) from None


def _cells(read: reading.Table, name: str) -> list[str]:
    if name not in read.names:
        raise Err(tables.Problem_NoSuchColumn(Missing(name, read.names)))
    at = read.names.index(name)
    return [row[at] for row in read.rows]


def _numbers(read: reading.Table, name: str) -> list[float | None]:
    """The numbers of a column, with `None` for an empty cell."""
    numbers = []
    for row, cell in enumerate(_cells(read, name), start=1):
        found = reading.number(cell) if cell else None
        if cell and found is None:
            raise Err(tables.Problem_NotANumber(Cell(name, row, cell)))
        numbers.append(found)
    return numbers


# This runs once, when the component is built, and every call begins with the memory that it left. Modules that the
# standard library imports where it needs them are there then; a call could not load them, as it sees no files.
_EXAMPLE = "name,number\none,1\ntwo,2\nthree,3\nfour,4\nmany,100\n"
Tables().summarize(_EXAMPLE)
for _measure in Measure:
    Tables().group_by(_EXAMPLE, "name", "number", _measure)
Tables().relate(_EXAMPLE, "number", "number")
