"""From a rewriting to an executable plan: structural joins, selections and navigation.

A plan takes the results of views for one document and gives the results of the query, without the
document. Each *scan* reads a view's rows through one embedding, so its cells become cells of query
nodes; scans are joined on the ids of the nodes they share, or by the structure that the query asks
for; *navigation* evaluates the rest of the query inside a content; *selections* test edges and
values that no view has tested.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from penstock.errors import PlanError
from penstock.views.documents import NodeId, parse_document
from penstock.views.evaluation import Cell, ResultRow, matches
from penstock.views.patterns import Axis, PatternNode, TreePattern
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

Partial: TypeAlias = tuple[Cell | None, ...]
"""A row while it is put together: a cell per query node, or None where it is not known yet."""


@dataclass(frozen=True, slots=True)
class Scan:
    """Read the rows of an input; `places[i]` is the query node of the view's node i."""

    input: int
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class IdJoin:
    """Join with a scan: equal ids at nodes that both know."""

    scan: Scan
    on: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StructuralJoin:
    """Join with a scan: its node lies below (or above) a node that is known, at any depth."""

    scan: Scan
    above: int
    below: int
    above_is_known: bool


@dataclass(frozen=True, slots=True)
class CrossJoin:
    """Join with a scan that nothing connects yet."""

    scan: Scan


@dataclass(frozen=True, slots=True)
class SelectEdge:
    """Keep rows where a node lies below its parent as the query asks."""

    node: int


@dataclass(frozen=True, slots=True)
class SelectValue:
    """Keep rows where a node's value passes the query's predicate."""

    node: int


@dataclass(frozen=True, slots=True)
class Navigate:
    """Evaluate the part of the query below a node inside that node's content."""

    node: int


Step: TypeAlias = Scan | IdJoin | StructuralJoin | CrossJoin | SelectEdge | SelectValue | Navigate


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
        rows: list[Partial] = []
        tables = [list(one) for one in inputs]
        for step in self.steps:
            rows = _run_step(self.query, step, rows, tables)
        found = {_output(self.query, row) for row in rows}
        return sorted(found, key=lambda row: [cell.id.pre for cell in row])


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
            known |= set(_nodes_below(query, node))
            missing &= ~below
    steps += [SelectEdge(node) for node in sorted(_testable_edges(query, known) - tested)]
    steps += [
        SelectValue(node)
        for node, own in enumerate(query.nodes)
        if own.predicate is not None and not _is_tested(query, views, scans, node)
    ]
    return RewritingPlan(query, tuple(views), tuple(steps))


def _chosen_scans(query: TreePattern, views: Sequence[TreePattern]) -> list[Scan]:
    """Embeddings that together cover the query: one per view, more where one does not suffice."""
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


def _nodes_below(query: TreePattern, node: int) -> list[int]:
    found = []
    for child in query.children[node]:
        found += [child, *_nodes_below(query, child)]
    return found


def _direct_mask(query: TreePattern, views: Sequence[TreePattern], scans: Sequence[Scan]) -> int:
    """What is known without navigation; a content still has the value of its own node."""
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


def _run_step(
    query: TreePattern, step: Step, rows: list[Partial], tables: Sequence[Sequence[ResultRow]]
) -> list[Partial]:
    if isinstance(step, Scan):
        return _scanned(query, step, tables)
    if isinstance(step, IdJoin):
        return _id_join(rows, _scanned(query, step.scan, tables), step.on)
    if isinstance(step, StructuralJoin):
        return _structural_join(rows, _scanned(query, step.scan, tables), step)
    if isinstance(step, CrossJoin):
        others = _scanned(query, step.scan, tables)
        return [_merged(one, two) for one in rows for two in others]
    if isinstance(step, SelectEdge):
        return [row for row in rows if _edge_holds(query.nodes[step.node], row, step.node)]
    if isinstance(step, SelectValue):
        return [row for row in rows if _value_holds(query.nodes[step.node], row[step.node])]
    return [found for row in rows for found in _navigated(query, row, step.node)]


def _scanned(
    query: TreePattern, scan: Scan, tables: Sequence[Sequence[ResultRow]]
) -> list[Partial]:
    found: set[Partial] = set()
    for row in tables[scan.input]:
        cells: list[Cell | None] = [None] * len(query)
        for place, cell in zip(scan.places, row, strict=True):
            other = cells[place]
            if other is not None and other.id != cell.id:
                break
            cells[place] = _union(other, cell)
        else:
            found.add(tuple(cells))
    return list(found)


