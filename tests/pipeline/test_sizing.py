"""The size of batches follows what they take."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.pipeline.sizing import FEWEST_RECORDS, FIRST_RECORDS, BatchSizer

MOST = 200_000


def settled(fixed: float, per_record: float, target: float, batches: int = 60) -> list[float]:
    """What batches take while there is always more to read."""
    sizer = BatchSizer(MOST, target)
    taken = []
    for _ in range(batches):
        seconds = fixed + sizer.records * per_record
        sizer.took(sizer.records, seconds)
        taken.append(seconds)
    return taken


def test_without_a_target_batches_are_as_large_as_allowed() -> None:
    sizer = BatchSizer(MOST, None)
    sizer.took(MOST, 1000.0)
    assert sizer.records == MOST


@given(fixed=st.floats(0.01, 0.3), per_record=st.floats(1e-6, 1e-3))
def test_batches_settle_around_the_target(fixed: float, per_record: float) -> None:
    target = 0.5
    late = settled(fixed, per_record, target)[-20:]
    least = fixed + FEWEST_RECORDS * per_record
    assert min(late) <= max(target, least)
    assert max(late) <= max(target * 1.6, least)
    biggest = fixed + MOST * per_record
    assert max(late) >= min(biggest, 0.7 * target) * 0.99


def test_slow_work_shrinks_batches_at_once() -> None:
    sizer = BatchSizer(MOST, 1.0)
    sizer.took(FIRST_RECORDS, 4.0)
    assert sizer.records == FIRST_RECORDS // 4


@given(st.lists(st.tuples(st.integers(0, MOST), st.floats(0, 100))))
def test_limits_hold_whatever_happens(batches: list[tuple[int, float]]) -> None:
    sizer = BatchSizer(MOST, 0.5)
    for records, seconds in batches:
        sizer.took(records, seconds)
        assert FEWEST_RECORDS <= sizer.records <= MOST


def test_a_batch_that_was_not_full_says_nothing_of_larger_ones() -> None:
    sizer = BatchSizer(MOST, 1.0)
    for _ in range(10):
        sizer.took(5, 0.1)
    assert sizer.records == FIRST_RECORDS
