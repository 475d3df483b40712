"""Evaluates rows in parts, so that a failing row fails alone.

An *attempt* evaluates some rows together and returns all their outcomes, or none: the operator
raised, returned an unusable value, or crashed its process. Then the rows are attempted again in two
halves, down to the single row that fails. How rows are evaluated (in this process or another one)
is up to the attempt.

The timeout of an operator is for one row. A part is sized so that it should take much less, by the
measured time per row, and gets no more time than one row: a row that hangs is detected after one
timeout, not after one per row. A part of slow rows that took too long is halved like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from penstock.errors import OperatorError
from penstock.operators.failures import FailureKind, OperatorFailure
from penstock.operators.interface import Operator, Result, StoredRow

MAX_ROWS_PER_ATTEMPT = 256
MAX_LOST_ROWS = 16
"""Rows of one call that may each cost a process (and up to a timeout) before the remaining rows
fail without being tried. Otherwise an operator that always hangs would block a batch for hours."""
PART_OF_TIMEOUT = 0.25
"""The share of the timeout that a part of several rows should take."""
_NEW_SAMPLE_WEIGHT = 0.3

Outcome: TypeAlias = Result | OperatorFailure


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A successful attempt."""

    outcomes: list[Outcome]
    seconds: float


@dataclass(frozen=True, slots=True)
class NotEvaluated:
    """A failed attempt."""

    kind: FailureKind
    reason: str
    lost_process: bool = False
    """Whether the process that ran it was lost."""
    was_fresh: bool = True
    """Whether that process had evaluated nothing before. Damage by an earlier row (leaked memory, a
    corrupted heap) must not be blamed on a later one: it gets a fresh process."""
    in_set_up: bool = False
    """Whether the set-up failed: then no row is at fault, and none can be evaluated."""

    @property
    def may_be_innocent(self) -> bool:
        """Whether a row that failed alone deserves another attempt. One that hangs does not: that
        would take another timeout."""
        return self.lost_process and not self.was_fresh and self.kind is not FailureKind.TIMEOUT


Attempt: TypeAlias = Callable[[Sequence[StoredRow]], Evaluated | NotEvaluated]


@dataclass(slots=True)
class Pace:
    """The measured time per row of one operator, and the number of rows attempted together."""

    timeout_seconds: float
    seconds_per_row: float | None
    """Declared at first, then measured; None: unknown."""
    _most: int = 1

    def rows_per_attempt(self) -> int:
        if self.seconds_per_row is None:
            return 1
        fitting = PART_OF_TIMEOUT * self.timeout_seconds / max(self.seconds_per_row, 1e-9)
        return max(1, min(MAX_ROWS_PER_ATTEMPT, self._most, int(fitting)))

    def note_success(self, rows: int, seconds: float) -> None:
        seen = seconds / rows
        known = self.seconds_per_row
        self.seconds_per_row = (
            seen if known is None else known + _NEW_SAMPLE_WEIGHT * (seen - known)
        )
        # Doubled at most: the first rows may have been the quick ones.
        self._most = max(self._most, min(2 * rows, MAX_ROWS_PER_ATTEMPT))

    def note_failure(self, rows: int) -> None:
        self._most = max(1, min(self._most, rows // 2))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of an evaluator call: one outcome per row, and the work done."""

    outcomes: list[Outcome]
    evaluated_rows: int = 0
    """Rows for which the operator was called and returned a result."""
    seconds: float = 0.0
    """Time spent inside the operator on these rows; divided by them, the cost per row."""


def evaluate_in_parts(
    operator: Operator, rows: Sequence[StoredRow], attempt: Attempt, pace: Pace
) -> Evaluation:
    """The outcome of every row. Rows with NULL are unknown unless the operator takes them."""
    taken = len(operator.arguments)
    if any(len(row) != taken for row in rows):
        raise OperatorError(f"operator {operator.name} takes {taken} arguments")
    wanted = [place for place, row in enumerate(rows) if operator.takes_null or None not in row]
    parts = _Parts(operator, attempt, pace)
    parts.evaluate([rows[place] for place in wanted])
    outcomes: list[Outcome] = [None] * len(rows)
    for place, outcome in zip(wanted, parts.outcomes, strict=True):
        outcomes[place] = outcome
    return Evaluation(outcomes, parts.evaluated_rows, parts.seconds)


@dataclass(slots=True)
class _Parts:
    """The rows of one call, evaluated in order."""

    operator: Operator
    attempt: Attempt
    pace: Pace
    outcomes: list[Outcome] = field(default_factory=list)
    evaluated_rows: int = 0
    seconds: float = 0.0
    lost_rows: int = 0

    def evaluate(self, rows: Sequence[StoredRow]) -> None:
        halves: list[int] = []  # a stack of the ends of parts still to be evaluated
        while (start := len(self.outcomes)) < len(rows):
            end = halves.pop() if halves else start + self.pace.rows_per_attempt()
            part = rows[start:end]
            attempted = self.attempt(part)
            if isinstance(attempted, Evaluated):
                self._take(attempted, len(part))
            elif attempted.in_set_up:
                self._fail(len(rows) - start, attempted.kind, attempted.reason)
            elif len(part) > 1:
                self.pace.note_failure(len(part))
                halves += [start + len(part), start + len(part) // 2]
            elif attempted.may_be_innocent:
                halves.append(start + 1)
            else:
                self._blame(attempted, len(rows))

    def _take(self, attempted: Evaluated, rows: int) -> None:
        self.outcomes += attempted.outcomes
        self.evaluated_rows += rows
        self.seconds += attempted.seconds
        self.pace.note_success(rows, attempted.seconds)

    def _blame(self, attempted: NotEvaluated, rows: int) -> None:
        self._fail(1, attempted.kind, attempted.reason)
        self.lost_rows += attempted.lost_process
        if self.lost_rows >= MAX_LOST_ROWS:
            why = f"not tried after {self.lost_rows} such failures in one batch: {attempted.reason}"
            self._fail(rows - len(self.outcomes), attempted.kind, why)

    def _fail(self, rows: int, kind: FailureKind, reason: str) -> None:
        one = OperatorFailure(self.operator.name, self.operator.version, kind, reason)
        self.outcomes += [one] * rows
