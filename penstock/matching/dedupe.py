"""Deduplication: several boxes of one subscription may contain the same event."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from penstock.kernels.compiled import njit
from penstock.matching.pairs import BASE, CONTIGUOUS, COUNT, FIRST, LENGTH, NO_LANES, Runs

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]
Lanes = npt.NDArray[np.uint16]
Flags = npt.NDArray[np.uint8]


def deduplicated(runs: Runs, doubtful: Flags) -> tuple[Runs, ...]:
    """The same pairs, each once. Runs without `doubtful` boxes pass unchanged."""
    before = np.concatenate([[0], np.cumsum(doubtful, dtype=np.int64)])
    ends = runs.spans[:, FIRST] + runs.spans[:, COUNT]
    looked_at = before[ends] > before[runs.spans[:, FIRST]]
    if not looked_at.any():
        return (runs,)
    sure = ~looked_at
    rest = Runs(
        runs.ids, runs.spans[sure], runs.starts[sure], runs.events, runs.lanes, runs.first_event
    )
    return rest, _each_once(runs, np.flatnonzero(looked_at))


def _each_once(runs: Runs, chosen: Ints64) -> Runs:
    """The pairs of the chosen runs, each once, as one run per subscription and source run."""
    counts = runs.spans[chosen, COUNT]
    run = np.repeat(chosen, counts)
    place = np.arange(len(run)) - np.repeat(np.cumsum(counts) - counts, counts)
    ids = runs.ids[runs.spans[run, FIRST] + place]
    order = np.argsort(ids, kind="stable")
    ids, run = ids[order], run[order]
    events = np.empty(int(runs.spans[run, LENGTH].sum(dtype=np.int64)), np.int32)
    ends = _first_seen(ids, run, runs.spans, runs.starts, runs.events, runs.lanes, events)
    begins = np.concatenate([[0], ends[:-1]])
    spans = np.ones((len(ids), 4), np.int32)
    spans[:, FIRST] = np.arange(len(ids))
    spans[:, BASE] = begins
    spans[:, LENGTH] = ends - begins
    fresh = ends > begins
    starts = np.full(int(fresh.sum()), CONTIGUOUS, np.int64)
    return Runs(ids, spans[fresh], starts, events[: ends[-1]], NO_LANES, runs.first_event)


@njit
def _first_seen(
    ids: Ints64,
    run_of: Ints64,
    spans: Ints32,
    starts: Ints64,
    events: Ints32,
    lanes: Lanes,
    out: Ints32,
) -> Ints64:
    """Write the events of each entry that no earlier entry of its id has; returns the ends.

    Entry `i` is subscription `ids[i]` in run `run_of[i]`; entries are sorted by id. `seen` holds
    for each event the last entry that had it, so an event is new to an id if that entry precedes
    the id's first. `out` has room for all events of all entries (see the caller).
    """
    last_event = 0
    for event in events:
        last_event = max(last_event, event)
    seen = np.full(last_event + 1, -1, np.int64)
    ends = np.empty(len(ids), np.int64)
    first_of_id = written = 0
    for entry in range(len(ids)):
        if ids[entry] != ids[first_of_id]:
            first_of_id = entry
        run = run_of[entry]
        for k in range(spans[run, 3]):
            place = k if starts[run] < 0 else np.int64(lanes[starts[run] + k])
            event = events[spans[run, 2] + place]
            out[written] = event
            written += int(seen[event] < first_of_id)
            seen[event] = entry
        ends[entry] = written
    return ends
