"""Leases: who ends them, when they can be renewed, and that replays agree."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import Hub
from penstock.errors import HomeError, SubscriptionError
from penstock.flow.changes import Change, Op
from penstock.flow.events import encode_change
from penstock.maintenance.databases import Logged, check_databases
from penstock.pipeline.source import LogReader
from penstock.registry import Lease, Leases, Registry, rebuild, withdrawn
from penstock.storage import Home, RecordKind
from penstock.testing import LocalPipeline
from tests.examples import examples
from tests.pipeline.telling import content

SQL = "SELECT * FROM stocks"


class FakeClock:
    """Stands still until somebody moves it."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home.create(tmp_path / "home")
    with Registry(home) as registry:
        registry.define("CREATE TABLE stocks (id INT PRIMARY KEY, per INT)")
    return home


def has_run_out(lease: Lease, now: float) -> bool:
    return now * 1000 >= lease.expires_ms


def publish(home: Home, number: int) -> None:
    """A row for each of two ranges that have nothing in common."""
    rows = [{"id": 2 * number + per, "per": per} for per in (1, 2)]
    bodies = [encode_change(Change("stocks", Op.INSERT, row)) for row in rows]
    home.log.append([(RecordKind.EVENT, body) for body in bodies])


@pytest.mark.parametrize("seconds", [0, 0.999, -1, 366 * 86_400 + 1, float("nan"), float("inf")])
def test_limits(seconds: float) -> None:
    with pytest.raises(SubscriptionError, match="a lease cannot last"):
        Lease.starting(0, seconds)


Move: TypeAlias = tuple[str, int, int]
moves = st.lists(
    st.tuples(st.sampled_from(["lease", "end", "time"]), st.integers(0, 4), st.integers(1, 9)),
    max_size=30,
)


@given(moves)
def test_leases_that_have_run_out_are_found(moves: list[Move]) -> None:
    leases, plain, now = Leases(), dict[int, Lease](), 0.0
    for move, number, seconds in moves:
        if move == "lease":
            plain[number] = Lease.starting(now, seconds)
            leases.note(number, plain[number])
        elif move == "end":
            plain.pop(number, None)
            leases.note(number, None)
        else:
            now += seconds / 2
        for _ in range(2):  # asking changes nothing
            expected = {n for n, one in plain.items() if has_run_out(one, now)}
            assert sorted(leases.run_out(now)) == sorted(expected)


def test_a_lease_ends_by_a_record(home: Home, clock: FakeClock) -> None:
    registry = Registry(home, clock=clock)
    kept = registry.subscribe(SQL).id
    leased = registry.subscribe(SQL, lease_seconds=10).id
    clock.now += 9.999
    assert registry.expire() == []
    clock.now += 0.001
    assert registry.expire() == [leased]
    assert registry.expire() == []
    (record,) = home.log.read(0, None, frozenset({RecordKind.WITHDRAW}))
    assert (withdrawn(record.body).id, withdrawn(record.body).reason) == (leased, "lease")
    assert [one.id for one in registry.subscriptions()] == [kept]
    assert [(one.id, one.ended_by) for one in registry.ended()] == [(leased, "lease")]
    for call in (lambda: registry.renew([leased]), lambda: registry.withdraw(leased)):
        with pytest.raises(SubscriptionError, match=f"the lease of subscription {leased} ran out"):
            call()


def test_renewing_just_in_time_and_even_late(home: Home, clock: FakeClock) -> None:
    registry = Registry(home, clock=clock)
    number = registry.subscribe(SQL, lease_seconds=10).id
    clock.now += 9
    (renewed,) = registry.renew([number])
    assert renewed.lease == Lease.starting(clock.now, 10)
    clock.now += 9
    assert registry.expire() == []
    clock.now += 100  # nobody has looked meanwhile
    assert registry.renew([number], 20)[0].lease == Lease.starting(clock.now, 20)
    assert registry.expire() == []
    clock.now += 20
    assert registry.expire() == [number]


def test_a_renewal_by_a_slow_clock_takes_nothing_away(home: Home, clock: FakeClock) -> None:
    registry = Registry(home, clock=clock)
    number = registry.subscribe(SQL, lease_seconds=100).id
    before = Lease.starting(clock.now, 100)
    clock.now -= 60  # of another machine, or set back since
    for seconds in (None, 100, 120):
        (renewed,) = registry.renew([number], seconds)
        assert renewed.lease == Lease(seconds or 100, before.expires_ms)
    (shorter,) = registry.renew([number], 50)
    assert shorter.lease == Lease.starting(clock.now, 50), "asked for"


def test_a_hub_with_a_slow_clock(clock: FakeClock) -> None:
    with Hub(clock=clock) as hub:
        hub.execute("CREATE TABLE stocks (id INT PRIMARY KEY, per INT)")
        subscription = hub.subscribe(SQL, lease_seconds=100)
        expires = Lease.starting(clock.now, 100).expires
        clock.now -= 60
        assert hub.renew(subscription) == expires
        assert hub.renew(subscription, 150) == expires
        assert hub.renew(subscription, 170) == expires + timedelta(seconds=10)
        assert hub.renew(subscription, 50) == Lease.starting(clock.now, 50).expires


