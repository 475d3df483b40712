"""The quick way of reading plain lines finds what the careful way finds, or nothing."""

from __future__ import annotations

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.engine.events import _any_change, _plain_change
from penstock.errors import EventError

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
names = st.sampled_from(["table", "op", "row", "id", "a", "before", "specversion", "TABLE"])
rows = st.dictionaries(names, values, max_size=4)
events = st.fixed_dictionaries(
    {"table": st.just("t") | values, "row": rows | values},
    optional={"op": st.sampled_from(["insert", "update", "delete", "upsert", "x"]) | values},
) | st.dictionaries(names, values)


def careful(raw: bytes) -> object:
    try:
        return _any_change(raw)
    except EventError:
        return None


@given(events)
@example({"table": "t", "row": {"a": 1.10, "b": 1e400}})
def test_any_object(event: dict[str, object]) -> None:
    try:
        raw = msgspec.json.encode(event)
    except (UnicodeEncodeError, OverflowError):
        return
    quick = _plain_change(raw)
    assert quick is None or repr(quick) == repr(careful(raw))


@given(st.binary(max_size=40) | st.text(max_size=40).map(lambda t: t.encode(errors="ignore")))
@example(b'{"table":"t","row":{"a":1,"a":2}}')
@example(b'{"table":"t","table":"u","row":{"a":1}}')
@example(b'{"table":"t","row":{"a":"x:y"}}')
@example(b'{"table":"t","row":{"a":1},"op":null}')
@example(b'{"table":"t","row":{"a":1.0},"op":"insert"}')
@example(b'{"table":"t","row":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}")
@example(b'{"table":"t","row":{"a":"\\ud800"}}')
def test_any_bytes(raw: bytes) -> None:
    quick = _plain_change(raw)
    assert quick is None or repr(quick) == repr(careful(raw))


def test_the_usual_lines_are_read_quickly() -> None:
    line = b'{"table": "stocks", "op": "insert", "row": {"id": 4, "symbol": "GOOG", "per": 52.1}}'
    for raw in (line, line.replace(b'"op": "insert", ', b""), line.replace(b"insert", b"update")):
        quick = _plain_change(raw)
        assert quick is not None
        assert repr(quick) == repr(careful(raw))
