"""The bodies of rows: changes and steps of groups, to bytes and back.

Relations and edges travel by name; the reader has them from the catalog and the index.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.catalog import Catalog, RowKey, Stored
from penstock.engine.changes import Checked, Op
from penstock.joins import Edge, GroupStep, JoinValue
from penstock.packing import pack, unpack

_OPS = {op.value: op for op in Op}


def pack_change(checked: Checked) -> bytes:
    return pack([checked.relation.name, checked.op, checked.key, checked.row, checked.given])


def unpack_change(body: bytes, catalog: Catalog) -> Checked:
    name, op, key, row, given = unpack(body)
    return Checked(catalog[name], _OPS[op], tuple(key), tuple(row), tuple(given))


def pack_step(step: GroupStep) -> bytes:
    return pack([step.edge.name, step.side, step.value, step.key, step.old, step.new])


def unpack_step(offset: int, number: int, body: bytes, edges: Mapping[str, Edge]) -> GroupStep:
    name, side, value, key, old, new = unpack(body)
    return GroupStep(
        offset, number, edges[name], side, tuple(value), tuple(key), _row(old), _row(new)
    )


def _row(values: list[Stored] | None) -> tuple[Stored, ...] | None:
    return None if values is None else tuple(values)


def row_place(relation: str, key: RowKey) -> bytes:
    """What decides where a row lives."""
    return pack([relation, key])


def group_place(edge: Edge, value: JoinValue) -> bytes:
    """What decides where a group lives."""
    return pack([edge.name, value])
