"""Cursors: how far a reader of notifications has come.

A cursor is an offset of the log at which a batch ends: a reader at a cursor has received exactly
the changes of the records before it. Cursors are valid for all subscriptions of a home. 0 is the
beginning: nothing was received yet. A reader that takes a content and continues from its cursor
misses nothing and receives nothing twice.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.client.content import ContentRow, Notification

BEGINNING = 0


class Snapshot(NamedTuple):
    """A content, and the cursor at which it is valid."""

    rows: list[ContentRow]
    cursor: int


class News(NamedTuple):
    """The changes between two cursors; `cursor` is the one to continue from.

    A reader that has processed only some of it continues from `since` and receives all of it again,
    with the same ids.
    """

    since: int
    cursor: int
    notifications: list[Notification]
