"""Schedules by name."""

from __future__ import annotations

from collections.abc import Callable

from penstock.errors import PenstockError
from penstock.operators.schedules.benefit import Benefit
from penstock.operators.schedules.naive import Naive
from penstock.operators.schedules.schedule import Estimates, Schedule
from penstock.operators.schedules.sequential import Sequential
from penstock.operators.schedules.sub_order import SubOrder

DEFAULT_SCHEDULE = "benefit"

_MAKERS: dict[str, Callable[[Estimates], Schedule]] = {
    kind.name: kind for kind in (Naive, Sequential, SubOrder, Benefit)
}


def schedule_names() -> tuple[str, ...]:
    return tuple(_MAKERS)


def make_schedule(name: str, estimates: Estimates) -> Schedule:
    """A schedule without branches."""
    if name not in _MAKERS:
        raise PenstockError(
            f"no schedule is called {name!r}", hint=f"There are {', '.join(_MAKERS)}."
        )
    return _MAKERS[name](estimates)
