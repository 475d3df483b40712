"""Requests for descriptions: forwarded to the broker at the home, and answered from there."""

from __future__ import annotations

from penstock.errors import NetworkError
from penstock.service.connections import Connection
from penstock.service.packets import Ask, Described, NotDescribed, refusal

MAX_PENDING = 100_000


class Questions:
    def __init__(self) -> None:
        self._next = 1
        self._pending: dict[int, tuple[Connection, int]] = {}

    def pass_up(self, upstream: Connection | None, asker: Connection, ask: Ask) -> None:
        """The answer comes later, or at once if there is no route to the home."""
        if upstream is None or len(self._pending) >= MAX_PENDING:
            self._cannot(asker, ask.number)
            return
        number, self._next = self._next, self._next + 1
        self._pending[number] = (asker, ask.number)
        upstream.send(Ask(number, ask.subscription))

    def answer(self, packet: Described | NotDescribed) -> None:
        """NetworkError if there was no request."""
        asked = self._pending.pop(packet.number, None)
        if asked is None:
            raise NetworkError(f"an answer to question {packet.number}, which nobody has asked")
        asker, number = asked
        asker.send(packet._replace(number=number))

    def fail(self) -> None:
        """The route to the home is lost: the requests fail and may be repeated."""
        pending, self._pending = self._pending, {}
        for asker, number in pending.values():
            self._cannot(asker, number)

    @staticmethod
    def _cannot(asker: Connection, number: int) -> None:
        error = NetworkError("the broker has no way to the home at present")
        asker.send(NotDescribed(number, refusal(error, is_final=False)))
