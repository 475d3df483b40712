"""A Hub that has the sample operators, told a story beside a DuckDB that has them as functions."""

from __future__ import annotations

from penstock import Hub
from penstock.testing.oracle import Oracle
from tests.differential.stories import Story
from tests.differential.test_hub import tell
from tests.operators.samples import PREDICATES


def check(story: Story) -> None:
    with Hub() as hub, Oracle() as oracle:
        for one in PREDICATES:
            hub.register_operator(one)
            oracle.define_operator(one)
        tell(story, hub, oracle)
