"""What is tidied away: what a crash left, never what is whole because something else is not."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from penstock import Hub
from penstock.errors import CorruptionError
from penstock.maintenance.compaction import compact
from penstock.pipeline import snapshots
from penstock.pipeline.snapshots import compile_snapshot, discard_damaged
from penstock.registry import Registry
from penstock.storage import BatchHeader, Home, Log, QuarantinedEvent, RecordKind
from penstock.storage.disk import sweep_temporary
from penstock.storage.home_statistics import (
    KEPT_FILES,
    HomeStatistics,
    load_statistics,
    save_statistics,
)
from penstock.storage.log_compaction import compacted_segment
from penstock.storage.table_replay import Replay
from tests.maintenance.test_verify import silent

EVENT = RecordKind.EVENT


def bad(offset: int) -> list[QuarantinedEvent]:
    return [QuarantinedEvent(offset, b"%d" % offset, "no", "", "")]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Three batches of two records, each with an event in quarantine."""
    home = Home.create(tmp_path / "home")
    home.log.append([(EVENT, b"{}")] * 6)
    for start in (0, 2, 4):
        home.messages.publish(BatchHeader(start, start + 2, start), [b"m"], bad(start))
    return home


def process(home: Home) -> Home:
    with Home.open(home.path).processing_lock("hub"):
        return Home.open(home.path)


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.parametrize("lost", [0, 1])
def test_the_quarantine_of_a_batch_whose_messages_are_missing(home: Home, lost: int) -> None:
    before = files(home.quarantine.directory)
    sorted(home.messages.directory.iterdir())[lost].unlink()
    after = process(home)
    assert files(home.quarantine.directory) == before
    assert [event.offset for event in after.quarantine.entries()] == [0, 2, 4]
    assert after.quarantine.get(2 * lost).offset == 2 * lost


def test_what_was_never_published_goes(home: Home) -> None:
    header = BatchHeader(6, 7, 6)
    home.quarantine.write(header, bad(6))
    assert [event.offset for event in home.quarantine.entries()] == [0, 2, 4]
    before = files(home.quarantine.directory)
    process(home)
    after = files(home.quarantine.directory)
    assert len(after) == 3
    assert after.items() <= before.items()


def test_what_only_the_quarantine_still_knows_stays(tmp_path: Path) -> None:
    """A compacted log no longer holds refused events: they could not be found again."""
    path = tmp_path / "home"
    with Hub(path) as hub:
        hub.execute("CREATE TABLE stocks (id INTEGER PRIMARY KEY, per INTEGER)")
        hub.subscribe("SELECT * FROM stocks")
        Log(path / "log").append([(EVENT, b"no change at all")])
        hub.insert("stocks", {"id": 1, "per": 1})
    compact(Home.open(path), silent)
    assert Home.open(path).log.compacted_to == 4
    shutil.rmtree(path / "messages")
    (path / "messages").mkdir()
    with Home.open(path).processing_lock("hub"):
        assert len(files(path / "quarantine")) == 1


def test_a_damaged_base_does_not_remove_what_it_stands_for(home: Home) -> None:
    last = list(home.messages.batches())[1]
    home.messages.write_base(last, [b"base"])
    (base,) = home.messages.directory.glob("*.base")
    base.write_bytes(base.read_bytes()[:-1])
    before = files(home.messages.directory)
    with pytest.raises(CorruptionError, match=r"\.base is damaged"):
        process(home)
    assert files(home.messages.directory) == before


def test_a_damaged_compacted_segment_does_not_remove_what_it_stands_for(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "home")
    ddl = (RecordKind.DDL, b"CREATE TABLE stocks (id INTEGER PRIMARY KEY)")
    log = Log(home.log.directory, segment_bytes=1)
    for entry in (ddl, (EVENT, b'{"table": "stocks", "row": {"id": 1}}'), (EVENT, b"{}")):
        log.append([entry])
    replay = Replay()
    replay.advance(home.log, 2)
    content = bytearray(compacted_segment(home.log, replay))
    content[-1] ^= 1
    (home.log.directory / "00000000000000000000.log").write_bytes(content)
    before = files(home.log.directory)
    with pytest.raises(CorruptionError, match="checksum of a frame is wrong"):
        process(home)
    assert files(home.log.directory) == before


def test_only_our_own_temporary_files_go(tmp_path: Path) -> None:
    for name in ("notes.tmp", "a.messages.tmp", "b.messages.12.tmp"):
        (tmp_path / name).touch()
    assert sweep_temporary(tmp_path) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"notes.tmp", "a.messages.tmp"}


def test_statistics_that_were_just_saved_stay(tmp_path: Path) -> None:
    """Even where older ones, by time, are of later offsets: the log was restored since."""
    Home.create(tmp_path / "home")
    for offset in range(900, 900 - KEPT_FILES - 2, -1):
        path = save_statistics(tmp_path / "home", HomeStatistics(offset, 0, 0, (), ()))
        assert path.exists()
    assert load_statistics(tmp_path / "home").offset == 900


def subscribed(path: Path) -> Home:
    with Hub(path) as hub:
        hub.execute("CREATE TABLE stocks (id INTEGER PRIMARY KEY, per INTEGER)")
        hub.subscribe("SELECT * FROM stocks")
    return Home.open(path)


def test_a_snapshot_that_cannot_be_read_just_now_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = subscribed(tmp_path / "home")
    with Registry(home) as registry:
        path = compile_snapshot(home.snapshots, registry, 2, {}).directory

    def refuse(*_: object) -> bytes:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", refuse)
        discard_damaged(home.snapshots)
    assert snapshots.is_sound(path)
    os.truncate(path / "snapshot.json", 3)
    discard_damaged(home.snapshots)
    assert not path.exists()


def test_a_snapshot_that_was_just_made_stays(tmp_path: Path) -> None:
    """A pipeline that lost its checkpoint starts over, and needs early ones first."""
    home = subscribed(tmp_path / "home")
    with Registry(home) as registry:
        registry.subscribe_many(["SELECT * FROM stocks"] * 5)
        for active in (7, 6, 2):
            made = compile_snapshot(home.snapshots, registry, active, {})
            assert made.directory.exists()
        again = compile_snapshot(home.snapshots, registry, 2, {})  # in the place of what is there
        assert snapshots.is_sound(again.directory)
