"""Throughput of the kernels of stateless matching alone, without a pipeline around them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from penstock.catalog import Catalog, Relation, Row
from penstock.flow.events import read_change
from penstock.matching import EventBatch
from penstock.pipeline.snapshots import newest
from penstock.registry import Registry
from penstock.storage import Home, RecordKind

REPETITIONS = 5
_EVENTS = frozenset({RecordKind.EVENT})


@dataclass(frozen=True, slots=True)
class BareRates:
    """Events per second of the matcher in the newest snapshot, on all cores, for the last events of
    the log in one batch."""

    matching: float
    """All pairs of events and subscriptions, as products."""
    asking: float
    """Only whether anybody matches, which is what the pipeline asks."""


def bare_rates(home: Home, batch_rows: int) -> BareRates | None:
    """None if there are no subscriptions over one table."""
    with Registry(home) as registry:
        catalog = registry.catalog()
    snapshot = newest(home.snapshots, home.log.end)
    covered = [] if snapshot is None else list(snapshot.covered(catalog))
    if not covered:
        return None
    rows = _last_rows(home, catalog, covered[0].relation, batch_rows)
    matcher = covered[0].matcher.with_threads(len(os.sched_getaffinity(0)))
    batch = EventBatch.of_stored(covered[0].relation, rows)
    return BareRates(
        len(rows) / _seconds(lambda: matcher.match_batch(batch)),
        len(rows) / _seconds(lambda: matcher.any_match(batch)),
    )


def _last_rows(home: Home, catalog: Catalog, relation: Relation, count: int) -> list[Row]:
    end = home.log.end
    rows = []
    for first, entries in home.log.frames(max(0, end - count), end, _EVENTS):
        for offset, (kind, body) in enumerate(entries, first):
            if kind == RecordKind.EVENT:
                checked = read_change(body, catalog, offset)
                rows += [checked.row] if checked.relation.name == relation.name else []
    return rows


def _seconds(work: Callable[[], object]) -> float:
    """The minimum of several repetitions; the first is for warming up."""
    taken = []
    for _ in range(REPETITIONS + 1):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return min(taken[1:])
