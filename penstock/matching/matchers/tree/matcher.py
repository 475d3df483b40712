"""The matcher `tree`: the matching tree of Aguilera et al. (1999) with its three optimisations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial

from penstock.catalog import Key, Relation, Row
from penstock.errors import SubscriptionError
from penstock.matching.canonical import Spelling
from penstock.matching.events import EventBatch, row_keys
from penstock.matching.explain import explain_boxes
from penstock.matching.interface import MatcherStatistics, MatchExplanation
from penstock.matching.matcher_registry import register
from penstock.matching.matchers.tree.factoring import Factored, SingleTree, Store
from penstock.matching.matchers.tree.nodes import MatchingTree
from penstock.matching.pairs import Mask, Pairs
from penstock.predicates.boxes import Box


@register("tree")
class TreeMatcher:
    """Boxes in a matching tree.

    `collapse` merges chains of don't-care edges, `successors` jumps instead of backtracking, and
    `index_columns` is the number of leading columns that are factored. The defaults measured best
    for time and memory together (docs/notes/matching-tree-and-diagrams.md). `order` lists all
    columns in the order in which they are tested. Without it, the first `insert_many` into an empty
    tree puts the most constrained columns first.
    """

    def __init__(
        self,
        relation: Relation,
        *,
        collapse: bool = True,
        successors: bool = False,
        index_columns: int = 0,
        order: Sequence[str] | None = None,
    ) -> None:
        self.relation = relation
        self.visits = 0
        """Nodes visited since the matcher was made."""
        self.events = 0
        self._collapse = collapse
        self._successors = successors
        self._index_columns = index_columns
        self._order_is_given = order is not None
        self._order = self._positions(order)
        self._spelling = Spelling(relation)
        self._boxes: dict[int, tuple[Box, ...]] = {}
        self._store = self._new_store(self._order, self._index_columns)

    def _positions(self, order: Sequence[str] | None) -> tuple[int, ...]:
        width = len(self.relation.columns)
        if order is None:
            return tuple(range(width))
        positions = tuple(self.relation.positions[name.lower()] for name in order)
        if sorted(positions) != list(range(width)):
            raise ValueError(f"an order names each column of {self.relation.name} once")
        return positions

    def _new_store(self, columns: tuple[int, ...], index_columns: int) -> Store:
        tree = MatchingTree(columns, self._collapse)
        single = SingleTree(tree, self._successors)
        if not index_columns or not columns:
            return single
        first, others = columns[0], columns[1:]
        make_subtree = partial(self._new_store, others, index_columns - 1)
        return Factored(first, make_subtree, single)

    def __len__(self) -> int:
        return len(self._boxes)

    def __contains__(self, subscription: int) -> bool:
        return subscription in self._boxes

    def insert(self, subscription: int, boxes: Sequence[Box]) -> None:
        self.remove(subscription)
        self._boxes[subscription] = tuple(boxes)
        for one in self._spelling.distinct(boxes):
            self._store.insert(one, subscription)

    def insert_many(self, subscriptions: Iterable[tuple[int, Sequence[Box]]]) -> None:
        given = list(subscriptions)
        if not self._boxes and not self._order_is_given:
            asked = Counter(column for _, boxes in given for one in boxes for column, _ in one)
            self._order = tuple(sorted(self._order, key=lambda column: -asked[column]))
            self._store = self._new_store(self._order, self._index_columns)
        for subscription, boxes in given:
            self.insert(subscription, boxes)

    def remove(self, subscription: int) -> bool:
        boxes = self._boxes.pop(subscription, None)
        for one in self._spelling.distinct(boxes or ()):
            self._store.remove(one, subscription)
        return boxes is not None

    def match(self, row: Row) -> list[int]:
        return self._matching(row_keys(self.relation, row))

    def match_batch(self, batch: EventBatch) -> Pairs:
        return Pairs.of_events([self._matching(batch.keys(i)) for i in range(len(batch))])

    def any_match(self, batch: EventBatch) -> Mask:
        return self.match_batch(batch).any_match()

    def _matching(self, keys: Sequence[Key | None]) -> list[int]:
        found: set[int] = set()
        self.visits += self._store.search(keys, found)
        self.events += 1
        return sorted(found)

    def analyse(self) -> None:
        """Compute the successors of all nodes now instead of after enough searches."""
        self._store.analyse()

    def statistics(self) -> MatcherStatistics:
        trees = list(self._store.trees())
        nodes = [node for tree in trees for node in tree.nodes()]
        predicates = {p for boxes in self._boxes.values() for one in boxes for p in one}
        return MatcherStatistics(
            len(self._boxes),
            sum(len(boxes) for boxes in self._boxes.values()),
            len(predicates),
            sum(node.nbytes() for node in nodes),
            {
                "trees": len(trees),
                "nodes": len(nodes),
                "edges": max(0, len(nodes) - sum(tree.root is not None for tree in trees)),
                "successors": sum(len(node.always) + len(node.blocked) for node in nodes),
                "visits": self.visits,
                "events": self.events,
                "visits_per_event": self.visits / self.events if self.events else 0.0,
            },
        )

    def explain(self, row: Row, subscription: int) -> MatchExplanation:
        if subscription not in self._boxes:
            raise SubscriptionError(f"no subscription {subscription} over {self.relation.name}")
        return explain_boxes(self.relation, subscription, self._boxes[subscription], row)


def plain_tree(relation: Relation) -> TreeMatcher:
    """The tree before any optimisation."""
    return TreeMatcher(relation, collapse=False)


def full_tree(relation: Relation) -> TreeMatcher:
    """The tree with all three optimisations."""
    return TreeMatcher(relation, successors=True, index_columns=1)


register("tree-plain")(plain_tree)
register("tree-full")(full_tree)
