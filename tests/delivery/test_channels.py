"""The contract of channels, and what is special about some of them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from penstock import Hub
from penstock.client import News
from penstock.delivery import (
    CallbackChannel,
    DurableCursors,
    JsonLinesChannel,
    SubscriptionDelivery,
    SubscriptionReader,
)
from penstock.delivery import delivery as delivery_module
from penstock.errors import ChannelError, HomeError, LockedError, SubscriptionError
from penstock.storage import Home
from tests.delivery.contract import HARNESSES, Harness


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Subscription 1 has notifications in eight batches, and none in others; 2 wants changes."""
    path = tmp_path_factory.mktemp("pattern") / "home"
    with Hub(path) as hub:
        hub.execute("CREATE TABLE stocks (id INT PRIMARY KEY, per INT)")
        hub.subscribe("SELECT * FROM stocks WHERE per < 20")
        hub.subscribe("SELECT per FROM stocks", initial="none")
        publish(hub, 0)
    return path


def publish(hub: Hub, first: int) -> None:
    for number in range(first, first + 4):
        hub.apply(
            [
                {"table": "stocks", "op": "insert", "row": {"id": 2 * number + i, "per": number}}
                for i in range(2)
            ]
        )
        hub.insert("stocks", {"id": 1000 + number, "per": 99})
        hub.update("stocks", {"id": 2 * number, "per": 50})


@pytest.fixture
def home(pattern: Path, tmp_path: Path) -> Home:
    return Home.open(shutil.copytree(pattern, tmp_path / "home"))


@pytest.fixture(params=HARNESSES, ids=lambda kind: kind.__name__)
def harness(request: pytest.FixtureRequest, tmp_path: Path) -> Harness:
    kind: type[Harness] = request.param
    return kind(tmp_path)


def all_ids(home: Home, number: int = 1) -> list[str]:
    return [one.id for news in SubscriptionReader(home, number).new() for one in news.notifications]


def end_of(home: Home) -> int:
    assert home.messages.frontier is not None
    return home.messages.frontier.end


def test_everything_comes_once_and_in_order(home: Home, harness: Harness) -> None:
    with SubscriptionDelivery(home, 1) as delivery:
        harness.drain(delivery)
        assert harness.received == all_ids(home)
        assert len(harness.received) == 12
        assert delivery.state.cursor == end_of(home)
        with Hub(home.path) as hub:
            publish(hub, 10)
        harness.drain(delivery)
        assert harness.received == all_ids(home)
        assert len(harness.received) == 24


def test_it_starts_from_a_cursor(home: Home, harness: Harness) -> None:
    news = [one for one in SubscriptionReader(home, 1).new() if one.notifications]
    with SubscriptionDelivery(home, 1, news[2].cursor) as delivery:
        harness.drain(delivery)
    assert harness.received == [one.id for part in news[3:] for one in part.notifications]


@pytest.mark.parametrize("fail_at", [0, 3, 7])
def test_a_failure_loses_and_skips_nothing(home: Home, harness: Harness, fail_at: int) -> None:
    cuts = [one for one in SubscriptionReader(home, 1).new() if one.notifications]
    with SubscriptionDelivery(home, 1) as delivery:
        harness.drain(delivery, fail_at)
        assert harness.received == [n.id for one in cuts[:fail_at] for n in one.notifications]
        assert delivery.state.cursor < cuts[fail_at].cursor
        harness.drain(delivery)
    assert harness.received == all_ids(home)


def test_a_durable_cursor_goes_on_in_another_process(home: Home, harness: Harness) -> None:
    with SubscriptionDelivery(home, 1, name="mail") as delivery:
        harness.drain(delivery, fail_at=3)
    with SubscriptionDelivery(Home.open(home.path), 1, name="mail") as delivery:
        harness.drain(delivery)
        assert delivery.state.cursor == end_of(home)
    assert harness.received == all_ids(home)
    with SubscriptionDelivery(Home.open(home.path), 1, name="mail") as delivery:
        harness.drain(delivery)
    assert harness.received == all_ids(home)


