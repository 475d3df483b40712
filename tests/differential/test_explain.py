"""`explain` foretells what a change would do: it is held against a twin and against the Hub.

The twin enumerates every combination of rows. DuckDB says whether what the query returns differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings

from penstock import Hub, Subscription
from penstock.catalog import Row, RowKey
from penstock.catalog.derived import base_name
from penstock.client.tuples import JoinKey
from penstock.flow.changes import Change
from penstock.flow.derived import rows_of
from penstock.flow.effects import Binding, Version
from penstock.flow.explain import Explanation
from penstock.predicates.boxes import contains
from penstock.spaces import join_value
from penstock.sql import Query, bind
from penstock.testing.oracle import Oracle
from penstock.testing.scenario import Define, Publish, Subscribe
from tests.differential.stories import (
    COMPUTED,
    COMPUTED_JOINS,
    HOT_KEYS,
    MIXED,
    MULTI_WAY,
    SELECTIONS,
    SELF_JOINS,
    Shape,
    Story,
    stories,
)
from tests.examples import examples

FEW = Shape(tables=(2, 3), nodes=(2, 3))

Shown = dict[JoinKey, tuple[object, ...]]
State = dict[str, dict[RowKey, Row]]


def tables_of(hub: Hub, queries: Iterable[Query]) -> State:
    """The rows of all tables, and of all relations that the queries derive from them."""
    read = [node.relation for query in queries for node in query.nodes]
    rows = hub._processor.state.engine.rows  # keys are not to be had outside
    return {one.name: dict(rows_of(rows, one)) for one in [*hub.catalog, *read]}


def twin_content(query: Query, tables: State) -> Shown:
    """By looking at every combination of rows, one of each node."""
    nodes = query.nodes
    found: Shown = {}
    for combination in product(*(tables[node.relation.name].items() for node in nodes)):
        rows = [row for _, row in combination]
        if is_joined(query, rows) and any(
            all(map(contains, branch, (node.relation for node in nodes), rows))
            for branch in query.branches
        ):
            shown = tuple(value_shown(query, o.node, o.column, rows) for o in query.outputs)
            found[tuple(key for key, _ in combination)] = shown
    return found


def value_shown(query: Query, node: int, column: int, rows: list[Row]) -> object:
    value = rows[node][column]
    return "NaN" if value != value else value


def is_joined(query: Query, rows: list[Row]) -> bool:
    for join in query.joins:
        for a, b in join.columns:
            left = join_value(query.nodes[join.left].relation, (a,), rows[join.left])
            right = join_value(query.nodes[join.right].relation, (b,), rows[join.right])
            if left is None or left != right:
                return False
    return True


def check_counts(query: Query, said: Explanation, before: State, after: State, key: RowKey) -> None:
    """The rows that join the changed one, counted by going through the other table."""
    places = iter(said.reasons)
    for name, tables in (("before", before), ("after", after)):
        for number, branch in enumerate(query.branches):
            for node, place in enumerate(query.nodes):
                row = tables[place.relation.name].get(key)
                if base_name(place.relation.name) != said.change.split()[1] or row is None:
                    continue
                reason = next(places)
                assert (reason.version, reason.branch, reason.table) == (name, number, place.alias)
                expected = []
                for join in query.joins:
                    if node in (join.left, join.right):
                        other = join.left if node == join.right else join.right
                        relation = query.nodes[other].relation
                        side = 0 if node == join.left else 1
                        mine = join_value(place.relation, tuple(p[side] for p in join.columns), row)
                        theirs = tuple(p[1 - side] for p in join.columns)
                        joining = [
                            one
                            for one in tables[relation.name].values()
                            if mine is not None and join_value(relation, theirs, one) == mine
                        ]
                        satisfying = [r for r in joining if contains(branch[other], relation, r)]
                        expected.append((len(joining), len(satisfying)))
                assert [(one.joining, one.satisfying) for one in reason.partners] == expected
    assert next(places, None) is None


def kinds(before: Shown, after: Shown) -> set[str]:
    changed = any(before[key] != after[key] for key in before.keys() & after.keys())
    happened = {
        "enter": bool(after.keys() - before.keys()),
        "leave": bool(before.keys() - after.keys()),
        "change": changed,
    }
    return {kind for kind, happens in happened.items() if happens}


TOLD = {"insert": "enter", "delete": "leave", "update": "change"}


def foretell(story: Story) -> None:
    with Hub() as hub, Oracle() as oracle:
        subscriptions: list[Subscription] = []
        for step in story.steps:
            match step:
                case Define(sql):
                    hub.execute(sql)
                    oracle.define(list(hub.catalog)[-1])
                case Subscribe(_, sql):
                    subscriptions.append(hub.subscribe(sql))
                case Publish(changes):
                    for change in changes:
                        check_change(hub, oracle, subscriptions, change)
                case _:
                    pass


def check_change(
    hub: Hub, oracle: Oracle, subscriptions: list[Subscription], change: Change
) -> None:
    said = []
    for one in subscriptions:
        one.notifications()
        said.append((hub.explain(one, change), oracle.content(one.sql)))
    queries = [bind(one.sql, hub.catalog) for one in subscriptions]
    before = tables_of(hub, queries)
    offset = hub.apply([change])
    oracle.apply(change)
    after = tables_of(hub, queries)
    has_key = hub.catalog[change.table].key
    number = change.row["id"] if has_key else offset
    assert isinstance(number, int)
    key = (number,)
    for one, (explained, returned) in zip(subscriptions, said, strict=True):
        query = bind(one.sql, hub.catalog)
        expected = kinds(twin_content(query, before), twin_content(query, after))
        foretold = {k for k in TOLD.values() if k in explained.verdict and explained.reaches}
        assert (explained.reaches, foretold) == (bool(expected), expected), explained
        assert {TOLD[n.kind] for n in one.notifications()} == expected
        assert explained.reaches or oracle.content(one.sql) == returned
        check_counts(query, explained, before, after, key)


@pytest.mark.slow
@settings(max_examples=examples(80))
@given(stories(SELF_JOINS))
def test_changes_of_self_joins(story: Story) -> None:
    foretell(story)


@settings(max_examples=examples(80))
@given(stories(FEW))
def test_changes_of_joins(story: Story) -> None:
    foretell(story)


@settings(max_examples=examples(60))
@given(stories(HOT_KEYS, max_steps=6))
def test_changes_under_hot_keys(story: Story) -> None:
    foretell(story)


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(stories(MULTI_WAY))
def test_changes_of_joins_of_many_tables(story: Story) -> None:
    foretell(story)


@settings(max_examples=examples(60))
@given(stories(SELECTIONS))
def test_changes_of_selections(story: Story) -> None:
    foretell(story)


@pytest.mark.slow
@settings(max_examples=examples(30))
@given(stories(COMPUTED, max_steps=8))
def test_changes_of_selections_that_compute(story: Story) -> None:
    foretell(story)


@settings(max_examples=examples(30))
@given(stories(COMPUTED_JOINS, max_steps=8))
def test_changes_of_joins_that_compute(story: Story) -> None:
    foretell(story)


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(stories(MIXED))
def test_changes_of_anything(story: Story) -> None:
    foretell(story)


@pytest.fixture
def pairs() -> Iterator[tuple[Hub, Subscription]]:
    with Hub() as hub:
        hub.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, k INTEGER, j INTEGER, note VARCHAR)")
        yield hub, hub.subscribe("SELECT x.id AS x, y.id AS y FROM t x JOIN t y ON x.k = y.j")


def test_a_row_that_joins_itself(pairs: tuple[Hub, Subscription]) -> None:
    hub, sub = pairs
    itself = {"id": 1, "k": 5, "j": 5, "note": ""}
    said = hub.explain(sub, {"table": "t", "op": "insert", "row": itself})
    assert said.verdict == "reaches: rows enter the content"
    assert [one.partners[0].joining for one in said.reasons] == [1, 1]
    hub.insert("t", itself)
    gone = hub.explain(sub, {"table": "t", "op": "delete", "row": {"id": 1}})
    assert gone.verdict == "reaches: rows leave the content"


def test_an_old_version_does_not_join_the_new_one(pairs: tuple[Hub, Subscription]) -> None:
    hub, sub = pairs
    hub.insert("t", {"id": 1, "k": 5, "j": 6, "note": ""})
    said = hub.explain(sub, {"table": "t", "op": "update", "row": {"id": 1, "k": 4, "j": 5}})
    assert said.verdict == "does not reach: the row takes no part in the content"
    assert {one.partners[0].joining for one in said.reasons} == {0}


def test_rows_of_the_content_are_replaced(pairs: tuple[Hub, Subscription]) -> None:
    hub, sub = pairs
    hub.apply([{"table": "t", "row": {"id": i, "k": i, "j": 9, "note": ""}} for i in (1, 2)])
    hub.insert("t", {"id": 3, "k": 8, "j": 1, "note": ""})
    said = hub.explain(sub, {"table": "t", "op": "update", "row": {"id": 3, "j": 2}})
    assert said.verdict == "reaches: rows enter the content, and others leave it"


def test_what_the_query_does_not_show_does_not_reach(pairs: tuple[Hub, Subscription]) -> None:
    hub, sub = pairs
    hub.insert("t", {"id": 1, "k": 5, "j": 5, "note": ""})
    said = hub.explain(sub, {"table": "t", "op": "update", "row": {"id": 1, "note": "new"}})
    assert said.verdict == "does not reach: the query shows nothing of what changes"
    assert all(one.in_content for one in said.reasons)


def test_a_large_content_is_not_gone_through(pairs: tuple[Hub, Subscription]) -> None:
    """Where one row of the content says enough, or none is needed, 27,000 are not looked at."""
    hub, _ = pairs
    hub.apply([{"table": "t", "row": {"id": i, "k": 1, "j": 1, "note": ""}} for i in range(30)])
    sub = hub.subscribe("SELECT x.id, y.note FROM t x JOIN t y ON x.k = y.j JOIN t z ON y.k = z.j")
    seen = 0

    def counted(version: Version, *args: Any) -> Iterator[Binding]:
        nonlocal seen
        for binding in content_rows(version, *args):
            seen += 1
            yield binding

    content_rows = Version.content_rows
    with mock.patch.object(Version, "content_rows", counted):
        for row in ({"id": 1, "note": "new"}, {"id": 1, "note": ""}):
            said = hub.explain(sub, {"table": "t", "op": "update", "row": row})
            assert said.reaches == bool(row["note"])
        assert hub.explain(sub, {"table": "t", "op": "delete", "row": {"id": 1}}).reaches
    assert seen < 30
