"""When to merge: a list of small conditions, any of which will do.

Merging after every subscription would cost more than it saves, as the paper says, so each policy
waits for something that makes it worth while.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class TableState:
    """What a policy may look at."""

    sent: int
    """Interests that are sent over the link."""
    changes: int
    """Interests that came or went since the last time."""
    roots_per_diagram: float = 0.0
    """How many siblings an interest has, itself included, on average."""


Policy: TypeAlias = Callable[[TableState], bool]


def when_larger(interests: int) -> Policy:
    return lambda state: state.sent > interests and state.changes > 0


def every(changes: int) -> Policy:
    return lambda state: state.changes >= changes


def when_siblings(roots: float) -> Policy:
    """The published one: when diagrams have so many roots on average."""
    return lambda state: state.roots_per_diagram >= roots and state.changes > 0


def never(_: TableState) -> bool:
    return False
