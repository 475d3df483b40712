"""The packets between processes, apart from the frames of nodes, and their encoding.

A connection begins with eight bytes from each side (`PREFACE`). After them come packets: four bytes
with the length, and one MessagePack array, the number of the kind and its members.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

from penstock.catalog.plain import plain_relation, relation_from_plain
from penstock.errors import (
    CompactedError,
    HomeError,
    NetworkError,
    PenstockError,
    SubscriptionError,
    shortened,
)
from penstock.messages import Message, Point, PointId, decode_message, encode_message
from penstock.network.members import UNREADABLE, check_members, numbered
from penstock.packing import pack, unpack
from penstock.predicates.intervals import Interval
from penstock.routing.interests import SpaceShape, interest_from, interest_of

PREFACE = b"PENSTNET"
VERSION = 1
LENGTH_BYTES = 4
MAX_PACKET_BYTES = 64 << 20
"""The maximum size of a node's frame."""
MAX_GREETING_BYTES = 4 << 10
"""Maximum before the sender has proven to know a token."""
MAX_POINTS = 100_000
"""Maximum per reader: a subscription over 32 tables with 3,000 branches."""


class Greeting(NamedTuple):
    """The first packet of both sides."""

    version: int
    role: str
    """"broker", "reader" or "site"."""
    name: str
    """A random part for each process, then @ and its listening address: a restarted process differs
    in the first part."""
    nonce: bytes


class Proof(NamedTuple):
    """The second packet of both sides."""

    proof: bytes


class Refused(NamedTuple):
    """The last packet of a connection, or the answer to a request. `is_final`: retrying would not
    help."""

    kind: str
    primary: str
    detail: str
    hint: str
    is_final: bool


class NodeFrame(NamedTuple):
    data: bytes


class Spaces(NamedTuple):
    """Spaces that the sender knows: downstream only."""

    shapes: tuple[tuple[int, Any, int], ...]


class Route(NamedTuple):
    """The brokers on the route from the sender to the home, the sender first: downstream only."""

    names: tuple[str, ...]


class Ask(NamedTuple):
    """Requests the description of a subscription."""

    number: int
    subscription: int


class Described(NamedTuple):
    number: int
    description: Any


class NotDescribed(NamedTuple):
    number: int
    refused: Refused


class Attach(NamedTuple):
    """The points of a reader, and the sequence number to start from."""

    points: tuple[Point, ...]
    after: int


class Delivered(NamedTuple):
    sequence: int
    message: Message


class Ping(NamedTuple):
    """Keeps the connection alive."""


Packet: TypeAlias = (
    Greeting
    | Proof
    | Refused
    | NodeFrame
    | Spaces
    | Route
    | Ask
    | Described
    | NotDescribed
    | Attach
    | Delivered
    | Ping
)

# The index of a packet in this tuple is its number on the wire: append new ones at the end.
PACKETS: tuple[type[Any], ...] = (
    Greeting,
    Proof,
    Refused,
    NodeFrame,
    Spaces,
    Route,
    Ask,
    Described,
    NotDescribed,
    Attach,
    Delivered,
    Ping,
)
_NUMBERS = {kind: number for number, kind in enumerate(PACKETS)}


def encode_packet(packet: Packet) -> bytes:
    """Prefixed with its length."""
    body = pack([_NUMBERS[type(packet)], *_plain(packet)])
    if len(body) > MAX_PACKET_BYTES:
        raise NetworkError(
            f"a packet of {len(body):,} bytes", detail=f"limit: {MAX_PACKET_BYTES:,} bytes"
        )
    return len(body).to_bytes(LENGTH_BYTES) + body


def decode_packet(body: bytes) -> Packet:
    """NetworkError if the bytes are not a packet."""
    try:
        number, *plain = unpack(body)
        kind = numbered(PACKETS, number)
        read: Packet = kind(*_members(kind, plain))
        check_members(read)
        return read
    except UNREADABLE as error:
        raise NetworkError("a packet cannot be read", detail=shortened(str(error))) from None


def _plain(packet: Packet) -> tuple[object, ...]:
    if isinstance(packet, Attach):
        points = [[one.id, interest_of(one), one.changes_only] for one in packet.points]
        return points, packet.after
    if isinstance(packet, Delivered):
        return packet.sequence, encode_message(packet.message)
    return tuple(packet)


def _members(kind: type[Any], plain: list[Any]) -> list[Any]:
    if kind is Attach:
        if len(plain[0]) > MAX_POINTS:
            raise ValueError(f"{len(plain[0]):,} points; the limit is {MAX_POINTS:,}")
        plain[0] = tuple(_point(*one) for one in plain[0])
    elif kind is Delivered:
        plain[1] = decode_message(plain[1])
    elif kind is NotDescribed:
        plain[1] = Refused(*plain[1])
        check_members(plain[1])
    elif kind is Spaces:
        plain[0] = tuple((space, relation, filters) for space, relation, filters in plain[0])
    elif kind is Route:
        plain[0] = tuple(map(str, plain[0]))
    return plain


def _point(point_id: list[int], interest: Any, changes_only: bool) -> Point:
    found = interest_from(interest)
    first, *more = (Interval(one.low_from, one.high_to) for one in found.bounds)
    subscription, branch, node = map(int, point_id)
    return Point(
        PointId(subscription, branch, node),
        found.space,
        found.base,
        first,
        tuple(more),
        bool(changes_only),
    )


_ERRORS = {one.__name__: one for one in (CompactedError, HomeError, SubscriptionError)}


def refusal(error: PenstockError, *, is_final: bool) -> Refused:
    primary, detail, hint = map(shortened, (error.primary, error.detail, error.hint))
    return Refused(type(error).__name__, primary, detail, hint, is_final)


def refused_error(refused: Refused) -> PenstockError:
    """The error reported by the other side."""
    kind = _ERRORS.get(refused.kind, NetworkError)
    return kind(refused.primary, detail=refused.detail, hint=refused.hint)


def spaces_packet(shapes: Iterable[SpaceShape]) -> Spaces:
    return Spaces(tuple((one.space, plain_relation(one.base), one.filters) for one in shapes))


def shapes_in(packet: Spaces) -> list[SpaceShape]:
    """NetworkError if they are not shapes of spaces that this release understands."""
    try:
        return [
            SpaceShape(int(space), relation_from_plain(base), int(filters))
            for space, base, filters in packet.shapes
        ]
    except (TypeError, ValueError, LookupError) as error:
        raise NetworkError(
            "the description of a space cannot be read",
            detail=str(error),
            hint="use the same release of Penstock for all brokers",
        ) from None
