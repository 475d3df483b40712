"""`auto`, the default: for each join group and space, the scheme with the least estimated cost.

All candidates leave the same tuples with the clients, so the choice can change with every step. Few
points and rows are always scanned: that takes tens of microseconds, while shadows need kernels
whose first compilation takes seconds. A scan costs time for every point and every row of the group,
in each step; gap shadows, once built, cost the same however many points there are, and little more
with more rows. For a join value that is seen once or twice, a scan of all points can be cheaper
than building shadows, and gives the fewest skyline points. The constants of the cost model were
measured on one core (docs/notes/joins.md says how).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from penstock.joins.group import Group, GroupStep
from penstock.joins.initial_rows import initial_semijoins
from penstock.joins.points import SpacePoints
from penstock.joins.scheme import Family
from penstock.joins.schemes.ref_sj_gap import RefSjGap
from penstock.joins.schemes.ref_sj_opt import RefSjOpt
from penstock.joins.trimming import drop_needless
from penstock.messages import AnyMessage, Message, Position, each_message


@dataclass(frozen=True, slots=True)
class CostModel:
    """Microseconds per step in one space, linear in the points and rows that a scheme reads."""

    scan_step: float = 32.0
    scan_per_point: float = 0.022
    scan_per_row: float = 0.9
    shadow_step: float = 10.0
    shadow_start: float = 100.0
    shadow_start_per_row: float = 1.2

    def scan(self, points: int, rows: int) -> float:
        """The cost of a step that scans all points and all rows of the group."""
        return self.scan_step + self.scan_per_point * points + self.scan_per_row * rows

    def start(self, rows: int) -> float:
        """The cost of building the shadows of a join value."""
        return self.shadow_start + self.shadow_start_per_row * rows


SCANNED_POINTS = 1_000
"""Spaces with at most this many points are scanned, unless a group has many rows."""
SCANNED_ROWS = 256
"""Scanning this many rows takes a quarter of a millisecond per step."""


class Auto:
    name = "auto"
    family = Family.SEMIJOINS
    packed = None  # it trims regions and mixes schemes, step by step

    def __init__(self, model: CostModel | None = None) -> None:
        self._model = model or CostModel()
        self._scan = RefSjOpt()
        self._shadows = RefSjGap()

    def messages(
        self, group: Group, step: GroupStep, spaces: Iterable[SpacePoints]
    ) -> Iterator[Message]:
        for points in spaces:
            if self._scan_is_cheaper(points, len(group), group.version):
                yield from self._scan.messages(group, step, [points])
            else:
                messages = self._shadows.messages(group, step, [points])
                yield from each_message(drop_needless(messages, [points]))

    def run(
        self, group: Group, steps: Iterable[GroupStep], spaces: Sequence[SpacePoints]
    ) -> list[AnyMessage]:
        many = list(steps)
        rows, seen = len(group) + len(many), group.version + len(many)
        if not any(self._scan_is_cheaper(points, rows, seen) for points in spaces):
            return list(drop_needless(self._shadows.run(group, many, spaces), spaces))
        found: list[AnyMessage] = []
        for step in many:
            found += self.messages(group, step, spaces)
            group.apply(step)
        return found

    def initial(
        self, position: Position, groups: Iterable[Group], points: SpacePoints
    ) -> Iterator[Message]:
        return initial_semijoins(position, groups, points)

    def _scan_is_cheaper(self, points: SpacePoints, rows: int, seen: int) -> bool:
        """Whether shadows would not pay off in a group of `rows` rows, which is expected to see as
        many steps again as it has `seen` so far."""
        if len(points) <= SCANNED_POINTS and rows <= SCANNED_ROWS:
            return True
        model = self._model
        saved_per_step = model.scan(len(points), rows) - model.shadow_step
        return saved_per_step * max(1, seen) < model.start(rows)


SCHEME = Auto
