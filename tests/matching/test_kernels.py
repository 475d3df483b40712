"""Kernels against their plain references."""

from __future__ import annotations

from collections.abc import Callable
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.lab.workloads.matching import matching_workload
from penstock.matching.bitmaps import _list_set, bitmap_matches, build_bitmaps
from penstock.matching.box_index import build_box_index
from penstock.matching.box_kernel import box_matches, box_runs
from penstock.matching.cluster_walk import pick_lanes, set_lanes
from penstock.matching.exists import any_box, any_walk
from penstock.matching.lane_kernel import LANES, WORDS, _fill_below, _sort_by_cell, lane_runs
from penstock.matching.pairs import Pairs
from penstock.matching.reference import lanes_of_words, plain_matches, words_of_lanes
from penstock.matching.runs import EachEvent, Room, RunBuffers
from penstock.matching.scan import scan_runs
from penstock.matching.table import BoxTable
from penstock.matching.trie import build_trie
from penstock.matching.trie_single import build_doors, walk_matches

NOBODY = np.empty(0, np.uint8)


@given(st.sets(st.integers(0, LANES - 1)))
def test_picking_lanes_lists_the_set_bits(lanes: set[int]) -> None:
    out = np.zeros(LANES + 16, np.uint16)
    count = pick_lanes(words_of_lanes(lanes, WORDS), WORDS, 0, out, 3)
    assert out[3:count].tolist() == sorted(lanes)


@given(st.integers(0, LANES), st.integers(0, LANES))
def test_setting_lanes_sets_a_stretch(start: int, stop: int) -> None:
    words = words_of_lanes(range(0, LANES, 7), WORDS)
    set_lanes(words, start, stop)
    assert lanes_of_words(words) == list(range(start, stop))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=600))
def test_sorting_and_filling(events: list[tuple[int, int]]) -> None:
    cells = np.array(events, np.int32)
    order = np.empty(len(cells), np.int32)
    firsts = _sort_by_cell(cells, 0, 5, order)
    assert order.tolist() == sorted(range(len(cells)), key=lambda e: events[e][0])
    assert firsts[:6].tolist() == [sum(e[0] < cell for e in events) for cell in range(6)]
    chosen = order[:LANES]
    row_bases = np.array([0, 6, 10], np.int32)
    below = np.full((10, WORDS), 99, np.uint64)
    _fill_below(below, cells, row_bases, chosen, 0)
    for cell in range(4):
        expected = [lane for lane, event in enumerate(chosen) if events[event][1] < cell]
        assert lanes_of_words(below[6 + cell]) == expected


@pytest.mark.slow
def test_all_strategies_find_the_same_pairs() -> None:
    """600 events of a workload with shared and with own ranges, by every kernel."""
    for name in ("MA", "G3", "JHIGH"):
        workload = matching_workload(name, 800, 600)
        table = BoxTable.of_ranges(workload.relation, workload.boxes)
        cells = table.cells(workload.events)
        trie = build_trie(table, cells[:100])
        box_index = build_box_index(table)
        doors = build_doors(trie)
        dead = np.zeros(len(table.ids), np.uint8)
        dead[::7] = 1
        expected = plain_matches(table, cells, dead)
        assert len(expected) > 1000
        kernels: tuple[tuple[Callable[..., bool], object, npt.NDArray[np.int64]], ...] = (
            (lane_runs, trie, table.ids[trie.box_owners]),
            (box_runs, box_index, table.ids[box_index.box_owners]),
            (scan_runs, table, table.ids[table.owners]),
        )
        for kernel, index, names in kernels:
            runs = RunBuffers.of(Room(1 << 20, 1 << 20, 1 << 20))
            assert kernel(index, cells, dead, runs)
            events, ids = Pairs(len(cells), (runs.found(names),)).expand()
            assert sorted(zip(events.tolist(), ids.tolist(), strict=True)) == expected
            assert not kernel(index, cells, dead, RunBuffers.of(Room(4, 1 << 20, 16)))
        bitmaps = build_bitmaps(table, trie)
        with mock.patch("penstock.matching.bitmaps.TALL_WORDS", 1):  # as with very many boxes
            from_top = bitmap_matches(bitmaps, cells, dead, EachEvent())
        found = [
            from_top,
            bitmap_matches(bitmaps, cells, dead, EachEvent()),
            box_matches(box_index, cells, dead, EachEvent()),
            walk_matches(trie, doors, cells, dead, EachEvent()),
        ]
        for offsets, owners in found:
            events = np.repeat(np.arange(len(cells)), np.diff(offsets))
            assert sorted(zip(events.tolist(), owners.tolist(), strict=True)) == expected


@pytest.mark.parametrize("name", ["MA", "G3", "JLOW", "JHIGH"])
@pytest.mark.parametrize("killed", [0, 1, 3])
def test_the_first_match_says_as_much_as_all(name: str, killed: int) -> None:
    """Events that match nobody among them; of the boxes, none, all or a third are dead."""
    workload = matching_workload(name, 300, 600)
    table = BoxTable.of_ranges(workload.relation, workload.boxes)
    cells = table.cells(workload.events)
    trie = build_trie(table, cells[:100])
    dead = np.zeros(len(table.ids), np.uint8)
    if killed:
        dead[::killed] = 1
    expected = np.zeros(len(cells), np.bool_)
    expected[[event for event, _ in plain_matches(table, cells, dead)]] = True
    assert killed == 1 or 0 < expected.sum() < len(cells)
    dead = dead if killed else NOBODY
    assert np.array_equal(any_box(build_box_index(table), cells, dead), expected)
    assert np.array_equal(any_walk(trie, build_doors(trie), cells, dead), expected)


@given(st.lists(st.lists(st.integers(0, 3 * 64 - 1), max_size=150), min_size=1, max_size=4))
def test_bits_that_are_set_in_all_rows(rows: list[list[int]]) -> None:
    words = np.zeros((len(rows), 3), np.uint64)
    for row, places in enumerate(rows):
        for place in places:
            words[row, place >> 6] |= np.uint64(1 << (place & 63))
    found = np.zeros(3 * 64, np.int64)
    count = _list_set(words, np.arange(len(rows)), found)
    assert found[:count].tolist() == sorted(set.intersection(*map(set, rows)))
