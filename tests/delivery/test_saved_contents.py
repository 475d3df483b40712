"""Saved contents: less to read, and nobody can tell the difference."""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Hub
from penstock.client import Content, ContentRow, Initial, Notification
from penstock.client.saving import plain_content, restored_content
from penstock.delivery import END, SubscriptionBatches, SubscriptionReader
from penstock.delivery import saved_contents as contents
from penstock.delivery.registration import Registration, registered
from penstock.delivery.saved_contents import SavedContents
from penstock.maintenance.compaction import compact
from penstock.maintenance.findings import Severity
from penstock.maintenance.verification import verify
from penstock.packing import pack, unpack
from penstock.registry import Registry
from penstock.storage import BatchHeader, Home, MessageLog
from penstock.testing.decompositions import numbered_decomposition
from tests.hub.test_reopening import change, fill
from tests.maintenance.test_verify import silent


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With subscriptions over one table and several, of several branches, with a payload, quiet,
    and with one whose query was split in another way in between."""
    path = tmp_path_factory.mktemp("pattern") / "home"
    with Hub(path) as hub:
        fill(hub, 25)
        hub.subscribe("SELECT * FROM stocks WHERE symbol IN ('A', 'B') AND per <> 30 OR per < 5")
        joined = hub.subscribe(
            "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE per > 30 OR rating = 3"
        )
        hub.subscribe("SELECT * FROM stocks JOIN reviews USING (symbol)", initial="none")
        more(hub, 100)
        hub.replan(joined, numbered_decomposition(joined.query, 5))
        more(hub, 200)
    return path


@pytest.fixture
def home(pattern: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pattern, tmp_path / "home"))


def more(hub: Hub, first: int) -> None:
    chance = random.Random(first)
    for number in range(first, first + 12):
        change(hub, chance, number)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "SAVED_FROM", 1)


def numbers(home: Path) -> list[int]:
    with Registry(Home.open(home)) as registry:
        stored = registry.subscriptions()
        return [one.id for one in stored if one.initial is Initial.CONTENT]


def rows(home: Path, number: int) -> list[ContentRow]:
    """As `penstock content` shows them."""
    reader = SubscriptionReader(Home.open(home), number, skip_to=END)
    reader.catch_up()
    return reader.rows()


def all_rows(home: Path) -> dict[int, list[ContentRow]]:
    return {number: rows(home, number) for number in numbers(home)}


def plainly(home: Path) -> dict[int, list[ContentRow]]:
    """From the messages alone."""
    found = {}
    for number in numbers(home):
        reader = SubscriptionReader(Home.open(home), number)
        list(reader.new())
        found[number] = reader.rows()
    return found


class Reads:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        read = MessageLog.read

        def counting(messages: MessageLog, header: BatchHeader) -> list[bytes]:
            self.count += 1
            return read(messages, header)

        monkeypatch.setattr(MessageLog, "read", counting)

    def taken(self) -> int:
        count, self.count = self.count, 0
        return count


@pytest.mark.usefixtures("eager")
def test_only_what_is_new_is_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, reads = plainly(home), Reads(monkeypatch)
    batches = len(list(Home.open(home).messages.batches()))
    first = numbers(home)[0]
    assert rows(home, first) == expected[first]
    assert reads.taken() > batches / 2
    assert rows(home, first) == expected[first]
    assert reads.taken() == 0
    with Hub(home) as hub:
        assert hub.subscription(first).content() == expected[first]
        assert reads.taken() == 0
        more(hub, 300)
    newer = len(list(Home.open(home).messages.batches())) - batches
    now = rows(home, first)
    assert reads.taken() == newer
    assert now == plainly(home)[first] != expected[first]


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_all_are_shown_as_without(home: Path) -> None:
    expected = plainly(home)
    for _ in range(2):
        assert all_rows(home) == expected
    assert len(list((home / "contents").iterdir())) == len(expected)
    with Hub(home) as hub:
        more(hub, 300)
    assert all_rows(home) == plainly(home) != expected
    assert verify(Home.open(home), silent).findings == []


@pytest.mark.slow
def test_a_content_goes_on_after_every_batch(home: Path) -> None:
    """Saved and restored at the end of each batch, it says what one that was not says."""
    opened = Home.open(home)
    with Registry(opened) as registry:
        for stored in registry.subscriptions():
            if stored.initial is Initial.NONE:
                continue
            registration = registered(registry, stored)
            query, chosen = registration.query, stored.decomposition
            quiet = stored.initial is Initial.SILENT
            batches = SubscriptionBatches(opened.messages, registration)
            one = Content(stored.id, query, chosen, quiet=quiet)
            other = Content(stored.id, query, chosen, quiet=quiet)
            for _, deliveries in batches.new():
                plain = unpack(pack(plain_content(other)))
                other = restored_content(plain, stored.id, query, quiet=quiet)
                assert other.apply(deliveries) == one.apply(deliveries)
                assert other.rows() == one.rows()
                assert other.chosen == one.chosen


def test_the_registry_is_not_asked_for_each_batch(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every batch of a Hub makes later records active."""
    asked: list[str] = []
    for name in ("replans", "changes_between"):
        real = getattr(Registry, name)

        def counting(*arguments: Any, _name: str = name, _real: Any = real, **more: Any) -> Any:
            asked.append(_name)
            return _real(*arguments, **more)

        monkeypatch.setattr(Registry, name, counting)
    rows(home, numbers(home)[-1])
    assert asked == ["replans"]
    assert not verify(Home.open(home), silent).findings
    assert asked.count("changes_between") <= 2


