"""Interfaces of the fast gear of joins."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple, Protocol

from penstock.joins.packed.groups import GroupRun
from penstock.joins.points import SpacePoints
from penstock.kernels.arrays import Bytes8, Ints
from penstock.kernels.packed_values import Packed
from penstock.matching.events import KeyColumn
from penstock.messages import AnyMessage


class Columns(Protocol):
    """Some columns of some rows."""

    def __len__(self) -> int: ...

    def keys(self, column: int) -> KeyColumn:
        """The values of a column in comparable form."""


class RowReader(Protocol):
    """Reads columns of packed rows, of the tables that it knows."""

    def __contains__(self, table: str) -> bool:
        """Whether keys of a table's rows are equal exactly if their bytes are."""

    def read(self, table: str, heap: Bytes8, rows: Ints, columns: Collection[int]) -> Columns:
        """These columns of the rows that begin at `rows` in the heap."""


class PositionedMessages(NamedTuple):
    """Packed messages in order, and their positions."""

    offsets: Ints
    steps: Ints
    messages: Packed


class PackedScheme(Protocol):
    """The fast gear of a scheme."""

    def obstacle(self, points: SpacePoints) -> str:
        """Why kernels do not support the points of a space; empty if they do. The plain gear
        handles spaces with an obstacle."""

    def advance(
        self, run: GroupRun, spaces: Iterable[SpacePoints], rows: RowReader
    ) -> list[tuple[int, PositionedMessages]]:
        """The messages of all steps of the groups, by space id."""


class JoinMessages(NamedTuple):
    """The messages of a batch: packed ones of the fast gear, and objects of the plain gear."""

    packed: PositionedMessages | None
    others: list[AnyMessage]
