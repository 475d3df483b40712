"""What a change of a table means to its halves, and how long a payload is kept.

See `penstock.catalog.payload_split`. A payload is in the group of its digest as long as a row has
it. The row stage knows rows but not groups: it hands on the payload whenever a row gets it. The
join stage, which knows the group, passes over a payload that is there already, and removes the
payload after the last row that has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.catalog import Relation, Row, RowKey
from penstock.catalog.payload_split import is_payload, is_split, split_names, table_of
from penstock.flow.changes import Delta
from penstock.joins import Group, GroupStep
from penstock.spaces import Edge, Side

NARROW, PAYLOAD = 0, 1
"""The sides of the edge between two halves."""


def feeds(relation: Relation, side: Side) -> bool:
    """Whether the rows of a table are those of a side, or what the side has of them."""
    return table_of(side.table) == relation.name


def relation_seen(side: Side, relation: Relation) -> Relation:
    """What the rows of a table are rows of to a side that they feed."""
    if not is_split(side.table):
        return relation
    halves = split_names(side.table, relation)
    return halves.payload if is_payload(side.table) else halves.narrow


def seen_from(side: Side, delta: Delta) -> Delta | None:
    """What a change is to the side of an edge that its table feeds; None if it is nothing."""
    if not is_split(side.table):
        return delta
    halves = split_names(side.table, delta.relation)
    if not is_payload(side.table):
        old, new = (None if r is None else halves.narrow_row(r) for r in (delta.old, delta.new))
        return None if old == new else Delta(delta.offset, halves.narrow, delta.key, old, new)
    if delta.new is None:
        return None
    payload = halves.payload_row(delta.new)
    if delta.old is not None and halves.digest(delta.old) == payload[0]:
        return None
    return Delta(delta.offset, halves.payload, _key(payload), None, payload)


def _key(payload: Row) -> RowKey:
    digest = payload[0]
    assert isinstance(digest, str)
    return (digest,)


def with_payloads(edge: Edge, group: Group, steps: list[GroupStep]) -> list[GroupStep]:
    """The steps that a group really takes, given those that the row stage asks for."""
    if not is_split(edge.sides[NARROW].table):
        return steps
    return list(_settled(group, steps))


def _settled(group: Group, steps: Iterable[GroupStep]) -> Iterator[GroupStep]:
    rows = len(group.sides[NARROW])
    held = next(iter(group.sides[PAYLOAD].values()), None)
    for step in steps:
        if step.side == PAYLOAD:
            if held is None:
                held = step.new
                yield step
            continue
        yield step
        rows += (step.new is not None) - (step.old is not None)
        if rows == 0 and held is not None:
            yield step._replace(side=PAYLOAD, key=_key(held), old=held, new=None)
            held = None
