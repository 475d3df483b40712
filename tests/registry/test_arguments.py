"""Whatever a caller hands to a registry: an error of Penstock's and nothing recorded, or a record
that everybody can read."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import Hub
from penstock.client import Initial
from penstock.errors import HomeError, PenstockError, SubscriptionError
from penstock.registry import (
    Lease,
    Registry,
    SubscriberCommands,
    rebuild,
    renew_body,
    renewed,
    replan_body,
    replan_of,
    subscribe_body,
    subscribed,
    withdraw_body,
    withdrawn,
)
from penstock.spaces import Choice
from penstock.storage import Home, MemoryHome, Record, RecordKind
from penstock.storage.quarantine import list_quarantine, replay
from tests.examples import examples
from tests.odd_values import ODD_VALUES, check_refusal, odd_calls, public_methods

SELECTION = "SELECT symbol FROM stocks WHERE per < 20"
JOIN = "SELECT stocks.id, rating FROM stocks JOIN reviews USING (symbol)"

SOUND: dict[str, Callable[[], Any]] = {
    "sql": lambda: SELECTION,
    "statements": lambda: [SELECTION],
    "subscription": lambda: 1,
    "ids": lambda: [1],
    "low": lambda: 0,
    "high": lambda: 3,
    "most": lambda: 3,
    "now": lambda: 0.0,
    "chosen": lambda: None,
}
SOUND_OF: dict[str, dict[str, Callable[[], object]]] = {
    "define": {"sql": lambda: "CREATE TABLE t (id INT PRIMARY KEY)"},
    "replan": {"chosen": lambda: {3: ((Choice(1, ()), Choice(0, ())),)}},
}


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("odd") / "home"
    with Registry(Home.create(path)) as registry:
        registry.define("CREATE TABLE stocks (id BIGINT PRIMARY KEY, symbol VARCHAR, per DOUBLE)")
        registry.subscribe(SELECTION, lease_seconds=86_400)
        registry.define("CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol VARCHAR, rating INT)")
        registry.subscribe(JOIN)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", public_methods(Registry))
def test_every_method(pattern: Path, tmp_path: Path, name: str) -> None:
    path = Path(shutil.copytree(pattern, tmp_path / "home"))
    home = Home.open(path)
    with Registry(home) as registry:
        if isinstance(inspect.getattr_static(Registry, name), property):
            assert getattr(registry, name) is not None
            return
        function = getattr(registry, name)
        for _, arguments in odd_calls(function, SOUND | SOUND_OF.get(name, {})):
            end = home.log.end
            try:
                function(**arguments)
            except PenstockError as error:
                check_refusal(error)
                assert home.log.end == end, "refused, and yet recorded"
    check_readable(home)


@pytest.mark.parametrize("name", public_methods(SubscriberCommands))
def test_every_method_for_subscribers(pattern: Path, tmp_path: Path, name: str) -> None:
    """Whatever they show in the place of a ticket, they have none of another's subscription."""
    home = Home.open(Path(shutil.copytree(pattern, tmp_path / "home")))
    with Registry(home) as registry:
        function = getattr(SubscriberCommands(registry), name)
        sound, end = SOUND | {"tickets": lambda: {1: "x"}}, home.log.end
        for _, arguments in odd_calls(function, sound):
            try:
                function(**arguments)
            except PenstockError as error:
                check_refusal(error)
            assert name == "subscribe" or home.log.end == end, arguments
    check_readable(home)


def check_readable(home: Home) -> None:
    """By those who apply records to the databases, and by those who replay them."""
    with Registry(home) as registry:
        applied = (registry.subscriptions(include_broken=True), registry.ended())
    assert not [one for one in applied[0] if one.broken]
    rebuild(home)
    with Registry(home) as registry:
        assert (registry.subscriptions(include_broken=True), registry.ended()) == applied
    with Hub(home.path) as hub:
        assert list(hub.subscriptions()) == [one.id for one in applied[0]]


@pytest.mark.parametrize("number", [1.0, True, Decimal(1), np.float64(1), "1", None, -1, 2**63])
def test_ids_that_only_look_like_one(tmp_path: Path, number: Any) -> None:
    home = tmp_path / "home"
    with Hub(home) as hub:
        hub.execute("CREATE TABLE stocks (id BIGINT PRIMARY KEY, per DOUBLE)")
        hub.subscribe("SELECT * FROM stocks", lease_seconds=60)
        for call in (hub.unsubscribe, hub.renew, hub.subscription):
            with pytest.raises(SubscriptionError, match="id of a subscription"):
                call(number)
        with pytest.raises(SubscriptionError, match="id of a subscription"):
            hub.replan(number, ())
    with Hub(home) as hub:
        assert list(hub.subscriptions()) == [1]
        hub.unsubscribe(np.int64(1))  # type: ignore[arg-type]
    with Hub(home) as hub:
        assert not hub.subscriptions()


