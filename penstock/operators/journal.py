"""What must be stored about operators beyond their results: which version was in use when, and
which rows were left out of contents because an operator failed on them.

Replaying a log needs the version that evaluated a row at an offset: contents depend on its results.
A home without its journal still works; rows are then evaluated with the current version.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

MAX_LEFT_OUT = 10_000
"""Maximum number of rows listed; further ones are left out of contents as well."""


class LeftOut(NamedTuple):
    """A row that existed when a subscription was made, and is not in its content."""

    subscription: int
    table: str
    key: bytes
    """Of the row, packed."""
    shown_key: str
    reason: str
    """Contains the operator's name."""

    @property
    def text(self) -> str:
        return f"{self.table} with {self.shown_key}: {self.reason}"


class Journal(Protocol):
    def note_version(self, operator: str, version: str, since: int | None) -> None:
        """Record that an operator has this version from an offset on; None: if no version is
        recorded yet. The first recorded version is taken to be in use from the beginning."""

    def version_at(self, operator: str, offset: int) -> str | None:
        """The version in use at an offset; None if it is the current one."""

    def has_changed(self, operator: str) -> bool:
        """Whether rows were evaluated by several versions."""

    def note_left_out(self, rows: Iterable[LeftOut]) -> None: ...

    def forget_left_out(self, table: str, keys: Iterable[bytes]) -> None:
        """Rows have changed: they are in the contents that select them now."""

    def left_out(self) -> list[LeftOut]:
        """Ordered by subscription, table and key."""

    def close(self) -> None: ...


class MemoryJournal:
    """Lasts as long as the process."""

    def __init__(self) -> None:
        self._versions: dict[str, list[tuple[int, str]]] = {}
        self._left_out: dict[tuple[int, str, bytes], LeftOut] = {}

    def note_version(self, operator: str, version: str, since: int | None) -> None:
        add_version(self._versions.setdefault(operator, []), version, since)

    def version_at(self, operator: str, offset: int) -> str | None:
        return find_version(self._versions.get(operator, []), offset)

    def has_changed(self, operator: str) -> bool:
        return len(self._versions.get(operator, [])) > 1

    def note_left_out(self, rows: Iterable[LeftOut]) -> None:
        for one in rows:
            if len(self._left_out) < MAX_LEFT_OUT:
                self._left_out[one.subscription, one.table, one.key] = one

    def forget_left_out(self, table: str, keys: Iterable[bytes]) -> None:
        if self._left_out:
            gone = {(table, key) for key in keys}
            kept = {place: one for place, one in self._left_out.items() if place[1:] not in gone}
            self._left_out = kept

    def left_out(self) -> list[LeftOut]:
        return sorted(self._left_out.values())

    def close(self) -> None:
        """Nothing to release."""


def add_version(known: list[tuple[int, str]], version: str, since: int | None) -> bool:
    """Record a version, unless it is the current one; returns whether it was new."""
    if known and (since is None or known[-1][1] == version):
        return False
    known.append((since if known and since else 0, version))
    return True


def find_version(known: list[tuple[int, str]], offset: int) -> str | None:
    """The version at an offset, if it is not the last one."""
    if not known or offset >= known[-1][0]:
        return None
    return next((version for since, version in reversed(known) if since <= offset), known[0][1])
