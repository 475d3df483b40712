"""Hub and registry take the same commands: the same records, and the same refusals."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any

import pytest

from penstock import Hub, PenstockError
from penstock.registry import Registry
from penstock.spaces import Choice
from penstock.storage import Home, Record

STOCKS = "CREATE TABLE stocks (id BIGINT PRIMARY KEY, symbol VARCHAR, per DOUBLE)"
REVIEWS = "CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol VARCHAR, rating INT)"
CHEAP = "SELECT symbol FROM stocks WHERE per < 20"
RATED = "SELECT stocks.id, rating FROM stocks JOIN reviews USING (symbol)"
OTHER_SPLIT = ((Choice(1, ()), Choice(0, ())),)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Twins:
    """A Hub and a registry, each with a home of its own."""

    def __init__(self, path: Path) -> None:
        self.clock = Clock()
        self.hub = Hub(path / "hub", clock=self.clock, reoptimise_every=None)
        self.registry = Registry(Home.create(path / "registry"), clock=self.clock)
        self.homes = [Home.open(path / name) for name in ("hub", "registry")]

    def check(
        self, by_hub: Callable[[Hub], Any], by_registry: Callable[[Registry], Any]
    ) -> str | None:
        """Give the same command to both; the refusal, if there is one."""
        errors: list[str | None] = []
        for command in (partial(by_hub, self.hub), partial(by_registry, self.registry)):
            try:
                command()
                errors.append(None)
            except PenstockError as error:
                errors.append(error.primary)
        hub_records, registry_records = (_without_tickets(home) for home in self.homes)
        assert hub_records == registry_records
        assert errors[0] == errors[1]
        return errors[0]


def _without_tickets(home: Home) -> list[Record]:
    """The records of a log, but for the hashes of tickets, which no two logs share."""
    return [
        replace(one, body=re.sub(rb',?"ticket_hash":"[^"]+"', b"", one.body))
        for one in home.log.read(0)
    ]


@pytest.fixture
def twins(tmp_path: Path) -> Twins:
    twins = Twins(tmp_path)
    for ddl in (STOCKS, REVIEWS):
        assert twins.check(methodcaller("execute", ddl), methodcaller("define", ddl)) is None
    return twins


def subscribe(twins: Twins, sql: str, **options: Any) -> str | None:
    many = {"chosen" if name == "decomposition" else name: one for name, one in options.items()}

    def by_registry(registry: Registry) -> object:
        if "payload" in options:
            return registry.subscribe_many([sql], **many)
        return registry.subscribe(sql, **many)

    return twins.check(lambda hub: hub.subscribe(sql, **options), by_registry)


def test_subscribing(twins: Twins) -> None:
    assert subscribe(twins, CHEAP, owner="ann") is None
    assert subscribe(twins, CHEAP, payload="symbol") is None
    assert subscribe(twins, CHEAP, initial="none", lease_seconds=60) is None
    assert subscribe(twins, RATED, initial="none") is None
    assert subscribe(twins, RATED, decomposition=OTHER_SPLIT) is None
    assert twins.homes[0].log.end == 7


@pytest.mark.parametrize(
    ("sql", "options"),
    [
        ("SELECT nothing", {}),
        (CHEAP, {"owner": ""}),
        (CHEAP, {"initial": "some"}),
        (CHEAP, {"lease_seconds": 0.5}),
        (CHEAP, {"payload": "price"}),
        (RATED, {"decomposition": ()}),
    ],
)
def test_refusals_of_subscribing(twins: Twins, sql: str, options: dict[str, Any]) -> None:
    assert subscribe(twins, sql, **options) is not None
    assert twins.homes[0].log.end == 2


def test_renewing_and_expiring(twins: Twins) -> None:
    def renew(number: int, seconds: float | None = None) -> str | None:
        return twins.check(
            lambda hub: hub.renew(number, seconds), lambda reg: reg.renew([number], seconds)
        )

    subscribe(twins, CHEAP, lease_seconds=60)
    subscribe(twins, CHEAP)
    twins.clock.now += 30
    assert renew(2) is None
    assert renew(2, 90) is None
    assert "no lease" in str(renew(3))
    assert renew(3, 10) is None
    assert twins.check(Hub.expire, Registry.expire) is None
    end = twins.homes[0].log.end
    twins.clock.now += 200
    assert twins.check(Hub.expire, Registry.expire) is None
    assert twins.homes[0].log.end == end + 2
    assert "ran out" in str(renew(2))


def test_replanning_and_withdrawing(twins: Twins) -> None:
    def withdraw(number: int) -> str | None:
        return twins.check(lambda hub: hub.unsubscribe(number), lambda reg: reg.withdraw(number))

    subscribe(twins, RATED)
    split = OTHER_SPLIT
    assert twins.check(lambda hub: hub.replan(2, split), lambda reg: reg.replan({2: split})) is None
    wrong = ((Choice(7, ()),),)
    assert twins.check(lambda hub: hub.replan(2, wrong), lambda reg: reg.replan({2: wrong}))
    assert withdraw(2) is None
    assert withdraw(99) is not None
    assert twins.homes[0].log.end == 5