def test_after_a_crash_only_what_was_not_saved_comes_again(home: Home, harness: Harness) -> None:
    """At least once: the ids are the same."""
    delivery = SubscriptionDelivery(home, 1, name="mail")
    harness.drain(delivery, fail_at=5)
    delivery._unsaved = 0
    delivery._closing.close()  # as if the process had been killed: nothing is saved on the way out
    with SubscriptionDelivery(home, 1, name="mail") as second:
        harness.drain(second)
    assert list(dict.fromkeys(harness.received)) == all_ids(home)


# What receivers may say


class Taking:
    """Takes so many cuts, and the others later."""

    target = "a slow receiver"

    def __init__(self, most: int) -> None:
        self.left = most
        self.got: list[News] = []
        self.commits = 0

    def send(self, news: News) -> int:
        if not self.left:
            return news.since
        self.left -= 1
        self.got.append(news)
        return news.cursor

    def commit(self) -> None:
        self.commits += 1

    def close(self) -> None:
        pass


def test_a_slow_receiver_is_read_for_later(home: Home) -> None:
    slow = Taking(3)
    with SubscriptionDelivery(home, 1, name="slow") as delivery:
        assert delivery.send_to(slow) == 5
        assert delivery.state.failures == 0
        assert delivery.send_to(slow) == 0
        slow.left = 99
        assert delivery.send_to(slow) == 7
    assert [one.id for news in slow.got for one in news.notifications] == all_ids(home)


def test_an_acknowledgement_of_what_was_not_sent(home: Home) -> None:
    class Lying(Taking):
        def send(self, news: News) -> int:
            return news.cursor + 1

    with SubscriptionDelivery(home, 1) as delivery:
        assert delivery.send_to(Lying(1)) == 0
        assert "was acknowledged, which was not sent" in delivery.state.last_error
        assert delivery.state.cursor < end_of(home)


