"""Groups of packed rows: all rows that groups of an edge have or will have, by number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from penstock.catalog import Row
from penstock.joins.group import Group, GroupStep
from penstock.joins.kernels.gap_steps import NONE
from penstock.joins.packed.steps_codec import StepTable
from penstock.kernels.arrays import Bytes8, Flags, Ints
from penstock.kernels.byte_spans import NOWHERE, Spans, concat, gather, number_values, to_bytes_list
from penstock.kernels.byte_strings import put_bytes
from penstock.kernels.compiled import njit
from penstock.kernels.msgpack_read import value_end
from penstock.kernels.msgpack_write import put_array
from penstock.packing import unpack_tuple
from penstock.spaces import Edge


class Members(NamedTuple):
    """The stored members of some groups, concatenated."""

    entries: Sequence[bytes]
    """By member: join value, key and row, packed as one array."""
    sides: Ints
    counts: Ints
    """By group: the number of its members."""


class MemberPlaces(NamedTuple):
    """The addresses of members: the join values of groups, and for each member the number of its
    group, its side and its key."""

    values: Sequence[bytes]
    groups: Ints
    sides: Ints
    keys: Sequence[bytes]


class PackedGroups(Protocol):
    """The groups of all edges (or of one partition of them)."""

    def members(self, edge: Edge, values: Iterable[bytes]) -> Members:
        """The stored members of the groups with these packed join values."""

    def keep(self, edge: Edge, places: MemberPlaces, entries: Iterable[bytes]) -> None: ...

    def drop(self, edge: Edge, places: MemberPlaces) -> None: ...


class KeyTable(NamedTuple):
    """The keys of all members and steps, by number."""

    spans: Spans
    groups: Ints
    sides: Ints
    was_there: Flags
    is_touched: Flags
    """Whether a step refers to the key."""


class RowTable(NamedTuple):
    """Rows by number: the left side, then the right side, group by group; within a group, rows that
    are present before the first step come first."""

    keys: Spans
    rows: Spans
    begin: Ints
    """By side and group: its first row; and the end of the last group."""
    there: Ints
    """By side and group: the number of rows present before the first step."""
    new: Ints
    old: Ints
    """By step: the rows that it adds and removes, or NONE."""
    now: Ints
    """By key number: the row that is present after the last step, or NONE."""


@dataclass(frozen=True, slots=True)
class GroupRun:
    """Groups of one edge, and a batch of their steps."""

    edge: Edge
    heap: Bytes8
    values: Spans
    """The join values of the groups."""
    steps: StepTable
    """Group by group, in order."""
    begin: Ints
    """Where the steps of each group begin, and where the last end."""
    keys: KeyTable
    table: RowTable

    @classmethod
    def of(
        cls,
        edge: Edge,
        data: Bytes8,
        values: Spans,
        groups: Ints,
        steps: StepTable,
        store: PackedGroups,
    ) -> GroupRun:
        """The groups with these join values; `groups[s]` is the group of step `s`."""
        members = store.members(edge, to_bytes_list(*gather(data, values)))
        stored, begin = concat(members.entries)
        heap = np.concatenate([data, stored])
        owners = np.repeat(np.arange(len(values.begin)), members.counts)
        keys, rows = read_members(heap, begin[:-1] + len(data))
        every = Spans(*map(np.concatenate, zip(keys, steps.keys, strict=True)))
        group_of = np.concatenate([owners, groups])
        side_of = np.concatenate([members.sides, steps.sides])
        numbers, first = number_values(heap, every, 2 * group_of + side_of)
        is_touched = np.zeros(len(first), np.bool_)
        is_touched[numbers[len(owners) :]] = True
        known = KeyTable(
            every.take(first), group_of[first], side_of[first], first < len(owners), is_touched
        )
        table = number_rows(
            numbers, group_of, side_of, keys, rows, steps, len(values.begin), len(first)
        )
        ends = np.searchsorted(groups, np.arange(len(values.begin) + 1))
        return cls(edge, heap, values, steps, ends, known, table)

    def store(self, store: PackedGroups) -> None:
        """Store the groups as they are after the steps."""
        keys, now = self.keys, self.table.now
        is_kept = keys.is_touched & (now != NONE)
        values = self.values.take(keys.groups[is_kept])
        rows = self.table.rows.take(now[is_kept])
        entries = pack_members(self.heap, values, keys.spans.take(is_kept), rows)
        store.keep(self.edge, self._places(is_kept), to_bytes_list(*entries))
        store.drop(self.edge, self._places(keys.is_touched & (now == NONE) & keys.was_there))

    def objects(self) -> Iterator[tuple[Group, list[GroupStep]]]:
        """Each group as it is before its steps, and the steps, as objects for the plain gear."""
        steps, table = self.steps, self.table
        keyed = list(zip(self._decoded(table.keys), self._decoded(table.rows), strict=True))
        rows: list[Row | None] = [*(row for _, row in keyed), None]  # NONE, -1, reads the last
        every = [
            GroupStep(offset, step, side, key, rows[old], rows[new])
            for offset, step, side, key, old, new in zip(
                steps.offsets.tolist(),
                steps.steps.tolist(),
                steps.sides.tolist(),
                self._decoded(steps.keys),
                table.old.tolist(),
                table.new.tolist(),
                strict=True,
            )
        ]
        for group, (first, end) in enumerate(pairwise(self.begin.tolist())):
            left, right = (
                dict(keyed[begin[group] : begin[group] + there[group]])
                for begin, there in zip(table.begin, table.there, strict=True)
            )
            yield Group((left, right)), every[first:end]

    def _decoded(self, spans: Spans) -> list[tuple[Any, ...]]:
        return list(map(unpack_tuple, to_bytes_list(*gather(self.heap, spans))))

    def _places(self, which: Flags) -> MemberPlaces:
        keys = self.keys
        return MemberPlaces(
            to_bytes_list(*gather(self.heap, self.values)),
            keys.groups[which],
            keys.sides[which],
            to_bytes_list(*gather(self.heap, keys.spans.take(which))),
        )


@njit
def read_members(heap: Bytes8, begin: Ints) -> tuple[Spans, Spans]:
    """The keys and the rows of the entries that begin at `begin`.

    An entry is a packed array of three, whose start takes one byte: join value, key, row.
    """
    count = begin.shape[0]
    keys = Spans(np.empty(count, np.int64), np.empty(count, np.int64))
    rows = Spans(np.empty(count, np.int64), np.empty(count, np.int64))
    for i in range(count):
        key = value_end(heap, begin[i] + 1)
        row = value_end(heap, key)
        keys.begin[i], keys.end[i] = key, row
        rows.begin[i], rows.end[i] = row, value_end(heap, row)
    return keys, rows


@njit
def pack_members(heap: Bytes8, values: Spans, keys: Spans, rows: Spans) -> tuple[Bytes8, Ints]:
    """Entries in their stored form, and where each ends; sizes are exact."""
    sizes = (values.end - values.begin) + (keys.end - keys.begin) + (rows.end - rows.begin) + 1
    ends = np.cumsum(sizes)
    out = np.empty(ends[-1] if ends.shape[0] else 0, np.uint8)
    for i in range(ends.shape[0]):
        at = put_array(out, ends[i] - sizes[i], 3)
        at = put_bytes(out, at, heap, values.begin[i], values.end[i] - values.begin[i])
        at = put_bytes(out, at, heap, keys.begin[i], keys.end[i] - keys.begin[i])
        put_bytes(out, at, heap, rows.begin[i], rows.end[i] - rows.begin[i])
    return out, ends


@njit
def number_rows(
    numbers: Ints,
    groups: Ints,
    sides: Ints,
    keys: Spans,
    rows: Spans,
    steps: StepTable,
    count: int,
    known: int,
) -> RowTable:
    """Number the rows of `count` groups.

    `numbers`, `groups` and `sides` are by key occurrence: all members first, then all steps;
    `known` is the number of distinct keys. Rows are counted per side and group first, so
    `following`, the next free number of each, stays within its group. `now` is the row that each
    key has while the steps are replayed in order.
    """
    members, taken = keys.begin.shape[0], steps.offsets.shape[0]
    there, begin = np.zeros((2, count), np.int64), np.zeros((2, count + 1), np.int64)
    for i in range(members):
        there[sides[i], groups[i]] += 1
        begin[sides[i], groups[i] + 1] += 1
    for i in range(taken):
        if steps.new.begin[i] != NOWHERE:
            begin[sides[members + i], groups[members + i] + 1] += 1
    begin[0] = np.cumsum(begin[0])
    begin[1] = begin[0, count] + np.cumsum(begin[1])
    total, following = begin[1, count], begin[:, :count].copy()
    all_keys = Spans(np.empty(total, np.int64), np.empty(total, np.int64))
    all_rows = Spans(np.empty(total, np.int64), np.empty(total, np.int64))
    now = np.full(known, NONE, np.int64)
    new, old = np.full(taken, NONE, np.int64), np.full(taken, NONE, np.int64)
    for i in range(members + taken):
        step, number = i - members, NONE
        if step >= 0:
            old[step] = now[numbers[i]] if steps.old.begin[step] != NOWHERE else NONE
        if step < 0 or steps.new.begin[step] != NOWHERE:
            number = following[sides[i], groups[i]]
            following[sides[i], groups[i]] += 1
            key, row = (keys, rows) if step < 0 else (steps.keys, steps.new)
            place = i if step < 0 else step
            all_keys.begin[number], all_keys.end[number] = key.begin[place], key.end[place]
            all_rows.begin[number], all_rows.end[number] = row.begin[place], row.end[place]
        if step >= 0:
            new[step] = number
        now[numbers[i]] = number
    return RowTable(all_keys, all_rows, begin, there, new, old, now)
