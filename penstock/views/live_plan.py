"""A plan that changes with its views: add, withdraw, failure of a site, full re-planning (3.5).

Works on any language of views. A new view is fed by its least-cost rewriting that is within the
limits and creates no cycle, else by the source. When a view is removed, those that it fed are
placed like new ones. After a number of additions, or when the source is full, a full plan is due;
the old one stays in use until the new one is adopted. Operations return exactly what changed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from penstock.errors import PlanError, SubscriptionError
from penstock.views.language import ViewLanguage
from penstock.views.rewriting_kernel import CoverLimits
from penstock.views.rewritings import covers_of, spreading_limits

V = TypeVar("V")
ViewId = int
Inputs = tuple[ViewId, ...]
"""The feeders of a view; empty: the source."""

Pricing = Callable[[ViewId, Inputs], float]
"""The cost αU + βλ of feeding a view by others, or by the source."""


@dataclass(frozen=True, slots=True)
class LivePolicy:
    """Limits of a live plan."""

    capacity: int
    source_capacity: int
    covers: CoverLimits = field(default_factory=spreading_limits)
    replan_after_additions: int = 1_000


Feeding = Mapping[ViewId, Inputs]
Planner = Callable[[Mapping[ViewId, V], LivePolicy], Feeding]
"""A full plan of some views."""


class LivePlan(Generic[V]):
    """The current plan. Not thread-safe."""

    def __init__(
        self,
        language: ViewLanguage[V],
        policy: LivePolicy,
        price: Pricing,
        capacity_of: Callable[[ViewId], int] | None = None,
    ) -> None:
        """`capacity_of`: how many others a view may feed at its site; by default the policy's
        limit. A full plan uses only the policy's limit."""
        self.capacity_of = capacity_of or (lambda _: policy.capacity)
        self.language = language
        self.policy = policy
        self.price = price
        self.views: dict[ViewId, V] = {}
        self.feeding: dict[ViewId, Inputs] = {}
        self.fed: dict[ViewId, set[ViewId]] = {}
        """The views that each view feeds."""
        self.additions = 0
        self._labels: dict[ViewId, frozenset[Hashable]] = {}
        self._by_label: dict[Hashable, set[ViewId]] = {}
        """Views by one of their labels: the rarest when they were added."""

    @property
    def from_source(self) -> list[ViewId]:
        return [view for view, inputs in self.feeding.items() if not inputs]

    def is_replanning_due(self) -> bool:
        """Whether enough was added, or the source is full."""
        is_full = len(self.from_source) >= self.policy.source_capacity
        return is_full or self.additions >= self.policy.replan_after_additions

    def add(
        self, number: ViewId, view: V, *, as_feeder: bool = False, is_emergency: bool = False
    ) -> dict[ViewId, Inputs]:
        """Place one more view; with `as_feeder` it also takes over others that it feeds at less
        cost. Raises a PlanError, and changes nothing, if neither a view nor the source has
        capacity; with `is_emergency` the source takes it in any case, and a full plan is due."""
        if number in self.views:
            raise SubscriptionError(f"The view {number} exists already")
        self._enter(number, view)
        try:
            changes = {number: self._place(number, is_emergency=is_emergency)}
        except PlanError:
            self._leave(number)
            raise
        self.additions += 1
        if as_feeder:
            changes |= self._offer(number)
        return changes

    def load(self, views: Mapping[ViewId, V], feeding: Feeding) -> dict[ViewId, Inputs]:
        """Start with many views and a full plan of them."""
        if self.views:
            raise PlanError("A plan begins without views")
        for number, view in views.items():
            self._enter(number, view)
        for number in views:
            self._feed(number, tuple(feeding[number]))
        self.check()
        return dict(self.feeding)

    def withdraw(self, *numbers: ViewId) -> dict[ViewId, Inputs]:
        """Remove views, for example when a site fails, and place again those that they fed."""
        gone = set(numbers)
        for number in gone:
            if number not in self.views:
                raise SubscriptionError(f"There is no view {number}")
        orphans = sorted({one for number in gone for one in self.fed[number]} - gone)
        for number in (*gone, *orphans):
            self._unfeed(number)
        for number in gone:
            self._leave(number)
        changes: dict[ViewId, Inputs] = {}
        for number in orphans:
            # In an emergency the source takes all of them: a full plan is due then.
            changes[number] = self._place(number, is_emergency=True)
        return changes

    def replan(self, planner: Planner[V]) -> dict[ViewId, Inputs]:
        """Adopt a full plan; returns what it changes."""
        wanted = planner(self.views, self.policy)
        changes = {
            number: tuple(wanted[number])
            for number in self.views
            if tuple(wanted[number]) != self.feeding[number]
        }
        for number in changes:
            self._unfeed(number)
        for number, inputs in changes.items():
            self._feed(number, inputs)
        self.additions = 0
        self.check()
        return changes

    def check(self) -> None:
        """Raise if a feeder is overloaded or there is a cycle."""
        for number, fed in self.fed.items():
            if len(fed) > self.capacity_of(number):
                raise PlanError(f"The view {number} feeds {len(fed)} others")
        done: set[ViewId] = set()
        left = set(self.views)
        while left:
            ready = {number for number in left if done.issuperset(self.feeding[number])}
            if not ready:
                raise PlanError("Views feed each other in a circle")
            done |= ready
            left -= ready

    def candidates(self, number: ViewId) -> list[tuple[ViewId, int]]:
        """Views that embed in a view, and what they cover, without those downstream of it."""
        query, labels = self.views[number], self._labels[number]
        behind = self._behind(number)
        found = []
        for label in sorted(labels, key=repr):
            for other in sorted(self._by_label.get(label, ())):
                if other == number or other in behind or not self._labels[other] <= labels:
                    continue
                mask = self.language.embeds(self.views[other], query)
                if mask:
                    found.append((other, mask))
        return sorted(found)

    def _place(self, number: ViewId, *, is_emergency: bool = False) -> Inputs:
        best = self._cheapest(number, self.candidates(number))
        if best is None:
            if len(self.from_source) >= self.policy.source_capacity and not is_emergency:
                raise PlanError(
                    "Nobody is free to feed the view",
                    detail=f"the source feeds {self.policy.source_capacity:,} views already",
                    hint="plan all views anew, or raise a limit",
                )
            best = ()
        self._feed(number, best)
        return best

    def _cheapest(self, number: ViewId, candidates: Sequence[tuple[ViewId, int]]) -> Inputs | None:
        free = [
            (other, mask)
            for other, mask in candidates
            if len(self.fed[other] - {number}) < self.capacity_of(other)
        ]
        demands = self.language.demands(self.views[number])
        covers = covers_of(free, demands, self.policy.covers)
        return min(covers, key=lambda inputs: self.price(number, inputs), default=None)

    def _offer(self, number: ViewId) -> dict[ViewId, Inputs]:
        """Let a new view feed others for which a rewriting with it costs less."""
        changes: dict[ViewId, Inputs] = {}
        labels, above = self._labels[number], self._above(number)
        for other in sorted(self.views):
            if other == number or other in above or not labels <= self._labels[other]:
                continue
            if not self.language.embeds(self.views[number], self.views[other]):
                continue
            best = self._cheapest(other, self.candidates(other))
            if best is None or number not in best:
                continue
            if self.price(other, best) < self.price(other, self.feeding[other]):
                self._unfeed(other)
                self._feed(other, best)
                changes[other] = best
        return changes

    def _enter(self, number: ViewId, view: V) -> None:
        labels = self.language.labels(view)
        rarest = min(
            labels, key=lambda one: (len(self._by_label.get(one, ())), repr(one)), default=""
        )
        self.views[number], self._labels[number] = view, labels
        self._by_label.setdefault(rarest, set()).add(number)
        self.fed[number] = set()

    def _leave(self, number: ViewId) -> None:
        for numbers in self._by_label.values():
            numbers.discard(number)
        for kept in (self.views, self._labels, self.fed, self.feeding):
            kept.pop(number, None)

    def _feed(self, number: ViewId, inputs: Inputs) -> None:
        self.feeding[number] = inputs
        for one in inputs:
            self.fed[one].add(number)

    def _unfeed(self, number: ViewId) -> None:
        for one in self.feeding.pop(number, ()):
            self.fed[one].discard(number)

    def _behind(self, number: ViewId) -> set[ViewId]:
        """All views downstream of a view."""
        return _reachable(number, lambda one: self.fed[one])

    def _above(self, number: ViewId) -> set[ViewId]:
        return _reachable(number, lambda one: self.feeding.get(one, ()))


def _reachable(start: ViewId, after: Callable[[ViewId], Iterable[ViewId]]) -> set[ViewId]:
    found: set[ViewId] = set()
    stack = [start]
    while stack:
        for one in after(stack.pop()):
            if one not in found:
                found.add(one)
                stack.append(one)
    return found
