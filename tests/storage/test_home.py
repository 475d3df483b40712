"""The home: made once, recognised, processed by one at a time."""

from __future__ import annotations

import multiprocessing
import os
import signal
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from penstock.errors import EventError, HomeError, LockedError
from penstock.storage import (
    AnyHome,
    BatchHeader,
    Home,
    MemoryHome,
    QuarantinedEvent,
    Record,
    RecordKind,
)
from penstock.storage.quarantine import list_quarantine, replay

_FORK = multiprocessing.get_context("fork")


def test_making_and_opening(tmp_path: Path) -> None:
    made = Home.create(tmp_path / "new" / "home")
    made.log.append([(RecordKind.EVENT, b"x")])
    opened = Home.open(str(made.path))
    assert opened.log.end == 1
    assert opened.messages.frontier is None
    for place in (opened.checkpoint, opened.staging, opened.snapshots):
        assert place.is_dir()


def test_an_empty_directory_will_do(tmp_path: Path) -> None:
    Home.create(tmp_path)
    with pytest.raises(HomeError, match="already is a penstock home"):
        Home.create(tmp_path)


def test_a_crash_while_making_it_can_be_repeated(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "penstock.json.7.tmp").touch()
    Home.create(tmp_path)


def test_a_foreign_directory_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(HomeError, match="is not empty") as caught:
        Home.create(tmp_path)
    assert "thesis.tex" in caught.value.detail
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_is_no_place_for_a_home(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HomeError, match="cannot create the home"):
        Home.create(tmp_path / "file")
    with pytest.raises(HomeError, match="is not a penstock home"):
        Home.open(tmp_path / "file")


def test_what_is_not_a_home(tmp_path: Path) -> None:
    with pytest.raises(HomeError, match="does not exist") as caught:
        Home.open(tmp_path / "nowhere")
    assert "penstock init" in caught.value.hint
    with pytest.raises(HomeError, match="is not a penstock home"):
        Home.open(tmp_path)
    (tmp_path / "penstock.json").write_text("{}")
    with pytest.raises(HomeError, match="is not a penstock home"):
        Home.open(tmp_path)


def test_a_layout_of_another_release(tmp_path: Path) -> None:
    (tmp_path / "penstock.json").write_text('{"penstock_home": 99, "created": ""}')
    with pytest.raises(HomeError, match="layout version 99"):
        Home.open(tmp_path)


def test_a_home_in_part(tmp_path: Path) -> None:
    Home.create(tmp_path)
    (tmp_path / "quarantine").rmdir()
    with pytest.raises(HomeError, match="lacks its directory quarantine"):
        Home.open(tmp_path)


# The processing lock


@pytest.fixture(params=["disk", "memory"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> AnyHome:
    return Home.create(tmp_path) if request.param == "disk" else MemoryHome()


def test_one_at_a_time(home: AnyHome) -> None:
    with home.processing_lock("hub"), pytest.raises(LockedError, match="hub"):
        home.processing_lock("pipeline").__enter__()
    with home.processing_lock("pipeline"):
        pass


def test_the_lock_says_by_whom(tmp_path: Path) -> None:
    home = Home.create(tmp_path)
    with home.processing_lock("pipeline"), pytest.raises(LockedError) as caught:
        Home.open(tmp_path).processing_lock("hub").__enter__()
    assert f"by pipeline (process {os.getpid()})" in caught.value.primary
    assert "since 20" in caught.value.detail
    assert "stop" in caught.value.hint


def _hold(path: Path, held: Event) -> None:
    with Home.open(path).processing_lock("pipeline"):
        held.set()
        signal.pause()


def test_the_lock_dies_with_its_process(tmp_path: Path) -> None:
    home, held = Home.create(tmp_path), _FORK.Event()
    holder = _FORK.Process(target=_hold, args=(tmp_path, held))
    holder.start()
    assert held.wait(30)
    with pytest.raises(LockedError, match=f"process {holder.pid}"):
        home.processing_lock("hub").__enter__()
    os.kill(holder.pid or 0, signal.SIGKILL)
    holder.join()
    with home.processing_lock("hub"):
        pass


def test_the_holder_sweeps(tmp_path: Path) -> None:
    home = Home.create(tmp_path)
    leftover = home.messages.directory / "x.messages.5.tmp"
    leftover.touch()
    with home.processing_lock("hub"):
        assert not leftover.exists()


def test_publishing_for_a_holder_ends_with_its_term(tmp_path: Path) -> None:
    home, header = Home.create(tmp_path), BatchHeader(0, 1, 0)
    home.log.append([(RecordKind.EVENT, b"x")])
    with home.processing_lock("pipeline") as first, home.publishing(first.term):
        home.messages.publish(header, [])
    with home.processing_lock("pipeline") as second:
        with pytest.raises(LockedError, match="somebody else"), home.publishing(first.term):
            raise AssertionError("not reached")
        with home.publishing(second.term):
            home.messages.publish(header, [])


# Replaying the quarantine


def test_replaying(home: AnyHome) -> None:
    home.log.append([(RecordKind.EVENT, b"bad"), (RecordKind.EVENT, b"worse")])
    bad = [QuarantinedEvent(i, raw, "no", "", "") for i, raw in enumerate((b"bad", b"worse"))]
    home.messages.publish(BatchHeader(0, 2, 0), [], bad)
    assert [entry.replayed_at for entry in list_quarantine(home)] == [(), ()]
    assert replay(home, [1, 0]) == [3, 5]
    assert list(home.log.read(2, 4)) == [
        Record(2, RecordKind.REPLAY, b'{"of":1}'),
        Record(3, RecordKind.EVENT, b"worse"),
    ]
    replay(home, [1])
    entries = list(list_quarantine(home))
    assert [entry.replayed_at for entry in entries] == [(5,), (3, 7)]
    assert [entry.event for entry in entries] == bad


def test_replaying_what_is_not_there_changes_nothing(home: AnyHome) -> None:
    home.log.append([(RecordKind.EVENT, b"bad")])
    home.messages.publish(BatchHeader(0, 1, 0), [], [QuarantinedEvent(0, b"bad", "no", "", "")])
    with pytest.raises(EventError, match="offset 5"):
        replay(home, [0, 5])
    assert home.log.end == 1
