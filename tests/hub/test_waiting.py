"""What waits for a subscriber that does not look is limited, by number and by bytes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock import Hub, Subscription
from penstock.delivery import subscription
from penstock.errors import SubscriptionError


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as opened:
        opened.execute("CREATE TABLE pages (id INT PRIMARY KEY, text VARCHAR)")
        yield opened


def write(hub: Hub, first: int, count: int, size: int) -> None:
    for number in range(first, first + count):
        hub.insert("pages", {"id": number, "text": "x" * size})


@pytest.mark.parametrize(
    ("limit", "most", "size", "said"),
    [
        ("MAX_PENDING_NOTIFICATIONS", 20, 1, "more than 20 were waiting"),
        ("MAX_PENDING_BYTES", 100_000, 10_000, "more than 100,000 bytes were waiting"),
    ],
)
def test_too_much_waits(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, size: int, said: str
) -> None:
    monkeypatch.setattr(subscription, limit, most)
    monkeypatch.setattr(subscription, "MAX_INBOX_MESSAGES", 2)
    sub = hub.subscribe("SELECT id, text FROM pages")
    write(hub, 0, 5, size)
    assert len(sub.notifications()) == 5
    write(hub, 5, 30, size)
    write(hub, 35, 3, size)  # these alone are not too much, and yet they come too late
    with pytest.raises(SubscriptionError, match="missed notifications") as refused:
        sub.notifications()
    assert refused.value.detail == said
    assert len(sub.content()) == 38
    assert sub.notifications() == []
    write(hub, 38, 2, size)
    assert [one.after and one.after["id"] for one in sub.notifications()] == [38, 39]


def test_news_come_in_parts(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.hub.reading.MAX_PENDING_BYTES", 25_000)
    sub = hub.subscribe("SELECT id FROM pages")
    other = hub.subscribe("SELECT id, text FROM pages")
    write(hub, 0, 10, 10_000)
    parts, cursor = [], 0
    while (news := hub.news(other, cursor)).notifications:
        parts.append([one.after and one.after["id"] for one in news.notifications])
        cursor = news.cursor
    assert parts == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    assert len(hub.news(sub, 0).notifications) == 10


def test_messages_that_wait_are_limited_by_bytes(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    applied: list[int] = []
    take_in = Subscription._take_in

    def counted(one: Subscription) -> None:
        applied.append(len(one._inbox))
        take_in(one)

    monkeypatch.setattr(Subscription, "_take_in", counted)
    monkeypatch.setattr(subscription, "MAX_INBOX_BYTES", 50_000)
    sub = hub.subscribe("SELECT id, text FROM pages")
    write(hub, 0, 20, 1)
    assert applied == []
    write(hub, 20, 20, 10_000)
    assert applied
    assert max(applied[1:]) <= 5
    assert len(sub.content()) == 40
