"""`naive`: branch by branch, each from its first predicate to the first that is false.

The baseline of section 5.2. It reuses results, but does not check for a known false one before it
reaches it.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.operators.schedules.fixed_order import FixedOrder
from penstock.operators.schedules.packed import Packed
from penstock.operators.schedules.replaying import replay_naive
from penstock.operators.schedules.schedule import Evaluated, Truths, Undecided


class Naive(FixedOrder):
    name = "naive"

    def order(self, undecided: Undecided) -> Iterator[int]:
        for chain in undecided.chains.values():
            for predicate in chain:
                if predicate not in undecided.truths:
                    yield predicate
                if not undecided.truths[predicate]:
                    break

    def replay_packed(self, chains: Packed, truths: Truths) -> Evaluated:
        return replay_naive(chains, truths)
