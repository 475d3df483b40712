"""The brute-force reference: every box is tested against every row."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from penstock.catalog import Key, Relation, Row
from penstock.errors import SubscriptionError
from penstock.matching.events import EventBatch, row_keys
from penstock.matching.explain import explain_boxes
from penstock.matching.interface import MatcherStatistics, MatchExplanation
from penstock.matching.matcher_registry import register
from penstock.matching.pairs import Mask, Pairs
from penstock.predicates.boxes import Box


@register("naive")
class NaiveMatcher:
    """Correct by inspection; defines the answers of all other matchers."""

    def __init__(self, relation: Relation) -> None:
        self.relation = relation
        self._boxes: dict[int, tuple[Box, ...]] = {}

    def __len__(self) -> int:
        return len(self._boxes)

    def __contains__(self, subscription: int) -> bool:
        return subscription in self._boxes

    def insert(self, subscription: int, boxes: Sequence[Box]) -> None:
        self._boxes[subscription] = tuple(boxes)

    def insert_many(self, subscriptions: Iterable[tuple[int, Sequence[Box]]]) -> None:
        for subscription, boxes in subscriptions:
            self.insert(subscription, boxes)

    def remove(self, subscription: int) -> bool:
        return self._boxes.pop(subscription, None) is not None

    def match(self, row: Row) -> list[int]:
        return self._matching(row_keys(self.relation, row))

    def match_batch(self, batch: EventBatch) -> Pairs:
        return Pairs.of_events([self._matching(batch.keys(i)) for i in range(len(batch))])

    def any_match(self, batch: EventBatch) -> Mask:
        return self.match_batch(batch).any_match()

    def _matching(self, keys: Sequence[Key | None]) -> list[int]:
        return sorted(
            subscription
            for subscription, boxes in self._boxes.items()
            if any(all(interval.contains(keys[c]) for c, interval in one) for one in boxes)
        )

    def statistics(self) -> MatcherStatistics:
        boxes = [one for union in self._boxes.values() for one in union]
        predicates = {predicate for one in boxes for predicate in one}
        size = sys.getsizeof(self._boxes) + sum(map(sys.getsizeof, boxes))
        return MatcherStatistics(len(self), len(boxes), len(predicates), size)

    def explain(self, row: Row, subscription: int) -> MatchExplanation:
        if subscription not in self._boxes:
            raise SubscriptionError(f"no subscription {subscription} over {self.relation.name}")
        return explain_boxes(self.relation, subscription, self._boxes[subscription], row)
