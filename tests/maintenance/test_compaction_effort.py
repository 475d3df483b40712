"""What compaction reads, writes and leaves: no more than the data needs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock import Hub
from penstock.maintenance.verification import verify
from penstock.storage import Home, RecordKind
from tests.maintenance.conftest import REVIEWS, STOCKS
from tests.maintenance.test_compact import shrink, used_home
from tests.maintenance.test_verify import silent


class Counted:
    """Counts the calls of a function."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function
        self.calls = 0

    def __call__(self, *arguments: object, **options: object) -> object:
        self.calls += 1
        return self._function(*arguments, **options)


def test_it_does_what_the_data_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every event that was applied is read once, every row that was changed since it was inserted
    is written and checked once, and messages that go to one table are not decoded."""
    from penstock.flow import engine
    from penstock.flow.events import encode_change, read_change
    from penstock.flow.stages import decode
    from penstock.messages import wire
    from penstock.storage import log_compaction

    opened = Home.open(used_home(tmp_path / "home", 120))
    events = sum(record.kind is RecordKind.EVENT for record in opened.log.read(0))
    events -= len(list(opened.quarantine.entries()))
    read, checked = Counted(read_change), Counted(read_change)
    written = Counted(encode_change)
    decoded, found = Counted(wire.decode_message), Counted(engine.Engine.events)
    monkeypatch.setattr(decode, "read_change", read)
    monkeypatch.setattr(log_compaction, "read_change", checked)
    monkeypatch.setattr(log_compaction, "encode_change", written)
    monkeypatch.setattr(wire, "decode_message", decoded)
    monkeypatch.setattr(engine.Engine, "events", found)
    shrink(opened.path)
    monkeypatch.undo()
    changed = 1
    assert (read.calls, written.calls, checked.calls) == (events, changed, changed)
    assert (decoded.calls, found.calls) == (0, 0)


def test_events_that_inserted_their_rows_stay_if_they_are_plain(tmp_path: Path) -> None:
    """Others, and rows that were changed since, are written as inserts."""
    envelope = {"op": "c", "source": {"table": "stocks", "connector": "x" * 50}}
    debezium = envelope | {"after": {"id": 3, "symbol": "C", "per": 3.0}}
    lines = [
        b'{"table":  "stocks", "op": "upsert", "row": {"id": 1, "symbol": "A", "per": 1.0}}',
        b'{"table": "stocks", "row": {"id": 2, "symbol": "B", "per": 1.0}}',
        json.dumps(debezium).encode(),
        b'{"table": "stocks", "op": "upsert", "row": {"id": 2, "symbol": "B", "per": 2.0}}',
        b'{"table": "stocks", "row": {"id": 4, "symbol": "D", "per": 4.0}}',
        b'{"table": "stocks", "op": "delete", "row": {"id": 4}}',
        b'{"table": "stocks", "op":"insert", "row": {"id": 4, "symbol": "D", "per": 5.0}}',
    ]
    with Hub(tmp_path / "home") as hub:
        hub.execute(STOCKS)
        Home.open(tmp_path / "home").log.append([(RecordKind.EVENT, line) for line in lines])
        before = hub.rows("stocks")
    shrink(tmp_path / "home")
    left = {r.offset: r.body for r in Home.open(tmp_path / "home").log.read(1)}
    rewritten = [b'"id":3,"symbol":"C"', b'"id":2,"symbol":"B"']
    assert list(left) == [1, 3, 4, 7]
    assert (left[1], left[7]) == (lines[0], lines[6])
    for offset, row in zip((3, 4), rewritten, strict=True):
        assert left[offset].startswith(b'{"table":"stocks","op":"insert","row":{' + row)
    with Hub(tmp_path / "home") as hub:
        assert sorted(map(str, hub.rows("stocks"))) == sorted(map(str, before))


def test_a_base_has_a_message_for_each_row_that_somebody_needs(tmp_path: Path) -> None:
    """Not for each pair of rows that join."""
    with Hub(tmp_path / "home") as hub:
        hub.execute(STOCKS)
        hub.execute(REVIEWS)
        hub.subscribe(
            "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE per > 5 AND rating > 2"
        )
        for i in range(30):
            hub.insert("stocks", {"id": i, "symbol": "A", "per": i})
            hub.insert("reviews", {"id": i, "symbol": "A", "rating": i % 10, "day": None})
    shrink(tmp_path / "home")
    home = Home.open(tmp_path / "home")
    base = home.messages.base
    assert base is not None
    assert len(home.messages.read(base)) == 24 + 21
    assert verify(home, silent).findings == []
