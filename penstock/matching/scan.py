"""No index: every box against every event. For small segments of new boxes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from penstock.kernels.compiled import njit
from penstock.matching.pairs import CONTIGUOUS
from penstock.matching.runs import RunBuffers
from penstock.matching.table import BoxTable

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8]


def scan_runs(table: BoxTable, cells: Ints32, dead: Flags, runs: RunBuffers) -> bool:
    """Add the matches of all events with all boxes; False if the buffers were too small."""
    spans, starts, events, _ = runs.arrays
    run_count, listed = _scan(
        np.ascontiguousarray(cells.T),
        table.owners,
        table.offsets,
        table.columns,
        table.lows,
        table.highs,
        dead,
        spans,
        starts,
        events,
    )
    return runs.set_counts(run_count, listed, 0)


@njit
def _scan(
    cells: Ints32,
    box_owners: Ints32,
    offsets: Ints64,
    columns: Ints32,
    lows: Ints32,
    highs: Ints32,
    dead: Flags,
    spans: Ints32,
    starts: Ints64,
    events: Ints32,
) -> tuple[int, int]:
    """The numbers of runs and events written; -1 runs if the buffers were too small.

    `cells` is by column and event. Each predicate compacts the remaining events of its box in
    place, without a branch to mispredict. A box lists at most all events, so that many free entries
    are required before it is tested.
    """
    event_count = cells.shape[1]
    run_count = listed = 0
    for box in range(len(box_owners)):
        if len(dead) > 0 and dead[box_owners[box]]:
            continue
        if listed + event_count > len(events) or run_count == len(spans):
            return -1, 0
        left = event_count
        for p in range(offsets[box], offsets[box + 1]):
            column = cells[columns[p]]
            low, high = lows[p], highs[p]
            is_first = p == offsets[box]
            kept = 0
            for k in range(left):
                event = k if is_first else events[listed + k]
                events[listed + kept] = event
                kept += int((column[event] >= low) & (column[event] < high))
            left = kept
            if left == 0:
                break
        if offsets[box] == offsets[box + 1]:
            for event in range(event_count):
                events[listed + event] = event
        if left > 0:
            spans[run_count, 0] = box
            spans[run_count, 1] = 1
            spans[run_count, 2] = listed
            spans[run_count, 3] = left
            starts[run_count] = CONTIGUOUS
            run_count += 1
            listed += left
    return run_count, listed
