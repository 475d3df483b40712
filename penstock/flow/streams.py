"""Keyless streams: the messages of an event depend on the event and the subscriptions only."""

from __future__ import annotations

from penstock.catalog import Relation


def is_keyless_stream(relation: Relation) -> bool:
    """Whether events of this relation can be processed without knowing other rows.

    Each event is identified by its offset, so it never matches an existing row.
    """
    return relation.is_stream and not relation.key
