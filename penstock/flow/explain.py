"""Why a change does, or does not, reach a subscription: predicate by predicate.

For display, one change at a time: it reads the tables directly, so that its answer does not depend
on the code it explains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass

from penstock.catalog import Catalog, Row
from penstock.catalog.derived import base_name, shown_column
from penstock.flow.changes import Change, Op, check, row_after
from penstock.flow.document_effects import document_effects, reads_documents
from penstock.flow.effects import Effect, Failures, Tables, Version, effects
from penstock.flow.operator_values import OperatorRuntime
from penstock.flow.splitting import Filtering, filtering_text, join_text
from penstock.flow.state import RowStore
from penstock.predicates.boxes import Box, contains, describe_box
from penstock.predicates.intervals import describe, show_value
from penstock.query import Query
from penstock.sql.payload import whole


@dataclass(frozen=True, slots=True)
class Test:
    """One condition, the value it was tested on, and whether it holds."""

    condition: str
    value: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Partner:
    """The rows that join the row in another table of the query."""

    table: str
    on: str
    joining: int
    satisfying: int
    conditions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reason:
    """The tests of one version of the row at one node of one branch of the query."""

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
    """Columns that are sent separately from the rest of the row."""

    def to_dict(self) -> dict[str, object]:
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def explain(
    subscription: int,
    query: Query,
    change: Change,
    catalog: Catalog,
    rows: RowStore,
    offset: int,
    operators: Callable[[], OperatorRuntime] | None = None,
) -> Explanation:
    """Explain a change as if it came at `offset`. An insert of an existing row counts as new.

    A change reaches a subscription exactly if there would be a notification: if a row of the
    content, identified by its key, appears, disappears, or has other output values. Rows counted as
    joining are those that join the given version of the row; in a self-join it may join itself. All
    operators that the query calls are evaluated (by `operators`); failures are reported.
    """
    query, payload = whole(query, catalog)
    checked = check(change, catalog, offset)
    current = rows.get(checked.relation, checked.key)
    new: Row | None
    if checked.op is Op.INSERT:
        old, new = None, checked.row
    else:
        old, new = current, row_after(checked, current)
    reasons: list[Reason] = []
    if reads_documents(query):
        found = document_effects(query, rows, checked.relation, checked.key, (old, new), operators)
    else:
        tables = Tables(rows, checked.relation, checked.key, operators)
        for name, row in (("before", old), ("after", new)):
            if row is not None:
                reasons += _reasons(query, name, Version(query, tables, row))
        found = effects(query, tables, old, new)
    verdict = _verdict(query, checked.relation.name, found, reasons)
    shown = f"{checked.op} {checked.relation.name} {dict(change.row)}"
    judged = (shown, bool(found), verdict, tuple(reasons))
    return Explanation(subscription, query.sql, *judged, payload=payload)


_HAPPENING = {
    frozenset({Effect.ENTER}): "rows enter the content",
    frozenset({Effect.LEAVE}): "rows leave the content",
    frozenset({Effect.CHANGE}): "rows of the content change",
    frozenset({Effect.ENTER, Effect.LEAVE}): "rows enter the content, and others leave it",
    frozenset({Effect.ENTER, Effect.CHANGE}): "rows enter the content, and others change",
    frozenset({Effect.LEAVE, Effect.CHANGE}): "rows leave the content, and others change",
    frozenset(Effect): "rows enter the content, others leave it, and others change",
}


def _verdict(query: Query, table: str, found: set[Effect], reasons: Iterable[Reason]) -> str:
    if found:
        return f"reaches: {_HAPPENING[frozenset(found)]}"
    if all(base_name(node.relation.name) != table for node in query.nodes):
        return f"does not reach: the query does not read {table}"
    if any(reason.in_content for reason in reasons):
        return "does not reach: the query shows nothing of what changes"
    return "does not reach: the row takes no part in the content"


def _reasons(query: Query, name: str, version: Version) -> Iterator[Reason]:
    for number, branch in enumerate(query.branches):
        for node, place in enumerate(query.nodes):
            if version.reads_changed(node):
                row = version.row_at(node)
                assert row is not None
                failures = version.failures_at(node)
                tests = tuple(_tests(query, node, branch[node], row, failures))
                partners = tuple(_partners(query, branch, node, version))
                found = any(version.content_rows(branch, node))
                yield Reason(name, number, place.alias, tests, partners, found)


def _tests(query: Query, node: int, box: Box, row: Row, failures: Failures) -> Iterator[Test]:
    relation = query.nodes[node].relation
    for column_number, interval in box:
        column, value = relation.columns[column_number], row[column_number]
        key = None if value is None else column.type.key(value)
        shown = show_value(value, column.type)
        if column_number in failures:
            shown = f"unknown: {failures[column_number].error().primary}"
        condition = describe(interval, shown_column(relation, column_number), column.type)
        yield Test(condition, shown, interval.contains(key))


def _partners(
    query: Query, branch: tuple[Box, ...], node: int, version: Version
) -> Iterator[Partner]:
    for join in query.joins:
        if node not in (join.left, join.right):
            continue
        other = join.right if node == join.left else join.left
        there = query.nodes[other]
        joining = [row for _, row in version.joining_changed(join, other)]
        satisfying = [r for r in joining if contains(branch[other], there.relation, r)]
        conditions = tuple(describe_box(branch[other], there.relation))
        on = join_text(query, join)
        yield Partner(there.alias, on, len(joining), len(satisfying), conditions)


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
