"""Merging on diagrams: candidates are the roots of one diagram with the same attribute.

Roots of one diagram have the same children, so with the same attribute they differ in one predicate
(figure 10 of Li, Hou and Jacobsen, 2005, read as its text says).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.messages import ANY_FILTER
from penstock.predicates.boxes import Box
from penstock.routing.diagrams.table import DiagramTable
from penstock.routing.interests import Interest
from penstock.routing.merging.measures import Measure
from penstock.routing.merging.mergers import Merger, find_mergers
from penstock.routing.merging.rules import (
    MergeRule,
    drop_predicates,
    greater_with_equal,
    is_present,
    less_with_equal,
)

TABLE_1: tuple[MergeRule, ...] = (less_with_equal, greater_with_equal, is_present)
"""The rules of the paper's Table 1. Two equalities have none."""

WITH_DROPPING: tuple[MergeRule, ...] = (*TABLE_1, drop_predicates)
"""Also the rule that the paper's text gives as an example of more rules: predicates that differ are
dropped. It applies to any two siblings."""

_MAX_PASSES = 10


def filter_of(box: Box) -> Interest:
    """A conjunction over one table as an interest."""
    return Interest(0, box, (ANY_FILTER,))


def merge_diagrams(
    table: DiagramTable,
    first_number: int,
    *,
    measure: Measure | None = None,
    threshold: float = 0.0,
    advertised: Sequence[Interest] = (),
    rules: Sequence[MergeRule] = WITH_DROPPING,
) -> int:
    """Merge until nothing changes; mergers are subscriptions with numbers from `first_number` on.
    Returns the number of mergers."""
    made = 0
    originals: dict[int, list[Interest]] = {}
    for _ in range(_MAX_PASSES):
        before = made
        for siblings in list(_siblings(table)):
            for merger in find_mergers(
                siblings,
                measure=measure,
                threshold=threshold,
                advertised=advertised,
                rules=rules,
                originals=originals,
            ):
                # Another merger may have replaced a part since.
                if all(part in table for part in merger.parts):
                    own = _replace(table, first_number + made, merger, originals)
                    if measure and measure.measured(merger.interest, own, advertised).degree > 0:
                        originals[first_number + made] = own
                    made += 1
        if made == before:
            break
    return made


def _replace(
    table: DiagramTable, number: int, merger: Merger, originals: dict[int, list[Interest]]
) -> list[Interest]:
    """Replace the parts, and all else that the merger covers, by it; returns the originals."""
    gone = dict(merger.parts)
    for part in merger.parts:
        table.remove(part)
    covered = table.relations(merger.interest.base).covers
    gone |= {name: filter_of(table[name]) for name in covered}
    table.insert(number, merger.interest.base)
    return [one for name, part in gone.items() for one in originals.pop(name, [part])]


def _siblings(table: DiagramTable) -> Iterator[dict[int, Interest]]:
    for group in list(table.diagrams.values()):
        if len(group) < 2:
            continue
        by_attribute: dict[int, dict[int, Interest]] = {}
        for subscription in group:
            column = table.top_column(subscription)
            own = by_attribute.setdefault(column, {})
            own[subscription] = filter_of(table[subscription])
        yield from (own for own in by_attribute.values() if len(own) > 1)
