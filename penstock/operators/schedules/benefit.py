"""`benefit`, the default: next the predicate that is expected to decide the most for its cost.

The benefit of a predicate is (1 - p) / cost times the weight of the undecided branches that have
it. A branch weighs more the fewer of its predicates are likely to be false: branches with few ways
to be decided should be decided first. With weights of 1 this is the greedy algorithm for set cover;
weights save another 2 to 3 % (docs/notes/schedules.md).

Few candidates are scheduled by a lazy heap, many in *rounds*: a round asks at once for every
predicate that has a larger benefit than all others in its undecided branches. Benefits only fall,
and fall only when a branch is decided by one of the others, so the heap would ask for each of them
before any of those, with the same benefit: rounds ask for the same predicates in another order. To
need fewer rounds, a share of the branches is enough (`SHARES`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush

import numpy as np

from penstock.operators.schedules.packed import Packed, PackedChains
from penstock.operators.schedules.rounds import (
    SHARES,
    Floats,
    Prepared,
    RoundsRun,
    Weights,
    prepare_rounds,
    replay_rounds,
)
from penstock.operators.schedules.schedule import (
    Chain,
    Chains,
    Estimates,
    Evaluated,
    OneByOne,
    Run,
    Truths,
    Undecided,
)

MANY = 2_000
"""Candidates from which on rounds are faster than the heap: both take about 5 ms then."""
WEIGHT_UNIT = 1 << 8
HEAVIEST = 1 << 13
"""Weights are whole numbers, so that sums do not depend on the order of their terms: 256 for a
branch with one predicate that is always false, 10 for five of them."""


class Benefit:
    name = "benefit"

    def __init__(
        self, estimates: Estimates, *, many: int = MANY, shares: tuple[float, ...] = SHARES
    ) -> None:
        self._estimates = estimates
        self._many, self._shares = many, shares
        self._chains = Chains()
        self._packed = PackedChains(self._chains, self._sorted_chains)
        self._prepared: Prepared | None = None

    def add(self, branch: int, predicates: Iterable[int]) -> None:
        self._chains.add(branch, predicates)

    def remove(self, branch: int) -> None:
        self._chains.remove(branch)

    def refresh(self) -> None:
        """Read all estimates again for rounds, too; the heap always reads them."""
        self._prepared = None

    def start(
        self, candidates: Iterable[int] | None = None, known: Mapping[int, bool] | None = None
    ) -> Run:
        chosen = None if candidates is None else list(candidates)
        if len(self._chains if chosen is None else chosen) >= self._many:
            return RoundsRun(self._prepare(), chosen, known)
        undecided = Undecided(self._chains.pick(chosen))
        return OneByOne(undecided, known, self._order(undecided))

    def replay(self, truths: Truths) -> Evaluated:
        return replay_rounds(self._prepare(), truths)

    def _order(self, undecided: Undecided) -> Iterator[int]:
        rate = self._rate
        weights = {branch: self._weight(undecided.chains[branch]) for branch in undecided.remaining}

        def benefit(predicate: int) -> float:
            waiting = sum(weights[branch] for branch in undecided.wanted_by[predicate])
            return float(np.float32(rate(predicate) * waiting))  # same precision as rounds

        heap = [(-benefit(predicate), predicate) for predicate in undecided.wanted_by]
        heapify(heap)
        while heap:
            before, predicate = heappop(heap)
            if predicate not in undecided.wanted_by:
                continue
            now = -benefit(predicate)
            if now > before:
                heappush(heap, (now, predicate))
            else:
                yield predicate

    def _rate(self, predicate: int) -> float:
        return (1.0 - self._estimates.probability(predicate)) / self._estimates.cost(predicate)

    def _weight(self, chain: Chain) -> int:
        likely_false = sum(1.0 - self._estimates.probability(predicate) for predicate in chain)
        return weight_of(likely_false)

    def _prepare(self) -> Prepared:
        packed = self._packed.current()
        if self._prepared is None or self._prepared.packed is not packed:
            self._prepared = prepare_rounds(packed, *self._rates_and_weights(packed), self._shares)
        return self._prepared

    def _sorted_chains(self) -> list[tuple[int, Chain]]:
        """Sorted inside, too: among equally good predicates the smallest number comes first."""
        return [(branch, tuple(sorted(chain))) for branch, chain in sorted(self._chains.items())]

    def _rates_and_weights(self, packed: Packed) -> tuple[Floats, Weights]:
        names = packed.predicate_names.tolist()
        rates = np.array([self._rate(name) for name in names], np.float64)
        weights = [self._weight(self._chains[branch]) for branch in packed.branch_names.tolist()]
        return rates, np.array(weights, np.int32)


def weight_of(likely_false: float) -> int:
    """The weight of a branch with this expected number of false predicates."""
    return max(1, min(HEAVIEST, round(WEIGHT_UNIT / max(likely_false, 1e-9) ** 2)))
