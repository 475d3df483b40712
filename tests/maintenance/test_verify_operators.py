"""`verify` of contents that call operators: DuckDB knows each group of predicates as a function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import Hub
from penstock.maintenance.findings import Severity
from penstock.maintenance.verification import verify
from penstock.operators import operator
from penstock.storage import Home
from tests.maintenance.test_verify import silent
from tests.operators.evaluating import Call, in_process
from tests.operators.plugins.misbehaving import BAD, N, raises
from tests.operators.samples import BINDING, PREDICATES

TABLES = (
    "CREATE TABLE t (id BIGINT PRIMARY KEY, k INTEGER, n BIGINT)",
    "CREATE TABLE u (id BIGINT PRIMARY KEY, k INTEGER, n BIGINT)",
)
QUERIES = (
    "SELECT id FROM t WHERE isOdd(n)",
    "SELECT id FROM t WHERE NOT isOdd(n) OR (isLucky(n) AND k = 1)",
    "SELECT id FROM t WHERE isOdd(n) AND k > 1 AND divisors(n, :x) AND :x BETWEEN 2 AND 4",
    "SELECT id FROM t a WHERE divisors(n, :x) AND :x > 2 OR k = 0 AND divisors(n, 5)",
    "SELECT t.id, u.id FROM t JOIN u ON t.k = u.k AND isLucky(u.n) WHERE isOdd(t.n) OR t.n < 2",
    "SELECT id, n * 2 AS twice FROM t WHERE n / k > 1 AND isOdd(n)",
)


@pytest.fixture
def calls() -> Iterator[Counter[Call]]:
    with in_process() as counted:
        yield counted


def declared(hub: Hub) -> None:
    """Where other processes find them."""
    for one in (*PREDICATES, *BINDING):
        place = f"tests.operators.samples:{one.function.__name__}"
        hub.execute(f"CREATE OPERATOR {one.name} AS '{place}'")


@pytest.fixture
def home(tmp_path: Path, calls: Counter[Call]) -> Home:
    with Hub(tmp_path / "home") as hub:
        declared(hub)
        for sql in TABLES:
            hub.execute(sql)
        early = [hub.subscribe(sql) for sql in QUERIES]
        for number in range(12):
            for table in "tu":
                row = {"id": number, "k": number % 4, "n": None if number == 7 else number}
                hub.insert(table, row)
        late = [hub.subscribe(sql) for sql in QUERIES]
        for one, other in zip(early, late, strict=True):
            assert sorted(map(str, one.content())) == sorted(map(str, other.content()))
            assert one.content()
    return Home.open(tmp_path / "home")


def test_all_contents_are_compared(home: Home) -> None:
    before = _files(home)
    verdict = verify(home, silent)
    assert verdict.findings == []
    assert len(verdict.compared) == 2 * len(QUERIES)
    assert _files(home) == before


def _files(home: Home) -> list[str]:
    """SQLite's journals left out: they last as long as a connection that nobody uses any more."""
    names = [path.name for path in home.path.rglob("*")]
    return sorted(name for name in names if not name.endswith(("-shm", "-wal")))


def test_a_row_that_should_not_be_there_is_found(home: Home) -> None:
    """As if an operator had said something else to whoever computed the contents."""
    where = "penstock.maintenance.operator_functions.OperatorFunctions._function"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where, lambda _self, _one: lambda _given: False)
        verdict = verify(home, silent)
    assert verdict.has(Severity.DIFFERENCE)
    assert len(verdict.findings) == len(verdict.compared)


def test_a_missing_operator_is_named(home: Home) -> None:
    where = "penstock.registry.operator_runtime.load_operators"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where, lambda _reference: [])
        verdict = verify(home, silent)
    assert not verdict.has_problems
    assert verdict.compared == []
    assert any("isLucky" in finding.what for finding in verdict.findings)


def test_another_version_and_rows_left_out_are_no_damage(
    tmp_path: Path, calls: Counter[Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    @operator("raises", [N], version="2")
    def opposite(n: int) -> bool:
        return n == BAD

    with Hub(tmp_path / "home") as hub:
        hub.execute(TABLES[0])
        hub.execute("CREATE OPERATOR raises AS 'tests.operators.plugins.misbehaving:raises'")
        for number in (1, BAD):
            hub.insert("t", {"id": number, "n": number})
        hub.subscribe("SELECT id FROM t WHERE raises(n)")
    home = Home.open(tmp_path / "home")
    assert verify(home, silent).findings == []  # it still fails
    with monkeypatch.context() as patch:
        patch.setattr(raises, "function", lambda _: True)
        (left_out,) = verify(home, silent).findings
        assert left_out.severity is Severity.REMARK
        assert "failed on rows" in left_out.what
    with Hub(tmp_path / "home", operators=[opposite]):
        pass
    monkeypatch.setattr("tests.operators.plugins.misbehaving.raises", opposite)
    (earlier,) = verify(home, silent).findings
    assert earlier.severity is Severity.REMARK
    assert "earlier versions of raises" in earlier.what
