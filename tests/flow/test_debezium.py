"""Debezium change events, as its connectors write them."""

from __future__ import annotations

import base64
import contextlib
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import EventError, NoChangeError
from penstock.flow.changes import Change, Op
from penstock.flow.events import decode_event

SOURCE = {"connector": "postgresql", "db": "shop", "schema": "public", "table": "stocks"}


def payload(op: object, **members: object) -> dict[str, object]:
    return {"before": None, "after": None, "source": SOURCE, "op": op, "ts_ms": 1, **members}


def enveloped(columns: list[dict[str, object]], one: dict[str, object]) -> bytes:
    sides = [
        {"type": "struct", "fields": columns, "optional": True, "field": side}
        for side in ("before", "after")
    ]
    schema = {"type": "struct", "fields": [*sides, {"type": "string", "field": "op"}]}
    return json.dumps({"schema": schema, "payload": one}).encode()


@pytest.mark.parametrize(
    ("one", "change"),
    [
        (payload("c", after={"id": 1}), Change("stocks", Op.INSERT, {"id": 1}, True)),
        (payload("r", after={"id": 1}), Change("stocks", Op.UPSERT, {"id": 1}, True)),
        (
            payload("u", before={"id": 1, "a": 1}, after={"id": 1, "a": 2}),
            Change("stocks", Op.UPDATE, {"id": 1, "a": 2}, True),
        ),
        (
            payload("u", after={"id": 1, "a": None, "b": "__debezium_unavailable_value"}),
            Change("stocks", Op.UPDATE, {"id": 1, "a": None}, True),
        ),
        (
            payload("d", before={"id": 1, "a": None}),
            Change("stocks", Op.DELETE, {"id": 1}, True),
        ),
    ],
)
def test_every_op_with_and_without_envelope(one: dict[str, object], change: Change) -> None:
    assert decode_event(json.dumps(one).encode()) == change
    assert decode_event(json.dumps({"payload": one}).encode()) == change
    assert decode_event(json.dumps({"schema": None, "payload": one}).encode()) == change


HEARTBEAT = {"ts_ms": 1700000000000}
TRANSACTION = {"status": "END", "id": "571:53195832", "event_count": 2, "data_collections": []}
DDL = "ALTER TABLE stocks ADD COLUMN x INT"
SIDE_EVENTS: list[tuple[object, str]] = [
    (None, "tombstone"),
    ({"schema": None, "payload": None}, "tombstone"),
    (HEARTBEAT, "heartbeat"),
    ({"schema": {"name": "io.debezium.connector.common.Heartbeat"}, "payload": HEARTBEAT}, "heart"),
    ({**HEARTBEAT, "ts_us": 1, "ts_ns": 1}, "heartbeat"),
    (TRANSACTION, "transaction"),
    ({"payload": {**TRANSACTION, "status": "BEGIN", "ts_ms": 5}}, "transaction"),
    ({"source": SOURCE, "databaseName": "shop", "ddl": DDL, "tableChanges": []}, "schema"),
    ({"payload": {"source": SOURCE, "ts_ms": 5, "ddl": DDL}}, "schema"),
    (payload("m", message={"prefix": "p", "content": "Yg=="}), "message"),
    ({"schema": {"type": "struct", "name": "s.stocks.Key"}, "payload": {"id": 1}}, "key"),
]


@pytest.mark.parametrize(("event", "what"), SIDE_EVENTS)
def test_what_is_no_change_is_skipped(event: object, what: str) -> None:
    with pytest.raises(NoChangeError, match=what):
        decode_event(json.dumps(event).encode())


NO_SIDE_EVENTS: list[dict[str, object]] = [
    {"ts_ms": "soon"},
    {"ts_ms": 1, "id": 5},
    {"status": "END", "id": "1", "row": {}},
    {"ddl": DDL},
    {"payload": {"id": 1}},
    {"schema": {"name": "s.stocks.Value"}, "payload": {"id": 1}},
    {},
]


@pytest.mark.parametrize("event", NO_SIDE_EVENTS)
def test_what_only_looks_like_it_is_refused(event: dict[str, object]) -> None:
    with pytest.raises(EventError) as caught:
        decode_event(json.dumps(event).encode())
    assert not isinstance(caught.value, NoChangeError)


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"payload": 5}, "must be an object"),
        (payload("t"), "TRUNCATE"),
        (payload("m", after={}), "'m' is not an operation"),
        (payload(["c"], after={}), "is not an operation"),
        (payload("c"), "needs its row in 'after'"),
        (payload("d"), "needs its row in 'before'"),
        (payload("c", after={}, source={"db": "x"}), "source.table"),
        (payload("c", after={}, source=None), "source.table"),
    ],
)
def test_refused(event: dict[str, object], reason: str) -> None:
    with pytest.raises(EventError, match=reason):
        decode_event(json.dumps(event).encode())


