"""A content as plain data, and back.

A row is stored once, however many branches hold it and however many join rows it is part of. All
orders are preserved, so a restored content lists its rows like the saved one.
"""

from __future__ import annotations

from typing import Any

from penstock.catalog import Row
from penstock.client.content import Content
from penstock.messages import PointId
from penstock.query import Query
from penstock.spaces import Decomposition, decomposition_from_plain, plain_decomposition


def plain_content(content: Content) -> list[Any]:
    """The input of `restored_content`."""
    rows = _Numbered()
    branches = [
        [[(key, rows.number(row)) for key, row in branch.items(node)] for node in _nodes(content)]
        for branch in content.branches
    ]
    joined = [
        (key, [rows.number(part) for part in row], copies) for key, row, copies in content.joined()
    ]
    partners = [(point, key, sorted(of)) for (point, key), of in content.partners.items()]
    chosen = None if content.chosen is None else plain_decomposition(content.chosen)
    return [chosen, rows.rows, branches, joined, partners]


def restored_content(
    plain: list[Any], subscription: int, query: Query, *, quiet: bool = False
) -> Content:
    """The inverse of `plain_content`."""
    chosen, packed_rows, branches, joined, partners = plain
    content = Content(subscription, query, _decomposition(chosen), quiet=quiet)
    rows: list[Row] = [tuple(row) for row in packed_rows]
    for branch, nodes in zip(content.branches, branches, strict=True):
        for node, held in zip(_nodes(content), nodes, strict=True):
            for key, number in held:
                branch.put(node, tuple(key), rows[number])
    content.restore_joined(
        (tuple(map(tuple, key)), tuple([rows[number] for number in parts]), copies)
        for key, parts, copies in joined
    )
    for point, key, of in partners:
        content.partners[PointId(*point), tuple(key)] = set(map(tuple, of))
    return content


def _nodes(content: Content) -> range:
    return range(len(content.query.nodes))


def _decomposition(plain: list[Any] | None) -> Decomposition | None:
    return None if plain is None else decomposition_from_plain(plain)


class _Numbered:
    """Distinct rows, numbered."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._numbers: dict[int, int] = {}  # by id: the rows live as long as this

    def number(self, row: Row) -> int:
        number = self._numbers.setdefault(id(row), len(self.rows))
        if number == len(self.rows):
            self.rows.append(row)
        return number
