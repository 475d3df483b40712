"""The interface of schedules: which predicate to evaluate next, until every branch is decided.

A *branch* is a conjunction of predicates, named by a number; a predicate is a number, too, the same
in all branches that have it. A branch is decided as soon as one of its predicates is false, or all
are true. The caller evaluates and reports truths; a schedule never asks for a predicate twice, nor
for one whose truth was known before. The caller maps the branches of subscriptions: every branch is
decided separately, because contents keep rows per branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from penstock.errors import PenstockError

Chain = tuple[int, ...]
"""The predicates of a branch, each once, in the order in which a schedule goes through them."""
Truths = npt.NDArray[np.bool_]
"""The truth of every predicate of an event, by number."""
Evaluated = npt.NDArray[np.int64]
"""The numbers of the predicates that were evaluated, each once."""


class Estimates(Protocol):
    """Estimates of predicates."""

    def probability(self, predicate: int) -> float:
        """The probability that it is true; strictly between 0 and 1."""

    def cost(self, predicate: int) -> float:
        """The cost of an evaluation; positive, in any unit that is the same for all predicates."""


class Run(Protocol):
    """The predicates of one event, in sequence."""

    def next(self) -> int | None:
        """The predicate to evaluate now: the same until its truth is reported. None at the end."""

    def batch(self) -> list[int]:
        """Predicates that are needed whatever the truth of the others: evaluate them in any order
        or together, and report all of them. Empty at the end."""

    def tell(self, predicate: int, truth: bool) -> None:
        """Report the result of an evaluation, whether requested by this run or not."""

    def tell_many(self, predicates: Iterable[int], truths: Iterable[bool]) -> None:
        """Results of several evaluations, in the same order."""

    @property
    def matched(self) -> list[int]:
        """The branches of which all predicates are true, in ascending order."""


class Schedule(Protocol):
    """A mutable set of branches, and runs of events over them. Not thread-safe; a run sees the
    branches as of its start."""

    name: str

    def add(self, branch: int, predicates: Iterable[int]) -> None: ...

    def remove(self, branch: int) -> None: ...

    def refresh(self) -> None:
        """Read the current estimates: probabilities and costs drift. Started runs are not
        affected."""

    def start(
        self, candidates: Iterable[int] | None = None, known: Mapping[int, bool] | None = None
    ) -> Run:
        """A run over some branches (None: all), with truths that need no evaluation."""

    def replay(self, truths: Truths) -> Evaluated:
        """The predicates that a run over all branches would evaluate for an event with all truths
        given, in a fraction of the time."""


@dataclass(frozen=True, slots=True)
class FixedEstimates:
    """Given probabilities and costs; predicates without an entry share the default."""

    probabilities: Sequence[float] | Mapping[int, float] = ()
    costs: Sequence[float] | Mapping[int, float] = ()
    default_probability: float = 0.5

    def probability(self, predicate: int) -> float:
        return _entry(self.probabilities, predicate, self.default_probability)

    def cost(self, predicate: int) -> float:
        return _entry(self.costs, predicate, 1.0)


def _entry(given: Sequence[float] | Mapping[int, float], key: int, default: float) -> float:
    try:
        return given[key]
    except (IndexError, KeyError):
        return default


def unknown_branch(branch: int) -> PenstockError:
    return PenstockError(
        f"no branch {branch} in the schedule",
        detail="It was never added, or has been removed.",
        hint="Candidates are branches that were added before the run started.",
    )


def contradiction(predicate: int) -> PenstockError:
    return PenstockError(
        f"predicate {predicate} was told to be true and false for one event",
        detail="Operators are deterministic by contract: one row, one result.",
    )


class Chains:
    """The branches of a schedule, in the order in which they were added."""

    def __init__(self) -> None:
        self._chains: dict[int, Chain] = {}
        self.version = 0
        """Incremented by every change: what was derived from an older version is stale."""

    def __len__(self) -> int:
        return len(self._chains)

    def __getitem__(self, branch: int) -> Chain:
        if branch not in self._chains:
            raise unknown_branch(branch)
        return self._chains[branch]

    def __contains__(self, branch: int) -> bool:
        return branch in self._chains

    def items(self) -> Iterable[tuple[int, Chain]]:
        return self._chains.items()

    def put(self, branch: int, predicates: Iterable[int]) -> Chain:
        """Duplicate predicates count once: they are linked to each other within the chain."""
        chain = self._chains[branch] = tuple(dict.fromkeys(predicates))
        self.version += 1
        return chain

    def add(self, branch: int, predicates: Iterable[int]) -> Chain:
        if branch in self._chains:
            raise PenstockError(
                f"branch {branch} is in the schedule already",
                hint="Remove it first: the predicates of a branch do not change.",
            )
        return self.put(branch, predicates)

    def remove(self, branch: int) -> Chain:
        chain = self[branch]
        del self._chains[branch]
        self.version += 1
        return chain

    def pick(self, candidates: Iterable[int] | None) -> dict[int, Chain]:
        if candidates is None:
            return dict(self._chains)
        return {branch: self[branch] for branch in candidates}


@dataclass(slots=True)
class Undecided:
    """Undecided branches and their open predicates during one event: the two tables of section 5.1
    of the paper."""

    chains: dict[int, Chain]
    truths: dict[int, bool] = field(default_factory=dict)
    remaining: dict[int, dict[int, None]] = field(default_factory=dict)
    """By undecided branch: its predicates that are not evaluated yet."""
    wanted_by: dict[int, dict[int, None]] = field(default_factory=dict)
    """By predicate not evaluated yet: the undecided branches that have it."""
    matched: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        for branch, chain in self.chains.items():
            if not chain:
                self.matched.append(branch)
                continue
            self.remaining[branch] = dict.fromkeys(chain)
            for predicate in chain:
                self.wanted_by.setdefault(predicate, {})[branch] = None

    def tell(self, predicate: int, truth: bool) -> None:
        if self.truths.setdefault(predicate, truth) != truth:
            raise contradiction(predicate)
        for branch in self.wanted_by.pop(predicate, ()):
            if truth:
                self._confirm(branch, predicate)
            else:
                self._dismiss(branch, predicate)

    def _confirm(self, branch: int, predicate: int) -> None:
        left = self.remaining[branch]
        del left[predicate]
        if not left:
            del self.remaining[branch]
            self.matched.append(branch)

    def _dismiss(self, branch: int, predicate: int) -> None:
        for other in self.remaining.pop(branch):
            if other != predicate:
                waiting = self.wanted_by[other]
                del waiting[branch]
                if not waiting:
                    del self.wanted_by[other]


class OneByOne:
    """A run whose predicates come from a generator, which resumes when the last truth is
    reported."""

    def __init__(
        self, undecided: Undecided, known: Mapping[int, bool] | None, order: Iterator[int]
    ) -> None:
        self._undecided = undecided
        self._order = order
        self._asked: int | None = None
        for predicate, truth in (known or {}).items():
            undecided.tell(predicate, truth)

    def next(self) -> int | None:
        if self._asked is None or self._asked in self._undecided.truths:
            self._asked = next(self._order, None)
        return self._asked

    def batch(self) -> list[int]:
        asked = self.next()
        return [] if asked is None else [asked]

    def tell(self, predicate: int, truth: bool) -> None:
        self._undecided.tell(predicate, truth)

    def tell_many(self, predicates: Iterable[int], truths: Iterable[bool]) -> None:
        for predicate, truth in zip(predicates, truths, strict=True):
            self._undecided.tell(predicate, bool(truth))

    @property
    def matched(self) -> list[int]:
        return sorted(self._undecided.matched)