@given(st.lists(st.tuples(st.integers(-500, 500), st.none() | st.integers(1, 300)), max_size=8))
def test_a_renewal_shortens_only_if_asked_to(moves: list[tuple[int, int | None]]) -> None:
    lease = Lease.starting(1_000_000, 100)
    for now, seconds in moves:
        renewed = lease.renewed(1_000_000 + now, seconds)
        if seconds is None or seconds >= lease.seconds:
            assert renewed.expires_ms >= lease.expires_ms
            wanted = Lease.starting(1_000_000 + now, seconds or lease.seconds)
            assert renewed.expires_ms in (wanted.expires_ms, lease.expires_ms)
        else:
            assert renewed == Lease.starting(1_000_000 + now, seconds)
        lease = renewed


USABLE_CLOCKS = {"1969": -86_400.0, "1900": -2_208_988_800.0, "2300": 10_413_792_000.0}


@pytest.mark.parametrize("year", USABLE_CLOCKS)
def test_clocks_of_other_ages(tmp_path: Path, year: str) -> None:
    clock = FakeClock()
    clock.now = USABLE_CLOCKS[year]
    with Hub(tmp_path / "home", clock=clock) as hub:
        hub.execute("CREATE TABLE stocks (id INT PRIMARY KEY, per INT)")
        leased, plain = hub.subscribe(SQL, lease_seconds=10), hub.subscribe(SQL)
        assert hub.renew(plain, 20).year in (int(year), int(year) + 1)
        clock.now += 9
        hub.insert("stocks", {"id": 1, "per": 1})
        assert hub.renew(leased) == Lease.starting(clock.now, 10).expires
        clock.now += 11
        assert hub.expire() == [leased.id, plain.id]
    with Registry(Home.open(tmp_path / "home"), clock=clock) as registry:
        number = registry.subscribe(SQL, lease_seconds=5).id
        clock.now += 5
        assert registry.expire() == [number]


@pytest.mark.parametrize("says", [1e18, -1e18, 1e300, float("inf"), float("nan"), 253_402_300_000])
def test_clocks_that_cannot_be_used(home: Home, clock: FakeClock, says: float) -> None:
    registry = Registry(home, clock=clock)
    with Hub(clock=clock) as hub:
        hub.execute("CREATE TABLE stocks (id INT PRIMARY KEY, per INT)")
        subscription = hub.subscribe(SQL, lease_seconds=10)
        clock.now = says
        for use in (
            lambda: hub.renew(subscription),
            hub.expire,
            lambda: registry.subscribe(SQL, lease_seconds=10),
            registry.expire,
        ):
            with pytest.raises(HomeError, match="clock cannot be used") as caught:
                use()
            assert "set the clock" in caught.value.hint


def test_a_clock_that_the_system_cannot_read(home: Home) -> None:
    """As Python says it beyond the year 2262."""

    def broken() -> float:
        raise OverflowError("timestamp too large to convert to C _PyTime_t")

    with pytest.raises(HomeError, match="clock cannot be used"):
        Registry(home, clock=broken).expire()


@pytest.mark.parametrize("expires_ms", [1 << 62, -(1 << 62), 253_402_300_800_000])
def test_a_lease_of_any_record_can_be_shown(expires_ms: int) -> None:
    assert 1 <= Lease(10, expires_ms).expires.year <= 9999


def test_all_are_renewed_or_none(home: Home, clock: FakeClock) -> None:
    registry = Registry(home, clock=clock)
    first, plain = (registry.subscribe(SQL, lease_seconds=s).id for s in (10, None))
    end = home.log.end
    with pytest.raises(SubscriptionError, match="has no lease to renew"):
        registry.renew([first, plain])
    with pytest.raises(SubscriptionError, match="there is no subscription 99"):
        registry.renew([first, 99], 5)
    assert home.log.end == end
    assert [one.lease for one in registry.renew([first, plain], 5)] == [
        Lease.starting(clock.now, 5)
    ] * 2


def test_a_replay_needs_no_clock(home: Home, clock: FakeClock) -> None:
    registry = Registry(home, clock=clock)
    numbers = [one.id for one in registry.subscribe_many([SQL] * 3, lease_seconds=10)]
    clock.now += 5
    registry.renew(numbers[:2], 100)
    clock.now += 6
    assert registry.expire() == numbers[2:]
    known = registry.subscriptions(), registry.ended()
    rebuild(home)
    again = Registry(home)
    assert (again.subscriptions(), again.ended()) == known
    end = home.log.end
    assert list(check_databases(home, Logged.of(home, end), end, home)) == []


def contents(home: Home, numbers: list[int]) -> list[int]:
    """How many rows each subscription has heard of."""
    with Registry(home) as registry:
        found = [content(home, registry, number) for number in numbers]
    return [0 if one is None else one.total() for one in found]


