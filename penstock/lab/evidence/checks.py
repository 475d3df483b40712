"""Building blocks of claims: checks over rows with `series`, `x` and `ours`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from penstock.lab.evidence.model import Check, Row


def value(rows: Sequence[Row], series: str, x: object) -> float:
    return next(
        float(str(row["ours"])) for row in rows if row["series"] == series and row["x"] == x
    )


def places(rows: Sequence[Row]) -> list[object]:
    """The values of x, in order of appearance."""
    return list(dict.fromkeys(row["x"] for row in rows))


def line(rows: Sequence[Row], series: str) -> list[tuple[float, float]]:
    """The points of a series."""
    return [
        (float(str(row["x"])), float(str(row["ours"]))) for row in rows if row["series"] == series
    ]


def is_always_less(rows: Sequence[Row], low: str, high: str) -> tuple[bool, str]:
    ratios = [value(rows, low, x) / value(rows, high, x) for x in places(rows)]
    return max(ratios) < 1, f"{low} needs {min(ratios):.2f} to {max(ratios):.2f} times {high}'s"


def growth_exponent(rows: Sequence[Row], series: str) -> float:
    """Between the first and the last point: 1 is linear."""
    (x0, y0), *_, (x1, y1) = line(rows, series)
    return math.log(y1 / y0) / math.log(x1 / x0)


def is_lowest(name: str, others: Sequence[str]) -> Check:
    """At every x, up to rounding."""

    def check(rows: Sequence[Row]) -> tuple[bool, str]:
        least = {x: min(value(rows, one, x) for one in others) for x in places(rows)}
        shares = {x: value(rows, name, x) / max(least[x], 1e-9) for x in least}
        texts = [f"{share:.2f} times the next at {_shown(x)}" for x, share in shares.items()]
        return max(shares.values()) <= 1.001, f"{name}: " + ", ".join(texts)

    return check


def is_times_better(
    name: str, others: Sequence[str], factor: float, *, last_only: bool = False
) -> Check:
    def check(rows: Sequence[Row]) -> tuple[bool, str]:
        chosen = places(rows)[-1:] if last_only else places(rows)
        least: dict[str, float] = {}
        for other in others:
            ratios = [value(rows, other, x) / max(value(rows, name, x), 1e-9) for x in chosen]
            least[other] = min(ratios)
        texts = [f"{other} {ratio:.1f}" for other, ratio in least.items()]
        return min(least.values()) >= factor, f"times {name}'s, at least: " + ", ".join(texts)

    return check


def all_grow(names: Sequence[str], factor: float = 1.0) -> Check:
    """From the first x to the last, by more than a factor."""

    def check(rows: Sequence[Row]) -> tuple[bool, str]:
        grown = _grown(rows, names)
        return min(grown.values()) > factor, _listed(grown)

    return check


def all_shrink(names: Sequence[str], factor: float = 1.0) -> Check:
    def check(rows: Sequence[Row]) -> tuple[bool, str]:
        grown = _grown(rows, names)
        return max(grown.values()) < factor, _listed(grown)

    return check


def is_steady(name: str, tolerance: float) -> Check:
    def check(rows: Sequence[Row]) -> tuple[bool, str]:
        values = [y for _, y in line(rows, name)]
        spread = max(values) / max(min(values), 1e-9) - 1
        return spread <= tolerance, f"{name} varies by {spread:.0%}"

    return check


def agrees(tolerance: float, column: str = "paper") -> Check:
    """With every published number."""

    def check(rows: Sequence[Row]) -> tuple[bool, str]:
        pairs = [
            (f"{row['series']} at {_shown(row['x'])}", _float(row["ours"]), _float(row[column]))
            for row in rows
            if row.get(column) is not None
        ]
        near = [abs(ours / theirs - 1) <= tolerance for _, ours, theirs in pairs]
        texts = [f"{name} {ours:,.4g} (published {theirs:,.4g})" for name, ours, theirs in pairs]
        return bool(near) and all(near), ", ".join(texts)

    return check


def _grown(rows: Sequence[Row], names: Sequence[str]) -> dict[str, float]:
    first, last = places(rows)[0], places(rows)[-1]
    return {name: value(rows, name, last) / max(value(rows, name, first), 1e-9) for name in names}


def _listed(grown: dict[str, float]) -> str:
    return "from the first to the last: " + ", ".join(
        f"{name} times {ratio:.2f}" for name, ratio in grown.items()
    )


def _shown(x: object) -> str:
    return f"{x:,}" if isinstance(x, int) else str(x)


def _float(given: object) -> float:
    return float(str(given))
