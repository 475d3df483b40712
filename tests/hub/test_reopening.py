"""A home that is opened again: the state is rebuilt, messages are not."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Hub
from penstock.flow import plain as stages
from penstock.joins.schemes import auto
from penstock.storage.message_log import MessageLog

TABLES = (
    "CREATE TABLE stocks (id BIGINT PRIMARY KEY, symbol VARCHAR, per DOUBLE, note VARCHAR)",
    "CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol VARCHAR, rating INTEGER)",
    "CREATE STREAM ticks (symbol VARCHAR, price DOUBLE)",
)
QUERIES = (
    "SELECT symbol, per FROM stocks WHERE per BETWEEN 10 AND 60",
    "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE per > 20 AND rating >= 5",
    "SELECT * FROM ticks WHERE price > 40",
    "SELECT a.id, b.id FROM stocks a JOIN stocks b USING (symbol) WHERE a.per < 50 AND b.per >= 50",
)


def fill(hub: Hub, changes: int) -> None:
    for sql in TABLES:
        hub.execute(sql)
    for sql in QUERIES:
        hub.subscribe(sql)
    hub.subscribe("SELECT * FROM stocks WHERE per < 70", payload="note")
    chance = random.Random(1)
    for number in range(changes):
        change(hub, chance, number)
    for sql in QUERIES:  # these start with rows
        hub.subscribe(sql)


def change(hub: Hub, chance: random.Random, number: int) -> None:
    row = {"id": number, "symbol": chance.choice("ABC")}
    stock = {"per": chance.randrange(100), "note": chance.choice(["long", "short"]) * 20}
    hub.insert("stocks", row | stock)
    hub.insert("reviews", row | {"rating": chance.randrange(10)})
    hub.insert("ticks", {"symbol": "A", "price": chance.randrange(100)})
    if number > 5:
        hub.upsert("stocks", {"id": chance.randrange(number), "symbol": "B"} | stock)
    if number % 4 == 3:
        hub.delete("reviews", {"id": number - 1})


class Work:
    """Calls of functions that find out whom something concerns."""

    PLACES: tuple[tuple[Any, str], ...] = (
        (stages, "selection_messages"),
        (stages.RowStage, "initial"),
        (stages.JoinStage, "initial"),
        (stages.JoinStage, "run"),
        (auto.Auto, "run"),
        (MessageLog, "read"),
    )

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: Counter[str] = Counter()
        for owner, name in self.PLACES:
            monkeypatch.setattr(owner, name, self._counted(name, getattr(owner, name)))

    def _counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*arguments: Any, **options: Any) -> Any:
            self.calls[name] += 1
            return function(*arguments, **options)

        return counting


def test_no_message_is_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Hub(tmp_path / "home") as hub:
        fill(hub, 20)
    work = Work(monkeypatch)
    with Hub(tmp_path / "home") as hub:
        assert work.calls == Counter()
        hub.insert("stocks", {"id": 1000, "symbol": "A", "per": 30, "note": ""})
        assert work.calls["run"] > 0
        assert work.calls["selection_messages"] == 1


def contents(hub: Hub) -> Iterator[Counter[str]]:
    for number in hub.subscriptions():
        yield Counter(map(str, hub.subscription(number).content()))


@pytest.mark.slow
def test_a_hub_that_is_opened_again_goes_on_like_one_that_was_not_closed(tmp_path: Path) -> None:
    with Hub() as always:
        fill(always, 12)
        with Hub(tmp_path / "home") as hub:
            fill(hub, 12)
        one, other = random.Random(2), random.Random(2)
        for number in range(100, 112):
            change(always, one, number)
            with Hub(tmp_path / "home") as hub:
                change(hub, other, number)
                assert list(contents(hub)) == list(contents(always))
                assert sorted(map(str, hub.rows("stocks"))) == sorted(
                    map(str, always.rows("stocks"))
                )
