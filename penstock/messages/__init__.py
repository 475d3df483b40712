"""Messages, regions and the wire format."""

from penstock.messages.message import (
    ANY_FILTER,
    INITIAL_STEP,
    Envelope,
    Message,
    Point,
    PointId,
    Position,
    Reach,
    Reaches,
    Vector,
)
from penstock.messages.wire import decode_message, encode_message

__all__ = [
    "ANY_FILTER",
    "INITIAL_STEP",
    "Envelope",
    "Message",
    "Point",
    "PointId",
    "Position",
    "Reach",
    "Reaches",
    "Vector",
    "decode_message",
    "encode_message",
]
