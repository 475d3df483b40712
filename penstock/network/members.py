"""Type checks of data received over the wire against the declarations of its class.

A peer can send anything. Decoded bytes become a named tuple; here its members are compared with the
annotations of its class, so that later code can rely on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from types import UnionType
from typing import Any, NamedTuple, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from penstock.errors import WireError

UNREADABLE = (
    *(msgspec.DecodeError, WireError),
    *(TypeError, ValueError, LookupError, ArithmeticError, RecursionError),
)
"""Exceptions that reading malformed bytes may raise."""

Kind = TypeVar("Kind")
Test: TypeAlias = Callable[[Any], bool]


class _Member(NamedTuple):
    name: str
    test: Test
    type: str


def numbered(kinds: Sequence[Kind], number: Any) -> Kind:
    """The kind with this number on the wire; LookupError if there is none."""
    if type(number) is not int or not 0 <= number < len(kinds):
        raise LookupError(f"there is no kind {number!r:.20}")
    return kinds[number]


def check_members(read: tuple[Any, ...]) -> None:
    """TypeError if a member of a named tuple is not what its class declares."""
    kind = type(read)
    for value, (name, test, declared) in zip(read, _members_of(kind), strict=True):
        if not test(value):
            raise TypeError(f"the {name} of a {kind.__name__} is no {declared}")


@cache
def _members_of(kind: type[tuple[Any, ...]]) -> tuple[_Member, ...]:
    return tuple(
        _Member(name, _test(declared), getattr(declared, "__name__", str(declared)))
        for name, declared in get_type_hints(kind).items()
    )


def _test(declared: Any) -> Test:
    origin, parts = get_origin(declared), get_args(declared)
    if origin is tuple:
        return _tuple_test(parts)
    if origin in (Union, UnionType):
        tests = [_test(part) for part in parts]
        return lambda value: any(test(value) for test in tests)
    if declared is Any:
        return lambda _: True
    if declared is int:
        return lambda value: type(value) is int  # excludes booleans
    return lambda value: isinstance(value, origin or declared)


def _tuple_test(parts: tuple[Any, ...]) -> Test:
    if parts[-1:] == (Ellipsis,):
        each = _test(parts[0])
        return lambda value: isinstance(value, tuple) and all(map(each, value))
    tests = [_test(part) for part in parts]
    return lambda value: (
        isinstance(value, tuple)
        and len(value) == len(tests)
        and all(test(one) for test, one in zip(tests, value, strict=True))
    )
