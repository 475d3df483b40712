"""Runs the items of a paper, and judges the results."""

from __future__ import annotations

import time
from collections.abc import Sequence

from penstock.lab.evidence.model import Finding, Item, Judgement, Report, Size, Verdict


def run_item(item: Item, size: Size, report: Report) -> Finding:
    if item.experiment is None:
        return Finding(item, judgements=[(None, Judgement(Verdict.NOT_BUILT, ""))])
    began = time.monotonic()
    rows = item.experiment(size, report)
    judgements = [(claim, claim.judge(rows)) for claim in item.claims if size in claim.sizes]
    return Finding(item, rows, judgements, time.monotonic() - began)


class TimeLeft:
    """An estimate of the time left, from the expected and the actual durations of items."""

    def __init__(self, items: Sequence[Item], size: Size) -> None:
        self._size = size
        self._left = sum(self._expected(item) for item in items)
        self._expected_so_far = self._took_so_far = 0.0

    def add(self, finding: Finding) -> None:
        expected = self._expected(finding.item)
        self._left -= expected
        self._expected_so_far += expected
        self._took_so_far += finding.seconds

    @property
    def seconds(self) -> float:
        slower = self._took_so_far / self._expected_so_far if self._expected_so_far > 1 else 1.0
        return max(0.0, self._left) * slower

    def _expected(self, item: Item) -> float:
        return item.seconds.get(self._size, 0.0) if item.experiment else 0.0
