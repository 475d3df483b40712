"""JSON from untrusted publishers: limits before parsing, no duplicate members, no lost digits.

Numbers with a point or an exponent become `Decimal`, so that they keep all digits. Any input gives
a value or an `EventError`: the depth is checked before any parser recurses, and a number is never
expanded to the digits that its exponent stands for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation

import msgspec

from penstock.catalog.numerals import read_number
from penstock.errors import EventError

MAX_EVENT_BYTES = 1 << 20  # 1 MiB
MAX_EVENT_DEPTH = 64  # a change event with its schema nests about 8 deep

_DECODER = msgspec.json.Decoder(float_hook=Decimal)
_ANY_EXPONENT_DECODER = msgspec.json.Decoder(float_hook=read_number)
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_EXCERPT_BYTES = 20
_DIGITS = "integers of more than 4,300 digits are not read"  # Python's own limit
_CONTAINERS = frozenset({dict, list})


def parse_json(raw: bytes) -> object:
    """The value of a JSON text; EventError if it is invalid or exceeds a limit."""
    if len(raw) > MAX_EVENT_BYTES:
        raise EventError(f"the event has {len(raw)} bytes; at most {MAX_EVENT_BYTES} are accepted")
    if raw.count(b"{") + raw.count(b"[") > MAX_EVENT_DEPTH:
        _check_depth(raw)
    try:
        value = _decode(raw)
    except UnicodeDecodeError as error:
        raise _not_utf8(raw, error) from None
    except msgspec.DecodeError as error:
        raise _not_json(raw, error) from None
    # Every member has one colon outside of strings. If there are no more colons than members, none
    # is a duplicate; this avoids the slow check for most events.
    if raw.count(b":") != _count_members(value):
        _loads(raw, _without_duplicates)
    return value


def _decode(raw: bytes) -> object:
    try:
        return _DECODER.decode(raw)
    except InvalidOperation:  # an exponent beyond the range of Decimal
        return _ANY_EXPONENT_DECODER.decode(raw)


def _loads(raw: bytes, hook: Callable[[list[tuple[str, object]]], object] | None = None) -> object:
    # As text: for bytes, the standard library guesses encodings other than UTF-8, too.
    return json.loads(raw.decode(), object_pairs_hook=hook, parse_int=str, parse_float=str)


def _check_depth(raw: bytes) -> None:
    depth = 0
    for byte in _STRING.sub(b"", raw):
        if byte in b"{[":
            depth += 1
            if depth > MAX_EVENT_DEPTH:
                raise EventError(f"the event is nested more than {MAX_EVENT_DEPTH} levels deep")
        elif byte in b"}]":
            depth -= 1


def _count_members(value: object) -> int:
    count = 0
    items: Iterable[object] = ()
    if isinstance(value, dict):
        count, items = len(value), value.values()
    elif isinstance(value, list):
        items = value
    for item in items:
        if type(item) in _CONTAINERS:
            count += _count_members(item)
    return count


def _without_duplicates(pairs: list[tuple[str, object]]) -> None:
    seen = set()
    for name, _ in pairs:
        if name in seen:
            raise EventError(f"the event gives {name!r:.60} twice in one object")
        seen.add(name)


def _not_utf8(raw: bytes, error: UnicodeDecodeError) -> EventError:
    try:
        raw.decode()
    except UnicodeDecodeError as whole:
        error = whole  # its position is relative to the event, not to one string
    return EventError(
        "the event is not valid UTF-8",
        detail=f"byte {error.start} is 0x{error.object[error.start]:02x}: {error.reason}",
        hint="publish UTF-8",
    )


def _not_json(raw: bytes, error: msgspec.DecodeError) -> EventError:
    reason = str(error).removeprefix("JSON is malformed: ")
    if not raw.strip():
        return EventError("the event is empty")
    if "Integer value out of range" in reason:
        return EventError("a number in the event has too many digits", detail=_DIGITS)
    if "truncated" in reason:
        if _has_lone_surrogate(raw):
            return EventError(
                "the event holds half a character", detail="a lone \\ud800 to \\udfff"
            )
        return EventError(
            "the event is cut short", detail=f"the text ends after {len(raw)} bytes, inside a value"
        )
    place = re.search(r"\(byte (\d+)\)", reason)
    if place is not None:
        at = int(place[1])
        excerpt = raw[max(0, at - _EXCERPT_BYTES) : at + _EXCERPT_BYTES]
        reason = f"{reason}, near {excerpt.decode(errors='replace')}"
    hint = "JSON has no NaN or Infinity: write them as strings" if _has_constant(raw) else ""
    return EventError("the event is not valid JSON", detail=reason, hint=hint)


def _has_lone_surrogate(raw: bytes) -> bool:
    """Whether the text is complete, so that only a lone surrogate can have stopped the parser."""
    try:
        _loads(raw)
    except ValueError:
        return False
    return True


def _has_constant(raw: bytes) -> bool:
    return re.search(rb"\b(?:NaN|Infinity)\b", _STRING.sub(b"", raw)) is not None
