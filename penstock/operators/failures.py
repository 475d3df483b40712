"""Rows that an operator could not evaluate, and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from penstock.errors import ChangeError, shortened


class FailureKind(StrEnum):
    RAISED = "raised"
    """An exception of the operator or of its set-up."""
    GARBAGE = "garbage"
    """The returned value is not what the operator declares."""
    TIMEOUT = "timeout"
    MEMORY = "memory"
    DIED = "died"
    """The process that ran it ended: a crash in a library, os._exit, a signal."""
    JOIN = "join"
    """The bindings of a group of predicates have too many combinations."""


_HAPPENED = {
    FailureKind.RAISED: "raised an error",
    FailureKind.GARBAGE: "returned what it does not declare",
    FailureKind.TIMEOUT: "took longer than its timeout",
    FailureKind.MEMORY: "needs more memory than its limit",
    FailureKind.DIED: "ended the process that ran it",
    FailureKind.JOIN: "has too many combinations of bindings",
}


@dataclass(frozen=True, slots=True)
class OperatorFailure:
    """Takes the place of one row's result. Failures are never cached."""

    operator: str
    version: str
    kind: FailureKind
    reason: str

    def error(self) -> ChangeError:
        """The failure in the form of the quarantine."""
        return ChangeError(
            f"operator {self.operator} {_HAPPENED[self.kind]} on this row",
            detail=shortened(f"version {self.version}: {self.reason}"),
            hint="replay the event when a new version of the operator is registered",
        )
