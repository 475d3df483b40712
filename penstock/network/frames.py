"""The protocol between nodes: frames of one link, and their encoding.

A frame has the numbers of the two sessions, its own number, the number of frames received from the
other side, and a body. Bodies are plain named tuples; `encode_frame` gives one version byte and one
MessagePack array.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple, TypeAlias

from penstock.errors import NetworkError, shortened
from penstock.messages import Message, decode_message, encode_message
from penstock.network.members import UNREADABLE, check_members, numbered
from penstock.packing import pack, unpack
from penstock.routing.interests import Interest, interest_from

VERSION = 1
MAX_FRAME_BYTES = 64 << 20
SMALL_BODY_BYTES = 100
"""Estimated size of a frame without the messages in it."""
PAYLOAD_ID_BYTES = 16
BUCKETS = 64
"""Buckets of a table that are compared separately: a summary of 64 digests takes 600 bytes."""


class Parcel(NamedTuple):
    """A message in transit. With a `payload_id`, the columns `payload_columns` of its row are nil;
    their values are sent separately in the parcel, or omitted: then some node upstream has them.
    `encoded` is the message as received, so that a forwarding node need not encode it again."""

    message: Message
    payload_id: bytes = b""
    payload_columns: tuple[int, ...] = ()
    payload: bytes | None = None
    encoded: bytes = b""

    @property
    def nbytes(self) -> int:
        """The approximate size on the wire."""
        return len(self.encoded) + len(self.payload or b"")


class Hello(NamedTuple):
    """Begins a session."""

    version: int


class Check(NamedTuple):
    """The digest of the sender's table, for comparison with the receiver's copy."""

    digest: int


class InSync(NamedTuple):
    """Answer to `Check`: the digests are equal."""


class Summary(NamedTuple):
    """Answer to `Check` if the digests differ: those of the answering side's copy, by bucket."""

    digests: tuple[int, ...]


class Names(NamedTuple):
    """The names of the entries in the buckets that differ."""

    buckets: tuple[tuple[int, tuple[int, ...]], ...]


class Want(NamedTuple):
    """Request for the missing entries with these names."""

    names: tuple[int, ...]


class Subscribe(NamedTuple):
    op: int
    interest: Interest


class Unsubscribe(NamedTuple):
    op: int
    name: int


class Advertise(NamedTuple):
    op: int
    source: str
    interest: Interest


class Unadvertise(NamedTuple):
    op: int
    source: str
    name: int


class Ack(NamedTuple):
    """Operation `op` is done, here and on all further nodes."""

    op: int


class Publish(NamedTuple):
    source: str
    sequence: int
    parcel: Parcel


class Resume(NamedTuple):
    """Request to replay what follows a sequence number. `path` has the links that lead back. With
    interests, only messages that concern one of them."""

    number: int
    source: str
    after: int
    path: tuple[int, ...]
    interests: tuple[Interest, ...]


class Replayed(NamedTuple):
    """A portion of a replay, up to a sequence number. Unless it is the last one, the requester
    continues with another request from there."""

    number: int
    source: str
    items: tuple[tuple[int, Parcel], ...]
    path: tuple[int, ...]
    upto: int
    is_last: bool


class Fetch(NamedTuple):
    """Request for a payload, sent upstream."""

    payload_id: bytes
    source: str
    path: tuple[int, ...]


class Fetched(NamedTuple):
    """Answer to `Fetch`. Without a payload, the source no longer has it; its publications can be
    requested again, with payloads."""

    payload_id: bytes
    payload: bytes | None
    path: tuple[int, ...]


class Cached(NamedTuple):
    """The sender has cached this payload: from now on its id suffices."""

    payload_id: bytes


Body: TypeAlias = (
    Hello
    | Check
    | InSync
    | Summary
    | Names
    | Want
    | Subscribe
    | Unsubscribe
    | Advertise
    | Unadvertise
    | Ack
    | Publish
    | Resume
    | Replayed
    | Fetch
    | Fetched
    | Cached
)

# The position of a body in this tuple is its number on the wire: append new ones at the end.
BODIES: tuple[type[Any], ...] = (
    Hello,
    Check,
    InSync,
    Summary,
    Names,
    Want,
    Subscribe,
    Unsubscribe,
    Advertise,
    Unadvertise,
    Ack,
    Publish,
    Resume,
    Replayed,
    Fetch,
    Fetched,
    Cached,
)
_NUMBERS = {kind: number for number, kind in enumerate(BODIES)}


