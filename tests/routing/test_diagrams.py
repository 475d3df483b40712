"""Covering on diagrams: the table of dependencies, the set of diagrams, one pass and two passes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.predicates.boxes import Box, box, covers
from penstock.predicates.intervals import Interval, below, normalise
from penstock.routing.diagrams import DependencyTable, DiagramTable, merge_diagrams
from penstock.routing.diagrams import dependencies as dependencies_module
from penstock.routing.interests import SpaceShape
from penstock.routing.merging.measures import UniformMeasure
from tests.examples import examples
from tests.routing.interest_worlds import INTEGER, RELATION, intervals

normal = intervals.map(lambda interval: normalise(interval, INTEGER)).filter(
    lambda interval: not interval.is_empty
)
conjunctions = st.dictionaries(st.sampled_from([1, 2, 3]), normal, max_size=3).map(box)


@settings(max_examples=examples(80))
@given(st.data())
def test_the_table_of_dependencies_is_minimal_and_complete(data: st.DataObject) -> None:
    table, held = DependencyTable(), dict[int, Interval]()
    for variable in range(data.draw(st.integers(1, 30))):
        if held and data.draw(st.integers(0, 2)) == 0:
            gone = data.draw(st.sampled_from(sorted(held)))
            del held[gone]
            table.remove(gone)
        else:
            interval = data.draw(normal)
            if interval not in held.values():
                held[variable] = interval
                table.add(variable, interval)
    implications = {
        (a, b) for a in held for b in held if a != b and held[b].covers(held[a])
    }  # direct if no third one lies between
    assert table.pairs() == sorted(
        (a, b)
        for a, b in implications
        if not any((a, c) in implications and (c, b) in implications for c in held)
    )
    for variable, interval in held.items():
        implied = [v for v, other in held.items() if other.covers(interval)]
        implying = [v for v, other in held.items() if interval.covers(other)]
        assert sorted(table.implied_by(variable)) == sorted(implied)
        assert sorted(table.implying(variable)) == sorted(implying)


def test_blocks_are_split_and_emptied() -> None:
    table = DependencyTable()
    size = 5 * dependencies_module.BLOCK_ENTRIES
    for value in range(size):
        table.add(value, Interval((2, value, 0), (2, value, 1)))
    table.add(size, Interval((2, 10, 0), (2, size - 10, 0)))
    assert len(table.children[size]) == size - 20
    for value in range(size):
        table.remove(value)
    assert table.pairs() == []
    assert len(table) == 1


@settings(max_examples=examples(80))
@given(st.data())
def test_one_pass_and_two_find_what_comparing_boxes_finds(data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(4)))
    tables = [DiagramTable(RELATION, order, caches=caches) for caches in (True, False)]
    held: dict[int, Box] = {}
    for number in range(data.draw(st.integers(1, 20))):
        new = data.draw(conjunctions)
        if held and data.draw(st.integers(0, 3)) == 0:
            gone = data.draw(st.sampled_from(sorted(held)))
            del held[gone]
            for table in tables:
                assert table.remove(gone)
            if data.draw(st.booleans()):
                tables[0].sweep()
        covering = {n for n, one in held.items() if covers(one, new)}
        covered = {n for n, one in held.items() if covers(new, one)}
        for table in tables:
            for relations in (
                table.relations_in_two_passes(new),
                table.relations(new),
                table.insert(number, new),
            ):
                assert (relations.covered_by is not None) == bool(covering)
                assert relations.covered_by is None or relations.covered_by in covering
                assert relations.covered_by is not None or set(relations.covers) == covered
        if not covering:
            held = {n: one for n, one in held.items() if n not in covered} | {number: new}
    for table in tables:
        assert dict(table.items()) == held
        assert_diagrams(table)


def test_mergers_of_mergers_answer_for_the_first_subscriptions() -> None:
    """(0, v) and (2, v) become (any, v), and these two ranges of v without a gap. To close the gap
    between the ranges adds little to them, and much to what was subscribed to."""

    def equal(value: int) -> Interval:
        return Interval(below(value), below(value + 1))

    table = DiagramTable(RELATION)
    pairs = [(first, second) for second in range(12) if second != 6 for first in (0, 2)]
    for number, (first, second) in enumerate(pairs):
        table.add(number, box({1: equal(first), 2: equal(second)}))
    measure = UniformMeasure(SpaceShape(0, RELATION, 0), dict.fromkeys(range(4), (0, 11)))
    merge_diagrams(table, 100, measure=measure, threshold=0.2)
    ranges = sorted(dict(one)[2] for _, one in table.items())
    assert ranges == [Interval(below(0), below(6)), Interval(below(7), below(12))]


def assert_diagrams(table: DiagramTable) -> None:
    """The set of diagrams is what grouping all roots by their children gives."""
    grouped: dict[tuple[int, int], set[int]] = {}
    for subscription in dict(table.items()):
        children = table.nodes.children(table.root(subscription))
        grouped.setdefault(children, set()).add(subscription)
    assert {children: set(group) for children, group in table.diagrams.items()} == grouped
