"""Cursors: where a reader of notifications stands.

A cursor is an offset of the log at which a batch ends: a reader that stands there has been told
everything that the records before it changed, and nothing else. It means the same for every
subscription of a home. 0 is where everybody begins, who has been told nothing yet. Whoever takes a
content and goes on from its cursor misses nothing, and is told nothing twice.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.client.content import ContentRow, Notification

BEGINNING = 0


class Snapshot(NamedTuple):
    """A content, and the cursor at which it was that."""

    rows: list[ContentRow]
    cursor: int


class News(NamedTuple):
    """What has changed between two cursors; `cursor` is the one to go on from.

    Whoever has taken in only some of it goes on from `since`, and is told all of it again, with the
    same ids.
    """

    since: int
    cursor: int
    notifications: list[Notification]
