"""The wire format of messages: one version byte, then one MessagePack array.

Rows are sent in stored form, so nothing depends on the types of a column, and most messages take a
few dozen bytes in addition to their row. Unbounded ends of a reach are nil. The partner comes last
and only if there is one.

Version 1 is for regions over one filter column. A message with an envelope has version 2, in which
each box of a region is a list of reaches, one per column, and the list of excluded vectors. Version
3 is version 2 with `since` after the recipients, for new subscriptions only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from penstock.catalog import Row, RowKey
from penstock.errors import WireError
from penstock.messages.message import (
    ANY_FILTER,
    AnyMessage,
    Envelope,
    Message,
    MessageBatch,
    PointId,
    Position,
    Reach,
    Reaches,
)
from penstock.packing import array_header, pack, unpack
from penstock.predicates.intervals import BOTTOM, TOP, Cut

VERSION = 1
ENVELOPE_VERSION = 2
NEWCOMER_VERSION = 3
_VERSIONS = (VERSION, ENVELOPE_VERSION, NEWCOMER_VERSION)
MAX_MESSAGE_BYTES = 64 << 20

SIMPLE_START = bytes([VERSION]) + array_header(8)
"""The first bytes of a message of eight parts."""
_NIL, _NO_RECIPIENTS = pack(None), pack([])
_PACKED_ANYONE = pack([[]])
"""The packed region EVERYONE; in versions with envelopes it is nested in one more array."""
_MAX_REGIONS = 10_000
_MAX_ROWS = 50_000

_UNBOUNDED = (BOTTOM, TOP, BOTTOM, TOP)


def encode_message(message: Message) -> bytes:
    version, plain = VERSION, _plain_reaches
    if _has_envelope(message.upsert) or _has_envelope(message.remove):
        version, plain = ENVELOPE_VERSION, _plain_boxes
    if message.since:
        version, plain = NEWCOMER_VERSION, _plain_boxes
    body = [
        message.position,
        message.space,
        message.key,
        message.row,
        plain(message.upsert),
        message.old,
        plain(message.remove),
        message.recipients,
    ]
    if message.since:
        body.append(message.since)
    if message.partner is not None:
        body.append(message.partner)
    return bytes([version]) + pack(body)


Encoded: TypeAlias = tuple[int, int, list[bytes]]
"""The position of messages, and their bytes."""

_KeyedRow: TypeAlias = tuple[RowKey, Row]


class _Encoding:
    """Encodes many messages; regions and rows that many of them share are packed once."""

    def __init__(self) -> None:
        # Entries reference the packed object, so that its id is not reused.
        self._regions: dict[int, tuple[Reaches, bytes]] = {}
        self._shown: dict[int, tuple[_KeyedRow, bytes]] = {}
        self._hidden: dict[tuple[int, ...], dict[int, tuple[_KeyedRow, bytes]]] = {}

    def message(self, message: Message) -> bytes:
        position, space, key, row, upsert, old, remove, recipients, partner, since = message
        taken, given_up = self._region(upsert), self._region(remove)
        if recipients or partner is not None or since or not taken or not given_up:
            return encode_message(message)
        # An array of four without its first byte is four concatenated values.
        values = pack((position, space, key, row))[1:]
        before = _NIL if old is None else pack(old)
        return b"".join((SIMPLE_START, values, taken, before, given_up, _NO_RECIPIENTS))

    def telling(self, telling: MessageBatch) -> list[bytes]:
        """The messages of a batch, sorted by their bytes."""
        position, space, rows, upsert, remove, _ = telling
        taken, given_up = self._region(upsert), self._region(remove)
        if not taken or not given_up:
            return sorted(map(encode_message, telling.messages()))
        if upsert:
            parts = _parts(rows, self._shown, lambda pair: pack(pair)[1:])
            end = taken + _NIL + given_up + _NO_RECIPIENTS
        else:
            known, old = self._hidden.setdefault(tuple(telling.mentioned), {}), telling.old
            parts = _parts(rows, known, lambda pair: pack((pair[0], None, (), old(pair[1])))[1:])
            end = given_up + _NO_RECIPIENTS
        parts.sort()
        start = SIMPLE_START + pack(position) + pack(space)
        return [start + part + end for part in parts]

    def _region(self, region: Reaches) -> bytes:
        """The packed region; empty if version 1 cannot represent it."""
        known = self._regions.get(id(region))
        if known is None:
            if len(self._regions) >= _MAX_REGIONS:
                self._regions.clear()
            packed = b"" if _has_envelope(region) else packed_region(region)
            known = self._regions[id(region)] = (region, packed)
        return known[1]


def _parts(
    rows: Sequence[_KeyedRow],
    known: dict[int, tuple[_KeyedRow, bytes]],
    packed: Callable[[_KeyedRow], bytes],
) -> list[bytes]:
    """The row parts of messages, cached: a step may show all rows of a group, and the next step
    hide them."""
    try:
        return [known[id(row)][1] for row in rows]
    except KeyError:
        pass
    if len(known) + len(rows) > _MAX_ROWS:
        known.clear()
    for row in rows:
        if id(row) not in known:
            known[id(row)] = (row, packed(row))
    return [known[id(row)][1] for row in rows]


def encode_messages(told: Iterable[AnyMessage]) -> Iterator[Encoded]:
    """The bytes of many messages, the same as those of `encode_message`; messages of one batch are
    sorted."""
    encoding = _Encoding()
    for one in told:
        if isinstance(one, MessageBatch):
            yield *one.position, encoding.telling(one)
        else:
            yield *one.position, [encoding.message(one)]


def packed_region(region: Reaches) -> bytes:
    """The packed form of a region without envelopes."""
    return pack(_plain_reaches(region))


def decode_message(data: bytes) -> Message:
    if not data:
        raise WireError("an empty message")
    if data[0] not in _VERSIONS:
        raise WireError(
            f"message version {data[0]} is not known",
            detail=f"this release reads versions {_VERSIONS[0]} to {_VERSIONS[-1]}",
            hint="upgrade Penstock on this side",
        )
    if len(data) > MAX_MESSAGE_BYTES:
        raise WireError(f"a message of {len(data)} bytes", detail=f"limit: {MAX_MESSAGE_BYTES}")
    try:
        boxes = _reaches if data[0] == VERSION else _boxes
        return _message(unpack(memoryview(data)[1:]), boxes, data[0] == NEWCOMER_VERSION)
    except (msgspec.DecodeError, TypeError, ValueError) as error:
        raise WireError("a message cannot be read", detail=str(error)) from None


_SPACE_WITHIN = 30
"""The space ends within this many bytes: version, two array starts, three integers of 9 bytes."""


class SpaceFilter:
    """Rules out messages that are not of the given spaces, without decoding them.

    It searches the bytes of a space id in the first bytes of the message, so there are false
    positives. Messages of an unknown version pass, too, so that decoding reports them.
    """

    def __init__(self, spaces: Iterable[int]) -> None:
        self._packed = [pack(space) for space in spaces]
        self._versions = frozenset(_VERSIONS)

    def may_pass(self, data: bytes) -> bool:
        for packed in self._packed:
            if data.find(packed, 0, _SPACE_WITHIN) >= 0:
                return True
        return not data or data[0] not in self._versions


def has_partner(data: bytes) -> bool:
    """Whether a message has a partner; decodes it only if the number of its parts allows one."""
    parts = 9 if data[:1] == bytes([NEWCOMER_VERSION]) else 8
    return data[1:2] != array_header(parts) and decode_message(data).partner is not None


def may_reach_anyone(data: bytes) -> bool:
    """False only if no region of a message is EVERYONE. Searches the bytes of that region anywhere
    in the message, without decoding it, so there are false positives."""
    return _PACKED_ANYONE in data


def _message(body: list[Any], boxes: Callable[[list[Any]], Reaches], has_since: bool) -> Message:
    position, space, key, row, upsert, old, remove, recipients, *partner = body
    since = int(partner.pop(0)) if has_since and partner else 0
    if len(partner) > 1 or has_since != (since > 0):
        raise ValueError(f"a message of {len(body)} parts")
    return Message(
        position=Position(*position),
        space=space,
        key=tuple(key),
        row=None if row is None else tuple(row),
        upsert=boxes(upsert),
        old=None if old is None else tuple((column, value) for column, value in old),
        remove=boxes(remove),
        recipients=tuple(PointId(*recipient) for recipient in recipients),
        partner=tuple(partner[0]) if partner else None,
        since=since,
    )


def _has_envelope(reaches: Reaches) -> bool:
    return any(isinstance(one, Envelope) for one in reaches)


def _plain_reaches(reaches: Reaches) -> list[Any]:
    return [_plain_reach(one) for one in reaches if isinstance(one, Reach)]


def _reaches(plain: list[Any]) -> Reaches:
    return tuple([_reach(one) for one in plain])


def _plain_boxes(reaches: Reaches) -> list[Any]:
    """A single reach is a list of one, without excluded vectors."""
    return [
        [_plain_reaches(one.reaches), one.without]
        if isinstance(one, Envelope)
        else [_plain_reach(one)]
        for one in reaches
    ]


def _boxes(plain: list[Any]) -> Reaches:
    return tuple([_box(*one) for one in plain])


def _box(bounds: list[Any], without: list[Any] | None = None) -> Reach | Envelope:
    if without is None:
        return _reach(bounds)
    reaches = tuple(_reach(one) for one in bounds)
    return Envelope(reaches, tuple(tuple(vector) for vector in without))


def _plain_reach(reach: Reach) -> list[Cut | None]:
    if reach == ANY_FILTER:
        return []
    return [None if cut == free else cut for cut, free in zip(reach, _UNBOUNDED, strict=True)]


def _reach(plain: list[Any]) -> Reach:
    if not plain:
        return ANY_FILTER
    ends = zip(plain, _UNBOUNDED, strict=True)
    return Reach(*(free if cut is None else tuple(cut) for cut, free in ends))
