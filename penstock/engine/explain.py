"""Why a change does, or does not, reach a subscription: predicate by predicate.

Made for people, one change at a time: it looks at the tables directly, so that its answer does not
depend on the machinery it explains.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from penstock.catalog import Catalog, Row
from penstock.engine.changes import Change, Op, check, row_after
from penstock.engine.splitting import Filtering, filtering_text, join_text
from penstock.engine.stages import RowStore
from penstock.joins import join_value
from penstock.predicates.boxes import Box, contains
from penstock.predicates.intervals import describe, show_value
from penstock.sql.payload import whole
from penstock.sql.query import Join, Query


@dataclass(frozen=True, slots=True)
class Test:
    """One condition, the value it was asked about, and whether it holds."""

    condition: str
    value: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Partner:
    """What the row meets in a table it is joined with."""

    table: str
    on: str
    joining: int
    satisfying: int
    conditions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reason:
    """How one version of the row fares at one place of one branch of the query."""

    version: str
    branch: int
    table: str
    tests: tuple[Test, ...]
    partners: tuple[Partner, ...]
    in_content: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """The verdict on one change and one subscription, and the reasons for it."""

    subscription: int
    sql: str
    change: str
    reaches: bool
    verdict: str
    reasons: tuple[Reason, ...]
    filters: tuple[Filtering, ...] = ()
    """How the query is split into semijoins."""
    payload: tuple[str, ...] = ()
    """Columns that travel apart from the rest of the row."""

    def to_dict(self) -> dict[str, object]:
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def explain(
    subscription: int, query: Query, change: Change, catalog: Catalog, rows: RowStore, offset: int
) -> Explanation:
    """Judge a change as if it came at `offset`. An insert of a row that exists is judged as new."""
    query, payload = whole(query, catalog)
    checked = check(change, catalog, offset)
    current = rows.get(checked.relation, checked.key)
    new: Row | None
    if checked.op is Op.INSERT:
        old, new = None, checked.row
    else:
        old, new = current, row_after(checked, current)
    reasons: list[Reason] = []
    for version, row in (("before", old), ("after", new)):
        if row is not None:
            reasons += _reasons(query, checked.relation.name, row, version, rows)
    was = any(reason.in_content for reason in reasons if reason.version == "before")
    will = any(reason.in_content for reason in reasons if reason.version == "after")
    verdict = _verdict(query, checked.relation.name, was, will)
    shown = f"{checked.op} {checked.relation.name} {dict(change.row)}"
    judged = (shown, was or will, verdict, tuple(reasons))
    return Explanation(subscription, query.sql, *judged, payload=payload)


def _verdict(query: Query, table: str, was: bool, will: bool) -> str:
    if all(node.relation.name != table for node in query.nodes):
        return f"does not reach: the query does not read {table}"
    return {
        (False, False): "does not reach: the row takes no part in the content",
        (False, True): "reaches: rows enter the content",
        (True, False): "reaches: rows leave the content",
        (True, True): "reaches: rows of the content change, where the query shows what changed",
    }[was, will]


def _reasons(query: Query, table: str, row: Row, version: str, rows: RowStore) -> Iterator[Reason]:
    for number, branch in enumerate(query.branches):
        for node, place in enumerate(query.nodes):
            if place.relation.name != table:
                continue
            tests = tuple(_tests(query, node, branch[node], row))
            partners = tuple(_partners(query, branch, node, row, rows))
            selected = all(test.holds for test in tests)
            found = selected and _joins(query, branch, {node: row}, rows)
            yield Reason(version, number, place.alias, tests, partners, found)


def _tests(query: Query, node: int, box: Box, row: Row) -> Iterator[Test]:
    for column_number, interval in box:
        column = query.nodes[node].relation.columns[column_number]
        value = row[column_number]
        key = None if value is None else column.type.key(value)
        yield Test(
            describe(interval, column.name, column.type),
            show_value(value, column.type),
            interval.contains(key),
        )


def _partners(
    query: Query, branch: tuple[Box, ...], node: int, row: Row, rows: RowStore
) -> Iterator[Partner]:
    for join in query.joins:
        if node not in (join.left, join.right):
            continue
        other = join.right if node == join.left else join.left
        there = query.nodes[other]
        joining = list(_matching(query, join, {node: row}, other, rows))
        satisfying = [r for r in joining if contains(branch[other], there.relation, r)]
        conditions = tuple(
            describe(i, there.relation.columns[c].name, there.relation.columns[c].type)
            for c, i in branch[other]
        )
        on = join_text(query, join)
        yield Partner(there.alias, on, len(joining), len(satisfying), conditions)


def _matching(
    query: Query, join: Join, bound: dict[int, Row], other: int, rows: RowStore
) -> Iterator[Row]:
    """The rows of an unbound node that fulfil a join with a bound one."""
    here = join.left if other == join.right else join.right
    side = 0 if here == join.left else 1
    ours = tuple(pair[side] for pair in join.columns)
    theirs = tuple(pair[1 - side] for pair in join.columns)
    value = join_value(query.nodes[here].relation, ours, bound[here])
    relation = query.nodes[other].relation
    if value is not None:
        for _, row in rows.rows(relation):
            if join_value(relation, theirs, row) == value:
                yield row


def _joins(query: Query, branch: tuple[Box, ...], bound: dict[int, Row], rows: RowStore) -> bool:
    """Whether the bound rows can be completed to a row of the content."""
    if len(bound) == len(query.nodes):
        return True
    join, other = next(
        (join, other)
        for join in query.joins
        for here, other in ((join.left, join.right), (join.right, join.left))
        if here in bound and other not in bound
    )
    relation = query.nodes[other].relation
    return any(
        _joins(query, branch, {**bound, other: row}, rows)
        for row in _matching(query, join, bound, other, rows)
        if contains(branch[other], relation, row) and _agrees(query, bound, other, row)
    )


def _agrees(query: Query, bound: dict[int, Row], other: int, row: Row) -> bool:
    """Whether a row fulfils all joins between its node and the bound ones."""
    for join in query.joins:
        for here, there, side in ((join.left, join.right, 0), (join.right, join.left, 1)):
            if here in bound and there == other:
                ours = tuple(pair[side] for pair in join.columns)
                theirs = tuple(pair[1 - side] for pair in join.columns)
                value = join_value(query.nodes[here].relation, ours, bound[here])
                if value is None or value != join_value(query.nodes[there].relation, theirs, row):
                    return False
    return True


def _lines(explanation: Explanation) -> Iterator[str]:
    yield f"{explanation.change}"
    yield f"{explanation.verdict} (subscription {explanation.subscription})"
    if explanation.payload:
        names = " and ".join(explanation.payload)
        yield f"  {names}: sent apart from the row, and only to those who do not have it"
    several = len({reason.branch for reason in explanation.reasons}) > 1
    for reason in explanation.reasons:
        branch = f", branch {reason.branch + 1}" if several else ""
        yield f"  {reason.table} {reason.version} the change{branch}:"
        for test in reason.tests:
            yield f"    {'✓' if test.holds else '✗'} {test.condition}   (is {test.value})"
        for partner in reason.partners:
            mark = "✓" if partner.satisfying else "✗"
            wanted = f" with {' and '.join(partner.conditions)}" if partner.conditions else ""
            yield (
                f"    {mark} {partner.on}: {partner.joining} rows of {partner.table} join, "
                f"{partner.satisfying} of them{wanted}"
            )
    has_choice = any(one.alternatives for one in explanation.filters)
    for one in explanation.filters if has_choice else ():
        branch = f"branch {one.branch + 1}: " if one.branch or several else ""
        yield f"  {branch}{filtering_text(one)}"
