"""Operators that fail in a Hub: whoever publishes is told, and everybody else goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import Hub, Subscription
from penstock.errors import ChangeError, OperatorError
from penstock.operators import FunctionOperator, operator
from tests.operators.evaluating import Call
from tests.operators.plugins import misbehaving
from tests.operators.plugins.misbehaving import BAD, N
from tests.operators.samples import is_odd

TABLE = "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT, other BIGINT)"
KINDS = {
    misbehaving.raises: "raised an error",
    misbehaving.returns_text: "returned what it does not declare",
    misbehaving.hangs: "took longer than its timeout",
    misbehaving.allocates: "needs more memory than its limit",
    misbehaving.kills_itself: "ended the process that ran it",
}


def ids(subscription: Subscription) -> list[int]:
    return sorted(int(str(row["id"])) for row in subscription.content())


@pytest.mark.slow
@pytest.mark.parametrize("one", [pytest.param(one, id=one.name) for one in KINDS])
def test_every_way_to_fail_concerns_one_event(one: FunctionOperator) -> None:
    with Hub() as hub:
        hub.register_operator(one)
        hub.execute(TABLE)
        asking = hub.subscribe(f"SELECT id FROM t WHERE {one.name}(n)")
        plain = hub.subscribe("SELECT id FROM t WHERE n > 0")
        hub.insert("t", {"id": 1, "n": 1})
        with pytest.raises(ChangeError, match=f"operator {one.name} {KINDS[one]}"):
            hub.insert("t", {"id": 2, "n": BAD})
        hub.insert("t", {"id": 3, "n": 3})
        assert ids(asking) == ids(plain) == [1, 3]
        (event,) = hub.quarantine()
        assert one.name in event.primary
        assert b'"id":2' in event.raw.replace(b" ", b"")


@pytest.fixture
def hub(calls: Counter[Call]) -> Iterator[Hub]:
    with Hub() as made:
        made.register_operator(misbehaving.raises)
        made.register_operator(is_odd)
        made.execute(TABLE)
        yield made


def test_later_changes_of_a_batch_are_as_if_the_failed_one_never_was(hub: Hub) -> None:
    asking = hub.subscribe("SELECT id, n, other FROM t WHERE raises(n)")
    hub.insert("t", {"id": 1, "n": 1, "other": 1})
    with pytest.raises(ChangeError, match="raises"):
        hub.apply(
            [
                {"table": "t", "op": "insert", "row": {"id": 2, "n": 2, "other": 0}},
                {"table": "t", "op": "update", "row": {"id": 1, "n": BAD, "other": 7}},
                {"table": "t", "op": "update", "row": {"id": 1, "other": 2}},
                {"table": "t", "op": "insert", "row": {"id": 3, "n": BAD}},
                {"table": "t", "op": "update", "row": {"id": 3, "n": 3}},
            ]
        )
    assert sorted(tuple(row.values()) for row in asking.content()) == [(1, 1, 2), (2, 2, 0)]
    assert len(hub.quarantine()) == 3  # with the update of a row that was never inserted
    hub.update("t", {"id": 1, "n": 5})
    hub.delete("t", {"id": 2})
    assert [tuple(row.values()) for row in asking.content()] == [(1, 5, 2)]


def test_a_row_that_was_there_is_left_out_until_it_can_be_evaluated(hub: Hub) -> None:
    for number in (1, BAD, 3):
        hub.insert("t", {"id": number, "n": number})
    asking = hub.subscribe("SELECT id FROM t WHERE raises(n)")
    assert ids(asking) == [1, 3]
    with pytest.raises(ChangeError, match="raises"):
        hub.update("t", {"id": BAD, "other": 1})
    hub.register_operator(_repaired())
    hub.update("t", {"id": BAD, "other": 2})
    assert ids(asking) == [1, 3, BAD]


def _repaired() -> FunctionOperator:
    @operator("raises", [N], version="2")
    def repaired(n: int) -> bool:
        return True

    return repaired


def test_events_are_replayed_with_a_new_version(tmp_path: Path, calls: Counter[Call]) -> None:
    home = tmp_path / "home"
    with Hub(home) as hub:
        hub.register_operator(misbehaving.raises)
        hub.execute(TABLE)
        asking = hub.subscribe("SELECT id FROM t WHERE raises(n)")
        with pytest.raises(ChangeError, match="raises"):
            hub.insert("t", {"id": 2, "n": BAD})
        hub.register_operator(_repaired())
        assert len(hub.quarantine()) == 1
        assert ids(asking) == []
    with Hub(home, operators=[_repaired()]) as hub:
        assert hub.rows("t") == []  # what was refused stays refused
        hub.insert("t", {"id": 2, "n": BAD})
        assert ids(hub.subscription(asking.id)) == [2]


def test_a_missing_operator_is_named(tmp_path: Path, calls: Counter[Call]) -> None:
    with Hub(tmp_path / "home") as hub:
        hub.register_operator(is_odd)
        hub.execute(TABLE)
        hub.subscribe("SELECT id FROM t WHERE isOdd(n)")
        hub.insert("t", {"id": 1, "n": 1})
    with pytest.raises(OperatorError, match="isOdd"):
        Hub(tmp_path / "home")
    with Hub(tmp_path / "home", operators=[is_odd]) as hub:
        hub.insert("t", {"id": 2, "n": 3})


def test_a_new_version_counts_from_the_next_change_of_a_row(hub: Hub, calls: Counter[Call]) -> None:
    @operator("isOdd", [N], version="2")
    def is_even(n: int) -> bool:
        return n % 2 == 0

    odd = hub.subscribe("SELECT id FROM t WHERE isOdd(n)")
    for number in range(1, 5):
        hub.insert("t", {"id": number, "n": number})
    hub.register_operator(is_even)
    assert ids(odd) == [1, 3]
    assert ids(hub.subscribe("SELECT id FROM t WHERE isOdd(n) AND id < 3")) == [1]
    hub.update("t", {"id": 1, "other": 1})
    hub.update("t", {"id": 2, "other": 1})
    assert ids(odd) == [2, 3]
    hub.delete("t", {"id": 3})
    assert ids(odd) == [2]
    assert calls["isOdd", "2", (1,)] == calls["isOdd", "2", (2,)] == 1


@pytest.mark.parametrize("name", ["lower", "count", "coalesce"])
def test_names_of_built_in_functions(name: str, hub: Hub) -> None:
    taken = operator(name, [N])(bool)
    with pytest.raises(Exception, match="built-in function"):
        hub.register_operator(taken)
    with pytest.raises(Exception, match="built-in function"):
        hub.execute(f"CREATE OPERATOR {name} (n BIGINT)")
    assert name not in hub.catalog.operators
