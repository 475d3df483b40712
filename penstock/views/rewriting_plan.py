"""From a rewriting to an executable plan: structural joins, selections and navigation.

A plan takes the results of views for one document and gives the results of the query, without the
document. Each *scan* reads a view's rows through one embedding, so its cells become cells of query
nodes; scans are joined on the ids of the nodes they share, or by the structure of the query;
*navigation* evaluates the rest of the query inside a content; *selections* test edges and values
that no view has tested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from penstock.documents.evaluation import ResultRow
from penstock.documents.patterns import Axis, TreePattern, nodes_below
from penstock.errors import PlanError
from penstock.views.rewriting_execution import run_steps
from penstock.views.rewriting_steps import (
    CrossJoin,
    IdJoin,
    Navigate,
    Scan,
    SelectEdge,
    SelectValue,
    Step,
    StructuralJoin,
)
from penstock.views.tree_language import (
    CONT_SHIFT,
    TEST_SHIFT,
    VAL_SHIFT,
    TreeLanguage,
    attribute_mask,
    embedding_with,
    images,
    subtree_mask,
)


@dataclass(frozen=True, slots=True)
class RewritingPlan:
    """A query, the views it is fed from, and the steps from their rows to its own."""

    query: TreePattern
    views: tuple[TreePattern, ...]
    steps: tuple[Step, ...]

    def explain(self) -> list[str]:
        return [_describe(self, step) for step in self.steps]

    def run(self, inputs: Sequence[Iterable[ResultRow]]) -> list[ResultRow]:
        """The query's rows for one document, from those of the views."""
        return run_steps(self.query, self.steps, inputs)


def rewriting_plan(query: TreePattern, views: Sequence[TreePattern]) -> RewritingPlan:
    """The plan that feeds a query from views, or a PlanError if they do not cover it."""
    scans = _chosen_scans(query, views)
    steps: list[Step] = []
    known: set[int] = set()
    tested: set[int] = set()
    left = list(scans)
    while left:
        scan = max(left, key=lambda one: _connection(query, known, one))
        left.remove(scan)
        steps.append(_join_step(query, known, scan) if known else scan)
        known |= set(scan.places)
        steps += [SelectEdge(node) for node in _testable_edges(query, known) - tested]
        tested |= _testable_edges(query, known)
    missing = TreeLanguage().demands(query) & ~_direct_mask(query, views, scans)
    for node in range(len(query)):
        below = _all_attributes(subtree_mask(query, node))
        if missing & below and _has_content(views, scans, node):
            steps.append(Navigate(node))
            known |= set(nodes_below(query, node))
            missing &= ~below
    steps += [SelectEdge(node) for node in sorted(_testable_edges(query, known) - tested)]
    steps += [
        SelectValue(node)
        for node, own in enumerate(query.nodes)
        if own.predicate is not None and not _is_tested(query, views, scans, node)
    ]
    return RewritingPlan(query, tuple(views), tuple(steps))


def _chosen_scans(query: TreePattern, views: Sequence[TreePattern]) -> list[Scan]:
    """Embeddings that together cover the query: one per view, more if one is not enough."""
    missing = TreeLanguage().demands(query)
    scans: list[Scan] = []
    for number, view in enumerate(views):
        found = images(view, query)
        if found is None:
            raise PlanError(f"The view {view} does not embed in {query}")
        for node, mask in enumerate(found):
            for place in range(len(query)):
                if mask >> place & 1 and missing & _mask(view, node, query, place):
                    places = embedding_with(view, query, node, place)
                    assert places is not None  # the image belongs to some embedding
                    scans.append(Scan(number, places))
                    for own, there in enumerate(places):
                        missing &= ~_mask(view, own, query, there)
    if missing:
        raise PlanError(f"The views do not cover {query}", detail=f"missing mask {missing:#x}")
    return scans


def _mask(view: TreePattern, node: int, query: TreePattern, place: int) -> int:
    return attribute_mask(view, node, query, place, navigation=True)


def _connection(query: TreePattern, known: set[int], scan: Scan) -> tuple[int, int]:
    """Shared nodes are best, then an edge between the two sides."""
    shared = len(known & set(scan.places))
    return (shared, int(_crossing(query, known, scan) is not None))


def _join_step(query: TreePattern, known: set[int], scan: Scan) -> Step:
    shared = tuple(sorted(known & set(scan.places)))
    if shared:
        return IdJoin(scan, shared)
    crossing = _crossing(query, known, scan)
    return CrossJoin(scan) if crossing is None else StructuralJoin(scan, *crossing)


def _crossing(query: TreePattern, known: set[int], scan: Scan) -> tuple[int, int, bool] | None:
    """An ancestor and a descendant in the query, one known and one of the scan."""
    for below in range(len(query)):
        above = query.nodes[below].parent
        while above >= 0:
            if above in known and below in scan.places:
                return above, below, True
            if above in scan.places and below in known:
                return above, below, False
            above = query.nodes[above].parent
    return None


def _testable_edges(query: TreePattern, known: set[int]) -> set[int]:
    return {
        node
        for node, own in enumerate(query.nodes)
        if node in known and (own.parent in known or (own.parent < 0 and own.axis is Axis.CHILD))
    }


def _has_content(views: Sequence[TreePattern], scans: Sequence[Scan], place: int) -> bool:
    return any(
        views[scan.input].nodes[node].cont
        for scan in scans
        for node, there in enumerate(scan.places)
        if there == place
    )


def _direct_mask(query: TreePattern, views: Sequence[TreePattern], scans: Sequence[Scan]) -> int:
    """What is known without navigation; a content still provides the value of its own node."""
    mask = 0
    for scan in scans:
        view = views[scan.input]
        for node, place in enumerate(scan.places):
            mask |= attribute_mask(view, node, query, place, navigation=False)
            mask |= view.nodes[node].cont << (VAL_SHIFT + place)
    return mask


def _all_attributes(nodes: int) -> int:
    return nodes | nodes << VAL_SHIFT | nodes << CONT_SHIFT | nodes << TEST_SHIFT


def _is_tested(
    query: TreePattern, views: Sequence[TreePattern], scans: Sequence[Scan], place: int
) -> bool:
    predicate = query.nodes[place].predicate
    return any(
        views[scan.input].nodes[node].predicate == predicate
        for scan in scans
        for node, there in enumerate(scan.places)
        if there == place
    )


def _describe(plan: RewritingPlan, step: Step) -> str:
    def name(node: int) -> str:
        return f"{plan.query.nodes[node].label}#{node}"

    def view(scan: Scan) -> str:
        return str(plan.views[scan.input])

    describe: dict[type, Callable[..., str]] = {
        Scan: lambda s: f"scan {view(s)}",
        IdJoin: lambda s: f"join {view(s.scan)} on the ids of {', '.join(map(name, s.on))}",
        StructuralJoin: lambda s: (
            f"join {view(s.scan)} where {name(s.below)} is below {name(s.above)}"
        ),
        CrossJoin: lambda s: f"join {view(s.scan)} in all combinations",
        SelectEdge: lambda s: f"select {name(s.node)} by its place",
        SelectValue: lambda s: f"select {name(s.node)} by its value",
        Navigate: lambda s: f"navigate below {name(s.node)}",
    }
    return describe[type(step)](step)
