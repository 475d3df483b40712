"""The links of one node: sessions, and the output collected during a step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from penstock.messages import Message
from penstock.network.frames import VERSION, Body, Frame, Hello
from penstock.network.sessions import Session, Timing


@dataclass(slots=True)
class Outcome:
    """Frames to send, and messages to deliver to clients."""

    frames: list[tuple[int, Frame]] = field(default_factory=list)
    delivered: list[tuple[str, int, Message]] = field(default_factory=list)
    """Client, sequence number, message."""
    acknowledged: list[int] = field(default_factory=list)
    """Numbers of client requests that are done, here and on all further nodes."""


class Ports:
    """`now` is the time of the current step."""

    def __init__(self, links: Iterable[int], timing: Timing, start: int) -> None:
        self._timing, self._start = timing, start
        self._sessions = {link: Session(timing, start) for link in links}
        self.now = 0.0
        self.out = Outcome()

    @property
    def links(self) -> Iterable[int]:
        return self._sessions

    def __contains__(self, link: int) -> bool:
        return link in self._sessions

    def add(self, link: int) -> None:
        self._sessions[link] = Session(self._timing, self._start)

    def remove(self, link: int) -> None:
        del self._sessions[link]

    def outcome(self) -> Outcome:
        """The output collected since the last call."""
        out, self.out = self.out, Outcome()
        return out

    def open(self, link: int, answering: Frame | None = None) -> None:
        frames = self._sessions[link].open(Hello(VERSION), self.now, answering)
        self.out.frames += [(link, frame) for frame in frames]

    def is_open(self, link: int) -> bool:
        return self._sessions[link].is_open

    def send(self, link: int, body: Body) -> None:
        """Does nothing if the link is not open: tables are compared when it opens."""
        session = self._sessions.get(link)  # the link may have been removed meanwhile
        if session is not None and session.is_open:
            self.out.frames += [(link, frame) for frame in session.send(body, self.now)]

    def receive(self, link: int, frame: Frame) -> tuple[list[Body], bool]:
        return self._sessions[link].receive(frame, self.now)

    def acknowledge(self, link: int) -> None:
        self.out.frames.append((link, self._sessions[link].acknowledgement()))

    def send_again(self, link: int) -> None:
        """Resend all unacknowledged frames of a link, which may be lost."""
        self.out.frames += [(link, frame) for frame in self._sessions[link].again(self.now)]

    def tick(self) -> list[int]:
        """Resend unacknowledged frames; returns the links whose sessions have failed."""
        failed = []
        for link, session in self._sessions.items():
            again, has_failed = session.tick(self.now)
            if has_failed:
                failed.append(link)
            self.out.frames += [(link, frame) for frame in again]
        return failed

    @property
    def is_idle(self) -> bool:
        return all(session.is_idle for session in self._sessions.values())
