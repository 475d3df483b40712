"""The Hub's doors: what users see, in memory and on a home."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock import Change, Hub, Op
from penstock.errors import (
    CatalogError,
    ChangeError,
    HomeError,
    LockedError,
    SqlError,
    SubscriptionError,
)
from penstock.storage import Home, RecordKind

STOCKS = "CREATE TABLE stocks (id BIGINT PRIMARY KEY, symbol VARCHAR, per DOUBLE)"
REVIEWS = "CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol VARCHAR, rating DOUBLE)"
GOOD = (
    "SELECT stocks.symbol, per, rating FROM stocks JOIN reviews ON stocks.symbol = reviews.symbol "
    "WHERE per BETWEEN 45 AND 70 AND rating >= 6"
)


@pytest.fixture(params=["memory", "home"])
def hub(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Hub]:
    with Hub() if request.param == "memory" else Hub(tmp_path / "home") as opened:
        opened.execute(STOCKS)
        opened.execute(REVIEWS)
        yield opened


def stock(number: int, symbol: str | None, per: float) -> dict[str, object]:
    return {"id": number, "symbol": symbol, "per": per}


def review(number: int, symbol: str, rating: float) -> dict[str, object]:
    return {"id": number, "symbol": symbol, "rating": rating}


def test_a_subscription_starts_with_the_current_content(hub: Hub) -> None:
    hub.insert("stocks", stock(1, "GOOG", 51.7))
    hub.insert("reviews", review(1, "GOOG", 7.1))
    hub.insert("reviews", review(2, "GOOG", 5.5))
    subscription = hub.subscribe(GOOD)
    assert subscription.content() == [{"symbol": "GOOG", "per": 51.7, "rating": 7.1}]
    assert [n.kind for n in subscription.notifications()] == ["insert"]
    assert subscription.notifications() == []


def test_updates_and_deletes_are_notified_once(hub: Hub) -> None:
    subscription = hub.subscribe(GOOD)
    hub.insert("stocks", stock(1, "GOOG", 51.7))
    assert subscription.notifications() == []
    hub.insert("reviews", review(1, "GOOG", 7.1))
    hub.update("reviews", {"id": 1, "rating": 9.0})
    hub.update("stocks", {"id": 1, "per": 80.0})
    kinds = [(n.kind, n.before, n.after) for n in subscription.notifications()]
    before = {"symbol": "GOOG", "per": 51.7, "rating": 7.1}
    after = {"symbol": "GOOG", "per": 51.7, "rating": 9.0}
    assert kinds == [("insert", None, before), ("update", before, after), ("delete", after, None)]
    assert subscription.content() == []


def test_a_column_that_is_not_shown_does_not_notify(hub: Hub) -> None:
    subscription = hub.subscribe("SELECT symbol FROM stocks WHERE per > 10")
    hub.insert("stocks", stock(1, "GOOG", 51.7))
    subscription.notifications()
    hub.update("stocks", {"id": 1, "per": 52.0})
    assert subscription.notifications() == []


def test_not_a_number_that_stays_what_it_is_does_not_notify(hub: Hub) -> None:
    subscription = hub.subscribe("SELECT per FROM stocks")
    hub.insert("stocks", stock(1, "GOOG", float("nan")))
    subscription.notifications()
    hub.upsert("stocks", stock(1, "YHOO", float("nan")))
    assert subscription.notifications() == []
    hub.update("stocks", {"id": 1, "per": 2.0})
    assert [n.kind for n in subscription.notifications()] == ["update"]


def test_columns_that_share_a_name_are_qualified(hub: Hub) -> None:
    subscription = hub.subscribe("SELECT * FROM stocks JOIN reviews USING (symbol)")
    hub.insert("stocks", stock(1, "GOOG", 51.7))
    hub.insert("reviews", review(2, "GOOG", 7.1))
    assert list(subscription.content()[0]) == ["stocks.id", "symbol", "per", "reviews.id", "rating"]


def test_a_batch_is_all_or_nothing(hub: Hub) -> None:
    subscription = hub.subscribe("SELECT id FROM stocks")
    changes = [Change("stocks", Op.INSERT, stock(n, "A", 1.0)) for n in (1, 2, 1)]
    with pytest.raises(ChangeError, match="already has a row with key id = 1"):
        hub.apply(changes)
    assert subscription.content() == []
    assert hub.rows("stocks") == []
    hub.apply(
        [
            {"table": "stocks", "op": "insert", "row": stock(1, "A", 1.0)},
            {"table": "stocks", "op": "update", "row": {"id": 1, "per": 2.0}},
            {"table": "stocks", "op": "delete", "row": {"id": 1}},
        ]
    )
    assert subscription.content() == []


def test_readers_never_see_half_a_batch(hub: Hub) -> None:
    subscription = hub.subscribe("SELECT id FROM stocks")
    done = threading.Event()

    def read() -> list[int]:
        sizes = [0]
        while not (done.is_set() and sizes[-1] == 200):
            sizes.append(len(subscription.content()))
        return sizes

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(read)
        for batch in range(20):
            rows = [stock(10 * batch + n, "A", 1.0) for n in range(10)]
            hub.apply([{"table": "stocks", "row": row} for row in rows])
        done.set()
        sizes = reader.result()
    assert all(size % 10 == 0 for size in sizes)
    assert sizes == sorted(sizes)


def test_withdrawing(hub: Hub) -> None:
    subscription = hub.subscribe("SELECT id FROM stocks")
    assert hub.subscriptions() == {subscription.id: "SELECT id FROM stocks"}
    hub.unsubscribe(subscription)
    hub.insert("stocks", stock(1, "A", 1.0))
    with pytest.raises(SubscriptionError, match="was withdrawn"):
        subscription.content()
    with pytest.raises(SubscriptionError, match="no subscription"):
        hub.unsubscribe(subscription.id)
    assert hub.subscriptions() == {}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (Change("bonds", Op.INSERT, {"id": 1}), "unknown table bonds"),
        (Change("stocks", Op.INSERT, {"id": 1, "price": 1}), "no column price"),
        (Change("stocks", Op.INSERT, {"id": "one"}), "'one' is not a BIGINT"),
        (Change("stocks", Op.INSERT, {"symbol": "A"}), "id of stocks must not be NULL"),
        (Change("stocks", Op.INSERT, {"id": 2**63}), "is not a BIGINT"),
        (Change("stocks", Op.INSERT, {"id": 7}), "already has a row"),
        (Change("stocks", Op.UPDATE, {"id": 8}), "no row with key id = 8"),
        (Change("stocks", Op.UPDATE, {"per": 8.0}), "lacks key column id"),
        (Change("stocks", Op.DELETE, {"id": 8}), "no row with key id = 8"),
        (Change("stocks", Op.INSERT, {"id": 1, "symbol": "\ud800"}), "surrogate"),
    ],
)
def test_bad_changes_are_refused_and_change_nothing(hub: Hub, change: Change, reason: str) -> None:
    hub.insert("stocks", stock(7, "A", 1.0))
    with pytest.raises(ChangeError) as refused:
        hub.apply([change])
    assert reason in str(refused.value)
    assert hub.rows("stocks") == [stock(7, "A", 1.0)]
    assert hub.quarantine() == []


def test_bad_statements_are_refused(hub: Hub) -> None:
    with pytest.raises(CatalogError, match="already exists"):
        hub.execute(STOCKS)
    with pytest.raises(SqlError):
        hub.subscribe("SELECT * FROM bonds")
    with pytest.raises(SqlError):
        hub.execute("DROP TABLE stocks")


def test_not_a_number_and_infinities_are_values(hub: Hub) -> None:
    subscription = hub.subscribe("SELECT id FROM stocks WHERE per > 100")
    for number, per in enumerate([float("nan"), float("inf"), float("-inf")]):
        hub.insert("stocks", stock(number, "A", per))
    assert subscription.content() == [{"id": 0}, {"id": 1}]


def test_a_stream_only_grows(hub: Hub) -> None:
    hub.execute("CREATE STREAM trades (symbol VARCHAR, price DOUBLE)")
    subscription = hub.subscribe("SELECT price FROM trades WHERE symbol = 'A'")
    for _ in range(2):
        hub.insert("trades", {"symbol": "A", "price": 3.0})
    assert subscription.content() == [{"price": 3.0}, {"price": 3.0}]
    with pytest.raises(ChangeError, match="events can only be inserted"):
        hub.upsert("trades", {"symbol": "A", "price": 3.0})


def test_explain_names_the_predicate_that_failed(hub: Hub) -> None:
    hub.insert("reviews", review(1, "GOOG", 5.5))
    subscription = hub.subscribe(GOOD)
    too_dear = hub.explain(subscription, Change("stocks", Op.INSERT, stock(1, "GOOG", 90.0)))
    assert not too_dear.reaches
    assert "✗ 45.0 <= per <= 70.0   (is 90.0)" in str(too_dear)
    assert "✗ stocks.symbol = reviews.symbol: 1 rows of reviews join, 0 of them" in str(too_dear)
    hub.insert("reviews", review(2, "GOOG", 8.0))
    fits = hub.explain(subscription.id, {"table": "stocks", "row": stock(1, "GOOG", 50.0)})
    assert fits.reaches
    assert fits.verdict == "reaches: rows enter the content"
    elsewhere = hub.explain(subscription, {"table": "reviews", "row": review(9, "AMZN", 8.0)})
    assert not elsewhere.reaches


def test_a_closed_hub_says_so() -> None:
    hub = Hub()
    hub.close()
    with pytest.raises(HomeError, match="closed"):
        hub.execute(STOCKS)


class TestHome:
    """What a Hub on a home adds: it lasts."""

    def test_everything_is_there_again(self, tmp_path: Path) -> None:
        with Hub(tmp_path / "home") as hub:
            hub.execute(STOCKS)
            hub.execute(REVIEWS)
            number = hub.subscribe(GOOD).id
            hub.insert("stocks", stock(1, "GOOG", 51.7))
        with Hub(tmp_path / "home") as hub:
            hub.insert("reviews", review(1, "GOOG", 7.1))
            assert len(hub.subscription(number).content()) == 1
            assert hub.rows("stocks") == [stock(1, "GOOG", 51.7)]

    def test_only_one_at_a_time(self, tmp_path: Path) -> None:
        with Hub(tmp_path / "home"), pytest.raises(LockedError, match="hub"):
            Hub(tmp_path / "home")

    def test_what_others_publish_is_processed_and_bad_events_are_kept(self, tmp_path: Path) -> None:
        with Hub(tmp_path / "home") as hub:
            hub.execute(STOCKS)
            subscription = hub.subscribe("SELECT id FROM stocks")
            other = Home.open(tmp_path / "home")
            good = b'{"table": "stocks", "row": {"id": 5}}'
            for raw in (b"{", good, b"\xff\xfe", good):
                other.log.append([(RecordKind.EVENT, raw)])
            hub.insert("stocks", stock(6, "A", 1.0))
            assert subscription.content() == [{"id": 5}, {"id": 6}]
            bad = hub.quarantine()
            assert [event.raw for event in bad] == [b"{", b"\xff\xfe", good]
            assert "already has a row" in bad[2].primary

    def test_no_event_stops_it_and_no_reason_is_long(self, tmp_path: Path) -> None:
        """Each of these once stopped the Hub, or put a megabyte into the quarantine as a reason."""
        row = b'"row": {"id": 5}}'
        odd = [
            b'{"x": ' + b"[" * 1000 + b"]" * 1000 + b', "table": "stocks", ' + row,
            b'{"table": "stocks", "row": {"id": 1e99999999999999999999999}}',
            b'{"table": "' + b"t" * 1_000_000 + b'", ' + row,
            b'{"table": "stocks", "row": {"' + b"c" * 1_000_000 + b'": 5}}',
            b'{"op": "' + b"o" * 1_000_000 + b'", "after": {"id": 1}}',
            b'{"payload": {"op": "c", "after": {"id": 1}, "' + b"m" * 1_000_000 + b'": 1}}',
        ]
        with Hub(tmp_path / "home") as hub:
            hub.execute(STOCKS)
            hub.execute(REVIEWS)
            other = Home.open(tmp_path / "home")
            other.log.append([(RecordKind.EVENT, raw) for raw in odd])
            bad = hub.quarantine()
            assert [event.raw for event in bad] == odd
            assert "nested more than 64 levels deep" in bad[0].primary
            for event in bad:
                assert max(map(len, (event.primary, event.detail, event.hint))) <= 1000
            assert bad[2].primary.endswith("t…")

    def test_a_crash_between_log_and_message_log(self, tmp_path: Path) -> None:
        with Hub(tmp_path / "home") as hub:
            hub.execute(STOCKS)
            number = hub.subscribe("SELECT id FROM stocks").id
        # Written and acknowledged, but the process died before it produced messages.
        home = Home.open(tmp_path / "home")
        home.log.append([(RecordKind.EVENT, b'{"table": "stocks", "row": {"id": 5}}')])
        with Hub(tmp_path / "home") as hub:
            assert hub.subscription(number).content() == [{"id": 5}]
        with Hub(tmp_path / "home") as hub:
            assert hub.subscription(number).content() == [{"id": 5}]
            ids = [n.id for n in hub.subscription(number).notifications()]
            assert len(ids) == len(set(ids)) == 1

    def test_a_failed_write_stops_the_hub_instead_of_diverging(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with Hub(tmp_path / "home") as hub:
            hub.execute(STOCKS)

            def full_disk(*_: object) -> None:
                raise HomeError("no space left on the device")

            monkeypatch.setattr(type(hub._home.messages), "publish", full_disk)
            with pytest.raises(HomeError, match="no space"):
                hub.insert("stocks", stock(1, "A", 1.0))
            with pytest.raises(HomeError, match="in the middle of a batch"):
                hub.insert("stocks", stock(2, "A", 1.0))
        monkeypatch.undo()
        with Hub(tmp_path / "home") as hub:
            assert hub.rows("stocks") == [stock(1, "A", 1.0)]
