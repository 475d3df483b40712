"""Several boxes of one subscription may contain one event; it is reported once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from penstock.matching.compiled import njit
from penstock.matching.pairs import CONTIGUOUS, Pairs

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]
Lanes = npt.NDArray[np.uint16]
Flags = npt.NDArray[np.uint8]


def deduplicated(pairs: Pairs, overlapping: Flags) -> Pairs:
    """The same pairs, each once. Only runs of `overlapping` owners are looked at."""
    doubtful = np.flatnonzero(overlapping[pairs.owners])
    if not len(doubtful):
        return pairs
    doubtful = doubtful[np.argsort(pairs.owners[doubtful], kind="stable")]
    events = np.empty(int(pairs.lengths[doubtful].sum(dtype=np.int64)), np.int32)
    ends = _first_seen(
        pairs.event_count,
        pairs.owners[doubtful],
        pairs.bases[doubtful],
        pairs.starts[doubtful],
        pairs.lengths[doubtful],
        pairs.events,
        pairs.lanes,
        events,
    )
    starts = np.concatenate([[0], ends[:-1]])
    fresh = ends > starts
    doubtful, starts, ends = doubtful[fresh], starts[fresh], ends[fresh]
    sure = np.flatnonzero(overlapping[pairs.owners] == 0)
    return Pairs(
        pairs.event_count,
        pairs.ids,
        np.concatenate([pairs.owners[sure], pairs.owners[doubtful]]),
        np.concatenate([pairs.bases[sure], (starts + len(pairs.events)).astype(np.int32)]),
        np.concatenate([pairs.starts[sure], np.full(len(doubtful), CONTIGUOUS, np.int64)]),
        np.concatenate([pairs.lengths[sure], (ends - starts).astype(np.int32)]),
        np.concatenate([pairs.events, events[: ends[-1]]]),
        pairs.lanes,
    )


@njit
def _first_seen(
    event_count: int,
    owners: Ints32,
    bases: Ints32,
    starts: Ints64,
    lengths: Ints32,
    events: Ints32,
    lanes: Lanes,
    out: Ints32,
) -> Ints64:
    """Write the events of each run that no earlier run of its owner has; returns where they end.

    The runs are sorted by owner. `seen` holds for each event the last owner that had it.
    """
    seen = np.full(event_count, -1, np.int32)
    ends = np.empty(len(owners), np.int64)
    written = 0
    for run in range(len(owners)):
        for k in range(lengths[run]):
            place = k if starts[run] < 0 else lanes[starts[run] + k]
            event = events[bases[run] + place]
            out[written] = event
            written += int(seen[event] != owners[run])
            seen[event] = owners[run]
        ends[run] = written
    return ends
