"""Plain events are read by a decoder that knows their form; whatever it reads, the parser for all
events must read in the same way, and refuse with the same words what it refuses."""

from __future__ import annotations

import json
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.errors import ChangeError, EventError
from penstock.flow import events
from penstock.flow.events import decode_event, read_change
from tests.flow import plain_lines as lines

OFFSET = 30


def outcome(raw: bytes) -> tuple[object, ...]:
    """What reading an event gives, so that NaN and -0.0 tell."""
    try:
        return ("read", repr(read_change(raw, lines.CATALOG, OFFSET)), repr(decode_event(raw)))
    except ChangeError as error:
        return (type(error), *error.reason())


def check_like_all_events(raw: bytes) -> None:
    with patch.object(events, "_read_plain", return_value=None):
        expected = outcome(raw)
    assert outcome(raw) == expected


def encoded(event: object) -> bytes:
    try:
        return msgspec.json.encode(event)
    except (UnicodeEncodeError, OverflowError):
        return b"?"


@given(lines.events.map(encoded))
def test_any_objects(raw: bytes) -> None:
    check_like_all_events(raw)


@given(st.sampled_from(lines.ODD_LINES) | lines.any_bytes | lines.damaged_lines)
def test_any_bytes(raw: bytes) -> None:
    check_like_all_events(raw)


@given(lines.number_texts, st.sampled_from(["id", "Big", "d", "n", "wide", "s"]))
def test_numbers_as_they_are_written(number: str, column: str) -> None:
    check_like_all_events(f'{{"table":"Things","row":{{"id":1,"{column}":{number}}}}}'.encode())


texts = st.sampled_from([":", "::", "a:b", "\\", "\u003a", '"', "[", "{", "x", "é", ""])
members = st.lists(st.tuples(st.sampled_from(["s", "short", "s:", "id"]), texts), max_size=4)


def written(text: str, escape: bool) -> str:
    """A string of JSON; a colon may be written as an escape."""
    return json.dumps(text).replace(":", "\\u003a") if escape else json.dumps(text)


@given(members, st.sampled_from(["", "insert", "upsert", "::"]), st.booleans(), st.booleans())
@example([("s", ":"), ("s", "x")], "", False, True)
@example([("s", "x"), ("s", ":")], "", False, True)
def test_members_that_are_given_twice(
    row: list[tuple[str, str]], op: str, repeat_table: bool, escape: bool
) -> None:
    inner = ",".join(f"{json.dumps(name)}:{written(text, escape)}" for name, text in row)
    outer = '"table":"quotes",' * (1 + repeat_table) + (f'"op":"{op}",' if op else "")
    raw = f'{{{outer}"row":{{{inner}}}}}'.encode()
    check_like_all_events(raw)
    if len({name for name, _ in row}) < len(row) or repeat_table:
        with pytest.raises(EventError, match="twice"):
            decode_event(raw)


def test_the_usual_event_takes_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(raw: bytes) -> object:
        raise AssertionError(f"parsed as if it were odd: {raw!r}")

    monkeypatch.setattr(events, "parse_json", refuse)
    raw = b'{"table":"quotes","row":{"id":1,"d":0.5,"at":"2024-05-06T07:08:09","s":"a:b"}}'
    assert read_change(raw, lines.CATALOG, OFFSET).row[2] == 0.5