def test_a_pipeline_ends_leases_between_batches(home: Home, clock: FakeClock) -> None:
    registry = Registry(home, clock=clock)
    long, short = (
        registry.subscribe(f"{SQL} WHERE per = {per}", lease_seconds=seconds).id
        for per, seconds in ((1, 100), (2, 10))
    )
    pipeline = LocalPipeline(home, clock=clock)
    publish(home, 1)
    pipeline.run()
    clock.now += 10
    publish(home, 2)
    pipeline.run()  # the record is behind the event, and counts from the next batch on
    publish(home, 3)
    pipeline = LocalPipeline(home, clock=clock)  # another process goes on
    pipeline.run()
    assert contents(home, [long, short]) == [3, 2]
    clock.now += 1000  # nobody is there when the other one runs out
    assert contents(home, [long]) == [3]
    LocalPipeline(home, clock=clock).run()
    assert Registry(home).subscriptions() == []


@pytest.mark.parametrize("once", [False, True])
def test_the_source_of_the_pipeline_ends_them(home: Home, clock: FakeClock, once: bool) -> None:
    there = Registry(home).subscribe(SQL, lease_seconds=1000).id
    gone = Registry(home, clock=clock).subscribe(SQL, lease_seconds=10).id  # long ago
    reader = LogReader(str(home.path), 100, 1)
    if once:
        reader.prepareForTriggerAvailableNow()
    offset = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    assert offset["position"] == gone + 2
    assert [one.id for one in Registry(home).ended()] == [gone]
    assert [one.id for one in Registry(home).subscriptions()] == [there]


def test_a_hub_ends_and_renews_leases(tmp_path: Path, clock: FakeClock) -> None:
    with Hub(tmp_path / "home", clock=clock) as hub:
        hub.execute("CREATE TABLE stocks (id INT PRIMARY KEY, per INT)")
        long, short = (hub.subscribe(SQL, lease_seconds=s) for s in (100, 10))
        clock.now += 9
        assert hub.renew(short) == Lease.starting(clock.now, 10).expires
        clock.now += 9
        hub.insert("stocks", {"id": 1, "per": 1})
        assert len(short.content()) == 1
        clock.now += 1
        hub.insert("stocks", {"id": 2, "per": 1})  # whatever is done, leases are looked at
        with pytest.raises(SubscriptionError, match="ran out"):
            short.content()
        with pytest.raises(SubscriptionError, match="ran out"):
            hub.renew(short)
        assert len(long.content()) == 2
    clock.now += 1000
    with Hub(tmp_path / "home", clock=clock) as hub:
        assert hub.subscriptions() == {}
        with pytest.raises(SubscriptionError, match="ran out"):
            hub.renew(long.id)


def test_a_hub_in_memory(clock: FakeClock) -> None:
    with Hub(clock=clock) as hub:
        hub.execute("CREATE TABLE stocks (id INT PRIMARY KEY, per INT)")
        plain = hub.subscribe(SQL)
        with pytest.raises(SubscriptionError, match="has no lease to renew"):
            hub.renew(plain)
        hub.renew(plain, 5)
        clock.now += 5
        assert hub.expire() == [plain.id]
        assert hub.expire() == []


@settings(max_examples=examples(12))
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["subscribe", "renew", "renew", "withdraw", "run", "hub", "once"]),
            st.integers(0, 3),
            st.integers(1, 9),
        ),
        max_size=12,
    )
)
def test_whoever_looks_ends_what_has_run_out(
    tmp_path_factory: pytest.TempPathFactory, moves: list[Move]
) -> None:
    """A dictionary says who must be there; time goes on between two moves."""
    home, clock = Home.create(tmp_path_factory.mktemp("homes") / "home"), FakeClock()
    registry = Registry(home, clock=clock)
    registry.define("CREATE TABLE stocks (id INT PRIMARY KEY, per INT)")
    pipeline, there = LocalPipeline(home, clock=clock), dict[int, Lease | None]()
    for move, which, seconds in moves:
        clock.now += seconds / 2
        chosen = sorted(there)[which % len(there)] if there else None
        if move == "subscribe" or chosen is None:
            lease_seconds = seconds if which else None
            stored = registry.subscribe(SQL, lease_seconds=lease_seconds)
            there[stored.id] = Lease.starting(clock.now, seconds) if lease_seconds else None
        elif move == "renew":
            registry.renew([chosen], seconds)
            there[chosen] = Lease.starting(clock.now, seconds)
        elif move == "withdraw":
            registry.withdraw(chosen)
            del there[chosen]
        else:
            if move == "hub":
                with Hub(home.path, clock=clock):
                    pass
            else:
                pipeline = LocalPipeline(home, clock=clock) if move == "once" else pipeline
                pipeline.run()
            there = {
                n: one for n, one in there.items() if not (one and has_run_out(one, clock.now))
            }
        registry.catch_up()
        assert {one.id: one.lease for one in registry.subscriptions()} == there
    registry.rebuild()
    assert {one.id: one.lease for one in registry.subscriptions()} == there
