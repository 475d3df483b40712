"""What tests of operators share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from penstock.operators.worker_process import ProcessEvaluator
from tests.operators.evaluating import Call, in_process


@pytest.fixture
def calls() -> Iterator[Counter[Call]]:
    """Operators are evaluated in this process; how often each was asked about what."""
    with in_process() as counted:
        yield counted


@pytest.fixture
def processes() -> Iterator[ProcessEvaluator]:
    with ProcessEvaluator() as made:
        yield made
