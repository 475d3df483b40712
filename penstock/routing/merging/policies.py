"""When to merge: policies, of which any can trigger a merge.

Merging after every subscription would cost more than it saves, as the paper says, so each policy
waits for a condition that makes merging worthwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class TableState:
    """The input of a policy."""

    sent: int
    """Interests that are sent over the link."""
    changes: int
    """Interests added or removed since the last merge."""
    calls: int = 0
    """Calls since the last merge: a clock for callers that call regularly."""
    roots_per_diagram: Callable[[], float] = lambda: 0.0
    """The average number of siblings of an interest, itself included; computed on demand."""


Policy: TypeAlias = Callable[[TableState], bool]


def when_larger(interests: int) -> Policy:
    return lambda state: state.sent > interests and state.changes > 0


def every(changes: int) -> Policy:
    return lambda state: state.changes >= changes


def when_siblings(roots: float) -> Policy:
    """The published policy: when diagrams have this many roots on average."""
    return lambda state: state.changes > 0 and state.roots_per_diagram() >= roots


def when_outdated(changes: int, share: float) -> Policy:
    """After this many changes that are also this share of all interests: for tables of any size."""
    return lambda state: state.changes >= max(changes, share * state.sent)


def periodically(calls: int) -> Policy:
    """Every so many calls, because publications may change even if the table does not."""
    return lambda state: state.calls >= calls


def any_of(*policies: Policy) -> Policy:
    return lambda state: any(policy(state) for policy in policies)


def never(_: TableState) -> bool:
    return False
