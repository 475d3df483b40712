"""Kernels that expand runs (see `Runs`) into pairs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from penstock.kernels.compiled import njit

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]
Lanes = npt.NDArray[np.uint16]

SLACK = 8
"""Free entries that output arrays need beyond the last pair."""


@njit
def write_pairs(
    ids: Ints64,
    spans: Ints32,
    starts: Ints64,
    events: Ints32,
    lanes: Lanes,
    first_event: int,
    run: int,
    offset: int,
    out_events: Ints32,
    out_ids: Ints64,
) -> tuple[int, int, int]:
    """Write pairs, starting at subscription `offset` of `run`, until the output is full.

    Returns the number written, and the run and subscription to continue at. Event lists are short,
    so they are copied eight entries at a time, which overwrites up to SLACK entries beyond the end:
    a subscription is written only if `length + SLACK` entries are free. The caller's arrays have
    room for at least one whole batch of events, so every call makes progress.
    """
    listed = np.empty(len(out_events) + SLACK, np.int32)
    written = 0
    while run < len(spans):
        first, count, base, length = spans[run, 0], spans[run, 1], spans[run, 2], spans[run, 3]
        start = starts[run]
        if written + length + SLACK > len(out_events):
            return written, run, offset
        if start < 0:
            for k in range(length):
                listed[k] = events[base + k] + first_event
        else:
            for k in range(length):
                listed[k] = events[base + lanes[start + k]] + first_event
        while offset < count:
            if written + length + SLACK > len(out_events):
                return written, run, offset
            subscription = ids[first + offset]
            for k in range(0, length, SLACK):
                for lane in range(SLACK):
                    out_events[written + k + lane] = listed[k + lane]
                    out_ids[written + k + lane] = subscription
            written += length
            offset += 1
        run += 1
        offset = 0
    return written, run, 0


@njit
def mark_listed(
    spans: Ints32, starts: Ints64, events: Ints32, lanes: Lanes, seen: npt.NDArray[np.bool_]
) -> None:
    """Mark the events of all runs.

    A contiguous run only marks its two ends in `begun`; one prefix sum over all of them replaces a
    loop over its events.
    """
    begun = np.zeros(len(events) + 1, np.int32)
    for run in range(len(spans)):
        base, start, length = spans[run, 2], starts[run], spans[run, 3]
        if start < 0:
            begun[base] += 1
            begun[base + length] -= 1
        else:
            for k in range(length):
                seen[events[base + lanes[start + k]]] = True
    open_runs = 0
    for place in range(len(events)):
        open_runs += begun[place]
        if open_runs > 0:
            seen[events[place]] = True
