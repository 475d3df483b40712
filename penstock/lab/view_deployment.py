"""The deployment of Karanasos, Katsifodimos and Manolescu (2013, 5.5), simulated.

A view's results for a document leave when all inputs have arrived and were joined; they go to one
dependant after the other, so a view that feeds many is slow for the last of them. Result sizes and
the time per row are measured; what the paper does not state (bandwidth, delays) is assumed and
stands in `Network`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.compiled import njit
from penstock.lab.workloads import xmark
from penstock.views.documents import Document, parse_document
from penstock.views.evaluation import ResultRow, evaluate
from penstock.views.fast_matching import FastMatcher
from penstock.views.patterns import TreePattern
from penstock.views.planning_problem import Plan
from penstock.views.resource_model import ResourceModel, Sites
from penstock.views.rewriting_plan import rewriting_plan
from penstock.views.statistics import ID_BYTES, DocumentStatistics

VIEWS = xmark.ViewParameters(predicate=0.08)
DOCUMENTS = xmark.DocumentParameters(repeats=2.2, optional=0.95)


@dataclass(frozen=True, slots=True)
class Network:
    """Assumed: a wide-area network between sites that share machines."""

    bytes_per_second: float = 2e6
    """Of one view's site: 100 MB/s of a machine, shared by its views and their processes."""
    seconds_per_send: float = 2e-3
    """To hand one dependant a result: serialisation, a system call, acknowledgement."""
    seconds_per_distance: float = 20e-3
    """Across the whole network."""

    def model(self) -> ResourceModel:
        """What a planner knows of it."""
        return ResourceModel(
            seconds_per_hop=self.seconds_per_send,
            seconds_per_distance=self.seconds_per_distance,
            bytes_per_second=self.bytes_per_second,
        )


@dataclass(frozen=True, slots=True)
class Deployment:
    """Views, of which many are the same, and documents that nearly all of them match."""

    views: Sequence[TreePattern]
    unique: int
    of_unique: NDArray[np.int64]
    """The unique view that each view is."""
    documents: Sequence[Document]
    match_share: float

    @classmethod
    def of(cls, views: int, unique: int, documents: int, seed: int = 1) -> Deployment:
        texts = [
            text
            for text in xmark.documents(4 * documents, seed, DOCUMENTS)
            if 10_000 <= len(text) <= 40_000
        ][:documents]
        parsed = [parse_document(text) for text in texts]
        chosen, share = _matching_views(unique, parsed, seed)
        rng = random.Random(seed)
        # Every unique view once; the others are popular ones, by rank.
        ranks = [min(unique - 1, int(rng.paretovariate(0.5)) - 1) for _ in range(views - unique)]
        of_unique = np.array([*range(unique), *ranks], np.int64)
        return cls([chosen[one] for one in of_unique], unique, of_unique, parsed, share)


def _matching_views(
    count: int, documents: Sequence[Document], seed: int
) -> tuple[list[TreePattern], float]:
    """Unique views that match nearly all documents, and which share of pairs match.

    Views whose branches multiply to more than the whole document are left out.
    """
    statistics = DocumentStatistics.of(documents[:20])
    largest = float(np.mean([len(document.canonical) for document in documents[:20]]))
    candidates = [
        view
        for view in xmark.unique_views(12 * count, seed, VIEWS)
        if statistics.volume(view).bytes <= largest
    ]
    matcher = FastMatcher(candidates)
    hits = np.zeros(len(candidates), np.int64)
    some = documents[:20]
    for document in some:
        hits[matcher.matching_array(document)] += 1
    best = np.argsort(-hits, kind="stable")[:count]
    return [candidates[place] for place in best], float(hits[best].mean() / len(some))


@dataclass(frozen=True, slots=True)
class Measured:
    """Of each document and view: rows and bytes; and the seconds that a joined row takes."""

    rows: NDArray[np.float64]
    bytes: NDArray[np.float64]
    seconds_per_row: float


def measure_results(deployment: Deployment) -> Measured:
    """Evaluate all unique views over all documents."""
    shape = (len(deployment.documents), deployment.unique)
    rows, size = np.zeros(shape), np.zeros(shape)
    for number, document in enumerate(deployment.documents):
        for place in range(deployment.unique):
            found = evaluate(deployment.views[place], document)
            rows[number, place], size[number, place] = len(found), _row_bytes(found)
    seconds = _seconds_per_row(deployment)
    return Measured(rows[:, deployment.of_unique], size[:, deployment.of_unique], seconds)


def _row_bytes(rows: Sequence[ResultRow]) -> int:
    return sum(
        ID_BYTES + len(cell.val or "") + len(cell.cont or b"") for row in rows for cell in row
    )


def _seconds_per_row(deployment: Deployment) -> float:
    """The CPU time of rewritings by themselves, over their rows: what a site does per row."""
    document = deployment.documents[0]
    spent, rows = 0.0, 0
    for view in deployment.views[:200]:
        found = evaluate(view, document)
        plan = rewriting_plan(view, [view])
        began = time.process_time()
        plan.run([found])
        spent += time.process_time() - began
        rows += 2 * len(found)
    return spent / max(1, rows)


def simulate(plan: Plan, measured: Measured, sites: Sites, network: Network) -> NDArray[np.float64]:
    """Seconds from a document's first result leaving the source until each view has its own."""
    graph = plan.problem.graph
    order = plan.order()
    # A view sends to its dependants in the order of their numbers.
    found = np.empty(measured.rows.shape)
    for document in range(len(found)):
        found[document] = _deliver(
            *(order, plan.chosen, graph.input_starts, graph.inputs),
            *(measured.rows[document], measured.bytes[document], sites.x, sites.y),
            np.array(
                [
                    *(measured.seconds_per_row, network.bytes_per_second),
                    *(network.seconds_per_send, network.seconds_per_distance, *sites.source),
                ]
            ),
        )
    return found


@njit
def _deliver(
    order: Any,
    chosen: Any,
    input_starts: Any,
    inputs: Any,
    rows: Any,
    size: Any,
    x: Any,
    y: Any,
    constants: Any,
) -> Any:
    """When each view has its results for one document.

    `busy[v]` is when v has sent to all dependants so far; the last entry is the source's.
    """
    per_row, bandwidth, per_send, per_distance = constants[:4]
    views = len(chosen)
    ready = np.zeros(views)
    busy = np.zeros(views + 1)
    for view in order:
        rewriting = chosen[view]
        if rewriting < 0:
            busy[views] += per_send + size[view] / bandwidth
            far = np.hypot(x[view] - constants[4], y[view] - constants[5])
            ready[view] = busy[views] + per_distance * far
        else:
            arrived, joined = 0.0, rows[view]
            for at in range(input_starts[rewriting], input_starts[rewriting + 1]):
                feeder = inputs[at]
                busy[feeder] += per_send + size[feeder] / bandwidth
                far = np.hypot(x[view] - x[feeder], y[view] - y[feeder])
                arrived = max(arrived, busy[feeder] + per_distance * far)
                joined += rows[feeder]
            ready[view] = arrived + per_row * joined
        busy[view] = ready[view]
    return ready
