"""A Hub that splits queries in another way when its tables have changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import Hub, Subscription
from penstock.errors import PenstockError, SubscriptionError
from penstock.registry import replan_body
from penstock.spaces import Choice
from penstock.storage import Home, RecordKind

SQL = (
    "SELECT r.id AS r, s.id AS s, t.id AS t FROM r JOIN s ON r.k = s.k JOIN t ON s.k = t.k "
    "WHERE r.a > 1 AND s.a > 1 AND t.a > 8"
)


def insert(hub: Hub, table: str, first: int, count: int, low: int = 0) -> None:
    rows = ({"id": i, "k": i % 3, "a": low + i % (10 - low)} for i in range(first, first + count))
    hub.apply([{"table": table, "op": "insert", "row": row} for row in rows])


def prepared(hub: Hub) -> Subscription:
    for table in ("r", "s", "t"):
        hub.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, k INTEGER, a INTEGER)")
    sub = hub.subscribe(SQL)
    insert(hub, "r", 0, 12)
    insert(hub, "s", 0, 90)
    insert(hub, "t", 0, 3)
    return sub


def filtered_by(hub: Hub, sub: Subscription) -> dict[str, str]:
    change = {"table": "s", "row": {"id": 999, "k": 1, "a": 5}}
    return {one.table: one.by for one in hub.explain(sub, change).filters}


@pytest.mark.parametrize("method", ["simulation", "selective"])
def test_reoptimising_is_not_noticed(method: str) -> None:
    with Hub() as hub:
        sub = prepared(hub)
        assert filtered_by(hub, sub)["s"] == "r"  # nothing was known: the first neighbour
        before = sub.content()
        sub.notifications()
        assert sub.id in hub.reoptimise(method)
        assert filtered_by(hub, sub)["s"] == "t"
        assert hub.reoptimise(method) == {}
        assert sub.notifications() == []
        assert sub.content() == before
        hub.insert("t", {"id": 500, "k": 1, "a": 9})
        entered = [one.kind for one in sub.notifications()]
        assert len(entered) > 10
        assert set(entered) == {"insert"}


def test_what_is_known_decides_at_once() -> None:
    with Hub() as hub:
        prepared(hub)
        assert filtered_by(hub, hub.subscribe(SQL))["s"] == "t"


def test_it_happens_by_itself() -> None:
    with Hub(reoptimise_every=50) as hub:
        sub = prepared(hub)
        insert(hub, "s", 100, 50)
        assert filtered_by(hub, sub)["s"] == "t"
        hub.insert("t", {"id": 500, "k": 1, "a": 9})
        assert sub.content()


def test_it_can_be_switched_off() -> None:
    with Hub(reoptimise_every=None) as hub:
        sub = prepared(hub)
        insert(hub, "s", 100, 500)
        assert filtered_by(hub, sub)["s"] == "r"


def test_a_home_remembers(tmp_path: Path) -> None:
    with Hub(tmp_path / "home") as hub:
        sub = prepared(hub)
        hub.reoptimise()
        number, plan = sub.id, filtered_by(hub, sub)
        hub.insert("t", {"id": 500, "k": 1, "a": 9})
        content = sub.content()
    with Hub(tmp_path / "home") as hub:
        again = hub.subscription(number)
        assert filtered_by(hub, again) == plan
        assert again.content() == content


def test_explain_says_how_a_query_is_split() -> None:
    with Hub() as hub:
        sub = prepared(hub)
        hub.reoptimise()
        text = str(hub.explain(sub, {"table": "s", "row": {"id": 999, "k": 1, "a": 5}}))
        assert "s is sent if it joins t with 9 <= a (s.k = t.k), cost " in text
        assert "next best: r with 2 <= a, cost " in text


def test_what_does_not_fit_is_refused() -> None:
    with Hub() as hub:
        sub = prepared(hub)
        with pytest.raises(SubscriptionError, match="none of the query"):
            hub.replan(sub, ((Choice(2, ()), Choice(0, ()), Choice(1, ())),))
        with pytest.raises(PenstockError, match="unknown method magic"):
            hub.reoptimise("magic")


def test_another_way_for_nobody_changes_nothing(tmp_path: Path) -> None:
    """The subscription may be one that this release cannot bind."""
    with Hub(tmp_path / "home") as hub:
        sub = prepared(hub)
        home = Home.open(tmp_path / "home")
        home.log.append([(RecordKind.REPLAN, replan_body(999, ()))])
        hub.insert("t", {"id": 500, "k": 1, "a": 9})
        assert sub.content()
