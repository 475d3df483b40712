"""One end of a link: t1 and t2, limits, frames that come twice or too early."""

from __future__ import annotations

import pytest

from penstock.messages import EVERYONE, Message, Position
from penstock.network import sessions
from penstock.network.frames import Check, Frame, Hello, Parcel, Publish
from penstock.network.sessions import Session, Timing

TIMING = Timing(resend_after=1.0, fail_after=5.0)


def opened() -> Session:
    """A session whose other side has greeted and has acknowledged the own greeting."""
    session = Session(TIMING, 1)
    (hello,) = session.open(Hello(1), 0.0)
    assert session.receive(Frame(9, hello.sender, 0, 1, Hello(1)), 0.0) == ([Hello(1)], False)
    assert session.is_open
    assert session.is_idle
    return session


def test_a_frame_is_sent_again_after_t1_and_not_before() -> None:
    session = opened()
    (sent,) = session.send(Check(1), 10.0)
    assert session.tick(10.9) == ([], False)
    again, has_failed = session.tick(11.0)
    assert [(frame.number, frame.body) for frame in again] == [(sent.number, Check(1))]
    assert not has_failed
    assert session.tick(11.9) == ([], False)
    assert session.tick(12.0)[0]


def test_a_session_fails_after_t2_without_an_acknowledgement() -> None:
    session = opened()
    session.send(Check(1), 10.0)
    assert session.tick(14.9)[1] is False
    assert session.tick(15.0) == ([], True)


def test_an_acknowledgement_begins_t2_anew() -> None:
    session = opened()
    first, second = (session.send(Check(i), 10.0)[0] for i in (1, 2))
    session.receive(Frame(9, first.sender, -1, first.number + 1, None), 14.0)
    again, has_failed = session.tick(18.0)
    assert [frame.number for frame in again] == [second.number]
    assert not has_failed
    assert session.tick(19.0)[1] is True


def test_frames_that_come_twice_or_too_early_are_left() -> None:
    session = opened()
    mine = session.acknowledgement().sender
    early = Frame(9, mine, 2, 0, Check(2))
    assert session.receive(early, 1.0) == ([], False)
    for number in (1, 2):
        frame = Frame(9, mine, number, 0, Check(number))
        assert session.receive(frame, 1.0) == ([Check(number)], False)
        assert session.receive(frame, 1.0) == ([], False)
    assert session.acknowledgement().arrived == 3


def test_too_much_that_waits_fails_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_WAITING_FRAMES", 3)
    session = opened()
    for number in range(3):
        session.send(Check(number), 10.0)
    assert not session.has_failed
    session.send(Check(3), 10.0)
    assert session.tick(10.0) == ([], True)


def test_large_messages_that_wait_fail_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_WAITING_BYTES", 10_000)
    session = opened()
    message = Message(Position(1, 1), 1, (1,), (1,), EVERYONE)
    for number in range(2):
        assert not session.has_failed
        session.send(Publish("log", number, Parcel(message, encoded=bytes(6_000))), 10.0)
    assert session.has_failed


def test_two_sides_that_missed_each_other_find_together() -> None:
    """A greeting from the past makes one side begin anew, and its answer the other; no more."""
    one, other = Session(TIMING, 1), Session(TIMING, 1)
    (stale,) = one.open(Hello(1), 0.0)
    (greeting,) = one.open(Hello(1), 0.0)
    (first,) = other.open(Hello(1), 0.0)
    assert other.receive(stale, 0.0) == ([Hello(1)], False)
    assert one.receive(first, 0.0) == ([Hello(1)], False)
    (forgotten,) = one.send(Check(0), 0.0)
    assert other.receive(greeting, 0.0) == ([], True)
    (answer,) = other.open(Hello(1), 0.0, greeting)
    assert other.receive(greeting, 0.0) == ([Hello(1)], False)
    assert one.receive(answer, 0.0) == ([], True)
    assert one.open(Hello(1), 0.0, answer) == []
    assert one.receive(answer, 0.0) == ([Hello(1)], False)
    assert other.receive(forgotten, 0.0) == ([], False)
    for sender, receiver in ((one, other), (other, one)):
        (sent,) = sender.send(Check(7), 0.0)
        assert receiver.receive(sent, 0.0) == ([Check(7)], False)
