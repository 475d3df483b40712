"""`sequential`: Algorithm 1 of Liu et al. (2007), to the letter.

Marks an undecided branch, then goes through all of its predicates, and evaluates each that an
undecided branch has, even after the marked one is decided. "Any branch" and "any predicate" are the
first in the order in which they were added. At most d times as many evaluations as the optimum for
the event, d being the length of the longest branch (times the ratio of the largest to the smallest
cost, if costs differ): every marked branch has a predicate that no other evaluation replaces.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.operators.schedules.fixed_order import FixedOrder
from penstock.operators.schedules.packed import Packed
from penstock.operators.schedules.replaying import replay_sequential
from penstock.operators.schedules.schedule import Evaluated, Truths, Undecided


class Sequential(FixedOrder):
    name = "sequential"

    def order(self, undecided: Undecided) -> Iterator[int]:
        for branch, chain in undecided.chains.items():
            if branch not in undecided.remaining:
                continue
            for predicate in chain:
                if predicate in undecided.wanted_by:
                    yield predicate

    def replay_packed(self, chains: Packed, truths: Truths) -> Evaluated:
        return replay_sequential(chains, truths)
