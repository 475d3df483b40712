"""Durations on the command line: 90s, 10m, 1.5h, 7d."""

from __future__ import annotations

import math
import re

import typer

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def lease_text(seconds: float | None) -> str:
    """In the format of `--lease`, in the largest unit that gives a whole number."""
    if seconds is None:
        return "none"
    whole = (unit for unit, length in reversed(_SECONDS.items()) if seconds % length == 0)
    unit = next(whole, "s")
    return f"{seconds / _SECONDS[unit]:g}{unit}"


def lease_or_none(text: str) -> float:
    """Seconds; infinity for `none`."""
    return math.inf if text.strip() == "none" else duration(text)


def duration(text: str) -> float:
    """Seconds."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise typer.BadParameter(f"{text!r} is not a duration: write 90s, 10m, 12h or 7d")
    return float(found[1]) * _SECONDS[found[2]]
