"""Channels: ways to a subscriber.

A channel is handed whole cuts, all notifications of a batch at once, and says how much of them it
has. It keeps no queue: what it does not take stays in the message log and comes again. All channels
pass one contract suite (tests/delivery/contract.py).
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
        """Where it leads, for people."""

    def send(self, news: News) -> int:
        """Hand over one cut; returns the acknowledged cursor.

        `news.cursor` if all of it was taken, `news.since` if the receiver wants it later; anything
        in between counts as `news.since`. ChannelError if it failed: the same cut, with the same
        ids, is sent again later.
        """

    def commit(self) -> None:
        """Make durable what was sent. Called before a cursor is saved."""

    def close(self) -> None:
        """Release what the channel holds. Nothing is sent after that."""


class CallbackChannel:
    """In process: calls a function with every cut. An exception of the function is a failure."""

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
        pass  # whoever is called decides what is durable

    def close(self) -> None:
        pass
