"""What only the checkpoint of a pipeline knows: batches without records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.errors import HomeError
from penstock.flow.changes import Change, Op
from penstock.flow.events import encode_change
from penstock.pipeline.checkpoint import check_home
from penstock.pipeline.offsets import StreamOffset
from penstock.registry import Registry
from penstock.storage import Home, RecordKind
from penstock.testing import LocalPipeline
from tests.maintenance.test_verify import look, serious


def publish(home: Home, number: int) -> None:
    body = encode_change(Change("stocks", Op.INSERT, {"id": number, "per": number}))
    home.log.append([(RecordKind.EVENT, body)])


def remember(home: Home, *offsets: StreamOffset) -> None:
    """A checkpoint as Spark leaves it after these batches."""
    for name in ("offsets", "commits"):
        (home.checkpoint / name).mkdir(exist_ok=True)
    (home.checkpoint / "metadata").write_text('{"id": "0"}')
    for number, offset in enumerate(offsets):
        text = f'v1\n{{"conf": {{}}}}\n{json.dumps(offset.to_json())}'
        (home.checkpoint / "offsets" / str(number)).write_text(text)
        (home.checkpoint / "commits" / str(number)).write_text("v1\n{}")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A batch of everything, then one without records, which made the subscription active."""
    home = Home.create(tmp_path / "home")
    with Registry(home) as registry:
        registry.define("CREATE TABLE stocks (id INTEGER PRIMARY KEY, per INTEGER)")
        registry.subscribe("SELECT * FROM stocks")
    publish(home, 1)
    LocalPipeline(home).run()
    assert [(h.start, h.end, h.active) for h in home.messages.batches()] == [(0, 3, 0), (3, 3, 3)]
    remember(home, StreamOffset(3, 0, 0), StreamOffset(3, 3, 0))
    return home


def lost(home: Home) -> Path:
    return home.messages.directory / f"{3:020d}-{3:020d}.messages"


def test_all_is_there(home: Home) -> None:
    assert serious(look(home.path)) == []
    check_home(home)


def test_the_last_batch_is_missing(home: Home) -> None:
    lost(home).unlink()
    (missing, ahead) = [what for _, what in serious(look(home.path))][::-1]
    assert "the batch without records at offset 3 is missing" in missing
    assert "the checkpoint is ahead of the message log" in ahead
    with pytest.raises(HomeError, match="subscriptions before 3 are active"):
        check_home(Home.open(home.path))


def test_one_in_between_is_missing(home: Home) -> None:
    publish(home, 2)
    LocalPipeline(home).run()
    remember(home, StreamOffset(3, 0, 0), StreamOffset(3, 3, 0), StreamOffset(4, 3, 3))
    assert serious(look(home.path)) == []
    lost(home).unlink()
    found = dict(serious(look(home.path)))
    assert "at offset 3 is missing" in found[str(home.messages.directory)]


def test_a_batch_that_was_not_needed(tmp_path: Path, home: Home) -> None:
    """Only a withdrawal: nobody is told anything, and nothing is published."""
    with Registry(home) as registry:
        registry.withdraw(1)
    LocalPipeline(home).run()
    frontier = home.messages.frontier
    assert frontier is not None
    assert (frontier.start, frontier.end) == (3, 4)
    end = StreamOffset(4, 3, 3)
    remember(home, StreamOffset(3, 0, 0), StreamOffset(3, 3, 0), end, end._replace(active=4))
    assert serious(look(home.path)) == []
    check_home(home)
