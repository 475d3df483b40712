"""Reading notifications from a cursor on, over batches as a pipeline cuts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import Hub
from penstock.client import Notification
from penstock.delivery import SubscriptionReader
from penstock.errors import HomeError
from penstock.flow.changes import Change, Op
from penstock.maintenance.compaction import compact
from penstock.storage import BatchHeader, Home, MessageLog
from penstock.testing import LocalPipeline
from tests.hub.test_arguments import quietly
from tests.odd_values import ODD_VALUES, check_refusal
from tests.pipeline.telling import Teller


@pytest.fixture
def teller(tmp_path: Path) -> Teller:
    """A table with one row, and subscription 2."""
    told = Teller(Home.create(tmp_path / "home"))
    told.registry.define("CREATE TABLE stocks (id INT PRIMARY KEY, per INT)")
    told.publish(Change("stocks", Op.INSERT, {"id": 1, "per": 1}))
    assert told.registry.subscribe("SELECT per FROM stocks").id == 2
    return told


def set_per(*values: int) -> list[Change]:
    return [Change("stocks", Op.UPDATE, {"id": 1, "per": value}) for value in values]


def told_since(home: Home, cursor: int | None, number: int = 2) -> list[Notification]:
    reader = SubscriptionReader(home, number, cursor)
    return [one for part in reader.new() for one in part.notifications]


def values(told: list[Notification]) -> list[object]:
    return [one.after and one.after["per"] for one in told]


def test_a_first_content_and_a_change_at_the_same_offset(teller: Teller) -> None:
    """Batch [3, 3) makes the subscription active, batch [3, 4) holds the change at offset 3."""
    pipeline = LocalPipeline(teller.home)
    before = SubscriptionReader(teller.home, 2)
    before.catch_up()
    assert (before.rows(), before.cursor) == ([], 0)
    pipeline.run()
    first = SubscriptionReader(teller.home, 2)
    first.catch_up()
    assert (first.rows(), first.cursor) == ([{"per": 1}], 3)
    teller.publish(*set_per(2))
    pipeline.run()
    assert values(told_since(teller.home, first.cursor)) == [2]
    told = told_since(teller.home, before.cursor)
    assert values(told) == [1, 2]
    assert [one.offset for one in told] == [3, 3]
    assert [one.id for one in told] == ["2:3:initial:[[1]]", "2:3:[[1]]"]


def test_a_cursor_within_a_batch_is_its_start(teller: Teller) -> None:
    pipeline = LocalPipeline(teller.home)
    pipeline.run()
    teller.publish(*set_per(2, 3, 4))
    pipeline.run()
    for cursor in (3, 4, 5):
        assert values(told_since(teller.home, cursor)) == [2, 3, 4]
    assert told_since(teller.home, 6) == []


@pytest.mark.parametrize("odd", ODD_VALUES)
def test_no_cursor(teller: Teller, odd: str) -> None:
    try:
        told_since(teller.home, ODD_VALUES[odd]())  # type: ignore[arg-type]
    except HomeError as error:
        check_refusal(error)
    with pytest.raises(HomeError, match="there is no cursor 99 yet"):
        told_since(teller.home, 99)


def test_cursors_of_a_compacted_home(teller: Teller) -> None:
    quiet = teller.registry.subscribe("SELECT per FROM stocks", initial="none").id
    with Hub(teller.home.path) as hub:
        for value in (2, 3):
            hub.update("stocks", {"id": 1, "per": value})
    compact(teller.home, quietly)
    with Hub(teller.home.path) as hub:
        hub.update("stocks", {"id": 1, "per": 4})
        assert hub.news(2, 6).cursor == 7
    for number in (2, quiet):
        with pytest.raises(HomeError, match="between offsets 5 and 6 is no longer there"):
            told_since(teller.home, 5, number)
        assert values(told_since(teller.home, 6, number)) == [4]
    # From nothing, a content is built from what is there; changes that are gone cannot be told.
    assert values(told_since(teller.home, 0)) == [3, 4]
    with pytest.raises(HomeError, match="no longer there") as refused:
        told_since(teller.home, 0, quiet)
    assert refused.value.hint == "go on from what is still there: cursor 6"
    reader = SubscriptionReader(teller.home, quiet)
    assert reader.lost_before == 6
    assert values([one for part in reader.new() for one in part.notifications]) == [4]


@pytest.mark.parametrize("read_before", [0, 1, 2])
def test_a_content_is_read_again_if_a_compaction_overtakes_it(
    teller: Teller, read_before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Hub(teller.home.path) as hub:
        for value in (2, 3, 4):
            hub.update("stocks", {"id": 1, "per": value})
    read, batches = MessageLog.read, 0

    def compact_between(log: MessageLog, header: BatchHeader) -> list[bytes]:
        nonlocal batches
        batches += 1
        if batches == read_before + 1:
            compact(Home.open(teller.home.path), quietly)
        return read(log, header)

    reader = SubscriptionReader(Home.open(teller.home.path), 2)
    monkeypatch.setattr(MessageLog, "read", compact_between)
    reader.catch_up()
    assert batches > read_before
    assert (reader.rows(), reader.cursor) == ([{"per": 4}], 6)
