"""Join rows as one message each: by every scheme contents are DuckDB's."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from penstock import Hub
from penstock.catalog import Row
from penstock.flow.changes import Change, Op
from penstock.lab.join_rows import SCHEMES, JoinRowServer
from penstock.lab.workloads.multiway import STAR_ROWS, MultiwayWorkload
from penstock.messages import Message, Position
from penstock.sql import bind
from penstock.testing.oracle import Oracle, comparable

TABLES = {
    "r": "CREATE TABLE r (id BIGINT PRIMARY KEY, k INTEGER, a INTEGER)",
    "s": "CREATE TABLE s (id BIGINT PRIMARY KEY, k INTEGER, a INTEGER)",
    "t": "CREATE TABLE t (id BIGINT PRIMARY KEY, k INTEGER, a INTEGER)",
}
QUERIES = (
    "SELECT * FROM r JOIN s ON r.k = s.k WHERE r.a > 1 AND s.a < 4",
    "SELECT * FROM r JOIN s ON r.k = s.k WHERE r.a = 3 OR s.a IN (0, 5)",
    "SELECT * FROM r JOIN s ON r.k = s.k JOIN t ON s.k = t.k WHERE r.a > 1 AND t.a < 4",
    "SELECT * FROM r JOIN s ON r.k = s.k JOIN t ON s.a = t.a AND r.k = t.k WHERE t.k < 2",
    "SELECT * FROM r JOIN r AS r2 ON r.k = r2.a WHERE r2.k > 0",
)


class Contents:
    """What each subscription has by one scheme."""

    def __init__(self, server: JoinRowServer) -> None:
        self.server = server
        self.rows: dict[int, dict[object, Row]] = {}

    def take(self, message: Message) -> None:
        base = self.server.shapes[message.space].base
        gone, come = set(), set()
        for point in self.server.points:
            if point.space == message.space:
                if message.upserts(point, base):
                    come.add(point.id.subscription)
                elif message.removes(point, base):
                    gone.add(point.id.subscription)
        for number in gone - come:
            self.rows.get(number, {}).pop(message.key, None)
        for number in come:
            assert message.row is not None
            self.rows.setdefault(number, {})[message.key] = message.row


@pytest.mark.parametrize("seed", range(4))
def test_every_scheme_leads_to_the_contents_that_duckdb_has(seed: int) -> None:
    random = Random(seed)
    with Hub() as hub, Oracle() as oracle:
        for sql in TABLES.values():
            hub.execute(sql)
            oracle.define(list(hub.catalog)[-1])
        queries = {number: bind(sql, hub.catalog) for number, sql in enumerate(QUERIES)}
        server = JoinRowServer.of_queries(queries)
        contents = {scheme: Contents(server) for scheme in SCHEMES}
        rows: dict[tuple[str, int], Row] = {}
        sent: Counter[str] = Counter()
        for step in range(150):
            table, number = random.choice(sorted(TABLES)), random.randrange(6)
            old = rows.pop((table, number), None)
            new = None
            if old is None or random.random() < 0.6:
                values = [random.choice((None, 0, 1, 2)), random.choice((None, *range(6)))]
                new = rows[table, number] = (number, *values)
            if new is None:
                change = Change(table, Op.DELETE, {"id": number})
            else:
                op = Op.INSERT if old is None else Op.UPDATE
                change = Change(table, op, dict(zip(("id", "k", "a"), new, strict=True)))
            oracle.apply(change)
            told = server.change(Position(step, 1), hub.catalog[table], old, new)
            for scheme, messages in told.items():
                sent[scheme] += len(messages)
                for message in messages:
                    contents[scheme].take(message)
        for scheme, one in contents.items():
            for number, sql in enumerate(QUERIES):
                found = comparable(one.rows.get(number, {}).values())
                assert found == oracle.content(sql), (scheme, sql)
        assert 0 < sent["Ref-J+"] < sent["Ref-J"]


@pytest.mark.slow
def test_each_fact_of_a_star_joins_one_row_of_each_other_table() -> None:
    workload = MultiwayWorkload(17, star=True, share=0.01)
    assert len(workload.loaded) == round(sum(STAR_ROWS.values()) * 0.01)
    server = JoinRowServer.of_queries(workload.engine.queries)
    catalog = workload.engine.catalog
    for change in workload.loaded:
        relation = catalog[change.table]
        server.load(relation, relation.store_row(change.row))
    kinds: Counter[str] = Counter()
    for change in workload.inserts(60):
        relation = catalog[change.table]
        told = server.change(Position(1, 1), relation, None, relation.store_row(change.row))
        kinds[change.table] += 1
        # One join row for each of the four signatures; rows that no fact refers to give none.
        assert len(told["Ref-J"]) == (4 if change.table == "s" else 0)
    assert kinds["s"] > kinds["r"] + kinds["t"] + kinds["u"]
