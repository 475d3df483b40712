"""Who is to blame for a fault: found by attempts, with as few records set aside as possible."""

from __future__ import annotations

from collections.abc import Sequence

import lmdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ChangeError, CorruptionError, HomeError, RecordError
from penstock.flow.faults import (
    MAX_FOUND,
    RecordFaultError,
    blaming,
    find_culprits,
    is_fault,
)

EVENTS = list(range(100, 112))
SUBSCRIPTIONS = list(range(8))
some_events = st.sets(st.sampled_from(EVENTS), max_size=4)
some_subscriptions = st.sets(st.sampled_from(SUBSCRIPTIONS), max_size=3)


class Trouble:
    """Processing that fails of some events, of some subscriptions, and of some pairs of both."""

    def __init__(self, events: set[int], subscriptions: set[int], pairs: set[tuple[int, int]]):
        self.events, self.subscriptions, self.pairs = events, subscriptions, pairs
        self.attempts = 0

    def __call__(self, events: Sequence[int], subscriptions: Sequence[int]) -> Exception | None:
        self.attempts += 1
        if self.events & set(events) or self.subscriptions & set(subscriptions):
            return ValueError("of one")
        both = {(e, s) for e in events for s in subscriptions}
        return ValueError("of two") if self.pairs & both else None


@given(some_events, some_subscriptions)
def test_just_the_culprits_are_set_aside(events: set[int], subscriptions: set[int]) -> None:
    found = find_culprits(EVENTS, SUBSCRIPTIONS, Trouble(events, subscriptions, set()))
    assert {one.offset for one in found} == events | subscriptions
    assert all(one.primary == "ValueError: of one" for one in found)


@given(
    some_events,
    some_subscriptions,
    st.sets(st.tuples(st.sampled_from(EVENTS), st.sampled_from(SUBSCRIPTIONS)), max_size=6),
)
def test_without_the_culprits_all_others_pass(
    events: set[int], subscriptions: set[int], pairs: set[tuple[int, int]]
) -> None:
    trouble = Trouble(events, subscriptions, pairs)
    gone = {one.offset for one in find_culprits(EVENTS, SUBSCRIPTIONS, trouble)}
    kept = [one for one in EVENTS if one not in gone]
    assert trouble(kept, [one for one in SUBSCRIPTIONS if one not in gone]) is None


def test_a_subscription_that_fails_with_every_event_is_to_blame() -> None:
    trouble = Trouble(set(), set(), {(event, 3) for event in EVENTS})
    assert [one.offset for one in find_culprits(EVENTS, SUBSCRIPTIONS, trouble)] == [3]
    assert [one.offset for one in find_culprits(EVENTS[:1], SUBSCRIPTIONS, trouble)] == [3]


def test_an_event_that_fails_with_every_subscription_is_to_blame() -> None:
    trouble = Trouble(set(), set(), {(105, number) for number in SUBSCRIPTIONS})
    (found,) = find_culprits(EVENTS, SUBSCRIPTIONS, trouble)
    assert (found.offset, found.suspect) == (105, 0)
    assert [one.offset for one in find_culprits([105], SUBSCRIPTIONS, trouble)] == [105]


def test_an_event_that_is_the_only_one_to_fail_is_to_blame() -> None:
    trouble = Trouble(set(), set(), {(105, 3)})
    assert [one.offset for one in find_culprits(EVENTS, SUBSCRIPTIONS, trouble)] == [105]


def test_a_subscription_that_takes_part_in_a_second_fault_is_suspended() -> None:
    trouble = Trouble(set(), set(), {(105, 3), (107, 3)})
    (first,) = find_culprits([104, 105, 106], SUBSCRIPTIONS, trouble)
    assert (first.offset, first.suspect) == (105, 3)
    (second,) = find_culprits([106, 107, 108], SUBSCRIPTIONS, trouble, suspects={3})
    assert second.offset == 3


def test_a_fault_without_any_record_is_raised() -> None:
    with pytest.raises(ValueError, match="always"):
        find_culprits(EVENTS, SUBSCRIPTIONS, lambda *_: ValueError("always"))


def test_a_culprit_that_names_itself_is_not_searched_for() -> None:
    calls = []

    def attempt(events: Sequence[int], subscriptions: Sequence[int]) -> Exception | None:
        calls.append(events)
        return RecordFaultError(4, KeyError("four")) if 4 in subscriptions else None

    assert [one.offset for one in find_culprits(EVENTS, SUBSCRIPTIONS, attempt)] == [4]
    assert len(calls) == 2


def test_a_search_ends() -> None:
    many = list(range(10 * MAX_FOUND))
    trouble = Trouble(set(many), set(), set())
    assert len(find_culprits(many, (), trouble)) == MAX_FOUND
    assert trouble.attempts < MAX_FOUND * 20


@pytest.mark.parametrize(
    "error",
    [OSError("disk"), MemoryError(), HomeError("in use"), CorruptionError("x"), lmdb.Error("y")],
)
def test_what_does_not_follow_from_records_is_no_fault(error: Exception) -> None:
    assert not is_fault(error)
    with pytest.raises(type(error)), blaming(4):
        raise error


@pytest.mark.parametrize(
    "error", [ValueError("x"), RecursionError(), ChangeError("y"), RecordError("z"), KeyError(1)]
)
def test_everything_else_is(error: Exception) -> None:
    assert is_fault(error)
    with pytest.raises(RecordFaultError) as raised, blaming(4):
        raise error
    assert raised.value.offset == 4
    assert type(error).__name__ in raised.value.primary


def test_ending_a_process_is_none() -> None:
    assert not is_fault(KeyboardInterrupt())
    assert not is_fault(SystemExit())
