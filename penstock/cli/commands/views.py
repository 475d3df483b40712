"""`penstock views`: views that feed views."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.groups import epilog
from penstock.cli.output import Output
from penstock.cli.parameters import HomeArgument, JsonLinesOption, JsonOption

if TYPE_CHECKING:
    from penstock.service import LocalSites, ViewNews

PANEL = "Operate"
EXAMPLES = """
  penstock views plan news
  penstock views plan news --feeds 10 --source 72 --explain
  penstock views plan news --sites 12 --svg plan.svg
  penstock views calibrate --within 0.05
  penstock views up news --sites 12
  penstock views status 127.0.0.1:7170
  penstock views follow 127.0.0.1:7170 4
"""
LOOK_EVERY_SECONDS = 0.5

app = typer.Typer(
    add_completion=False, rich_markup_mode="rich", epilog=epilog(EXAMPLES), no_args_is_help=True
)

DocumentsOption = Annotated[
    str | None,
    typer.Option(metavar="TABLE.COLUMN", help="Only the views over these documents."),
]
SourceArgument = Annotated[
    str, typer.Argument(metavar="ADDRESS", help="The source of the network: HOST:PORT.")
]
TokenFileOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="File with the token of the network.")
]


@app.callback()
def views() -> None:
    """Plan which views feed which others, and run the plan.

    Views are the subscriptions with XMLTABLE and no further condition.
    """


@app.command(epilog=epilog(EXAMPLES))
def plan(
    home: HomeArgument,
    feeds: Annotated[
        int,
        typer.Option(metavar="N", min=-1, help="Maximum views that one view feeds; -1: no limit."),
    ] = 30,
    source: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Maximum views that the source feeds; by default those that no other view can "
            "feed and a fifth more, or as many as necessary.",
        ),
    ] = None,
    rewritings: Annotated[
        int,
        typer.Option(
            "--rewritings", "-k", metavar="K", min=1, max=1000, help="Maximum rewritings per view."
        ),
    ] = 30,
    alpha: Annotated[float, typer.Option(min=0, help="Weight of utilisation.")] = 1.0,
    beta: Annotated[float, typer.Option(min=0, help="Weight of latency.")] = 1.0,
    sites: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="Number of sites.")] = 12,
    documents: DocumentsOption = None,
    tables: Annotated[
        bool, typer.Option("--tables", help="Also plan ordinary subscriptions over one table.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print for each view what feeds it, and how.")
    ] = False,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a diagram of levels and feeds.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show which views would feed which: levels, load per site, latency. Read-only.

    Sizes of results are measured on documents of the home. If no plan is within the limits, the
    error names the smallest limit that is possible.
    """
    from penstock.cli.plan_report import show_plans
    from penstock.views.plan_limits import PlanLimits

    limits = PlanLimits(None if feeds < 0 else feeds, source, rewritings, alpha, beta)
    out = Output(as_json=as_json)
    show_plans(out, home, limits, sites, documents, tables=tables, explain=explain, svg=svg)


@app.command(epilog=epilog(EXAMPLES))
def up(
    home: HomeArgument,
    sites: Annotated[int, typer.Option(metavar="N", min=1, max=64, help="Number of sites.")] = 12,
    feeds: Annotated[
        int, typer.Option(metavar="N", min=0, help="Maximum views that one view feeds.")
    ] = 30,
    documents: DocumentsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start the source and some sites on this machine, to try them out; runs until Ctrl-C."""
    from penstock.cli.interruptible import run_interruptible

    out = Output(as_json=as_json)
    options = ["--documents", documents] if documents else []
    run_interruptible(lambda stop: _keep_up(home, sites, feeds, options, out, stop))


def _keep_up(
    home: Path, sites: int, feeds: int, options: list[str], out: Output, stop: threading.Event
) -> None:
    from penstock.errors import NetworkError
    from penstock.service import LocalSites

    with LocalSites(home, sites, feeds, options) as network:
        _say_where(network, out)
        while not stop.wait(LOOK_EVERY_SECONDS):
            ended = network.ended()
            if network.addresses[0] in ended:
                raise NetworkError(
                    f"the source at {ended[0]} has ended", hint="see its output above"
                )
            if len(ended) == sites:
                raise NetworkError("all sites have ended", hint="see their output above")


def _say_where(network: LocalSites, out: Output) -> None:
    source, *others = map(str, network.addresses)
    token_file = str(network.token_file)
    out.result({"source": source, "sites": others, "token_file": token_file})
    out.say(f"{source}  the source")
    for address in others:
        out.say(f"{address}  a site")
    out.say("To follow a view, run in another terminal:")
    out.say(f"  penstock views follow {source} ID --token-file {token_file}")
    out.say("If a site is killed, its views move to others. Ctrl-C stops all of them.")


@app.command(epilog=epilog(EXAMPLES))
def status(
    source: SourceArgument, token_file: TokenFileOption = None, as_json: JsonOption = False
) -> None:
    """Show the status of a network of views: sites, views, documents, moves."""
    from penstock.service import ask_state, parse_address

    out = Output(as_json=as_json)
    state = asyncio.run(ask_state(parse_address(source), _token(token_file)))
    out.result(state)
    for name, value in state.items():
        out.say(f"{name.replace('_', ' ')}: {value}")


@app.command(epilog=epilog(EXAMPLES))
def follow(
    source: SourceArgument,
    view: Annotated[int, typer.Argument(metavar="ID", min=0, help="Id of a subscription.")],
    token_file: TokenFileOption = None,
    wait: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Keep waiting for changes, or exit.")
    ] = True,
    as_json: JsonLinesOption = False,
) -> None:
    """Print the changes of a view, read from the site that computes it."""
    from penstock.cli.interruptible import run_until_signal
    from penstock.service import ViewReader, parse_address

    out = Output(as_json=as_json)
    token, address = _token(token_file), parse_address(source)

    async def read() -> None:
        reader = ViewReader(address, view, token=token, on_trouble=out.note)
        async for news in reader.news(follow=wait):
            _show_news(out, news)

    asyncio.run(run_until_signal(read()))


def _token(token_file: Path | None) -> bytes:
    from penstock.service import read_tokens

    return b"" if token_file is None else read_tokens(token_file)[0]


def _show_news(out: Output, news: ViewNews) -> None:
    out.result({"cursor": news.cut, "document": news.key, "gone": news.gone, "come": news.come})
    for sign, rows in (("-", news.gone), ("+", news.come)):
        for row in rows:
            out.say(f"{sign} {row}")


@app.command(epilog=epilog(EXAMPLES))
def calibrate(
    within: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.0001, max=60, help="Time limit per document.")
    ] = 0.05,
    size: Annotated[
        int, typer.Option(metavar="BYTES", min=0, max=10_000_000, help="Result size per document.")
    ] = 2_000,
    as_json: JsonOption = False,
) -> None:
    """Measure how many others a view on this machine can feed in time: --feeds of its site.

    A site on loopback sends results to an increasing number of readers.
    """
    from penstock.service import calibrate_site

    out = Output(as_json=as_json)
    found = asyncio.run(calibrate_site(within, size))
    measured = [{"feeds": n, "seconds": seconds} for n, seconds in found.measured.items()]
    out.result({"feeds": found.feeds, "within_seconds": within, "results": measured})
    rows = [(f"{n:,}", f"{1000 * seconds:.2f}") for n, seconds in found.measured.items()]
    out.table(("others", "ms until the last one is served"), rows, ("others",))
    out.say(
        f"A view on this machine can feed {found.feeds:,} others within {1000 * within:g} ms per "
        f"document: penstock site --feeds {found.feeds}"
    )
