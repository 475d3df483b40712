"""Changes requested by publishers: checked against a table, resolved against its rows.

A `Change` is a request in outside values. `check` turns it into a `Checked` change (stored values,
known key) and needs only the catalog. `row_after` computes the new version of the row with this
key, and needs only the current one. Hub and pipeline call the same two functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from penstock.catalog import Catalog, Outside, Relation, Row, RowKey, Stored
from penstock.errors import ChangeError


class Op(StrEnum):
    INSERT = "insert"
    UPDATE = "update"
    UPSERT = "upsert"
    DELETE = "delete"
    REMOVE = "remove"
    """Delete the row if it exists. With `UPSERT`, for publishers that deliver at least once."""


# Attribute access on enums is slow.
_INSERT, _UPSERT, _DELETE, _REMOVE = Op.INSERT, Op.UPSERT, Op.DELETE, Op.REMOVE


@dataclass(frozen=True, slots=True)
class Change:
    """One requested change. An update gives the key and the columns that change; a delete needs
    only the key; an upsert replaces the whole row, or inserts it; a remove deletes the row if it
    exists.

    With `at_least_once`, a suffix of the changes may be delivered again, in order: a row that is
    inserted may already exist, and one that is deleted may be gone.
    """

    table: str
    op: Op
    row: Mapping[str, Outside]
    at_least_once: bool = False


class Checked(NamedTuple):
    """A change whose values fit the relation. `given` are the columns that the change contains."""

    relation: Relation
    op: Op
    key: RowKey
    row: Row
    given: tuple[int, ...]


class Delta(NamedTuple):
    """What the change at an offset does to one row: `old` is None for a new row, `new` for a
    deleted one."""

    offset: int
    relation: Relation
    key: RowKey
    old: Row | None
    new: Row | None


def check(change: Change, catalog: Catalog, offset: int) -> Checked:
    """The change in stored values; ChangeError if it does not fit the catalog at `offset`."""
    relation = catalog.get(change.table, offset)
    if relation is None:
        known = ", ".join(catalog.names()[:10]) or "none"
        raise ChangeError(f"unknown table {change.table}", hint=f"known tables: {known}")
    op = _repeatable_op(change, relation) if change.at_least_once else change.op
    return check_row(relation, op, change.row, offset)


def check_row(relation: Relation, op: Op, values: Mapping[str, Outside], offset: int) -> Checked:
    """An operation on a relation in stored values; ChangeError if the values do not fit."""
    if op is _INSERT or (op is _UPSERT and not relation.is_stream):
        row = relation.store_row(values)
        return Checked(relation, op, relation.key_of(row, offset), row, relation.all_columns)
    if relation.is_stream:
        raise ChangeError(
            f"{op} on stream {relation.name}: events can only be inserted",
            hint="declare it with CREATE TABLE if its rows change",
        )
    return _check_partial(relation, op, values)


def _repeatable_op(change: Change, relation: Relation) -> Op:
    """The idempotent form of the operation. A stream has none: an event that is delivered twice is
    stored twice, unless it has a key."""
    if relation.is_stream:
        return Op.INSERT if change.op is Op.UPSERT else change.op
    return {Op.INSERT: Op.UPSERT, Op.DELETE: Op.REMOVE}.get(change.op, change.op)


def _check_partial(relation: Relation, op: Op, values: Mapping[str, Outside]) -> Checked:
    """An update or delete: the key is required, other columns are optional."""
    row: list[Stored] = [None] * len(relation.columns)
    given: list[int] = []
    for name, value in values.items():
        position = relation.positions.get(name.lower())
        if position is None:
            raise relation.unknown_column(name)
        if position in given:
            raise ChangeError(f"column {name} of {relation.name} is given twice")
        row[position] = relation.store_value(relation.columns[position], value)
        given.append(position)
    missing = [relation.columns[i].name for i in relation.key if i not in given]
    if missing:
        raise ChangeError(
            f"{op} on {relation.name} lacks key column {missing[0]}",
            hint="a row is found by its primary key",
        )
    stored = tuple(row)
    return Checked(relation, op, relation.key_of(stored, 0), stored, tuple(sorted(given)))


def row_after(checked: Checked, current: Row | None) -> Row | None:
    """The row with the change's key after the change, None if it is deleted; ChangeError if the
    change cannot be applied."""
    relation, op, key, row, named = checked
    if op is _INSERT:
        if current is not None:
            raise refusal(relation, op, key)
    elif op is _REMOVE:
        return None
    elif op is not _UPSERT:
        if current is None:
            raise refusal(relation, op, key)
        if op is _DELETE:
            return None
        given = set(named)
        return tuple([row[i] if i in given else value for i, value in enumerate(current)])
    return row


def is_same_row(relation: Relation, old: Row | None, new: Row | None) -> bool:
    """Whether a change has no effect. As in SQL, NaN equals itself, and -0.0 equals 0.0."""
    if old == new:
        return True
    if old is None or new is None or not relation.has_doubles:
        return False
    return all(a == b or (a != a and b != b) for a, b in zip(old, new, strict=True))


def refusal(relation: Relation, op: Op, key: RowKey) -> ChangeError:
    """Why an operation cannot be applied to the row with this key."""
    shown = _shown_key(relation, key)
    if op is Op.INSERT:
        return ChangeError(
            f"{relation.name} already has a row with key {shown}",
            hint="publish an update or an upsert",
        )
    return ChangeError(f"{relation.name} has no row with key {shown}")


def _shown_key(relation: Relation, key: RowKey) -> str:
    return ", ".join(f"{name} = {value}" for name, value in relation.show_key(key).items())
