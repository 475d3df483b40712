"""Executes the steps of a rewriting on the results of views for one document."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from penstock.documents.document import NodeId, parse_document
from penstock.documents.evaluation import Cell, ResultRow, matches
from penstock.documents.patterns import Axis, PatternNode, TreePattern, nodes_below
from penstock.views.rewriting_steps import (
    CrossJoin,
    IdJoin,
    Scan,
    SelectEdge,
    SelectValue,
    Step,
    StructuralJoin,
)

Partial: TypeAlias = tuple[Cell | None, ...]
"""A partial row: a cell per query node, or None where it is not known yet."""


def run_steps(
    query: TreePattern, steps: Sequence[Step], inputs: Sequence[Iterable[ResultRow]]
) -> list[ResultRow]:
    """The query's rows for one document, from those of the views, in document order."""
    rows: list[Partial] = []
    tables = [list(one) for one in inputs]
    for step in steps:
        rows = _run_step(query, step, rows, tables)
    found = {_output(query, row) for row in rows}
    return sorted(found, key=lambda row: [cell.id.pre for cell in row])


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
    """In document order, the rows below a node are a slice."""
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
    """A row extended by everything below a node, for each match inside the node's content."""
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
    """The part of a query from a node down, anchored at the top, and the positions of its nodes."""
    places = sorted([node, *nodes_below(query, node)])
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
    """The union of two cells of a node."""
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
