"""`penstock demo`"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.groups import epilog
from penstock.cli.output import Output
from penstock.cli.parameters import JsonOption
from penstock.cli.progress import Advance, bar

PANEL = "Try and measure"
EXAMPLES = """
  penstock demo
  penstock demo --home shop --subscriptions 5000 --changes 2000
  penstock demo drones
  penstock demo news --svg plan.svg
"""
DRONES_EXAMPLES = """
  penstock demo drones
  penstock demo drones --sightings 1000 --json
"""

NEWS_EXAMPLES = """
  penstock demo news
  penstock demo news --views 500 --svg plan.svg
"""

MOST = 1_000_000
"""The demo keeps everything in memory for the comparison: about a kilobyte each."""

app = typer.Typer(add_completion=False, rich_markup_mode="rich", epilog=epilog(EXAMPLES))


@app.callback(invoke_without_command=True)
def demo(
    ctx: typer.Context,
    home: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Directory of the new home; by default a temporary one."),
    ] = None,
    subscriptions: Annotated[
        int, typer.Option(metavar="N", min=10, max=MOST, help="Number of standing queries.")
    ] = 2000,
    changes: Annotated[
        int, typer.Option(metavar="N", min=10, max=MOST, help="Number of changes.")
    ] = 3000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.", min=0)] = 1,
    master: Annotated[str, typer.Option(metavar="URL", help="Spark master URL.")] = "local[2]",
    as_json: JsonOption = False,
) -> None:
    """Run a demo: stocks, analysts' reviews, 2,000 standing queries, Spark on this machine.

    Takes about half a minute, and leaves a home to experiment with.
    """
    if ctx.invoked_subcommand is not None:
        return
    from penstock.cli.demo_report import figures, show_report
    from penstock.lab.demo import run_demo

    out = Output(as_json=as_json)
    path = home if home is not None else Path(tempfile.mkdtemp(prefix="penstock-demo-"), "home")
    report = run_demo(
        path,
        _Steps(out),
        subscriptions=subscriptions,
        changes=changes,
        seed=seed,
        master=master,
    )
    out.result(figures(report))
    if not as_json:
        show_report(out, report)


@app.command(epilog=epilog(DRONES_EXAMPLES))
def drones(
    sightings: Annotated[
        int, typer.Option(metavar="N", min=1, max=100_000, help="Number of pictures.")
    ] = 200,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.", min=0)] = 1,
    as_json: JsonOption = False,
) -> None:
    """Demo of operators in conditions: cameras over New York, and five subscribers.

    Recognisers and geo operators run in their own processes and are called as rarely as possible.
    """
    from penstock.lab.drones_demo import run_drones_demo
    from penstock.operators.examples.drones import SUBSCRIPTIONS

    out = Output(as_json=as_json)
    with _Steps(out).step(f"Publishing {sightings:,} pictures to {len(SUBSCRIPTIONS)} subscribers"):
        done = run_drones_demo(sightings, seed)
    out.result(
        {
            "sightings": done.sightings,
            "told": done.told,
            "evaluated": done.evaluated,
            "predicates": done.predicates,
        }
    )
    rows = [
        (name, f"{told:,}", SUBSCRIPTIONS[name].partition(" WHERE ")[2])
        for name, told in done.told.items()
    ]
    out.table(("subscriber", "pictures", "condition"), rows, ("pictures",))
    out.say(
        f"{done.sightings:,} pictures; results checked against the scenes. Operators were called "
        f"{done.evaluated:,} times; evaluating every condition takes {done.predicates:,} calls."
    )


@app.command(epilog=epilog(NEWS_EXAMPLES))
def news(
    views: Annotated[
        int,
        typer.Option(metavar="N", min=10, max=2_000, help="Number of views, one per subscriber."),
    ] = 300,
    documents: Annotated[
        int, typer.Option(metavar="N", min=2, max=10_000, help="Number of documents.")
    ] = 40,
    sites: Annotated[int, typer.Option(metavar="N", min=2, max=200, help="Number of sites.")] = 12,
    feeds: Annotated[
        int, typer.Option(metavar="N", min=1, max=1000, help="Maximum views that one view feeds.")
    ] = 10,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.", min=0)] = 1,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a diagram of levels and feeds.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Demo of views that feed views: XML news, a few hundred views at twelve sites.

    Shows how much work the source saves. One site fails during the run; every content is compared
    with what the home returns.
    """
    from penstock.cli.demo_report import show_news
    from penstock.lab.news_demo import run_news_demo
    from penstock.views.plan_picture import plan_svg

    out = Output(as_json=as_json)
    with tempfile.TemporaryDirectory(prefix="penstock-news-") as directory:
        done = run_news_demo(
            Path(directory, "home"),
            _Steps(out),
            views=views,
            documents=documents,
            sites=sites,
            feeds=feeds,
            seed=seed,
        )
    if svg is not None:
        svg.write_text(plan_svg(done.planned.plan, done.names), encoding="utf-8")
    show_news(out, done, svg)


class _Steps:
    """Prints each step and how long it took."""

    def __init__(self, out: Output) -> None:
        self._out = out

    @contextmanager
    def step(self, what: str) -> Iterator[Advance]:
        began = time.monotonic()
        with bar(what) as advance:
            yield advance
        self._out.say(f"✓ {what}  ({time.monotonic() - began:.1f} s)")