def column(name: str, schema: str, kind: str = "int64", **more: object) -> dict[str, object]:
    return {"type": kind, "optional": True, "name": schema, "field": name, **more}


def decimal_bytes(unscaled: int) -> str:
    size = unscaled.bit_length() // 8 + 1
    return base64.b64encode(unscaled.to_bytes(size, "big", signed=True)).decode()


CONNECT = "org.apache.kafka.connect.data"
VALUES: list[tuple[dict[str, object], object, object]] = [
    (column("v", "io.debezium.time.Date", "int32"), 19782, date(2024, 2, 29)),
    (column("v", "io.debezium.time.Date", "int32"), -1, date(1969, 12, 31)),
    (column("v", "io.debezium.time.Timestamp"), 1, datetime(1970, 1, 1, 0, 0, 0, 1000)),
    (
        column("v", "io.debezium.time.MicroTimestamp"),
        -1,
        datetime(1969, 12, 31, 23, 59, 59, 999999),
    ),
    (column("v", "io.debezium.time.NanoTimestamp"), 2000, datetime(1970, 1, 1, 0, 0, 0, 2)),
    (
        column("v", "io.debezium.time.ZonedTimestamp", "string"),
        "2024-02-29T13:00:00.5+01:00",
        datetime(2024, 2, 29, 12, 0, 0, 500000, tzinfo=UTC),
    ),
    (column("v", f"{CONNECT}.Date", "int32"), 0, date(1970, 1, 1)),
    (column("v", f"{CONNECT}.Timestamp"), 0, datetime(1970, 1, 1)),
    (
        column("v", f"{CONNECT}.Decimal", "bytes", parameters={"scale": "2"}),
        decimal_bytes(-12345),
        Decimal("-123.45"),
    ),
    (column("v", f"{CONNECT}.Decimal", "bytes"), 1.5, Decimal("1.5")),
    (
        column("v", "io.debezium.data.VariableScaleDecimal", "struct"),
        {"scale": 3, "value": decimal_bytes(1500)},
        Decimal("1.500"),
    ),
    (column("v", "io.debezium.time.Date"), None, None),
    (column("v", "io.debezium.data.Enum", "string"), "red", "red"),
]


@pytest.mark.parametrize(("schema", "written", "meant"), VALUES)
def test_values_are_converted_by_their_schema(
    schema: dict[str, object], written: object, meant: object
) -> None:
    change = decode_event(enveloped([schema], payload("c", after={"id": 1, "v": written})))
    assert change.row == {"id": 1, "v": meant}


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        (column("v", "io.debezium.time.Date"), "2024-02-29"),
        (column("v", "io.debezium.time.Date"), True),
        (column("v", "io.debezium.time.Date"), 10**18),
        (column("v", "io.debezium.time.NanoTimestamp"), 1),
        (column("v", "io.debezium.time.ZonedTimestamp"), "2024-02-29T13:00:00"),
        (column("v", "io.debezium.time.ZonedTimestamp"), 5),
        (column("v", f"{CONNECT}.Decimal", "bytes"), "AQ=="),
        (column("v", f"{CONNECT}.Decimal", "bytes"), True),
        (column("v", f"{CONNECT}.Decimal", "bytes", parameters={"scale": "2"}), "?"),
        (column("v", f"{CONNECT}.Decimal", "bytes", parameters={"scale": "x"}), "AQ=="),
        (column("v", f"{CONNECT}.Decimal", "bytes", parameters={"scale": "1000000000"}), "AQ=="),
        (column("v", f"{CONNECT}.Decimal", "bytes", parameters={"scale": "1"}), "A" * 400),
        (column("v", "io.debezium.data.VariableScaleDecimal", "struct"), "AQ=="),
        (column("v", "io.debezium.data.VariableScaleDecimal", "struct"), {"scale": 1}),
    ],
)
def test_a_value_that_its_schema_does_not_allow(schema: dict[str, object], written: object) -> None:
    with pytest.raises(EventError, match=r"column v: .* is not a"):
        decode_event(enveloped([schema], payload("c", after={"v": written})))


@given(st.integers(-(10**38), 10**38), st.integers(0, 38))
def test_any_decimal(unscaled: int, scale: int) -> None:
    schema = column("v", f"{CONNECT}.Decimal", "bytes", parameters={"scale": str(scale)})
    raw = enveloped([schema], payload("c", after={"v": decimal_bytes(unscaled)}))
    value = decode_event(raw).row["v"]
    assert isinstance(value, Decimal)
    assert Fraction(value) * 10**scale == unscaled


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)
members = st.sampled_from(
    ["schema", "payload", "op", "after", "before", "source", "fields", "table"]
)


@given(st.dictionaries(members, json_values | st.dictionaries(members, json_values)))
def test_no_shape_crashes_it(event: dict[str, object]) -> None:
    with contextlib.suppress(EventError):
        decode_event(json.dumps(event).encode())
