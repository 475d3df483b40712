"""Lines for readers of events: usual ones, odd ones, and whatever else."""

from __future__ import annotations

import json
from decimal import Context, Decimal
from typing import Any

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

COLUMNS = (
    Column("id", IntegerType("INTEGER", 32), nullable=False),
    Column("Big", IntegerType()),
    Column("d", DoubleType()),
    Column("n", DecimalType(6, 2)),
    Column("wide", DecimalType(38, 2)),
    Column("s", StringType()),
    Column("short", StringType(3)),
    Column("b", BooleanType()),
    Column("day", DateType()),
    Column("at", TimestampType()),
    Column("zoned", TimestampType(zoned=True)),
)
TWO_KEYS = (Column("k", StringType(), False), Column("day", DateType(), False), COLUMNS[2])
CATALOG = Catalog()
for _relation, _offset in (
    (Relation("Things", COLUMNS, (0,)), 0),
    (Relation("quotes", COLUMNS, (), is_stream=True), 1),
    (Relation("two keys", TWO_KEYS, (1, 0)), 2),
    (Relation("by double", (COLUMNS[0], Column("d", DoubleType(), False)), (1,)), 3),
    (Relation("by flag", (Column("b", BooleanType(), False), COLUMNS[2]), (0,)), 4),
    (Relation("by wide", (Column("wide", DecimalType(38, 2), False), COLUMNS[0]), (0,)), 5),
    (Relation("later", COLUMNS[:1], (0,)), 50),
):
    CATALOG.add(_relation, _offset)

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
        "wide": st.none() | st.integers() | st.integers(-(10**40), 10**40),
        "s": st.none() | st.text(max_size=4),
        "short": st.none() | st.text(max_size=4),
        "b": st.none() | st.booleans(),
        "day": st.dates().map(str),
        "at": st.datetimes().map(lambda t: t.isoformat()),
        "zoned": st.datetimes().map(lambda t: t.isoformat() + "Z"),
    },
)
two_keys = st.fixed_dictionaries(
    {"k": st.text(max_size=40), "day": st.dates().map(str)}, optional={"d": st.integers()}
)
ops = st.sampled_from(["insert", "update", "delete", "upsert"])
names = st.sampled_from(
    ["Things", "quotes", "things", "later", "x", "two keys", "by double", "by flag", "by wide"]
)
events = (
    st.fixed_dictionaries({"table": names, "row": usual_rows}, optional={"op": ops})
    | st.fixed_dictionaries({"op": ops, "table": st.just("two keys"), "row": two_keys})
    | st.dictionaries(st.sampled_from(["table", "op", "row", "before"]), rows | values | ops)
)

wide_decimals = st.integers(-(10**38) + 1, 10**38 - 1).filter(bool).map(
    lambda n: Decimal(n).scaleb(-2, Context(prec=40))
) | st.sampled_from([Decimal(1), Decimal(10) ** 35, Decimal(-(2**63)), Decimal(2**64)])
plain_texts = st.text(
    st.characters(exclude_categories=("C",), exclude_characters='"\\'), max_size=3
)
plain_rows = st.fixed_dictionaries(
    {
        "id": st.integers(-(2**31) + 1, 2**31 - 1),
        "b": st.booleans(),
        "s": plain_texts | st.integers(0, 70_000).map(lambda n: "x" * n),
        "Big": st.integers(-(10**18) + 1, 10**18 - 1),
    },
    optional={
        "d": st.integers(-(10**9), 10**9).map(lambda n: n / 128) | st.none(),
        "n": st.integers(-999_999, 999_999).filter(bool).map(lambda n: Decimal(n) / 100),
        "wide": st.none() | wide_decimals,
        "short": plain_texts,
        "day": st.dates().map(str),
        "at": st.datetimes().map(lambda t: t.isoformat(timespec="milliseconds")),
        "zoned": st.datetimes().map(lambda t: t.isoformat(timespec="seconds") + "Z"),
    },
)
"""What publishers send every day."""

