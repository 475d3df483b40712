"""Tickets: who has one may renew and withdraw, nobody else may, and nothing gives them away."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from hmac import compare_digest
from pathlib import Path
from time import time
from typing import Any, NamedTuple

import pytest

from penstock import Hub
from penstock.errors import SubscriptionError, TicketError
from penstock.flow.faults import SetAside
from penstock.maintenance.compaction import compact
from penstock.registry import (
    OWNER,
    Lease,
    Registry,
    SubscriberCommands,
    rebuild,
    subscribe_body,
    subscribed,
    tickets,
)
from penstock.storage import AnyHome, Home, MemoryHome, RecordKind
from tests.cli.test_earlier_homes import unpack
from tests.maintenance.test_verify import silent

STOCKS = "CREATE TABLE stocks (id INT PRIMARY KEY, per INT)"
SQL = "SELECT * FROM stocks"
WRONG = "A" * 32


class FakeClock:
    """Stands still until somebody moves it."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Door(NamedTuple):
    """One of the ways to come to a home with a ticket."""

    home: AnyHome
    clock: FakeClock
    subscribe: Callable[..., Any]
    renew: Callable[[int, Any], object]
    unsubscribe: Callable[[int, Any], object]
    expire: Callable[[], list[int]]


def through_hub(hub: Hub, home: AnyHome, clock: FakeClock) -> Door:
    return Door(
        home,
        clock,
        hub.subscribe,
        lambda number, ticket: hub.renew(number, 60, ticket=ticket),
        lambda number, ticket: hub.unsubscribe(number, ticket=ticket),
        hub.expire,
    )


def through_registry(registry: Registry, home: AnyHome, clock: FakeClock) -> Door:
    return Door(
        home,
        clock,
        registry.subscribe,
        lambda number, ticket: registry.renew([number], 60, tickets=[ticket]),
        lambda number, ticket: registry.withdraw_many([number], tickets=[ticket]),
        registry.expire,
    )


def through_service(registry: Registry, home: AnyHome, clock: FakeClock) -> Door:
    commands = SubscriberCommands(registry)
    return Door(
        home,
        clock,
        commands.subscribe,
        lambda number, ticket: commands.renew({number: ticket}, 60),
        lambda number, ticket: commands.unsubscribe({number: ticket}),
        registry.expire,
    )


@pytest.fixture(params=["hub", "hub in memory", "registry", "registry in memory", "service"])
def door(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Door]:
    """The table is record 0."""
    clock = FakeClock()
    if request.param.startswith("hub"):
        in_memory = request.param == "hub in memory"
        with Hub(None if in_memory else tmp_path / "home", clock=clock) as hub:
            hub.execute(STOCKS)
            yield through_hub(hub, hub._home, clock)
        return
    in_memory = request.param == "registry in memory"
    home = MemoryHome() if in_memory else Home.create(tmp_path / "home")
    with Registry(home, clock=clock) as registry:
        registry.define(STOCKS)
        make = through_service if request.param == "service" else through_registry
        yield make(registry, home, clock)


def refusal(call: Callable[[int, Any], object], number: int, ticket: object) -> str:
    with pytest.raises(TicketError) as caught:
        call(number, ticket)
    return str(caught.value)


def test_a_ticket_is_enough(door: Door) -> None:
    first, second = (door.subscribe(SQL, lease_seconds=10) for _ in range(2))
    assert first.ticket != second.ticket
    door.renew(first.id, first.ticket)
    door.clock.now += 30
    assert door.expire() == [second.id]
    door.unsubscribe(first.id, first.ticket)
    kinds = [record.kind for record in door.home.log.read(3)]
    assert kinds == [RecordKind.RENEW, RecordKind.WITHDRAW, RecordKind.WITHDRAW]


@pytest.mark.parametrize(
    "shown",
    [WRONG, "", "Ä" * 32, "\ud800", "x" * 3_000_000, None, 7, b"ticket", ["ticket"]],
    ids=lambda one: repr(one)[:20],
)
def test_wrong_and_missing_tickets(door: Door, shown: object) -> None:
    made = door.subscribe(SQL, lease_seconds=10)
    end = door.home.log.end
    for call in (door.renew, door.unsubscribe):
        said, *others = (refusal(call, number, shown) for number in (made.id, 0, 99))
        assert others == [said, said], "it can be told whether there is such a subscription"
        assert made.ticket not in said
        assert WRONG not in said
    assert door.home.log.end == end


