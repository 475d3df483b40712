"""Stories in which subscriptions come and go in every batch, lived through by a pipeline on Spark.

DuckDB and a Hub are told the same. A part of a story, a round, is as long as a batch.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from penstock import Hub, Subscription
from penstock.flow.changes import Op
from penstock.pipeline.run import run
from penstock.storage import Home
from penstock.testing.oracle import Oracle
from penstock.testing.scenario import Publish, Subscribe, Withdraw
from tests.differential.stories import Shape, Story, rounds
from tests.pipeline.running import Running
from tests.pipeline.telling import Chorus, Plain, Teller, content, plain, tell_hub, values_of

RECORDS = 7
ROUNDS = 8
FIRST_LIFE = 5  # so many rounds until it is stopped and started again
SHAPE = Shape(tables=(2, 4), nodes=(1, 3))


def stories_in_rounds() -> st.SearchStrategy[list[Story]]:
    """Few of them are lived through, so those in which little happens are left out."""
    return rounds(SHAPE, ROUNDS, RECORDS).filter(_is_eventful)


def _is_eventful(story: list[Story]) -> bool:
    steps = [step for part in story for step in part.steps]
    joins = [step for step in steps if isinstance(step, Subscribe) and " JOIN " in step.sql]
    ops = {change.op for step in steps if isinstance(step, Publish) for change in step.changes}
    leavings = sum(isinstance(step, Withdraw) for step in steps)
    return len(joins) >= 3 and len(ops) == len(Op) and leavings >= 3


@dataclass
class Witness:
    """What every content was to be at the end of each round."""

    position: int
    contents: dict[str, Plain]
    newcomers: set[str]


@dataclass
class Ensemble:
    """A home, DuckDB and a Hub that are told the same story."""

    teller: Teller
    chorus: Chorus
    hub: Hub
    live: dict[str, Subscription] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    """Of everybody who ever came."""
    witnesses: list[Witness] = field(default_factory=list)

    def tell(self, story: Story) -> None:
        self.teller.tell(story.steps)
        self.chorus.tell(story.steps)
        tell_hub(self.hub, story.steps, self.live)
        self.ids |= self.teller.ids
        contents = {name: plain(one.content()) for name, one in self.live.items()}
        assert {name: values_of(c) for name, c in contents.items()} == self.chorus.contents()
        newcomers = {step.name for step in story.steps if isinstance(step, Subscribe)}
        self.witnesses.append(Witness(self.teller.home.log.end, contents, newcomers))

    def compare(self) -> None:
        """What subscribers know at the end, and what they knew at the end of each round; also those
        who have left since. Who has come in a round may not be active yet at its end."""
        known = partial(content, self.teller.home, self.teller.registry)
        now = {name: known(self.ids[name]) for name in self.teller.ids}
        assert now == self.witnesses[-1].contents
        for one in self.witnesses:
            for name, expected in one.contents.items():
                then = known(self.ids[name], one.position)
                assert then == expected or (then is None and name in one.newcomers), name

    def caught_up(self) -> bool:
        """Whether everything is published, and everybody who has come is active."""
        frontier = self.teller.home.messages.frontier
        if frontier is None or frontier.end < self.teller.home.log.end:
            return False
        return all(number < frontier.active for number in self.teller.ids.values())


def live_through(directory: Path, story: list[Story], **options: Any) -> None:
    """Two lives of a pipeline: one that finds all its rounds in the log, and one that hears of them
    as it runs, and is told the next when it is done with one."""
    with ExitStack() as stack:
        teller = Teller(Home.create(directory / "home", shared=True))
        chorus = Chorus(stack.enter_context(Oracle()), teller.registry)
        ensemble = Ensemble(teller, chorus, stack.enter_context(Hub()))
        for part in story[:FIRST_LIFE]:
            ensemble.tell(part)
        run(teller.home.path, once=True, batch_rows=RECORDS, **options)
        assert len(list(teller.home.messages.batches())) >= FIRST_LIFE
        ensemble.compare()
        with Running(teller.home.path, batch_rows=RECORDS, **options) as running:
            for part in story[FIRST_LIFE:]:
                ensemble.tell(part)
                running.wait_for(ensemble.caught_up)
        ensemble.compare()
        assert list(teller.home.quarantine.entries()) == []
