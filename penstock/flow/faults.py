"""Faults: unexpected exceptions while a record is processed.

A record that cannot be processed must not stop a home. So Hub and pipeline catch unexpected
exceptions, find the record at fault, append a SET_ASIDE record for it to the log, and process the
others. An event that is set aside goes to the quarantine, a subscription is suspended.

Faults are deterministic: they recur whenever the same records are processed. A full disk, a lost
connection or too little memory is not caused by a record and is not a fault.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from penstock.errors import (
    BacklogError,
    HomeError,
    OperatorError,
    PenstockError,
    PipelineError,
    RecordError,
    WireError,
)

MAX_FOUND = 100
"""Maximum records set aside by one search, each of which takes some 20 attempts. If there are more,
the next try continues the search."""
MAX_FAULT_CHARACTERS = 500

_NOT_OF_RECORDS = (
    OSError,
    MemoryError,
    HomeError,
    PipelineError,
    BacklogError,
    WireError,
    OperatorError,  # an operator is missing: no record is at fault
)
_NOT_OF_LIBRARIES = ("sqlite3", "lmdb", "py4j", "pyspark")
"""Libraries that report the state of the machine, not of a record."""


class RecordFaultError(PenstockError):
    """A fault of a known record, so that no search is needed."""

    def __init__(self, offset: int, cause: Exception) -> None:
        super().__init__(describe_fault(cause))
        self.offset = offset


@dataclass(frozen=True, slots=True)
class SetAside:
    """A record that is not processed, and why.

    `suspect` is the subscription that was involved in the fault of an event, if there was one: if
    it is involved in a second one, it is suspended.
    """

    offset: int
    primary: str
    detail: str = ""
    suspect: int | None = None


class Attempt(Protocol):
    """Processes some events for some subscriptions, without side effects.

    Returns the fault that happened, None if there was none.
    """

    def __call__(self, events: Sequence[int], subscriptions: Sequence[int]) -> Exception | None: ...


def is_fault(error: BaseException) -> bool:
    """Whether an exception is caused by the records that were processed."""
    if isinstance(error, RecordError):
        return True
    if not isinstance(error, Exception) or isinstance(error, _NOT_OF_RECORDS):
        return False
    return type(error).__module__.partition(".")[0] not in _NOT_OF_LIBRARIES


def describe_fault(error: Exception) -> str:
    """A fault in one line: what it is, and where in the code it happened."""
    if isinstance(error, RecordFaultError):
        return error.primary
    text = error.primary if isinstance(error, PenstockError) else _text_of(error)
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].name}, line {frames[-1].lineno})" if frames else ""
    described = f"{type(error).__name__}: {text}"
    return f"{described[:MAX_FAULT_CHARACTERS]}{place}"


def _text_of(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - an exception whose __str__ fails
        return "no description"


@contextmanager
def blaming(offset: int) -> Iterator[None]:
    """Attributes a fault in the block to the record at this offset."""
    try:
        yield
    except RecordFaultError:
        raise
    except Exception as error:
        if not is_fault(error):
            raise
        raise RecordFaultError(offset, error) from error


def find_culprits(
    events: Sequence[int],
    subscriptions: Sequence[int],
    attempt: Attempt,
    suspects: Collection[int] = (),
) -> list[SetAside]:
    """The records to set aside so that all others can be processed.

    Nothing if the attempt succeeds. Raises the fault if it happens without any record.
    `suspects` were involved in faults of events that were set aside before.
    """
    found: list[SetAside] = []
    search = _Search(attempt, frozenset(suspects))
    while len(found) < MAX_FOUND:
        error = attempt(events, subscriptions)
        if error is None:
            break
        culprit = search.culprit(events, subscriptions, error)
        found.append(culprit)
        events = [one for one in events if one != culprit.offset]
        subscriptions = [one for one in subscriptions if one != culprit.offset]
    return found


@dataclass(frozen=True)
class _Search:
    attempt: Attempt
    suspects: frozenset[int]

    def culprit(
        self, events: Sequence[int], subscriptions: Sequence[int], error: Exception
    ) -> SetAside:
        """One record that causes a fault."""
        if isinstance(error, RecordFaultError):
            return SetAside(error.offset, error.primary)
        why = describe_fault(error)
        if self.attempt((), ()) is not None:
            raise error
        if self.attempt((), subscriptions) is not None:
            last = _last_of_failing(subscriptions, lambda some: self.attempt((), some))
            return SetAside(last, why)
        if self.attempt(events, ()) is not None:
            last = _last_of_failing(events, lambda some: self.attempt(some, ()))
            return SetAside(last, why)
        return self._of_pair(events, subscriptions, why)

    def _of_pair(self, events: Sequence[int], subscriptions: Sequence[int], why: str) -> SetAside:
        """An event and a subscription fail together: the one that also fails with others is at
        fault. If there are no others, it is the subscription: it can be subscribed again, while an
        event concerns all subscriptions."""
        event = _last_of_failing(events, lambda some: self.attempt(some, subscriptions))
        upto = events[: events.index(event) + 1]
        suspect = _last_of_failing(subscriptions, lambda some: self.attempt(upto, some))
        if suspect in self.suspects:
            return SetAside(suspect, why)
        other_events = [one for one in events if one != event]
        if other_events:
            is_of_event = self.attempt(other_events, subscriptions) is None
        else:
            others = [one for one in subscriptions if one != suspect]
            is_of_event = self.attempt(upto, others) is not None
        return SetAside(event, why, suspect=suspect) if is_of_event else SetAside(suspect, why)


def _last_of_failing(
    records: Sequence[int], attempt: Callable[[Sequence[int]], Exception | None]
) -> int:
    """The last record of the shortest failing prefix; the whole sequence is known to fail."""
    passing, failing = 0, len(records)
    while failing - passing > 1:
        middle = (passing + failing) // 2
        if attempt(records[:middle]) is None:
            passing = middle
        else:
            failing = middle
    return records[failing - 1]
