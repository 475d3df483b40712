"""What is remembered of operators: rows that were left out, and which version spoke when."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from penstock import Hub, Subscription
from penstock.cli.main import app
from penstock.errors import ChangeError, SubscriptionError
from penstock.operators import BIGINT, Argument, operator
from penstock.operators.journal import (
    Journal,
    LeftOut,
    MemoryJournal,
    add_version,
    find_version,
)
from penstock.operators.journal_file import FileJournal, journal_of
from penstock.registry import Registry, rows_left_out
from penstock.storage import Home, RecordKind
from penstock.testing import LocalPipeline
from tests.operators.evaluating import Call

N = [Argument("n", BIGINT)]
TABLE = "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT, other BIGINT)"
JOINED = "SELECT t.id FROM t JOIN u ON t.n = u.n WHERE isOdd(t.n)"
ALONE = "SELECT id FROM t WHERE isOdd(n)"


@operator("isOdd", N, version="1")
def is_odd(n: int) -> bool:
    if n == 13:
        raise ValueError("unlucky")
    return n % 2 == 1


@operator("isOdd", N, version="2")
def is_even(n: int) -> bool:
    return n % 2 == 0


def ids(subscription: Subscription) -> list[int]:
    return sorted({int(str(row["id"])) for row in subscription.content()})


def fill(hub: Hub, numbers: list[int]) -> None:
    for number in numbers:
        hub.insert("t", {"id": number, "n": number})


@pytest.fixture
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Journal:
    return MemoryJournal() if request.param == "memory" else FileJournal(tmp_path / "journal")


@pytest.mark.parametrize("journal", ["memory", "file"], indirect=True)
class TestJournal:
    def test_versions(self, journal: Journal) -> None:
        assert journal.version_at("f", 7) is None
        journal.note_version("f", "1", 5)
        journal.note_version("f", "1", 9)
        assert journal.version_at("f", 0) is None  # the first one is from the beginning
        journal.note_version("f", "2", 10)
        journal.note_version("f", "3", None)  # one is known
        assert [journal.version_at("f", n) for n in (0, 9, 10, 11)] == ["1", "1", None, None]
        journal.note_version("f", "1", 20)
        assert [journal.version_at("f", n) for n in (9, 10, 19, 20)] == ["1", "2", "2", None]
        journal.close()

    def test_rows(self, journal: Journal) -> None:
        rows = [LeftOut(n % 2, "t", bytes([n]), f"id = {n}", "it failed") for n in range(4)]
        journal.note_left_out(rows)
        journal.note_left_out(rows)
        assert journal.left_out() == sorted(rows)
        journal.forget_left_out("u", [b"\0"])
        journal.forget_left_out("t", [b"\0", b"\1"])
        assert journal.left_out() == sorted(rows[2:])
        journal.close()


def test_a_journal_that_is_damaged_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b"no database at all, but longer than its header would be" * 40)
    made = FileJournal(path)
    made.note_left_out([LeftOut(1, "t", b"k", "id = 1", "it failed")])
    assert len(made.left_out()) == 1
    made.close()


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abc"))), st.integers(0, 40))
def test_the_version_at_an_offset(steps: list[tuple[int, str]], offset: int) -> None:
    """Against a list with an entry for every offset."""
    known: list[tuple[int, str]] = []
    at: list[str] = []
    for more, version in steps:
        at += [at[-1] if at else version] * more
        add_version(known, version, len(at))
        at.append(version)
    expected = at[offset] if offset < len(at) else None
    found = find_version(known, offset)
    assert found == expected or (found is None and expected in (None, at[-1]))


def test_rows_that_are_left_out_are_seen_and_come_back(calls: Counter[Call]) -> None:
    with Hub() as hub:
        hub.register_operator(is_odd)
        hub.execute(TABLE)
        fill(hub, [1, 2, 13])
        narrow = hub.subscribe(f"{ALONE} AND id < 5")
        odd = hub.subscribe(ALONE)
        assert ids(odd) == [1]
        (said,) = hub.left_out(odd)
        assert "id = 13" in said
        assert "operator isOdd raised an error" in said
        assert hub.left_out(narrow) == []
        with pytest.raises(ChangeError, match="isOdd"):
            hub.update("t", {"id": 13, "other": 1})
        assert len(hub.left_out(odd)) == 1
        hub.update("t", {"id": 13, "n": 15})
        assert hub.left_out(odd) == []
        assert ids(odd) == [1, 13]


def made_home(path: Path, sql: str) -> tuple[Home, int]:
    home = Home.create(path)
    with Registry(home) as registry:
        registry.define(TABLE)
        registry.define("CREATE TABLE u (n BIGINT PRIMARY KEY)")
        registry.define("CREATE OPERATOR isOdd AS 'tests.operators.test_journal:is_odd'")
        events = [{"table": "t", "op": "insert", "row": {"id": n, "n": n}} for n in (1, 2, 13)]
        events += [{"table": "u", "op": "insert", "row": {"n": n}} for n in (1, 2, 13)]
        home.log.append([(RecordKind.EVENT, json.dumps(one).encode()) for one in events])
        number = registry.subscribe(sql).id
    return home, number


@pytest.mark.parametrize("gear", ["plain", "fast"])
@pytest.mark.parametrize("sql", [ALONE, JOINED])
def test_rows_that_a_pipeline_leaves_out(
    sql: str, gear: str, tmp_path: Path, calls: Counter[Call]
) -> None:
    with mock.patch.dict(os.environ, PENSTOCK_GEAR=gear):
        home, number = made_home(tmp_path / "home", sql)
        LocalPipeline(home).run()
    runner = CliRunner()
    status = json.loads(runner.invoke(app, ["status", str(home.path), "--json"]).output)
    assert status["lacking_rows"] == 1
    assert "left out" in runner.invoke(app, ["status", str(home.path), "--once"]).output
    listed = runner.invoke(app, ["quarantine", str(home.path), "list", "--json"]).output
    (lacking,) = json.loads(listed)["left_out"]
    assert (lacking["subscription"], lacking["row"]) == (number, "id = 13")
    with mock.patch.object(is_odd, "function", lambda n: n % 2 == 1):  # it works by now
        again = runner.invoke(app, ["quarantine", str(home.path), "replay", str(number)])
        assert again.exit_code == 0, again.output
        LocalPipeline(home).run()
    with Registry(home) as registry, Hub(home.path) as hub:
        (new,) = registry.subscriptions()
        assert rows_left_out(home.path, registry) == {}
        assert ids(hub.subscription(new.id)) == [1, 13]
        with pytest.raises(SubscriptionError, match="nothing to replay"):
            registry.resubscribe(new.id)


@pytest.mark.parametrize("sql", [ALONE, JOINED])
def test_a_hub_that_is_opened_with_another_version(
    sql: str, tmp_path: Path, calls: Counter[Call]
) -> None:
    """What was published rests on what the first version said."""
    home = tmp_path / "home"
    with Hub(home, operators=[is_odd]) as hub:
        hub.execute(TABLE)
        hub.execute("CREATE TABLE u (n BIGINT PRIMARY KEY)")
        hub.register_operator(is_odd)
        first = hub.subscribe(sql)
        for number in range(1, 7):
            hub.insert("u", {"n": number})
        fill(hub, [1, 2, 3, 4])
        assert ids(first) == [1, 3]
    with Hub(home, operators=[is_even]) as hub:
        odd = hub.subscription(first.id)
        assert ids(odd) == [1, 3]
        hub.delete("t", {"id": 1})
        assert ids(odd) == [3]
        hub.update("t", {"id": 3, "other": 1})
        hub.update("t", {"id": 4, "other": 1})
        fill(hub, [5, 6])
        assert ids(odd) == [4, 6]
    counted = sum(calls.values())
    with Hub(home, operators=[is_even]) as hub:  # two versions have spoken
        odd = hub.subscription(first.id)
        assert sum(calls.values()) == counted, "nobody is asked again"
        hub.delete("t", {"id": 4})
        hub.update("t", {"id": 2, "other": 1})
        assert ids(odd) == [2, 6]


def test_a_version_that_changes_while_a_hub_runs_counts_after_reopening(
    tmp_path: Path, calls: Counter[Call]
) -> None:
    home = tmp_path / "home"
    with Hub(home) as hub:
        hub.execute(TABLE)
        hub.register_operator(is_odd)
        first = hub.subscribe(ALONE)
        fill(hub, [1, 2])
        hub.register_operator(is_even)
        fill(hub, [3, 4])
        assert ids(first) == [1, 4]
    with Hub(home, operators=[is_even]) as hub:
        odd = hub.subscription(first.id)
        for gone in (1, 4):
            hub.delete("t", {"id": gone})
        assert ids(odd) == []
        assert calls["isOdd", "2", (1,)] == 0


def test_a_lost_journal_is_no_harm(tmp_path: Path, calls: Counter[Call]) -> None:
    home = tmp_path / "home"
    with Hub(home) as hub:
        hub.execute(TABLE)
        hub.register_operator(is_odd)
        first = hub.subscribe(ALONE)
        fill(hub, [1, 2])
    for path in home.glob("operator*.db*"):
        path.unlink()
    with Hub(home, operators=[is_odd]) as hub:
        hub.delete("t", {"id": 1})
        assert ids(hub.subscription(first.id)) == []
    assert journal_of(home).version_at("isodd", 0) is None
