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
    calls: int = 0
    """How often it was asked since the last time: whoever asks regularly has a clock."""
    roots_per_diagram: Callable[[], float] = lambda: 0.0
    """How many siblings an interest has, itself included, on average: counted if asked for."""


Policy: TypeAlias = Callable[[TableState], bool]


def when_larger(interests: int) -> Policy:
    return lambda state: state.sent > interests and state.changes > 0


def every(changes: int) -> Policy:
    return lambda state: state.changes >= changes


def when_siblings(roots: float) -> Policy:
    """The published one: when diagrams have so many roots on average."""
    return lambda state: state.changes > 0 and state.roots_per_diagram() >= roots


def when_outdated(changes: int, share: float) -> Policy:
    """When so many have changed, and that is this share of all: for tables of any size."""
    return lambda state: state.changes >= max(changes, share * state.sent)


def periodically(calls: int) -> Policy:
    """What publications say may have changed since, if not the table."""
    return lambda state: state.calls >= calls


def any_of(*policies: Policy) -> Policy:
    return lambda state: any(policy(state) for policy in policies)


def never(_: TableState) -> bool:
    return False
