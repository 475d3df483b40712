"""The bytes that a server would send for a message, comparable across schemes.

As in the evaluation of Chandramouli and Yang (2008): a number takes 4 bytes, so a skyline point
takes 8; text takes its encoded size; a message to named recipients is sent once to each of them.
Network overhead and row keys are left out.
"""

from __future__ import annotations

from penstock.catalog import Row, Stored
from penstock.messages import Envelope, Message, Reach
from penstock.predicates.intervals import Cut

NUMBER_BYTES = 4


def message_bytes(message: Message) -> int:
    content = 0
    if message.row is not None:
        content = row_bytes(message.row)
    elif message.old is None:
        content = sum(map(_value_bytes, message.key))
    if message.old is not None:
        content += sum(_value_bytes(value) for _, value in message.old)
    content += description_bytes(message)
    return content * max(1, len(message.recipients))


def row_bytes(row: Row) -> int:
    return sum(map(_value_bytes, row))


def description_bytes(message: Message) -> int:
    """The size of the region or the recipients."""
    return sum(map(_box_bytes, message.upsert)) + sum(map(_box_bytes, message.remove))


def _box_bytes(box: Reach | Envelope) -> int:
    if isinstance(box, Reach):
        return sum(map(_cut_bytes, box))
    without = sum(_value_bytes(value) for vector in box.without for value in vector)
    return sum(map(_box_bytes, box.reaches)) + without


def _cut_bytes(cut: Cut) -> int:
    return _value_bytes(cut[1]) if len(cut) == 3 else 0


def _value_bytes(value: Stored) -> int:
    if value is None:
        return 1
    return len(value.encode()) if isinstance(value, str) else NUMBER_BYTES
