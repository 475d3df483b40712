"""Shared code of schedules that process branches in insertion order, independent of estimates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from penstock.operators.schedules.packed import Packed, PackedChains
from penstock.operators.schedules.schedule import (
    Chains,
    Estimates,
    Evaluated,
    OneByOne,
    Run,
    Truths,
    Undecided,
)


class FixedOrder:
    def __init__(self, estimates: Estimates) -> None:
        self._chains = Chains()
        self._packed = PackedChains(self._chains)

    def add(self, branch: int, predicates: Iterable[int]) -> None:
        self._chains.add(branch, predicates)

    def remove(self, branch: int) -> None:
        self._chains.remove(branch)

    def refresh(self) -> None:
        """Uses no estimates."""

    def start(
        self, candidates: Iterable[int] | None = None, known: Mapping[int, bool] | None = None
    ) -> Run:
        undecided = Undecided(self._chains.pick(candidates))
        return OneByOne(undecided, known, self.order(undecided))

    def replay(self, truths: Truths) -> Evaluated:
        return self.replay_packed(self._packed.current(), truths)

    def order(self, undecided: Undecided) -> Iterator[int]:
        """The predicates to evaluate; resumes when the truth of the last one is known."""
        raise NotImplementedError

    def replay_packed(self, chains: Packed, truths: Truths) -> Evaluated:
        """The same for an event with all truths given, by a kernel."""
        raise NotImplementedError
