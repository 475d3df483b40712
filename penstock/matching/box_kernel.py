"""Kernels over `BoxIndex`: the rectangles that contain an event, the events in a rectangle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.kernels.compiled import njit
from penstock.matching.box_index import BLOCK_BOXES, GROUP_BLOCKS, BoxIndex
from penstock.matching.pairs import CONTIGUOUS
from penstock.matching.runs import EachEvent, RunBuffers

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]
Lanes = npt.NDArray[np.uint16]
Flags = npt.NDArray[np.uint8]

PASS_EVENTS = 50_000
"""Events indexed per pass; below 65,536, so that two bytes number the events of a slab."""
_SLAB_EVENTS = 800
_BUCKETS = 1024


@dataclass(frozen=True, slots=True)
class EventIndex:
    """Events in slabs along x, each sorted along y.

    `slab_of[x]` is the slab of cell x. `order[i]` is the event at position `i`, and `xs[i]`,
    `ys[i]` are its cells. `firsts[slab, y >> shift]` is the position where the events of that
    bucket begin; a row has one entry beyond the last bucket, so `firsts[slab, bucket + 1]` is
    always its end.
    """

    slab_of: Ints32
    xs: Ints32
    ys: Ints32
    order: Ints32
    firsts: Ints32
    shift: int


def index_events(index: BoxIndex, cells: Ints32) -> EventIndex:
    x, y = (np.ascontiguousarray(cells[:, axis]) for axis in index.axes)
    slabs = max(1, len(cells) // _SLAB_EVENTS)
    edges = np.unique(np.sort(x)[np.arange(1, slabs) * len(x) // slabs])
    slab_of = np.searchsorted(edges, np.arange(index.cell_counts[0]), "right").astype(np.int32)
    slab = slab_of[x]
    order = np.lexsort((y, slab)).astype(np.int32)
    shift = max(0, int(index.cell_counts[1] // _BUCKETS).bit_length())
    bucket_count = (index.cell_counts[1] >> shift) + 2
    buckets = slab[order].astype(np.int64) * bucket_count + (y[order] >> shift)
    places = np.arange((len(edges) + 1) * bucket_count)
    firsts = np.searchsorted(buckets, places).astype(np.int32).reshape(-1, bucket_count)
    return EventIndex(slab_of, x[order], y[order], order, firsts, shift)


def box_runs(index: BoxIndex, cells: Ints32, dead: Flags, runs: RunBuffers) -> bool:
    """Add the matches of all events with all rectangles; False if the buffers were too small."""
    everything = range(index.ranges.shape[1])
    return box_part_runs(index, index_events(index, cells), dead, everything, cells, runs)


def box_part_runs(
    index: BoxIndex,
    events: EventIndex,
    dead: Flags,
    boxes: range,
    cells: Ints32,
    runs: RunBuffers,
) -> bool:
    """`box_runs` for some of the rectangles: threads divide the boxes, not the events."""
    spans, starts, listed, lanes = runs.arrays
    listed[: len(events.order)] = events.order
    counts = _stream_boxes(
        boxes.start,
        boxes.stop,
        index.ranges,
        index.box_owners,
        index.rest_offsets,
        index.rest_columns,
        index.rest_lows,
        index.rest_highs,
        cells,
        dead,
        events.slab_of,
        events.xs,
        events.ys,
        events.order,
        events.firsts,
        events.shift,
        spans,
        starts,
        lanes,
    )
    return runs.set_counts(counts[0], len(events.order), counts[1])


@njit
def _stream_boxes(
    first_box: int,
    last_box: int,
    ranges: Ints32,
    box_owners: Ints32,
    rest_offsets: Ints64,
    rest_columns: Ints32,
    rest_lows: Ints32,
    rest_highs: Ints32,
    cells: Ints32,
    dead: Flags,
    slab_of: Ints32,
    xs: Ints32,
    ys: Ints32,
    order: Ints32,
    firsts: Ints32,
    shift: int,
    spans: Ints32,
    starts: Ints64,
    lanes: Lanes,
) -> tuple[int, int]:
    """The numbers of runs and lanes written; -1 runs if the buffers were too small.

    Only the first and the last slab of a rectangle can hold events outside its x range, so the
    slabs between them become CONTIGUOUS runs without lanes, unless further predicates remain. A
    run is one box and one slab, and adds at most `stop - start` lanes: both are checked before it
    is written. `np.uint16` holds a lane because a pass has at most PASS_EVENTS events.
    """
    run_count = picked = 0
    any_dead = len(dead) > 0
    for box in range(first_box, last_box):
        x_low, x_high = ranges[0, box], ranges[1, box]
        y_low, y_high = ranges[2, box], ranges[3, box]
        if x_low > x_high or (any_dead and dead[box_owners[box]]):
            continue
        has_rest = rest_offsets[box + 1] > rest_offsets[box]
        first_slab, last_slab = slab_of[x_low], slab_of[x_high]
        for slab in range(first_slab, last_slab + 1):
            start = firsts[slab, y_low >> shift]
            stop = firsts[slab, (y_high >> shift) + 1]
            while start < stop and ys[start] < y_low:
                start += 1
            while stop > start and ys[stop - 1] > y_high:
                stop -= 1
            if start == stop:
                continue
            if run_count == len(spans) or picked + (stop - start) > len(lanes):
                return -1, 0
            begin = np.int64(picked)
            if has_rest:
                for place in range(start, stop):
                    holds = (xs[place] >= x_low) & (xs[place] <= x_high)
                    for p in range(rest_offsets[box], rest_offsets[box + 1]):
                        cell = cells[order[place], rest_columns[p]]
                        holds &= (cell >= rest_lows[p]) & (cell < rest_highs[p])
                    lanes[picked] = np.uint16(place - start)
                    picked += int(holds)
            elif slab in (first_slab, last_slab):
                for place in range(start, stop):
                    lanes[picked] = np.uint16(place - start)
                    picked += int((xs[place] >= x_low) & (xs[place] <= x_high))
            else:
                begin = np.int64(CONTIGUOUS)
            length = stop - start if begin == CONTIGUOUS else picked - begin
            spans[run_count, 0] = box
            spans[run_count, 1] = 1
            spans[run_count, 2] = start
            spans[run_count, 3] = length
            starts[run_count] = begin
            run_count += int(length > 0)
    return run_count, picked


def box_matches(
    index: BoxIndex, cells: Ints32, dead: Flags, each_event: EachEvent
) -> tuple[Ints64, Ints32]:
    """Offsets and owners: the matches of each event. An owner occurs once per matching box."""
    return each_event(
        len(cells),
        lambda first, offsets, owners: _match_each(
            first,
            cells,
            index.axes[0],
            index.axes[1],
            index.ranges,
            index.blocks,
            index.cores,
            index.groups,
            index.box_owners,
            index.rest_offsets,
            index.rest_columns,
            index.rest_lows,
            index.rest_highs,
            dead,
            offsets,
            owners,
        ),
    )


@njit
def contains(ranges: Ints32, i: int, x: int, y: int) -> bool:
    """Whether rectangle `i` contains the point (x, y)."""
    return bool(
        (ranges[0, i] <= x) & (x <= ranges[1, i]) & (ranges[2, i] <= y) & (y <= ranges[3, i])
    )


@njit
def _match_each(
    first_event: int,
    cells: Ints32,
    x_axis: int,
    y_axis: int,
    ranges: Ints32,
    blocks: Ints32,
    cores: Ints32,
    groups: Ints32,
    box_owners: Ints32,
    rest_offsets: Ints64,
    rest_columns: Ints32,
    rest_lows: Ints32,
    rest_highs: Ints32,
    dead: Flags,
    offsets: Ints64,
    owners: Ints32,
) -> int:
    """Match from `first_event` on; returns the first event without room, or the event count.

    A block adds at most BLOCK_BOXES owners, so that many free entries are required before one is
    read. Inside a block every owner is written and only the matching ones advance `found`: no
    branch to mispredict.
    """
    found = offsets[first_event]
    any_check = len(dead) > 0 or len(rest_columns) > 0
    inside = np.zeros(BLOCK_BOXES, np.int32)
    for event in range(first_event, len(cells)):
        x, y = cells[event, x_axis], cells[event, y_axis]
        for group in range(groups.shape[1]):
            if not contains(groups, group, x, y):
                continue
            last = min(blocks.shape[1], (group + 1) * GROUP_BLOCKS)
            for block in range(group * GROUP_BLOCKS, last):
                if not contains(blocks, block, x, y):
                    continue
                if found + BLOCK_BOXES > len(owners):
                    return event
                first = block * BLOCK_BOXES
                is_core = contains(cores, block, x, y)
                if is_core and not any_check:
                    for k in range(BLOCK_BOXES):
                        owners[found + k] = box_owners[first + k]
                    found += BLOCK_BOXES
                    continue
                if is_core:
                    inside[:] = 1
                else:
                    for k in range(BLOCK_BOXES):
                        box = first + k
                        inside[k] = np.int32(
                            (ranges[0, box] <= x)
                            & (x <= ranges[1, box])
                            & (ranges[2, box] <= y)
                            & (y <= ranges[3, box])
                        )
                if any_check:
                    _keep_alive(
                        cells[event],
                        inside,
                        first,
                        box_owners,
                        dead,
                        rest_offsets,
                        rest_columns,
                        rest_lows,
                        rest_highs,
                    )
                for k in range(BLOCK_BOXES):
                    owners[found] = box_owners[first + k]
                    found += np.int64(inside[k])
        offsets[event + 1] = found
    return len(cells)


@njit
def _keep_alive(
    row: Ints32,
    inside: Ints32,
    first: int,
    box_owners: Ints32,
    dead: Flags,
    rest_offsets: Ints64,
    rest_columns: Ints32,
    rest_lows: Ints32,
    rest_highs: Ints32,
) -> None:
    """Clear `inside` for boxes that are dead or whose predicates on other columns fail."""
    for k in range(BLOCK_BOXES):
        if inside[k] == 0:
            continue
        box = first + k
        holds = len(dead) == 0 or dead[box_owners[box]] == 0
        for p in range(rest_offsets[box], rest_offsets[box + 1]):
            cell = row[rest_columns[p]]
            holds &= (cell >= rest_lows[p]) & (cell < rest_highs[p])
        inside[k] = np.int32(holds)
