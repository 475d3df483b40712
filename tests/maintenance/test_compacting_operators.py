"""Homes whose subscriptions compute with columns, or call operators, can be compacted."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pytest

from penstock import Hub
from penstock.maintenance.compaction import compact
from penstock.storage import Home
from tests.operators.conftest import calls
from tests.operators.evaluating import Call

__all__ = ["calls"]


@pytest.mark.parametrize("condition", ["n + 1 > 3", "isOdd(n)"])
def test_contents_stay(condition: str, tmp_path: Path, calls: Counter[Call]) -> None:
    with Hub(tmp_path / "home") as hub:
        hub.execute("CREATE OPERATOR isOdd AS 'tests.operators.samples:is_odd'")
        hub.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT)")
        gone = hub.subscribe(f"SELECT id FROM t WHERE {condition} AND id > 0")
        number = hub.subscribe(f"SELECT id FROM t WHERE {condition}").id
        for i in range(6):
            hub.insert("t", {"id": i, "n": i})
        hub.unsubscribe(gone)
        before = hub.subscription(number).content()
    compact(Home.open(tmp_path / "home"), lambda _what: nullcontext(lambda _done, _total: None))
    with Hub(tmp_path / "home") as hub:
        assert hub.subscription(number).content() == before
        hub.delete("t", {"id": 5})
        kept = [row for row in before if row != {"id": 5}]
        assert hub.subscription(number).content() == kept
        assert set(calls.values()) <= {1}
