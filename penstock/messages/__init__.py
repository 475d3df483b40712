"""Messages, regions and the wire format."""

from penstock.messages.message import (
    ANY_FILTER,
    ANYONE,
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
from penstock.messages.wire import MessageEncoder, decode_message, encode_message

__all__ = [
    "ANYONE",
    "ANY_FILTER",
    "INITIAL_STEP",
    "Envelope",
    "Message",
    "MessageEncoder",
    "Point",
    "PointId",
    "Position",
    "Reach",
    "Reaches",
    "Vector",
    "decode_message",
    "encode_message",
]