def _id_join(
    rows: Sequence[Partial], others: Sequence[Partial], on: Sequence[int]
) -> list[Partial]:
    by_ids: dict[tuple[NodeId, ...], list[Partial]] = {}
    for row in others:
        by_ids.setdefault(_ids(row, on), []).append(row)
    return [_merged(row, other) for row in rows for other in by_ids.get(_ids(row, on), ())]


def _structural_join(
    rows: Sequence[Partial], others: Sequence[Partial], step: StructuralJoin
) -> list[Partial]:
    """Sorted by document order, the rows below a node are a slice."""
    uppers, lowers = (rows, others) if step.above_is_known else (others, rows)
    ordered = sorted(lowers, key=lambda row: _id(row, step.below).pre)
    starts = [_id(row, step.below).pre for row in ordered]
    found = []
    for upper in uppers:
        node = _id(upper, step.above)
        for lower in ordered[bisect_right(starts, node.pre) : bisect_left(starts, node.end + 1)]:
            found.append(_merged(upper, lower))  # noqa: PERF401 - the slice is the join
    return found


def _navigated(query: TreePattern, row: Partial, node: int) -> list[Partial]:
    """A row with everything below a node, for each match inside of the node's content."""
    cell = row[node]
    assert cell is not None
    assert cell.cont is not None
    part, places = _sub_pattern(query, node)
    document = parse_document(cell.cont)
    found = []
    for match in matches(part, document):
        cells = list(row)
        for own, place, number in zip(part.nodes, places, match, strict=True):
            shifted = NodeId(
                cell.id.pre + number,
                cell.id.pre + document.ends[number],
                cell.id.level + document.levels[number],
            )
            known = cells[place]
            if known is not None and known.id != shifted:
                break
            value = document.value(number) if own.val or own.predicate else None
            content = document.content(number) if own.cont else None
            cells[place] = _union(known, Cell(shifted, value, content))
        else:
            found.append(tuple(cells))
    return found


def _sub_pattern(query: TreePattern, node: int) -> tuple[TreePattern, list[int]]:
    """The part of a query from a node down, anchored at the top; and its nodes' places."""
    places = sorted([node, *_nodes_below(query, node)])
    new = {old: place for place, old in enumerate(places)}
    nodes = [
        PatternNode(own.label, new.get(own.parent, -1), own.axis, own.predicate, own.val, own.cont)
        for own in (query.nodes[place] for place in places)
    ]
    top = nodes[0]
    nodes[0] = PatternNode(top.label, -1, Axis.CHILD, top.predicate, top.val, top.cont)
    return TreePattern(tuple(nodes)), places


def _edge_holds(own: PatternNode, row: Partial, node: int) -> bool:
    here = _id(row, node)
    if own.parent < 0:
        return own.axis is Axis.DESCENDANT or here.level == 0
    above = _id(row, own.parent)
    return above.is_parent_of(here) if own.axis is Axis.CHILD else above.is_ancestor_of(here)


def _value_holds(own: PatternNode, cell: Cell | None) -> bool:
    assert own.predicate is not None
    assert cell is not None
    return own.predicate.accepts(_value(cell))


def _value(cell: Cell) -> str:
    if cell.val is not None:
        return cell.val
    assert cell.cont is not None  # the cover has the value or the content
    return parse_document(cell.cont).text


def _output(query: TreePattern, row: Partial) -> ResultRow:
    found = []
    for own, cell in zip(query.nodes, row, strict=True):
        assert cell is not None  # the cover has the ids of all nodes
        found.append(
            Cell(cell.id, _value(cell) if own.val else None, cell.cont if own.cont else None)
        )
    return tuple(found)


def _merged(one: Partial, other: Partial) -> Partial:
    return tuple(map(_union, one, other))


def _union(one: Cell | None, other: Cell | None) -> Cell | None:
    """Everything known of a node."""
    if one is None or other is None:
        return one or other
    return Cell(
        one.id,
        other.val if one.val is None else one.val,
        other.cont if one.cont is None else one.cont,
    )


def _id(row: Partial, place: int) -> NodeId:
    cell = row[place]
    assert cell is not None
    return cell.id


def _ids(row: Partial, places: Sequence[int]) -> tuple[NodeId, ...]:
    return tuple(_id(row, place) for place in places)


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
