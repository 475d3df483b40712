"""The utilisation and latency model: what a rewriting uses at which site, and how long it takes.

A rewriting has several physical plans: all inputs are shipped to the view's site and joined there,
or they are shipped to the site of one input, joined there, and the result is shipped on. A physical
plan uses CPU, I/O and bandwidth at several sites; an aggregator reduces that matrix to one number,
and the plan with the smallest number is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.compiled import njit
from penstock.views.language import Volume
from penstock.views.planning_problem import PlanningProblem
from penstock.views.rewritings import RewritabilityGraph

AT_TARGET = -1
"""The join runs at the site of the view that is fed."""


class Resources(NamedTuple):
    """The resources used at a site per document."""

    cpu: float = 0.0
    """Rows that are joined or written."""
    io: float = 0.0
    """Bytes that are stored."""
    bandwidth: float = 0.0
    """Bytes received or sent."""

    def __add__(self, other: object) -> Resources:
        assert isinstance(other, Resources)
        return Resources(*(a + b for a, b in zip(self, other, strict=True)))


Utilisation = Mapping[int, Resources]
"""By site: one row of the paper's matrix."""


@dataclass(frozen=True, slots=True)
class ResourceModel:
    """Weights of the aggregator, and speeds of sites and network."""

    cpu_weight: float = 50.0
    """The weight of a joined row in bytes."""
    io_weight: float = 1.0
    bandwidth_weight: float = 1.0
    seconds_per_row: float = 2e-6
    seconds_per_hop: float = 0.02
    seconds_per_distance: float = 0.1
    bytes_per_second: float = 10e6
    document_bytes: float = 20_000.0
    """Bytes the source reads to extract one view; measured as the mean document."""

    def aggregate(self, used: Utilisation) -> float:
        """The weighted sum over all sites."""
        return sum(
            self.cpu_weight * one.cpu
            + self.io_weight * one.io
            + self.bandwidth_weight * one.bandwidth
            for one in used.values()
        )

    def coefficients(self) -> NDArray[np.float64]:
        """For the kernel."""
        return np.array(
            [
                *(self.cpu_weight, self.io_weight, self.bandwidth_weight),
                *(self.seconds_per_row, self.seconds_per_hop, self.seconds_per_distance),
                self.bytes_per_second,
            ]
        )


@dataclass(frozen=True, slots=True)
class Sites:
    """The coordinates of sites; their distance determines the network latency."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    source: tuple[float, float] = (0.5, 0.5)

    @classmethod
    def at_random(cls, count: int, seed: int = 7) -> Sites:
        x, y = np.random.default_rng(seed).random((2, count))
        return cls(x, y)

    def distance(self, one: int, other: int) -> float:
        return float(np.hypot(self.x[one] - self.x[other], self.y[one] - self.y[other]))


@dataclass(frozen=True, slots=True)
class PhysicalPlan:
    """Where a rewriting's join runs, what that uses, and the latency it adds."""

    join_at: int
    used: Utilisation
    seconds: float


def physical_plans(
    model: ResourceModel,
    sites: Sites,
    inputs: Sequence[int],
    target: int,
    volume: Callable[[int], Volume],
) -> list[PhysicalPlan]:
    """All physical plans of a rewriting; a view's number is also that of its site."""
    return [
        _carried_out(model, sites, inputs, target, volume, join_at)
        for join_at in (AT_TARGET, *range(len(inputs)))
    ]