def test_the_cursor_is_saved_after_the_channel_has_committed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a crash could lose lines that the cursor says were delivered."""
    monkeypatch.setattr(delivery_module, "SAVE_EVERY_CUTS", 3)
    channel, seen = Taking(99), []
    save = DurableCursors.save

    def saved(cursors: DurableCursors, state: object) -> None:
        seen.append((len(channel.got), channel.commits))
        save(cursors, state)  # type: ignore[arg-type]

    monkeypatch.setattr(DurableCursors, "save", saved)
    with SubscriptionDelivery(home, 1, name="mail") as delivery:
        delivery.send_to(channel)
    sent = [cuts for cuts, _ in seen]
    assert sent == sorted(sent)
    assert len(sent) > 3
    assert [commits for _, commits in seen] == list(range(len(seen)))


def test_failures_wait_longer_and_longer_and_then_suspend(home: Home) -> None:
    now = [1000.0]

    def refuse(_: News) -> None:
        raise OSError("no route")

    channel = CallbackChannel(refuse)
    with SubscriptionDelivery(
        home, 1, name="hook", clock=lambda: now[0], retry_after_seconds=(5, 60)
    ) as delivery:
        for wait in (5, 60):
            assert delivery.send_to(channel) == 0
            assert delivery.state.next_attempt == now[0] + wait
            failures = delivery.state.failures
            now[0] += wait - 1
            delivery.send_to(channel)
            assert delivery.state.failures == failures, "it is not time yet"
            now[0] += 1
        delivery.send_to(channel)
        assert delivery.state.is_suspended
        now[0] += 1e9
        delivery.send_to(channel)
        assert delivery.state.failures == 3
        assert delivery.state.last_error == "the callback failed: OSError"
    state = DurableCursors(home).get("hook")
    assert state is not None
    assert state.is_suspended
    with SubscriptionDelivery(home, 1, name="hook") as delivery:
        delivery.resume()
        assert delivery.send_to(CallbackChannel(lambda _: None)) == 12
        assert (delivery.state.failures, delivery.state.last_error) == (0, "")


# Cursors


def test_one_delivery_at_a_time(home: Home) -> None:
    with (
        SubscriptionDelivery(home, 1, name="mail"),
        pytest.raises(LockedError, match="another process delivers under cursor mail"),
    ):
        SubscriptionDelivery(home, 1, name="mail")
    with pytest.raises(SubscriptionError, match="cursor mail is of subscription 1, not 2"):
        SubscriptionDelivery(home, 2, name="mail")
    with SubscriptionDelivery(home, 1, name="mail"):
        pass  # a refusal has not kept the lock


def test_starting_again(home: Home) -> None:
    with SubscriptionDelivery(home, 1, name="mail") as delivery:
        delivery.send_to(CallbackChannel(lambda _: None))
        old = delivery.state
        delivery.restart()
        assert (delivery.state.cursor, delivery.state.generation) == (0, 2)
        with pytest.raises(LockedError, match="set to another place"):
            DurableCursors(home).save(old)
        assert delivery.send_to(CallbackChannel(lambda _: None)) == 12
        with pytest.raises(HomeError, match="there is no cursor 99999 yet"):
            delivery.restart(99999)


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "a" * 101, "ä", None, 5, "a\n"])
def test_names_that_are_no_file_names(home: Home, name: object) -> None:
    with pytest.raises(HomeError, match="cannot be called"):
        DurableCursors(home).get(name)  # type: ignore[arg-type]


def test_too_many_cursors(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.delivery.cursors.MAX_CURSORS", 2)
    for name in ("a", "b"):
        SubscriptionDelivery(home, 1, name=name).close()
    with pytest.raises(HomeError, match="has 2 cursors already"):
        SubscriptionDelivery(home, 1, name="c")
    SubscriptionDelivery(home, 1, name="a").close()
    DurableCursors(home).remove("b")
    SubscriptionDelivery(home, 1, name="c").close()
    assert [one.name for one in DurableCursors(home).all()] == ["a", "c"]
    with pytest.raises(HomeError, match="there is no cursor b"):
        DurableCursors(home).remove("b")


def test_a_damaged_cursor_is_named(home: Home) -> None:
    SubscriptionDelivery(home, 1, name="mail").close()
    (path,) = (home.path / "cursors").glob("*.cursor")
    whole = path.read_bytes()
    for place in range(len(whole) - 1):
        for damaged in (
            whole[:place],
            whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :],
        ):
            path.write_bytes(damaged)
            with pytest.raises(HomeError, match=r"mail\.cursor"):
                DurableCursors(home).all()


# Files


def test_a_line_that_was_cut_short_is_removed(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with SubscriptionDelivery(home, 1) as delivery:
        channel = JsonLinesChannel(path)
        delivery.send_to(channel)
        channel.close()
    whole = path.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    for cut in range(last, len(whole)):
        path.write_bytes(whole[:cut])
        JsonLinesChannel(path).close()
        assert path.read_bytes() == whole[:last]
    path.write_bytes(b"{}\nsomebody else's")
    with pytest.raises(ChannelError, match="does not end with a line of notifications"):
        JsonLinesChannel(path)
    assert path.read_bytes() == b"{}\nsomebody else's"


def test_a_disk_that_is_full_leaves_whole_lines(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.jsonl"
    channel, write, room = JsonLinesChannel(path), os.write, [700]

    def limited(descriptor: int, data: memoryview) -> int:
        if not room[0]:
            raise OSError(28, "No space left on device")
        written = write(descriptor, data[: room[0]])
        room[0] -= written
        return written

    with monkeypatch.context() as patch, SubscriptionDelivery(home, 1) as delivery:
        patch.setattr(os, "write", limited)
        delivery.send_to(channel)
        assert "No space left on device" in delivery.state.last_error
        assert path.read_bytes().endswith(b"}\n")
        before = [json.loads(line)["id"] for line in path.read_text().splitlines()]
        assert before == all_ids(home)[: len(before)]
        room[0] = 1 << 20
        delivery.resume()
        delivery.send_to(channel)
    channel.close()
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == all_ids(home)


def test_a_reader_of_a_pipe_that_went_away(home: Home) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with SubscriptionDelivery(home, 1) as delivery:
        channel = JsonLinesChannel(Path(f"/dev/fd/{writing}"))
        delivery.send_to(channel)
        assert "Broken pipe" in delivery.state.last_error
        channel.close()
    os.close(writing)
