"""Events: three forms in, one canonical line out, and a clear reason for everything else."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.catalog import (
    BooleanType,
    Column,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    Relation,
    StringType,
    TimestampType,
)
from penstock.catalog.types import ValueType
from penstock.errors import ChangeError, EventError
from penstock.flow.changes import Change, Op
from penstock.flow.events import (
    MAX_EVENT_BYTES,
    change_from_mapping,
    decode_event,
    encode_change,
)

ROW = {"id": 4, "symbol": "GOOG", "per": Decimal("52.1")}


def line(**members: object) -> bytes:
    return json.dumps(members).encode()


def test_a_plain_line() -> None:
    raw = b'{"table": "stocks", "op": "insert", "row": {"id": 4, "symbol": "GOOG", "per": 52.1}}'
    assert decode_event(raw) == Change("stocks", Op.INSERT, ROW)


@pytest.mark.parametrize("op", list(Op))
def test_every_op(op: Op) -> None:
    assert decode_event(line(table="t", op=op.value, row={"id": 1})).op is op


def test_a_missing_op_is_insert() -> None:
    assert decode_event(b'{"table":"t","row":{}}') == Change("t", Op.INSERT, {})


def test_digits_are_not_lost() -> None:
    change = decode_event(
        b'{"table":"t","row":{"a":0.10000000000000000000000000001,"b":%s}}' % (b"9" * 38)
    )
    assert change.row == {"a": Decimal("0.10000000000000000000000000001"), "b": 10**38 - 1}


REFUSED = [
    (b"", "the event is empty"),
    (b" \t", "the event is empty"),
    (b"null", "tombstone"),
    (b"[]", "not a JSON object"),
    (b'"text"', "not a JSON object"),
    (b"{", "cut short"),
    (b'{"table": "t", "row": {"a": 1}', "cut short"),
    (b'{"table": "t", "row": {"a": "x', "cut short"),
    (b'{"table": "t", "row": {"a": 1}} {}', "not valid JSON"),
    (b"{'table': 't'}", "not valid JSON"),
    (b'{"table": "t", "row": {"a": NaN}}', "not valid JSON"),
    (b'{"table": "t", "row": {"a": -Infinity}}', "not valid JSON"),
    (b'\xef\xbb\xbf{"table": "t", "row": {}}', "not valid JSON"),
    (b'{"table": "t", "row": {"a": "\xff"}}', "not valid UTF-8"),
    (b'{"table": "\xc3", "row": {}}', "not valid UTF-8"),
    (b'{"table": "t", "row": {"a": "\\ud800"}}', "half a character"),
    (b'{"table": "t", "row": {"a": 1, "a": 1}}', "'a' twice"),
    (b'{"table": "t", "row": {"a:": ":", "b": {"c": 1, "c": 1}}}', "'c' twice"),
    (b'{"table": "t", "table": "u", "row": {}}', "'table' twice"),
    (b'{"table": "t", "row": {}, "extra": 1}', "unknown member 'extra'"),
    (b'{"row": {}}', 'name its "table"'),
    (b'{"table": 5, "row": {}}', 'name its "table"'),
    (b'{"table": "t"}', 'as its "row"'),
    (b'{"table": "t", "row": []}', 'as its "row"'),
    (b'{"table": "t", "op": "replace", "row": {}}', "unknown op 'replace'"),
    (b'{"table": "t", "op": null, "row": {}}', "unknown op None"),
    (b'{"table": "t", "row": {"a": %s}}' % (b"[" * 65 + b"]" * 65), "64 levels"),
    (b"[" * 100_000, "64 levels"),
    (b'{"table": "t", "row": {"a": "' + b"x" * MAX_EVENT_BYTES + b'"}}', "at most 1048576"),
]


@pytest.mark.parametrize(("raw", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_refused(raw: bytes, reason: str) -> None:
    with pytest.raises(EventError, match=reason):
        decode_event(raw)


def test_brackets_in_strings_are_not_nesting() -> None:
    text = '["\\' * 300
    assert decode_event(line(table="t", row={"a": text})).row == {"a": text}


def test_a_place_is_given_where_it_is_known() -> None:
    with pytest.raises(EventError) as caught:
        decode_event(b'{"table": "t", "row": {"a": \xc3\x28}}')
    assert "byte" in caught.value.detail
    with pytest.raises(EventError) as caught:
        decode_event(b'{"table": "t", "row": {"a": "\xff"}}')
    assert "byte 29 is 0xff" in caught.value.detail


@given(st.binary(max_size=200))
def test_no_bytes_crash_it(raw: bytes) -> None:
    with pytest.raises(EventError):
        decode_event(raw)


@given(st.data())
def test_no_damaged_line_crashes_it(data: st.DataObject) -> None:
    raw = bytearray(
        b'{"table": "s", "op": "update", "row": {"id": -4, "x": [1.5e3, null, "\\u00e9"]}}'
    )
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        change = decode_event(bytes(raw))
    except EventError:
        return
    assert isinstance(change, Change)


def test_an_op_from_python_of_any_depth_is_refused() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(EventError, match=r"unknown op \[.*\(list\)"):
        change_from_mapping({"table": "t", "op": deep, "row": {}})


# CloudEvents


def cloud(**members: object) -> bytes:
    return line(**{"specversion": "1.0", "id": "1", "source": "/s", "type": "x", **members})


PLAIN = {"table": "t", "op": "delete", "row": {"id": 1}}


@pytest.mark.parametrize(
    "members",
    [
        {"data": PLAIN},
        {"data": PLAIN, "datacontenttype": "application/json; charset=utf-8", "extra": 1},
        {"data": PLAIN, "datacontenttype": "application/vnd.x+json"},
        {"data_base64": base64.b64encode(json.dumps(PLAIN).encode()).decode()},
        {"data": {"op": "d", "before": {"id": 1}, "source": {"table": "t"}}},
    ],
)
def test_a_cloud_event(members: dict[str, object]) -> None:
    change = decode_event(cloud(**members))
    assert replace(change, at_least_once=False) == Change("t", Op.DELETE, {"id": 1})


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"specversion": "0.3", "data": PLAIN}, "version '0.3'"),
        ({"specversion": 1, "data": PLAIN}, "version 1"),
        ({"id": "", "data": PLAIN}, "attribute 'id'"),
        ({"source": None, "data": PLAIN}, "attribute 'source'"),
        ({}, 'either "data" or'),
        ({"data": PLAIN, "data_base64": ""}, 'either "data" or'),
        ({"data": PLAIN, "datacontenttype": "text/xml"}, "must be JSON"),
        ({"data_base64": "?"}, "is not base64"),
        ({"data_base64": 5}, "must be a string"),
        ({"data_base64": "eyI="}, "cut short"),
        ({"data_base64": base64.b64encode(b"[" * 1000).decode()}, "64 levels"),
        ({"data_base64": base64.b64encode(b'{"a":' * 65).decode()}, "64 levels"),
        ({"data_base64": base64.b64encode(b"\xff").decode()}, "not valid JSON"),
        ({"data": json.loads("[" * 64 + "]" * 64)}, "64 levels"),
        ({"data": None}, "tombstone"),
        ({"data": "text"}, "not a JSON object"),
        ({"data": {"specversion": "1.0"}}, "inside a CloudEvent"),
    ],
)
def test_a_refused_cloud_event(members: dict[str, object], reason: str) -> None:
    with pytest.raises(EventError, match=reason):
        decode_event(cloud(**members))


# Writing

TYPES: list[tuple[ValueType, st.SearchStrategy[object]]] = [
    (IntegerType(), st.integers(-(1 << 63), (1 << 63) - 1)),
    (DoubleType(), st.floats() | st.integers(-(10**20), 10**20) | st.decimals(-1000, 1000)),
    (DecimalType(38, 6), st.decimals(-(10**31), 10**31, places=6) | st.integers(-(10**20), 10**20)),
    (DecimalType(10, 0), st.integers(-(10**9), 10**9).map(Decimal)),
    (StringType(), st.text()),
    (BooleanType(), st.booleans()),
    (DateType(), st.dates()),
    (TimestampType(), st.datetimes()),
    (TimestampType(zoned=True), st.datetimes(timezones=st.just(UTC))),
]
EVERYTHING = Relation(
    "everything",
    tuple(Column(f"c{i}", value_type) for i, (value_type, _) in enumerate(TYPES)),
    key=(0,),
)
rows = st.fixed_dictionaries(
    {f"c{i}": st.none() | values for i, (_, values) in enumerate(TYPES)},
)


@given(rows, st.sampled_from(Op))
def test_writing_and_reading_changes_nothing(row: dict[str, object], op: Op) -> None:
    change = Change("everything", op, row)
    read = decode_event(encode_change(change))
    assert (read.table, read.op) == ("everything", op)
    # repr: NaN is not itself, and 0.0 equals -0.0, for Python
    assert repr(EVERYTHING.store_row(read.row)) == repr(EVERYTHING.store_row(row))


@given(st.decimals(allow_nan=False, allow_infinity=False) | st.integers())
def test_a_decimal_is_not_read_back_as_an_integer(value: Decimal | int) -> None:
    read = decode_event(encode_change(Change("t", Op.INSERT, {"a": value}))).row["a"]
    assert type(read) is type(value)
    assert read == value


def test_values_as_they_are_written() -> None:
    row = {
        "a": Decimal("1.50"),
        "b": float("nan"),
        "c": float("-inf"),
        "d": date(2024, 2, 29),
        "e": datetime(2024, 2, 29, 12, tzinfo=UTC),
        "f": 1 << 70,
        "g": Decimal("-0"),
    }
    assert encode_change(Change("t", Op.UPSERT, row)) == (
        b'{"table":"t","op":"upsert","row":{"a":1.50,"b":"nan","c":"-inf","d":"2024-02-29",'
        b'"e":"2024-02-29T12:00:00+00:00","f":1180591620717411303424,"g":-0.0}}'
    )


@pytest.mark.parametrize(
    "value", [b"bytes", [1], {"a": 1}, object(), "\ud800", 10**5000, -(10**5000)], ids=type
)
def test_values_that_no_column_has(value: object) -> None:
    with pytest.raises(ChangeError):
        encode_change(Change("t", Op.INSERT, {"a": value}))
