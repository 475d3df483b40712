"""Durations as people write them: 90s, 10m, 1.5h, 7d."""

from __future__ import annotations

import re

import typer

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def duration(text: str) -> float:
    """Seconds."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise typer.BadParameter(f"{text!r} is not a duration: write 90s, 10m, 12h or 7d")
    return float(found[1]) * _SECONDS[found[2]]
