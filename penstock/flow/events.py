"""Events: decoding the bytes of publishers into changes, and encoding changes as bytes.

An event is one change, in one of three forms: a plain line

    {"table": "stocks", "op": "insert", "row": {"id": 4, "symbol": "GOOG", "per": 52.1}}

(op may also be update, upsert, delete or remove, and is insert if missing), a Debezium change
event, or a CloudEvent (structured JSON, version 1.0) whose data is one of the former two.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from numbers import Integral
from typing import Any

import msgspec

from penstock.arguments import shown, text
from penstock.catalog import Catalog, Outside
from penstock.errors import ChangeError, EventError, NoChangeError
from penstock.flow.changes import Change, Checked, Op, check, check_row
from penstock.flow.debezium import change_from_debezium, looks_like_debezium
from penstock.flow.strict_json import MAX_EVENT_BYTES, MAX_EVENT_DEPTH, parse_json

__all__ = [
    "MAX_EVENT_BYTES",
    "change_from_mapping",
    "decode_event",
    "encode_change",
    "json_value",
    "read_change",
    "unreadable_file_event",
]

_OPS = {op.value: op for op in Op}
_UNREADABLE = "unreadable_file"
_PLAIN_MEMBERS = frozenset({"table", "op", "row"})
_FORMS = 'write {"table": ..., "op": "insert", "row": {...}}, a Debezium event or a CloudEvent'
_MAX_INTEGER_BITS = 4096  # far more than a column holds; Python refuses to write 4,300 digits
_ENCODER = msgspec.json.Encoder()
_AS_THEY_ARE = frozenset({bool, str})
_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1


class _PlainEvent(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A plain line, the form of nearly all events, for msgspec."""

    table: str
    row: dict[str, Any]
    op: str | msgspec.UnsetType = msgspec.UNSET


_PLAIN_DECODER = msgspec.json.Decoder(_PlainEvent, float_hook=Decimal)
_UNSET = msgspec.UNSET
_PLAIN_OPS: dict[str | msgspec.UnsetType, Op] = {op.value: op for op in Op}
_PLAIN_OPS[_UNSET] = Op.INSERT


def read_change(raw: bytes, catalog: Catalog, offset: int) -> Checked:
    """The change that an event asks for, in stored values; ChangeError if it cannot be read, or
    does not fit the catalog at `offset`."""
    plain = _read_plain(raw)
    if plain is not None:
        relation, op = catalog.get(plain.table, offset), _PLAIN_OPS.get(plain.op)
        if relation is not None and op is not None:
            return check_row(relation, op, plain.row, offset)
    return check(decode_event(raw), catalog, offset)


def decode_event(raw: bytes) -> Change:
    """The change that an event asks for; EventError if it cannot be read, NoChangeError if it asks
    for none."""
    plain = _read_plain(raw)
    if plain is not None and plain.op in _PLAIN_OPS:
        return Change(plain.table, _PLAIN_OPS[plain.op], plain.row)
    event = parse_json(raw)
    if isinstance(event, dict) and "specversion" in event:
        event = _data_of_cloud_event(event)
    if event is None:
        raise NoChangeError("null is a tombstone, not a change")
    if not isinstance(event, dict):
        raise EventError("the event is not a JSON object", hint=_FORMS)
    if looks_like_debezium(event):
        return change_from_debezium(event)
    if _UNREADABLE in event:
        raise _unreadable(event[_UNREADABLE])
    return change_from_mapping(event)


def _read_plain(raw: bytes) -> _PlainEvent | None:
    """A plain event with faultless JSON; None if only `parse_json` can decide."""
    if len(raw) > MAX_EVENT_BYTES or raw.count(b"{") + raw.count(b"[") > MAX_EVENT_DEPTH:
        return None
    try:
        event = _PLAIN_DECODER.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, InvalidOperation):
        return None
    # Every member has one colon outside of strings, so a duplicate member shows as an extra colon.
    # Colons in texts (timestamps) are subtracted, unless some may be written as \u003a.
    spare = raw.count(b":") - len(event.row) - (2 if event.op is _UNSET else 3)
    if spare:
        texts = [value for value in event.row.values() if type(value) is str]
        if b"\\" in raw or spare != sum(text.count(":") for text in texts):
            return None
    return event


