"""Groups: the rows of both sides of an edge that share one join value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from penstock.catalog import Row, RowKey
from penstock.packing import pack, unpack
from penstock.spaces import Edge, JoinValue

KeyedRow: TypeAlias = tuple[RowKey, Row]


@dataclass(slots=True)
class Group:
    """All rows that share one join value, by side and row key.

    `version` counts the steps applied, so that data derived from the rows can detect that it is
    stale. It is not stored.
    """

    sides: tuple[dict[RowKey, Row], dict[RowKey, Row]] = field(default_factory=lambda: ({}, {}))
    version: int = field(default=0, compare=False)

    def __len__(self) -> int:
        """How many rows there are on both sides."""
        return len(self.sides[0]) + len(self.sides[1])

    @property
    def is_empty(self) -> bool:
        return not self.sides[0] and not self.sides[1]

    def apply(self, step: GroupStep) -> None:
        """Bring the rows to the state after the step."""
        self.version += 1
        if step.new is None:
            self.sides[step.side].pop(step.key, None)
        else:
            self.sides[step.side][step.key] = step.new

    def to_bytes(self) -> bytes:
        return pack([list(side.items()) for side in self.sides])

    @classmethod
    def from_bytes(cls, data: bytes) -> Group:
        left, right = ({tuple(key): tuple(row) for key, row in side} for side in unpack(data))
        return cls((left, right))


class GroupStep(NamedTuple):
    """What one change does to one group: a row enters, leaves, or changes in place."""

    offset: int
    step: int
    side: int
    key: RowKey
    old: Row | None
    new: Row | None


GroupSteps: TypeAlias = dict[JoinValue, list[GroupStep]]
"""Steps of the groups of one edge, in order within each group."""
StepsByEdge: TypeAlias = dict[Edge, GroupSteps]
