"""Notifications as lines of JSON, and a channel that appends them to a file or a pipe."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from penstock.client import News, Notification
from penstock.errors import ChannelError
from penstock.json_text import json_line

STANDARD_OUTPUT = Path("-")

_LINE_START = b'{"id": "'
_TAIL_BYTES = 16 << 20  # 16 MiB: a line holds one row before and after, far smaller than this


def notification_lines(news: News) -> Iterator[str]:
    """One line per notification. `cursor` is where to continue: it advances with the last line of a
    cut, so a reader that stops before that gets the cut again."""
    last = len(news.notifications)
    for number, one in enumerate(news.notifications, 1):
        yield json_line(notification_members(one, news.cursor if number == last else news.since))


def notification_members(notification: Notification, cursor: int) -> dict[str, object]:
    return {
        "id": notification.id,
        "subscription": notification.subscription,
        "offset": notification.offset,
        "cursor": cursor,
        "kind": notification.kind,
        "before": notification.before,
        "after": notification.after,
    }


class JsonLinesChannel:
    """Appends to a file, a named pipe, or standard output (`-`).

    A cut is written with one system call where possible. A line truncated by a crash is removed
    when the file is opened again; it was never acknowledged, and is sent again.
    """

    @staticmethod
    def target_of(path: Path) -> str:
        return "standard output" if path == STANDARD_OUTPUT else str(path.absolute())

    def __init__(self, path: Path) -> None:
        self.target = self.target_of(path)
        self._descriptor = self._open(path)
        self._is_file = stat.S_ISREG(os.fstat(self._descriptor).st_mode)
        if self._is_file and path != STANDARD_OUTPUT:
            try:
                _remove_torn_line(path)
            except BaseException:
                self.close()
                raise

    def send(self, news: News) -> int:
        lines = "".join(f"{line}\n" for line in notification_lines(news)).encode()
        before = os.fstat(self._descriptor).st_size
        try:
            view = memoryview(lines)
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError as error:
            if self._is_file:  # or the next line would continue a truncated one
                os.ftruncate(self._descriptor, before)
            raise self._failed("write to", error) from error
        return news.cursor

    def commit(self) -> None:
        if self._is_file:
            try:
                os.fsync(self._descriptor)
            except OSError as error:
                raise self._failed("sync", error) from error

    def close(self) -> None:
        os.close(self._descriptor)

    def _open(self, path: Path) -> int:
        try:
            if path == STANDARD_OUTPUT:
                return os.dup(1)
            # For a named pipe, blocks until it has a reader.
            return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError as error:
            raise self._failed("open", error) from error

    def _failed(self, doing: str, error: OSError) -> ChannelError:
        return ChannelError(f"cannot {doing} {self.target}: {error.strerror or error}")


def _remove_torn_line(path: Path) -> None:
    """Truncate a file to its last complete line. ChannelError if the rest is not one of our
    lines."""
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        start = max(0, size - _TAIL_BYTES)
        file.seek(start)
        tail = file.read()
        whole = tail.rfind(b"\n") + 1
        torn = tail[whole:]
        if not torn:
            return
        if not torn.startswith(_LINE_START[: len(torn)]):
            raise ChannelError(
                f"{path} does not end with a line of notifications",
                hint="deliver to a file of its own",
            )
        file.truncate(start + whole)
        os.fsync(file.fileno())
