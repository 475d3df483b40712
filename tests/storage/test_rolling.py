"""Rolling: few files however many batches, and every batch readable once, whatever is killed."""

from __future__ import annotations

import errno
import os
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import CorruptionError, HomeError
from penstock.storage import BatchHeader, MessageLog, QuarantinedEvent, disk, file_store, tiers
from penstock.storage import batch_files as batchfiles
from penstock.storage.batch_codec import Place
from penstock.storage.rolled import ROLLED_SUFFIX, Extent
from tests.examples import examples
from tests.storage.rolling import roll_early


def opened(path: Path) -> MessageLog:
    for name in ("messages", "quarantine"):
        (path / name).mkdir(exist_ok=True)
    return MessageLog(path / "messages", path / "quarantine")


def batch(number: int) -> tuple[BatchHeader, list[bytes], list[QuarantinedEvent]]:
    """Every third batch has no records, every second one bad events."""
    start = 10 * (number - (number + 2) // 3)
    end = start if number % 3 == 0 else start + 10
    bad = (
        [QuarantinedEvent(start, b"%d" % number, "no", "", "")]
        if number % 2 and end > start
        else []
    )
    return BatchHeader(start, end, number), [b"%d" % number] * (number % 5), bad


def publish(messages: MessageLog, begin: int, end: int) -> None:
    for number in range(begin, end):
        messages.publish(*batch(number))


def assert_all_there(messages: MessageLog, end: int) -> None:
    """The first batches, each once, each as it was published, and nothing else."""
    expected = [batch(number) for number in range(end)]
    headers = [header for header, _, _ in expected]
    assert list(messages.batches()) == headers
    assert [messages.read(header) for header in headers] == [told for _, told, _ in expected]
    assert messages.frontier == (headers[-1] if headers else None)
    entries = [event for _, _, bad in expected for event in bad]
    assert list(messages.quarantine.entries()) == entries
    for event in entries:
        assert messages.quarantine.get(event.offset) == event
    for number in range(0, end, 7):
        assert list(messages.batches(headers[number])) == headers[number + 1 :]


@pytest.mark.usefixtures("quick", "early")
def test_every_batch_is_there_at_any_time(tmp_path: Path) -> None:
    messages = opened(tmp_path)
    for number in range(150):
        publish(messages, number, number + 1)
        if number % 10 == 0:
            assert_all_there(messages, number + 1)
            assert_all_there(opened(tmp_path), number + 1)
    assert any(path.suffix == ROLLED_SUFFIX for path in messages.directory.iterdir())
    assert any(path.suffix == ROLLED_SUFFIX for path in messages.quarantine.directory.iterdir())
    assert len(list(messages.directory.iterdir())) < 20
    assert len(list(messages.quarantine.directory.iterdir())) < 20


@pytest.mark.usefixtures("quick", "early")
def test_a_rolled_batch_that_is_published_again(tmp_path: Path) -> None:
    messages = opened(tmp_path)
    publish(messages, 0, 30)
    for number in range(30):
        messages.publish(*batch(number))
    assert_all_there(messages, 30)
    header, _, _ = batch(4)
    with pytest.raises(CorruptionError, match="already published with other content"):
        messages.publish(header, [b"other"])
    with pytest.raises(HomeError, match="does not follow"):
        messages.publish(BatchHeader(header.start, header.end + 1, 0), [])


class _Counts:
    """How much work is done with files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.listed = self.opened = self.written = 0
        listdir, real_open, write = os.listdir, os.open, disk.write_aside

        def listing(path: Path) -> list[str]:
            names = listdir(path)
            self.listed += len(names)
            return names

        def opening(*arguments: Any, **options: Any) -> int:
            self.opened += 1
            return real_open(*arguments, **options)

        def writing(path: Path, *content: bytes) -> None:
            if path.suffix == ROLLED_SUFFIX:
                self.written += sum(map(len, content))
            write(path, *content)

        monkeypatch.setattr(os, "listdir", listing)
        monkeypatch.setattr(os, "open", opening)
        monkeypatch.setattr(file_store, "write_aside", writing)

    def taken(self) -> tuple[int, int, int]:
        taken = (self.listed, self.opened, self.written)
        self.listed = self.opened = self.written = 0
        return taken


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_publishing_looks_at_few_files_however_many_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts, messages = _Counts(monkeypatch), opened(tmp_path)
    body = [bytes(100)]
    most_listed = most_opened = rewritten = 0
    total = 2_500
    for i in range(total):
        messages.publish(BatchHeader(i, i + 1, 0), body)
        listed, opens, written = counts.taken()
        most_listed, most_opened = max(most_listed, listed), max(most_opened, opens)
        rewritten += written
    # Two listings each before and after: at most 31 files of each of three tiers.
    assert most_listed <= 4 * 3 * tiers.FAN_IN
    assert most_opened <= 4 * tiers.FAN_IN
    one = 200 + len(body[0])  # with headers and its entry in an index
    assert rewritten <= 2 * total * one, "a batch is rewritten once per tier"
    assert len(os.listdir(messages.directory)) <= 3 * tiers.FAN_IN
    counts.taken()
    again = opened(tmp_path)
    assert again.frontier == BatchHeader(total - 1, total, 0)
    again.sweep()
    assert counts.taken()[1] <= 5, "opening does not look into files"


@pytest.mark.usefixtures("quick")
def test_reading_lists_a_busy_directory_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(opened(tmp_path), 0, 20)
    counts, reader = _Counts(monkeypatch), opened(tmp_path)
    for header in reader.batches():
        reader.read(header)
    assert counts.taken()[0] <= 4 * 20


@pytest.mark.usefixtures("quick")
def test_a_home_that_never_rolled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read as it is, and rolled while batches are published."""
    with monkeypatch.context() as patch:
        patch.setattr(batchfiles, "stretch_to_roll", lambda *_: ())
        publish(opened(tmp_path), 0, 200)
    messages = opened(tmp_path)
    assert len(list(messages.directory.iterdir())) == 200
    assert_all_there(messages, 200)
    publish(messages, 200, 201)
    assert len(list(messages.directory.iterdir())) == 1
    assert_all_there(messages, 201)


# Crashes
# Damage


@pytest.mark.usefixtures("quick", "early")
def test_a_damaged_file_is_not_rolled_and_stops_nobody(tmp_path: Path) -> None:
    messages = opened(tmp_path)
    publish(messages, 0, 2)
    victim = messages.directory / "00000000000000000000-00000000000000000010.messages"
    victim.write_bytes(victim.read_bytes()[:-1] + b"x")
    publish(messages, 2, 60)
    assert victim.exists()
    assert len(list(messages.directory.iterdir())) < 20
    with pytest.raises(CorruptionError, match="is damaged at byte"):
        messages.read(batch(1)[0])
    assert messages.read(batch(7)[0]) == batch(7)[1]


@pytest.mark.usefixtures("quick", "early")
def test_nothing_is_rolled_across_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is missing can be restored from a backup."""
    with monkeypatch.context() as patch:
        patch.setattr(batchfiles, "stretch_to_roll", lambda *_: ())
        publish(opened(tmp_path), 0, 40)
    messages = opened(tmp_path)
    lost = messages.directory / "00000000000000000100-00000000000000000110.messages"
    content = lost.read_bytes()
    lost.unlink()
    publish(messages, 40, 50)
    with pytest.raises(CorruptionError, match="gap"):
        list(messages.batches())
    lost.write_bytes(content)
    again = opened(tmp_path)
    again.sweep()
    assert_all_there(again, 50)


@pytest.mark.usefixtures("quick", "early")
def test_no_room_to_roll_does_not_fail_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages, tries = opened(tmp_path), count()

    def full(path: Path, *content: bytes) -> None:
        if path.suffix != ROLLED_SUFFIX:
            disk.write_aside(path, *content)
            return
        next(tries)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(file_store, "write_aside", full)
    publish(messages, 0, 30)
    assert_all_there(messages, 30)
    assert next(tries) <= 15, "the same files are not tried again and again"
    monkeypatch.undo()
    monkeypatch.setattr(os, "fsync", lambda _: None)
    roll_early(monkeypatch, 4)
    publish(opened(tmp_path), 30, 40)
    assert len(list(messages.directory.iterdir())) < 12


@pytest.mark.usefixtures("quick", "early")
def test_every_cut_and_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    messages = opened(tmp_path)
    publish(messages, 0, 4)
    (path,) = messages.directory.iterdir()
    whole = path.read_bytes()
    cuts = [whole[:size] for size in range(len(whole))]
    flips = [whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :] for at in range(len(whole))]
    for damaged in cuts + flips:
        path.write_bytes(damaged)
        with pytest.raises(CorruptionError, match="is damaged at byte"):
            assert_all_there(opened(tmp_path), 4)


@pytest.mark.usefixtures("quick", "early")
def test_a_base_inside_a_rolled_file(tmp_path: Path) -> None:
    messages = opened(tmp_path)
    publish(messages, 0, 20)
    base = batch(5)[0]
    messages.write_base(base, [b"base"])
    for one in (messages, opened(tmp_path)):
        one.sweep()
        headers = list(one.batches())
        assert headers == [batch(number)[0] for number in range(5, 20)]
        assert one.read(base) == [b"base"]
        assert one.read(headers[1]) == batch(6)[1]
        with pytest.raises(HomeError, match="is no longer there"):
            list(one.batches(batch(4)[0]))
    publish(messages, 20, 40)
    messages.write_base(batch(39)[0], [b"later"])
    messages.sweep()
    assert [path.suffix for path in messages.directory.iterdir()] == [".base"]
    assert messages.frontier == messages.base == batch(39)[0]
    publish(messages, 40, 60)
    assert [header.active for header in messages.batches()] == list(range(39, 60))


# Which files are rolled


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.integers(100, 40_000_000), min_size=1, max_size=400), st.integers(0, 300))
def test_any_sizes_of_batches(sizes: list[int], at_once: int) -> None:
    """Few files are left, no file is too large, and little is rewritten, also where many files were
    there before the first of them was rolled."""
    files: list[Extent] = []
    bytes_of: dict[str, int] = {}
    rewritten = 0
    for i, size in enumerate(sizes):
        files.append(Extent((i, i + 1), (i, i + 1), 1, str(i)))
        bytes_of[str(i)] = size
        if i < at_once:
            continue
        while stretch := tiers.stretch_to_roll(files, lambda e: bytes_of[e.name], lambda *_: True):
            assert len(stretch) > 1
            begin = files.index(stretch[0])
            assert files[begin : begin + len(stretch)] == stretch
            made = Extent(
                stretch[0].first, stretch[-1].last, sum(e.batches for e in stretch), f"r{i}"
            )
            bytes_of[made.name] = sum(bytes_of[e.name] for e in stretch)
            rewritten += bytes_of[made.name]
            assert bytes_of[made.name] <= tiers.MAX_ROLLED_BYTES
            files[begin : begin + len(stretch)] = [made]
    assert rewritten <= tiers.TIERS * sum(sizes)
    if len(sizes) > at_once:
        assert len(files) <= tiers.TIERS * tiers.FAN_IN * (
            1 + 2 * sum(sizes) / tiers.MAX_ROLLED_BYTES
        )


def test_a_file_of_one_place_is_not_that_of_another() -> None:
    """A batch without records and the one behind it begin at the same offset."""
    one: Place = (10, 10)
    assert Extent(one, one, 1, "a").first < Extent((10, 20), (10, 20), 1, "b").first