def test_tickets_of_others(door: Door) -> None:
    mine, foreign = (door.subscribe(SQL, lease_seconds=10) for _ in range(2))
    cut, twice = mine.ticket[:-1], mine.ticket * 2
    end = door.home.log.end
    for call in (door.renew, door.unsubscribe):
        for shown in (foreign.ticket, cut, twice, mine.ticket.swapcase()):
            assert mine.ticket not in refusal(call, mine.id, shown)
    assert door.home.log.end == end


def test_the_owner_key_fits_all(door: Door) -> None:
    first, second = (door.subscribe(SQL, lease_seconds=10) for _ in range(2))
    key = door.home.owner_key()
    door.renew(first.id, key)
    door.unsubscribe(second.id, key)
    with pytest.raises(SubscriptionError, match="subscription 99") as caught:
        door.unsubscribe(99, key)
    assert not isinstance(caught.value, TicketError)


def test_who_has_the_ticket_is_told_how_it_ended(door: Door) -> None:
    withdrawn, expired = (door.subscribe(SQL, lease_seconds=10) for _ in range(2))
    door.unsubscribe(withdrawn.id, withdrawn.ticket)
    door.clock.now += 10
    assert door.expire() == [expired.id]
    with pytest.raises(SubscriptionError, match="ran out") as caught:
        door.renew(expired.id, expired.ticket)
    assert not isinstance(caught.value, TicketError)
    with pytest.raises(SubscriptionError, match=f"subscription {withdrawn.id}") as caught:
        door.unsubscribe(withdrawn.id, withdrawn.ticket)
    assert not isinstance(caught.value, TicketError)
    for one in (withdrawn, expired):
        refusal(door.renew, one.id, WRONG)


