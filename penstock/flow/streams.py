"""Keyless streams: what their events mean follows from the subscriptions alone."""

from __future__ import annotations

from penstock.catalog import Relation


def is_keyless_stream(relation: Relation) -> bool:
    """Whether what an event of this relation means can be told without knowing other rows.

    Each event is known by its offset, so none ever meets a row that is there.
    """
    return relation.is_stream and not relation.key