def change_from_mapping(event: Mapping[str, Any]) -> Change:
    """A plain event, already parsed."""
    if not event.keys() <= _PLAIN_MEMBERS:
        unknown = next(name for name in event if name not in _PLAIN_MEMBERS)
        raise EventError(f"unknown member {shown(unknown)} in the event", hint=_FORMS)
    table, row = event.get("table"), event.get("row")
    if not isinstance(table, str):
        given = "" if table is None else f"not {shown(table)}"
        raise EventError('the event must name its "table"', detail=given, hint=_FORMS)
    if not isinstance(row, dict | Mapping):  # dict first: the fast test
        given = "" if row is None else f"not {shown(row)}"
        raise EventError('the event must have an object as its "row"', detail=given, hint=_FORMS)
    name = event.get("op", "insert")
    op = _OPS.get(name) if isinstance(name, str) else None
    if op is None:
        raise EventError(f"unknown op {shown(name)}", hint=f"known: {', '.join(_OPS)}")
    return Change(str.__str__(table), op, row)


def _data_of_cloud_event(event: dict[str, Any]) -> object:
    if event["specversion"] != "1.0":
        raise EventError(
            f"CloudEvents of version {event['specversion']!r:.20} are not supported",
            hint="version 1.0 is",
        )
    for name in ("id", "source", "type"):
        if not isinstance(event.get(name), str) or not event[name]:
            raise EventError(f"a CloudEvent must have the attribute {name!r}")
    if ("data" in event) == ("data_base64" in event):
        raise EventError('a CloudEvent must have either "data" or "data_base64"')
    kind = event.get("datacontenttype", "application/json")
    if not isinstance(kind, str) or not _is_json_type(kind):
        raise EventError(
            f"the data of a CloudEvent must be JSON, not {kind!r:.60}",
            hint="set datacontenttype to application/json",
        )
    data = event["data"] if "data" in event else parse_json(_from_base64(event["data_base64"]))
    if isinstance(data, dict) and "specversion" in data:
        raise EventError("a CloudEvent inside a CloudEvent is not supported")
    return data


def _is_json_type(content_type: str) -> bool:
    media = content_type.partition(";")[0].strip().lower()
    return media.endswith(("/json", "+json"))


def _from_base64(text: object) -> bytes:
    if not isinstance(text, str):
        raise EventError('"data_base64" of a CloudEvent must be a string')
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise EventError('"data_base64" of a CloudEvent is not base64', detail=str(error)) from None


def unreadable_file_event(name: str, error: EventError) -> bytes:
    """An event in place of a file, or the rest of one, that cannot be read.

    It is refused with the reason when it is processed, and so ends up in the quarantine, at the
    position where the events of the file would have been.
    """
    told = dict(zip(("reason", "detail", "hint"), error.reason(), strict=True), file=name)
    return _ENCODER.encode({_UNREADABLE: told})


def _unreadable(told: object) -> EventError:
    parts = told if isinstance(told, dict) else {}
    reason, detail, hint = (str(parts.get(name, "")) for name in ("reason", "detail", "hint"))
    file = str(parts.get("file", "?"))
    return EventError(
        reason if file in reason else f"{file}: {reason or 'a file that cannot be read'}",
        detail=detail,
        hint=hint,
    )


def encode_change(change: Change) -> bytes:
    """A change as a plain line. Decoding it gives an equivalent change."""
    row = {_column_name(name): json_value(name, value) for name, value in change.row.items()}
    try:
        return _ENCODER.encode({"table": change.table, "op": change.op.value, "row": row})
    except UnicodeEncodeError:
        raise ChangeError(
            f"a text for {change.table} is not Unicode",
            detail="a lone surrogate is not a character",
        ) from None
    except ValueError:  # Python refuses to write integers of thousands of digits
        raise ChangeError(f"a number for {change.table} is far too large") from None


def _column_name(name: object) -> str:
    return name if type(name) is str else text(name, "the name of a column", ChangeError)


def json_value(name: str, value: Outside) -> Outside:
    """A value of a row in a form that JSON holds without loss; ChangeError if there is none."""
    if value is None or type(value) in _AS_THEY_ARE:
        return value
    if type(value) is int and _LOWEST <= value <= _HIGHEST:  # fast path for nearly all integers
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Integral):  # NumPy integers, for instance
        whole = int(value)
        bits = whole.bit_length()
        if bits > _MAX_INTEGER_BITS:
            raise ChangeError(f"column {name}: an integer of {bits} bits is too large")
        return whole
    if isinstance(value, Decimal) and value.is_finite():
        text = str(value)
        # Without a point or an exponent it would be read back as an integer.
        return msgspec.Raw(f"{text}.0".encode() if text.lstrip("-").isdecimal() else text.encode())
    if isinstance(value, float | Decimal):
        if isinstance(value, float) and math.isfinite(value):
            return float(value)
        return str(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    raise ChangeError(f"column {name}: {shown(value)} is not a value of a column")
