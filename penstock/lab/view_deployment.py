"""The deployment of Karanasos, Katsifodimos and Manolescu (2013, 5.5), simulated.

A view's results for a document leave when all inputs have arrived and were joined; they go to one
dependant after the other, so a view that feeds many is slow for the last of them. Result sizes and
the time per row are measured; what the paper does not state (bandwidth, delays) is assumed, in
`Network`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.documents.document import Document, parse_document
from penstock.documents.evaluation import evaluate, matches
from penstock.documents.fast_matching import FastMatcher
from penstock.documents.patterns import TreePattern
from penstock.errors import DocumentError
from penstock.kernels.compiled import njit
from penstock.lab.workloads import xmark
from penstock.views.planning_problem import Plan
from penstock.views.resource_model import ResourceModel, Sites
from penstock.views.rewriting_plan import rewriting_plan
from penstock.views.statistics import ID_BYTES, DocumentStatistics
from penstock.xml_text import ATTRIBUTE

VIEWS = xmark.ViewParameters(
    shortest_walk=1,
    longest_walk=7,
    branch=0.7,
    most_branches=6,
    predicate=0.08,
    single=True,
    skew=1.0,
)
"""Parameters of the deployed views, which the paper does not describe. Some labels are popular,
single nodes are views too, and there are so many branches that of 10,000 views that match about
3,000 are different, as published."""
DOCUMENTS = xmark.DocumentParameters(repeats=2.2, optional=0.95)


@dataclass(frozen=True, slots=True)
class Network:
    """Assumed: a wide-area network between sites that share machines."""

    bytes_per_second: float = 2e6
    """Of one view's site: 100 MB/s of a machine, shared by its views and their processes."""
    seconds_per_send: float = 2e-3
    """To send a result to one dependant: serialisation, a system call, acknowledgement."""
    seconds_per_distance: float = 20e-3
    """Across the whole network."""

    def model(self, seconds_per_row: float) -> ResourceModel:
        """The planner's model of it, with the measured time of a row."""
        return ResourceModel(
            seconds_per_row=seconds_per_row,
            seconds_per_hop=self.seconds_per_send,
            seconds_per_distance=self.seconds_per_distance,
            bytes_per_second=self.bytes_per_second,
        )


MATCH_SHARE = 0.9
"""A view that matches fewer of the documents is not deployed."""
LARGEST_RESULT = 2.0
"""Views whose branches multiply to more, as a multiple of the document, are left out."""
SAMPLE = 20
"""Documents on which views are tried."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """Views as drawn, many of them repeatedly, and documents that nearly all match."""

    views: Sequence[TreePattern]
    unique: Sequence[TreePattern]
    of_unique: NDArray[np.int64]
    """The index of each view among the unique ones."""
    documents: Sequence[Document]
    match_share: float

    @classmethod
    def of(
        cls,
        views: int,
        documents: int,
        seed: int = 1,
        parameters: xmark.ViewParameters = VIEWS,
    ) -> Deployment:
        texts = (
            text
            for text in xmark.documents(20 * documents, seed, DOCUMENTS)
            if 10_000 <= len(text) <= 40_000
        )
        parsed = [parse_document(text) for text in islice(texts, documents)]
        chosen, share = _matching_views(views, parsed[:SAMPLE], seed, parameters)
        places = {view: place for place, view in enumerate(dict.fromkeys(chosen))}
        of_unique = np.array([places[view] for view in chosen], np.int64)
        return cls(chosen, list(places), of_unique, parsed, share)


def _matching_views(
    count: int, documents: Sequence[Document], seed: int, parameters: xmark.ViewParameters
) -> tuple[list[TreePattern], float]:
    """Drawn views that match nearly all documents, and which share of pairs match."""
    statistics = DocumentStatistics.of(documents)
    largest = LARGEST_RESULT * float(np.mean([len(document.canonical) for document in documents]))
    drawn = xmark.drawn_views(seed, parameters)
    shares: dict[TreePattern, float] = {}
    found: list[TreePattern] = []
    while len(found) < count:
        some = list(islice(drawn, count))
        new = [view for view in dict.fromkeys(some) if view not in shares]
        shares.update(zip(new, _match_shares(new, documents), strict=True))
        for view in new:
            if statistics.volume(view).bytes > largest:
                shares[view] = 0.0
        found += [view for view in some if shares[view] >= MATCH_SHARE]
    return found[:count], float(np.mean([shares[view] for view in found[:count]]))


def _match_shares(views: Sequence[TreePattern], documents: Sequence[Document]) -> list[float]:
    matcher = FastMatcher(views)
    hits = np.zeros(len(views))
    for document in documents:
        hits[matcher.matching_array(document)] += 1
    return (hits / len(documents)).tolist()  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Measured:
    """For each document and view: rows and bytes; and the seconds per joined row."""

    rows: NDArray[np.float64]
    bytes: NDArray[np.float64]
    seconds_per_row: float


def measure_results(deployment: Deployment) -> Measured:
    """Evaluate all unique views over all documents."""
    shape = (len(deployment.documents), len(deployment.unique))
    rows, size = np.zeros(shape), np.zeros(shape)
    for number, document in enumerate(deployment.documents):
        lengths = _ResultLengths(document)
        for place, view in enumerate(deployment.unique):
            found = np.array(matches(view, document), np.int64).reshape(-1, len(view))
            rows[number, place], size[number, place] = len(found), lengths.bytes_of(view, found)
    seconds = _seconds_per_row(deployment)
    return Measured(rows[:, deployment.of_unique], size[:, deployment.of_unique], seconds)


class _ResultLengths:
    """The lengths of values and subtrees of a document's nodes, each measured once."""

    def __init__(self, document: Document) -> None:
        nodes = range(len(document))
        self.val = np.array([len(document.value(node)) for node in nodes])
        self.cont = np.array(
            [
                0 if document.labels[node].startswith(ATTRIBUTE) else len(document.content(node))
                for node in nodes
            ]
        )

    def bytes_of(self, view: TreePattern, found: NDArray[np.int64]) -> float:
        """The bytes of a view's rows: ids, values and contents."""
        total = ID_BYTES * found.size
        for column, node in enumerate(view.nodes):
            total += int(self.val[found[:, column]].sum()) if node.val else 0
            total += int(self.cont[found[:, column]].sum()) if node.cont else 0
        return float(total)


def _seconds_per_row(deployment: Deployment) -> float:
    """The CPU time of rewritings alone, divided by their rows: the work of a site per row."""
    document = deployment.documents[0]
    spent, rows = 0.0, 0
    for view in deployment.unique[:200]:
        try:
            found = evaluate(view, document)
        except DocumentError:
            continue  # more rows than a view may have for one document
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
