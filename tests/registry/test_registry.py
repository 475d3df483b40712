"""The registry: what the log says about tables and subscriptions, on disk and in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import CatalogError, CorruptionError, SqlError, SubscriptionError
from penstock.registry import (
    Registry,
    rebuild,
    subscribe_body,
    subscribed,
    withdraw_body,
)
from penstock.registry.log_changes import read_changes
from penstock.registry.registry_rows import Binder
from penstock.storage import AnyHome, Home, MemoryHome, RecordKind, RecordLog

STOCKS = "CREATE TABLE stocks (id BIGINT PRIMARY KEY, symbol VARCHAR, per DOUBLE)"
TICKS = "CREATE STREAM ticks (symbol VARCHAR, price DECIMAL(38, 3))"
CHEAP = "SELECT * FROM stocks WHERE per < 10"
DEAR = "SELECT * FROM stocks WHERE per > 90"


@pytest.fixture(params=["disk", "shared", "memory"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> AnyHome:
    if request.param == "memory":
        return MemoryHome()
    return Home.create(tmp_path / "home", shared=request.param == "shared")


@pytest.fixture(params=["disk", "shared"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    Home.create(tmp_path / "home", shared=request.param == "shared")
    return Home.open(tmp_path / "home")


def dumps(registry: Registry) -> list[object]:
    return [registry._catalog.database.dump(), registry._database.dump()]


def test_tables_and_streams(home: AnyHome) -> None:
    registry = Registry(home)
    assert registry.define(STOCKS) == 0
    assert registry.define(TICKS) == 1
    catalog = registry.catalog()
    assert catalog.names() == ["stocks", "ticks"]
    assert catalog.get("ticks", 1) is None
    assert catalog.get("ticks", 2) is not None


def test_a_shared_home_needs_no_shared_memory(disk: Home) -> None:
    registry = Registry(disk)
    registry.define(STOCKS)
    assert any(disk.path.glob("*-shm")) == (not disk.shared)


def test_a_refused_statement_leaves_nothing(home: AnyHome) -> None:
    registry = Registry(home)
    registry.define(STOCKS)
    with pytest.raises(CatalogError, match="already exists"):
        registry.define(STOCKS.replace("stocks", "Stocks"))
    with pytest.raises(SqlError):
        registry.define("CREATE TABLE")
    with pytest.raises(SqlError):
        registry.subscribe("SELECT * FROM nowhere")
    assert home.log.end == 1


def test_the_id_is_the_offset(home: AnyHome) -> None:
    registry = Registry(home)
    registry.define(STOCKS)
    cheap = registry.subscribe(CHEAP, owner="ann")
    assert (cheap.id, cheap.sql, cheap.owner) == (1, CHEAP, "ann")
    assert registry.subscription(1) == cheap
    assert cheap.query(registry.catalog()).sql == CHEAP
    record = next(home.log.read(1))
    assert subscribed(record.body)[:2] == (CHEAP, "ann")


def test_all_or_none(home: AnyHome) -> None:
    registry = Registry(home)
    registry.define(STOCKS)
    with pytest.raises(SqlError, match="oops") as caught:
        registry.subscribe_many([CHEAP, "SELECT * FROM oops"])
    assert "2 of 2" in caught.value.detail
    assert list(registry.subscriptions()) == []
    assert [s.id for s in registry.subscribe_many([CHEAP, DEAR])] == [1, 2]
    assert registry.subscribe_many([]) == []


def test_withdrawing(home: AnyHome) -> None:
    registry = Registry(home)
    registry.define(STOCKS)
    registry.subscribe_many([CHEAP, DEAR])
    assert registry.withdraw(1) == 3
    with pytest.raises(SubscriptionError, match="subscription 1 was withdrawn"):
        registry.withdraw(1)
    with pytest.raises(SubscriptionError, match="no subscription 0"):
        registry.withdraw(0)
    assert home.log.end == 4
    assert registry.subscription(1, withdrawn=True).withdrawn_at == 3
    assert [s.id for s in registry.subscriptions()] == [2]


def test_withdrawing_many(home: AnyHome) -> None:
    registry = Registry(home)
    registry.define(STOCKS)
    registry.subscribe_many([CHEAP, DEAR, CHEAP])
    with pytest.raises(SubscriptionError, match="no subscription 9"):
        registry.withdraw_many([1, 9])
    assert len(registry.subscriptions()) == 3
    assert registry.withdraw_many([3, 1, 3]) == 4
    assert home.log.end == 6
    assert [s.id for s in registry.subscriptions()] == [2]
    assert registry.withdraw_many([]) == 6


def test_who_was_active_when(home: AnyHome) -> None:
    registry = Registry(home)
    registry.define(STOCKS)
    registry.subscribe(CHEAP)
    registry.subscribe(DEAR)
    registry.withdraw(1)
    active = {n: [s.id for s in registry.subscriptions(active=n)] for n in range(6)}
    assert active == {0: [], 1: [], 2: [1], 3: [1, 2], 4: [2], 5: [2]}


def test_what_changed_between_two_offsets(home: AnyHome) -> None:
    registry = Registry(home)
    registry.define(STOCKS)
    registry.subscribe_many([CHEAP, DEAR, CHEAP])
    registry.withdraw(2)
    changes = registry.changes_between(2, 4)
    assert ([s.id for s in changes.added], changes.withdrawn) == ([2, 3], [])
    changes = registry.changes_between(2, 5)
    assert [s.id for s in changes.withdrawn] == [2], "in both lists"
    assert [s.id for s in registry.changes_between(4, 9).withdrawn] == [2]
    assert registry.changes_between(5, 5).added == []


def test_a_key_beyond_64_bits_survives(home: AnyHome) -> None:
    registry = Registry(home)
    registry.define(TICKS)
    big = "9" * 34
    stored = registry.subscribe(f"SELECT * FROM ticks WHERE price BETWEEN -{big} AND {big}.5")
    found = registry.subscription(stored.id).query(registry.catalog())
    (_, interval), *_ = found.branches[0][0]
    assert interval.contains(int(big) * 1000 + 500)
    assert not interval.contains(int(big) * 1000 + 501)


def test_another_registry_follows(disk: Home) -> None:
    registry, other = Registry(disk), Registry(Home.open(disk.path))
    registry.define(STOCKS)
    assert other.subscribe(CHEAP).id == 1
    assert registry.withdraw(1) == 2
    with pytest.raises(SubscriptionError, match="withdrawn"):
        other.withdraw(1)


def test_a_follower_reads_what_another_applied(disk: Home) -> None:
    registry = Registry(disk)
    follower = Registry(Home.open(disk.path), catch_up=False)
    registry.define(STOCKS)
    registry.subscribe(CHEAP)
    assert follower.applied == 2
    assert follower.catalog().names() == ["stocks"]
    assert [s.id for s in follower.subscriptions()] == [1]


def test_a_crash_between_log_and_databases_is_repaired(home: AnyHome) -> None:
    registry = Registry(home)
    registry.define(STOCKS)
    home.log.append([(RecordKind.DDL, TICKS.encode())])
    home.log.append([(RecordKind.SUBSCRIBE, subscribe_body(CHEAP))])
    home.log.append([(RecordKind.SUBSCRIBE, subscribe_body("SELECT * FROM ticks"))])
    home.log.append([(RecordKind.WITHDRAW, withdraw_body(2))])
    registry.catch_up()
    assert registry.catalog().names() == ["stocks", "ticks"]
    assert [s.id for s in registry.subscriptions()] == [3]
    assert registry.applied == 5


def test_catching_up_to_an_offset(home: AnyHome) -> None:
    registry = Registry(home)
    home.log.append([(RecordKind.DDL, STOCKS.encode())])
    home.log.append([(RecordKind.SUBSCRIBE, subscribe_body(CHEAP))])
    registry.catch_up(1)
    assert list(registry.subscriptions()) == []
    registry.catch_up(0)
    registry.catch_up(2)
    assert [s.id for s in registry.subscriptions()] == [1]


def test_a_record_that_no_longer_binds_is_kept_as_broken(home: AnyHome) -> None:
    registry = Registry(home)
    registry.define(STOCKS)
    home.log.append([(RecordKind.SUBSCRIBE, subscribe_body("SELECT * FROM gone"))])
    home.log.append([(RecordKind.SUBSCRIBE, b"not even JSON")])
    home.log.append([(RecordKind.DDL, b"CREATE FLUX x")])
    registry.catch_up()
    assert list(registry.subscriptions()) == []
    assert registry.changes_between(0, 9).added == []
    broken = list(registry.subscriptions(include_broken=True))
    assert [s.id for s in broken] == [1, 2]
    assert "gone" in broken[0].broken
    with pytest.raises(SubscriptionError, match="subscription 1 cannot be used"):
        broken[0].query(registry.catalog())
    registry.withdraw(1)
    assert registry.catalog().names() == ["stocks"]


def filled(home: Home) -> Registry:
    registry = Registry(home)
    registry.define(STOCKS)
    registry.subscribe_many([CHEAP, DEAR], owner="bob")
    registry.define(TICKS)
    registry.withdraw(1)
    registry.subscribe("SELECT * FROM ticks WHERE price > 1")
    return registry


def test_a_rebuilt_registry_is_the_same(disk: Home) -> None:
    incremental = dumps(filled(disk))
    rebuild(disk)
    assert dumps(Registry(disk, catch_up=False)) == incremental


def test_deleted_databases_come_back(disk: Home) -> None:
    registry = filled(disk)
    before = dumps(registry)
    registry.close()
    disk.registry_db.unlink()
    assert dumps(Registry(disk)) == before
    disk.catalog_db.unlink()
    assert dumps(Registry(disk)) == before


def test_a_reader_at_work_survives_a_rebuild(disk: Home) -> None:
    registry = filled(disk)
    before = dumps(registry)
    rebuild(Home.open(disk.path))
    assert dumps(registry) == before
    registry.subscribe(CHEAP)


def test_a_database_made_anew_while_another_catches_up(
    disk: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = filled(disk)
    before = dumps(registry)
    disk.log.append([(RecordKind.SUBSCRIBE, subscribe_body(DEAR))])

    def cleared_meanwhile(log: RecordLog, start: int, end: int, binder: Binder) -> object:
        changes = read_changes(log, start, end, binder)
        if start > 0:
            with registry._database.writing() as connection:
                registry._database.clear(connection)
        return changes

    monkeypatch.setattr("penstock.registry.stored_registry.read_changes", cleared_meanwhile)
    registry.catch_up()
    assert [s.id for s in registry.subscriptions()] == [2, 5, 6]
    assert dumps(registry) != before


def test_damaged_databases_are_named_and_rebuilt(disk: Home) -> None:
    registry = filled(disk)
    before = dumps(registry)
    registry.close()
    for path in (disk.catalog_db, disk.registry_db):
        path.write_bytes(b"This is no database at all. " * 100)
    with pytest.raises(CorruptionError, match=r"catalog\.db is damaged"):
        Registry(disk)
    rebuild(disk)
    assert dumps(Registry(disk)) == before


def test_a_log_that_lost_its_end_is_noticed(disk: Home) -> None:
    filled(disk).close()
    for segment in disk.log.directory.glob("*.log"):
        segment.unlink()
    with pytest.raises(CorruptionError, match="the log ends at offset 0, but 6 records"):
        Registry(Home.open(disk.path))


def test_owners_have_a_limit(home: AnyHome) -> None:
    registry = Registry(home)
    registry.define(STOCKS)
    for owner in ("", "x" * 201):
        with pytest.raises(SubscriptionError, match="1 to 200 characters"):
            registry.subscribe(CHEAP, owner)
    with pytest.raises(SubscriptionError, match="not Unicode"):
        registry.subscribe(CHEAP, "\ud800")


def test_counting(home: AnyHome) -> None:
    registry = Registry(home)
    registry.define(STOCKS)
    first, second = registry.subscribe(CHEAP), registry.subscribe(DEAR)
    assert (registry.count(), registry.count(second.id)) == (2, 1)
    registry.withdraw(first.id)
    assert registry.count() == 1


def test_a_value_that_changed_by_itself_is_noticed(disk: Home) -> None:
    """SQLite would hand it out: it knows nothing of checksums."""
    with Registry(disk) as registry:
        registry.define(STOCKS)
        subscription = registry.subscribe(CHEAP)
        with registry._database.writing() as connection:
            connection.execute("UPDATE subscriptions SET sql = replace(sql, '10', '11')")
        with pytest.raises(CorruptionError, match="is not as it was written") as caught:
            registry.subscription(subscription.id)
        assert "penstock rebuild" in caught.value.hint
    rebuild(disk)
    with Registry(disk) as registry:
        assert registry.subscription(subscription.id).sql == CHEAP
