"""The quick way of reading plain lines gives what the careful way gives, whatever is sent."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given

from penstock.catalog import Catalog
from penstock.errors import ChangeError, EventError
from penstock.flow.changes import check
from penstock.flow.events import decode_event
from penstock.flow.plain_events import PlainReader
from tests.flow import plain_lines as lines

READER = PlainReader(lines.CATALOG)
OFFSET = 20


def careful(raw: bytes) -> str:
    try:
        return repr(check(decode_event(raw), lines.CATALOG, OFFSET))
    except ChangeError as error:
        return repr((error.primary, error.detail, error.hint))


def quick(raw: bytes) -> str:
    try:
        return repr(READER.read(raw, OFFSET))
    except ChangeError as error:
        return repr((error.primary, error.detail, error.hint))


@given(lines.events)
def test_any_object(event: dict[str, object]) -> None:
    try:
        raw = msgspec.json.encode(event)
    except (UnicodeEncodeError, OverflowError):
        return
    assert quick(raw) == careful(raw)


@given(lines.any_bytes)
def test_any_bytes(raw: bytes) -> None:
    assert quick(raw) == careful(raw)


@given(lines.damaged_lines)
def test_damaged_lines(raw: bytes) -> None:
    assert quick(raw) == careful(raw)


@pytest.mark.parametrize("raw", lines.ODD_LINES, ids=range(len(lines.ODD_LINES)))
def test_odd_lines(raw: bytes) -> None:
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


@pytest.mark.parametrize("deep", lines.DEEP[6:], ids=len)
def test_deep_values_are_refused_by_name(deep: bytes) -> None:
    """However deep, and wherever: before the table the quick parser skips them one by one."""
    for raw in (
        b'{"x":' + deep + b',"table":"quotes","row":{"id":1}}',
        b'{"row":{"id":' + deep + b'},"table":"quotes"}',
        b'{"table":"quotes","row":{"id":' + deep + b"}}",
    ):
        with pytest.raises(EventError, match="nested more than 64 levels"):
            READER.read(raw, OFFSET)
