"""Log-structured merging: when an index of immutable segments builds and merges them.

New items go to a small *delta*, which is cheap to scan or to rebuild. A full delta becomes a
segment, and segments of about equal size are merged, so an item is built into a segment O(log n)
times. Removed items stay in their segments, marked dead, until a segment is mostly dead.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class TierSegment(Protocol):
    """What the merge policy needs to know of a segment."""

    def __len__(self) -> int:
        """Its items, dead ones included."""

    @property
    def dead_count(self) -> int: ...


@dataclass(frozen=True, slots=True)
class TierPolicy:
    """Sizes, in items."""

    delta_items: int
    """The delta becomes a segment at this size."""
    smallest: int
    """Smaller segments are all in tier 0; each further tier is `2 ** ratio_bits` times larger."""
    ratio_bits: int
    fanout: int
    """Segments of one tier that trigger a merge. Low values favour reads, high ones writes."""

    def tier(self, size: int) -> int:
        return -(-(size // self.smallest).bit_length() // self.ratio_bits)

    def next_merge(self, segments: Sequence[tuple[int, int]]) -> list[int]:
        """The segments to merge next, given (size, dead items) of each: a mostly dead one alone, or
        the smallest full tier; empty if no merge is due."""
        tiers: dict[int, list[int]] = {}
        for number, (size, dead) in enumerate(segments):
            if self.is_mostly_dead(dead, size):
                return [number]
            tiers.setdefault(self.tier(size), []).append(number)
        full = [tier for tier, numbers in tiers.items() if len(numbers) >= self.fanout]
        return tiers[min(full)] if full else []

    def merges_due(self, segments: Sequence[tuple[int, int]]) -> list[list[int]]:
        """All cascading merges, as groups of segments that end up in one, so that each result is
        built once."""
        groups = [([number], size, dead) for number, (size, dead) in enumerate(segments)]
        touched: set[int] = set()
        while due := self.next_merge([(size, dead) for _, size, dead in groups]):
            merged = [groups[place] for place in due]
            members = [number for numbers, _, _ in merged for number in numbers]
            groups = [group for place, group in enumerate(groups) if place not in due]
            groups.append((members, sum(size - dead for _, size, dead in merged), 0))
            touched.update(members)
        return [members for members, _, _ in groups if touched.issuperset(members)]

    @staticmethod
    def is_mostly_dead(dead: int, size: int) -> bool:
        return 2 * dead > size


K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
S = TypeVar("S", bound=TierSegment)


class Tiers(Generic[K, T, S]):
    """Segments and a delta, kept within a policy. Not thread-safe."""

    def __init__(
        self,
        policy: TierPolicy,
        build: Callable[[Sequence[T], Sequence[S]], S | None],
        segments: Iterable[S] = (),
    ) -> None:
        """`build` makes one segment of new items and of the living items of old segments; None if
        there are none."""
        self._policy, self._build = policy, build
        self.segments: list[S] = list(segments)
        self.delta: dict[K, T] = {}

    def add(self, key: K, item: T) -> None:
        self.delta[key] = item
        if len(self.delta) >= self._policy.delta_items:
            items, self.delta = list(self.delta.values()), {}
            self._merge(items)

    def item_died(self, segment: S) -> None:
        """Call after an item of a segment was marked dead."""
        if self._policy.is_mostly_dead(segment.dead_count, len(segment)):
            self._merge([])

    def _merge(self, items: list[T]) -> None:
        """Build new items into a segment, and run the merges that become due."""
        old = self.segments
        sizes = [(len(one), one.dead_count) for one in old]
        new = len(old)
        if items:
            sizes.append((len(items), 0))
        groups = self._policy.merges_due(sizes)
        if items and not any(new in group for group in groups):
            groups.append([new])
        gone = {number for group in groups for number in group}
        self.segments = [one for number, one in enumerate(old) if number not in gone]
        for group in groups:
            members = [old[number] for number in group if number != new]
            built = self._build(items if new in group else [], members)
            if built is not None:
                self.segments.append(built)
