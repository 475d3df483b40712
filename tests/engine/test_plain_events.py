"""The quick way of reading plain lines gives what the careful way gives, whatever is sent."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.catalog import (
    BooleanType,
    Catalog,
    Column,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    Relation,
    StringType,
    TimestampType,
)
from penstock.engine.changes import check
from penstock.engine.events import decode_event
from penstock.engine.plain_events import PlainReader
from penstock.errors import ChangeError

COLUMNS = (
    Column("id", IntegerType("INTEGER", 32), nullable=False),
    Column("Big", IntegerType()),
    Column("d", DoubleType()),
    Column("n", DecimalType(6, 2)),
    Column("s", StringType()),
    Column("short", StringType(3)),
    Column("b", BooleanType()),
    Column("day", DateType()),
    Column("at", TimestampType()),
)
THINGS = Relation("Things", COLUMNS, (0,))
QUOTES = Relation("quotes", COLUMNS, (), is_stream=True)
LATER = Relation("later", COLUMNS[:1], (0,))
CATALOG = Catalog()
for _relation, _offset in ((THINGS, 0), (QUOTES, 1), (LATER, 50)):
    CATALOG.add(_relation, _offset)
READER = PlainReader(CATALOG)
OFFSET = 20

numbers = st.integers() | st.integers(-5, 5) | st.floats() | st.sampled_from([1e308, -0.0, 2**31])
texts = st.text(max_size=5) | st.sampled_from(["2024-05-06", "2024-05-06T07:08:09", "nan", "a:b"])
scalars = st.none() | st.booleans() | numbers | texts
values = scalars | st.lists(scalars, max_size=2) | st.dictionaries(st.text(max_size=3), scalars)
column_names = st.sampled_from([column.name for column in COLUMNS] + ["ID", "big", "x"])
rows = st.dictionaries(column_names, values, max_size=9)
usual_rows = st.fixed_dictionaries(
    {"id": st.integers(-9, 9)},
    optional={
        "Big": st.none() | st.integers(-(2**65), 2**65),
        "d": st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
        "n": st.none() | st.decimals(-99, 99, places=2).map(float) | st.integers(-9, 9),
        "s": st.none() | st.text(max_size=4),
        "short": st.none() | st.text(max_size=4),
        "b": st.none() | st.booleans(),
        "day": st.dates().map(str),
        "at": st.datetimes().map(lambda t: t.isoformat()),
    },
)
ops = st.sampled_from(["insert", "update", "delete", "upsert"])
events = st.fixed_dictionaries(
    {"table": st.sampled_from(["Things", "quotes", "things", "later", "x"]), "row": usual_rows},
    optional={"op": ops},
) | st.dictionaries(st.sampled_from(["table", "op", "row", "before"]), rows | values | ops)


def careful(raw: bytes) -> str:
    try:
        return repr(check(decode_event(raw), CATALOG, OFFSET))
    except ChangeError as error:
        return repr((error.primary, error.detail, error.hint))


def quick(raw: bytes) -> str:
    try:
        return repr(READER.read(raw, OFFSET))
    except ChangeError as error:
        return repr((error.primary, error.detail, error.hint))


@given(events)
def test_any_object(event: dict[str, object]) -> None:
    try:
        raw = msgspec.json.encode(event)
    except (UnicodeEncodeError, OverflowError):
        return
    assert quick(raw) == careful(raw)


@given(st.binary(max_size=40) | st.text(max_size=40).map(lambda t: t.encode(errors="ignore")))
@example(b'{"table":"quotes","row":{"id":1,"id":2}}')
@example(b'{"table":"quotes","row":{"id":1,"s":"a:b"}}')
@example(b'{"table":"quotes","row":{"id":1,"s":"x","s":"\\u003a"}}')
@example(b'{"table":"quotes","row":{"id":1,"s":":","s":"::"}}')
@example(b'{"table":"quotes","table":"Things","row":{"id":1}}')
@example(b'{"table":"quotes","row":{"id":1},"op":null}')
@example(b'{"table":"quotes","row":{"id":1.0},"op":"insert"}')
@example(b'{"table":"quotes","row":{"id":1,"d":1e400}}')
@example(b'{"table":"quotes","row":{"id":1,"d":1' + b"0" * 400 + b"}}")
@example(b'{"table":"quotes","row":{"id":1,"n":1.10}}')
@example(b'{"table":"quotes","row":{"id":1,"n":1e-9}}')
@example(b'{"table":"quotes","row":{"id":1,"s":"\\ud800"}}')
@example(b'{"table":"quotes","row":{"id":1,"s":' + b"[" * 100_000 + b"]" * 100_000 + b"}}")
@example(b'{"table":"quotes","row":{"id":null}}')
@example(b'{"table":"quotes","row":{}}')
@example(b'{"table":"quotes","row":{"id":true}}')
@example(b'{"table":"quotes","row":{"id":1,"d":-0.0}} ')
def test_any_bytes(raw: bytes) -> None:
    assert quick(raw) == careful(raw)


def test_the_usual_lines_are_read_quickly() -> None:
    row = b'{"id": 4, "Big": 7, "d": 52, "n": 1.25, "s": "a:b", "at": "2024-05-06T07:08:09"}'
    line = b'{"table": "Things", "op": "insert", "row": ' + row + b"}"
    for raw in (
        line,
        line.replace(b'"op": "insert", ', b""),
        line.replace(b"insert", b"update"),
        b'{"table": "Things", "op": "delete", "row": {"id": 4}}',
    ):
        found = READER._plain(raw, OFFSET)
        assert repr(found) == careful(raw)


def test_a_catalog_without_tables() -> None:
    with pytest.raises(ChangeError, match="unknown table x"):
        PlainReader(Catalog()).read(b'{"table": "x", "row": {}}', 0)
