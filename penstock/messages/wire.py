"""The wire format of messages: one version byte, then one MessagePack array.

Rows travel in stored form, so nothing depends on the types of a column, and most messages take a
few dozen bytes beside their row. The ends of a reach that do not bound anything travel as nil. The
partner comes last and only where there is one.
"""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.errors import WireError
from penstock.messages.message import ANY_FILTER, Message, PointId, Position, Reach
from penstock.packing import pack, unpack
from penstock.predicates.intervals import BOTTOM, TOP, Cut

VERSION = 1
MAX_MESSAGE_BYTES = 64 << 20

_UNBOUNDED = (BOTTOM, TOP, BOTTOM, TOP)


def encode_message(message: Message) -> bytes:
    body = [
        message.position,
        message.space,
        message.key,
        message.row,
        [_plain_reach(reach) for reach in message.upsert],
        message.old,
        [_plain_reach(reach) for reach in message.remove],
        message.recipients,
    ]
    if message.partner is not None:
        body.append(message.partner)
    return bytes([VERSION]) + pack(body)


def decode_message(data: bytes) -> Message:
    if not data:
        raise WireError("an empty message")
    if data[0] != VERSION:
        raise WireError(
            f"message version {data[0]} is not known",
            detail=f"this release reads version {VERSION}",
            hint="upgrade Penstock on this side",
        )
    if len(data) > MAX_MESSAGE_BYTES:
        raise WireError(f"a message of {len(data)} bytes", detail=f"limit: {MAX_MESSAGE_BYTES}")
    try:
        return _message(unpack(memoryview(data)[1:]))
    except (msgspec.DecodeError, TypeError, ValueError) as error:
        raise WireError("a message cannot be read", detail=str(error)) from None


def _message(body: list[Any]) -> Message:
    position, space, key, row, upsert, old, remove, recipients, *partner = body
    if len(partner) > 1:
        raise ValueError(f"a message of {len(body)} parts")
    return Message(
        position=Position(*position),
        space=space,
        key=tuple(key),
        row=None if row is None else tuple(row),
        upsert=tuple(_reach(plain) for plain in upsert),
        old=None if old is None else tuple((column, value) for column, value in old),
        remove=tuple(_reach(plain) for plain in remove),
        recipients=tuple(PointId(*recipient) for recipient in recipients),
        partner=tuple(partner[0]) if partner else None,
    )


def _plain_reach(reach: Reach) -> list[Cut | None]:
    if reach == ANY_FILTER:
        return []
    return [None if cut == free else cut for cut, free in zip(reach, _UNBOUNDED, strict=True)]


def _reach(plain: list[Any]) -> Reach:
    if not plain:
        return ANY_FILTER
    ends = zip(plain, _UNBOUNDED, strict=True)
    return Reach(*(free if cut is None else tuple(cut) for cut, free in ends))
