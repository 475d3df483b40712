"""Evaluators: the interface for evaluating operators.

Rows are stored values of the arguments' types (`Argument.convert`), one tuple per row, constants
included. An outcome is a checked result in stored form, or an `OperatorFailure`. `ProcessEvaluator`
(`penstock.operators.worker_process`) enforces limits; the one here does not.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from penstock.operators.failures import FailureKind
from penstock.operators.interface import Operator, StoredRow
from penstock.operators.limits import (
    Evaluated,
    Evaluation,
    NotEvaluated,
    Pace,
    evaluate_in_parts,
)
from penstock.operators.validation import (
    GarbageError,
    describe_exception,
    show_rows,
    store_results,
)


class Evaluator(Protocol):
    """One batch at a time. Keeps operators set up until it is closed."""

    def evaluate(self, operator: Operator, rows: Sequence[StoredRow]) -> Evaluation: ...

    def close(self) -> None: ...


def attempt_rows(operator: Operator, rows: Sequence[StoredRow]) -> Evaluated | NotEvaluated:
    """Calls an operator that is set up, in this process."""
    shown = show_rows(operator, rows)
    started = time.perf_counter()
    try:
        returned = operator.evaluate(shown)
        seconds = time.perf_counter() - started
        return Evaluated(store_results(operator, returned, len(rows)), seconds)
    except GarbageError as error:
        return NotEvaluated(FailureKind.GARBAGE, str(error))
    except MemoryError as error:
        return NotEvaluated(FailureKind.MEMORY, describe_exception(error))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - sys.exit() ends the row, not the pipeline
        return NotEvaluated(FailureKind.RAISED, describe_exception(error))


def set_up_operator(operator: Operator) -> NotEvaluated | None:
    """Sets an operator up, in this process; returns the failure, if it failed."""
    try:
        operator.set_up()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - as above
        kind = FailureKind.MEMORY if isinstance(error, MemoryError) else FailureKind.RAISED
        return NotEvaluated(kind, f"set-up: {describe_exception(error)}", in_set_up=True)
    return None


class InProcessEvaluator:
    """Evaluates in this process: for cheap, trusted operators, and for tests.

    An exception or an invalid result fails its rows; hangs, leaks and crashes affect this process.
    """

    def __init__(self) -> None:
        self._ready: dict[int, tuple[Operator, Pace]] = {}

    def evaluate(self, operator: Operator, rows: Sequence[StoredRow]) -> Evaluation:
        def attempt(part: Sequence[StoredRow]) -> Evaluated | NotEvaluated:
            if id(operator) not in self._ready:
                failed = set_up_operator(operator)
                if failed is not None:
                    return failed
                self._ready[id(operator)] = operator, pace
            return attempt_rows(operator, part)

        pace = self._pace(operator)
        return evaluate_in_parts(operator, rows, attempt, pace)

    def _pace(self, operator: Operator) -> Pace:
        known = self._ready.get(id(operator))
        return known[1] if known else Pace(operator.timeout_seconds, operator.cost_seconds)

    def close(self) -> None:
        self._ready.clear()
