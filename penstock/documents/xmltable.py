"""From the XMLTABLE of a subscription to a tree pattern.

    XMLTABLE('//item[location = 'Asia']' PASSING doc
             COLUMNS author VARCHAR PATH './/author', headline XML PATH './/headline')

The row path gives the trunk of the pattern, the columns give its returned nodes: `XML` is the
subtree (`cont`), any other type the text value (`val`). Paths with a common prefix share its nodes,
so `address/city` and `address/zip` are of the same address. A row is a match of the whole pattern:
a column with several matches gives several rows, one with none gives no row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from penstock.documents.paths import Path, Step, parse_path
from penstock.documents.patterns import Axis, PatternNode, Predicate, TreePattern, canonical_pattern
from penstock.errors import SqlError

XML_TYPE = "XML"


@dataclass(frozen=True, slots=True)
class ColumnPath:
    """A column as written: its name, its SQL type and its path."""

    name: str
    type: str
    path: str


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of the result: a node of the pattern, and which of its attributes."""

    name: str
    node: int
    is_content: bool


@dataclass(frozen=True, slots=True)
class TableView:
    """A view as a pattern in canonical form, and the columns it was written with."""

    pattern: TreePattern
    columns: tuple[OutputColumn, ...]


@dataclass
class _Twig:
    """A pattern node under construction."""

    label: str
    axis: Axis
    predicate: Predicate | None
    val: bool = False
    cont: bool = False
    twigs: list[_Twig] = field(default_factory=list)
    position: int = -1

    @classmethod
    def of(cls, step: Step) -> _Twig:
        twig = cls(step.label, step.axis, step.predicate)
        for branch in step.branches:
            twig.grow(branch)
        return twig

    def grow(self, steps: Iterable[Step]) -> _Twig:
        """Add a path below this twig; returns its last node."""
        twig = self
        for step in steps:
            below = _Twig.of(step)
            twig.twigs.append(below)
            twig = below
        return twig


def table_view(row_path: str, columns: Sequence[ColumnPath]) -> TableView:
    """The view of an XMLTABLE, or a SqlError that says what cannot be expressed."""
    if not columns:
        raise SqlError("XMLTABLE has no columns", hint="write COLUMNS name VARCHAR PATH './/...'")
    names: set[str] = set()
    for column in columns:
        if column.name in names:
            raise SqlError(f"The column {column.name!r} is declared twice")
        names.add(column.name)
    rows = parse_path(row_path)
    if not rows.is_absolute:
        raise SqlError(
            "The row path does not begin at the document",
            hint="begin it with '/' or '//'",
            sql=row_path,
            position=0,
        )
    trunk = [_Twig.of(step) for step in rows.steps]
    for above, below in pairwise(trunk):
        above.twigs.append(below)
    ends = _grow_columns(trunk[-1], columns)
    nodes: list[PatternNode] = []
    _flatten(trunk[0], -1, nodes)
    pattern, places = canonical_pattern(TreePattern(tuple(nodes)))
    outputs = tuple(
        OutputColumn(column.name, places[twig.position], _is_content(column))
        for column, twig in zip(columns, ends, strict=True)
    )
    return TableView(pattern, outputs)


def _grow_columns(row: _Twig, columns: Sequence[ColumnPath]) -> list[_Twig]:
    """The last node of each column's path; paths with a common prefix share its nodes."""
    known: dict[tuple[Step, ...], _Twig] = {(): row}
    ends = []
    for column in columns:
        steps = _column_steps(column)
        for length in range(1, len(steps) + 1):
            if steps[:length] not in known:
                parent = known[steps[: length - 1]]
                known[steps[:length]] = parent.grow(steps[length - 1 : length])
        twig = known[steps]
        if _is_content(column):
            twig.cont = True
        else:
            twig.val = True
        ends.append(twig)
    return ends


def _column_steps(column: ColumnPath) -> tuple[Step, ...]:
    path: Path = parse_path(column.path)
    if path.is_absolute:
        raise SqlError(
            f"The path of column {column.name!r} begins at the document",
            hint="begin it with './' or './/' to search below the row's node",
            sql=column.path,
            position=0,
        )
    return path.steps


def _is_content(column: ColumnPath) -> bool:
    return column.type.strip().upper() == XML_TYPE


def _flatten(twig: _Twig, parent: int, nodes: list[PatternNode]) -> None:
    twig.position = len(nodes)
    nodes.append(
        PatternNode(twig.label, parent, twig.axis, twig.predicate, val=twig.val, cont=twig.cont)
    )
    for below in twig.twigs:
        _flatten(below, twig.position, nodes)
