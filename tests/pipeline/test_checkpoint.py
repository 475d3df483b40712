"""Parts of a home that do not belong together are noticed before a run begins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.errors import HomeError
from penstock.pipeline.checkpoint import check_home
from penstock.pipeline.offsets import StreamOffset
from penstock.storage import BatchHeader, Home, RecordKind


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home.create(tmp_path / "home")
    home.log.append([(RecordKind.EVENT, b"")] * 4)
    return home


def planned(home: Home, batch: int, position: int, *, done: bool) -> None:
    """What Spark leaves in the checkpoint before, and after, a batch."""
    for name in ("offsets", "commits"):
        (home.checkpoint / name).mkdir(exist_ok=True)
    offset = json.dumps(StreamOffset(position).to_json())
    (home.checkpoint / "offsets" / str(batch)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{offset}')
    (home.checkpoint / "offsets" / f".{batch}.crc").write_bytes(b"crc")
    if done:
        (home.checkpoint / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')


def test_a_home_before_its_first_run(home: Home) -> None:
    check_home(home)


def test_a_home_in_the_middle_of_a_batch(home: Home) -> None:
    home.messages.publish(BatchHeader(0, 2, 0), [])
    for batch, position in enumerate((1, 1, 2)):
        planned(home, batch, position, done=True)
    planned(home, 10, 4, done=False)
    check_home(home)


def test_a_lost_checkpoint_is_no_trouble(home: Home) -> None:
    home.messages.publish(BatchHeader(0, 4, 0), [])
    check_home(home)


def test_a_log_that_has_lost_records(home: Home) -> None:
    planned(home, 0, 5, done=False)
    with pytest.raises(HomeError, match="ahead of the log: it has seen 5 records, of which"):
        check_home(home)


def test_a_message_log_of_another_home(home: Home) -> None:
    home.messages.publish(BatchHeader(0, 5, 0), [])
    with pytest.raises(HomeError, match="message log is ahead of the log"):
        check_home(home)


def test_a_message_log_that_has_lost_batches(home: Home) -> None:
    home.messages.publish(BatchHeader(0, 2, 0), [])
    planned(home, 9, 2, done=True)
    planned(home, 10, 4, done=True)
    with pytest.raises(HomeError, match="4 records are done, but the messages of 2 are there") as e:
        check_home(home)
    assert "rebuilds it from the log" in e.value.hint


def test_a_checkpoint_of_something_else(home: Home) -> None:
    planned(home, 0, 2, done=True)
    (home.checkpoint / "offsets" / "0").write_text('v1\n{}\n{"logOffset":3}')
    with pytest.raises(HomeError, match="0 is not an offset of this pipeline"):
        check_home(home)


def test_a_checkpoint_of_another_layout(home: Home) -> None:
    planned(home, 0, 2, done=True)
    (home.checkpoint / "offsets" / "0").write_text('v1\n{}\n{"position":2,"active":0,"told":0}')
    with pytest.raises(HomeError, match="the checkpoint is of another release") as caught:
        check_home(home)
    assert "rebuilds it from the log" in caught.value.hint
