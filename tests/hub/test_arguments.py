"""Whatever a caller hands to a Hub or to a Subscription: an error of Penstock's and nothing done,
or something that the home can be opened with afterwards."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from penstock import Hub, Subscription
from penstock.errors import PenstockError, SubscriptionError
from penstock.maintenance.verification import verify
from penstock.registry import rebuild
from penstock.storage import Home
from tests.odd_values import ODD_VALUES, check_refusal, odd_calls, public_methods

JOIN = "SELECT stocks.id, rating FROM stocks JOIN reviews USING (symbol) WHERE per < 20"
SELECTION = "SELECT symbol FROM stocks WHERE per < 20"

SOUND: dict[str, Callable[[], Any]] = {
    "sql": lambda: SELECTION,
    "table": lambda: "stocks",
    "row": lambda: {"id": 5, "symbol": "E", "per": 5.5},
    "key": lambda: {"id": 1},
    "changes": lambda: [{"table": "stocks", "row": {"id": 6, "symbol": "F", "per": 5.5}}],
    "change": lambda: {"table": "stocks", "row": {"id": 6, "symbol": "F", "per": 5.5}},
    "subscription": lambda: 1,
    "number": lambda: 1,
    "decomposition": lambda: None,
    "cursor": lambda: 0,
}
SOUND_OF = {"execute": {"sql": lambda: "CREATE TABLE t (id INT PRIMARY KEY)"}}

# They are for the Hub alone, which hands them its own messages.
OF_THE_HUB = {"deliver", "end"}


def standing_clock() -> float:
    """A lease of a second, which some of the values ask for, must not run out on a slow machine."""
    return 1_700_000_000.0


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Subscription 1 has the id that True and 1.0 equal; it has a lease. 3 is a join."""
    path = tmp_path_factory.mktemp("odd") / "home"
    with Hub(path, clock=standing_clock) as hub:
        hub.execute("CREATE TABLE stocks (id BIGINT PRIMARY KEY, symbol VARCHAR, per DOUBLE)")
        hub.subscribe(SELECTION, lease_seconds=86_400)
        hub.execute("CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol VARCHAR, rating INT)")
        hub.subscribe(JOIN)
        hub.insert("stocks", {"id": 1, "symbol": "A", "per": 10.0})
        hub.insert("reviews", {"id": 1, "symbol": "A", "rating": 3})
    return path


class Opened:
    """A Hub on a copy of the pattern, made anew when a call has changed something."""

    def __init__(self, pattern: Path, directory: Path) -> None:
        self._pattern = pattern
        self._path = directory / "home"
        self._open()

    def _open(self) -> None:
        shutil.copytree(self._pattern, self._path)
        self.hub = Hub(self._path, clock=standing_clock)

    def try_call(self, function: Callable[..., object], arguments: dict[str, Any]) -> None:
        end = Home(self._path).log.end
        try:
            function(**arguments)
        except PenstockError as error:
            check_refusal(error)
            assert Home(self._path).log.end == end, "refused, and yet appended"
        if Home(self._path).log.end != end:
            self.check()
            shutil.rmtree(self._path)
            self._open()

    def check(self) -> None:
        """The home opens, for every reader, with what was there before."""
        before = contents(self.hub)
        self.hub.close()
        with Hub(self._path, clock=standing_clock) as again:
            assert contents(again) == before
        rebuild(Home.open(self._path))
        with Hub(self._path, clock=standing_clock) as again:
            assert contents(again) == before

    def verify(self) -> None:
        """The files are whole, and contents are what DuckDB says."""
        self.hub.close()
        assert not verify(Home.open(self._path), quietly).has_problems


def contents(hub: Hub) -> dict[int, list[str]]:
    """Of those that have a content: what they hold."""
    found = {}
    for number in hub.subscriptions():
        with suppress(SubscriptionError):
            found[number] = sorted(map(repr, hub.subscription(number).content()))
    return found


@contextmanager
def quietly(_what: str) -> Iterator[Callable[[int, int], None]]:
    yield lambda _done, _all: None


@pytest.fixture
def opened(pattern: Path, tmp_path: Path) -> Opened:
    return Opened(pattern, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", public_methods(Hub))
def test_every_method_of_a_hub(opened: Opened, name: str) -> None:
    if isinstance(inspect.getattr_static(Hub, name), property):
        assert getattr(opened.hub, name) is not None
        return
    sound = SOUND | SOUND_OF.get(name, {})
    for _, arguments in odd_calls(getattr(opened.hub, name), sound):
        opened.try_call(getattr(opened.hub, name), arguments)
    opened.check()
    opened.verify()


@pytest.mark.parametrize("name", sorted(set(public_methods(Subscription)) - OF_THE_HUB))
def test_every_method_of_a_subscription(opened: Opened, name: str) -> None:
    live = opened.hub.subscription(3)
    if isinstance(inspect.getattr_static(Subscription, name), property):
        assert getattr(live, name) is not None
        return
    getattr(live, name)()
    for _, arguments in odd_calls(getattr(live, name), SOUND):
        opened.try_call(getattr(live, name), arguments)
    opened.check()


def test_a_hub_that_cannot_be_opened_gives_the_home_back(pattern: Path, tmp_path: Path) -> None:
    path = shutil.copytree(pattern, tmp_path / "home")
    with pytest.raises(PenstockError, match="clock") as refused:
        Hub(path, clock=lambda: "noon")  # type: ignore[arg-type,return-value]
    with Hub(path, clock=standing_clock) as hub:
        assert list(hub.subscriptions()) == [1, 3]
    assert refused.tb  # which kept the first one alive


@pytest.mark.parametrize("odd", ODD_VALUES)
def test_opening_a_hub(odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in inspect.signature(Hub).parameters:
        try:
            given: dict[str, Any] = {name: ODD_VALUES[odd]()}
            with Hub(**given) as hub:
                hub.execute("CREATE TABLE t (id INT PRIMARY KEY)")
                hub.insert("t", {"id": 1})
                hub.subscribe("SELECT * FROM t", lease_seconds=10)
                hub.expire()
        except PenstockError as error:
            check_refusal(error)
