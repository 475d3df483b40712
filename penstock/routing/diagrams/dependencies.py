"""The minimal table of dependencies between the predicates of one attribute, kept incrementally.

A predicate implies another one if its interval lies within the other's. The table holds the direct
implications only, the transitive reduction (figure 8 of Li, Hou and Jacobsen, 2005, computes the
same by deletion from a closure). All that a predicate implies, or is implied by, is then found by
following edges, without testing unrelated predicates.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import NamedTuple

from penstock.predicates.intervals import Cut, Interval

BLOCK_ENTRIES = 64
"""Entries per block, which is split at twice as many. With 4,000 predicates, a search reads 60."""


class _Entry(NamedTuple):
    low: Cut
    high: Cut
    variable: int


class _Block:
    """Entries in order of their low ends, and the greatest high end."""

    __slots__ = ("entries", "highest", "lowest")

    def __init__(self, entries: list[_Entry]) -> None:
        self.entries = entries
        self.lowest = min(entry.high for entry in entries)
        self.highest = max(entry.high for entry in entries)


class DependencyTable:
    """Variables with distinct intervals. `parents` are directly implied by a variable, `children`
    directly imply it."""

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._intervals: dict[int, Interval] = {}
        self.parents: dict[int, set[int]] = {}
        self.children: dict[int, set[int]] = {}

    def __len__(self) -> int:
        return len(self._intervals)

    def __contains__(self, variable: int) -> bool:
        return variable in self._intervals

    def __iter__(self) -> Iterator[int]:
        return iter(self._intervals)

    def pairs(self) -> list[tuple[int, int]]:
        """The table: (a, b) where a directly implies b."""
        return sorted((a, b) for a, above in self.parents.items() for b in above)

    def add(self, variable: int, interval: Interval) -> None:
        parents, children = self._direct_supersets(interval), self._direct_subsets(interval)
        self._insert(_Entry(*interval, variable))
        self._intervals[variable] = interval
        self.parents[variable], self.children[variable] = set(parents), set(children)
        for parent in parents:
            self.children[parent].difference_update(children)
            self.children[parent].add(variable)
        for child in children:
            self.parents[child].difference_update(parents)
            self.parents[child].add(variable)

    def remove(self, variable: int) -> None:
        interval = self._intervals.pop(variable)
        self._delete(_Entry(*interval, variable))
        parents, children = self.parents.pop(variable), self.children.pop(variable)
        for parent in parents:
            self.children[parent].discard(variable)
        for child in children:
            others = self.parents[child]
            others.discard(variable)
            for parent in parents:
                outer = self._intervals[parent]
                if not any(outer.covers(self._intervals[other]) for other in others):
                    others.add(parent)
                    self.children[parent].add(child)

    def implied_by(self, variable: int) -> list[int]:
        """All variables that a variable implies, itself included."""
        return _reached(variable, self.parents)

    def implying(self, variable: int) -> list[int]:
        """All variables that imply a variable, itself included."""
        return _reached(variable, self.children)

    def supersets(self, interval: Interval) -> Iterator[_Entry]:
        """All entries that contain an interval, by descending low end."""
        low, high = interval
        for block in reversed(self._blocks[: self._block_of(low) + 1]):
            if block.highest >= high:
                for entry in reversed(block.entries):
                    if entry.low <= low and entry.high >= high:
                        yield entry

    def subsets(self, interval: Interval) -> Iterator[_Entry]:
        """All entries that lie within an interval, by ascending low end."""
        low, high = interval
        start = bisect_left(self._blocks, low, key=lambda block: block.entries[-1].low)
        for block in self._blocks[start:]:
            if block.entries[0].low > high:
                break
            if block.lowest <= high:
                for entry in block.entries:
                    if entry.low >= low and entry.high <= high:
                        yield entry

    def _direct_supersets(self, interval: Interval) -> list[int]:
        """By descending low end, a superset is direct if it ends before all previous ones."""
        found: list[int] = []
        nearest: Cut | None = None
        ordered = sorted(self.supersets(interval), key=lambda e: e.high)
        ordered.sort(key=lambda e: e.low, reverse=True)
        for entry in ordered:
            if nearest is None or entry.high < nearest:
                found.append(entry.variable)
                nearest = entry.high
        return found

    def _direct_subsets(self, interval: Interval) -> list[int]:
        found: list[int] = []
        furthest: Cut | None = None
        ordered = sorted(self.subsets(interval), key=lambda e: e.high, reverse=True)
        ordered.sort(key=lambda e: e.low)
        for entry in ordered:
            if furthest is None or entry.high > furthest:
                found.append(entry.variable)
                furthest = entry.high
        return found

    def _block_of(self, low: Cut) -> int:
        """The last block that may hold entries that begin at a cut."""
        return max(0, bisect_right(self._blocks, low, key=lambda block: block.entries[0].low) - 1)

    def _insert(self, entry: _Entry) -> None:
        if not self._blocks:
            self._blocks.append(_Block([entry]))
            return
        place = self._block_of(entry.low)
        entries = self._blocks[place].entries
        insort(entries, entry)
        half = len(entries) // 2
        parts = [entries[:half], entries[half:]] if half >= BLOCK_ENTRIES else [entries]
        self._blocks[place : place + 1] = [_Block(part) for part in parts]

    def _delete(self, entry: _Entry) -> None:
        start = bisect_left(self._blocks, entry.low, key=lambda block: block.entries[-1].low)
        for place in range(start, len(self._blocks)):
            entries = self._blocks[place].entries
            if entry in entries:
                entries.remove(entry)
                self._blocks[place : place + 1] = [_Block(entries)] if entries else []
                return


def _reached(start: int, edges: dict[int, set[int]]) -> list[int]:
    seen, waiting = {start}, [start]
    for one in waiting:
        fresh = edges[one] - seen
        seen |= fresh
        waiting += fresh
    return waiting
