"""Intervals over the values of one attribute, NULL included.

An attribute's values are ordered: NULL first, then everything that is not NULL. A *cut* is a
position between values: below NULL, between NULL and the rest, just below or just above a key, or
above everything. Cuts are tuples that Python compares in exactly that order. An interval is the
range between two cuts, so open and closed ends, missing ends and NULL need no special cases:

    x >= 5        from just below 5 to the top
    x > 5         from just above 5 to the top
    x IS NULL     from the bottom to just above NULL
    x LIKE 'ab%'  from just below 'ab' to just below 'ac'
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from penstock.catalog.types import Key, Stored, ValueType

Cut: TypeAlias = tuple[int] | tuple[int, Key, int]

BOTTOM: Cut = (0,)
ABOVE_NULL: Cut = (1,)
TOP: Cut = (3,)


def below(key: Key | None) -> Cut:
    """The cut just below a key, or below NULL."""
    return BOTTOM if key is None else (2, key, 0)


def above(key: Key | None) -> Cut:
    """The cut just above a key, or above NULL."""
    return ABOVE_NULL if key is None else (2, key, 1)


class Interval(NamedTuple):
    """The values between two cuts. An interval is empty if `low >= high`.

    A named tuple, because intervals are compared, sorted and hashed by the million.
    """

    low: Cut
    high: Cut

    @property
    def is_empty(self) -> bool:
        return self.low >= self.high

    def contains(self, key: Key | None) -> bool:
        return self.low <= below(key) and above(key) <= self.high

    def covers(self, other: Interval) -> bool:
        return self.low <= other.low and other.high <= self.high

    def intersect(self, other: Interval) -> Interval:
        return Interval(max(self.low, other.low), min(self.high, other.high))

    def touches(self, other: Interval) -> bool:
        """Whether the union of both is one interval."""
        return max(self.low, other.low) <= min(self.high, other.high)

    def hull(self, other: Interval) -> Interval:
        return Interval(min(self.low, other.low), max(self.high, other.high))


EVERYTHING = Interval(BOTTOM, TOP)
NOT_NULL = Interval(ABOVE_NULL, TOP)
IS_NULL = Interval(BOTTOM, ABOVE_NULL)
NOTHING = Interval(TOP, BOTTOM)


def point(key: Key) -> Interval:
    return Interval(below(key), above(key))


def normalise(interval: Interval, value_type: ValueType) -> Interval:
    """The canonical form, so that equal sets of values are equal intervals.

    For types whose keys are integers, `x > 5` and `x >= 6` are one set; where a type has a
    largest or smallest value, so are `x <= largest` and `x IS NOT NULL`.
    """
    low, high = _normal_cut(interval.low, value_type), _normal_cut(interval.high, value_type)
    return Interval(low, high)


def _normal_cut(cut: Cut, value_type: ValueType) -> Cut:
    if len(cut) == 1:
        return cut
    if cut[2] == 1:
        following = value_type.successor(cut[1])
        cut = cut if following is None else below(following)
    lowest, highest = value_type.key_range
    if lowest is not None and cut <= below(lowest):
        return ABOVE_NULL
    if highest is not None and cut >= above(highest):
        return TOP
    return cut


def prefix(text: str) -> Interval:
    """The strings that start with `text`, in code-point order."""
    stem = text.rstrip("\U0010ffff")  # nothing follows the last code point: carry to the left
    if not stem:
        return Interval(below(text) if text else ABOVE_NULL, TOP)
    successor = ord(stem[-1]) + 1
    successor = 0xE000 if successor == 0xD800 else successor  # surrogates are not characters
    return Interval(below(text), below(stem[:-1] + chr(successor)))


def describe(interval: Interval, name: str, value_type: ValueType) -> str:
    """The interval as a readable condition: `45 <= per <= 70`."""
    if interval.is_empty:
        return f"{name} in no value"
    if interval == EVERYTHING:
        return f"{name} is anything"
    if interval == NOT_NULL:
        return f"{name} IS NOT NULL"
    if interval == IS_NULL:
        return f"{name} IS NULL"
    text = _describe_values(interval.low, interval.high, name, value_type)
    return f"{text} or {name} IS NULL" if interval.low == BOTTOM else text


def _describe_values(low: Cut, high: Cut, name: str, value_type: ValueType) -> str:
    """The condition on values that are not NULL."""
    if value_type.discrete and len(high) == 3 and high[2] == 0 and isinstance(high[1], int):
        high = above(high[1] - 1)
    lowest, highest = value_type.key_range
    first = low if len(low) == 3 or lowest is None else below(lowest)
    last = high if len(high) == 3 or highest is None else above(highest)
    if len(first) == 3 and Interval(first, last) == point(first[1]):
        return f"{name} = {_show(first[1], value_type)}"
    if len(low) == 3 and isinstance(low[1], str) and Interval(low, high) == prefix(low[1]):
        return f"{name} starts with {_show(low[1], value_type)}"
    text = name
    if len(low) == 3:
        text = f"{_show(low[1], value_type)} {'<' if low[2] else '<='} {text}"
    if len(high) == 3:
        text = f"{text} {'<=' if high[2] else '<'} {_show(high[1], value_type)}"
    return text


def _show(key: Key, value_type: ValueType) -> str:
    return show_value(value_type.unkey(key), value_type)


def show_value(stored: Stored, value_type: ValueType) -> str:
    """A stored value as an SQL literal."""
    return "NULL" if stored is None else value_type.literal(stored)
