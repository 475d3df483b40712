"""Messages, regions and the wire format."""

from penstock.messages.message import (
    ANY_FILTER,
    Message,
    Point,
    PointId,
    Position,
    Reach,
    Reaches,
)
from penstock.messages.wire import decode_message, encode_message

__all__ = [
    "ANY_FILTER",
    "Message",
    "Point",
    "PointId",
    "Position",
    "Reach",
    "Reaches",
    "decode_message",
    "encode_message",
]
