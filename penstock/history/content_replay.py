"""The last step of a backtest: applies the messages of every query, as a subscriber would."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from penstock.client import Content, Notification
from penstock.history.rows import HistoryKind, HistoryRow
from penstock.history.spec import BacktestSpec
from penstock.messages import decode_message
from penstock.packing import pack, unpack


@dataclass(frozen=True, slots=True)
class Totals:
    """Everything one query would have received, and how many rows its content has at the end."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    rows: int = 0
    by_range: tuple[int, ...] = ()

    @property
    def notifications(self) -> int:
        return self.inserts + self.updates + self.deletes

    def to_bytes(self) -> bytes:
        return pack([self.inserts, self.updates, self.deletes, self.rows, self.by_range])

    @classmethod
    def from_bytes(cls, body: bytes) -> Totals:
        inserts, updates, deletes, rows, by_range = unpack(body)
        return cls(inserts, updates, deletes, rows, tuple(by_range))


def replay_contents(rows: Iterable[HistoryRow], question: BacktestSpec) -> Iterator[HistoryRow]:
    """Notifications and totals of some queries, whose messages come sorted; counts are passed on,
    other rows of the flow are dropped."""
    mine = (row for row in rows if row.kind in _KINDS)
    for number, history in groupby(mine, attrgetter("place")):
        if number < 0:
            yield from history
        else:
            yield from _live_through(number, history, question)


_KINDS = frozenset({HistoryKind.DELIVERY, HistoryKind.REFUSED})


def _live_through(
    number: int, history: Iterator[HistoryRow], question: BacktestSpec
) -> Iterator[HistoryRow]:
    content = Content(number, question.queries[number])
    kinds: Counter[str] = Counter()
    by_range = [0] * question.ranges
    shown = 0
    for offset, rows in groupby(history, attrgetter("offset")):
        for one in in_order(content.apply([decode_message(row.body) for row in rows])):
            kinds[one.kind] += 1
            by_range[question.range_of(offset)] += 1
            if shown < question.shown:
                body = pickle.dumps(one)
                yield HistoryRow(number, offset, HistoryKind.NOTIFICATION, shown, body)
                shown += 1
    totals = Totals(
        inserts=kinds["insert"],
        updates=kinds["update"],
        deletes=kinds["delete"],
        rows=len(content.rows()),
        by_range=tuple(by_range),
    )
    yield HistoryRow(number, question.end, HistoryKind.TOTALS, 0, totals.to_bytes())


def in_order(notifications: Iterable[Notification]) -> list[Notification]:
    """A canonical order for notifications of one offset, independent of who computed them."""
    return sorted(notifications, key=attrgetter("id"))
