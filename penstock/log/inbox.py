"""What the message log holds for one subscription."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from penstock.log.interfaces import BatchHeader, BatchLog
from penstock.messages import Message, decode_message


def messages_for(
    batches: BatchLog,
    subscription: int,
    spaces: Collection[int],
    after: BatchHeader | None = None,
) -> Iterator[tuple[BatchHeader, list[Message]]]:
    """The messages of a subscription's spaces, batch by batch, from its beginning (or `after`).

    A batch counts if the subscription was active in it. In a Hub's batch, which may hold the
    subscription's own record, only what comes from that record on is meant for it.
    """
    for header in batches.batches(after):
        if header.active <= subscription:
            continue
        decoded = (decode_message(data) for data in batches.read(header))
        mine = [
            message
            for message in decoded
            if message.space in spaces and message.position.offset >= subscription
        ]
        yield header, sorted(mine, key=lambda message: message.position)
