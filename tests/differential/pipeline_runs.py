"""Runs of a pipeline beside a story: what happens to it after each step, and how it is set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle

from hypothesis import strategies as st

from penstock.joins.initial_regions import MANY_NEWCOMERS
from penstock.testing import LocalPipeline
from penstock.testing.scenario import Step
from tests.pipeline.telling import Teller
from tests.pipeline.test_stages import EVENTS, happen


@dataclass(frozen=True)
class PipelineRun:
    events: list[str]
    batch_rows: int
    many_newcomers: int

    def follow(self, teller: Teller, steps: Iterable[Step]) -> Iterator[Step]:
        """Tell a home the steps of a story. Each is given out once something has happened to the
        pipeline after it; at the end, everything is processed."""
        pipeline = LocalPipeline(teller.home, self.batch_rows, many_newcomers=self.many_newcomers)
        for step, event in zip(steps, cycle(self.events), strict=False):
            teller.tell([step])
            pipeline = happen(event, pipeline, self.batch_rows)
            yield step
        pipeline.run()


pipeline_runs = st.builds(
    PipelineRun,
    st.lists(st.sampled_from(EVENTS), min_size=8, max_size=24),
    st.integers(1, 9),
    st.sampled_from([1, MANY_NEWCOMERS]),
)
