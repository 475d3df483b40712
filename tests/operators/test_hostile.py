"""Operators and declarations that should not exist: refused by name, or one row's failure; a home
that has met them opens and goes on."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock import Hub
from penstock.cli.main import app
from penstock.errors import ChangeError, OperatorError, PenstockError
from penstock.operators import Operator
from penstock.registry import Registry
from penstock.storage import Home
from tests.operators.plugins import hostile
from tests.operators.samples import is_odd

TABLE = "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT)"


def test_a_declaration_that_nobody_calls_keeps_nobody_out(tmp_path: Path) -> None:
    """Its name is part of every text that has a FROM."""
    path = tmp_path / "home"
    with Hub(path) as hub:
        hub.execute(TABLE)
        for name in ("f", "o", "t", "SEL"):
            hub.execute(f"CREATE OPERATOR {name} (a BIGINT)")
        hub.register_operator(is_odd)
        hub.subscribe("SELECT id FROM t WHERE n > 0 OR id = 5")
        hub.subscribe("SELECT id FROM t WHERE isOdd(n) OR n + 1 > 7")
        gone = hub.subscribe("SELECT id FROM t WHERE f(n)")
        hub.unsubscribe(gone)
        hub.insert("t", {"id": 1, "n": 1})
    with Hub(path, operators=[is_odd]) as hub:
        hub.insert("t", {"id": 2, "n": 2})
        assert [len(hub.subscription(one).content()) for one in hub.subscriptions()] == [2, 1]
    with Registry(Home.open(path)) as registry:
        assert registry.operators_in_use() == ["isOdd"]
    with pytest.raises(OperatorError, match="isOdd is called by subscriptions"):
        Hub(path)


@pytest.mark.slow
@pytest.mark.parametrize("number", hostile.REPLIES)
def test_whatever_a_worker_process_says_is_checked(tmp_path: Path, number: int) -> None:
    with Hub(tmp_path / "home") as hub:
        hub.execute(TABLE)
        hub.register_operator(hostile.speaks_for_itself)
        asking = hub.subscribe("SELECT id FROM t WHERE speaksForItself(n)")
        plain = hub.subscribe("SELECT id FROM t")
        for one in (number, 100, 101):
            with suppress(ChangeError):
                hub.insert("t", {"id": one, "n": one})
        assert len(asking.content()) == len(plain.content()) == 3 - len(hub.quarantine())
        assert all("speaksForItself" in event.primary for event in hub.quarantine())
        assert all(len(event.detail) < 10_000 for event in hub.quarantine())
    with Hub(tmp_path / "home", operators=[hostile.speaks_for_itself]) as hub:
        hub.insert("t", {"id": 200, "n": 200})


def test_constants_are_refused_in_whatever_way_an_operator_does_it() -> None:
    with Hub() as hub:
        hub.execute(TABLE)
        for one in (hostile.raises_when_asked, hostile.exits_when_asked):
            hub.register_operator(one)
            with pytest.raises(OperatorError, match="does not take these constants") as refused:
                hub.subscribe(f"SELECT id FROM t WHERE {one.name}(n, 5)")
            str(refused.value).encode()
        hub.insert("t", {"id": 1, "n": 1})


@pytest.mark.parametrize(
    "kind",
    [hostile.WithoutName, hostile.WithoutVersion, hostile.HalfAList, hostile.NotToBeSent],
)
def test_definitions_that_cannot_be_read_or_sent(tmp_path: Path, kind: type[Operator]) -> None:
    """They are found out before anything is in the log."""
    with Hub(tmp_path / "home") as hub:
        hub.execute(TABLE)
        with pytest.raises(OperatorError, match=r"badly defined|cannot be sent"):
            hub.register_operator(kind())
        with pytest.raises(OperatorError, match=r"badly defined|cannot be sent"):
            Hub(operators=[kind()])
        with pytest.raises(PenstockError):
            hub.subscribe("SELECT id FROM t WHERE fine(n)")
        hub.insert("t", {"id": 1, "n": 1})
    with Hub(tmp_path / "home") as hub:
        assert Home.open(tmp_path / "home").log.end == 2


def test_a_module_that_ends_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ends_the_process.py").write_text("import sys\nsys.exit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    statement = "CREATE OPERATOR x AS 'ends_the_process:x'"
    with Hub() as hub, pytest.raises(OperatorError, match="cannot be imported"):
        hub.execute(statement)
    Home.create(tmp_path / "home")
    ran = CliRunner().invoke(app, ["execute", str(tmp_path / "home"), statement])
    assert ran.exit_code == 17
    assert "cannot be imported" in ran.stderr
