"""Many subscriptions read at once are told what each is told alone."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import Hub
from penstock.delivery import FanOut, SubscriptionReader
from penstock.registry import Registry
from penstock.routing import table
from penstock.storage import Home
from penstock.testing import LocalPipeline
from tests.differential.stories import MIXED, Story, stories
from tests.differential.test_changes_only import with_twins
from tests.examples import examples
from tests.pipeline.telling import Teller
from tests.pipeline.test_stages import EVENTS, happen


def standing(home: Home) -> list[int]:
    with Registry(home) as registry:
        return [one.id for one in registry.subscriptions()]


def told_alone(home: Home, number: int) -> list[str]:
    """NaN is not equal to itself, its text is."""
    reader = SubscriptionReader(home, number)
    return [repr(one) for news in reader.new() for one in news.notifications]


def told_together(home: Home, cursor: int = 0) -> dict[int, list[str]]:
    told: dict[int, list[str]] = {}
    for cut in FanOut(home, cursor).new():
        for number, notifications in cut.notifications.items():
            assert notifications
            told.setdefault(number, []).extend(map(repr, notifications))
    return told


def check(home: Home) -> None:
    together = told_together(home)
    for number in standing(home):
        assert together.get(number, []) == told_alone(home, number)


@pytest.mark.slow
@settings(max_examples=examples(15))
@given(
    stories(MIXED, max_steps=10, any_plan=True),
    st.lists(st.sampled_from(EVENTS), min_size=8, max_size=24),
    st.integers(1, 9),
    st.sampled_from([0, table.PLAIN_POINTS]),
)
def test_together_as_alone(story: Story, events: list[str], rows: int, plain_points: int) -> None:
    """In batches as a pipeline or a Hub makes them, with a base or without, in both gears."""
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(table.RoutingTable.__init__, "__defaults__", (plain_points,))
        teller = Teller(Home.create(Path(directory) / "home"))
        pipeline = LocalPipeline(teller.home, rows)
        for step, event in zip(with_twins(story), events * 99, strict=False):
            teller.tell([step])
            pipeline = happen(event, pipeline, rows)
        pipeline.run()
        check(teller.home)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    with Hub(tmp_path / "home") as hub:
        hub.execute("CREATE TABLE stocks (id INT PRIMARY KEY, per INT)")
        for least in range(4):
            hub.subscribe(f"SELECT * FROM stocks WHERE per >= {least}")
        hub.subscribe("SELECT * FROM stocks", initial="none")
        for number in range(4):
            hub.insert("stocks", {"id": number, "per": number})
        hub.unsubscribe(2)
        hub.insert("stocks", {"id": 9, "per": 9})
    return Home.open(tmp_path / "home")


def test_every_message_is_read_once(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []
    real = type(home.messages).read

    def counted(messages: object, header: object) -> list[bytes]:
        read.append(header)
        return real(messages, header)  # type: ignore[arg-type]

    monkeypatch.setattr(type(home.messages), "read", counted)
    fan_out = FanOut(home)
    cuts = list(fan_out.new())
    assert len(read) == len(set(read)) == len(list(home.messages.batches())) == len(cuts)
    assert list(fan_out.new()) == []
    assert sorted(fan_out.clients) == [1, 3, 4, 5]
    assert sorted(fan_out.contents) == [1, 3, 4]


def test_one_cursor_for_all(home: Home) -> None:
    cuts = list(FanOut(home).new())
    assert [cut.since for cut in cuts[1:]] == [cut.cursor for cut in cuts[:-1]]
    for cut in cuts:
        assert list(FanOut(home, cut.cursor).new()) == [c for c in cuts if c.cursor > cut.cursor]


def test_only_some(home: Home) -> None:
    fan_out = FanOut(home, only={3, 5})
    told = {number for cut in fan_out.new() for number in cut.notifications}
    assert told == set(fan_out.clients) == {3, 5}


def test_it_goes_on_with_subscriptions_that_come_later(home: Home) -> None:
    fan_out = FanOut(home)
    list(fan_out.new())
    with Hub(home.path) as hub:
        late = hub.subscribe("SELECT id FROM stocks WHERE per > 2").id
        hub.insert("stocks", {"id": 10, "per": 3})
    cuts = list(fan_out.new())
    assert [len(cut.notifications.get(late, [])) for cut in cuts] == [2, 1]
    check(home)


def test_up_to_a_batch(home: Home) -> None:
    headers = list(home.messages.batches())
    fan_out = FanOut(home)
    list(fan_out.new(headers[6]))
    assert fan_out.cursor == headers[6].end
    assert fan_out.contents[1].rows() == [{"id": 0, "per": 0}]


def test_traffic_is_seen_on_the_way(home: Home) -> None:
    routed: list[tuple[int, int]] = []
    list(FanOut(home, on_route=lambda size, to: routed.append((size, to))).new())
    assert [to for _, to in routed] == [2, 3, 4, 5, 4]
    assert all(size > 0 for size, _ in routed)