def test_comparing_takes_as_long_whatever_is_right(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner key and the hash are compared, by the function that does not stop at the first
    difference, also where nothing is recorded."""
    made = door.subscribe(SQL, lease_seconds=10)
    compared: list[tuple[int, int]] = []

    def compare(left: bytes, right: bytes) -> bool:
        compared.append((len(left), len(right)))
        return compare_digest(left, right)

    monkeypatch.setattr(tickets, "compare_digest", compare)
    door.renew(made.id, made.ticket)
    for number, shown in ((made.id, WRONG), (0, WRONG), (99, WRONG), (99, made.ticket)):
        refusal(door.renew, number, shown)
    assert compared == [(32, 43), (16, 16)] * 5


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home.create(tmp_path / "home")
    with Registry(home) as registry:
        registry.define(STOCKS)
    return home


def test_all_or_none(home: Home) -> None:
    registry = Registry(home)
    made = registry.subscribe_many([SQL] * 3, lease_seconds=10)
    ids, given = [one.id for one in made], [one.ticket or "" for one in made]
    end = home.log.end
    for wrong in ([given[0], WRONG, given[2]], given[::-1], given[:2], [*given, WRONG]):
        for call in (registry.renew, registry.withdraw_many):
            with pytest.raises(TicketError):
                call(ids, tickets=wrong)
    with pytest.raises(TicketError, match="number 2 of 3"):
        registry.renew(ids, tickets=[given[0], WRONG, given[2]])
    assert home.log.end == end
    registry.renew(ids, tickets=given)
    SubscriberCommands(registry).unsubscribe(dict(zip(ids, given, strict=True)))
    assert registry.subscriptions() == []


def test_a_service_cannot_act_as_the_owner_by_mistake(home: Home) -> None:
    registry = Registry(home)
    number = registry.subscribe(SQL).id
    with pytest.raises(TicketError):
        SubscriberCommands(registry).unsubscribe({number: OWNER})  # type: ignore[dict-item]
    with pytest.raises(TicketError):
        registry.withdraw_many([number], tickets=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [None, [1], "ticket", 5])
def test_tickets_come_by_subscription(home: Home, given: Any) -> None:
    with pytest.raises(TicketError, match="come by subscription"):
        SubscriberCommands(Registry(home)).unsubscribe(given)


def test_a_ticket_is_kept_nowhere(home: Home) -> None:
    with Hub(home.path) as hub:
        live = hub.subscribe(SQL)
        assert live.ticket is not None
        assert live.ticket not in repr(live)
    with Registry(home) as registry:
        made = registry.subscribe(SQL)
        found = registry.subscription(made.id)
        assert found == made
        assert found.ticket is None
        assert made.ticket is not None
        assert made.ticket not in repr(made)
        assert str(made.ticket_hash) not in repr(made)
    with Hub(home.path) as hub:
        assert hub.subscription(live.id).ticket is None
    key = home.owner_key()
    for path in home.path.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        assert live.ticket.encode() not in content
        assert made.ticket.encode() not in content
        assert (key.encode() in content) == (path.name == "owner.key")


def test_records_hold_the_hash_alone(home: Home) -> None:
    made = Registry(home).subscribe(SQL)
    (record,) = home.log.read(made.id)
    assert subscribed(record.body).ticket_hash == made.ticket_hash
    assert made.ticket_hash is not None
    assert len(made.ticket_hash) == 16
    assert (made.ticket or "").encode() not in record.body


def test_the_same_ticket_has_another_hash_in_another_home(tmp_path: Path) -> None:
    fresh = [tickets.Tickets(Home.create(tmp_path / name), lambda _: None) for name in "ab"]
    first, second = (one._hash(b"ticket") for one in fresh)
    assert first != second


def renewable(home: Home, number: int, ticket: str | None) -> bool:
    assert ticket is not None
    with Registry(home) as registry:
        registry.renew([number], 60, tickets=[ticket])
        with pytest.raises(TicketError):
            registry.renew([number], 60, tickets=[WRONG])
    return True


def test_tickets_survive_rebuilding_compaction_and_moving(home: Home, tmp_path: Path) -> None:
    with Hub(home.path) as hub:
        hub.insert("stocks", {"id": 1, "per": 1})
        made = hub.subscribe(SQL)
        for per in range(20):
            hub.update("stocks", {"id": 1, "per": per})
    assert renewable(home, made.id, made.ticket)
    rebuild(home)
    assert renewable(home, made.id, made.ticket)
    home.registry_db.unlink()
    assert renewable(home, made.id, made.ticket)
    with Hub(home.path):  # processes the renewals: only whole segments are compacted
        pass
    compact(home, silent)
    home = Home.open(home.path)
    assert home.log.compacted_to > 0
    rebuild(home)
    assert renewable(home, made.id, made.ticket)
    moved = Home.open(shutil.copytree(home.path, tmp_path / "moved"))
    assert renewable(moved, made.id, made.ticket)


def test_a_suspended_subscription_keeps_its_ticket(home: Home) -> None:
    registry = Registry(home)
    made = registry.subscribe(SQL)
    registry.set_aside([SetAside(made.id, "KeyError: 7")])
    again = registry.resubscribe(made.id)
    assert again.ticket is None
    assert renewable(home, again.id, made.ticket)


@pytest.mark.parametrize("name", ["hub", "pipeline"])
def test_homes_of_before(name: str, tmp_path: Path) -> None:
    home = Home.open(unpack(name, tmp_path))
    assert not (home.path / "owner.key").exists()
    registry = Registry(home)
    old = registry.subscriptions()[0]
    assert not (home.path / "owner.key").exists()
    assert old.ticket_hash is None
    for shown in (WRONG, "\0" * 16, "0" * 16):
        with pytest.raises(TicketError):
            registry.renew([old.id], 60, tickets=[shown])
    registry.renew([old.id], 60)
    registry.renew([old.id], 60, tickets=[home.owner_key()])
    made = registry.subscribe(registry.subscriptions()[0].sql)
    assert renewable(home, made.id, made.ticket)
    assert (home.path / "owner.key").stat().st_mode & 0o777 == 0o600
    registry.withdraw(old.id)


def test_a_hub_takes_tickets_of_records_that_its_registry_has_not_seen(home: Home) -> None:
    """As when a process that subscribes dies between the log and the registry."""
    with Hub(home.path) as hub:
        fresh = tickets.Tickets(home, lambda _: None)
        ((ticket, ticket_hash),) = fresh.issue(1)
        body = subscribe_body(SQL, lease=Lease.starting(time(), 60), ticket_hash=ticket_hash)
        number = home.log.append([(RecordKind.SUBSCRIBE, body)])
        hub.renew(number, ticket=ticket)
