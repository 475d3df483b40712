"""Plain events of known tables, read by a parser that is made for their columns.

`decode_event` and `check` read whatever publishers send, and say what is wrong with it. Nearly all
of it is a plain line whose values have the types of their columns; for those, a parser that knows
the columns gives the checked change at once, several times sooner. What it cannot vouch for it
leaves to them, so both ways always agree.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import InvalidOperation
from typing import Annotated, Any, Union

import msgspec

from penstock.catalog import Catalog, Column, Relation, Row, Stored
from penstock.errors import ChangeError
from penstock.flow.changes import Checked, Op, check
from penstock.flow.events import decode_event
from penstock.flow.per_catalog import per_catalog
from penstock.flow.strict_json import MAX_EVENT_BYTES

_UNSET = msgspec.UNSET
_INSERT, _UPSERT = Op.INSERT, Op.UPSERT  # members of enums take long to reach
_OPS: dict[Any, Op] = {_UNSET: _INSERT, **{op.value: op for op in Op}}

MAX_FORMS = 500
"""Parsers for so many relations are made in a fifth of a second; others are read the long way."""

_astuple = msgspec.structs.astuple


def read_change(raw: bytes, catalog: Catalog, offset: int) -> Checked:
    """The change that an event asks for; ChangeError if it cannot be read, or does not fit."""
    return reader_of(catalog).read(raw, offset)


@per_catalog
def reader_of(catalog: Catalog) -> PlainReader:
    """The reader of the relations that a catalog has now."""
    return PlainReader(catalog)


class PlainReader:
    """Reads the events of the relations that a catalog had when it was made."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        relations = list(catalog)[:MAX_FORMS]
        self._forms = {relation.name: _Form(relation, catalog) for relation in relations}
        # A tagged union: the name of the table says how to read the row.
        events = tuple(form.event for form in self._forms.values())
        self._decoder = msgspec.json.Decoder(Union[events]) if events else None  # noqa: UP007

    def read(self, raw: bytes, offset: int) -> Checked:
        """The change that an event asks for; ChangeError if it cannot be read, or does not fit."""
        found = self._plain(raw, offset)
        return check(decode_event(raw), self._catalog, offset) if found is None else found

    def _plain(self, raw: bytes, offset: int) -> Checked | None:
        """A change of the usual kind; None for what needs a closer look."""
        if self._decoder is None or len(raw) > MAX_EVENT_BYTES:
            return None
        try:
            event = self._decoder.decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, InvalidOperation):
            return None
        except RecursionError:
            # Whatever stands before the table is skipped, level by level. No plain event nests so
            # deep; the long way counts the levels before it parses.
            return None
        form = self._forms[type(event).__name__]
        written = event.op
        op = _OPS.get(written)
        if form.since >= offset or op is None:
            return None
        values = _astuple(event.row)
        missing = values.count(_UNSET)
        members = len(values) - missing + (2 if written is _UNSET else 3)
        if raw.count(b":") != members and not _each_once(raw, members, values):
            return None
        try:
            return form.checked(op, values, missing, offset)
        except ChangeError:
            return None  # the long way says it better


def _each_once(raw: bytes, members: int, values: tuple[Any, ...]) -> bool:
    """Whether no member was given twice: each has a colon, and the others are in texts."""
    colons = raw.count(b":")
    texts = sum(value.count(":") for value in values if isinstance(value, str))
    return colons == members + texts and b"\\" not in raw


class _Form:
    """How the events of one relation are written."""

    def __init__(self, relation: Relation, catalog: Catalog) -> None:
        self._relation = relation
        self._everything = tuple(range(len(relation.columns)))
        self.since = catalog.since(relation.name)
        fields = [(f"c{i}", _field_type(c), _UNSET) for i, c in enumerate(relation.columns)]
        names = {f"c{i}": column.name for i, column in enumerate(relation.columns)}
        row = msgspec.defstruct("Row", fields, rename=names, forbid_unknown_fields=True)
        self.event = msgspec.defstruct(
            relation.name,
            [("row", row), ("op", str | msgspec.UnsetType, _UNSET)],
            tag_field="table",
            tag=relation.name,
            forbid_unknown_fields=True,
        )
        self._stores: list[tuple[int, Callable[[Any], Stored]]] = [
            (i, column.type.store)
            for i, column in enumerate(relation.columns)
            if not column.type.is_stored_as_written
        ]
        self._required = [i for i, column in enumerate(relation.columns) if not column.nullable]
        self._is_stream, self._key = relation.is_stream, relation.key
        # Integers are their own keys.
        is_plain = len(relation.key) == 1 and relation.columns[relation.key[0]].type.json_as is int
        self._plain_key = relation.key[0] if is_plain else None

    def checked(self, op: Op, values: tuple[Any, ...], missing: int, offset: int) -> Checked | None:
        """The change in stored values, or None; ChangeError if a value does not fit its type."""
        if self._is_stream and op is not _INSERT:
            return None
        is_whole = op is _INSERT or op is _UPSERT
        if missing:
            needed = self._required if is_whole else self._key
            if any(values[i] is _UNSET for i in needed):
                return None
        given = self._everything if is_whole or not missing else _given(values)
        row = self._stored(values, missing)
        at = self._plain_key
        key = self._relation.key_of(row, offset) if at is None else (values[at],)
        return Checked(self._relation, op, key, row, given)

    def _stored(self, values: tuple[Any, ...], missing: int) -> Row:
        if not missing and not self._stores:
            return values
        row = [None if value is _UNSET else value for value in values] if missing else list(values)
        for i, store in self._stores:
            if row[i] is not None:
                row[i] = store(row[i])
        return tuple(row)


def _given(values: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple([i for i, value in enumerate(values) if value is not _UNSET])


def _field_type(column: Column) -> Any:
    """What a column's values are in JSON; anything else is not for this parser."""
    written: Any = column.type.json_as
    if written is int:
        lowest, highest = column.type.key_range
        assert isinstance(lowest, int)
        assert isinstance(highest, int)
        written = Annotated[int, msgspec.Meta(ge=lowest, le=highest)]
    either = written | msgspec.UnsetType
    return either | None if column.nullable else either