@pytest.mark.usefixtures("eager")
def test_notifications_are_the_same(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def told() -> Iterator[list[Notification]]:
        with Hub(home) as hub:
            for number in hub.subscriptions():
                yield hub.subscription(number).notifications()

    with monkeypatch.context() as patch:
        patch.setattr(contents, "SAVED_FROM", 10**9)
        expected = list(told())
    assert not (home / "contents").exists()
    assert list(told()) == expected
    assert (home / "contents").exists()
    assert list(told()) == expected


def notifications_of(reader: SubscriptionReader) -> list[Notification]:
    return [one for news in reader.new() for one in news.notifications]


@pytest.mark.usefixtures("eager")
def test_following_from_a_cursor(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    number, reads = numbers(home)[1], Reads(monkeypatch)
    rows(home, number)
    cursor = Home.open(home).log.end - 1
    with Hub(home) as hub:
        more(hub, 300)
    reader = SubscriptionReader(Home.open(home), number)
    everything = notifications_of(reader)
    reads.taken()
    reader = SubscriptionReader(Home.open(home), number, skip_to=cursor + 1)
    late = notifications_of(reader)
    assert late == [one for one in everything if one.offset > cursor] != []
    assert reads.taken() == len(
        [h for h in Home.open(home).messages.batches() if h.end > cursor + 1]
    )
    earlier = notifications_of(SubscriptionReader(Home.open(home), number, skip_to=cursor))
    assert [one for one in earlier if one.offset > cursor - 1][-len(late) :] == late


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_damage_is_passed_over_and_named(home: Path) -> None:
    number = numbers(home)[0]
    expected = rows(home, number)
    (path,) = (home / "contents").iterdir()
    whole = path.read_bytes()
    places = [*range(0, 80, 9), *range(80, len(whole), len(whole) // 8), len(whole) - 1]
    for place in places:
        for damaged in (
            whole[:place],
            whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :],
        ):
            path.write_bytes(damaged)
            assert rows(home, number) == expected
            assert path.read_bytes() == whole, "it is saved again"
    path.write_bytes(whole[:-1])
    (finding,) = verify(Home.open(home), silent).findings
    assert (finding.where, finding.severity) == (str(path), Severity.DAMAGE)
    assert "remove it" in finding.hint


@pytest.mark.usefixtures("eager")
def test_one_of_another_message_log_is_not_used(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The home was restored from a backup and went on differently; contents stayed."""
    number, reads = numbers(home)[0], Reads(monkeypatch)
    opened = Home.open(home)
    *_, last = opened.messages.batches()
    rows(home, number)
    for path in (home / "messages").iterdir():
        if path.name.startswith(f"{last.start:020d}-"):
            path.unlink()
    Home.open(home).messages.publish(BatchHeader(last.start, last.end, last.active), [])
    reads.taken()
    assert rows(home, number) == plainly(home)[number]
    assert reads.taken() > 10


@pytest.mark.usefixtures("eager")
def test_after_a_compaction(home: Path) -> None:
    expected = all_rows(home)
    compact(Home.open(home), silent)
    for _ in range(2):
        found = all_rows(home)
        assert {n: sorted(map(str, rows)) for n, rows in found.items()} == {
            n: sorted(map(str, rows)) for n, rows in expected.items()
        }


@pytest.mark.usefixtures("eager")
def test_no_more_than_allowed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "MAX_FILES", 3)
    one, *others = numbers(home)
    rows(home, one)
    for tick, number in enumerate(others):
        rows(home, number)
        rows(home, one)  # in use
        for path in (home / "contents").iterdir():
            in_use = path.name.startswith(f"{one:020d}")
            os.utime(path, ns=(tick, 10**18 if in_use else tick * 10**9))
    kept = {int(path.name[:20]) for path in (home / "contents").iterdir()}
    assert len(kept) == 3
    assert one in kept
    gone = next(number for number in others if number not in kept)
    monkeypatch.setattr(contents, "MAX_BYTES", 10)
    rows(home, gone)
    assert list((home / "contents").iterdir()) == []
    monkeypatch.setattr(contents, "MAX_FILE_BYTES", 10)
    rows(home, gone)
    assert list((home / "contents").iterdir()) == []


@pytest.mark.usefixtures("eager")
def test_a_home_that_cannot_be_written(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = plainly(home)

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(contents, "write_aside", refused)
    monkeypatch.setattr(os, "utime", refused)
    assert all_rows(home) == expected
    assert SavedContents(Home.open(home)).load(_registration(home, 0)) is None


def _registration(home: Path, which: int) -> Registration:
    with Registry(Home.open(home)) as registry:
        return registered(registry, registry.subscription(numbers(home)[which]))
