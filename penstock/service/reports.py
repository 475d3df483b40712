"""Rate-limited reports of a server process about its peers, so that these cannot fill the disk."""

from __future__ import annotations

import time
from collections.abc import Callable

MAX_LINES = 20
"""Per period; further lines are only counted."""
PERIOD_SECONDS = 10.0


class Reports:
    """Lines for people, each distinct one once per period."""

    def __init__(
        self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._say = say
        self._clock = clock
        self._said: set[str] = set()
        self._left_out = 0
        self._began = clock()

    def __call__(self, line: str) -> None:
        now = self._clock()
        if now - self._began >= PERIOD_SECONDS:
            if self._left_out:
                self._say(f"… {self._left_out} lines like these were left out")
            self._said.clear()
            self._left_out, self._began = 0, now
        if line in self._said or len(self._said) >= MAX_LINES:
            self._left_out += 1
            return
        self._said.add(line)
        self._say(line)
