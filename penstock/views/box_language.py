"""Selections over key-value events as a language of views: boxes with the columns they return.

A view embeds in a query if its box contains the query's: every event that the query selects is in
the view. Views are joined on the event's id. `topic = 'sport'` and `location = 'England'`, each
returning the headline, together feed `topic = 'sport' AND location = 'England'`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from penstock.catalog.relations import Relation, Row
from penstock.errors import SqlError
from penstock.predicates import boxes
from penstock.predicates.boxes import Box
from penstock.views.language import MASK_BITS, Volume

ID_BYTES = 8


@dataclass(frozen=True, slots=True)
class BoxView:
    """A condition on one table, and the positions of the columns that are returned."""

    box: Box
    columns: tuple[int, ...]

    def __post_init__(self) -> None:
        if 1 + len(self.box) + len(self.columns) > MASK_BITS:
            raise SqlError(
                "The view has too many columns",
                detail=f"conditions and returned columns are at most {MASK_BITS - 1} together",
            )

    def attributes(self) -> list[tuple[str, int]]:
        """What must be covered: the event's id, each returned column, each condition."""
        conditions = [("test", column) for column, _ in self.box]
        return [("id", -1), *(("val", column) for column in self.columns), *conditions]


class BoxLanguage:
    """Implements `ViewLanguage` for boxes over one relation."""

    def __init__(self, relation: Relation, sample: Sequence[Row] = ()) -> None:
        self.relation = relation
        self.sample = sample

    def labels(self, view: BoxView) -> frozenset[Hashable]:
        return frozenset(column for column, _ in view.box)

    def demands(self, query: BoxView) -> int:
        return (1 << len(query.attributes())) - 1

    def embeds(self, view: BoxView, query: BoxView) -> int:
        if not boxes.covers(view.box, query.box):
            return 0
        mask = 0
        for place, (kind, column) in enumerate(query.attributes()):
            is_known = kind == "id" or column in view.columns
            if kind == "test":
                own = boxes.interval_of(view.box, column)
                is_known |= own == boxes.interval_of(query.box, column)
            mask |= is_known << place
        return mask

    def cost(self, view: BoxView) -> Volume:
        """Rows per event and their bytes, over the sample."""
        chosen = [row for row in self.sample if boxes.contains(view.box, self.relation, row)]
        rows = (len(chosen) + 0.5) / (len(self.sample) + 1)
        widths = [sum(len(str(row[c])) for c in view.columns) for row in chosen]
        width = sum(widths) / len(widths) if widths else 8.0 * len(view.columns)
        return Volume(rows, rows * (ID_BYTES + width))


EventResults = Mapping[int, tuple[object, ...]]
"""By event id: the values of the view's columns, for each selected event."""


def select_events(view: BoxView, relation: Relation, events: Mapping[int, Row]) -> EventResults:
    """A view's results, computed from the events."""
    return {
        number: tuple(row[column] for column in view.columns)
        for number, row in events.items()
        if boxes.contains(view.box, relation, row)
    }


def join_views(
    query: BoxView, relation: Relation, inputs: Sequence[tuple[BoxView, EventResults]]
) -> EventResults:
    """A query's results, computed from those of views that cover it."""
    common = set.intersection(*(set(results) for _, results in inputs))
    found: dict[int, tuple[object, ...]] = {}
    for number in sorted(common):
        known: dict[int, object] = {}
        for view, results in inputs:
            known.update(zip(view.columns, results[number], strict=True))
        if _passes(query, relation, known):
            found[number] = tuple(known[column] for column in query.columns)
    return found


def _passes(query: BoxView, relation: Relation, known: Mapping[int, object]) -> bool:
    """Tests the known columns; conditions on other columns hold already, or the views would not
    cover the query."""
    for column, interval in query.box:
        if column in known:
            value = known[column]
            key = None if value is None else relation.columns[column].type.key(value)  # type: ignore[arg-type]
            if not interval.contains(key):
                return False
    return True
