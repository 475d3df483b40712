"""The kinds of rows between stages, and the span of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from penstock.catalog import Row, RowKey
from penstock.errors import ChangeError
from penstock.packing import pack, read_extension, unpack

if TYPE_CHECKING:  # many processes import this module for schemas only
    from penstock.flow.changes import Op
    from penstock.joins import GroupStep
    from penstock.spaces import JoinValue


class Kind(IntEnum):
    """A stage declares which kinds it takes; all others pass it by."""

    EVENT = 1
    """A published event, with its bytes in the log."""
    TICK = 2
    """The span of the batch, once for every partition of a keyed stage."""
    CHANGE = 3
    """An event that fits the catalog, sent to the partition of its row."""
    SEED = 4
    """Existing rows for a new edge, sent to the partition of their group."""
    STEP = 5
    """Steps of a group, sent to the partition of that group."""
    MESSAGE = 6
    """Messages for the message log."""
    BAD = 7
    """An event that cannot be applied, with the reason."""
    EVENTS = 8
    """Events of a keyless stream whose messages were emitted, sent to where they are stored."""
    SKIPPED = 9
    """An event that asks for no change; it is only counted."""
    FAULT = 10
    """A record that causes a fault and must be set aside; or a fault of the fast gear that the
    plain one did not have."""


class Span(NamedTuple):
    """What one batch covers.

    The records [start, end) are processed for the subscriptions before `active`; the previous batch
    was processed for those before `active_before`. Subscriptions from `initial_from` on have no
    content yet.
    """

    start: int
    end: int
    active: int
    active_before: int
    initial_from: int

    def to_bytes(self) -> bytes:
        return pack(self)

    @classmethod
    def from_bytes(cls, body: bytes) -> Span:
        return cls(*unpack(body))


class StageRow(NamedTuple):
    """A row of a kind without its own type. Rows of one kind are processed in tuple order."""

    offset: int
    step: int
    body: Any
    """Bytes; between stages of one process also an object with a `to_bytes`."""


ChangeRow: TypeAlias = "tuple[int, str, Op, RowKey, Row, tuple[int, ...]]"
"""CHANGE: offset, table, operation, key, row, and the columns that are given."""
StepsRow: TypeAlias = "tuple[str, JoinValue, list[GroupStep]]"
"""STEP and SEED: edge, join value, and steps of that group."""


class Events(NamedTuple):
    """EVENT: events of a batch."""

    offsets: list[int]
    bodies: list[bytes]


class Reason(NamedTuple):
    """BAD: why an event cannot be applied. Its bytes are in the log, at the offset of the row."""

    primary: str
    detail: str
    hint: str

    @classmethod
    def of(cls, error: ChangeError) -> Reason:
        return cls(*error.reason())

    def to_bytes(self) -> bytes:
        return pack(self)

    @classmethod
    def read(cls, body: bytes | Reason) -> Reason:
        return cls(*unpack(body)) if isinstance(body, bytes) else body


class StreamEvents(NamedTuple):
    """EVENTS: events of one keyless stream with their offsets, stored together because they are
    written and read in order."""

    stream: str
    events: Sequence[tuple[int, Row]]

    def to_bytes(self) -> bytes:
        return pack(self)

    @classmethod
    def read(cls, body: bytes | StreamEvents) -> StreamEvents:
        return cls(*_decode_events(body)) if isinstance(body, bytes) else body


_decode_events = msgspec.msgpack.Decoder(
    tuple[str, list[tuple[int, tuple[Any, ...]]]], ext_hook=read_extension
).decode


def packed_stream_events(stream: str, events: bytes) -> bytes:
    """The bytes of `StreamEvents` from an array of events that is already packed."""
    return pack((stream, msgspec.Raw(events)))