number_texts = (
    st.from_regex(r"\A-?[0-9]{0,20}(\.[0-9]{0,20})?([eE][0-9])?\Z")
    | st.from_regex(r"\A-?[0-9]{1,8}(\.[0-9]{1,7})?\Z")
    | st.from_regex(r"\A-?[0-9]{30,40}(\.[0-9]{1,3})?\Z")
)
time_texts = (
    st.from_regex(r"\A[0-9]{4}-[01][0-9]-[0-3][0-9]([T ][0-2][0-9]:[0-5][0-9]:[0-6][0-9])?Z?\Z")
    | st.datetimes().map(lambda t: t.isoformat())
    | st.datetimes().map(lambda t: t.isoformat(sep=" ", timespec="milliseconds"))
)
any_bytes = st.binary(max_size=40) | st.text(max_size=40).map(lambda t: t.encode(errors="ignore"))

_WHOLE = (
    b'{"table":"quotes","op":"insert","row":{"id":7,"Big":12,"d":1.5,"n":2.25,"s":"a\\u0041\xc3\xa4",'
    b'"b":true,"day":"2024-05-06","at":"2024-05-06T07:08:09.123","zoned":"2024-05-06T07:08:09Z"}}'
)
_PIECES = [b"[", b"{", b"}", b'"', b"\\", b":", b",", b"\xff", b"\x00", b"e", b"-", b"0", b"null"]


def _damaged(cuts: list[tuple[int, int, bytes]]) -> bytes:
    raw = _WHOLE
    for at, length, piece in cuts:
        raw = raw[:at] + piece + raw[at + length :]
    return raw


damaged_lines = st.lists(
    st.tuples(st.integers(0, len(_WHOLE)), st.integers(0, 3), st.sampled_from(_PIECES)),
    min_size=1,
    max_size=3,
).map(_damaged)
"""A plain line with some bytes cut out, and others put in."""

DEEP = [
    *(b"[" * levels + b"]" * levels for levels in (2, 61, 62, 63, 64, 65, 200, 1_000, 100_000)),
    b'{"a":' * 1_000 + b"1" + b"}" * 1_000,
    b"[" * 1_000,
    b'[{"a":' * 30_000,
]
"""Values within values, closed and not."""

ODD_NUMBERS = [
    b"1e99999999999999999999999",
    b"-1e99999999999999999999999",
    b"1e-99999999999999999999999",
    b"0e99999999999999999999999",
    b"-0.0e-99999999999999999999999",
    b"1e999999999",
    b"1e-400",
    b"9" * 400,
    b"9" * 4_301,
    b"1." + b"0" * 100_000,
    b"0." + b"1" * 100_000,
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"0x10",
    b"1_000",
    b"+1",
    b"01",
]

