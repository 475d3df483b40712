"""Debezium change events: entries of a database's own log, as changes.

With the schema in the envelope, dates, timestamps and decimals are converted from the numbers and
bytes that Kafka Connect writes. Without it they are not converted.

Debezium delivers at least once, in order: after a crash it re-reads the database's log from an
earlier position. So a row that is created may already exist, and one that is deleted may be gone;
neither is an error (`Change.at_least_once`). It also sends events that are not changes (tombstones,
heartbeats, metadata of transactions and schemas), which are recognised and skipped.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

from penstock.errors import EventError, NoChangeError
from penstock.flow.changes import Change, Op

# A snapshot may repeat rows that were read as changes.
_OPS = {"c": Op.INSERT, "r": Op.UPSERT, "u": Op.UPDATE, "d": Op.DELETE}

_UNAVAILABLE = "__debezium_unavailable_value"
"""Placeholder for a large value that an update did not touch and the database did not log."""

_MAX_DECIMAL_BYTES = 64  # DECIMAL has at most 38 digits, or 16 bytes
_MAX_DECIMAL_SCALE = 100
_WIDE = Context(prec=200)

_EPOCH = datetime(1970, 1, 1)


def looks_like_debezium(event: Mapping[str, Any]) -> bool:
    if "table" in event:
        return False
    if "payload" in event or ("op" in event and not event.keys().isdisjoint(_PARTS)):
        return True
    return _side_event(event) is not None


_PARTS = frozenset({"before", "after", "source"})


def change_from_debezium(event: Mapping[str, Any]) -> Change:
    schema, payload = None, event
    if "payload" in event:
        schema, payload = event.get("schema"), event["payload"]
        if payload is None:
            raise NoChangeError("this is a tombstone, not a change")
    if not isinstance(payload, dict):
        raise EventError("the payload of a Debezium event must be an object")
    side_event = "the key of a row" if _is_key(schema) else _side_event(payload)
    if side_event is not None:
        raise NoChangeError(f"this is {side_event}, not a change")
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
    return Change(_table(payload.get("source")), op, row, at_least_once=True)


_TIMES = frozenset({"ts_ms", "ts_us", "ts_ns"})
_TRANSACTION = frozenset({"status", "id", "event_count", "data_collections"}) | _TIMES


def _side_event(payload: Mapping[str, Any]) -> str | None:
    """The kind of an event that is not a change (heartbeat, metadata); None for changes."""
    names = payload.keys()
    if isinstance(payload.get("ts_ms"), int) and names <= _TIMES:
        return "a heartbeat"
    if payload.get("status") in ("BEGIN", "END") and "id" in names and names <= _TRANSACTION:
        return "metadata of a transaction"
    if "op" not in names and "ddl" in names and not names.isdisjoint({"databaseName", "source"}):
        return "a change of a schema"
    if payload.get("op") == "m" and "message" in names:
        return "a message in the database's log"
    return None


def _is_key(schema: object) -> bool:
    """Whether a schema describes a row's key only, as sent with a tombstone."""
    name = schema.get("name") if isinstance(schema, dict) else None
    return isinstance(name, str) and name.endswith(".Key")


def _op(code: object) -> Op:
    if code == "t":
        raise EventError("TRUNCATE cannot be followed", hint="publish a delete for each row")
    if not isinstance(code, str) or code not in _OPS:
        raise EventError(
            f"{code!r:.60} is not an operation of a Debezium change event", hint="known: c, r, u, d"
        )
    return _OPS[code]


def _table(source: object) -> str:
    table = source.get("table") if isinstance(source, dict) else None
    if not isinstance(table, str):
        raise EventError("a Debezium event must name its table in source.table")
    return table


def _column_schemas(schema: object, side: str) -> dict[str, dict[str, Any]]:
    """The schema of each column, if the envelope has one."""
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
