"""Why a change reaches a subscription that calls operators."""

from __future__ import annotations

from collections import Counter

from penstock import Hub
from tests.operators.evaluating import Call
from tests.operators.samples import BINDING, PREDICATES


def test_explanations_say_what_operators_say(calls: Counter[Call]) -> None:
    with Hub() as hub:
        for one in (*PREDICATES, *BINDING):
            hub.register_operator(one)
        hub.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, k INTEGER, n BIGINT)")
        where = "isOdd(n) AND k > 1 AND divisors(n, :x) AND :x > 2"
        made = hub.subscribe(f"SELECT id FROM t WHERE {where}")
        joined = hub.subscribe("SELECT a.id FROM t a JOIN t b ON a.k = b.k WHERE isOdd(b.n)")
        hub.insert("t", {"id": 1, "k": 2, "n": 3})
        enters = hub.explain(made, {"table": "t", "op": "insert", "row": {"id": 2, "k": 2, "n": 9}})
        assert enters.reaches
        assert "✓ (isodd(n)) = TRUE   (is TRUE)" in str(enters)
        leaves = hub.explain(made, {"table": "t", "op": "update", "row": {"id": 1, "n": 4}})
        assert leaves.verdict == "reaches: rows leave the content"
        assert "(isodd(n)) = TRUE   (is FALSE)" in str(leaves)
        stays = hub.explain(made, {"table": "t", "op": "insert", "row": {"id": 3, "k": 1, "n": 9}})
        assert not stays.reaches
        even = {"table": "t", "op": "insert", "row": {"id": 4, "k": 2, "n": 4}}
        assert hub.explain(joined, even).reaches  # it joins row 1, which is odd
        assert set(calls.values()) == {1}
