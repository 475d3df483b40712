"""Channels: ways to a subscriber.

A channel is passed whole cuts, all notifications of a batch at once, and returns how far it has
accepted them. It keeps no queue: what it does not accept stays in the message log and is sent
again. All channels pass one contract suite (tests/delivery/contract.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from penstock.client import News
from penstock.errors import ChannelError


class Channel(Protocol):
    """Called by one delivery at a time, in the order of cursors."""

    @property
    def target(self) -> str:
        """Its destination, for display."""

    def send(self, news: News) -> int:
        """Send one cut; returns the acknowledged cursor.

        `news.cursor` if all of it was accepted, `news.since` if the receiver wants it later;
        anything in between counts as `news.since`. ChannelError if it failed: the same cut, with
        the same ids, is sent again later.
        """

    def commit(self) -> None:
        """Make durable what was sent. Called before a cursor is saved."""

    def close(self) -> None:
        """Release the channel's resources. Nothing is sent after that."""


class CallbackChannel:
    """In process: calls a function with every cut. An exception raised by the function is a
    failure."""

    def __init__(self, callback: Callable[[News], object], target: str = "callback") -> None:
        self._callback = callback
        self.target = target

    def send(self, news: News) -> int:
        try:
            self._callback(news)
        except ChannelError:
            raise
        except Exception as error:
            raise ChannelError(
                f"the callback failed: {type(error).__name__}", detail=str(error)
            ) from error
        return news.cursor

    def commit(self) -> None:
        pass  # durability is up to the callee

    def close(self) -> None:
        pass
