"""Figures 12 to 15 and Table 2 of Li, Hou and Jacobsen (2005), as functions, with their numbers.

Ours is compared with theirs: the same subscriptions as interests, covered and merged by
`penstock.routing`. Imperfect merging has the rules of the paper's Table 1, which two equalities do
not fit; the text mentions that predicates that differ could be dropped too, which is a series of
its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.lab.benchmarks._measuring import Result
from penstock.lab.experiments._li2005_workload import (
    MORE_ATTRIBUTES,
    PUBLISHED_ATTRIBUTES,
    PUBLISHED_SIZE,
    SHAPE,
    Workload,
)
from penstock.lab.experiments.diagram_order import ATTRIBUTES, RELATION
from penstock.matching import EventBatch
from penstock.matching.matchers.diagram import (
    AttributeStatistics,
    DiagramMatcher,
    attribute_order,
    random_order,
)
from penstock.matching.matchers.naive import NaiveMatcher
from penstock.messages import EVERYONE, Message, Position
from penstock.predicates.boxes import Box
from penstock.routing.covering import CoverTable
from penstock.routing.diagrams import DiagramTable, merge_diagrams
from penstock.routing.diagrams.merging import TABLE_1, WITH_DROPPING, filter_of
from penstock.routing.interest_index import InterestIndex
from penstock.routing.interests import Interest, name_of
from penstock.routing.merging.mergers import find_mergers
from penstock.routing.merging.rules import MergeRule

MOST_INTERESTS = 50_000
"""Covering on interests takes a millisecond each in this workload: more would take too long."""
IMPERFECT_THRESHOLD = 0.1
THRESHOLDS = (0.0, 0.025, 0.05, 0.1, 0.15, 0.3, 0.5)
PAPER_COVERED = {"A": 0.75, "B": 0.45}
PAPER_RANDOM_ORDER = 6_076
PAPER_LEFT_AT_ZERO = 32_852 / 100_000
PAPER_TABLE_2 = {
    ("A", "none"): (68.73, 300.71),
    ("A", "covering"): (19.16, 73.41),
    ("A", "perfect merging"): (13.31, 49.89),
    ("A", "imperfect merging"): (9.96, 43.83),
    ("B", "none"): (82.28, 300.92),
    ("B", "covering"): (38.15, 165.38),
    ("B", "perfect merging"): (33.37, 152.21),
    ("B", "imperfect merging"): (29.19, 141.06),
}
"""Milliseconds per publication: diagrams, naive."""
PAPER_INDEX_MS = {"without cache": 23.41, "with cache": 2.46}
"""Milliseconds to find which of 5,000 predicates cover which."""


@dataclass(frozen=True, slots=True)
class MergingKind:
    """A series of figures 14 and 15."""

    name: str
    is_advertised: bool = False
    rules: tuple[MergeRule, ...] = TABLE_1
    attributes: tuple[int, ...] = (PUBLISHED_ATTRIBUTES,)
    """Of publications: a series for each."""

    def series(self, attributes: int) -> str:
        usual = attributes == PUBLISHED_ATTRIBUTES
        return self.name if usual else f"{self.name}, publications of {attributes}"


MERGING_KINDS = (
    MergingKind("entries", attributes=(PUBLISHED_ATTRIBUTES, MORE_ATTRIBUTES)),
    MergingKind("entries, advertised", is_advertised=True),
    MergingKind("entries, predicates dropped", rules=WITH_DROPPING),
)
EVERY_FILTER = filter_of(())
STATES = ("none", "covering", "perfect merging", "imperfect merging")
RANDOM_ORDER = "perfect merging, random order"


@dataclass
class States:
    """The routing table of one set in its four states, as boxes."""

    workload: Workload
    order: tuple[int, ...]
    boxes: list[Box]
    covered: list[Box]
    perfect: list[Box]
    imperfect: list[Box]

    def items(self) -> Iterator[tuple[str, list[Box]]]:
        yield from zip(
            STATES, (self.boxes, self.covered, self.perfect, self.imperfect), strict=True
        )


def covered_table(boxes: Sequence[Box], order: Sequence[int]) -> DiagramTable:
    table = DiagramTable(RELATION, order)
    for number, one in enumerate(boxes):
        table.insert(number, one)
    return table


def table_of(boxes: Sequence[Box], order: Sequence[int]) -> DiagramTable:
    """A table of boxes that do not cover each other."""
    table = DiagramTable(RELATION, order)
    for number, one in enumerate(boxes):
        table.add(number, one)
    return table


def merged_boxes(
    boxes: Sequence[Box],
    order: Sequence[int],
    workload: Workload | None = None,
    threshold: float = 0.0,
    advertised: Sequence[Interest] = (),
    rules: Sequence[MergeRule] = TABLE_1,
) -> list[Box]:
    """Perfect merging without a workload, else up to a threshold."""
    table = table_of(boxes, order)
    merge_diagrams(
        table,
        len(boxes),
        measure=None if workload is None else workload.measure(),
        threshold=threshold,
        advertised=advertised,
        rules=rules,
    )
    return [one for _, one in table.items()]


def states_of(workload: Workload) -> States:
    boxes = workload.boxes()
    order = learnt_order(boxes)
    covered = [one for _, one in covered_table(boxes, order).items()]
    perfect = merged_boxes(covered, order)
    imperfect = merged_boxes(perfect, order, workload, IMPERFECT_THRESHOLD)
    return States(workload, order, boxes, covered, perfect, imperfect)


def learnt_order(boxes: Sequence[Box]) -> tuple[int, ...]:
    return attribute_order(AttributeStatistics.of_boxes(ATTRIBUTES, boxes))


def figure_12(states: States) -> list[Result]:
    """Routing table sizes, the cost of a random order of attributes for perfect merging, and
    ours."""
    name, total = states.workload.name, len(states.boxes)
    sizes = {state: len(boxes) for state, boxes in states.items()}
    sizes[RANDOM_ORDER] = len(merged_boxes(states.covered, random_order(ATTRIBUTES, 1)))
    sizes |= _on_interests(states)
    published = {"covering": round(total * (1 - PAPER_COVERED[name]))}
    if name == "A":
        published[RANDOM_ORDER] = sizes["perfect merging"] + PAPER_RANDOM_ORDER
    return [
        {
            "series": f"set {name}",
            "x": state,
            "ours": size,
            "share": round(size / total, 4),
            "paper": published.get(state) if total == PUBLISHED_SIZE else None,
        }
        for state, size in sizes.items()
    ]


def _on_interests(states: States) -> dict[str, int]:
    """The same subscriptions as interests. Above a size, merging starts from what covering on
    diagrams leaves, which is the same at every size that was tried."""
    sizes: dict[str, int] = {}
    maximal = {name_of(one): one for one in map(filter_of, states.covered)}
    if len(states.boxes) <= MOST_INTERESTS:
        table = CoverTable({0: SHAPE})
        filters = {name_of(one): one for one in map(filter_of, states.boxes)}
        table.insert_many(filters.items())
        maximal = dict(table.maximal())
        sizes["interests: covering"] = len(maximal)
    mergers = find_mergers(maximal)
    gone = sum(len(merger.parts) for merger in mergers)
    sizes["interests: perfect merging"] = len(maximal) - gone + len(mergers)
    return sizes


def table_2(states: States, publications: int, naive_publications: int) -> list[Result]:
    """Milliseconds to match one publication: with diagrams, by scanning every entry, and by the
    index over interests; with the number of entries visited."""
    name = states.workload.name
    events = states.workload.publications(publications)
    few = events.slice(0, naive_publications)
    results: list[Result] = []
    for state, boxes in states.items():
        numbered = [(number, [one]) for number, one in enumerate(boxes)]
        diagrams, naive = DiagramMatcher(RELATION), NaiveMatcher(RELATION)
        diagrams.insert_many(numbered)
        naive.insert_many(numbered)
        theirs = PAPER_TABLE_2[name, state]
        measured = {
            "diagrams": (_ms_per_event(diagrams, events), theirs[0], len(diagrams.nodes)),
            "naive": (_ms_per_event(naive, few), theirs[1], sum(map(len, boxes))),
            "interests": (_ms_on_interests(boxes, few), None, None),
        }
        results += [
            {
                "series": f"set {name}, {kind}",
                "x": state,
                "ours": round(ms, 5),
                "paper": paper,
                "entries": len(boxes),
                "looked_at": looked_at,
            }
            for kind, (ms, paper, looked_at) in measured.items()
        ]
    return results


def _ms_per_event(matcher: DiagramMatcher | NaiveMatcher, events: EventBatch) -> float:
    matcher.match_batch(events.slice(0, 1))
    return _cpu_ms(lambda: matcher.match_batch(events)) / len(events)


def _ms_on_interests(boxes: Sequence[Box], events: EventBatch) -> float:
    index = InterestIndex(SHAPE)
    index.add_many((number, filter_of(one), 0) for number, one in enumerate(boxes))
    rows = [events.row(i) for i in range(len(events))]
    messages = [Message(Position(i, 1), 0, (i,), row, EVERYONE) for i, row in enumerate(rows)]
    list(index.names(messages[0]))
    return _cpu_ms(lambda: [list(index.names(one)) for one in messages]) / len(messages)


def _cpu_ms(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1e3


def figure_13(workload: Workload, block: int) -> list[Result]:
    """Milliseconds to insert a subscription: with and without the cache, by two passes, and as an
    interest. The index series are the first step alone, once all predicates are known."""
    boxes = workload.boxes()
    order = learnt_order(boxes)
    tables = {
        "with cache": DiagramTable(RELATION, order),
        "without cache": DiagramTable(RELATION, order, caches=False),
        "two passes": DiagramTable(RELATION, order),
    }
    interests = CoverTable({0: SHAPE})
    results: list[Result] = []
    for start in range(0, len(boxes), block):
        part = list(enumerate(boxes[start : start + block], start))
        spent: dict[str, float] = {}
        for kind, table in tables.items():
            insert = _insert_in_two_passes if kind == "two passes" else _insert
            spent[kind] = _cpu_ms(lambda: insert(table, part))  # noqa: B023
        if start + len(part) <= MOST_INTERESTS:
            spent["interests"] = _cpu_ms(lambda: _enter(interests, part))  # noqa: B023
        results += [
            {"series": kind, "x": start + len(part), "ours": round(ms / len(part), 5)}
            for kind, ms in spent.items()
        ]
    for kind, paper in PAPER_INDEX_MS.items():
        ms = _cpu_ms(lambda: [tables[kind].codes_of(one) for one in boxes[-500:]])  # noqa: B023
        is_full = len(boxes) == PUBLISHED_SIZE
        results.append(
            {
                "series": f"index {kind}",
                "x": len(boxes),
                "ours": round(ms / len(boxes[-500:]), 5),
                "paper": paper if is_full else None,
            }
        )
    return results


def _enter(table: CoverTable, part: Sequence[tuple[int, Box]]) -> None:
    named = {name_of(one): one for one in (filter_of(one) for _, one in part)}
    table.insert_many(pair for pair in named.items() if pair[0] not in table)


def _insert(table: DiagramTable, part: Sequence[tuple[int, Box]]) -> None:
    for number, one in part:
        table.insert(number, one)


def _insert_in_two_passes(table: DiagramTable, part: Sequence[tuple[int, Box]]) -> None:
    for number, one in part:
        relations = table.relations_in_two_passes(one)
        if relations.covered_by is None:
            for covered in relations.covers:
                table.remove(covered)
            table.add(number, one)


def figures_14_and_15(
    workload: Workload, publications: int, thresholds: Sequence[float] = THRESHOLDS
) -> list[Result]:
    """Entries left by IMT, and the share of matched publications that nobody wants."""
    boxes = workload.boxes()
    order = learnt_order(boxes)
    perfect = merged_boxes([one for _, one in covered_table(boxes, order).items()], order)
    results: list[Result] = []
    for kind in MERGING_KINDS:
        advertised = workload.advertisements() if kind.is_advertised else []
        for threshold in thresholds:
            found = merged_boxes(perfect, order, workload, threshold, advertised, kind.rules)
            for attributes in kind.attributes:
                events = workload.publications(publications, attributes=attributes)
                sent = _wanted([one.base for one in advertised or [EVERY_FILTER]], events)
                right = int((_wanted(boxes, events) & sent).sum())
                matched = int((_wanted(found, events) & sent).sum())
                results.append(
                    {
                        "series": kind.series(attributes),
                        "x": threshold,
                        "ours": len(found),
                        "share": round(len(found) / len(boxes), 4),
                        "wanted_share": round(right / max(1, int(sent.sum())), 4),
                        "false_positive_share": round(1 - right / max(1, matched), 4),
                        "paper": None,
                    }
                )
    if len(boxes) * 2 == PUBLISHED_SIZE:
        results[0]["paper"] = round(PAPER_LEFT_AT_ZERO * len(boxes))
    return results


def _wanted(boxes: Sequence[Box], events: EventBatch) -> np.ndarray:
    """Publications that somebody wants."""
    matcher = DiagramMatcher(RELATION)
    matcher.insert_many((number, [one]) for number, one in enumerate(boxes))
    return matcher.any_match(events)
