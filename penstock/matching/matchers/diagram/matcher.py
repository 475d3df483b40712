"""The matcher `diagram`: subscriptions as shared decision diagrams (Li, Hou and Jacobsen, 2005)."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

import numpy as np

from penstock.catalog import Relation, Row
from penstock.errors import SubscriptionError
from penstock.matching.attribute_order import AttributeStatistics, attribute_order
from penstock.matching.canonical import Spelling
from penstock.matching.events import EventBatch
from penstock.matching.explain import explain_boxes
from penstock.matching.interface import MatcherStatistics, MatchExplanation
from penstock.matching.matcher_registry import register
from penstock.matching.matchers.diagram.coding import LANES, CodedPredicates, Words, direct_truth
from penstock.matching.matchers.diagram.evaluation import evaluate, matched_runs
from penstock.matching.matchers.diagram.expressions import Expression, boxes_of, diagram_of
from penstock.matching.matchers.diagram.nodes import FALSE, NodeTable, TooLargeError
from penstock.matching.matchers.diagram.predicates import PredicateIndex
from penstock.matching.pairs import Ints32, Ints64, Mask, Pairs
from penstock.predicates.boxes import Box
from penstock.predicates.budget import TooComplexError

_EVENTS_AT_ONCE = 16 * LANES
"""Events per evaluation; bounds the truth values to 2 KB per predicate."""
_STEPS_PER_PREDICATE = 4
"""A union whose diagram takes more steps per predicate than this is kept as several roots, one per
box: with a fixed attribute order, OR can make a diagram exponentially large."""
_SWEEP_AT_LEAST = 1_000
"""Minimum removals before nodes are swept; also, more must have been removed than are held."""


@register("diagram")
class DiagramMatcher:
    """Boxes, and any AND, OR and NOT of predicates, as roots in one table of shared nodes.

    `order` lists the columns from the top (the roots) to the bottom. Without it, the first
    `insert_many` into an empty matcher learns one from its input, and `reorder` learns a new one
    from everything held.
    """

    def __init__(self, relation: Relation, *, order: Sequence[str] | None = None) -> None:
        self.relation = relation
        self._order_is_given = order is not None
        width = len(relation.columns)
        named = relation.columns if order is None else ()
        self.order = tuple(range(len(named))) or tuple(
            relation.positions[name.lower()] for name in order or ()
        )
        """Column positions, from the top of the diagrams to the bottom."""
        if sorted(self.order) != list(range(width)):
            raise ValueError(f"an order names each column of {relation.name} once")
        self._spelling = Spelling(relation)
        self._held: dict[int, tuple[Box, ...] | Expression] = {}
        self._start_over()

    def _start_over(self) -> None:
        self._rank_of_column = {column: rank for rank, column in enumerate(self.order)}
        self.predicates = PredicateIndex(self.relation)
        self.nodes = NodeTable(self._rank)
        self._slots: dict[int, list[int]] = {}
        self._free_slots: list[int] = []
        # By slot: the root, FALSE if the slot is free, and the subscription.
        self._roots = array("i")
        self._ids = array("q")
        self._split: set[int] = set()
        self._removed = 0
        self._coded = CodedPredicates(self.relation, ())

    def _rank(self, variable: int) -> int:
        """Variables are ordered by column; within a column, the order matters little."""
        return self._rank_of_column[self.predicates.predicates[variable].column] << 32 | variable

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, subscription: int) -> bool:
        return subscription in self._held

    def insert(self, subscription: int, boxes: Sequence[Box]) -> None:
        self.remove(subscription)
        self._held[subscription] = tuple(boxes)
        self._place(subscription, self._roots_of_boxes(boxes))

    def insert_expression(self, subscription: int, expression: Expression) -> None:
        """Any AND, OR and NOT; SubscriptionError if its diagram is too large to build."""
        try:
            root = diagram_of(expression, self.predicates, self.nodes)
        except TooLargeError:
            raise SubscriptionError(
                f"the condition of subscription {subscription} is too large for a diagram",
                hint="split it into several subscriptions",
            ) from None
        self.remove(subscription)
        self._held[subscription] = expression
        self._place(subscription, [root])

    def insert_many(self, subscriptions: Iterable[tuple[int, Sequence[Box]]]) -> None:
        given = list(subscriptions)
        if not self._held and not self._order_is_given:
            self._learn_order([one for _, boxes in given for one in boxes])
        for subscription, boxes in given:
            self.insert(subscription, boxes)

    def reorder(self) -> None:
        """Learn the attribute order from all boxes held, and rebuild everything."""
        held = self._held
        unions = [boxes for boxes in held.values() if isinstance(boxes, tuple)]
        self._learn_order([one for boxes in unions for one in boxes])
        self._held = {}
        for subscription, condition in held.items():
            if isinstance(condition, tuple):
                self.insert(subscription, condition)
            else:
                self.insert_expression(subscription, condition)

    def _learn_order(self, boxes: Sequence[Box]) -> None:
        statistics = AttributeStatistics.of_boxes(len(self.relation.columns), boxes)
        self.order = attribute_order(statistics)
        self._start_over()

    def remove(self, subscription: int) -> bool:
        if self._held.pop(subscription, None) is None:
            return False
        for slot in self._slots.pop(subscription, ()):
            self._roots[slot] = FALSE
            self._free_slots.append(slot)
        self._split.discard(subscription)
        self._removed += 1
        if self._removed > max(_SWEEP_AT_LEAST, len(self._held)):
            self.sweep()
        return True

    def _roots_of_boxes(self, boxes: Sequence[Box]) -> list[int]:
        conjunctions = [
            [self.predicates.variable(column, interval) for column, interval in one]
            for one in self._spelling.distinct(boxes)
        ]
        if len(conjunctions) > 1:
            steps = _STEPS_PER_PREDICATE * (sum(map(len, conjunctions)) + len(conjunctions))
            try:
                return [self.nodes.disjunction(conjunctions, steps)]
            except TooLargeError:
                pass
        return list(dict.fromkeys(self.nodes.conjunction(one) for one in conjunctions))

    def _place(self, subscription: int, roots: Sequence[int]) -> None:
        slots = []
        for root in roots:
            if self._free_slots:
                slot = self._free_slots.pop()
                self._roots[slot], self._ids[slot] = root, subscription
            else:
                slot = len(self._roots)
                self._roots.append(root)
                self._ids.append(subscription)
            slots.append(slot)
        self._slots[subscription] = slots
        if len(slots) > 1:
            self._split.add(subscription)

    def sweep(self) -> None:
        """Drop nodes and predicates that no subscription uses."""
        moved = self.nodes.sweep(self._roots)
        self._roots = array("i", moved[np.array(self._roots, np.int64)].tolist())
        used = set(self.nodes.variables[2:])
        self.predicates, names = self.predicates.keeping(used)
        self.nodes.rename(names)
        self._coded = CodedPredicates(self.relation, ())
        self._removed = 0

    def match(self, row: Row) -> list[int]:
        return self.match_batch(EventBatch.of_rows(self.relation, [row])).lists()[0]

    def match_batch(self, batch: EventBatch) -> Pairs:
        variables, lows, highs = self.nodes.arrays()
        roots = np.frombuffer(self._roots, np.int32)
        owners, lengths, events = [], [], []
        for start in range(0, len(batch) if len(roots) else 0, _EVENTS_AT_ONCE):
            part = batch.slice(start, start + _EVENTS_AT_ONCE)
            for word, truth in enumerate(self._truth(part)):
                first = start + word * LANES
                lanes = np.uint64((1 << min(LANES, len(batch) - first)) - 1)
                values = evaluate(variables, lows, highs, truth, lanes)
                found = matched_runs(values, roots, first)
                owners.append(found[0])
                lengths.append(found[1])
                events.append(found[2])
        if not owners:
            return Pairs.none(len(batch))
        ids = np.repeat(
            np.array(self._ids, np.int64)[np.concatenate(owners)], np.concatenate(lengths)
        )
        return Pairs.of_pairs(len(batch), *self._each_once(np.concatenate(events), ids))

    def any_match(self, batch: EventBatch) -> Mask:
        return self.match_batch(batch).any_match()

    def _truth(self, batch: EventBatch) -> Words:
        """The truth values of all predicates for all events.

        Predicates added since the last coding are tested one by one while that is cheaper.
        """
        fresh = self.predicates.predicates[len(self._coded) :]
        if len(fresh) * len(batch) > 2 * len(self.predicates):
            self._coded = CodedPredicates(self.relation, self.predicates.predicates)
            fresh = []
        coded = self._coded.truth(batch)
        return np.hstack([coded, direct_truth(fresh, batch)]) if fresh else coded

    def _each_once(self, events: Ints32, ids: Ints64) -> tuple[Ints32, Ints64]:
        """Deduplicate: several roots of one subscription may be true of the same event."""
        if not self._split:
            return events, ids
        order = np.lexsort((events, ids))
        events, ids = events[order], ids[order]
        first = np.ones(len(ids), np.bool_)
        first[1:] = (ids[1:] != ids[:-1]) | (events[1:] != events[:-1])
        return events[first], ids[first]

    def roots(self, subscription: int) -> tuple[int, ...]:
        """The roots of a subscription, which matches if any of them is true."""
        return tuple(self._roots[slot] for slot in self._slots[subscription])

    def diagrams(self) -> dict[tuple[int, int], list[int]]:
        """Roots by their children: subscriptions that differ in their topmost test alone."""
        grouped: dict[tuple[int, int], list[int]] = {}
        for root in sorted({self._roots[slot] for slots in self._slots.values() for slot in slots}):
            grouped.setdefault(self.nodes.children(root), []).append(root)
        return grouped

    def statistics(self) -> MatcherStatistics:
        unions = [held for held in self._held.values() if isinstance(held, tuple)]
        sizes = (self._roots, self._ids)
        return MatcherStatistics(
            len(self._held),
            sum(map(len, unions)),
            len(self.predicates),
            self.nodes.nbytes + sum(column.itemsize * len(column) for column in sizes),
            {
                "nodes": len(self.nodes),
                "roots": len({root for root in self._roots if root != FALSE}),
                "diagrams": len(self.diagrams()),
                "split_subscriptions": len(self._split),
            },
        )

    def explain(self, row: Row, subscription: int) -> MatchExplanation:
        held = self._held.get(subscription)
        if held is None:
            raise SubscriptionError(f"no subscription {subscription} over {self.relation.name}")
        try:
            boxes = held if isinstance(held, tuple) else boxes_of(held)
        except TooComplexError:
            raise SubscriptionError(
                f"the condition of subscription {subscription} is too large to explain"
            ) from None
        return explain_boxes(self.relation, subscription, boxes, row)
