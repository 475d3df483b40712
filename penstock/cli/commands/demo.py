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
"""The demonstration keeps all it does in memory, to compare: a kilobyte or so for each."""

app = typer.Typer(add_completion=False, rich_markup_mode="rich", epilog=epilog(EXAMPLES))


@app.callback(invoke_without_command=True)
def demo(
    ctx: typer.Context,
    home: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where to make the home; by default a new temporary one."),
    ] = None,
    subscriptions: Annotated[
        int, typer.Option(metavar="N", min=10, max=MOST, help="How many standing queries.")
    ] = 2000,
    changes: Annotated[
        int, typer.Option(metavar="N", min=10, max=MOST, help="How many changes.")
    ] = 3000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.", min=0)] = 1,
    master: Annotated[str, typer.Option(metavar="URL", help="Where Spark runs.")] = "local[2]",
    as_json: JsonOption = False,
) -> None:
    """Run a demo: stocks, analysts' reviews, 2,000 standing queries, Spark on this machine.

    Takes half a minute or so, and leaves a home that you can go on with.
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
        int, typer.Option(metavar="N", min=1, max=100_000, help="How many pictures are taken.")
    ] = 200,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.", min=0)] = 1,
    as_json: JsonOption = False,
) -> None:
    """See operators in conditions: cameras over New York, and five who want some of the pictures.

    Recognisers and geo operators run in processes of their own, as rarely as possible.
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
    out.table(("who", "told of", "condition"), rows, ("told of",))
    out.say(
        f"{done.sightings:,} pictures, each compared with what it was drawn from. Operators were "
        f"called {done.evaluated:,} times; all conditions have {done.predicates:,} calls."
    )


@app.command(epilog=epilog(NEWS_EXAMPLES))
def news(
    views: Annotated[
        int, typer.Option(metavar="N", min=10, max=2_000, help="How many subscribers.")
    ] = 300,
    documents: Annotated[
        int, typer.Option(metavar="N", min=2, max=10_000, help="How many documents.")
    ] = 40,
    sites: Annotated[int, typer.Option(metavar="N", min=2, max=200, help="How many.")] = 12,
    feeds: Annotated[
        int, typer.Option(metavar="N", min=1, max=1000, help="Others that a view may feed.")
    ] = 10,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.", min=0)] = 1,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw levels and who feeds whom.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """See subscriptions feed subscriptions: news as XML, a few hundred views at twelve sites.

    Shows what the source is relieved of. One site is lost on the way; every content is compared
    with what the home itself returns.
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
    """Says what is being done, and how long it took."""

    def __init__(self, out: Output) -> None:
        self._out = out

    @contextmanager
    def step(self, what: str) -> Iterator[Advance]:
        began = time.monotonic()
        with bar(what) as advance:
            yield advance
        self._out.say(f"✓ {what}  ({time.monotonic() - began:.1f} s)")
