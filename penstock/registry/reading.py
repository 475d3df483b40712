"""A reader of one subscription, from nothing but the logs of its home."""

from __future__ import annotations

from penstock.delivery.reading import Reader
from penstock.registry.records import replan_of, subscribed
from penstock.spaces import Replan
from penstock.sql import Query
from penstock.storage import AnyHome, RecordKind

_REPLANS = frozenset({RecordKind.REPLAN})


def reader_of(home: AnyHome, subscription: int, query: Query, since: int | None) -> Reader:
    """Reads what a subscription is told, from a cursor on."""
    (record,) = home.log.read(subscription, subscription + 1)
    said = subscribed(record.body)

    def replans(low: int, high: int) -> list[Replan]:
        found = map(replan_of, home.log.read(low, high, _REPLANS))
        return [one for one in found if one.subscription == subscription]

    chosen, initial = said.decomposition, said.initial
    return Reader(home.messages, subscription, query, chosen, replans, initial, since)
