"""Splits a table with bulky columns into two that are joined: its rows without them, and the
payloads.

The *narrow* half has the rows of the table, with a digest in place of the first bulky column and
NULL in place of the others. The *payload* half has one row for each distinct payload, identified by
its digest. So equal payloads are stored once, whichever rows have them, and a row that changes
elsewhere keeps its payload. NULL is a payload, too.

Halves are neither declared nor stored; they are derived from the table and the names of the
columns. Their names contain a character that SQL text cannot, so no table has the same name.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache

from penstock.catalog.derived import SEPARATOR
from penstock.catalog.relations import Column, Relation, Row
from penstock.catalog.text_types import StringType
from penstock.packing import pack

_NARROW, _PAYLOAD = "narrow", "payload"  # in the order of the sides of their edge
_ENDINGS = (SEPARATOR + _NARROW, SEPARATOR + _PAYLOAD)
_DIGEST_BYTES = 16


class HalfRelation(Relation):
    """One half of a relation; its rows are derived from those of the whole."""

    halves: Halves

    @property
    def declared(self) -> Relation:
        return self.halves.whole.declared

    @property
    def is_payload(self) -> bool:
        return is_payload(self.name)


@dataclass(frozen=True)
class Halves:
    """Both halves of a relation, for some columns as the payload."""

    whole: Relation
    columns: tuple[int, ...]
    narrow: HalfRelation
    payload: HalfRelation

    def narrow_row(self, row: Row) -> Row:
        bulky = set(self.columns)
        first = self.columns[0]
        digest = self.digest(row)
        return tuple(
            digest if i == first else None if i in bulky else value for i, value in enumerate(row)
        )

    def payload_row(self, row: Row) -> Row:
        return (self.digest(row), *(row[i] for i in self.columns))

    def digest(self, row: Row) -> str:
        content = pack([row[i] for i in self.columns])
        return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()


@lru_cache(maxsize=1024)
def halves_of(whole: Relation, columns: tuple[int, ...]) -> Halves:
    """The halves of a relation; the columns are in order, and none of them is part of a key."""
    digest = StringType()
    narrow = [
        Column(column.name, digest, nullable=i != columns[0]) if i in columns else column
        for i, column in enumerate(whole.columns)
    ]
    payload = [Column("digest", digest, nullable=False), *(whole.columns[i] for i in columns)]
    listed = ",".join(map(str, columns))
    name = _name(whole, listed, _NARROW)
    halves = Halves(
        whole,
        columns,
        HalfRelation(name, tuple(narrow), whole.key, whole.is_stream),
        HalfRelation(_name(whole, listed, _PAYLOAD), tuple(payload), (0,)),
    )
    for half in (halves.narrow, halves.payload):
        object.__setattr__(half, "halves", halves)
    return halves


def _name(whole: Relation, columns: str, half: str) -> str:
    return SEPARATOR.join((whole.name, columns, half))


def whole_name(name: str) -> str:
    """The relation that a half belongs to; the name itself if it is not a half."""
    return name.rsplit(SEPARATOR, 2)[0] if is_split(name) else name


def columns_like(relation: Relation) -> Relation:
    """The relation with the same column positions: itself, or the whole if it is the half without
    payloads."""
    if isinstance(relation, HalfRelation) and not relation.is_payload:
        return relation.halves.whole
    return relation


def is_split(name: str) -> bool:
    return name.endswith(_ENDINGS)


def is_payload(name: str) -> bool:
    return name.endswith(SEPARATOR + _PAYLOAD)


def split_names(name: str, whole: Relation) -> Halves:
    """The halves, one of which has this name, of a given table."""
    _, columns, _ = name.rsplit(SEPARATOR, 2)
    return halves_of(whole, tuple(map(int, columns.split(","))))


def half_named(name: str, whole: Relation) -> HalfRelation:
    halves = split_names(name, whole)
    return halves.payload if is_payload(name) else halves.narrow
