"""What a driver does on a cluster, in a process of its own: a process has one Spark.

That all stories come out right is proved on one machine and without Spark; here, that two executors
which share nothing but the home do the same as one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import mkdtemp

from hypothesis import HealthCheck, Phase, given, settings

from penstock import Hub, Subscription
from penstock.history.backtest import backtest
from penstock.pipeline.run import run
from penstock.storage import Home
from penstock.testing.oracle import Oracle
from tests.differential.stories import Story
from tests.pipeline.coming_and_going import live_through, stories_in_rounds
from tests.pipeline.telling import (
    Chorus,
    Teller,
    interleaved,
    plain,
    scenario_paths,
    tell_hub,
    values_of,
)

STORIES = 1


def drive(home: Path, master: str, conf: dict[str, str]) -> None:
    """All scenarios in one run; contents equal those of the Hub and of DuckDB."""
    teller = Teller(Home.create(home, shared=True))
    steps = interleaved(scenario_paths())
    live: dict[str, Subscription] = {}
    with Oracle() as oracle, Hub() as hub:
        chorus = Chorus(oracle, teller.registry)
        teller.tell(steps)
        chorus.tell(steps)
        tell_hub(hub, steps, live)
        summary = run(home, once=True, master=master, conf=conf, batch_rows=200)
        assert summary.position == teller.home.log.end
        contents = {name: teller.content(name) for name in teller.ids}
        named = {name: None if c is None else values_of(c) for name, c in contents.items()}
        assert named == chorus.contents()
        assert contents == {name: plain(one.content()) for name, one in live.items()}
    assert [event.raw for event in teller.home.quarantine.entries()] == teller.bad
    # Whoever had been there from the beginning would have ended with the same rows.
    tested = backtest(home, list(chorus.sql.values()), master=master, conf=conf)
    rows = [contents[name] for name in chorus.sql]
    assert [one.totals.rows for one in tested.queries] == [sum((c or {}).values()) for c in rows]


def come_and_go(directory: Path, master: str, conf: dict[str, str]) -> None:
    """Stories in which subscriptions come and go in every batch."""

    @settings(
        max_examples=STORIES,
        derandomize=True,
        phases=[Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(stories_in_rounds())
    def lived_through(story: list[Story]) -> None:
        live_through(Path(mkdtemp(dir=directory)), story, master=master, conf=conf)

    lived_through()


def main(directory: Path, master: str, conf: dict[str, str]) -> None:
    directory.mkdir()
    drive(directory / "scenarios", master, conf)
    come_and_go(directory, master, conf)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))
