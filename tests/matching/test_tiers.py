"""Segments and a delta hold what was put into them, and build each item a few times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.matching.tiers import TierPolicy, Tiers

POLICIES = [
    TierPolicy(delta_items=1, smallest=1, ratio_bits=1, fanout=2),
    TierPolicy(delta_items=4, smallest=16, ratio_bits=2, fanout=2),
    TierPolicy(delta_items=3, smallest=4, ratio_bits=2, fanout=4),
    TierPolicy(delta_items=8, smallest=64, ratio_bits=3, fanout=2),
]


class BoxSegment:
    def __init__(self, items: Sequence[int]) -> None:
        self.items = set(items)
        self.dead: set[int] = set()

    def __len__(self) -> int:
        return len(self.items)

    @property
    def dead_count(self) -> int:
        return len(self.dead)

    def living(self) -> set[int]:
        return self.items - self.dead


class Index:
    """As small as an index can be."""

    def __init__(self, policy: TierPolicy) -> None:
        self.built: Counter[int] = Counter()
        self.tiers: Tiers[int, int, BoxSegment] = Tiers(policy, self._build)

    def _build(self, items: Sequence[int], old: Sequence[BoxSegment]) -> BoxSegment | None:
        every = [*items, *(item for segment in old for item in segment.living())]
        self.built.update(every)
        return BoxSegment(every) if every else None

    def add(self, item: int) -> None:
        self.tiers.add(item, item)

    def remove(self, item: int) -> None:
        if self.tiers.delta.pop(item, None) is None:
            for segment in self.tiers.segments:
                if item in segment.living():
                    segment.dead.add(item)
            self.tiers.merge_what_is_due()

    def items(self) -> list[int]:
        segments = (item for segment in self.tiers.segments for item in segment.living())
        return sorted([*self.tiers.delta, *segments])


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@given(changes=st.lists(st.integers(-40, 120), max_size=200))
def test_what_was_put_in_is_there(policy: TierPolicy, changes: list[int]) -> None:
    index, expected = Index(policy), set[int]()
    for number, change in enumerate(changes):
        if change < 0 and expected:
            gone = sorted(expected)[change % len(expected)]
            index.remove(gone)
            expected.remove(gone)
        else:
            index.add(number)
            expected.add(number)
        assert index.items() == sorted(expected)
        assert len(index.tiers.delta) < policy.delta_items
        sizes = [(len(one), one.dead_count) for one in index.tiers.segments]
        assert all(2 * dead <= size for size, dead in sizes)
        tiers = Counter(policy.tier(size) for size, _ in sizes)
        assert all(count < policy.fanout for count in tiers.values())


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_items_are_built_a_few_times_each(policy: TierPolicy) -> None:
    index, count = Index(policy), 3000
    for item in range(count):
        index.add(item)
    ratio = 2**policy.ratio_bits
    tiers = 1 + log(count / policy.smallest, ratio)
    first = policy.smallest / policy.delta_items  # times within the lowest tier, at most
    assert max(index.built.values()) <= first + ratio * tiers
    assert len(index.tiers.segments) <= (policy.fanout - 1) * (tiers + 1)


def test_merges_that_follow_from_one_another_are_one() -> None:
    policy = TierPolicy(delta_items=1, smallest=1, ratio_bits=1, fanout=2)
    assert policy.merges_due([(8, 0), (4, 0), (2, 0), (1, 0), (1, 0)]) == [[0, 1, 2, 3, 4]]
    assert policy.merges_due([(8, 0), (4, 0)]) == []
    assert policy.merges_due([(8, 5), (2, 0)]) == [[1, 0]]
    assert policy.merges_due([(8, 5), (1, 0)]) == [[0]]
