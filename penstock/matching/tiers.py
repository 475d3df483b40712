"""When an index of immutable segments builds and merges them, for every index that is made so.

New items wait in a small *delta*, which is cheap to look through or to index anew. A full delta
becomes a segment, and segments of about equal size are merged, so an item is built into a segment
O(log n) times. Removed items stay in their segments, dead, until most of a segment is dead.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class TierSegment(Protocol):
    """What is asked of a segment to decide whether to merge it."""

    def __len__(self) -> int:
        """Its items, dead ones included."""

    @property
    def dead_count(self) -> int: ...


@dataclass(frozen=True, slots=True)
class TierPolicy:
    """Sizes, in items."""

    delta_items: int
    """A delta of so many items becomes a segment."""
    smallest: int
    """Smaller segments are all of one tier; each further tier is `2 ** ratio_bits` times larger."""
    ratio_bits: int
    fanout: int
    """So many segments of one tier are merged. Fewer segments make reading cheaper, more of them
    writing."""

    def tier(self, size: int) -> int:
        return -(-(size // self.smallest).bit_length() // self.ratio_bits)

    def next_merge(self, segments: Sequence[tuple[int, int]]) -> list[int]:
        """Which segments, given by their sizes and how many of their items are dead, to merge
        next: one that is mostly dead, alone; or the smallest tier that is full. None if all is
        well."""
        tiers: dict[int, list[int]] = {}
        for number, (size, dead) in enumerate(segments):
            if self.is_mostly_dead(dead, size):
                return [number]
            tiers.setdefault(self.tier(size), []).append(number)
        full = [tier for tier, numbers in tiers.items() if len(numbers) >= self.fanout]
        return tiers[min(full)] if full else []

    def merges_due(self, segments: Sequence[tuple[int, int]]) -> list[list[int]]:
        """All merges that follow from one another, as the groups of segments that end up in one:
        each is then built once."""
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
        """`build` makes one segment of new items and of what is alive in old segments; None if
        that is nothing."""
        self._policy, self._build = policy, build
        self.segments: list[S] = list(segments)
        self.delta: dict[K, T] = {}

    def add(self, key: K, item: T) -> None:
        self.delta[key] = item
        if len(self.delta) >= self._policy.delta_items:
            items, self.delta = list(self.delta.values()), {}
            self._merge(items)

    def merge_what_is_due(self) -> None:
        """To be called after items of segments have died."""
        self._merge([])

    def _merge(self, items: list[T]) -> None:
        """Build new items into a segment, and merge what is due then."""
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