def _carried_out(
    model: ResourceModel,
    sites: Sites,
    inputs: Sequence[int],
    target: int,
    volume: Callable[[int], Volume],
    join_at: int,
) -> PhysicalPlan:
    where = target if join_at == AT_TARGET else inputs[join_at]
    used: dict[int, Resources] = {}

    def use(site: int, resources: Resources) -> None:
        used[site] = used.get(site, Resources()) + resources

    farthest = shipped = rows = 0.0
    for one in inputs:
        rows += volume(one).rows
        if one != where:
            use(one, Resources(bandwidth=volume(one).bytes))
            use(where, Resources(bandwidth=volume(one).bytes))
            farthest = max(farthest, sites.distance(one, where))
            shipped += volume(one).bytes
    use(where, Resources(cpu=rows + volume(target).rows))
    hops = 1.0 if shipped else 0.0
    if where != target:
        use(where, Resources(bandwidth=volume(target).bytes))
        use(target, Resources(bandwidth=volume(target).bytes))
        shipped += volume(target).bytes
        farthest += sites.distance(where, target)
        hops += 1.0
    use(target, Resources(io=volume(target).bytes))
    seconds = (
        model.seconds_per_hop * hops
        + model.seconds_per_distance * farthest
        + shipped / model.bytes_per_second
        + model.seconds_per_row * (rows + volume(target).rows)
    )
    return PhysicalPlan(join_at, used, seconds)


def planning_problem(
    graph: RewritabilityGraph,
    volumes: Sequence[Volume],
    sites: Sites,
    model: ResourceModel,
    capacity: int | NDArray[np.int64],
    source_capacity: int,
) -> PlanningProblem:
    """Price every rewriting by its cheapest physical plan, and the source for every view."""
    rows = np.array([one.rows for one in volumes])
    size = np.array([one.bytes for one in volumes])
    utilisation, latency, _ = price_rewritings(
        *(graph.input_starts, graph.inputs, graph.targets(), rows, size),
        *(sites.x, sites.y, model.coefficients()),
    )
    distance = np.hypot(sites.x - sites.source[0], sites.y - sites.source[1])
    shipping = (2 * model.bandwidth_weight + model.io_weight) * size
    return PlanningProblem(
        graph,
        utilisation,
        shipping + model.io_weight * model.document_bytes + model.cpu_weight * rows,
        latency,
        model.seconds_per_hop
        + model.seconds_per_distance * distance
        + size / model.bytes_per_second
        + model.seconds_per_row * rows,
        np.broadcast_to(np.asarray(capacity, np.int64), graph.views).copy(),
        source_capacity,
    )


@njit
def price_rewritings(
    input_starts: Any,
    inputs: Any,
    targets: Any,
    rows: Any,
    size: Any,
    x: Any,
    y: Any,
    coefficients: Any,
) -> Any:
    """For each rewriting the utilisation and latency of its cheapest physical plan, and which one
    that is."""
    count = len(targets)
    utilisation = np.empty(count)
    latency = np.empty(count)
    join_at = np.empty(count, np.int8)
    cpu_weight, io_weight, net_weight = coefficients[0], coefficients[1], coefficients[2]
    for rewriting in range(count):
        target = targets[rewriting]
        first, last = input_starts[rewriting], input_starts[rewriting + 1]
        all_rows, all_bytes = rows[target], 0.0
        for at in range(first, last):
            all_rows += rows[inputs[at]]
            all_bytes += size[inputs[at]]
        fixed = cpu_weight * all_rows + io_weight * size[target]
        utilisation[rewriting] = np.inf
        for way in range(-1, last - first):
            shipped, farthest, hops = all_bytes, 0.0, 1.0
            where = target if way < 0 else inputs[first + way]
            for at in range(first, last):
                one = inputs[at]
                farthest = max(farthest, np.hypot(x[one] - x[where], y[one] - y[where]))
            if way >= 0:
                shipped += size[target] - size[where]
                hops = 2.0 if last - first > 1 else 1.0
                farthest += np.hypot(x[target] - x[where], y[target] - y[where])
            used = fixed + 2 * net_weight * shipped
            if used < utilisation[rewriting]:
                utilisation[rewriting] = used
                join_at[rewriting] = way
                latency[rewriting] = (
                    coefficients[4] * hops
                    + coefficients[5] * farthest
                    + shipped / coefficients[6]
                    + coefficients[3] * all_rows
                )
    return utilisation, latency, join_at