@pytest.mark.parametrize("odd", ODD_VALUES)
def test_bodies_are_read_before_they_are_written(odd: str) -> None:
    """Of each kind of record, with one odd member: refused, or read back as it was meant."""
    make = ODD_VALUES[odd]
    lease = Lease(60.0, 1)
    bodies: list[tuple[Callable[[], bytes], Callable[[bytes], object]]] = [
        (lambda: withdraw_body(make()), withdrawn),  # type: ignore[arg-type]
        (lambda: withdraw_body(1, make()), withdrawn),  # type: ignore[arg-type]
        (lambda: renew_body(make(), lease), renewed),  # type: ignore[arg-type]
        (lambda: renew_body(1, Lease(make(), 1)), renewed),  # type: ignore[arg-type]
        (lambda: renew_body(1, Lease(1.0, make())), renewed),  # type: ignore[arg-type]
        (lambda: replan_body(make(), ()), _replanned),  # type: ignore[arg-type]
        (lambda: replan_body(1, ((Choice(make(), ()),),)), _replanned),  # type: ignore[arg-type]
        (lambda: subscribe_body(make()), subscribed),  # type: ignore[arg-type]
        (lambda: subscribe_body("x", make()), subscribed),  # type: ignore[arg-type]
        (lambda: subscribe_body("x", None, None, make()), subscribed),  # type: ignore[arg-type]
        (lambda: subscribe_body("x", None, None, Initial.NONE, Lease(make(), 1)), subscribed),  # type: ignore[arg-type]
    ]
    for write, read in bodies:
        try:
            body = write()
        except PenstockError as error:
            check_refusal(error)
        else:
            read(body)


def _replanned(body: bytes) -> object:
    return replan_of(Record(0, RecordKind.REPLAN, body))


_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
_ANYTHING = st.recursive(
    _LEAVES | st.decimals() | st.characters(categories=["Cs"]),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(_LEAVES, inner),
    max_leaves=5,
)


@settings(max_examples=examples(200))
@given(_ANYTHING, _ANYTHING, _ANYTHING, _ANYTHING)
def test_any_arguments_whatsoever(one: Any, two: Any, three: Any, four: Any) -> None:
    """Either an error and nothing appended, or a record that every reader reads."""
    home = MemoryHome()
    with Registry(home) as registry:
        registry.define("CREATE TABLE stocks (id BIGINT PRIMARY KEY, per DOUBLE)")
        registry.subscribe("SELECT * FROM stocks", lease_seconds=60)
        calls: list[Callable[[], object]] = [
            lambda: registry.subscribe("SELECT * FROM stocks", owner=one),
            lambda: registry.subscribe("SELECT * FROM stocks", lease_seconds=two),
            lambda: registry.subscribe(
                "SELECT * FROM stocks", one, chosen=two, initial=three, lease_seconds=four
            ),
            lambda: registry.renew(one, two),
            lambda: registry.renew([1], two),
            lambda: registry.replan(three),
            lambda: registry.replan({1: four}),
            lambda: registry.define(one),
            lambda: registry.withdraw(four),
        ]
        for call in calls:
            end = home.log.end
            try:
                call()
            except PenstockError as error:
                check_refusal(error)
                assert home.log.end == end
        registry.rebuild()
        assert registry.applied == home.log.end


@pytest.mark.parametrize("odd", ODD_VALUES)
def test_replaying_what_is_not_there(tmp_path: Path, odd: str) -> None:
    home = Home.create(tmp_path / "home")
    home.log.append([(RecordKind.EVENT, b"no event"), (RecordKind.EVENT, b"neither")])
    with Hub(home.path):
        pass
    end = home.log.end
    for offsets in (ODD_VALUES[odd](), [ODD_VALUES[odd]()]):
        try:
            replay(home, offsets)  # type: ignore[arg-type]
        except PenstockError as error:
            check_refusal(error)
            assert home.log.end == end
        end = home.log.end
    assert len(list(list_quarantine(home))) == 2


@pytest.mark.parametrize("says", [float("nan"), float("inf"), -1e300, 1e300, "now", None, True])
def test_a_clock_that_says_no_time(says: Any) -> None:
    with Registry(MemoryHome(), clock=lambda: says) as registry:
        registry.define("CREATE TABLE stocks (id BIGINT PRIMARY KEY)")
        with pytest.raises(HomeError, match="clock"):
            registry.subscribe("SELECT * FROM stocks", lease_seconds=60)
