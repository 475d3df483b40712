"""Arguments that no method was made for, and how to try them on every method of a class."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from penstock.errors import PenstockError
from penstock.spaces import Choice


class Unspeakable:
    """Cannot be shown, counted or compared."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")

    __str__ = __repr__

    def __index__(self) -> int:
        raise RuntimeError("no number")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    __hash__ = None  # type: ignore[assignment]


class Number(int):
    """An integer by another name."""


class Name(str):
    """A text by another name, that shows another text."""

    def __str__(self) -> str:
        return "somebody else"


class Colour(Enum):
    RED = 1


def nested(depth: int) -> object:
    value: object = {}
    for _ in range(depth):
        value = {"row": value, "table": [value]}
        if depth > 100:
            value = [value["row"]]
    return value


# Made anew for each call: some are used up by it.
ODD_VALUES: dict[str, Callable[[], object]] = {
    "None": lambda: None,
    "zero": lambda: 0,
    "one": lambda: 1,
    "minus one": lambda: -1,
    "huge": lambda: 2**63,
    "huger": lambda: 10**5000,
    "far below": lambda: -(10**30),
    "true": lambda: True,
    "false": lambda: False,
    "one as a float": lambda: 1.0,
    "a half": lambda: 0.5,
    "nan": lambda: math.nan,
    "infinity": lambda: -math.inf,
    "enormous": lambda: 1e300,
    "one as a decimal": lambda: Decimal(1),
    "nan as a decimal": lambda: Decimal("sNaN"),
    "one as a fraction": lambda: Fraction(1),
    "complex": lambda: 1 + 0j,
    "a number by another name": lambda: Number(1),
    "int of numpy": lambda: np.int64(1),
    "unsigned of numpy": lambda: np.uint64(2**64 - 1),
    "bool of numpy": lambda: np.bool_(True),
    "float of numpy": lambda: np.float64(1.0),
    "nan of numpy": lambda: np.float32("nan"),
    "text of numpy": lambda: np.str_("stocks"),
    "array": lambda: np.array([1, 2, 3]),
    "array of one": lambda: np.array(1),
    "time of numpy": lambda: np.datetime64("NaT"),
    "empty text": lambda: "",
    "digit": lambda: "1",
    "word": lambda: "stocks",
    "a text by another name": lambda: Name("stocks"),
    "surrogate": lambda: "a\ud800b",
    "NUL": lambda: "a\0b",
    "long text": lambda: "x" * 3_000_000,
    "control characters": lambda: "\x1b[2J\r\n",
    "bytes": lambda: b"1",
    "bytearray": lambda: bytearray(b"stocks"),
    "memoryview": lambda: memoryview(b"stocks"),
    "path": lambda: Path("stocks"),
    "date": lambda: date(2024, 2, 29),
    "datetime": lambda: datetime(2024, 2, 29, tzinfo=timezone(timedelta(hours=14))),
    "last datetime": lambda: datetime.max.replace(tzinfo=UTC),
    "timedelta": lambda: timedelta(days=1),
    "empty list": list,
    "list": lambda: [1, "a", None],
    "list of lists": lambda: [[[0]], [[1.5]], [[]]],
    "empty tuple": lambda: (),
    "choices": lambda: ((Choice(1, ()), Choice(0, ())),),
    "odd choices": lambda: ((Choice(1.0, (True,)), Choice(None, None)),),  # type: ignore[arg-type]
    "choices of numpy": lambda: ((Choice(np.int64(1), ()), Choice(np.int8(0), ())),),  # type: ignore[arg-type]
    "set": lambda: {1, 2},
    "range": lambda: range(10**12),
    "generator": lambda: (i for i in range(3)),
    "iterator of changes": lambda: iter([{"table": "stocks", "row": {}}]),
    "empty mapping": dict,
    "odd keys": lambda: {1: 2, None: 3, (4,): 5, b"6": 7, "\ud800": 8},
    "odd values of columns": lambda: {"id": 1.0, "symbol": b"x", "per": "1"},
    "unspeakable values": lambda: {"id": Unspeakable(), "symbol": [Unspeakable()]},
    "unspeakable change": lambda: {"table": Unspeakable(), "op": Unspeakable(), "row": {}},
    "a mapping in a mapping": lambda: {"id": 7, "symbol": {"a": {"b": []}}, "per": 1},
    "nested": lambda: nested(5),
    "nested deeply": lambda: nested(5_000),
    "sound change": lambda: {"table": "stocks", "op": "insert", "row": {"id": 9, "symbol": "S"}},
    "change with odd members": lambda: {"table": "stocks", "op": 1, "row": [], 5: 6},
    "type": lambda: int,
    "function": lambda: print,
    "lambda": lambda: lambda *_args, **_named: "?",
    "object": object,
    "unspeakable": Unspeakable,
    "enum": lambda: Colour.RED,
    "exception": lambda: ValueError("x"),
    "ellipsis": lambda: ...,
}


def public_methods(kind: type) -> list[str]:
    """Every method and property that users of a class see; new ones are found here at once."""
    return [
        name
        for name, member in inspect.getmembers_static(kind)
        if not name.startswith("_")
        and (callable(member) or isinstance(member, property | classmethod | staticmethod))
    ]


def odd_calls(
    function: Callable[..., object], sound: Mapping[str, Callable[[], object]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """A function's arguments with each parameter odd in each way, the others sound; those that
    nobody knows a sound value for are odd, too."""
    parameters = inspect.signature(function).parameters
    for name in parameters:
        for odd, make in ODD_VALUES.items():
            arguments = {
                other: sound[other]() if other in sound else make()
                for other, one in parameters.items()
                if other in sound or one.default is inspect.Parameter.empty
            }
            yield f"{name}: {odd}", arguments | {name: make()}


def check_refusal(error: PenstockError) -> None:
    """It says something, and what it says can be shown."""
    assert error.primary.strip()
    str(error).encode(errors="replace")
    assert len(str(error)) < 10_000
