"""Interests that are sent over one link: covered ones are omitted, the others merged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.messages import Message
from penstock.routing.covering import Changed, CoverTable
from penstock.routing.interest_index import InterestIndex
from penstock.routing.interests import Interest, Shapes, concerns, name_of, shape_of
from penstock.routing.merging.budgets import FalsePositives
from penstock.routing.merging.measures import Measure
from penstock.routing.merging.mergers import Merger, find_mergers
from penstock.routing.merging.policies import Policy, TableState, never
from penstock.routing.merging.turns import MergeTurns


@dataclass(slots=True)
class MergeSettings:
    policy: Policy = never
    threshold: float = 0.0
    """The IMT: maximum share of all publications that may be false positives of a merger."""
    budget: float = 1.0
    """The share of false positives among received messages above which mergers are dissolved."""
    most_at_once: int | None = None
    """Maximum interests per call of `merge_if_due`; the next calls take the others."""


class MergeTable:
    """The interests that are sent: mergers, and maximal interests that are in no merger.

    A merger is dissolved when one of its parts is withdrawn, or covered by a new interest; its
    other parts are then sent again, until the policy triggers the next merge.
    """

    def __init__(
        self,
        shapes: Shapes,
        settings: MergeSettings | None = None,
        *,
        covers: bool = True,
        measures: Mapping[int, Measure] | None = None,
    ) -> None:
        self._shapes = shapes
        self._settings = settings or MergeSettings()
        self._measures = {} if measures is None else measures
        """By space; without a measure, only perfect mergers are made."""
        self._threshold = self._settings.threshold
        self._covering = CoverTable(shapes, covers=covers)
        self._covers = covers
        self._mergers: dict[int, Merger] = {}
        self._merger_of: dict[int, int] = {}
        """By name of a part: its merger."""
        self._index: dict[int, InterestIndex] = {}
        """Indexes of the mergers, by space."""
        self._sent: dict[int, Interest] = {}
        self._changes = 0
        self._calls = 0
        self._turns = MergeTurns()
        self.false_positives = FalsePositives(self._settings.budget)

    def __len__(self) -> int:
        return len(self._covering)

    def __contains__(self, name: int) -> bool:
        return name in self._covering

    def sent(self) -> dict[int, Interest]:
        return self._sent

    @property
    def mergers(self) -> dict[int, Merger]:
        return self._mergers

    def insert(self, name: int, interest: Interest) -> Changed:
        return self._follow(self._covering.insert(name, interest))

    def insert_many(self, interests: Iterable[tuple[int, Interest]]) -> Changed:
        return self._follow(self._covering.insert_many(interests))

    def remove(self, name: int) -> Changed:
        return self._follow(self._covering.remove(name))

    def merge_if_due(self, advertised: Sequence[Interest] = ()) -> Changed:
        if not self._turns.is_under_way:
            self._calls += 1
            state = TableState(len(self._sent), self._changes, self._calls, self._siblings)
            if not self._settings.policy(state):
                return Changed()
        most = self._settings.most_at_once
        if most is None:
            return self.merge(advertised)
        chosen = self._turns.take(self._unmerged, self._find_unmerged, most)
        if not self._turns.is_under_way:
            self._changes = self._calls = 0
        return self._merge(chosen, advertised)

    def merge(self, advertised: Sequence[Interest] = ()) -> Changed:
        """Merge all interests that are sent individually. Mergers are not merged again."""
        self._turns.end()
        self._changes = self._calls = 0
        return self._merge(self._unmerged(), advertised)

    def _unmerged(self) -> list[tuple[int, Interest]]:
        return [pair for pair in self._sent.items() if pair[0] not in self._mergers]

    def _find_unmerged(self, name: int) -> Interest | None:
        return None if name in self._mergers else self._sent.get(name)

    def _merge(
        self, members: Iterable[tuple[int, Interest]], advertised: Sequence[Interest]
    ) -> Changed:
        changed = Changed()
        for space, interests in _by_space(members).items():
            for merger in find_mergers(
                interests,
                measure=self._measures.get(space),
                threshold=self._threshold,
                advertised=[one for one in advertised if one.space == space],
            ):
                self._install(merger, changed)
        return self._apply(changed)

    def received(self, message: Message) -> list[int]:
        """The mergers that a message concerns although none of their parts is concerned."""
        index = self._index.get(message.space)
        if index is None:
            return []
        base = index.shape.base
        return [
            name
            for name in index.names(message)
            if not any(concerns(message, p, base) for p in self._mergers[name].parts.values())
        ]

    def count(self, message: Message, is_needed: bool) -> Changed:
        """Count a message received over the link; dissolves mergers if the budget is exceeded."""
        changed = Changed()
        if is_needed:
            self.false_positives.needed()
            return changed
        self.false_positives.wasted(self.received(message))
        worst = [m for m in self.false_positives.to_take_back() if m in self._mergers]
        for merger in worst:
            self._dissolve(merger, changed)
        if worst:
            self._threshold /= 2
        return self._apply(changed)

    def _follow(self, covering: Changed) -> Changed:
        """Translate changes of the maximal interests to changes of what is sent."""
        changed = Changed()
        self._changes += len(covering.added) + len(covering.removed)
        for name in covering.removed:
            merger = self._merger_of.get(name)
            if merger is not None:
                self._dissolve(merger, changed)
        for name, interest in covering.removed.items():
            changed.remove(name, interest)
        for name, interest in covering.added.items():
            merger = self._covering_merger(interest)
            if merger is None:
                changed.add(name, interest)
            else:
                self._adopt(merger, name, interest)
        return self._apply(changed)

    def _install(self, merger: Merger, changed: Changed) -> None:
        """Install a merger for its parts, and for all else that it covers."""
        covered = {**merger.parts, **dict(self._covering.maximal_within(merger.interest))}
        parts = {name: one for name, one in covered.items() if name not in self._merger_of}
        if len(parts) < 2:
            return
        whole = Merger(merger.interest, parts)
        name = whole.name
        self._mergers[name] = whole
        self._merger_index(whole.interest.space).add(name, whole.interest)
        for part, interest in parts.items():
            self._merger_of[part] = name
            changed.remove(part, interest)
        changed.add(name, whole.interest)

    def _dissolve(self, name: int, changed: Changed) -> None:
        merger = self._mergers.pop(name)
        self._index[merger.interest.space].remove(name)
        changed.remove(name, merger.interest)
        for part, interest in merger.parts.items():
            del self._merger_of[part]
            changed.add(part, interest)

    def _adopt(self, merger: int, name: int, interest: Interest) -> None:
        old = self._mergers[merger]
        self._mergers[merger] = Merger(old.interest, {**old.parts, name: interest})
        self._merger_of[name] = merger

    def _covering_merger(self, interest: Interest) -> int | None:
        index = self._index.get(interest.space)
        return None if index is None or not self._covers else index.covering(interest)

    def _merger_index(self, space: int) -> InterestIndex:
        index = self._index.get(space)
        if index is None:
            index = self._index[space] = InterestIndex(shape_of(self._shapes, space))
        return index

    def _apply(self, changed: Changed) -> Changed:
        """Apply changes; a merger may have the name of an interest that it replaces."""
        for name in changed.added.keys() & self._sent.keys() - changed.removed.keys():
            del changed.added[name]
        for name in changed.removed:
            self._sent.pop(name, None)
        self._sent.update(changed.added)
        return changed

    def _siblings(self) -> float:
        """The number of sent interests per distinct interest without its last condition."""
        families = {(i.space, i.base[:-1], i.bounds) for i in self._sent.values()}
        return len(self._sent) / len(families) if families else 0.0

    def parts(self) -> Iterator[tuple[int, Interest]]:
        """The maximal interests, merged or not."""
        return self._covering.maximal()


def _by_space(members: Iterable[tuple[int, Interest]]) -> dict[int, dict[int, Interest]]:
    found: dict[int, dict[int, Interest]] = {}
    for name, interest in members:
        found.setdefault(interest.space, {})[name] = interest
    return found


def named(interests: Iterable[Interest]) -> dict[int, Interest]:
    return {name_of(one): one for one in interests}
