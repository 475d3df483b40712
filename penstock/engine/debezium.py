"""Debezium change events: what a database's own log says, as a change.

With the schema in the envelope, dates, timestamps and decimals are converted from the numbers and
bytes that Kafka Connect writes. Without it they are taken as they are.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

from penstock.engine.changes import Change, Op
from penstock.errors import EventError

_OPS = {"c": Op.INSERT, "r": Op.UPSERT, "u": Op.UPDATE, "d": Op.DELETE}

_UNAVAILABLE = "__debezium_unavailable_value"
"""Stands for a large value that an update did not touch and the database did not log."""

_MAX_DECIMAL_BYTES = 64  # DECIMAL has at most 38 digits, or 16 bytes; no use for a million
_MAX_DECIMAL_SCALE = 100
_WIDE = Context(prec=200)

_EPOCH = datetime(1970, 1, 1)


def looks_like_debezium(event: Mapping[str, Any]) -> bool:
    if "table" in event:
        return False
    return "payload" in event or ("op" in event and not event.keys().isdisjoint(_PARTS))


_PARTS = frozenset({"before", "after", "source"})


def change_from_debezium(event: Mapping[str, Any]) -> Change:
    schema, payload = None, event
    if "payload" in event:
        schema, payload = event.get("schema"), event["payload"]
        if payload is None:
            raise EventError(
                "this is a tombstone, not a change",
                hint="the delete event before it suffices; set tombstones.on.delete=false",
            )
    if not isinstance(payload, dict):
        raise EventError("the payload of a Debezium event must be an object")
    op = _op(payload.get("op"))
    side = "before" if op is Op.DELETE else "after"
    row = payload.get(side)
    if not isinstance(row, dict):
        hint = "let the database log old rows (REPLICA IDENTITY)" if side == "before" else ""
        raise EventError(f"a Debezium {op} event needs its row in {side!r}", hint=hint)
    row = _converted(row, _column_schemas(schema, side))
    if op is Op.DELETE:
        # A database that logs only the key of deleted rows has NULL in all other columns.
        row = {name: value for name, value in row.items() if value is not None}
    elif op is Op.UPDATE:
        row = {name: value for name, value in row.items() if value != _UNAVAILABLE}
    return Change(_table(payload.get("source")), op, row)


def _op(code: object) -> Op:
    if code == "t":
        raise EventError("TRUNCATE cannot be followed", hint="publish a delete for each row")
    if not isinstance(code, str) or code not in _OPS:
        raise EventError(
            f"{code!r} is not an operation of a Debezium change event", hint="known: c, r, u, d"
        )
    return _OPS[code]


def _table(source: object) -> str:
    table = source.get("table") if isinstance(source, dict) else None
    if not isinstance(table, str):
        raise EventError("a Debezium event must name its table in source.table")
    return table


def _column_schemas(schema: object, side: str) -> dict[str, dict[str, Any]]:
    """For each column its schema, where the envelope has one."""
    for part in _fields(schema):
        if part.get("field") == side:
            named = ((column.get("field"), column) for column in _fields(part))
            return {name: column for name, column in named if isinstance(name, str)}
    return {}


def _fields(schema: object) -> list[dict[str, Any]]:
    fields = schema.get("fields") if isinstance(schema, dict) else None
    return [f for f in fields if isinstance(f, dict)] if isinstance(fields, list) else []


def _converted(row: dict[str, Any], schemas: dict[str, dict[str, Any]]) -> dict[str, Any]:
    converted = dict(row)
    for name, column in schemas.items():
        convert = _CONVERTERS.get(str(column.get("name")))
        value = row.get(name)
        if convert is None or value is None or value == _UNAVAILABLE:
            continue
        try:
            converted[name] = convert(value, column)
        except (TypeError, ValueError, OverflowError, KeyError, binascii.Error) as error:
            raise EventError(
                f"column {name}: {value!r:.60} is not a {column.get('name')}", detail=str(error)
            ) from None
    return converted


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("a whole number is needed")
    return value


def _date(value: object, _column: Mapping[str, Any]) -> date:
    return (_EPOCH + timedelta(days=_whole(value))).date()


def _milliseconds(value: object, _column: Mapping[str, Any]) -> datetime:
    return _EPOCH + timedelta(milliseconds=_whole(value))


def _microseconds(value: object, _column: Mapping[str, Any]) -> datetime:
    return _EPOCH + timedelta(microseconds=_whole(value))


def _nanoseconds(value: object, _column: Mapping[str, Any]) -> datetime:
    microseconds, rest = divmod(_whole(value), 1000)
    if rest:
        raise ValueError("timestamps are kept to the microsecond")
    return _EPOCH + timedelta(microseconds=microseconds)


def _zoned(value: object, _column: Mapping[str, Any]) -> datetime:
    if not isinstance(value, str):
        raise TypeError("a text is needed")
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError("it has no time zone")
    return moment.astimezone(UTC)


def _decimal(value: object, column: Mapping[str, Any]) -> Decimal:
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return Decimal(value)  # the converter was set to decimal.format=NUMERIC
    return _unscaled(value, int(column["parameters"]["scale"]))


def _variable_decimal(value: object, _column: Mapping[str, Any]) -> Decimal:
    if not isinstance(value, dict):
        raise TypeError("an object with scale and value is needed")
    return _unscaled(value["value"], _whole(value["scale"]))


def _unscaled(value: object, scale: int) -> Decimal:
    if not isinstance(value, str):
        raise TypeError("base64 is needed")
    raw = base64.b64decode(value, validate=True)
    if len(raw) > _MAX_DECIMAL_BYTES or abs(scale) > _MAX_DECIMAL_SCALE:
        raise ValueError("it is too large")
    return Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-scale, _WIDE)


_CONVERTERS: dict[str, Callable[[object, Mapping[str, Any]], object]] = {
    "io.debezium.time.Date": _date,
    "io.debezium.time.Timestamp": _milliseconds,
    "io.debezium.time.MicroTimestamp": _microseconds,
    "io.debezium.time.NanoTimestamp": _nanoseconds,
    "io.debezium.time.ZonedTimestamp": _zoned,
    "io.debezium.data.VariableScaleDecimal": _variable_decimal,
    "org.apache.kafka.connect.data.Date": _date,
    "org.apache.kafka.connect.data.Timestamp": _milliseconds,
    "org.apache.kafka.connect.data.Decimal": _decimal,
}
