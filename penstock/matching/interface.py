"""What every matcher can do.

A matcher holds the local conditions of subscriptions over one relation. A condition is a union of
boxes (OR, IN and NOT are already normalised); a box is a conjunction of intervals. The empty box
matches every row, the empty union none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from penstock.catalog import Relation, Row
from penstock.matching.events import EventBatch
from penstock.matching.pairs import Mask, Pairs
from penstock.predicates.boxes import Box


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one box does not contain a row: the first predicate that is not true."""

    box: int
    """Position of the box in the subscription's union."""
    column: str
    condition: str
    """The predicate in readable form: `45 <= per <= 70`."""
    value: str
    """The row's value as an SQL literal."""
    passing: str | None
    """A value near the row's own with which the predicate would be true, if there is one."""


@dataclass(frozen=True, slots=True)
class MatchExplanation:
    """Why a row matches a subscription, or does not."""

    subscription: int
    matched_box: int | None
    """Position of the first box that contains the row."""
    failures: tuple[Failure, ...] = ()
    """If nothing matched, the first failure of each box; empty for a union without boxes."""

    @property
    def matched(self) -> bool:
        return self.matched_box is not None


@dataclass(frozen=True, slots=True)
class MatcherStatistics:
    """Sizes of a matcher. `details` are specific to its structure."""

    subscriptions: int
    boxes: int
    predicates: int
    """Distinct (column, interval) pairs, or occurrences where distinct ones are not kept."""
    bytes: int
    details: dict[str, int | float | str] = field(default_factory=dict)


class Matcher(Protocol):
    """The conditions of many subscriptions over one relation.

    Inserting an id that is already held replaces its condition. Changes made before a call of
    `match` or `match_batch` are seen by it. No method reports a subscription twice for one event,
    however many of its boxes contain the event.
    """

    @property
    def relation(self) -> Relation: ...

    def __len__(self) -> int:
        """How many subscriptions are held."""
        ...

    def __contains__(self, subscription: int) -> bool: ...

    def insert(self, subscription: int, boxes: Sequence[Box]) -> None: ...

    def insert_many(self, subscriptions: Iterable[tuple[int, Sequence[Box]]]) -> None:
        """Like `insert` for each, at the cost of one bulk build."""
        ...

    def remove(self, subscription: int) -> bool:
        """Forget a subscription; False if it was not held."""
        ...

    def match(self, row: Row) -> list[int]:
        """The ids of the subscriptions that a row of stored values matches, ascending.

        ChangeError if the row does not fit the relation.
        """
        ...

    def match_batch(self, batch: EventBatch) -> Pairs: ...

    def any_match(self, batch: EventBatch) -> Mask:
        """Which events match at least one subscription."""
        ...

    def statistics(self) -> MatcherStatistics: ...

    def explain(self, row: Row, subscription: int) -> MatchExplanation:
        """SubscriptionError if the subscription is not held."""
        ...
