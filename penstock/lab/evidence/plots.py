"""Plots of items by matplotlib, as PNG and SVG: ours and, where it has points, the paper's."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import ExtraError
from penstock.lab.evidence.model import Plot, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (
    *("#1f6f8b", "#c8553d", "#588157", "#6d597a", "#bc6c25", "#264653", "#8d99ae"),
    *("#e07a5f", "#3d405b", "#81b29a", "#b5838d", "#7f5539", "#d4a017"),
)
MARKERS = "osD^vP*X<>phd"
"""Thirteen of each: every series has its own colour and marker."""
INCHES = (8.0, 4.2)
LEGEND_SHARE = 0.66
"""The share of the width for the axes; the legend is beside them."""


@dataclass(frozen=True, slots=True)
class Picture:
    svg: str
    png: bytes


def draw_plot(plot: Plot, rows: Sequence[Row], title: str) -> Picture:
    figure = _figure(title)
    axes = figure.add_axes((0.1, 0.14, LEGEND_SHARE - 0.1, 0.74))
    shown = [row for row in rows if row.get(plot.y) is not None]
    places = list(dict.fromkeys(row[plot.x] for row in shown))
    if len(places) > 1 and all(isinstance(x, int | float) for x in places):
        _draw_lines(axes, plot, shown)
    else:
        _draw_bars(axes, plot, shown, places)
    axes.set_xlabel(plot.x_label or plot.x)
    axes.set_ylabel(plot.y_label or plot.y)
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), frameon=False, fontsize=8)
    return Picture(_saved(figure, "svg").decode(), _saved(figure, "png"))


def _figure(title: str) -> Figure:
    try:
        from matplotlib import rcParams
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ExtraError("plots of papers", "matplotlib", "lab") from error
    rcParams["svg.hashsalt"] = "penstock"  # makes plots reproducible byte for byte
    figure = Figure(figsize=INCHES)
    figure.suptitle(title, fontsize=10)
    return figure


def _draw_lines(axes: Axes, plot: Plot, rows: Sequence[Row]) -> None:
    for number, name in enumerate(_series(plot, rows)):
        mine = [row for row in rows if row[plot.series] == name]
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        x, y = [_number(row[plot.x]) for row in mine], [_number(row[plot.y]) for row in mine]
        spread = [_number(row.get(plot.interval) or 0.0) for row in mine]
        axes.errorbar(x, y, spread, color=colour, marker=marker, capsize=3, label=str(name))
        theirs = [(_number(r[plot.x]), _number(r[plot.paper])) for r in mine if _has(r, plot.paper)]
        if theirs:
            axes.plot(
                *zip(*theirs, strict=True),
                color=colour,
                marker=marker,
                markerfacecolor="none",
                markersize=10,
                linestyle="--",
                label=f"{name}, published",
            )
    if plot.log_x:
        axes.set_xscale("log")
    if plot.log_y:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)


def _draw_bars(axes: Axes, plot: Plot, rows: Sequence[Row], places: Sequence[object]) -> None:
    names = _series(plot, rows)
    width = 0.8 / max(1, len(names))
    for number, name in enumerate(names):
        mine = {row[plot.x]: row for row in rows if row[plot.series] == name}
        at = [
            i + width * (number - (len(names) - 1) / 2) for i, x in enumerate(places) if x in mine
        ]
        found = [mine[x] for x in places if x in mine]
        axes.bar(
            at,
            [_number(row[plot.y]) for row in found],
            width,
            yerr=[_number(row.get(plot.interval) or 0.0) for row in found],
            capsize=3,
            color=COLOURS[number % len(COLOURS)],
            label=str(name),
        )
        theirs = [
            (x, _number(row[plot.paper]))
            for x, row in zip(at, found, strict=True)
            if _has(row, plot.paper)
        ]
        if theirs:
            marker = MARKERS[number % len(MARKERS)]
            x, y = zip(*theirs, strict=True)
            axes.plot(x, y, marker, color="black", mfc="none", label=f"{name}, published")
    axes.set_xticks(range(len(places)), [str(x) for x in places])
    if plot.log_y:
        axes.set_yscale("log")


def _series(plot: Plot, rows: Sequence[Row]) -> list[object]:
    return list(dict.fromkeys(row[plot.series] for row in rows))


def _has(row: Row, column: str) -> bool:
    return isinstance(row.get(column), int | float)


def _number(value: object) -> float:
    return float(str(value))


def _saved(figure: Figure, kind: str) -> bytes:
    written = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {}
    figure.savefig(written, format=kind, dpi=120, metadata=metadata, bbox_inches="tight")
    return written.getvalue()
