"""A plan to look at: levels, load, latency, who feeds whom; as lines of text and as SVG."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

from penstock.errors import PlanError
from penstock.views.planning_problem import Plan

MAX_PICTURED_VIEWS = 2_000
"""More would be unreadable."""
_WIDTH, _MARGIN, _ROW = 1000, 60, 14
_COLOURS = ("#1f6f8b", "#c8553d", "#588157", "#6d597a", "#bc6c25", "#264653", "#8d99ae", "#e07a5f")


def describe_plan(plan: Plan, names: Sequence[str], most: int = 20) -> list[str]:
    """A summary, a line per level, and the views that feed most others."""
    levels, loads, latencies = plan.levels(), plan.loads(), plan.latencies()
    from_source = int(plan.is_from_source.sum())
    views = plan.problem.views
    lines = [
        f"{views:,} views, {from_source:,} fed by the source, {views - from_source:,} by others",
        f"utilisation {plan.utilisation():,.0f}, latency {latencies.sum():,.2f} s in sum",
    ]
    for level, count in sorted(Counter(levels.tolist()).items()):
        here = levels == level
        lines.append(
            f"level {level}: {count:,} views, latency {latencies[here].mean():.3f} s on average, "
            f"feeding {int(loads[here].sum()):,} times"
        )
    busiest = sorted(range(views), key=lambda view: (-loads[view], view))[:most]
    lines += [f"{names[view]} feeds {loads[view]}" for view in busiest if loads[view]]
    return lines


def plan_svg(plan: Plan, names: Sequence[str]) -> str:
    """The text of an SVG file: a column per level, from the source on the left; the size of a
    circle shows how many views it feeds. Names are tooltips."""
    views = plan.problem.views
    if views > MAX_PICTURED_VIEWS:
        raise PlanError(
            f"{views:,} views do not fit a picture",
            hint=f"at most {MAX_PICTURED_VIEWS:,} do; choose some",
        )
    levels, loads, latencies = plan.levels(), plan.loads(), plan.latencies()
    places, height = _places(levels.tolist())
    source = (float(_MARGIN), height / 2)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}">',
        "<style>text { font: 12px sans-serif; text-anchor: middle }</style>",
        f'<rect width="{_WIDTH}" height="{height:.0f}" fill="white"/>',
    ]
    for view in range(views):
        feeders = [places[one] for one in plan.inputs_of(view)] or [source]
        parts += [_curve(feeder, places[view], int(levels[view])) for feeder in feeders]
    for view, (x, y) in enumerate(places):
        colour = _COLOURS[int(levels[view]) % len(_COLOURS)]
        title = f"{names[view]}: feeds {loads[view]}, {latencies[view]:.3f} s"
        radius = 2.5 + float(loads[view]) ** 0.5
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colour}">'
            f"<title>{escape(title)}</title></circle>"
        )
    parts.append(f'<rect x="{source[0] - 8}" y="{source[1] - 8:.1f}" width="16" height="16"/>')
    parts.append(f'<text x="{source[0]}" y="{source[1] - 14:.1f}">source</text>')
    for level, count in sorted(Counter(levels.tolist()).items()):
        x = _column(level, int(levels.max()))
        parts.append(f'<text x="{x:.1f}" y="20">level {level}: {count}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _column(level: int, levels: int) -> float:
    return _MARGIN + level * (_WIDTH - 2 * _MARGIN) / max(1, levels)


def _places(levels: Sequence[int]) -> tuple[list[tuple[float, float]], float]:
    """Where each view is drawn, and the height of the picture."""
    counts = Counter(levels)
    tallest = max(counts.values(), default=1)
    height = 2.0 * _MARGIN + _ROW * tallest
    seen: Counter[int] = Counter()
    places = []
    for level in levels:
        gap = (height - 2 * _MARGIN) / counts[level]
        places.append((_column(level, max(counts)), _MARGIN + gap * (seen[level] + 0.5)))
        seen[level] += 1
    return places, height


def _curve(start: tuple[float, float], end: tuple[float, float], level: int) -> str:
    middle = (start[0] + end[0]) / 2
    colour = _COLOURS[level % len(_COLOURS)]
    return (
        f'<path d="M{start[0]:.1f},{start[1]:.1f} C{middle:.1f},{start[1]:.1f} '
        f'{middle:.1f},{end[1]:.1f} {end[0]:.1f},{end[1]:.1f}" fill="none" '
        f'stroke="{colour}" stroke-opacity="0.35"/>'
    )
