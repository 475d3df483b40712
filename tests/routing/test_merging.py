"""Merging: rules, what mergers cost, and tables whose sent interests stand for all that is held."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.messages import ANY_FILTER, EVERYONE, Message, Position
from penstock.predicates.boxes import box
from penstock.predicates.intervals import NOT_NULL, TOP, Interval, below
from penstock.routing.interests import Interest, concerns, name_of
from penstock.routing.merging import (
    IMPERFECT_RULES,
    PERFECT_RULES,
    MergeRule,
    MergeTable,
    ObservedMeasure,
    UniformMeasure,
    find_mergers,
    policies,
)
from penstock.routing.merging.rules import (
    drop_predicates,
    greater_with_equal,
    is_present,
    less_with_equal,
)
from penstock.routing.merging.samples import PublicationSample
from penstock.routing.merging.table import MergeSettings, named
from penstock.routing.merging.volumes import union_volume
from tests.examples import examples
from tests.routing.interest_worlds import RELATION, SELECTION, SHAPES, interests, messages, shapes

RANGES = {2: (0, 9), 3: (0, 9)}


def selection(**columns: Interval) -> Interest:
    return Interest(1, box({RELATION.positions[c]: i for c, i in columns.items()}), (ANY_FILTER,))


def between(first: int, last: int) -> Interval:
    return Interval(below(first), below(last + 1))


def less(value: int) -> Interval:
    return Interval((1,), below(value))


def more(value: int) -> Interval:
    return Interval(below(value + 1), TOP)


@settings(max_examples=examples(60))
@pytest.mark.parametrize("rule", [*PERFECT_RULES, *IMPERFECT_RULES], ids=lambda rule: rule.__name__)
@given(data=st.data())
def test_a_merger_covers_its_parts_and_a_perfect_one_nothing_else(
    rule: MergeRule, data: st.DataObject
) -> None:
    shape = data.draw(shapes)
    one = data.draw(interests(shape, numbered=False))
    if data.draw(st.booleans()):
        other = data.draw(interests(shape, numbered=False))
    else:  # rules apply to interests that differ little
        column = data.draw(st.sampled_from([2, 3]))
        other = data.draw(interests(shape, numbered=False))
        changed = {**dict(one.base), column: dict(other.base).get(column, NOT_NULL)}
        other = one._replace(base=box(changed))
    merged = rule(one, other)
    if merged is None:
        return
    assert merged.covers(one)
    assert merged.covers(other)
    message = data.draw(messages(shape))
    if rule in PERFECT_RULES and concerns(message, merged, RELATION):
        assert any(concerns(message, part, RELATION) for part in (one, other))


@pytest.mark.parametrize(
    ("rule", "one", "other", "merged"),
    [
        (is_present, less(2), more(5), NOT_NULL),
        (less_with_equal, less(2), between(5, 5), Interval((1,), below(6))),
        (greater_with_equal, more(5), between(2, 2), Interval(below(2), TOP)),
        (is_present, less(5), more(2), None),
        (less_with_equal, less(6), between(5, 5), None),
        (greater_with_equal, more(1), between(2, 2), None),
    ],
)
def test_the_published_rules(
    rule: MergeRule, one: Interval, other: Interval, merged: Interval | None
) -> None:
    expected = None if merged is None else selection(a=merged)
    assert rule(selection(a=one), selection(a=other)) == expected
    assert rule(selection(a=other), selection(a=one)) == expected


def test_one_or_two_predicates_that_differ_are_dropped() -> None:
    one, other = selection(k=between(1, 1), a=less(1)), selection(k=between(1, 1), a=more(4))
    assert drop_predicates(one, other) == selection(k=between(1, 1))
    far = selection(k=between(2, 2), a=more(4), b=less(2))
    assert drop_predicates(one, far) is None


def test_equalities_without_gaps_become_one_range() -> None:
    held = named(selection(a=between(i, i)) for i in (3, 1, 2, 7))
    (merger,) = find_mergers(held)
    assert merger.interest == selection(a=between(1, 3))
    assert len(merger.parts) == 3


boxes_of_grid = st.lists(
    st.tuples(*[st.tuples(st.integers(0, 5), st.integers(0, 5)).map(sorted).map(tuple)] * 3),
    max_size=6,
)


@given(boxes_of_grid)
def test_the_volume_of_a_union(boxes: list[tuple[tuple[int, int], ...]]) -> None:
    cells = sum(
        any(all(low <= c < high for c, (low, high) in zip(cell, one, strict=True)) for one in boxes)
        for cell in product(range(5), repeat=3)
    )
    assert union_volume(boxes) == pytest.approx(cells)


def test_degrees_with_and_without_advertisements() -> None:
    """The example of section 5.4."""
    measure = UniformMeasure(SELECTION, {2: (0, 199)})
    parts = [
        selection(a=more(150)),
        selection(a=between(130, 130)),
        selection(a=between(120, 120)),
    ]
    merger = selection(a=Interval(below(120), TOP))
    measured = measure.measured(merger, parts, [])
    assert measured.probability == pytest.approx(80 / 200)
    assert measured.degree == pytest.approx(29 / 80)
    assert measured.threshold == pytest.approx(29 / 200)
    assert measure.measured(merger, parts, [selection(a=more(150))]).degree == 0


def test_conditions_that_a_merger_drops_are_not_taken_for_filled() -> None:
    """Nothing is known of the columns, so all that parts do not name may be in vain."""
    parts = [selection(k=between(1, 1), a=less(1)), selection(k=between(1, 1), a=more(4))]
    measured = UniformMeasure(SELECTION, {}).measured(selection(k=between(1, 1)), parts, [])
    assert (measured.probability, measured.degree) == (1.0, 1.0)
    measured = UniformMeasure(SELECTION, {2: (0, 9)}).measured(selection(), parts, [])
    assert measured.degree == 1.0


@given(data=st.data())
def test_a_sample_knows_which_publications_concern_an_interest(data: st.DataObject) -> None:
    shape = data.draw(shapes)
    sample, seen = PublicationSample(shape), []
    for _ in range(3):
        drawn = data.draw(st.lists(messages(shape).filter(lambda m: not m.recipients), max_size=8))
        for message in drawn:
            sample.observe(message)
        seen += drawn
        interest = data.draw(interests(shape, numbered=data.draw(st.booleans())))
        expected = sum(1 << i for i, m in enumerate(seen) if concerns(m, interest, RELATION))
        assert sample.concerned(interest) == expected
    assert len(sample) == len(seen)


def test_what_was_published_says_how_likely_a_merger_is_in_vain() -> None:
    measure = ObservedMeasure(SELECTION, UniformMeasure(SELECTION, RANGES))
    for value in range(200):
        measure.observe(published(value % 2, 0))
    merger = selection(a=between(0, 9))
    measured = measure.measured(merger, [selection(a=between(0, 0))], [])
    assert measured.probability == 1.0
    assert measured.degree == pytest.approx(0.5)


def published(a: int, b: int) -> Message:
    return Message(Position(1, 1), 1, (1,), (1, 1, a, b), EVERYONE)


@settings(max_examples=examples(40))
@pytest.mark.parametrize(("threshold", "most_at_once"), [(0.0, None), (0.2, None), (0.2, 2)])
@given(data=st.data())
def test_what_is_sent_stands_for_what_is_held(
    threshold: float, most_at_once: int | None, data: st.DataObject
) -> None:
    chosen = MergeSettings(policies.every(3), threshold, most_at_once=most_at_once)
    measures = {1: UniformMeasure(SELECTION, RANGES)} if threshold else {}
    table = MergeTable(SHAPES, chosen, measures=measures)
    shape = data.draw(shapes)
    held, sent = dict[int, Interest](), dict[int, Interest]()
    for _ in range(data.draw(st.integers(1, 25))):
        if held and data.draw(st.integers(0, 2)) == 0:
            gone = data.draw(st.sampled_from(sorted(held)))
            del held[gone]
            steps = [table.remove(gone)]
        else:
            interest = data.draw(interests(shape, numbered=False))
            held[name_of(interest)] = interest
            steps = [table.insert(name_of(interest), interest)]
        steps.append(table.merge_if_due())
        for changed in steps:
            assert not changed.added.keys() & sent.keys()
            assert changed.removed.keys() <= sent.keys()
            sent = {n: i for n, i in sent.items() if n not in changed.removed} | changed.added
        assert sent == table.sent()
        assert all(name == name_of(one) for name, one in sent.items())
        assert all(any(s.covers(one) for s in sent.values()) for one in held.values())
        message = data.draw(messages(shape))
        is_sent = any(concerns(message, one, RELATION) for one in sent.values())
        is_needed = any(concerns(message, one, RELATION) for one in held.values())
        assert is_sent >= is_needed
        if not threshold:
            assert is_sent == is_needed
        if is_sent and not is_needed:
            assert table.received(message)
    for name in list(held):
        table.remove(name)
    assert table.sent() == {}


def test_a_large_table_is_merged_a_few_at_a_time() -> None:
    table = MergeTable(SHAPES, MergeSettings(policies.every(40), most_at_once=10))
    values = [(a, b) for b in range(10) for a in (3, 0, 2, 1)]
    parts = [selection(a=between(a, a), b=between(2 * b, 2 * b)) for a, b in values]
    for part in parts:
        table.insert(name_of(part), part)
    changes = [table.merge_if_due() for _ in range(12)]
    assert max(len(one.removed) for one in changes) <= 10
    assert len(table.sent()) < 20
    assert not changes[-1].removed


def test_a_withdrawn_part_takes_its_merger_back() -> None:
    table = MergeTable(SHAPES, MergeSettings(policies.every(1)))
    one, other = selection(a=between(1, 2)), selection(a=between(3, 4))
    for part in (one, other):
        table.insert(name_of(part), part)
    whole = selection(a=between(1, 4))
    changed = table.merge_if_due()
    assert changed.added == named([whole])
    assert changed.removed == named([one, other])
    back = table.remove(name_of(one))
    assert back.added == named([other])
    assert back.removed == named([whole])


def test_a_new_interest_that_covers_a_merger_replaces_it() -> None:
    table = MergeTable(SHAPES, MergeSettings(policies.every(1)))
    for part in (selection(a=between(1, 2)), selection(a=between(3, 4))):
        table.insert(name_of(part), part)
    table.merge_if_due()
    wide = selection(a=between(0, 9))
    changed = table.insert(name_of(wide), wide)
    assert table.sent() == named([wide]) == changed.added
    assert changed.removed == named([selection(a=between(1, 4))])
    assert not table.mergers


def test_mergers_that_bring_too_much_in_vain_are_taken_back() -> None:
    chosen = MergeSettings(policies.every(1), threshold=0.9, budget=0.1)
    table = MergeTable(SHAPES, chosen, measures={1: UniformMeasure(SELECTION, RANGES)})
    parts = named([selection(a=between(0, 0)), selection(a=between(9, 9))])
    table.insert_many(parts.items())
    table.merge_if_due()
    assert len(table.sent()) == 1
    for number in range(60):
        message = published(number % 10, 0)
        table.count(message, number % 10 in (0, 9))
    assert table.sent() == parts
    assert table.false_positives.in_vain > 0
    table.merge()
    assert len(table.sent()) in (1, 2)


@pytest.mark.parametrize(
    ("policy", "is_due"),
    [
        (policies.never, False),
        (policies.every(2), True),
        (policies.every(3), False),
        (policies.when_larger(4), True),
        (policies.when_larger(5), False),
        (policies.when_siblings(2.5), True),
        (policies.when_siblings(2.6), False),
        (policies.periodically(3), True),
        (policies.periodically(4), False),
        (policies.when_outdated(2, 0.4), True),
        (policies.when_outdated(2, 0.5), False),
        (policies.when_outdated(3, 0.1), False),
        (policies.any_of(policies.never, policies.every(2)), True),
        (policies.any_of(policies.never, policies.every(3)), False),
    ],
)
def test_policies(policy: policies.Policy, is_due: bool) -> None:
    assert (
        policy(policies.TableState(sent=5, changes=2, calls=3, roots_per_diagram=lambda: 2.5))
        == is_due
    )
