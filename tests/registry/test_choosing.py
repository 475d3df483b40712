"""New subscriptions of a home are split as an analysis of its history suggests."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.flow.changes import Change, Op
from penstock.flow.events import encode_change
from penstock.predicates.boxes import box
from penstock.predicates.intervals import TOP, Interval, below
from penstock.registry import Registry
from penstock.registry.decomposition_choice import Analysed
from penstock.spaces import Choice, Side
from penstock.storage import Home, RecordKind
from penstock.storage.home_statistics import save_statistics
from tests.history.test_analyse import dry_analyse

SQL = (
    "SELECT * FROM r JOIN s ON r.k = s.k JOIN t ON s.k = t.k WHERE r.a > 1 AND s.a > 1 AND t.a > 8"
)
ROWS = {"r": 12, "s": 90, "t": 10}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with three tables and a subscription that was made before there were rows."""
    home = Home.create(tmp_path / "home")
    registry = Registry(home)
    for table in ROWS:
        registry.define(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, k INTEGER, a INTEGER)")
    assert registry.subscribe(SQL).decomposition is None
    for table, count in ROWS.items():
        rows = [{"id": i, "k": i % 3, "a": i % 10} for i in range(count)]
        events = [encode_change(Change(table, Op.INSERT, row)) for row in rows]
        home.log.append([(RecordKind.EVENT, event) for event in events])
    return home


def test_an_analysis_decides(home: Home) -> None:
    registry = Registry(home)
    assert registry.subscribe(SQL).decomposition is None  # nothing is known
    save_statistics(home.path, dry_analyse(home))
    stored = registry.subscribe(SQL)
    assert stored.decomposition is not None
    assert stored.decomposition[0][1] == Choice(2, (2,))
    assert Registry(home).subscription(stored.id).decomposition == stored.decomposition
    assert registry.subscribe("SELECT * FROM r WHERE a > 1").decomposition is None


def test_what_an_analysis_says(home: Home) -> None:
    known = Analysed(dry_analyse(home), Registry(home).catalog())
    assert known.rate("s") == pytest.approx(91 / 115)
    assert known.partners(Side("r", (1,)), Side("s", (1,))) == pytest.approx(30, rel=0.1)
    assert known.partners(Side("r", (2,)), Side("s", (2,))) == pytest.approx(9, rel=0.2)
    share = known.selectivity("s", box({2: Interval(below(5), TOP)}))
    assert share == pytest.approx(0.5, abs=0.1)
    assert known.row_bytes("s") == 12.0