class Frame(NamedTuple):
    sender: int
    """The number of the sender's session."""
    receiver: int
    """The number of the receiver's session; 0 if it is not known."""
    number: int
    """Frames with a body are numbered from 0; one that only acknowledges has -1."""
    arrived: int
    """The number of frames received in order from the other side."""
    body: Body | None


def encode_frame(frame: Frame) -> bytes:
    body = None if frame.body is None else [_NUMBERS[type(frame.body)], *_plain(frame.body)]
    return bytes([VERSION]) + pack([*frame[:4], body])


def decode_frame(data: bytes) -> Frame:
    """NetworkError if the bytes are not a frame of this version."""
    if not data or data[0] != VERSION:
        found = f"version {data[0]}" if data else "nothing"
        raise NetworkError(
            f"a peer speaks {found}",
            detail=f"this release speaks version {VERSION}",
            hint="upgrade Penstock on the older side",
        )
    if len(data) > MAX_FRAME_BYTES:
        raise NetworkError(f"a frame of {len(data)} bytes", detail=f"limit: {MAX_FRAME_BYTES}")
    try:
        sender, receiver, number, arrived, body = unpack(memoryview(data)[1:])
        read = Frame(sender, receiver, number, arrived, None if body is None else _body(*body))
        check_members(read)
        if (read.body is None) != (read.number < 0):
            raise ValueError(f"frame {read.number} has {'no' if read.body is None else 'a'} body")
        return read
    except UNREADABLE as error:
        raise NetworkError("a frame cannot be read", detail=shortened(str(error))) from None


def body_bytes(body: Body) -> int:
    """The approximate size on the wire, for limits."""
    if isinstance(body, Publish):
        return SMALL_BODY_BYTES + body.parcel.nbytes
    if isinstance(body, Replayed):
        return SMALL_BODY_BYTES + sum(parcel.nbytes for _, parcel in body.items)
    if isinstance(body, Fetched):
        return SMALL_BODY_BYTES + len(body.payload or b"")
    return SMALL_BODY_BYTES


def _plain(body: Body) -> tuple[object, ...]:
    if isinstance(body, Publish):
        return body.source, body.sequence, _plain_parcel(body.parcel)
    if isinstance(body, Replayed):
        items = [(sequence, _plain_parcel(parcel)) for sequence, parcel in body.items]
        return body.number, body.source, items, body.path, body.upto, body.is_last
    return tuple(body)


def _plain_parcel(parcel: Parcel) -> list[object]:
    plain: list[object] = [parcel.encoded or encode_message(parcel.message)]
    return plain if not parcel.payload_id else [*plain, *parcel[1:4]]


def _parcel(plain: Any) -> Parcel:
    message, *rest = plain
    if not rest:
        return Parcel(decode_message(message), encoded=message)
    payload_id, columns, payload = rest
    narrow = decode_message(message)
    columns = tuple(columns)
    if narrow.row is None or not all(0 <= column < len(narrow.row) for column in columns):
        raise ValueError("a payload for columns that are not there")
    check_payload(payload_id, payload)
    return Parcel(narrow, payload_id, columns, payload, message)


def payload_name(payload: bytes) -> bytes:
    """The id of a payload, derived from its content."""
    return hashlib.blake2b(payload, digest_size=PAYLOAD_ID_BYTES).digest()


def check_payload(payload_id: Any, payload: Any) -> None:
    """ValueError if the payload does not have this id, under which it would be cached."""
    if payload is not None and payload_name(payload) != payload_id:
        raise ValueError("a payload that is not what its id says")
    if not isinstance(payload_id, bytes) or len(payload_id) != PAYLOAD_ID_BYTES:
        raise ValueError("a payload without an id")


def _body(number: int, *members: Any) -> Body:
    kind, plain = numbered(BODIES, number), list(members)
    if kind is Publish:
        plain[2] = _parcel(plain[2])
    elif kind is Replayed:
        plain[2] = tuple((sequence, _parcel(parcel)) for sequence, parcel in plain[2])
        plain[3] = tuple(plain[3])
    elif kind is Subscribe or kind is Advertise:
        plain[-1] = interest_from(plain[-1])
    elif kind is Names:
        plain[0] = tuple((bucket, tuple(names)) for bucket, names in plain[0])
    elif kind is Resume:
        plain[3], plain[4] = tuple(plain[3]), tuple(map(interest_from, plain[4]))
    elif kind in (Summary, Want):
        plain[0] = tuple(plain[0])
    elif kind is Fetch:
        check_payload(plain[0], None)
        plain[2] = tuple(plain[2])
    elif kind is Fetched:
        check_payload(plain[0], plain[1])
        plain[2] = tuple(plain[2])
    read: Body = kind(*plain)
    check_members(read)
    return read
