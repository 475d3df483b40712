"""One end of a link: frames arrive in order, exactly once, or the session fails on both sides.

Every frame with a body is numbered, kept until it is acknowledged, and resent after `resend_after`.
If nothing has been acknowledged for `fail_after`, or too much is unacknowledged, the session has
failed: frames in flight are dropped, and a new session begins with a new Hello. The other side
detects this by the session number and begins a new session too, which refers to this one. That
answer does not trigger yet another session, otherwise two sides could restart each other for ever.
Time is passed as an argument.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from penstock.network.frames import Body, Frame, Hello, body_bytes

MAX_WAITING_FRAMES = 10_000
"""Maximum unacknowledged frames. The session of a slower link fails, and resumes later."""
MAX_WAITING_BYTES = 64 << 20
"""Maximum unacknowledged bytes: 64 MiB are 10,000 frames with rows of 6 kB."""
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
        """Whether everything that was sent has been acknowledged."""
        return self.is_open and not self._waiting

    def open(self, hello: Hello, now: float, answering: Frame | None = None) -> list[Frame]:
        """Begin a new session; `answering` is the frame of the other side that began one, if any.

        If its new session refers to this one, it has received our Hello and nothing after it: this
        session then continues after its Hello, under the same number.
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
        """Number and queue a body. Before `is_open`, callers must send nothing but the Hello."""
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
        """The bodies that have arrived in order; and whether the other side has begun a new
        session, so that this side must too (`open`), before it receives the frame again."""
        if frame.receiver not in (0, self._mine) or frame.sender < self._last_of_theirs:
            return [], False  # of an earlier session
        if frame.sender != self._theirs:
            # A session that was seen before may continue only if it refers to ours.
            is_known = frame.sender == self._last_of_theirs and frame.receiver != self._mine
            if frame.number != 0 or is_known:
                return [], False
            if self._theirs:
                return [], True
            self._theirs = self._last_of_theirs = frame.sender
            self._arrived = 0
            self._heard_at = now  # nothing could be acknowledged before
        if frame.receiver == self._mine:
            self._acknowledge(frame.arrived, now)
        if frame.number != self._arrived:
            return [], False  # a duplicate, or a frame after a lost one
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
        """Frames to resend; and whether the session has failed."""
        if not self._waiting:
            return [], False
        if self.is_open and (now - self._heard_at >= self._timing.fail_after or self.has_failed):
            return [], True
        if now - self._sent_at < self._timing.resend_after:
            return [], False
        return self.again(now)[:_RESENT_FRAMES], False

    def again(self, now: float) -> list[Frame]:
        """All unacknowledged frames: for a link that was restored."""
        self._sent_at = now
        return [f._replace(receiver=self._theirs, arrived=self._arrived) for f in self._waiting]


_RESENT_FRAMES = 100
"""Maximum frames resent at a time: the others follow when these have been acknowledged."""
