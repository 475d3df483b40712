"""Rows in parts: exactly those that fail alone fail, whatever happens to their neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.operators import BIGINT, Argument, FailureKind, OperatorFailure, operator
from penstock.operators.interface import StoredRow
from penstock.operators.limits import (
    MAX_LOST_ROWS,
    MAX_ROWS_PER_ATTEMPT,
    Evaluated,
    NotEvaluated,
    Pace,
    evaluate_in_parts,
)

IS_ODD = operator("isOdd", [Argument("n", BIGINT)])(lambda n: n % 2 == 1)


class Worker:
    """Fails every part with a bad row in it; one that lost its process begins anew."""

    def __init__(self, bad: set[int], lost_process: bool, most_per_process: int = 1 << 30) -> None:
        self.bad = bad
        self.lost_process = lost_process
        self.most_per_process = most_per_process
        self.attempts = 0
        self.served = 0

    def attempt(self, rows: Sequence[StoredRow]) -> Evaluated | NotEvaluated:
        self.attempts += 1
        was_fresh = self.served == 0
        self.served += len(rows)
        if self.served > self.most_per_process:  # a leak
            self.served = 0
            return NotEvaluated(FailureKind.MEMORY, "full", lost_process=True, was_fresh=was_fresh)
        if any(n in self.bad for (n,) in rows):
            self.served = 0 if self.lost_process else self.served
            kind = FailureKind.DIED if self.lost_process else FailureKind.RAISED
            return NotEvaluated(kind, "bad", self.lost_process, was_fresh)
        return Evaluated([isinstance(n, int) and n % 2 == 1 for (n,) in rows], 1e-6 * len(rows))


def pace() -> Pace:
    return Pace(timeout_seconds=10.0, seconds_per_row=None)


@given(st.sets(st.integers(0, 299), max_size=MAX_LOST_ROWS - 1), st.booleans(), st.integers(1, 300))
def test_bad_rows_fail_alone(bad: set[int], lost_process: bool, rows: int) -> None:
    worker = Worker(bad, lost_process)
    done = evaluate_in_parts(IS_ODD, [(n,) for n in range(rows)], worker.attempt, pace())
    failed = {n for n, one in enumerate(done.outcomes) if isinstance(one, OperatorFailure)}
    assert failed == {n for n in bad if n < rows}
    assert all(done.outcomes[n] == (n % 2 == 1) for n in range(rows) if n not in bad)
    assert done.evaluated_rows == rows - len(failed)


@given(st.integers(1, 50))
def test_a_leak_fails_no_row(most_per_process: int) -> None:
    worker = Worker(set(), True, most_per_process)
    done = evaluate_in_parts(IS_ODD, [(n,) for n in range(200)], worker.attempt, pace())
    assert done.outcomes == [n % 2 == 1 for n in range(200)]


def test_attempts_are_few() -> None:
    """Parts grow to the maximum, and one bad row costs two attempts per halving."""
    grown = pace()
    evaluate_in_parts(IS_ODD, [(1,)] * 1_000, Worker(set(), False).attempt, grown)
    assert grown.rows_per_attempt() == MAX_ROWS_PER_ATTEMPT
    worker = Worker({100}, True)
    rows = [(n,) for n in range(MAX_ROWS_PER_ATTEMPT)]
    evaluate_in_parts(IS_ODD, rows, worker.attempt, grown)
    assert worker.attempts <= 2 * log2(MAX_ROWS_PER_ATTEMPT) + 2


def test_parts_follow_what_rows_take() -> None:
    """A part of several rows should end within a quarter of the timeout of one."""
    slow = Pace(timeout_seconds=10.0, seconds_per_row=None)
    for rows in (1, 2, 4):
        slow.note_success(rows, 0.5 * rows)
    assert slow.rows_per_attempt() == 5
    slow.note_success(5, 25.0)
    assert slow.rows_per_attempt() == 1
    declared = Pace(timeout_seconds=10.0, seconds_per_row=1e-4)
    assert declared.rows_per_attempt() == 1  # what is declared is not trusted before it is seen


def test_too_many_lost_rows_end_the_call() -> None:
    worker = Worker(set(range(1_000)), True)
    done = evaluate_in_parts(IS_ODD, [(n,) for n in range(1_000)], worker.attempt, pace())
    assert worker.attempts == MAX_LOST_ROWS
    assert all(isinstance(one, OperatorFailure) for one in done.outcomes)
    last = done.outcomes[-1]
    assert isinstance(last, OperatorFailure)
    assert last.reason == f"not tried after {MAX_LOST_ROWS} such failures in one batch: bad"


def test_rows_that_raise_do_not_end_the_call() -> None:
    done = evaluate_in_parts(
        IS_ODD, [(n,) for n in range(200)], Worker(set(range(199)), False).attempt, pace()
    )
    assert done.outcomes[-1] is True


@pytest.mark.parametrize("kind", [FailureKind.TIMEOUT, FailureKind.DIED])
def test_a_row_that_hangs_is_not_tried_twice(kind: FailureKind) -> None:
    attempts = 0

    def attempt(rows: Sequence[StoredRow]) -> Evaluated | NotEvaluated:
        nonlocal attempts
        attempts += 1
        return NotEvaluated(kind, "lost", lost_process=True, was_fresh=attempts > 1)

    evaluate_in_parts(IS_ODD, [(1,)], attempt, pace())
    assert attempts == (1 if kind is FailureKind.TIMEOUT else 2)
