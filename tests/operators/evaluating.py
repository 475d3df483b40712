"""Evaluators for tests: in this process, and counting what is evaluated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from unittest import mock

from penstock.flow.operator_values import OperatorRuntime
from penstock.operators.evaluation import InProcessEvaluator
from penstock.operators.interface import Operator, StoredRow
from penstock.operators.limits import Evaluation
from penstock.operators.schedules.registry import DEFAULT_SCHEDULE

Call = tuple[str, str, StoredRow]
"""An operator, its version, and its arguments."""


class CountingEvaluator(InProcessEvaluator):
    """Counts how often an operator was asked about the same arguments, behind all caches."""

    def __init__(self, calls: Counter[Call]) -> None:
        super().__init__()
        self._calls = calls

    def evaluate(self, operator: Operator, rows: Sequence[StoredRow]) -> Evaluation:
        self._calls.update((operator.name, operator.version, row) for row in rows)
        return super().evaluate(operator, rows)


@contextmanager
def in_process(schedule: str = DEFAULT_SCHEDULE) -> Iterator[Counter[Call]]:
    """Operators of all homes are evaluated in this process; what is counted."""
    calls: Counter[Call] = Counter()
    made = mock.Mock(side_effect=lambda **_: CountingEvaluator(calls))
    where = "penstock.registry.operator_runtime"
    with (
        mock.patch(f"{where}.ProcessEvaluator", made),
        mock.patch(f"{where}.OperatorRuntime", partial(OperatorRuntime, schedule=schedule)),
    ):
        yield calls
