"""Schemes: algorithms that turn the steps of a group into messages.

All schemes share one Protocol. A scheme sees one step of one group, with the group's rows as they
were before the step, and the points of the spaces on the group's edge; it yields the messages that
bring every subscription's tuples to the state after the step. The caller then applies the step to
the group.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Protocol

from penstock.joins.group import Group, GroupStep
from penstock.joins.points import SpacePoints
from penstock.messages import AnyMessage, Message, Position

if TYPE_CHECKING:
    from penstock.joins.packed.interface import PackedScheme  # imports kernels


class Family(StrEnum):
    """What clients hold between two messages. Schemes of one family can alternate on a home; a
    scheme of another family would rely on rows that clients do not hold, or leave stale rows with
    them."""

    SEMIJOINS = "semijoins"
    """A row is held while it joins with some row that passes the filter."""
    JOIN_ROWS = "join rows"
    """A row is held while a client knows a partner of it; partners are named by messages."""
    SELECTIONS = "selections"
    """Every row that a box selects is held, whether it joins or not."""


class Scheme(Protocol):
    """Not thread-safe, one instance per engine: a scheme may cache data derived from a group."""

    @property
    def name(self) -> str: ...

    @property
    def family(self) -> Family: ...

    def messages(
        self, group: Group, step: GroupStep, spaces: Iterable[SpacePoints]
    ) -> Iterator[Message]: ...

    def run(
        self, group: Group, steps: Iterable[GroupStep], spaces: Sequence[SpacePoints]
    ) -> list[AnyMessage]:
        """The messages of a batch of steps of one group; applies the steps.

        Messages may come in any order: positions identify the steps, and messages of one position
        concern different rows.
        """
        ...

    @property
    def packed(self) -> PackedScheme | None:
        """The fast gear, for schemes that have one. It gives the same bytes."""
        ...

    def initial(
        self, position: Position, groups: Iterable[Group], points: SpacePoints
    ) -> Iterator[Message]:
        """The initial content of new points from the rows of these groups."""
        ...


class StepByStep(ABC):
    """Base of schemes that gain nothing from batches of steps."""

    family: ClassVar[Family] = Family.SEMIJOINS
    packed: ClassVar[None] = None

    @abstractmethod
    def messages(
        self, group: Group, step: GroupStep, spaces: Iterable[SpacePoints]
    ) -> Iterator[Message]: ...

    def run(
        self, group: Group, steps: Iterable[GroupStep], spaces: Sequence[SpacePoints]
    ) -> list[AnyMessage]:
        found: list[AnyMessage] = []
        for step in steps:
            found += self.messages(group, step, spaces)
            group.apply(step)
        return found
