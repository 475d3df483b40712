"""An overlay as an SVG: the server in the middle, the width of links by their traffic."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from penstock.network.overlays import Edge, numbered_links

SIZE = 800
RING = 90
"""Pixels from one ring of nodes to the next, at most."""
WIDEST = 14.0
LABELLED_NODES = 60
"""With more nodes, labels of links would overlap."""


def draw_overlay(
    nodes: int, edges: Sequence[Edge], loads: Counter[tuple[int, int]], subscribers: Counter[int]
) -> str:
    places = _places(nodes, edges)
    heaviest = max(loads.values(), default=1)
    style = 'font-family="sans-serif" text-anchor="middle"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}" {style}>',
        f'<rect width="{SIZE}" height="{SIZE}" fill="white"/>',
    ]
    for one, other in edges:
        load = loads[one, other] + loads[other, one]
        width = 0.6 + WIDEST * math.sqrt(load / heaviest)
        (x1, y1), (x2, y2) = places[one], places[other]
        parts.append(
            f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" '
            f'stroke="#3b6ea5" stroke-opacity="0.6" stroke-width="{width:.1f}">'
            f"<title>{one} – {other}: {load:,} bytes</title></line>"
        )
        if nodes <= LABELLED_NODES:
            x, y = (x1 + x2) / 2, (y1 + y2) / 2 + 3
            text = _text(x, y, 9, f"{load / 1000:,.0f} kB")
            parts.append(text.replace("<text ", '<text stroke="white" stroke-width="3" ', 1))
            parts.append(text)
    for node, (x, y) in enumerate(places):
        is_server = node == 0
        radius = 12 if is_server else 5 + math.sqrt(subscribers[node])
        fill = "#c0392b" if is_server else "#f4d58d"
        what = "server" if is_server else f"broker {node}"
        parts.append(
            f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{radius:.1f}" fill="{fill}" stroke="#333">'
            f"<title>{what}: {subscribers[node]} subscribers</title></circle>"
        )
        parts.append(_text(x, y + 4, 11, str(node)))
    caption = (
        f"{nodes} brokers, the server is red; {sum(loads.values()) / 1000:,.0f} kB went over the "
        "links; circles grow with subscribers"
    )
    parts.append(_text(SIZE / 2, SIZE - 12, 13, caption))
    return "\n".join([*parts, "</svg>", ""])


def _text(x: float, y: float, size: int, content: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}">{content}</text>'


def _places(nodes: int, edges: Sequence[Edge]) -> list[tuple[float, float]]:
    """Each node is within the angle of its parent, in proportion to the nodes below it."""
    links = numbered_links(nodes, edges)
    parents, order, depths = {0: 0}, [0], {0: 0}
    for node in order:
        for other in links[node].values():
            if other not in parents:
                parents[other], depths[other] = node, depths[node] + 1
                order.append(other)
    weights = dict.fromkeys(order, 1)
    for node in reversed(order[1:]):
        weights[parents[node]] += weights[node]
    ring = min(RING, (SIZE / 2 - 30) / max(1, *depths.values()))
    spans = {0: (0.0, 2 * math.pi)}
    taken: dict[int, float] = {}
    places = [(SIZE / 2, SIZE / 2)] * nodes
    for node in order[1:]:
        parent = parents[node]
        first, last = spans[parent]
        start = taken.get(parent, first)
        share = (last - first) * weights[node] / max(1, weights[parent] - 1)
        taken[parent] = start + share
        spans[node] = (start, start + share)
        angle, away = start + share / 2, ring * depths[node]
        places[node] = (
            SIZE / 2 + away * math.cos(angle),
            SIZE / 2 + away * math.sin(angle),
        )
    return places
