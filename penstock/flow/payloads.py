"""Changes of the halves of a table, and the lifetime of payloads.

See `penstock.catalog.payload_split`. A payload is in the group of its digest as long as a row has
it. The row stage knows rows but not groups: it sends the payload whenever a row gets it. The join
stage, which knows the group, ignores a payload that is already there, and removes the payload after
the last row that has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.catalog import Row, RowKey
from penstock.catalog.payload_split import HalfRelation, Halves, is_split
from penstock.flow.changes import Delta
from penstock.joins import Group, GroupStep
from penstock.spaces import Edge

NARROW, PAYLOAD = 0, 1
"""The sides of the edge between two halves."""


def half_deltas(halves: Halves, run: Iterable[Delta]) -> Iterator[Delta]:
    """Changes of a relation, translated to both of its halves."""
    for delta in run:
        offset, _, key, old, new = delta
        was, is_now = (None if row is None else halves.narrow_row(row) for row in (old, new))
        if was != is_now:
            yield Delta(offset, halves.narrow, key, was, is_now)
        if new is None:
            continue
        payload = halves.payload_row(new)
        if old is None or halves.digest(old) != payload[0]:
            yield Delta(offset, halves.payload, _key(payload), None, payload)


def half_rows(
    half: HalfRelation, rows: Iterable[tuple[RowKey, Row]]
) -> Iterator[tuple[RowKey, Row]]:
    """The rows of a half, from those of the whole relation; each payload once."""
    if not half.is_payload:
        for key, row in rows:
            yield key, half.halves.narrow_row(row)
        return
    seen: set[RowKey] = set()
    for _, row in rows:
        payload = half.halves.payload_row(row)
        if _key(payload) not in seen:
            seen.add(_key(payload))
            yield _key(payload), payload


def _key(payload: Row) -> RowKey:
    digest = payload[0]
    assert isinstance(digest, str)
    return (digest,)


def with_payloads(edge: Edge, group: Group, steps: list[GroupStep]) -> list[GroupStep]:
    """The effective steps of a group, given those that the row stage sent."""
    if not is_split(edge.sides[NARROW].table):
        return steps
    return list(_settled(group, steps))


def _settled(group: Group, steps: Iterable[GroupStep]) -> Iterator[GroupStep]:
    rows = len(group.sides[NARROW])
    held = next(iter(group.sides[PAYLOAD].values()), None)
    taken = list(steps)
    # One record may change many rows of a document: keep the payload if a later step needs it.
    entering = {s.offset: i for i, s in enumerate(taken) if s.side == NARROW and s.new is not None}
    for number, step in enumerate(taken):
        if step.side == PAYLOAD:
            if held is None:
                held = step.new
                yield step
            continue
        yield step
        rows += (step.new is not None) - (step.old is not None)
        if rows == 0 and held is not None and entering.get(step.offset, -1) <= number:
            yield step._replace(side=PAYLOAD, key=_key(held), old=held, new=None)
            held = None
