"""Line plots as SVG, with logarithmic axes: enough for growth, without a library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT, _MARGIN = 640, 400, 60
_COLOURS = (
    *("#1f6f8b", "#c8553d", "#588157", "#6d597a", "#bc6c25", "#264653"),
    *("#8d99ae", "#e07a5f", "#3d405b", "#81b29a", "#b5838d", "#7f5539"),
)


@dataclass(frozen=True, slots=True)
class Series:
    """A line with a name, through points of positive numbers."""

    name: str
    points: Sequence[tuple[float, float]]


def line_plot(y_label: str, x_label: str, series: Sequence[Series]) -> str:
    """The text of an SVG file."""
    points = [point for one in series for point in one.points]
    x_low, x_high = _decades([x for x, _ in points])
    y_low, y_high = _decades([y for _, y in points])

    def at(x: float, y: float) -> tuple[float, float]:
        right = (math.log10(x) - x_low) / (x_high - x_low)
        up = (math.log10(y) - y_low) / (y_high - y_low)
        return (
            _MARGIN + right * (_WIDTH - 2 * _MARGIN),
            _HEIGHT - _MARGIN - up * (_HEIGHT - 2 * _MARGIN),
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}">',
        "<style>text { font: 12px sans-serif; text-anchor: middle }</style>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
    ]
    for power in range(x_low, x_high + 1):
        x, bottom = at(10.0**power, 10.0**y_low)
        parts.append(_line((x, bottom), at(10.0**power, 10.0**y_high), "#dddddd"))
        parts.append(_text(x, bottom + 18, f"{10**power:,}" if power >= 0 else f"1e{power}"))
    for power in range(y_low, y_high + 1):
        left, y = at(10.0**x_low, 10.0**power)
        parts.append(_line((left, y), at(10.0**x_high, 10.0**power), "#dddddd"))
        parts.append(_text(left - 24, y + 4, f"{10.0**power:g}"))
    for number, one in enumerate(series):
        colour = _COLOURS[number % len(_COLOURS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in one.points))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(_text(_WIDTH - 130, 24 + 16 * number, one.name, colour))
    parts.append(_text(_WIDTH / 2, _HEIGHT - 14, x_label))
    parts.append(_text(_MARGIN + 40, 24, y_label))
    return "\n".join([*parts, "</svg>", ""])


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """The powers of ten around the values, at least one apart."""
    low = math.floor(math.log10(min(values, default=1.0)))
    high = math.ceil(math.log10(max(values, default=10.0)))
    return low, max(high, low + 1)


def _line(start: tuple[float, float], end: tuple[float, float], colour: str) -> str:
    (x1, y1), (x2, y2) = start, end
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _text(x: float, y: float, text: str, colour: str = "#333333") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" fill="{colour}">{escape(text)}</text>'
    )
