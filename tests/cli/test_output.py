"""What is printed for machines, and for people."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from penstock.cli.output import count, shown, size
from penstock.json_text import json_line


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Decimal("1.50"), "1.50"),
        (date(2024, 2, 29), "2024-02-29"),
        (datetime(2024, 2, 29, 12, tzinfo=UTC), "2024-02-29T12:00:00+00:00"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (True, True),
        (None, None),
        (1 << 60, 1 << 60),
        (("a", [1.5]), ["a", [1.5]]),
        ({"é": {"x": Decimal(1)}}, {"é": {"x": "1"}}),
    ],
)
def test_json_values(value: object, expected: object) -> None:
    line = json_line({"value": value})
    assert line.isascii()
    assert json.loads(line) == {"value": expected}


def test_values_for_people() -> None:
    values = (None, True, Decimal("1.50"), datetime(2024, 2, 29, 12), "[bold]")
    assert [shown(value) for value in values] == [
        "NULL", "true", "1.50", "2024-02-29 12:00:00", "[bold]",
    ]  # fmt: skip


def test_numbers_for_people() -> None:
    assert count(1, "row") == "1 row"
    assert count(2000, "query", "queries") == "2,000 queries"
    assert [size(n) for n in (900, 25_000, 63_635_463)] == ["900 B", "25 kB", "63.6 MB"]
