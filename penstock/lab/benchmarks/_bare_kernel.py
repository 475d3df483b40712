"""What the kernel of stateless matching does alone: no pipeline over it can be faster."""

from __future__ import annotations

import os
import time

from penstock.catalog import Catalog, Relation, Row
from penstock.engine.plain_events import reader_of
from penstock.joins.covered import CoveredPoints
from penstock.log import Home, RecordKind
from penstock.matching import EventBatch
from penstock.pipeline.snapshots import newest
from penstock.registry import Registry

REPETITIONS = 5
_EVENTS = frozenset({RecordKind.EVENT})


def bare_kernel_rate(home: Home, batch_rows: int) -> float | None:
    """Events per second of the matcher in the newest snapshot, on all cores, for the last events of
    the log in one batch: whether anybody is concerned. None if nobody subscribes to one table."""
    with Registry(home) as registry:
        catalog = registry.catalog()
    snapshot = newest(home.snapshots, home.log.end)
    covered = [] if snapshot is None else list(snapshot.covered(catalog))
    if not covered:
        return None
    rows = _last_rows(home, catalog, covered[0].relation, batch_rows)
    return len(rows) / _seconds(covered[0], rows)


def _last_rows(home: Home, catalog: Catalog, relation: Relation, count: int) -> list[Row]:
    read, end = reader_of(catalog).read, home.log.end
    rows = []
    for first, entries in home.log.frames(max(0, end - count), end, _EVENTS):
        for offset, (kind, body) in enumerate(entries, first):
            if kind == RecordKind.EVENT:
                checked = read(body, offset)
                rows += [checked.row] if checked.relation.name == relation.name else []
    return rows


def _seconds(covered: CoveredPoints, rows: list[Row]) -> float:
    """The least of several repetitions; the first is for warming up."""
    matcher = covered.matcher.with_threads(len(os.sched_getaffinity(0)))
    batch = EventBatch.of_stored(covered.relation, rows)
    taken = []
    for _ in range(REPETITIONS + 1):
        began = time.perf_counter()
        matcher.match_batch(batch).concerned()
        taken.append(time.perf_counter() - began)
    return min(taken[1:])
