"""The course of a group: the kernel says what its reference says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.joins.kernels.gap_steps import (
    AFTER,
    BEFORE,
    BEGIN,
    END,
    NONE,
    GroupState,
    PointTree,
    StepEffects,
    StepOps,
    apply_steps,
)
from penstock.joins.kernels.gap_steps_reference import Exposed, Meaning, apply_steps_reference
from penstock.joins.shadow_segment import ShadowSegment, next_highs
from penstock.kernels.trees import Points, plant, unions_of
from penstock.predicates.intervals import TOP as TOP_CUT
from penstock.predicates.intervals import Interval, above, below

TOP = 20
ranges = st.tuples(st.integers(-1, TOP), st.integers(0, 6)).map(
    lambda r: (r[0], min(TOP, r[0] + r[1]))
)
clouds = st.lists(st.tuples(ranges, ranges).map(lambda pair: (*pair[0], *pair[1])), max_size=70)
codes = st.lists(st.integers(-1, TOP), min_size=1, max_size=12).map(sorted)


@dataclass
class Play:
    points: Points
    group: GroupState
    ops: StepOps


@st.composite
def plays(draw: st.DrawFn) -> Play:
    """A group, and steps that are possible in it."""
    points = np.array(draw(clouds), np.int64).reshape(-1, 4)
    values, base = (np.array(draw(codes), np.int64) for _ in range(2))
    counts = np.array([draw(st.integers(0, 2)) for _ in values], np.int64)
    is_there = np.array([draw(st.booleans()) for _ in base], np.bool_)
    held, present = counts.tolist(), is_there.tolist()
    steps: list[tuple[bool, int, int]] = []
    for _ in range(draw(st.integers(0, 25))):
        is_base = draw(st.booleans())
        if is_base:
            coming = [i for i, here in enumerate(present) if not here]
            going = [i for i, here in enumerate(present) if here]
        else:
            coming, going = list(range(len(held))), [i for i, count in enumerate(held) if count]
        new = draw(st.sampled_from([NONE, *coming]))
        old = draw(st.sampled_from([NONE, *going]))
        if new == old == NONE:
            continue
        steps.append((is_base, new, old))
        for place, change in ((new, 1), (old, -1)):
            if place != NONE and is_base:
                present[place] = change > 0
            elif place != NONE:
                held[place] += change
    kinds, new_places, old_places = zip(*steps, strict=True) if steps else ((), (), ())
    ops = StepOps(
        np.array(kinds, np.bool_), np.array(new_places, np.int64), np.array(old_places, np.int64)
    )
    return Play(points, GroupState(values, counts, base, is_there), ops)


def meanings(found: StepEffects, ops: StepOps) -> list[Meaning]:
    """What the kernel found, in the words of its reference."""
    told = []
    for step, (is_base, new, old) in enumerate(zip(*ops, strict=True)):
        meaning = Meaning()
        for which, place in enumerate((new, old)):
            if is_base:
                begin, end = found.regions[step, which]
                runs = (found.last[begin:end].tolist(), found.first[begin:end].tolist())
                meaning.regions.append(list(zip(*runs, strict=True)))
                continue
            span = found.exposed[step, which]
            rows = found.rows[span[BEGIN] : span[END]].tolist()
            is_told = place != NONE and len(rows) > 0
            around = (int(span[BEFORE]), int(span[AFTER]))
            meaning.exposed.append(Exposed(*around, rows) if is_told else None)
        told.append(meaning)
    return told


def without_empty(meanings: list[Meaning]) -> list[Meaning]:
    return [
        Meaning(one.regions, [e if e is not None and e.rows else None for e in one.exposed])
        for one in meanings
    ]


@pytest.mark.parametrize("few", [0, 8, 1000])
@given(run_group=plays())
def test_the_kernel_says_what_the_reference_says(few: int, run_group: Play) -> None:
    forest = plant(run_group.points)
    low, high = run_group.points[:, 0], run_group.points[:, 1]
    tree = PointTree(forest, unions_of(forest), next_highs(low, high, TOP), TOP)
    expected = without_empty(
        apply_steps_reference(run_group.points, run_group.group, run_group.ops)
    )
    found = apply_steps(tree, run_group.group, run_group.ops, few)
    assert meanings(found, run_group.ops) == expected


keys = st.none() | st.integers(-3, 12)
numbers = st.lists(st.integers(-3, 12), min_size=1, max_size=15)
intervals = st.tuples(keys, keys).map(
    lambda pair: Interval(below(pair[0]), above(pair[1]) if pair[1] is not None else TOP_CUT)
)
segments = st.lists(st.tuples(intervals, intervals), min_size=1, max_size=30).map(ShadowSegment.of)


@given(segment=segments, base=numbers, filters=numbers, data=st.data())
def test_numbers_are_staged_as_values_are(
    segment: ShadowSegment, base: list[int], filters: list[int], data: st.DataObject
) -> None:
    """Rows come with their numbers; whether their values are an array or a list is the same."""
    there = data.draw(st.integers(0, len(base))), data.draw(st.integers(0, len(filters)))
    coming = [(True, row) for row in range(there[0], len(base))]
    coming += [(False, row) for row in range(there[1], len(filters))]
    drawn = data.draw(st.permutations(coming))
    is_base = np.array([side for side, _ in drawn], np.bool_)
    new = np.array([row for _, row in drawn], np.int64)
    steps = StepOps(is_base, new, np.full(len(drawn), NONE, np.int64))
    values, effects = segment.run_group(np.array(base), np.array(filters), there, steps)
    same_values, same = segment.run_group(list(base), list(filters), there, steps)
    assert values == same_values == sorted(set(filters))
    assert effects.order.tolist() == same.order.tolist()
    assert meanings(effects.steps, steps) == meanings(same.steps, steps)
    ranks = effects.order.tolist()
    places = [ranks.index(row) if side else values.index(filters[row]) for side, row in drawn]
    assert effects.new.tolist() == same.new.tolist() == places
