"""What a driver does on a cluster, in a process of its own: a process has one Spark."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from penstock import Hub, Subscription
from penstock.history.backtest import backtest
from penstock.log import Home
from penstock.pipeline.run import run
from penstock.sql import bind
from penstock.testing.decompositions import numbered_decomposition
from penstock.testing.oracle import Oracle
from penstock.testing.scenario import Bad, Define, Publish, Replan, Step, Subscribe, Withdraw
from tests.pipeline.telling import Chorus, Teller, interleaved, plain, scenario_paths, values_of


def drive(home: Path, master: str, conf: dict[str, str]) -> None:
    """All scenarios in two runs; after each, contents equal those of the Hub and of DuckDB."""
    teller = Teller(Home.create(home, shared=True))
    steps = interleaved(scenario_paths())
    half = len(steps) // 2
    live: dict[str, Subscription] = {}
    with Oracle() as oracle, Hub() as hub:
        chorus = Chorus(oracle, teller.registry)
        for share in (steps[:half], steps[half:]):
            teller.tell(share)
            chorus.tell(share)
            tell_hub(hub, share, live)
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


def tell_hub(hub: Hub, steps: list[Step], live: dict[str, Subscription]) -> None:
    for step in steps:
        match step:
            case Define(sql):
                hub.execute(sql)
            case Subscribe(name, sql):
                live[name] = hub.subscribe(sql)
            case Withdraw(name):
                hub.unsubscribe(live.pop(name))
            case Publish(changes):
                hub.apply(changes)
            case Replan(name, plan):
                query = bind(live[name].sql, hub.catalog)
                hub.replan(live[name], numbered_decomposition(query, plan))
            case Bad():
                pass  # through this door it would be refused


if __name__ == "__main__":
    drive(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))
