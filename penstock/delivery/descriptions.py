"""What a reader needs to follow a subscription away from its home, and its encoding as plain
data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.catalog import Catalog
from penstock.catalog.derived import base_name
from penstock.catalog.plain import plain_relation, relation_from_plain
from penstock.client import Initial
from penstock.delivery.marks import mark_point
from penstock.delivery.registration import Registration
from penstock.errors import NetworkError
from penstock.messages import Point
from penstock.query import Query, plain_query, query_from_plain
from penstock.spaces import (
    Decomposition,
    Replan,
    decomposition_from_plain,
    place,
    plain_decomposition,
)


@dataclass(frozen=True, slots=True)
class Description:
    id: int
    query: Query
    decomposition: Decomposition | None
    initial: Initial
    replans: tuple[tuple[int, Decomposition], ...]
    start: int
    """The sequence number after which its first batch begins."""
    end: int
    """The sequence number of the last batch."""
    known_to: int
    """The record of the log up to which its changes are included."""

    def registration(self) -> Registration:
        return Registration(
            self.id, self.query, self.decomposition, self.initial, self._replans_between
        )

    def points(self) -> list[Point]:
        """The points of all its decompositions, so that no batch is incomplete, and that of the
        marks."""
        only_changes = self.initial is Initial.NONE
        chosen = [self.decomposition, *(one for _, one in self.replans)]
        placed = [
            one.point
            for decomposition in chosen
            for one in place(self.query, self.id, decomposition, changes_only=only_changes)
        ]
        return [mark_point(self.id), *dict.fromkeys(placed)]

    def _replans_between(self, low: int, high: int) -> list[Replan]:
        return [
            Replan(offset, self.id, chosen)
            for offset, chosen in self.replans
            if low <= offset < high
        ]


def plain_description(described: Description, catalog: Catalog) -> list[object]:
    tables = dict.fromkeys(base_name(node.relation.name) for node in described.query.nodes)
    chosen = described.decomposition
    return [
        described.id,
        [plain_relation(catalog[name]) for name in tables],
        plain_query(described.query),
        None if chosen is None else plain_decomposition(chosen),
        str(described.initial),
        [[offset, plain_decomposition(one)] for offset, one in described.replans],
        described.start,
        described.end,
        described.known_to,
    ]


def description_from_plain(plain: Any) -> Description:
    """NetworkError if it is not a description that this release understands."""
    try:
        number, relations, query, chosen, initial, replans, *places = plain
        start, end, known_to = map(int, places)
        catalog = Catalog()
        for relation in relations:
            catalog.add(relation_from_plain(relation), 0)
        return Description(
            int(number),
            query_from_plain(query, catalog),
            None if chosen is None else decomposition_from_plain(chosen),
            Initial(initial),
            tuple((int(offset), decomposition_from_plain(one)) for offset, one in replans),
            start,
            end,
            known_to,
        )
    except (TypeError, ValueError, LookupError, msgspec.MsgspecError) as error:
        raise NetworkError(
            "the description of a subscription cannot be read",
            detail=str(error),
            hint="use the same release of Penstock for brokers and readers",
        ) from None
