"""Means over seeds, with 95 % intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

STUDENT_95 = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}
"""Quantiles of the t distribution, by number of values."""


def interval_95(values: Sequence[float]) -> float | None:
    """Half the width of the interval of their mean; None for a single value."""
    if len(values) < 2:
        return None
    student = STUDENT_95[min(len(values), 10)]
    return student * statistics.stdev(values) / math.sqrt(len(values))


def mean(values: Iterable[float]) -> float:
    return statistics.fmean(values)
