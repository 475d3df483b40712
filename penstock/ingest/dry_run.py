"""Dry run: which events of a file would be accepted, as far as the catalog alone determines it.

Whether a row exists is known only when the event is processed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from penstock.catalog import Catalog
from penstock.errors import ChangeError, EventError, NoChangeError
from penstock.flow.events import read_change
from penstock.ingest.input_files import InputBatch

FIRST_NUMBERS = 5
"""Number of positions listed for each reason."""
MAX_REASONS = 1_000

_VALUE = re.compile(r": .* is not a ", re.DOTALL)
_LITERAL = re.compile(r"'(?:[^'\\]|\\.)*'|(?<![\w.])-?[0-9]+(?:\.[0-9]+)?(?!\w)")


@dataclass(slots=True)
class Refusal:
    """Events that would be refused for the same reason."""

    example: ChangeError
    """The error of the first of them."""
    unit: str
    events: int = 0
    numbers: list[int] = field(default_factory=list)
    """The positions of the first of them."""


@dataclass(slots=True)
class FileCheck:
    """The outcome for the events of one file."""

    name: str
    accepted: int = 0
    skipped: int = 0
    refusals: dict[str, Refusal] = field(default_factory=dict)
    unreadable: EventError | None = None
    """Why the file, or the rest of it, cannot be read."""

    @property
    def refused(self) -> int:
        return sum(refusal.events for refusal in self.refusals.values())

    @property
    def is_good(self) -> bool:
        return not self.refusals and self.unreadable is None


def check_file(
    name: str, batches: Iterable[InputBatch], catalog: Catalog, offset: int
) -> FileCheck:
    """Check all events as if they were appended at the offset."""
    found = FileCheck(name)
    try:
        for batch in batches:
            for event, number in zip(batch.events, batch.numbers, strict=True):
                _check_event(found, event, number, batch.unit, catalog, offset)
    except EventError as error:
        found.unreadable = error
    return found


def _check_event(
    found: FileCheck, event: bytes, number: int, unit: str, catalog: Catalog, offset: int
) -> None:
    try:
        read_change(event, catalog, offset)
    except NoChangeError:
        found.skipped += 1
    except ChangeError as error:
        _note(found, error, number, unit)
    else:
        found.accepted += 1


def _note(found: FileCheck, error: ChangeError, number: int, unit: str) -> None:
    kind = kind_of(error)
    if kind not in found.refusals and len(found.refusals) >= MAX_REASONS:
        kind = "other reasons"
    refusal = found.refusals.setdefault(kind, Refusal(error, unit))
    refusal.events += 1
    if len(refusal.numbers) < FIRST_NUMBERS:
        refusal.numbers.append(number)


def kind_of(error: ChangeError) -> str:
    """The reason without its values, for grouping."""
    return _LITERAL.sub("…", _VALUE.sub(": … is not a ", error.primary, count=1))
