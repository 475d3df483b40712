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
    Telling,
    Told,
    Vector,
    each_message,
)
from penstock.messages.wire import (
    EventTemplate,
    decode_message,
    encode_message,
    encode_messages,
    event_template,
)

__all__ = [
    "ANYONE",
    "ANY_FILTER",
    "INITIAL_STEP",
    "Envelope",
    "EventTemplate",
    "Message",
    "Point",
    "PointId",
    "Position",
    "Reach",
    "Reaches",
    "Telling",
    "Told",
    "Vector",
    "decode_message",
    "each_message",
    "encode_message",
    "encode_messages",
    "event_template",
]
