"""Homes that give every subscription a lease unless it asks for another."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from penstock import Hub
from penstock.errors import HomeError
from penstock.flow.faults import SetAside
from penstock.registry import Registry
from penstock.storage import Home
from tests.registry.test_leases import SQL, FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def test_a_default_of_the_home(tmp_path: Path, clock: FakeClock) -> None:
    with Hub(tmp_path / "home", clock=clock, default_lease_seconds=60) as hub:
        hub.execute("CREATE TABLE stocks (id INT PRIMARY KEY, per INT)")
        hub.subscribe(SQL)
    with Hub(tmp_path / "home", clock=clock) as hub:  # a setting of the home, not of the Hub
        hub.subscribe(SQL)
    home = Home.open(tmp_path / "home")
    assert home.default_lease_seconds == 60
    with Registry(home, clock=clock) as registry:
        registry.subscribe(SQL)
        registry.subscribe(SQL, lease_seconds=5)
        registry.subscribe(SQL, lease_seconds=math.inf)
        (suspended,) = registry.subscribe_many([SQL], lease_seconds=math.inf)
        registry.set_aside([SetAside(suspended.id, "KeyError: 7")])
        assert registry.resubscribe(suspended.id).lease is None
        lengths = [one.lease and one.lease.seconds for one in registry.subscriptions()]
    assert lengths == [60, 60, 60, 5, None, None]


def test_a_default_in_memory(clock: FakeClock) -> None:
    with Hub(clock=clock, default_lease_seconds=60) as hub:
        hub.execute("CREATE TABLE stocks (id INT PRIMARY KEY, per INT)")
        ends = [hub.subscribe(SQL).id, hub.subscribe(SQL, lease_seconds=math.inf).id]
        clock.now += 60
        assert hub.expire() == ends[:1]


@pytest.mark.parametrize("seconds", [0, 0.5, 367 * 86_400, float("nan"), float("inf"), "1d", True])
def test_defaults_that_cannot_be(tmp_path: Path, seconds: float) -> None:
    for make in (
        lambda: Home.create(tmp_path / "home", default_lease_seconds=seconds),
        lambda: Hub(tmp_path / "home", default_lease_seconds=seconds),
        lambda: Hub(default_lease_seconds=seconds),
    ):
        with pytest.raises(HomeError, match="lease"):
            make()
    assert not (tmp_path / "home").exists()


def test_a_default_that_somebody_has_written_there(tmp_path: Path) -> None:
    marker = Home.create(tmp_path / "home", default_lease_seconds=60).path / "penstock.json"
    marker.write_text(marker.read_text().replace("60.0", "0.001"))
    with pytest.raises(HomeError, match=r"a lease cannot last 0\.001 seconds"):
        Home.open(tmp_path / "home")