ODD_LINES = [
    b'{"table":"quotes","row":{"id":1,"id":2}}',
    b'{"table":"quotes","row":{"id":1,"s":"a:b"}}',
    b'{"table":"quotes","row":{"id":1,"s":"x","s":"\\u003a"}}',
    b'{"table":"quotes","row":{"id":1,"s":":","s":"::"}}',
    b'{"table":"quotes","table":"Things","row":{"id":1}}',
    b'{"table":"quotes","row":{"id":1},"row":{"id":1}}',
    b'{"table":"quotes","op":"insert","op":"insert","row":{"id":1}}',
    b'{"table":"quotes","row":{"id":1},"op":null}',
    b'{"table":"quotes","row":{"id":1},"op":"insert","x":1}',
    b'{"table":"quotes","row":{"id":1},"op":"update"}',
    b'{"table":"Things","row":{"id":1},"op":"remove"}',
    b'{"table":"Things","row":{"id":1},"op":"update"}',
    b'{"table":"Things","row":{"s":"x","id":1},"op":"update"}',
    b'{"table":"Things","row":{"s":"x"},"op":"delete"}',
    b'{"row":{"id":1},"table":"Things"}',
    b'{"op":"delete","table":"Things","row":{"id":1}}',
    b'{"table":"quotes","row":{"id":1.0},"op":"insert"}',
    b'{"table":"quotes","row":{"id":1,"d":1e400}}',
    b'{"table":"quotes","row":{"id":1,"d":1' + b"0" * 400 + b"}}",
    b'{"table":"quotes","row":{"id":1,"d":-0.0}} ',
    b'{"table":"quotes","row":{"id":1,"n":1.10}}',
    b'{"table":"quotes","row":{"id":1,"n":1.100}}',
    b'{"table":"quotes","row":{"id":1,"n":9999.99}}',
    b'{"table":"quotes","row":{"id":1,"n":10000}}',
    b'{"table":"quotes","row":{"id":1,"n":1e-9}}',
    b'{"table":"quotes","row":{"id":1,"s":"\\ud800"}}',
    *(
        part.replace(b"?", deep)
        for part in (
            b'{"x":?,"table":"quotes","row":{"id":1}}',
            b'{"table":"quotes","row":{"id":1},"x":?}',
            b'{"row":{"id":1,"s":?},"table":"quotes"}',
            b'{"op":?,"table":"quotes","row":{"id":1}}',
            b'{"specversion":"1.0","id":"1","source":"s","type":"t","data":?}',
            b'{"schema":?,"payload":{"op":"c","after":{"id":1},"source":{"table":"quotes"}}}',
            b"?",
        )
        for deep in DEEP
    ),
    *(
        b'{"table":"quotes","row":{"id":1,"%s":%s}}' % (column, number)
        for column in (b"id", b"Big", b"d", b"n", b"wide", b"s", b"b", b"day")
        for number in ODD_NUMBERS
    ),
    b'\xef\xbb\xbf{"table":"quotes","row":{"id":1}}',
    b'\x00{"table":"quotes","row":{"id":1}}',
    b'{"table":"quotes","row":{"id":1}}\x00',
    b'{"table":"quotes","row":{"id":1}} x',
    '{"table":"quotes","row":{"id":1}}'.encode("utf-16"),
    '{"table":"quotes","row":{"id":1}}'.encode("utf-16-le"),
    '{"table":"quotes","row":{"id":1}}'.encode("utf-32"),
    b'{"table":"quotes","row":{"' + b"k" * 900_000 + b'":1}}',
    b'{"table":"' + b"t" * 900_000 + b'","row":{"id":1}}',
    b'{"table":"quotes","op":"' + b"o" * 900_000 + b'","row":{"id":1}}',
    b'{"table":"quotes","row":{"id":1},"' + b"m" * 900_000 + b'":1}',
    b'{"table":"quotes","row":{"id":1},"row":{"id":1,"s":"\xff"}}',
    b'{"table":"quotes","row":{"id":1,"\\u0073":"x","s":"y"}}',
    b'{"table":"quotes","row":{"id":1,"s":"\xed\xa0\x80"}}',
    b'{"table":"quotes","row":{"id":1,"s":"\x00"}}',
    b'{"table":"quotes","row":{"id":1,"s":"\x7f"}}',
    b'{"table":"quotes","row":{"id":1,"s":' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
    b'{"table":"quotes","row":{"id":1,"s":"' + b"x" * (1 << 20) + b'"}}',
    '{"table":"quotes","row":{"id":1,"short":"äöü"}}'.encode(),
    '{"table":"quotes","row":{"id":1,"short":"äöüß"}}'.encode(),
    b'{"table":"quotes","row":{"id":2147483647}}',
    b'{"table":"quotes","row":{"id":-2147483648}}',
    b'{"table":"quotes","row":{"id":2147483648}}',
    b'{"table":"quotes","row":{"id":null}}',
    b'{"table":"quotes","row":{"id":nul}}',
    b'{"table":"quotes","row":{"id":1,"b":tru}}',
    b'{"table":"quotes","row":{"id":1,"b":1}}',
    b'{"table":"quotes","row":{}}',
    b'{"table":"quotes","row":{"id":true}}',
    b'{"table":"quotes","row":{"id":1,}}',
    b'{"table":"quotes","row":{"id":1},}',
    b'{"table":"quotes","row":{"id":1}}}',
    b'{"table":"quotes","row":{"id":1}}{}',
    b'{"table":"quotes","row":{"id":1}',
    b'{"table":"quotes","row":{"id":1',
    b'{"table":"quotes","row":{"id":',
    b'{"table":"quotes","row":{"id',
    b'{"table":"quotes","row":',
    b'{"table":"quotes',
    b'{"table":',
    b"{",
    b"",
    b"\x0c{}",
]


def written(event: dict[str, Any], space: str) -> str:
    """JSON with some space between its parts, and decimals as they are."""
    if isinstance(event, dict):
        members = [f"{json.dumps(n)}{space}:{space}{written(v, space)}" for n, v in event.items()]
        return f"{space}{{{space}{f'{space},{space}'.join(members)}{space}}}{space}"
    return f"{event:f}" if isinstance(event, Decimal) else json.dumps(event, ensure_ascii=False)
