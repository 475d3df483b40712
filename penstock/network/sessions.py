"""One end of a link: frames arrive in order, once, or the session ends and both sides know.

Every frame with a body is numbered, kept until it is acknowledged, and sent again after
`resend_after`. If nothing has been acknowledged for `fail_after`, or too much waits, the session
has failed: what was on its way is forgotten, and a new session begins with a new Hello. The other
side notices by the number of the session, and begins a new one too, which knows of this one. That
answer is not answered by yet another session, or two sides that missed each other once would go on
beginning for ever. Time comes in as an argument.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from penstock.network.frames import Body, Frame, Hello, body_bytes

MAX_WAITING_FRAMES = 10_000
"""That were not acknowledged. A link that does not keep up is given up, and resumes later."""
MAX_WAITING_BYTES = 64 << 20
"""The same for what they take: 64 MiB are 10,000 frames with rows of 6 kB."""
_SESSIONS_PER_START = 1 << 20


@dataclass(frozen=True, slots=True)
class Timing:
    """t1 and t2 of the paper, in seconds."""

    resend_after: float = 1.0
    fail_after: float = 10.0


class Session:
    """`start` is larger after every restart of the node, so that session numbers only grow."""

    def __init__(self, timing: Timing, start: int) -> None:
        self._timing = timing
        self._mine = start * _SESSIONS_PER_START
        self._theirs = 0
        self._last_of_theirs = 0
        self.is_open = False
        """Whether the other side's Hello has arrived."""
        self._reset()

    def _reset(self) -> None:
        self._waiting: deque[Frame] = deque()
        self._waiting_bytes = 0
        self._next = 0
        self._arrived = 0
        self._sent_at = 0.0
        self._heard_at = 0.0
        self._theirs = 0
        self.is_open = False

    @property
    def is_idle(self) -> bool:
        """Whether everything that was sent has arrived."""
        return self.is_open and not self._waiting

    def open(self, hello: Hello, now: float, answering: Frame | None = None) -> list[Frame]:
        """Begin a session, whatever was before; perhaps because the other side has (`answering`).

        If its new session knows of this one, it has taken our Hello and nothing behind it: this one
        then goes on after its Hello, under its number.
        """
        self._reset()
        if answering is not None:
            self._theirs = self._last_of_theirs = answering.sender
            if answering.receiver == self._mine:
                self._next = 1
                return []
        self._mine += 1
        return self.send(hello, now)

    def send(self, body: Body, now: float) -> list[Frame]:
        """Nothing goes out before the other side's Hello has arrived, but the own Hello."""
        if not self._waiting:
            self._sent_at = self._heard_at = now
        frame = Frame(self._mine, self._theirs, self._next, self._arrived, body)
        self._next += 1
        self._waiting.append(frame)
        self._waiting_bytes += body_bytes(body)
        return [frame]

    @property
    def has_failed(self) -> bool:
        return len(self._waiting) > MAX_WAITING_FRAMES or self._waiting_bytes > MAX_WAITING_BYTES

    def receive(self, frame: Frame, now: float) -> tuple[list[Body], bool]:
        """The bodies that have arrived in order; and whether the other side has begun anew, so that
        this one must too (`open`), before it takes the frame again."""
        if frame.receiver not in (0, self._mine) or frame.sender < self._last_of_theirs:
            return [], False  # of a session that is over
        if frame.sender != self._theirs:
            # A session that is known already may go on only if it knows of ours.
            is_known = frame.sender == self._last_of_theirs and frame.receiver != self._mine
            if frame.number != 0 or is_known:
                return [], False
            if self._theirs:
                return [], True
            self._theirs = self._last_of_theirs = frame.sender
            self._arrived = 0
            self._heard_at = now  # until now there was nobody to acknowledge anything
        if frame.receiver == self._mine:
            self._acknowledge(frame.arrived, now)
        if frame.number != self._arrived:
            return [], False  # repeated, or ahead of one that was lost
        self._arrived += 1
        self.is_open = True
        assert frame.body is not None
        return [frame.body], False

    def _acknowledge(self, arrived: int, now: float) -> None:
        while self._waiting and self._waiting[0].number < arrived:
            gone = self._waiting.popleft()
            assert gone.body is not None
            self._waiting_bytes -= body_bytes(gone.body)
            self._heard_at = self._sent_at = now

    def acknowledgement(self) -> Frame:
        return Frame(self._mine, self._theirs, -1, self._arrived, None)

    def tick(self, now: float) -> tuple[list[Frame], bool]:
        """Frames to send again; and whether the session has failed."""
        if not self._waiting:
            return [], False
        if self.is_open and (now - self._heard_at >= self._timing.fail_after or self.has_failed):
            return [], True
        if now - self._sent_at < self._timing.resend_after:
            return [], False
        return self.again(now)[:_RESENT_FRAMES], False

    def again(self, now: float) -> list[Frame]:
        """All frames that have not been acknowledged: for a link that has broken and is back."""
        self._sent_at = now
        return [f._replace(receiver=self._theirs, arrived=self._arrived) for f in self._waiting]


_RESENT_FRAMES = 100
"""Sent again at once, at most: the others follow when these have been acknowledged."""
